"""Arithmetic of truth values, which C++ would do in bool."""

from __future__ import annotations

import pytest

import flambeau as torch

FUNCTIONS = [
    lambda a, b: a * b,
    lambda a, b: a**b,
    lambda a, b: a.sign() ^ b.sgn(),
    lambda a, b: (a.signbit(), a & b, ~a),
    lambda a, b: torch.addcmul(a, a, b),
    lambda a, b: torch.float_power(a, b) + torch.float_power(a.float(), 3),
]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_truth_values(f, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_VERIFY", "1")  # warnings of the C++ compiler are errors
    a = torch.tensor([True, False, True, False])
    b = torch.tensor([True, True, False, False])
    got, want = torch.compile(f)(a, b), f(a, b)
    pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
    assert all(x.dtype is y.dtype and torch.equal(x, y) for x, y in pairs)
