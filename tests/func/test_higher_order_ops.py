"""Scans, branches and loops given by functions, against NumPy and finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau._higher_order_ops import associative_scan, scan, while_loop


@pytest.mark.parametrize("mode", ["pointwise", "generic"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", range(1, 8))
def test_associative_scan_is_a_cumulative_sum(mode: str, reverse: bool, length: int) -> None:
    x = np.random.default_rng(length).normal(size=(2, length))
    got = associative_scan(lambda a, b: a + b, torch.tensor(x), 1, reverse, mode)
    want = x[:, ::-1].cumsum(1)[:, ::-1] if reverse else x.cumsum(1)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("mode", ["pointwise", "generic"])
def test_associative_scan_of_a_linear_recurrence_and_its_gradient(mode: str) -> None:
    def combine(left: Any, right: Any) -> Any:
        return left[0] * right[0], right[0] * left[1] + right[1]

    def states(a: Any, b: Any) -> Any:
        return associative_scan(combine, (a, b), 0, combine_mode=mode)[1]

    a = torch.rand(5, 3, dtype=torch.float64, requires_grad=True)
    b = torch.rand(5, 3, dtype=torch.float64, requires_grad=True)
    state, want = np.zeros(3), []
    for factor, step in zip(a.detach().numpy(), b.detach().numpy(), strict=True):
        state = factor * state + step
        want.append(state)
    np.testing.assert_allclose(states(a, b).detach().numpy(), np.stack(want), rtol=1e-12)
    assert torch.autograd.gradcheck(states, (a, b))


@pytest.mark.parametrize(
    ("function", "xs", "mode", "words"),
    [
        (3, torch.ones(2), "generic", "expected a function, got int"),
        (max, torch.ones(2), "other", "expected combine_mode"),
        (max, (), "generic", "one tensor or more"),
        (max, (torch.ones(2), torch.ones(3)), "generic", "expected one length"),
        (lambda a, b: (a, b), torch.ones(2), "pointwise", "like xs"),
        (lambda a, b: a.double(), torch.ones(2), "pointwise", "like its inputs"),
    ],
)
def test_associative_scan_refuses(function: Any, xs: Any, mode: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        associative_scan(function, xs, 0, combine_mode=mode)


def test_scan_keeps_the_places_of_outputs() -> None:
    x = np.arange(1.0, 5.0)
    last, out = scan(
        lambda s, v: (s + v, s * v), torch.tensor(0.0).double(), torch.tensor(x), reverse=True
    )
    assert last.item() == x.sum()
    np.testing.assert_allclose(out.numpy(), [9.0, 14.0, 12.0, 0.0])


def test_cond_runs_one_branch_and_is_differentiated() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    seen: list[str] = []
    y = torch.cond(x.sum() > 5, lambda v: seen.append("yes"), lambda v: v * 3, (x,))
    y.sum().backward()
    assert not seen and x.grad is not None and x.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="one entry"):
        torch.cond(torch.tensor([True, False]), torch.sin, torch.cos, (x,))


def test_while_loop() -> None:
    i, x = while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), torch.tensor(1.0))
    )
    assert (i.item(), x.item()) == (3, 8.0)
    with pytest.raises(RuntimeError, match="like its inputs"):
        while_loop(lambda i: i < 3, lambda i: i + 1, (0,))
