"""What the families share: broadcasting of parameters, probabilities and logits, lazy attributes.

Invariant: functions keep dtype and device of the tensors that they get. Must not know any family.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from numbers import Number
from typing import Any

import flambeau as fb
from flambeau import Tensor

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

#: Euler's constant
euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Expand numbers and tensors to their common shape.

    Numbers take dtype and device of the first tensor, or the default dtype.

    Args:
        values: numbers and tensors.

    Returns:
        as many tensors.

    Raises:
        ValueError: for anything else.

    Example:
        >>> import flambeau as torch
        >>> from flambeau.distributions.utils import broadcast_all
        >>> broadcast_all(torch.zeros(2), 1.0)[1]
        tensor([1., 1.])
    """
    tensors = [v for v in values if is_tensor_like(v)]
    if not all(is_tensor_like(v) or isinstance(v, Number) for v in values):
        found = ", ".join(type(v).__name__ for v in values)
        raise ValueError(
            f"broadcast_all: Input arguments must all be instances of Number or Tensor, got {found}"
        )
    if len(tensors) < len(values):
        like = tensors[0] if tensors else fb.empty(0)
        values = tuple(
            v if is_tensor_like(v) else fb.tensor(v, dtype=like.dtype, device=like.device)
            for v in values
        )
    return tuple(fb.broadcast_tensors(*values))


def is_tensor_like(value: Any) -> bool:
    """Is it a tensor, or an object that stands for one by ``__torch_function__``?"""
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    """Numbers of the standard normal distribution, drawn as ``normal`` draws them."""
    return fb.normal(
        fb.zeros(shape, dtype=dtype, device=device), fb.ones(shape, dtype=dtype, device=device)
    )


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """Sum over the last ``dim`` dims."""
    if dim == 0:
        return value
    return value.reshape(value.shape[: value.ndim - dim] + (-1,)).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log odds, or of unnormalised log probabilities along the last dim.

    Args:
        logits: shape (...) if binary, else (..., classes).
        is_binary: whether each entry is the log odds of one event.

    Returns:
        same shape.

    Example:
        >>> import flambeau as torch
        >>> from flambeau.distributions.utils import logits_to_probs
        >>> logits_to_probs(torch.zeros(2))
        tensor([0.5000, 0.5000])
    """
    return fb.sigmoid(logits) if is_binary else fb.nn.functional.softmax(logits, dim=-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities moved into [eps, 1 - eps] of their dtype, so that their logarithms are finite.

    Example:
        >>> import flambeau as torch
        >>> from flambeau.distributions.utils import clamp_probs
        >>> clamp_probs(torch.tensor([0.0, 0.5])).log().isfinite()
        tensor([True, True])
    """
    eps = fb.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Inverse of :func:`logits_to_probs`: log odds, or log probabilities.

    Args:
        probs: shape (...) if binary, else (..., classes).
        is_binary: whether each entry is the probability of one event.

    Returns:
        same shape.

    Example:
        >>> import flambeau as torch
        >>> from flambeau.distributions.utils import probs_to_logits
        >>> probs_to_logits(torch.tensor([0.5]), is_binary=True)
        tensor([0.])
    """
    clamped = clamp_probs(probs)
    if is_binary:
        return clamped.log() - (-clamped).log1p()
    return clamped.log()


class lazy_property:  # noqa: N801
    """A property that is computed once, with gradients on, and then is an instance's attribute.

    Args:
        wrapped: method without arguments.

    Example:
        >>> from flambeau.distributions.utils import lazy_property
        >>> class Circle:
        ...     @lazy_property
        ...     def area(self):
        ...         print("computing")
        ...         return 3.0
        >>> c = Circle()
        >>> c.area
        computing
        3.0
        >>> c.area
        3.0
    """

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.shown = _lazy_property_and_property(wrapped)
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self.shown
        with fb.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):  # noqa: N801
    """What a lazy property is when looked up on the class: also a property, for help()."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        property.__init__(self, wrapped)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangles of matrices, row by row.

    Args:
        mat: shape (..., n, n).
        diag: offset of the last diagonal that belongs to the triangle, in [-n, n).

    Returns:
        shape (..., number of entries).

    Raises:
        ValueError: for an offset outside the matrix.

    Example:
        >>> import flambeau as torch
        >>> from flambeau.distributions.utils import tril_matrix_to_vec
        >>> tril_matrix_to_vec(torch.tensor([[1, 0], [2, 3]]))
        tensor([1, 2, 3])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"tril_matrix_to_vec: expected diag in [{-n}, {n - 1}], got {diag}")
    rows, columns = fb.tril_indices(n, n, diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Inverse of :func:`tril_matrix_to_vec`; the entries above the triangle are zero.

    Args:
        vec: shape (..., number of entries).
        diag: offset of the last diagonal that belongs to the triangle.

    Returns:
        shape (..., n, n).

    Raises:
        ValueError: if no triangle has that many entries.

    Example:
        >>> import flambeau as torch
        >>> from flambeau.distributions.utils import vec_to_tril_matrix
        >>> vec_to_tril_matrix(torch.tensor([1, 2, 3]))
        tensor([[1, 0],
                [2, 3]])
    """
    length = vec.shape[-1]
    # length = n (n + 1) / 2 + n diag - diag (diag ± 1) / 2, solved for n
    root = (1 + 2 * diag) ** 2 + 8 * length + 4 * abs(diag) * (diag + 1)
    n = (-(1 + 2 * diag) + root**0.5) / 2
    if abs(n - round(n)) > 1e-9:
        raise ValueError(
            f"vec_to_tril_matrix: The size of last dimension is {length} which cannot be "
            "expressed as the lower triangular part of a square D x D matrix"
        )
    size = round(n)
    mat = vec.new_zeros(vec.shape[:-1] + (size, size))
    rows, columns = fb.tril_indices(size, size, diag, device=vec.device)
    mat[..., rows, columns] = vec
    return mat


def sizes(shape: Sequence[int] | int) -> Any:
    """A shape as ``torch.Size``, also of one number."""
    if isinstance(shape, int):
        return fb.Size((shape,))
    return shape if isinstance(shape, fb.Size) else fb.Size(shape)
