"""`RunNumber`: a number of the program that only the run tells, such as `x.sum().item()`.

It is kept as a tensor without dims of the graph (float64, int64 or bool), and what the program
computes with it becomes operations on such tensors. Invariant: each of these gives what Python's
own arithmetic gives; what has no such operation, and every question for the value, raises
`DataDependent`. Must not know who follows the program.

Note [Numbers of a run]
Integers are those of 64 bits. A division is kept where the divisor is a number other than zero,
since Python raises an error for others. Where a tensor and a number meet, the number counts in
promotion as numbers do: `beside` casts the tensor that stands for it where that would count
for more. A number of NumPy (`numpy`) is one beside tensors; sums, differences, products and
quotients of its float64 and int64 are those of 64 bits too. With anything else it is taken for a
constant.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import flambeau

from .._ir.symscalar import SymFloat, SymInt
from .dtypes import result_type
from .meanings import DataDependent
from .tensor import FakeTensor

_DTYPES = {bool: flambeau.bool, int: flambeau.int64, float: flambeau.float64}
_SAMPLES: dict[type, Any] = {bool: True, int: 2, float: 0.5}


class RunNumber:
    """A number; `tensor` stands for it.

    Attributes:
        kind: bool, int or float.
        known: gives the value where it may be taken for a constant; None: it may not.
        numpy: the class of a number of NumPy; None for Python's own.
    """

    __slots__ = ("kind", "known", "numpy", "tensor")

    def __init__(
        self, tensor: FakeTensor, known: Callable[[], Any] | None = None, numpy: Any = None
    ) -> None:
        self.tensor, self.known, self.numpy = tensor, known, numpy
        self.kind: Any = next(k for k, d in _DTYPES.items() if d is tensor.dtype)

    @staticmethod
    def of(x: FakeTensor) -> RunNumber | None:
        """What `x.item()` gives of a tensor of one element; None: no such number stands for it."""
        d = x.dtype
        if d is flambeau.bool or d.is_floating_point:
            wanted = flambeau.bool if d is flambeau.bool else flambeau.float64
        elif d.is_complex or d is flambeau.uint64:
            return None
        else:
            wanted = flambeau.int64
        flat = x.session.method("reshape", x.detach(), ())
        return RunNumber(x.session.method("to", flat, wanted, False, True))

    def decided(self) -> Any:
        """The value, as a constant."""
        if self.known is None:
            raise DataDependent("the value of a number that only the run tells decides what runs")
        return self.known()

    def as_kind(self, kind: Any) -> RunNumber:
        """`int(n)`, `float(n)` or `bool(n)`."""
        if kind is self.kind:
            return self if self.numpy is None else RunNumber(self.tensor, _known(kind, self))
        if kind is bool:
            made = self._method("ne", self.tensor, 0)
        else:
            made = self._method("to", self.tensor, _DTYPES[kind])
        return RunNumber(made, _known(kind, self))

    def beside(self, others: list[Any]) -> Any:
        """The tensor that stands for it in an operation with these tensors."""
        fakes = [x.fake for x in others]
        wanted = result_type(*fakes, _SAMPLES[self.kind])
        if result_type(*fakes, self.tensor.fake) is wanted:
            return self.tensor
        return self._method("to", self.tensor, wanted)

    def as_tensor(self) -> Any:
        """`torch.tensor(n)`, as a float of the default dtype, or of the dtype that NumPy names."""
        wanted = flambeau.get_default_dtype() if self.kind is float else _DTYPES[self.kind]
        wanted = wanted if self.numpy is None else getattr(flambeau, self.numpy.__name__)
        return self._method("to", self.tensor, wanted, False, True)

    def _method(self, name: str, *args: Any) -> Any:
        return self.tensor.session.method(name, *args)

    def __index__(self) -> int:
        return operator.index(self.decided())

    def __bool__(self) -> bool:
        return bool(self.decided())

    def __int__(self) -> int:
        return int(self.decided())

    __trunc__ = __int__

    def __float__(self) -> float:
        return float(self.decided())

    def __hash__(self) -> int:
        return hash(self.decided())

    def __str__(self) -> str:
        return str(self.decided())

    def __format__(self, spec: str) -> str:
        return format(self.decided(), spec)

    def __round__(self, digits: Any = None) -> Any:
        return round(self.decided(), digits)

    def __floor__(self) -> Any:
        return self.decided().__floor__()

    def __ceil__(self) -> Any:
        return self.decided().__ceil__()

    def __pos__(self) -> RunNumber:
        if self.numpy is not None:
            raise DataDependent("arithmetic of NumPy's numbers is not followed")
        return self.as_kind(int) if self.kind is bool else self

    def __neg__(self) -> RunNumber:
        return RunNumber(self._method("neg", self.__pos__().tensor), _known(operator.neg, self))

    def __abs__(self) -> RunNumber:
        return RunNumber(self._method("abs", self.__pos__().tensor), _known(abs, self))

    def __pow__(self, other: Any) -> Any:
        if (
            self.numpy is not None
            or type(other) is not int
            or not 1 <= other <= (2 if self.kind is float else 8)
        ):
            return NotImplemented
        out: Any = self.__pos__()
        for _ in range(other - 1):
            out = out * self
        return out


def _kind_of(x: Any) -> Any:
    """bool, int or float; None for what is no number that a tensor can hold."""
    if isinstance(x, RunNumber):
        return x.kind
    if isinstance(x, SymInt):
        return int
    if type(x) is int:
        return int if -(2**63) <= x < 2**63 else None
    return type(x) if type(x) in (bool, float) else None


def _operand(x: Any, kind: Any) -> Any:
    if isinstance(x, SymInt):
        return x if kind is int else SymFloat.of(x)
    return x.as_kind(kind).tensor if isinstance(x, RunNumber) else kind(x)


def _known(function: Any, *args: Any) -> Callable[[], Any] | None:
    """The value of an operation on numbers which may be taken for constants."""
    if any(isinstance(a, RunNumber) and a.known is None for a in args):
        return None
    return lambda: function(*(a.decided() if isinstance(a, RunNumber) else a for a in args))


def _nonzero(x: Any) -> bool:
    return not isinstance(x, RunNumber) and x != 0


def _operation(name: str, method: str, divides: bool, floats: bool, kept: tuple[Any, ...]) -> None:
    """An operator.

    Args:
        divides: its second operand must be known not to be zero.
        floats: its result is a float whatever it is given.
        kept: the kinds for which it is what Python has.
    """

    python = getattr(operator, f"__{name}__")

    def apply(a: Any, b: Any) -> Any:
        kinds = (_kind_of(a), _kind_of(b))
        if None in kinds or (divides and not _nonzero(b)):
            return NotImplemented
        kind = float if floats or float in kinds else int
        numpy = None
        if any(isinstance(x, RunNumber) and x.numpy is not None for x in (a, b)):
            if name not in _OF_NUMPY or not (_wide(a) and _wide(b)):
                return NotImplemented
            numpy = np.float64 if kind is float else np.int64
        if kinds == (bool, bool) and bool in kept:
            kind = bool
        if kind not in kept:
            return NotImplemented
        x, y = _operand(a, kind), _operand(b, kind)
        if not isinstance(x, FakeTensor):
            x = y.session.shown(y.session.op("full", [], x, y.dtype))
        return RunNumber(x.session.method(method, x, y), _known(python, a, b), numpy)

    setattr(RunNumber, f"__{name}__", apply)
    if method not in _REFLECTED:
        setattr(RunNumber, f"__r{name}__", lambda self, other: apply(other, self))


def _wide(x: Any) -> bool:
    """A number with which NumPy computes in 64 bits: one of 64 bits itself, or Python's."""
    return not isinstance(x, RunNumber) or x.numpy in (None, np.float64, np.int64)


