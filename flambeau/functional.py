"""Top-level functions whose arguments the table cannot state: any number of tensors, results whose
number depends on a flag. Thin over operations; no arithmetic of its own.

Loaded with the package: imports nothing heavy. `METHODS` lists what is also a method of Tensor.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from flambeau import _C
from flambeau._C import linalg as _linalg

from ._outputs import fill, fill_each

Tensor = _C.Tensor

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "cartesian_prod",
    "dsmm",
    "is_conj",
    "is_distributed",
    "is_neg",
    "is_same_size",
    "lu",
    "meshgrid",
    "nonzero",
    "norm",
    "resize_as_",
    "split_copy",
    "split_with_sizes_copy",
    "spmm",
    "unbind_copy",
    "unique",
    "unique_consecutive",
]

METHODS = (
    "apply_",
    "is_distributed",
    "is_nonzero",
    "is_same_size",
    "lu",
    "map2_",
    "map_",
    "nonzero",
    "norm",
    "unique",
    "unique_consecutive",
)


def __getattr__(name: str) -> Any:
    # Contractions are loaded on first use, and stand here too as they do in PyTorch.
    if name in ("chain_matmul", "einsum", "tensordot"):
        return getattr(importlib.import_module("flambeau._contractions"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _many(tensors: tuple[Any, ...]) -> Sequence[Tensor]:
    """The tensors of `f(a, b)` or of `f([a, b])`."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return tensors[0]
    return tensors


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All tensors expanded to their common shape (views).

    >>> [t.shape for t in torch.broadcast_tensors(torch.ones(2, 1), torch.ones(3))]
    [torch.Size([2, 3]), torch.Size([2, 3])]
    """
    return _C.broadcast_tensors(_many(tensors))


def _filled(out: Sequence[Tensor], parts: Sequence[Tensor], op: str) -> None:
    """Writes each part into its own tensor of `out`, which takes its shape."""
    fill_each(out, parts, op)


def split_with_sizes_copy(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...] | None:
    """Copies of the parts of `input` along `dim`; None when they are written into `out`.

    >>> torch.split_with_sizes_copy(torch.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    parts = _C.split_with_sizes_copy(input, split_sizes, dim)
    if out is None:
        return parts
    _filled(out, parts, "split_with_sizes_copy")
    return None


def split_copy(
    input: Tensor, split_size: int, dim: int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...] | None:
    """Copies of parts of `split_size` along `dim`; None when they are written into `out`.

    >>> torch.split_copy(torch.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    parts = _C.split_copy(input, split_size, dim)
    if out is None:
        return parts
    _filled(out, parts, "split_copy")
    return None


def unbind_copy(
    input: Tensor, dim: int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...] | None:
    """Copies of the slices of `input` along `dim`; None when they are written into `out`.

    >>> torch.unbind_copy(torch.arange(2))
    (tensor(0), tensor(1))
    """
    parts = _C.unbind_copy(input, dim)
    if out is None:
        return parts
    _filled(out, parts, "unbind_copy")
    return None


#: names that sparse programs use; of dense matrices the same product
spmm = dsmm = _C.mm


def is_conj(input: Tensor) -> bool:
    """Is conjugation postponed? Never: always False.

    >>> torch.is_conj(torch.tensor(1j).conj())
    False
    """
    return input.is_conj()


def is_neg(input: Tensor) -> bool:
    """Is negation postponed? Never: always False.

    >>> torch.is_neg(torch.ones(1))
    False
    """
    return input.is_neg()


def is_distributed(input: Tensor) -> bool:
    """Is the tensor kept by several processes? Never: always False.

    >>> torch.is_distributed(torch.ones(1))
    False
    """
    return False


def is_nonzero(self: Tensor) -> bool:
    """Is the only element not zero? RuntimeError unless there is one.

    >>> torch.ones(1).is_nonzero()
    True
    """
    return _C.is_nonzero(self)


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Have both the same shape?

    >>> torch.is_same_size(torch.ones(2), torch.zeros(2))
    True
    """
    return input.shape == other.shape


def broadcast_shapes(*shapes: Any) -> Any:
    """The shape that shapes broadcast to; an int stands for a shape of one dim.

    >>> torch.broadcast_shapes((2, 1), (3,))
    torch.Size([2, 3])
    """
    result: list[int] = []
    for number, shape in enumerate(shapes):
        sizes = [shape] if isinstance(shape, int) else list(shape)
        if any(n < 0 for n in sizes):
            raise RuntimeError(
                f"Trying to create tensor with negative dimension ({min(sizes)}): ({min(sizes)})"
            )
        known = list(result)
        longer, shorter = (result, sizes) if len(result) >= len(sizes) else (sizes, result)
        result = list(longer)
        for i in range(1, len(shorter) + 1):
            a, b = longer[-i], shorter[-i]
            if a != b and a != 1 and b != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {sizes[-i]} at {-i}! "
                    f"Mismatching argument at index {number} had {tuple(sizes)}; but expected "
                    f"shape should be broadcastable to {known}"
                )
            result[-i] = b if a == 1 else a
    return _C.Size(result)


