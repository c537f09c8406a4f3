"""`FakeTensor`: what a traced program holds in place of a tensor.

A subclass of `Tensor`, so that `isinstance` holds and methods are found; its calls reach the
tracer through the bindings (csrc/python/trace_hook.h). What is no binding is defined here: geometry
as symbolic ints, operators, views that are attributes. Asking for values raises `DataDependent`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import flambeau

from .._ir.symscalar import SymFloat, SymInt
from . import geometry
from .constants import constant_of
from .fake import Fake
from .meanings import DataDependent, format_name
from .stand_ins import refuse_place

if TYPE_CHECKING:
    from .session import Session

Tensor = flambeau.Tensor
_NUMBERS = (int, float, complex, SymInt, SymFloat, np.generic)


class SymSize(tuple):  # type: ignore[type-arg]
    """A shape with symbolic sizes; what is made of it is a shape, as it is of `Size`."""

    __slots__ = ()
    __class__ = property(lambda self: flambeau.Size)

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return shown_shape(found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Any:
        return shown_shape((*self, *other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return shown_shape((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: Any) -> Any:
        return shown_shape(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return repr(flambeau.Size(int(n) for n in self))  # a text is of these very numbers

    def numel(self) -> Any:
        return geometry.prod(self)


def shown_shape(shape: geometry.Shape) -> Any:
    """A shape as users see it."""
    known = all(isinstance(n, int) for n in shape)
    return flambeau.Size(shape) if known else SymSize(shape)


class FakeTensor(Tensor):
    """A tensor of a trace."""

    fake: Fake
    session: Session

    @classmethod
    def __torch_function__(cls, function: Any, *args: Any, **kwargs: Any) -> Any:
        name = getattr(function, "__name__", function)
        raise RuntimeError(f"{name}(): a traced tensor was used where no trace sees it")

    # -- geometry -------------------------------------------------------------------------------

    @property
    def shape(self) -> Any:
        return shown_shape(self.fake.shape)

    def size(self, dim: int | None = None) -> Any:
        if dim is None:
            return self.shape
        return self.fake.shape[_dim(dim, self.fake.ndim)]

    def stride(self, dim: int | None = None) -> Any:
        if dim is None:
            return tuple(self.fake.strides)
        return self.fake.strides[_dim(dim, self.fake.ndim)]

    @property
    def dtype(self) -> Any:
        return self.fake.dtype

    @property
    def device(self) -> Any:
        return self.fake.device

    @property
    def ndim(self) -> int:
        return self.fake.ndim

    def dim(self) -> int:
        return self.fake.ndim

    ndimension = dim

    def numel(self) -> Any:
        return self.fake.numel()

    nelement = numel

    def storage_offset(self) -> Any:
        refuse_place(self.session.recorder, self.fake)
        return self.fake.place()

    def element_size(self) -> int:
        return int(self.fake.dtype.itemsize)

    @property
    def itemsize(self) -> int:
        return self.element_size()

    @property
    def nbytes(self) -> Any:
        return self.numel() * self.element_size()

    def is_contiguous(self, *, memory_format: Any = None) -> bool:
        return self.fake.is_contiguous(format_name(memory_format))

    def is_floating_point(self) -> bool:
        return bool(self.fake.dtype.is_floating_point)

    def is_complex(self) -> bool:
        return bool(self.fake.dtype.is_complex)

    def is_signed(self) -> bool:
        return bool(self.fake.dtype.is_signed)

    def __len__(self) -> int:
        if self.fake.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return operator.index(self.fake.shape[0])

    def __repr__(self) -> str:
        if self.session.in_program:
            raise DataDependent("a tensor is turned into text")
        return f"FakeTensor({self.fake.value}: {self.fake.type})"

    __hash__ = object.__hash__

    # -- history --------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        return self.fake.requires_grad

    @requires_grad.setter
    def requires_grad(self, on: bool) -> None:
        self.requires_grad_(on)

    def requires_grad_(self, on: bool = True) -> FakeTensor:
        if on != self.fake.requires_grad:
            self.session.set_requires_grad(self.fake, on)
        return self

    @property
    def is_leaf(self) -> bool:
        return self.fake.value in self.session.recorder.graph.inputs

    grad = None
    grad_fn = None

    def detach(self) -> FakeTensor:
        return self.session("detach", None, {"0": self})

    @property  # may not be written to, unlike the tensor's
    def data(self) -> FakeTensor:  # type: ignore[override]
        return self.session("detach", None, {"0": self})

    # -- values ---------------------------------------------------------------------------------

    def __pos__(self) -> FakeTensor:
        return self

    def _unknown(self, *args: Any, **kwargs: Any) -> Any:
        data = self.session.seen(self, "values of a tensor")
        if data is not None:  # a trace that runs on data
            return data.numpy()
        raise DataDependent("the value of a traced tensor is known only when it runs")

    numpy = __array__ = __format__ = data_ptr = untyped_storage = storage = _unknown

    def constant(self) -> Any:
        """The tensor of data that this one equals in every run; None where there is none."""
        recorder = self.session.recorder
        if self.fake.only_number:
            return None
        known = recorder.constants
        return self.session.outside(constant_of, recorder.graph, known, self.fake.value)

    def value_of(self, name: str, *args: Any) -> Any:
        """What a method that reads values gives, where the program's own numbers determine it."""
        data = self.session.seen(self, "the value of a tensor")
        if data is not None:
            return self.session.outside(getattr(data, name), *args)
        constant = self.constant()
        if constant is None:
            self._unknown()
        return self.session.outside(getattr(constant, name), *args)

    # -- indexing, conversions ------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        return self.session("__getitem__", None, {"0": self, "1": key})

    def __setitem__(self, key: Any, value: Any) -> None:
        self.session("__setitem__", None, {"0": self, "1": key, "2": value})

    def __iter__(self) -> Any:
        if self.fake.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __contains__(self, x: Any) -> bool:
        return bool((self == x).any())

    def __deepcopy__(self, memo: Any) -> Any:
        return self.clone()