_OF_NUMPY = ("add", "sub", "mul", "truediv")
_REFLECTED = ("eq", "ne", "lt", "le", "gt", "ge")
for _name, _method in (("add", "add"), ("sub", "sub"), ("mul", "mul")):
    _operation(_name, _method, False, False, (int, float))
for _name in _REFLECTED:
    _operation(_name, _name, False, False, (bool, int, float))
for _name in ("and", "or", "xor"):
    _operation(_name, f"bitwise_{_name}", False, False, (bool, int))
_operation("truediv", "div", True, True, (float,))
_operation("floordiv", "floor_divide", True, False, (int,))
_operation("mod", "remainder", True, False, (int,))


def pick(function: Any, items: list[Any]) -> Any:
    """`min` or `max` of numbers of one kind, some of which only the run tells; None for others."""
    kinds = {_kind_of(x) for x in items}
    if any(isinstance(x, RunNumber) and x.numpy is not None for x in items):
        return None
    if kinds not in ({int}, {float}):
        return None
    better = operator.lt if function is min else operator.gt
    best = items[0]
    for x in items[1:]:
        run, other = (x, best) if isinstance(x, RunNumber) else (best, x)
        if not isinstance(run, RunNumber):
            best = x if better(x, best) else best
            continue
        taken: Any = better(x, best)  # which keeps the first of equals, and what NaN is beside
        keep = (
            taken.tensor if run is x else taken.tensor.session.method("logical_not", taken.tensor)
        )
        value = other.tensor if isinstance(other, RunNumber) else other
        best = RunNumber(run.tensor.session.method("where", run.tensor, keep, value))
    return best
