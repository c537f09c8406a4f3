"""Distributions of transformed samples.

Invariant: the base is expanded, and its batch dims become event dims, as far as the transforms
need it. Must not know any family.
"""

from __future__ import annotations

from typing import Any

import flambeau as fb
from flambeau import Tensor

from . import constraints
from .distribution import Distribution, family
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


@family()
class TransformedDistribution(Distribution):
    """Samples of a base distribution, sent through transforms.

    The density follows from change of variables: the base's, less the log Jacobians.

    Args:
        base_distribution: what is drawn.
        transforms: a transform or a list of them, in the order of application.
        validate_args: whether values are checked.

    Raises:
        ValueError: if ``transforms`` are none, or need more dims than the base has.

    Example:
        >>> import flambeau as torch
        >>> from flambeau.distributions import ExpTransform, Normal, TransformedDistribution
        >>> TransformedDistribution(Normal(0.0, 1.0), [ExpTransform()]).log_prob(torch.ones(1))
        tensor([-0.9189])
    """

    arg_constraints: dict[str, Any] = {}

    def __init__(
        self, base_distribution: Any, transforms: Any, validate_args: bool | None = None
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list) or not all(
            isinstance(t, Transform) for t in self.transforms
        ):
            raise ValueError(f"transforms must be a Transform or list, but was {self.transforms}")
        shape = fb.Size((*base_distribution.batch_shape, *base_distribution.event_shape))
        dims = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        needed = whole.domain.event_dim
        if len(shape) < needed:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {needed}, but got "
                f"{shape}."
            )
        after = fb.Size(whole.forward_shape(shape))
        before = fb.Size(whole.inverse_shape(after))
        if before != shape:
            base_distribution = base_distribution.expand(fb.Size(before[: len(before) - dims]))
        if needed > dims:
            base_distribution = Independent(base_distribution, needed - dims)
        self.base_dist = base_distribution
        cut = len(after) - whole.codomain.event_dim - max(dims - needed, 0)
        super().__init__(fb.Size(after[:cut]), fb.Size(after[cut:]), validate_args=validate_args)

    def _expand_parts(self, new: Any, batch_shape: Any) -> None:
        shape = fb.Size((*batch_shape, *self.event_shape))
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        cut = len(shape) - len(self.base_dist.event_shape)
        new.base_dist = self.base_dist.expand(fb.Size(shape[:cut]))
        new.transforms = self.transforms

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        missing = len(self.event_shape) - support.event_dim
        return constraints.independent(support, missing) if missing > 0 else support

    def _transformed(self, x: Tensor) -> Tensor:
        for t in self.transforms:
            x = t(x)
        return x

    def sample(self, sample_shape: Any = fb.Size()) -> Tensor:
        with fb.no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = fb.Size()) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        dim = len(self.event_shape)
        result: Any = 0.0
        y = value
        for t in reversed(self.transforms):
            x = t.inv(y)
            dim += t.domain.event_dim - t.codomain.event_dim
            result = result - _sum_rightmost(t.log_abs_det_jacobian(x, y), dim - t.domain.event_dim)
            y = x
        base = self.base_dist.log_prob(y)
        return result + _sum_rightmost(base, dim - len(self.base_dist.event_shape))

    def _monotonic(self, p: Tensor) -> Tensor:
        """1 - p where the transforms reverse the order, else p."""
        sign: Any = 1
        for t in self.transforms:
            sign = sign * t.sign
        return p if isinstance(sign, int) and sign == 1 else sign * (p - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        """Probability of a sample that is at most ``value``; for monotonic transforms."""
        if self._validate_args:
            self._validate_sample(value)
        for t in reversed(self.transforms):
            value = t.inv(value)
        return self._monotonic(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        """Inverse of the distribution function; for monotonic transforms."""
        return self._transformed(self.base_dist.icdf(self._monotonic(value)))
