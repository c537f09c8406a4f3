"""Runs typed functions of the table over tensors with data.

Composite entries run their bodies, down to the kernels of the others. An intrinsic means what it
means over fakes of the tensors; only what aliases memory or looks at values is given here, each by
a function of its name. A number that stands for a tensor is the fake that wraps it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import flambeau
from flambeau import _C

from .._ir import interp
from .._ir.graph import Function
from .._ir.graph_run import call_in_place
from .._ir.targets import Target
from .._table.model import Op
from .fake import Fake, new
from .interp import NUMBERS, wrapped
from .interp import Interpreter as OverFakes
from .table import body


class _Aliases:
    """Intrinsics whose result shares memory with a tensor, or depends on its values."""

    @staticmethod
    def strided(x: Any, shape: Any, stride: Any, offset: Any, dtype: Any) -> Any:
        return (x if dtype is None else x.view(dtype)).as_strided(shape, stride, offset)

    @staticmethod
    def alias_of(x: Any, dtype: Any) -> Any:
        return x.view(x.shape if dtype is None else dtype)

    @staticmethod
    def item(x: Any) -> Any:
        return x.number if isinstance(x, Fake) else x.item()

    @staticmethod
    def truth(x: Any, otherwise: bool) -> bool:
        return bool(x)

    @staticmethod
    def underivable(g: Any, op: str) -> Any:
        return g

    @staticmethod
    def multi_views(xs: Any, function: str) -> Any:
        return xs


def _described(x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        return type(x)(map(_described, x))
    if not isinstance(x, flambeau.Tensor):
        return x
    made = new(tuple(x.shape), x.dtype, x.device, x.stride())
    made.offset, made.requires_grad = x.storage_offset(), x.requires_grad
    return made


def _over_fakes(meaning: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        made = meaning(*map(_described, args))
        if not isinstance(made, Fake) or made.number is not None:
            return made
        shape, strides = tuple(made.shape), tuple(made.strides)
        return flambeau.empty_strided(shape, strides, dtype=made.dtype, device=made.device)

    return run


def _own(x: Any) -> Any:
    """What the kernels take: a number for its tensor, a tuple for a list."""
    if isinstance(x, (list, tuple)):
        return tuple(map(_own, x))
    return x.number if isinstance(x, Fake) else x


class Interpreter(interp.Interpreter):
    """One run over tensors."""

    core = {name: _over_fakes(f) for name, f in OverFakes.core.items()} | {
        name: f.__func__ for name, f in vars(_Aliases).items() if isinstance(f, staticmethod)
    }
    operations = {"sum_to": lambda call, x, shape: x.sum_to_size(tuple(shape))}


def call(op: Op, inplace: bool, args: list[Any]) -> Any:
    """Result of an entry; a composite runs its body."""
    if inplace:
        return call_in_place(Target(op, "inplace"), _own(args))
    function = body(op.uid) if op.kind == "composite" else None
    if function is not None:
        return run(function, args)
    made = _C._call_entry(op.uid, _own(args))
    return made if op.returns.base == "Tuple" else made[0] if made else None


def run(function: Function, args: Iterable[Any]) -> Any:
    """The function's result."""
    given = [
        wrapped(x) if p.type.base == "Tensor" and isinstance(x, NUMBERS) else x
        for p, x in zip(function.params, args, strict=True)
    ]
    result = Interpreter(call).run(function, given)
    return flambeau.tensor(result.number) if isinstance(result, Fake) else result
