"""Results of pointwise entries: dtype, shape and strides, from the facts that the build derives.

`Promote`, classes and result kinds are those of the kernel that the build would emit (see
csrc/kernels/pointwise.h); nothing of an entry is written again here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import flambeau

from .._table import pointwise
from .._table.entries import record
from .._table.model import Op
from . import geometry
from .dtypes import class_of, is_integral, result_type, to_complex, to_real
from .fake import Fake, new
from .interp import wrapped
from .meanings import CORE


@cache
def plan(uid: str) -> pointwise.Plan:
    """Kernels and derivatives of an entry."""
    return pointwise.plan(record(uid))


def with_tensors(op: Op, args: Sequence[Any]) -> list[Any]:
    """The arguments, with 0-d tensors for numbers where the entry takes tensors."""
    return [
        wrapped(a) if p.type.base == "Tensor" and a is not None else a
        for p, a in zip(op.params, args, strict=True)
    ]


def operands(op: Op, args: Sequence[Any]) -> list[Fake]:
    """The tensors that a loop reads; numbers in their place are 0-d ones."""
    pairs = zip(op.params, with_tensors(op, args), strict=True)
    return [a for p, a in pairs if p.type.base == "Tensor"]


def computed_dtype(op: Op, inputs: Sequence[Fake]) -> Any:
    """Type that the loop computes in."""
    kernel = plan(op.uid).variants[0].kernel
    counted = [
        x for name, x in zip(kernel.inputs, inputs, strict=True) if name not in kernel.conditions
    ]
    if kernel.promote == "first":
        counted = counted[:1]
    d = result_type(*counted)
    if kernel.promote == "float" and is_integral(d, True):
        d = flambeau.get_default_dtype()
    if "bifc"[class_of(d)] not in kernel.classes:
        name = CORE["scalar_type_name"](d)
        raise NotImplementedError(f"\"{kernel.label}\" not implemented for '{name}'")
    return d


def _result_dtype(kind: str, computed: Any) -> Any:
    rules: dict[str, Callable[[Any], Any]] = {
        "same": lambda d: d,
        "real": to_real,
        "complex": to_complex,
    }
    return rules[kind](computed) if kind in rules else getattr(flambeau, kind)


def results(op: Op, inputs: Sequence[Fake]) -> list[Fake]:
    """New results for tensor operands in the order of the entry's tensor parameters."""
    kernel = plan(op.uid).variants[0].kernel
    computed = computed_dtype(op, inputs)
    shape: geometry.Shape = ()
    for x in inputs:
        shape = geometry.broadcast_shapes(shape, x.shape)
    strides = geometry.result_strides(
        shape, [(x.shape, x.strides) for x in inputs], [x.dtype.itemsize for x in inputs]
    )
    device = next((x.device for x in inputs if not x.wrapped), inputs[0].device)
    return [
        new(shape, _result_dtype(kernel.result_kind(i), computed), device, strides)
        for i in range(len(kernel.outputs))
    ]