def _dim(dim: int, ndim: int) -> int:
    if ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return geometry.wrap_dim(dim, ndim)


def _define(name: str, function: Callable[..., Any]) -> None:
    function.__name__ = name
    setattr(FakeTensor, name, function)


def _operator(name: str, method: str) -> None:
    def forward(self: FakeTensor, other: Any) -> Any:
        if not isinstance(other, (Tensor, *_NUMBERS)):
            return NotImplemented
        return self.session.method(method, self, other)

    def backward(self: FakeTensor, other: Any) -> Any:
        if not isinstance(other, (Tensor, *_NUMBERS)):
            return NotImplemented
        if method in ("add", "mul") and isinstance(other, _NUMBERS):  # the second operand
            return self.session.method(method, self, other)
        return self.session.method(method, self.session.tensor(other), self)

    def inplace(self: FakeTensor, other: Any) -> Any:
        return self.session.method(f"{method}_", self, other)

    _define(f"__{name}__", forward)
    _define(f"__r{name}__", backward)
    _define(f"__i{name}__", inplace)


def _comparison(name: str) -> None:
    def compare(self: FakeTensor, other: Any) -> Any:
        if not isinstance(other, (Tensor, *_NUMBERS)):
            return NotImplemented
        return self.session.method(name, self, other)

    _define(f"__{name}__", compare)


def _attribute(name: str) -> None:
    def get(self: FakeTensor) -> Any:
        return self.session(name, None, {"0": self})

    setattr(FakeTensor, name, property(get))


def _unary(name: str, method: str) -> None:
    _define(name, lambda self: self.session.method(method, self))


for _name, _method in (
    ("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "div"), ("pow", "pow"),
    ("floordiv", "floor_divide"), ("mod", "remainder"), ("matmul", "matmul"),
    ("and", "bitwise_and"), ("or", "bitwise_or"), ("xor", "bitwise_xor"),
    ("lshift", "bitwise_left_shift"), ("rshift", "bitwise_right_shift"),
):  # fmt: skip
    _operator(_name, _method)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _comparison(_name)
for _name, _method in (("__neg__", "neg"), ("__abs__", "abs"), ("__invert__", "bitwise_not")):
    _unary(_name, _method)


def _value(name: str) -> None:
    _define(name, lambda self, *args: self.value_of(name, *args))


for _name in ("item", "tolist", "bool", "int", "float", "index", "complex"):
    _value(_name if _name in ("item", "tolist") else f"__{_name}__")
for _name in ("T", "mT", "H", "mH", "real", "imag"):
    _attribute(_name)
