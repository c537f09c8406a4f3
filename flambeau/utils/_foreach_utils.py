"""Groups of tensors that one call on a list can take together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__: list[str] = []


def _get_foreach_kernels_supported_devices() -> list[str]:
    return ["cpu"]


def _get_fused_kernels_supported_devices() -> list[str]:
    return ["cpu"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Any]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
    """The lists, taken apart by device and dtype of the first list's tensors.

    Returns:
        (device, dtype) -> (the lists' entries that belong together, their indices if asked for).
    """
    out: dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]] = {}
    for i, first in enumerate(tensorlistlist[0]):
        lists, indices = out.setdefault(
            (first.device, first.dtype), ([[] for _ in tensorlistlist], [])
        )
        for target, source in zip(lists, tensorlistlist, strict=True):
            if i < len(source):
                target.append(source[i])
        if with_indices:
            indices.append(i)
    return out
