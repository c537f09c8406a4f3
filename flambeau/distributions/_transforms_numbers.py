"""Transforms of single numbers.

Invariant: monotonic, but for AbsTransform; ``sign`` says in which direction. Must not know
distributions, but for the distribution function of one that it is given.
"""

from __future__ import annotations

import math
from typing import Any

import flambeau as fb
from flambeau import Tensor
from flambeau.nn.functional import softplus

from . import constraints
from ._transforms_base import Transform
from .utils import _sum_rightmost, is_tensor_like


def _same(a: Any, b: Any) -> bool:
    """Are numbers or tensors equal, up to broadcasting?"""
    if not is_tensor_like(a) and not is_tensor_like(b):
        return bool(a == b)
    return bool(fb.as_tensor(a == b).all())


def _clipped_sigmoid(x: Tensor) -> Tensor:
    """The logistic function, kept inside (0, 1)."""
    info = fb.finfo(x.dtype)
    return fb.sigmoid(x).clamp(min=info.tiny, max=1.0 - info.eps)


class _PlainTransform(Transform):
    """Transforms without parameters: all of a class are equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))

    __hash__ = Transform.__hash__


class ExpTransform(_PlainTransform):
    """y = exp(x).

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.ExpTransform()(torch.zeros(1))
        tensor([1.])
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x ** exponent, of positive numbers.

    Args:
        exponent: number or tensor.
        cache_size: 0 or 1.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.PowerTransform(2.0)(torch.tensor([3.0]))
        tensor([9.])
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.exponent = fb.as_tensor(exponent)

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and _same(self.exponent, other.exponent)

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return fb.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


class SigmoidTransform(_PlainTransform):
    """y = 1 / (1 + exp(-x)); values are kept inside (0, 1).

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.SigmoidTransform()(torch.zeros(1))
        tensor([0.5000])
    """

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        info = fb.finfo(y.dtype)
        y = y.clamp(min=info.tiny, max=1.0 - info.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_PlainTransform):
    """y = log(1 + exp(x)), x itself above 20.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.SoftplusTransform()(torch.zeros(1))
        tensor([0.6931])
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class TanhTransform(_PlainTransform):
    """y = tanh(x). The inverse loses precision near -1 and 1; a cache avoids it.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.TanhTransform()(torch.zeros(1))
        tensor([0.])
    """

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = +1

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return fb.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # log(1 - tanh(x)**2) without cancellation
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(_PlainTransform):
    """y = abs(x), with itself as one of its inverses.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.AbsTransform()(torch.tensor([-1.0]))
        tensor([1.])
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = loc + scale * x.

    Args:
        loc: number or tensor.
        scale: number or tensor.
        event_dim: 0 for numbers, 1 for vectors, 2 for matrices.
        cache_size: 0 or 1.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.AffineTransform(1.0, 2.0)(torch.ones(1))
        tensor([3.])
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        if self._event_dim == 0:
            return constraints.real
        return constraints.independent(constraints.real, self._event_dim)

    codomain = domain

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        return _same(self.loc, other.loc) and _same(self.scale, other.scale)

    __hash__ = Transform.__hash__

    @property
    def sign(self) -> Any:
        if is_tensor_like(self.scale):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if is_tensor_like(self.scale):
            each = self.scale.abs().log()
        else:
            each = fb.full_like(x, math.log(abs(self.scale)))
        shape = x.shape[: x.ndim - self._event_dim]
        if self._event_dim:
            each = _sum_rightmost(each.expand(fb.broadcast_shapes(each.shape, x.shape)), 0)
            each = _sum_rightmost(each, self._event_dim)
        return each.expand(fb.broadcast_shapes(each.shape, shape))

    def forward_shape(self, shape: Any) -> Any:
        return fb.broadcast_shapes(
            shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ())
        )

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """y = F(x), for the distribution function of a distribution of numbers.

    Args:
        distribution: gives ``cdf``, ``icdf`` and ``log_prob``.
        cache_size: 0 or 1.

    Example:
        >>> import flambeau as torch
        >>> normal = torch.distributions.Normal(0.0, 1.0)
        >>> torch.distributions.CumulativeDistributionTransform(normal)(torch.zeros(1))
        tensor([0.5000])
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)
