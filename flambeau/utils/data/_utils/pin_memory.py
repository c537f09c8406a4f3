"""Copying a batch into page-locked memory, from which devices copy fastest.

Owns the walk over a batch's containers. It knows nothing of loaders or workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flambeau import Tensor

from .collate import _is_namedtuple, _rebuild_mapping, _rebuild_sequence


def pin_memory(data: Any, device: Any = None) -> Any:
    """A copy of ``data`` whose tensors lie in pinned memory.

    Args:
        data: a batch; an object with a ``pin_memory`` method of its own is asked to do it.
        device: unused, kept for callers that pass one.
    """
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Tensor) or hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, Mapping):
        return _rebuild_mapping(data, {key: pin_memory(data[key], device) for key in data})
    if _is_namedtuple(data):
        return type(data)(*(pin_memory(value, device) for value in data))
    if isinstance(data, tuple):
        return [pin_memory(value, device) for value in data]
    if isinstance(data, Sequence):
        return _rebuild_sequence(data, [pin_memory(value, device) for value in data])
    return data
