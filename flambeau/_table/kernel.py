"""A pointwise kernel: outputs as scalar graphs over inputs and number parameters.

Owns what a kernel is and what its formula implies; how it is written is its emitter's.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._ir.scalars import Scalar, walk
from ..ops.scalar import PRIMITIVES, Primitive


@dataclass
class Kernel:
    """One kernel of a pointwise entry or of its derivative."""

    name: str  # an identifier
    label: str  # in messages
    outputs: list[Scalar]
    inputs: list[str]
    params: list[str]
    conditions: frozenset[str] = frozenset()
    classes: str = "bifc"
    promote: str = "same"
    results: tuple[str, ...] = ()
    #: see `exact` and `rounded` of PointwiseKernel in csrc/kernels/pointwise.h
    exact: frozenset[str] = frozenset()
    rounded: frozenset[str] = frozenset()

    @property
    def primitives(self) -> list[Primitive]:
        """Of every operation of the formula."""
        return [PRIMITIVES[n.op] for n in walk(self.outputs) if n.args]

    @property
    def cost(self) -> int:
        """Rough operations of one element."""
        return sum(p.cost for p in self.primitives)

    @property
    def divides(self) -> bool:
        """Whole numbers are divided: zero is an error."""
        return any(p.divides for p in self.primitives)

    def result_kind(self, i: int) -> str:
        """What output i is: "same" as is computed in, its "real" or "complex" type, or a dtype."""
        if self.results and self.results[i] != "same":
            return self.results[i]
        kind = self.outputs[i].type
        if kind in ("bool", "complex"):
            return kind
        return (
            "real" if kind == "real" and "c" in self.classes and self.promote != "real" else "same"
        )
