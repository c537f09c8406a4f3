"""NumPy's random generators in pickles: `Generator`, `RandomState`, bit generators, seeds.

Owns what a file may say of them. Invariant: a state reaches NumPy only after every field was
checked for its kind and range, for some of NumPy's own setters believe positions in buffers unseen.
It knows neither arrays in pickles nor tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random.bit_generator import SeedSequence

_KINDS = (
    np.random.PCG64,
    np.random.PCG64DXSM,
    np.random.MT19937,
    np.random.Philox,
    np.random.SFC64,
)
_BY_NAME = {kind.__name__: kind for kind in _KINDS}
_MOST_POOL = 1 << 10
_64, _128 = 1 << 64, 1 << 128

#: of each bit generator: its integers and their bounds, its arrays and their dtype and length
_FIELDS: dict[str, tuple[dict[str, int], dict[str, tuple[str, int]]]] = {
    "PCG64": ({"state": _128, "inc": _128}, {}),
    "PCG64DXSM": ({"state": _128, "inc": _128}, {}),
    "MT19937": ({"pos": 625}, {"key": ("uint32", 624)}),
    "Philox": ({}, {"counter": ("uint64", 4), "key": ("uint64", 2)}),
    "SFC64": ({}, {"state": ("uint64", 4)}),
}
#: fields beside `state`: their bounds
_BESIDE = {"has_uint32": 2, "uinteger": 1 << 32, "buffer_pos": 5, "has_gauss": 2}


def names() -> tuple[dict[str, Any], dict[int, Callable[..., Any]], dict[type, Any]]:
    """The names a file may use, how those are called, and how states are given."""
    found: dict[str, Any] = {f"{kind.__module__}.{kind.__name__}": kind for kind in _KINDS}
    found["numpy.random.bit_generator.SeedSequence"] = SeedSequence
    calls: dict[int, Callable[..., Any]] = {}
    for name, call in (
        ("numpy.random._pickle.__bit_generator_ctor", _bit_generator),
        ("numpy.random._pickle.__generator_ctor", _generator),
        ("numpy.random._pickle.__randomstate_ctor", _random_state),
        ("numpy.random.bit_generator.__pyx_unpickle_SeedSequence", _seed_sequence),
    ):
        found[name] = call
        calls[id(call)] = call
    states: dict[type, Any] = dict.fromkeys(_KINDS, _set_bits)
    states[np.random.Generator] = _set_generator
    states[np.random.RandomState] = _set_random_state
    states[SeedSequence] = _set_seed
    return found, calls, states


def _bit_generator(kind: Any = "MT19937") -> Any:
    kind = _BY_NAME.get(kind, kind) if type(kind) is str else kind
    if kind not in _KINDS:
        raise ValueError(f"load: unknown bit generator {str(kind)[:40]!r} of NumPy")
    return kind(0)


def _bits(given: Any) -> Any:
    return given if type(given) in _KINDS else _bit_generator(given)


def _generator(bits: Any = "MT19937", *_: Any) -> Any:
    return np.random.Generator(_bits(bits))


def _random_state(bits: Any = "MT19937", *_: Any) -> Any:
    return np.random.RandomState(_bits(bits))


def _seed_sequence(kind: Any, *_: Any) -> Any:
    if kind is not SeedSequence:
        raise TypeError("a seed that is not a SeedSequence")
    return SeedSequence(0)


def _is_count(value: Any, bound: int) -> bool:
    return type(value) is int and 0 <= value < bound


def _checked(state: Any, name: str) -> dict[str, Any]:
    """The state of a bit generator of that name, once it can do no harm."""
    wrong = ValueError(f"load: the state of NumPy's {name} is malformed")
    if type(state) is not dict or state.get("bit_generator") != name:
        raise wrong
    counts, arrays = _FIELDS[name]
    inner = state.get("state")
    if type(inner) is not dict or inner.keys() != counts.keys() | arrays.keys():
        raise wrong
    if any(not _is_count(inner[field], bound) for field, bound in counts.items()):
        raise wrong
    for field, (dtype, length) in arrays.items():
        if not _is_array(inner[field], dtype, length):
            raise wrong
    for field, value in state.items():
        if field in _BESIDE:
            good = _is_count(value, _BESIDE[field])
        elif field == "buffer":
            good = _is_array(value, "uint64", 4)
        else:
            good = field in ("bit_generator", "state") or (
                field == "gauss" and type(value) is float
            )
        if not good:
            raise wrong
    return state


def _is_array(value: Any, dtype: str, length: int) -> bool:
    return type(value) is np.ndarray and value.dtype == dtype and value.shape == (length,)


def _set_bits(bits: Any, state: Any) -> None:
    """Gives a bit generator its state, with NumPy 2 a pair of it and the seed it came from."""
    seed = None
    if type(state) is tuple and len(state) == 2:
        state, seed = state
    checked = _checked(state, type(bits).__name__)
    if seed is not None:
        if type(seed) is not SeedSequence:
            raise TypeError("a seed that is not a SeedSequence")
        bits.__setstate__((checked, seed))
    else:
        bits.state = checked


def _set_generator(generator: Any, state: Any) -> None:
    _set_bits(generator.bit_generator, state)


def _set_random_state(generator: Any, state: Any) -> None:
    generator.set_state(_checked(state, type(generator._bit_generator).__name__))


def _set_seed(seed: Any, state: Any) -> None:
    """Makes a seed anew from its numbers; its pool follows from them."""
    if type(state) is not tuple or len(state) < 5:
        raise TypeError("the state of a SeedSequence is malformed")
    entropy, children, _, pool, key = state[:5]
    numbers = entropy if type(entropy) in (list, tuple) else (entropy,)
    if not all(_is_count(n, 1 << 4096) for n in (*numbers, children, *tuple(key))):
        raise TypeError("the numbers of a SeedSequence are malformed")
    if not _is_count(pool, _MOST_POOL):
        raise TypeError("the pool of a SeedSequence is malformed")
    seed.__init__(entropy, spawn_key=tuple(key), pool_size=pool, n_children_spawned=children)
