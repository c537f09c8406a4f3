"""Compiled functions stop at a collective, and go on behind it with what it gave."""

import pytest

import flambeau as torch
from tests.distributed import worlds

dist = torch.distributed


def compiled(rank, size):
    def step(x):
        y = x * 2 + rank
        dist.all_reduce(y)
        out = [torch.zeros_like(y) for _ in range(size)]
        dist.all_gather(out, y.sin())
        return y * 3 + sum(out)

    x = torch.arange(6.0)
    expected = step(x)
    run = torch.compile(step)
    for _ in range(3):
        torch.testing.assert_close(run(x), expected)
    with pytest.raises(Exception, match="(?i)break|full"):
        torch.compile(step, fullgraph=True)(x)


def test_compiled_steps():
    worlds.run("test_compiled", "compiled", 2)
