"""The name by which plain pickles of PyTorch's tensors with attributes make them.

Owns nothing but that function; tensors are the core's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau import Tensor

__all__ = ["Tensor"]


def _rebuild_from_type_v2(
    func: Callable[..., Any], new_type: type, args: tuple[Any, ...], state: Any
) -> Any:
    """What `func` makes of `args`, as an instance of a class and with attributes.

    Args:
        func: makes the tensor.
        new_type: its class.
        args: arguments of `func`.
        state: a dict of attributes, or a pair of one and one of slots.
    """
    tensor = func(*args)
    if type(tensor) is not new_type:
        tensor = tensor.as_subclass(new_type)
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    vars(tensor).update(attributes or {})
    for name, value in (slots or {}).items():
        setattr(tensor, name, value)
    return tensor
