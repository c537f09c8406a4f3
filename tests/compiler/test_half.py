"""Half formats are rounded where eager rounds, so that results are the same bits."""

from __future__ import annotations

import pytest

import flambeau as torch

F = torch.nn.functional
FUNCTIONS = [
    lambda x, d: x.to(d).float(),
    lambda x, d: (x * 1.1).to(d).float() * 3,
    lambda x, d: F.gelu((x.to(d) * 1.37).sin() + 1),
    lambda x, d: F.silu(x.to(d) * 1.1).exp() * 0.37,
    lambda x, d: (x.to(d).tanh() * x).float().sum(-1).to(d) * 3,
    lambda x, d: torch.cat([x.to(d), (x * 2).to(d)], 0) * 1.3,
    lambda x, d: torch.full((3,), 0.1, dtype=d).double() + x[0, :3],
    lambda x, d: (x.to(d) * x[0, 0]).sigmoid(),
]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_bits_are_eagers(f, dtype):
    def run(function, x):
        y = function(x, dtype)
        (g,) = torch.autograd.grad((y.double() * 0.7).sum(), x)
        return y.detach(), g

    compiled = torch.compile(f)
    for wide in (torch.float32, torch.float64):
        x = torch.rand(5, 40, dtype=wide, generator=torch.Generator().manual_seed(0))
        for got, want in zip(
            run(compiled, x.requires_grad_()), run(f, x.requires_grad_()), strict=True
        ):
            assert got.dtype is want.dtype and torch.equal(got, want)
