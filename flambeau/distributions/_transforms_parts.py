"""Transforms of a tensor's form, and of its parts along a dim.

Invariant: parts are transformed independently of each other. Must not know distributions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import flambeau as fb
from flambeau import Tensor

from . import constraints
from ._transforms_base import Transform
from .utils import _sum_rightmost, sizes


class ReshapeTransform(Transform):
    """Another shape for the last dims, with Jacobian one.

    Args:
        in_shape: shape of an element before.
        out_shape: shape of an element after.
        cache_size: 0 or 1.

    Raises:
        ValueError: if the shapes have different numbers of entries.

    Example:
        >>> import flambeau as torch
        >>> torch.distributions.ReshapeTransform((2, 3), (6,))(torch.ones(5, 2, 3)).shape
        torch.Size([5, 6])
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = fb.Size(in_shape), fb.Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError(
                "ReshapeTransform: in_shape, out_shape have different numbers of elements: "
                f"{tuple(in_shape)}, {tuple(out_shape)}"
            )
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.ndim - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.ndim - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return self._exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._exchanged(shape, self.out_shape, self.in_shape)

    @staticmethod
    def _exchanged(shape: Any, old: Any, new: Any) -> Any:
        shape = sizes(shape)
        batch = len(shape) - len(old)
        if batch < 0 or shape[batch:] != old:
            raise ValueError(
                f"ReshapeTransform: Shape mismatch: expected {tuple(shape)} to end with "
                f"{tuple(old)}"
            )
        return fb.Size((*shape[:batch], *new))


class _PartsTransform(Transform):
    """A transform for each part along a dim."""

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise TypeError(f"{type(self).__name__}: expected transforms, got {list(tseq)}")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)

    def _check(self, x: Tensor, count: int) -> None:
        if not -x.ndim <= self.dim < x.ndim or x.size(self.dim) != count:
            raise ValueError(
                f"{type(self).__name__}: expected size {count} along dim {self.dim}, got shape "
                f"{tuple(x.shape)}"
            )


class CatTransform(_PartsTransform):
    """Transforms of parts that lie one after the other along a dim.

    Args:
        tseq: one for each part.
        dim: the dim.
        lengths: sizes of the parts; 1 each by default.
        cache_size: 0 or 1.

    Example:
        >>> import flambeau as torch
        >>> from flambeau.distributions import CatTransform, ExpTransform, identity_transform
        >>> CatTransform([ExpTransform(), identity_transform], lengths=[1, 2])(torch.zeros(3))
        tensor([1., 0., 0.])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ValueError(
                f"CatTransform: expected {len(self.transforms)} lengths, got {len(self.lengths)}"
            )

    @property
    def length(self) -> int:
        """Size of all parts together."""
        return sum(self.lengths)

    @property
    def event_dim(self) -> Any:
        return max(t.event_dim for t in self.transforms)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)

    def _split(self, x: Tensor) -> Any:
        self._check(x, self.length)
        return x.split(self.lengths, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        parts = zip(self.transforms, self._split(x), strict=True)
        return fb.cat([t(part) for t, part in parts], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._split(y), strict=True)
        return fb.cat([t.inv(part) for t, part in parts], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = []
        for t, a, b in zip(self.transforms, self._split(x), self._split(y), strict=True):
            term = t.log_abs_det_jacobian(a, b)
            terms.append(_sum_rightmost(term, self.event_dim - t.event_dim))
        dim = self.dim if self.dim < 0 else self.dim - x.ndim
        dim += self.event_dim
        return fb.cat(terms, dim) if dim < 0 else sum(terms[1:], terms[0])


class StackTransform(_PartsTransform):
    """A transform for each index of a dim.

    Args:
        tseq: one for each index.
        dim: the dim.
        cache_size: 0 or 1.

    Example:
        >>> import flambeau as torch
        >>> from flambeau.distributions import ExpTransform, StackTransform, identity_transform
        >>> StackTransform([ExpTransform(), identity_transform])(torch.zeros(2))
        tensor([1., 0.])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)

    def _unbind(self, x: Tensor) -> Any:
        self._check(x, len(self.transforms))
        return x.unbind(self.dim)

    def _call(self, x: Tensor) -> Tensor:
        parts = zip(self.transforms, self._unbind(x), strict=True)
        return fb.stack([t(part) for t, part in parts], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._unbind(y), strict=True)
        return fb.stack([t.inv(part) for t, part in parts], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._unbind(x), self._unbind(y), strict=True)
        return fb.stack([t.log_abs_det_jacobian(a, b) for t, a, b in parts], self.dim)
