"""Helpers over lists of tensors that libraries for training import by these names.

Owns joining tensors into one vector and taking it apart again, and the names by which plain pickles
of PyTorch's tensors make them; knows nothing of processes or devices. Shapes come from the tensors
that are given as a pattern, never from the vector.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable, Sequence
from typing import Any

import flambeau as torch
from flambeau import Tensor


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """Join the entries of all tensors in one vector, in their order.

    Args:
        tensors: of any shapes, one dtype.

    >>> _flatten_dense_tensors([torch.ones(2), torch.zeros(1, 2)])
    tensor([1., 1., 0., 0.])
    """
    return torch.cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of a vector in the shapes of the tensors that it was joined from.

    Args:
        flat: of as many entries as all `tensors` have together.
        tensors: where the shapes come from.

    >>> _unflatten_dense_tensors(torch.arange(3), [torch.ones(1), torch.ones(2, 1)])
    (tensor([0]), tensor([[1],
            [2]]))
    """
    parts = flat.split([t.numel() for t in tensors])
    return tuple(part.view(t.shape) for part, t in zip(parts, tensors, strict=True))


def __getattr__(name: str) -> Any:
    """`_rebuild_tensor_v2` and its like, which plain pickles of PyTorch call by these names."""
    make = _rebuilders().get(f"torch._utils.{name}") if name.startswith("_rebuild_") else None
    if make is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return make


@functools.cache
def _rebuilders() -> dict[str, Any]:
    """Makers of tensors over storages that the pickle has made before."""
    makers = importlib.import_module("flambeau._serialization.torch_names")

    def flat_of(storage: Any) -> Tensor:
        untyped = storage.untyped()
        return torch.empty(0, dtype=torch.uint8).set_(untyped, 0, (untyped.nbytes(),), (1,))

    return makers.TensorNames(flat_of, lambda cls: True).names


def _shape_as_tensor(x: Tensor) -> Tensor:
    """The shape as a tensor of int64.

    >>> torch._shape_as_tensor(torch.ones(2, 3))
    tensor([2, 3])
    """
    return torch.tensor(x.shape, dtype=torch.int64, device="cpu")


def _element_size(dtype: Any) -> int:
    """Bytes of an entry of a dtype.

    >>> _element_size(torch.int16)
    2
    """
    return int(dtype.itemsize)


def _get_device_module(device_type: str) -> Any:
    """The module of a kind of device, see `torch.get_device_module`."""
    return torch.get_device_module(device_type)