def meshgrid(*tensors: Tensor, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinates of the grid whose axes are the given vectors (views).

    Args:
        indexing: "ij" (matrix order, the default) or "xy" (the first two axes change places).

    >>> x, y = torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
    >>> x
    tensor([[0, 0, 0],
            [1, 1, 1]])
    """
    if indexing is None:
        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing "
            "argument.",
            stacklevel=2,
        )
        indexing = "ij"
    return _C._meshgrid(_many(tensors), indexing)


def block_diag(*tensors: Tensor) -> Tensor:
    """Matrix with the given tensors (of at most 2 dims) on its diagonal.

    >>> torch.block_diag(torch.ones(1, 1), torch.ones(1, 2))
    tensor([[1., 0., 0.],
            [0., 1., 1.]])
    """
    return _C.block_diag(_many(tensors))


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of one entry from each vector, in lexicographic order.

    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3]))
    tensor([[1, 3],
            [2, 3]])
    """
    return _C.cartesian_prod(_many(tensors))


def _at_least(op: Any, tensors: tuple[Any, ...]) -> Any:
    if len(tensors) == 1 and not isinstance(tensors[0], (list, tuple)):
        return op(tensors[0])
    return tuple(op(t) for t in _many(tensors))


def atleast_1d(*tensors: Tensor) -> Any:
    """Views with at least one dim; a tuple of them for several tensors.

    >>> torch.atleast_1d(torch.tensor(1.0))
    tensor([1.])
    """
    return _at_least(_C.atleast_1d, tensors)


def atleast_2d(*tensors: Tensor) -> Any:
    """Views with at least two dims; a tuple of them for several tensors.

    >>> torch.atleast_2d(torch.ones(2)).shape
    torch.Size([1, 2])
    """
    return _at_least(_C.atleast_2d, tensors)


def atleast_3d(*tensors: Tensor) -> Any:
    """Views with at least three dims; a tuple of them for several tensors.

    >>> torch.atleast_3d(torch.ones(2)).shape
    torch.Size([1, 2, 1])
    """
    return _at_least(_C.atleast_3d, tensors)


def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Any:
    """Places of entries that are not zero: an int64 tensor of shape (count, ndim), or one vector
    per dim with `as_tuple`.

    >>> torch.nonzero(torch.tensor([0, 3, 4]))
    tensor([[1],
            [2]])
    """
    places = _C.nonzero(input)
    if as_tuple:
        return _C.nonzero(input.reshape(1)).unbind(1) if input.dim() == 0 else places.unbind(1)
    if out is None:
        return places
    return fill(out, places, "nonzero")


def _chosen(results: tuple[Tensor, Tensor, Tensor], inverse: bool, counts: bool) -> Any:
    values, places, numbers = results
    if inverse and counts:
        return values, places, numbers
    if inverse:
        return values, places
    return (values, numbers) if counts else values


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Distinct entries, or distinct slices along `dim`, in ascending order.

    Returns the values, then, as asked for: for each entry the place of its value (int64), and how
    often each value occurs (int64).

    >>> torch.unique(torch.tensor([2, 1, 2]), return_counts=True)
    (tensor([1, 2]), tensor([1, 2]))
    """
    results = _C._unique(input, dim, sorted, return_inverse, return_counts)
    return _chosen(results, return_inverse, return_counts)


def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Entries (or slices along `dim`) that differ from the one before.

    >>> torch.unique_consecutive(torch.tensor([2, 2, 1, 2]))
    tensor([2, 1, 2])
    """
    results = _C._unique_consecutive(input, dim, return_inverse, return_counts)
    return _chosen(results, return_inverse, return_counts)


def lu(
    A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None
) -> tuple[Tensor, ...]:
    """Factors of A in one matrix, row exchanges, and with `get_infos` the first zero pivots.

    >>> torch.lu(torch.eye(1))[0]
    tensor([[1.]])
    """
    warnings.warn(
        "torch.lu is deprecated: use torch.linalg.lu_factor, or lu_factor_ex for the infos",
        stacklevel=2,
    )
    results: Any = _C._lu_with_info(A, pivot=pivot, check_errors=not get_infos)
    if not get_infos:
        results = (results[0], results[1])
    if out is None:
        return results
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"argument 'out' must be tuple of Tensors, not {type(out).__name__}")
    if len(out) != len(results):
        raise TypeError(f"expected tuple of {len(results)} elements but got {len(out)}")
    for place, value in zip(out, results, strict=True):
        place.resize_as_(value).copy_(value)
    return tuple(out)


