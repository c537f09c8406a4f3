"""Whether a value is of a type of typing's language: `jit.isinstance`.

Owns the walk into containers. Must not know of scripts.
"""

from __future__ import annotations

import types
import typing
from typing import Any


def is_of(obj: Any, kind: Any) -> bool:
    """True where `obj`, and all that it holds, is of the type."""
    if kind is Any:
        return True
    if isinstance(kind, tuple):
        return any(is_of(obj, k) for k in kind)
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is None:
        return obj is None if kind is None else isinstance(obj, kind)
    if origin in (typing.Union, types.UnionType):
        return any(is_of(obj, None if k is type(None) else k) for k in args)
    if not isinstance(obj, origin):
        return False
    if origin is tuple:
        if len(args) == 2 and args[1] is ...:
            return all(is_of(o, args[0]) for o in obj)
        return len(obj) == len(args) and all(map(is_of, obj, args))
    if origin is dict:
        return all(is_of(k, args[0]) and is_of(v, args[1]) for k, v in obj.items())
    if origin in (list, set):
        return all(is_of(o, args[0]) for o in obj)
    raise RuntimeError(f"jit.isinstance: expected a list, dict, tuple or optional, got {kind}")
