"""Shapes and strides as the core computes them, over ints and symbolic ints alike.

Each function stands for the one of its name in csrc/core (geometry.cpp, tensor.cpp) or for the
layout rules of csrc/kernels (pointwise.cpp, strided.cpp); tests hold fakes to the core's results.
Every comparison of a symbolic size is decided by its environment, which leaves a guard.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._ir.symscalar import SymInt

Dim = Any  # int | SymInt
Shape = tuple[Dim, ...]


def prod(xs: Sequence[Dim]) -> Dim:
    out: Dim = 1
    for x in xs:
        out = out * x
    return out


def same(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    """Equality of shapes or strides."""
    return len(a) == len(b) and all(x == y for x, y in zip(a, b, strict=True))


def _step(n: Dim) -> Dim:
    """max(n, 1) of a size: a symbolic one is at least 1, or is not decided."""
    if isinstance(n, SymInt):
        return n if n.env.proves(">=", n.expr - 1) else (n if n != 0 else 1)
    return max(n, 1)


def placed(shape: Sequence[Dim], order: Sequence[int]) -> Shape:
    """Strides of a dense tensor whose dims lie in memory in this order, the fastest first."""
    strides: list[Dim] = [1] * len(shape)
    step: Dim = 1
    for d in order:
        strides[d] = step
        step = step * _step(shape[d])
    return tuple(strides)


def contiguous_strides(shape: Sequence[Dim]) -> Shape:
    return placed(shape, range(len(shape) - 1, -1, -1))


def channels_last_order(n: int) -> list[int]:
    return [1, *range(n - 1, 1, -1), 0]


_RANKS = {"channels_last": 4, "channels_last_3d": 5}


def format_strides(shape: Sequence[Dim], memory_format: str) -> Shape:
    """Strides of a new tensor in a memory format."""
    want = _RANKS.get(memory_format)
    if want is None:
        return contiguous_strides(shape)
    if len(shape) != want:
        raise RuntimeError(
            f"memory_format: required rank {want} tensor to use {memory_format} format, "
            f"got rank {len(shape)}"
        )
    return placed(shape, channels_last_order(want))


def laid_out_as(shape: Shape, strides: Shape, order: Sequence[int]) -> bool:
    step: Dim = 1
    for d in order:
        if shape[d] != 1 and strides[d] != step:
            return False
        step = step * shape[d]
    return True


def is_contiguous(shape: Shape, strides: Shape, memory_format: str = "contiguous_format") -> bool:
    n = len(shape)
    if any(isinstance(d, int) and d == 0 for d in shape):
        return memory_format not in _RANKS or n == _RANKS[memory_format]
    if memory_format in _RANKS:
        return n == _RANKS[memory_format] and laid_out_as(shape, strides, channels_last_order(n))
    return laid_out_as(shape, strides, range(n - 1, -1, -1))


def _slower_first(keys: Sequence[tuple[Dim, Dim]]) -> list[int]:
    """Positions in ascending order of (stride, size)."""
    order = list(range(len(keys)))
    for i in range(1, len(order)):
        j = i
        while j > 0 and _less(keys[order[j]], keys[order[j - 1]]):
            order[j - 1], order[j] = order[j], order[j - 1]
            j -= 1
    return order


def _less(a: tuple[Dim, Dim], b: tuple[Dim, Dim]) -> bool:
    return a[0] < b[0] or (a[0] == b[0] and a[1] < b[1])


def is_dense(shape: Shape, strides: Shape) -> bool:
    """The elements fill their memory, in whatever order of dims."""
    if is_contiguous(shape, strides):
        return True
    keys = list(zip(strides, shape, strict=True))
    return laid_out_as(shape, strides, _slower_first(keys))


def suggest_memory_format(shape: Shape, strides: Shape) -> str:
    n = len(shape)
    if n not in (4, 5) or strides[1] == 0:
        return "contiguous_format"
    least: Dim = 0
    for d in channels_last_order(n):
        if shape[d] == 0 or strides[d] < least:
            return "contiguous_format"
        if d == 0 and least == strides[1]:
            return "contiguous_format"
        least = strides[d] * shape[d] if shape[d] > 1 else strides[d]
    return "channels_last" if n == 4 else "channels_last_3d"


def empty_like_strides(shape: Shape, strides: Shape) -> Shape:
    """Strides of `empty_like` that preserves the format."""
    if is_dense(shape, strides):
        return strides

    def compare(a: int, b: int) -> int:
        x, y = strides[a], strides[b]
        if x == 0 or y == 0:
            return 0
        if x != y:
            return 1 if x > y else -1
        return 1 if shape[a] > shape[b] else 0

    order = list(range(len(shape) - 1, -1, -1))
    for i in range(1, len(order)):
        at = i
        for j in range(i - 1, -1, -1):
            slower = compare(order[j], order[at])
            if slower < 0:
                break
            if slower > 0:
                order[j], order[at] = order[at], order[j]
                at = j
    return placed(shape, order)


def broadcast_shapes(a: Sequence[Dim], b: Sequence[Dim]) -> Shape:
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    out = list(longer)
    shift = len(longer) - len(shorter)
    for i, y in reversed(list(enumerate(shorter))):
        x = longer[shift + i]
        if isinstance(y, int) and y == 1:
            continue
        if isinstance(x, int) and x == 1:
            out[shift + i] = y
            continue
        if x == y or y == 1:
            continue
        if x != 1:
            first, second = (x, y) if longer is a else (y, x)
            raise RuntimeError(
                f"The size of tensor a ({first}) must match the size of tensor b ({second}) at "
                f"non-singleton dimension {shift + i}"
            )
        out[shift + i] = y
    return tuple(out)


def wrap_dim(dim: int, ndim: int) -> int:
    n = max(ndim, 1)
    if not -n <= dim < n:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})"
        )
    return dim + n if dim < 0 else dim


def wrap_dims(dims: Sequence[int], ndim: int) -> list[int]:
    out: list[int] = []
    for d in dims:
        w = wrap_dim(d, ndim)
        if w in out:
            raise RuntimeError(f"dim {w} appears multiple times in the list of dims")
        out.append(w)
    return out


def infer_size(sizes: Sequence[Dim], numel: Dim) -> list[Dim]:
    """The shape with its -1 filled in."""
    out = list(sizes)
    known: Dim = 1
    hole = -1
    for i, n in enumerate(sizes):
        if isinstance(n, int) and n == -1:
            if hole >= 0:
                raise RuntimeError("only one dimension can be inferred")
            hole = i
            continue
        if not n >= 0:
            raise RuntimeError(f"invalid shape dimension {n}")
        known = known * n
    if hole < 0:
        fits = known == numel
    else:
        if known == 0 and numel == 0:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {_shown(sizes)} because the "
                "unspecified dimension size -1 can be any value and is ambiguous"
            )
        fits = known > 0 and numel % known == 0
    if not fits:
        raise RuntimeError(f"shape '{_shown(sizes)}' is invalid for input of size {numel}")
    if hole >= 0:
        out[hole] = numel // known
    return out


def _shown(sizes: Sequence[Dim]) -> str:
    return f"[{', '.join(map(str, sizes))}]"


def view_strides(shape: Shape, strides: Shape, new: Sequence[Dim]) -> Shape | None:
    """Strides that show the same memory in another shape; None where there are none."""
    if prod(shape) == 0:
        return strides if same(shape, new) else contiguous_strides(new)
    if not shape:
        return (1,) * len(new)
    out: list[Dim] = [1] * len(new)
    v = len(new) - 1
    base, chunk, filled = strides[-1], 1, 1
    for d in range(len(shape) - 1, -1, -1):
        chunk = chunk * shape[d]
        ends = d == 0 or (shape[d - 1] != 1 and strides[d - 1] != chunk * base)
        if not ends:
            continue
        while v >= 0 and (new[v] == 1 or filled < chunk):
            out[v] = filled * base
            filled = filled * new[v]
            v -= 1
        if filled != chunk:
            return None
        if d > 0:
            base, chunk, filled = strides[d - 1], 1, 1
    return tuple(out) if v == -1 else None


def result_strides(
    shape: Shape, inputs: Sequence[tuple[Shape, Shape]], itemsizes: Sequence[int]
) -> Shape:
    """Strides of a new result of a pointwise operation on these (shape, strides)."""
    alike = all(same(s, shape) for s, _ in inputs)
    if alike:
        if all(is_contiguous(s, t) for s, t in inputs):
            return contiguous_strides(shape)
        for name in _RANKS:
            if all(is_contiguous(s, t, name) for s, t in inputs):
                return format_strides(shape, name)
        first = inputs[0]
        if all(same(t, first[1]) for _, t in inputs) and is_dense(*first):
            return first[1]
    return _nest_strides(shape, inputs, itemsizes)


def _nest_strides(
    shape: Shape, inputs: Sequence[tuple[Shape, Shape]], itemsizes: Sequence[int]
) -> Shape:
    """Dense strides in the order in which a loop nest over the operands walks."""
    n = len(shape)
    dims = list(range(n - 1, -1, -1))
    steps: list[dict[int, Dim]] = []
    for (own, strides), size in zip(inputs, itemsizes, strict=True):
        row: dict[int, Dim] = {}
        for d in dims:
            at = d - (n - len(own))
            walked = at >= 0 and (own[at] != 1 or shape[d] == 1)
            row[d] = strides[at] * size if walked else 0
        steps.append(row)

    def compare(a: int, b: int) -> int:
        for row in steps:
            x, y = row[a], row[b]
            if x == 0 or y == 0:
                continue
            if x != y:
                return -1 if x < y else 1
            if shape[a] > shape[b]:
                return 1
        return 0

    for i in range(1, n):
        moving = i
        for j in range(i - 1, -1, -1):
            c = compare(dims[j], dims[moving])
            if c < 0:
                break
            if c > 0:
                dims[j], dims[moving] = dims[moving], dims[j]
                moving = j
    return placed(shape, dims)
