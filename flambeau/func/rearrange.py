"""`rearrange`: dims taken apart, put in another order and joined, as a pattern of their names says.

The notation is that of einops (Rogozhnikov, ICLR 2022).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import flambeau as fb

__all__ = ["rearrange"]

#: the dims that have no name, where they are not inside of brackets
_UNNAMED = ["..."] * 2
_TOKEN = re.compile(r"\s*(\.\.\.|[A-Za-z]\w*|\d+|[()])")


def rearrange(
    tensor: fb.Tensor | Sequence[fb.Tensor], pattern: str, **axes_lengths: int
) -> fb.Tensor:
    """The elements of a tensor with its dims taken apart, reordered and joined.

    Args:
        tensor: any tensor; several of one shape are stacked along a new first dim.
        pattern: "names of its dims -> names of the result's". `(a b)` is a dim that is a times b,
            `...` the dims that have no name, `1` a dim of size 1.
        axes_lengths: sizes of names inside brackets; one of each bracket may be left out.

    Returns:
        A tensor of the same elements; a view where the strides allow.

    Raises:
        ValueError: the pattern is none, or does not fit the tensor.

    >>> x = torch.arange(6).reshape(2, 3)
    >>> torch.func.rearrange(x, "a b -> (b a)")
    tensor([0, 3, 1, 4, 2, 5])
    """
    x = tensor if isinstance(tensor, fb.Tensor) else fb.stack(list(tensor))
    sides = pattern.split("->")
    if len(sides) != 2:
        raise _refused(pattern, "expected one '->'")
    left, right = (_groups(side, pattern) for side in sides)
    if _UNNAMED in left:
        at = left.index(_UNNAMED)
        rest = x.ndim - len(left) + 1
        if rest < 0:
            raise _refused(pattern, f"expected at least {len(left) - 1} dims, got {tuple(x.shape)}")
        names = [f"... {k}" for k in range(rest)]  # no name of a pattern has a space
        left[at : at + 1] = [[name] for name in names]
        right = [group for wide in right for group in _with(wide, names)]
    if len(left) != x.ndim:
        raise _refused(pattern, f"expected {len(left)} dims, got shape {tuple(x.shape)}")
    sizes: dict[str, int] = {}
    for group, size in zip(left, x.shape, strict=True):
        _measure(group, size, axes_lengths, sizes, pattern)
    names = [name for group in left for name in group]
    wanted = [name for group in right for name in group]
    unused = [name for name in axes_lengths if name not in names]
    if unused or sorted(names) != sorted(wanted):
        odd = unused or sorted({*names} ^ {*wanted})
        raise _refused(pattern, f"expected each name once on both sides, got {', '.join(odd)}")
    whole = x.reshape([sizes[name] for name in names])
    moved = whole.permute([names.index(name) for name in wanted])
    return moved.reshape([_product(group, sizes) for group in right])


def _with(group: list[str], names: list[str]) -> list[list[str]]:
    """The dims that one of a pattern stands for."""
    if group == _UNNAMED:
        return [[name] for name in names]
    return [[n for part in group for n in (names if part == "..." else [part])]]


def _product(group: list[str], sizes: dict[str, int]) -> int:
    size = 1
    for name in group:
        size *= sizes[name]
    return size


def _refused(pattern: str, why: str) -> ValueError:
    return ValueError(f"rearrange: {pattern!r}: {why}")


def _groups(side: str, pattern: str) -> list[list[str]]:
    """The names of each dim; a dim of size 1 has none."""
    found: list[list[str]] = []
    inside: list[str] | None = None
    at, side = 0, side.rstrip()
    seen: set[str] = set()
    while at < len(side):
        token = _TOKEN.match(side, at)
        if token is None:
            raise _refused(pattern, f"expected a name, a bracket or '...' at {side[at:].strip()!r}")
        at, word = token.end(), token[1]
        if word == "(" and inside is None:
            inside = []
        elif word == ")" and inside is not None:
            found.append(inside)
            inside = None
        elif word in "()":
            raise _refused(
                pattern, f"a bracket {word!r} that has no other, or brackets in brackets"
            )
        elif word.isdigit():
            if word != "1":
                raise _refused(pattern, f"expected a name or 1, got {word}")
            if inside is None:
                found.append([])
        elif word in seen:
            raise _refused(pattern, f"{word} twice on one side")
        else:
            seen.add(word)
            if inside is None:
                found.append(_UNNAMED if word == "..." else [word])
            else:
                inside.append(word)
    if inside is not None:
        raise _refused(pattern, "a bracket '(' that has no other")
    return found


def _measure(
    group: list[str], size: Any, given: dict[str, int], sizes: dict[str, int], pattern: str
) -> None:
    """Sizes of the names that make up one dim."""
    open_names = [name for name in group if name not in given]
    known = 1
    for name in group:
        if name in given:
            sizes[name] = given[name]
            known *= given[name]
    if len(open_names) > 1:
        raise _refused(pattern, f"expected sizes of all but one of {', '.join(open_names)}")
    if open_names:
        if known == 0 or size % known:
            raise _refused(pattern, f"a dim of {size} is no multiple of {known}")
        sizes[open_names[0]] = size // known
    elif size != known:
        raise _refused(pattern, f"expected a dim of {known}, got {size}")
