"""Custom functions (``autograd.Function``) on batched tensors.

Owns what ``apply`` does with wrappers. A ``vmap`` staticmethod is handed the values with the level
out of the way. Without one, forward runs over wrappers as any code does and is recorded for
gradients asked for inside; gradients asked for outside would pass it by, so they are refused.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from flambeau import _C
from flambeau.autograd.function import Function


class VmapInfo(NamedTuple):
    """What a ``vmap`` staticmethod is told."""

    batch_size: int
    randomness: str


def _value(x: Any) -> tuple[Any, int | None]:
    """The value of a wrapper of the innermost level and its batch dim; others as they are."""
    info = _C._vmap_info(x) if isinstance(x, _C.Tensor) else None
    if info is None or not _C._vmap_is_innermost(x):
        return x, None
    _, batched, value = info
    return value, 0 if batched else None


def apply(cls: type[Function], args: tuple[Any, ...]) -> Any:
    """Result of ``cls.apply`` for arguments among which there are wrappers.

    Returns:
        NotImplemented where forward runs over wrappers.

    Raises:
        RuntimeError: the class has both rules, or none where one is needed.
    """
    has_rule = cls.vmap is not Function.vmap
    if has_rule and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and "
            "an overriden vmap staticmethod. Please set generate_vmap_rule=False or delete the "
            "overriden vmap staticmethod to avoid ambiguity."
        )
    pairs = [_value(x) for x in args]
    ours = [x for x, (v, _) in zip(args, pairs, strict=True) if v is not x]
    inside = any(x.requires_grad for x in ours)
    if has_rule and not inside and any(d is not None for _, d in pairs):
        return _by_rule(cls, pairs)
    if any(isinstance(v, _C.Tensor) and _C._func_wants_grad(v) for v, _ in pairs):
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__} and to differentiate through the vmap, but it "
            "does not have vmap support for that. Please override and implement the vmap "
            "staticmethod."
        )
    return NotImplemented


def _by_rule(cls: type[Function], pairs: list[tuple[Any, int | None]]) -> Any:
    values, dims = zip(*pairs, strict=True)
    level, batch, randomness = _C._vmap_suspend()
    try:
        result = cls.vmap(VmapInfo(batch, randomness), dims, *values)
    finally:
        _C._vmap_resume(level)
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"Expected the {cls.__name__}.vmap staticmethod to have two returns, an output and "
            f"out_dims with structure compatible with the output. Got a {type(result).__name__}."
        )
    outputs, out_dims = result
    many = isinstance(outputs, tuple)
    flat = outputs if many else (outputs,)
    flat_dims = out_dims if many and isinstance(out_dims, tuple) else (out_dims,) * len(flat)
    wrapped = tuple(
        y if d is None else _C._vmap_add(level, y, d % y.dim())
        for y, d in zip(flat, flat_dims, strict=True)
    )
    return wrapped if many else wrapped[0]