def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """Resizes `input` in place to the shape of another tensor.

    >>> torch.resize_as_(torch.ones(1), torch.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    return input.resize_as_(the_template, memory_format=memory_format)


def norm(
    input: Tensor,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: Any = None,
) -> Tensor:
    """Vector norm of the entries (along `dim`), or the Frobenius or nuclear matrix norm.

    Args:
        p: order of the norm; "fro" is 2 over all given dims, "nuc" the nuclear norm.

    >>> torch.norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    given = {"keepdim": keepdim, "dtype": dtype, **({} if out is None else {"out": out})}
    if p == "nuc":
        dims = (-2, -1) if dim is None else dim
        return _linalg.matrix_norm(input, "nuc", dims, **given)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"only valid string values are 'fro' and 'nuc', found {p}")
    order = 2.0 if p is None or p == "fro" else p
    return _linalg.vector_norm(input, order, dim, **given)


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replaces every entry by what a Python function makes of it. Slow: one call for each.

    >>> torch.tensor([1.0, 2.0]).apply_(lambda v: v * 10)
    tensor([10., 20.])
    """
    return _mapped("apply_", callable, self)


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replaces every entry by what a Python function makes of it and of that of `tensor`.

    >>> torch.tensor([1.0, 2.0]).map_(torch.tensor([3.0]), lambda a, b: a + b)
    tensor([4., 5.])
    """
    return _mapped("map_", callable, self, tensor)


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """The same with two further tensors."""
    return _mapped("map2_", callable, self, x, y)


def _mapped(name: str, function: Callable[..., Any], self: Tensor, *others: Tensor) -> Tensor:
    for t in (self, *others):
        if t.device.type != "cpu":
            raise TypeError(f"{name} is only implemented on CPU tensors")
        if t.dtype != self.dtype:
            raise TypeError(f"{name}: expected argument of type {self.type()}, got {t.type()}")
        if t.requires_grad:
            raise RuntimeError(
                f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() "
                "instead."
            )
    columns = [t.expand_as(self).reshape(-1).tolist() for t in (self, *others)]
    values = [function(*row) for row in zip(*columns, strict=True)]
    return self.copy_(_C.tensor(values, dtype=self.dtype).view(self.shape))
