"""Small helpers for the arguments of modules.

Owns the spelling out of one number into one per spatial dimension, and of mappings into pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """A function that makes a tuple of `n` from one value; an iterable is kept."""

    def parse(value: Any) -> tuple[Any, ...]:
        if isinstance(value, Iterable):
            return tuple(value)
        return tuple(repeat(value, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Iterable[Any], n: int) -> tuple[Any, ...]:
    """Each element `n` times, last element first: the order in which `F.pad` reads padding."""
    return tuple(x for x in reversed(tuple(t)) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Strip `prefix` from the keys of a state dictionary, and of its metadata, in place."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for key in list(metadata):
        # The metadata of the stripped module itself has the prefix without its dot as key.
        if key == prefix.rstrip("."):
            metadata.setdefault("", metadata.pop(key))
        elif key.startswith(prefix):
            metadata[key[len(prefix) :]] = metadata.pop(key)


def _key_value_pairs(source: Any, who: str) -> list[tuple[str, Any]]:
    """The (key, value) pairs of a mapping or of an iterable of pairs."""
    if not isinstance(source, Iterable):
        raise TypeError(
            f"{who}.update should be called with an iterable of key/value pairs, "
            f"but got {type(source).__name__}"
        )
    if hasattr(source, "keys") and hasattr(source, "__getitem__"):
        return [(key, source[key]) for key in source.keys()]
    pairs = []
    for i, pair in enumerate(source):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{who} update sequence element #{i} should be Iterable; is {type(pair).__name__}"
            )
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(
                f"{who} update sequence element #{i} has length {len(pair)}; 2 is required"
            )
        pairs.append(pair)
    return pairs
