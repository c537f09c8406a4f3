"""The vocabulary of the update rules: arithmetic over lists of tensors.

A rule is written once against this vocabulary and receives one of three implementations:
``MultiTensor`` (the core's ``_foreach_*``: one call for the whole list), ``OneByOne`` (tensor
methods in a loop: tensor-valued hyperparameters, sparse gradients) and ``Differentiable``
(``OneByOne`` that keeps what autograd saved out of reach of later in-place steps). All three mean
the same mathematics. Must not know any optimiser. A coefficient is a number, a one-element
tensor, or a list with one per tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union, cast

import flambeau as fb

if TYPE_CHECKING:
    from flambeau import Tensor

Tensors = Sequence["Tensor"]
Coefficient = Union[float, "Tensor", Sequence[float]]
Operand = Union[float, "Tensor", Sequence[Any]]


def step_values(steps: Tensors) -> list[float]:
    """The step counters as Python numbers."""
    return [s.item() for s in steps]


class MultiTensor:
    """Each operation is one call into the core, whatever the number of tensors."""

    differentiable = False

    @staticmethod
    def add(xs: Tensors, ys: Tensors, alpha: float = 1) -> Tensors:
        return fb._foreach_add(xs, ys, alpha=alpha)

    @staticmethod
    def add_(xs: Tensors, ys: Any, alpha: float = 1) -> None:
        if alpha == 1:
            fb._foreach_add_(xs, ys)
        else:
            fb._foreach_add_(xs, ys, alpha=alpha)

    @staticmethod
    def sub(xs: Tensors, ys: Tensors) -> Tensors:
        return fb._foreach_sub(xs, ys)

    @staticmethod
    def mul(xs: Tensors, ys: Operand) -> Tensors:
        return fb._foreach_mul(xs, ys)

    @staticmethod
    def mul_(xs: Tensors, ys: Operand) -> None:
        fb._foreach_mul_(xs, ys)

    @staticmethod
    def div_(xs: Tensors, ys: Operand) -> None:
        fb._foreach_div_(xs, ys)

    @staticmethod
    def addcmul_(xs: Tensors, ys: Tensors, zs: Tensors, value: Coefficient = 1) -> None:
        if isinstance(value, list):
            fb._foreach_addcmul_(xs, ys, zs, scalars=value)
        else:
            fb._foreach_addcmul_(xs, ys, zs, value=cast(float, value))

    @staticmethod
    def addcdiv_(xs: Tensors, ys: Tensors, zs: Tensors, value: Coefficient = 1) -> None:
        if isinstance(value, list):
            fb._foreach_addcdiv_(xs, ys, zs, scalars=value)
        else:
            fb._foreach_addcdiv_(xs, ys, zs, value=cast(float, value))

    @staticmethod
    def lerp_(xs: Tensors, ys: Tensors, weight: float) -> None:
        fb._foreach_lerp_(xs, ys, weight)

    @staticmethod
    def neg(xs: Tensors) -> Tensors:
        return fb._foreach_neg(xs)

    @staticmethod
    def abs(xs: Tensors) -> Tensors:
        return fb._foreach_abs(xs)

    @staticmethod
    def sqrt(xs: Tensors) -> Tensors:
        return fb._foreach_sqrt(xs)

    @staticmethod
    def maximum_(xs: Tensors, ys: Tensors) -> None:
        fb._foreach_maximum_(xs, ys)

    @staticmethod
    def copy_(xs: Tensors, ys: Tensors) -> None:
        fb._foreach_copy_(xs, ys)


def _each(xs: Tensors, operand: Operand) -> Sequence[Any]:
    return operand if isinstance(operand, (list, tuple)) else [operand] * len(xs)


class OneByOne:
    """The same operations as a loop over the tensors; coefficients may be tensors."""

    differentiable = False

    @staticmethod
    def keep(x: Any) -> Any:
        """What autograd may save of ``x``; here nothing is recorded, so ``x`` itself."""
        return x

    def scaled(self, x: Any, factor: Any) -> Any:
        """``factor * x``, where a factor of one costs nothing."""
        return (
            x
            if isinstance(factor, (int, float)) and factor == 1
            else self.keep(x) * self.keep(factor)
        )

    def add(self, xs: Tensors, ys: Tensors, alpha: Any = 1) -> Tensors:
        return [x + self.scaled(y, alpha) for x, y in zip(xs, ys, strict=False)]

    def add_(self, xs: Tensors, ys: Operand, alpha: Any = 1) -> None:
        plain = isinstance(alpha, (int, float))
        for x, y in zip(xs, _each(xs, ys), strict=False):
            if plain and isinstance(y, fb.Tensor):
                x.add_(y, alpha=alpha)
            else:
                x.add_(self.scaled(y, alpha))

    def sub(self, xs: Tensors, ys: Tensors) -> Tensors:
        return [x - y for x, y in zip(xs, ys, strict=False)]

    def mul(self, xs: Tensors, ys: Operand) -> Tensors:
        return [self.keep(x) * self.keep(y) for x, y in zip(xs, _each(xs, ys), strict=False)]

    def mul_(self, xs: Tensors, ys: Operand) -> None:
        for x, y in zip(xs, _each(xs, ys), strict=False):
            x.mul_(self.keep(y))

    def div_(self, xs: Tensors, ys: Operand) -> None:
        for x, y in zip(xs, _each(xs, ys), strict=False):
            x.div_(self.keep(y))

    def addcmul_(self, xs: Tensors, ys: Tensors, zs: Tensors, value: Any = 1) -> None:
        for x, y, z, v in zip(xs, ys, zs, _each(xs, value), strict=False):
            if isinstance(v, fb.Tensor):
                x.add_(self.scaled(self.keep(y) * self.keep(z), v))
            else:
                x.addcmul_(self.keep(y), self.keep(z), value=v)

    def addcdiv_(self, xs: Tensors, ys: Tensors, zs: Tensors, value: Any = 1) -> None:
        for x, y, z, v in zip(xs, ys, zs, _each(xs, value), strict=False):
            if isinstance(v, fb.Tensor):
                x.add_(self.scaled(self.keep(y) / self.keep(z), v))
            else:
                x.addcdiv_(self.keep(y), self.keep(z), value=v)

    def lerp_(self, xs: Tensors, ys: Tensors, weight: Any) -> None:
        for x, y in zip(xs, ys, strict=False):
            if isinstance(weight, fb.Tensor):
                x.add_((y - x) * weight.to(x.dtype))
            else:
                x.lerp_(self.keep(y), weight)

    def neg(self, xs: Tensors) -> Tensors:
        return [-x for x in xs]

    def abs(self, xs: Tensors) -> Tensors:
        return [self.keep(x).abs() for x in xs]

    def sqrt(self, xs: Tensors) -> Tensors:
        return [self.keep(x.sqrt()) for x in xs]

    def maximum_(self, xs: Tensors, ys: Tensors) -> None:
        for x, y in zip(xs, ys, strict=False):
            x.copy_(fb.maximum(self.keep(x), self.keep(y)))

    def copy_(self, xs: Tensors, ys: Tensors) -> None:
        for x, y in zip(xs, ys, strict=False):
            x.copy_(y)


class Differentiable(OneByOne):
    """``OneByOne`` under autograd: whatever a backward formula may save is a private copy."""

    differentiable = True

    @staticmethod
    def keep(x: Any) -> Any:
        return x.clone() if isinstance(x, fb.Tensor) else x


MULTI_TENSOR = MultiTensor()
ONE_BY_ONE = OneByOne()
DIFFERENTIABLE = Differentiable()
ListOps = MultiTensor | OneByOne
