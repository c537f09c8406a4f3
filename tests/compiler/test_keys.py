"""Keys of x[key] in a trace: eager reads them the same, values, shapes, errors; and NumPy agrees."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau._ir.graph_run import prepare
from flambeau._trace import trace

SHAPE = (3, 4, 2, 3)


def part(draw: random.Random, n: int, dims: int) -> Any:
    """One part of a key for a dim of size n, of a tensor with so many dims left."""
    kind = draw.randrange(14)
    i = draw.randrange(-n - (draw.random() < 0.05), n + (draw.random() < 0.05))
    if kind < 3:
        return i
    if kind < 6:
        ends = [draw.choice([None, *range(-n - 2, n + 3)]) for _ in range(2)]
        return slice(*ends, draw.choice([None, 1, 2, 7]))
    if kind == 6:
        return None
    if kind == 7:
        return np.int64(i)
    if kind == 8:
        return [draw.randrange(-n, n) for _ in range(2)]
    if kind == 9:
        return torch.tensor([draw.randrange(-n, n) for _ in range(2)])
    if kind == 10:
        return [draw.random() < 0.5 for _ in range(n)]
    if kind == 11:
        return torch.tensor(i, dtype=draw.choice([torch.int64, torch.int32]))
    if kind == 12:
        return np.array([[draw.randrange(-n, n)], [draw.randrange(-n, n)]])
    return draw.choice([True, False, np.array(i)])


def key_of(draw: random.Random) -> Any:
    parts: list[Any] = []
    d, opened = 0, False
    while d < len(SHAPE) and draw.random() < 0.75:
        if not opened and draw.random() < 0.15:
            parts.append(...)
            opened = True
            continue
        p = part(draw, SHAPE[d], len(SHAPE) - d)
        parts.append(p)
        d += p is not None and not isinstance(p, bool)
    if draw.random() < 0.1 and d == 0:
        parts.append(torch.rand(SHAPE[:2]) < 0.5)
    if draw.random() < 0.03:
        parts += [0] * 5
    return parts[0] if len(parts) == 1 and draw.random() < 0.5 else tuple(parts)


def outcome(f: Any, *args: Any) -> tuple[str, Any]:
    try:
        return "gave", f(*args)
    except (IndexError, ValueError, TypeError, RuntimeError) as e:
        return type(e).__name__, str(e)


def as_numpy(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(map(as_numpy, key))
    return key.numpy() if isinstance(key, torch.Tensor) else key


def means_the_same_in_numpy(key: Any) -> bool:
    """NumPy takes numbers beside index arrays for arrays, which moves dims."""
    parts = key if isinstance(key, tuple) else (key,)
    arrays = [p for p in parts if isinstance(p, (list, np.ndarray, torch.Tensor, bool))]
    numbers = [p for p in parts if isinstance(p, (int, np.integer))]
    return not (arrays and numbers) and all(getattr(p, "ndim", 1) for p in arrays)


@pytest.mark.parametrize("seed", range(12))
def test_random_keys(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(60):
        key = key_of(draw)
        x = torch.arange(72.0).reshape(SHAPE)
        kind, want = outcome(lambda x, key=key: x[key], x)

        def read(x: Any, key: Any = key) -> Any:
            return x[key]

        def write(x: Any, key: Any = key) -> Any:
            y = x * 2
            y[key] = -1.0
            return y

        traced = outcome(lambda f, x=x: prepare(trace(f, (x,)))(x)[0], read)
        if traced[0] == "DataDependent":  # a mask
            continue
        assert traced[0] == kind, (key, traced, want)
        if kind != "gave":
            assert traced[1] == want, key
            continue
        assert torch.equal(traced[1], want) and traced[1].shape == want.shape, key
        if means_the_same_in_numpy(key):
            assert np.array_equal(x.numpy()[as_numpy(key)], want.numpy()), key
        written = prepare(trace(write, (x,)))(x)[0]
        assert torch.equal(written, write(x)), key


def test_sizes_that_vary_are_read_the_same() -> None:
    def f(x: Any, n: Any) -> Any:
        k = n.shape[0]
        return x[k - 1, 1:k, None, ..., : -k + 1], x[..., k], x[-k]

    x = torch.arange(80.0).reshape(4, 5, 4)
    run = torch.compile(f, fullgraph=True, dynamic=True, backend="eager")
    for n in (torch.zeros(2), torch.zeros(3)):
        for a, b in zip(run(x, n), f(x, n), strict=True):
            assert torch.equal(a, b)
    with pytest.raises(IndexError, match="index 7 is out of bounds for dimension 2 with size 4"):
        trace(lambda x: x[1, 2, 7], (x,))
    with pytest.raises(ValueError, match="step must be greater than zero"):
        trace(lambda x: x[::-1], (x,))
