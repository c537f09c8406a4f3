"""Evenly spaced values at the edges of their dtypes, special functions at infinity, and whole
numbers wider than 64 bits among floats."""

import numpy as np
import pytest

import flambeau as torch

inf = float("inf")


@pytest.mark.parametrize(
    "end, dtype",
    [(1e6, torch.float16), (-1e6, torch.float16), (1e40, torch.float32), (300, torch.uint8)],
)
def test_ends_that_do_not_fit_are_refused(end, dtype):
    name = str(dtype).removeprefix("torch.")
    pattern = f"linspace: value cannot be converted to type {name} without overflow"
    for call in (
        lambda: torch.linspace(0, end, 3, dtype=dtype),
        lambda: torch.linspace(end, 0, 3, dtype=dtype),
        lambda: torch.linspace(0, torch.tensor(end, dtype=torch.float64), 3, dtype=dtype),
    ):
        with pytest.raises(RuntimeError, match=pattern):
            call()
    if dtype == torch.float16:
        with pytest.raises(RuntimeError, match=pattern):
            torch.linspace(0, end, 3, out=torch.empty(3, dtype=dtype))


def test_the_range_of_half_is_spanned():
    got = torch.linspace(-60000, 60000, 5, dtype=torch.float16)
    assert got.tolist() == [-60000, -30000, 0, 30000, 60000]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_polygamma_vanishes_at_infinity(n, dtype):
    x = torch.tensor([inf, 1e300 if dtype == torch.float64 else 1e38], dtype=dtype)
    got = torch.polygamma(n, x)
    assert got[0] == 0 and got[1].abs() < 1e-37
    assert bool(got[0].signbit()) == (n % 2 == 0)
    assert torch.special.zeta(torch.tensor(n + 1.0), torch.tensor(inf)) == 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "float16"])
def test_wide_integers_among_floats(dtype):
    kind = getattr(torch, dtype)
    for data in ([1.0, 2**70], [2**70, 1.0], [[2**70], [0.5]], [True, -(2**70)], [2**64 + 1]):
        with np.errstate(over="ignore"):
            want = np.array(data, dtype="float64").astype(dtype)
        got = torch.tensor(data, dtype=kind)
        np.testing.assert_array_equal(got.numpy(), want)
    assert torch.tensor(2**70, dtype=torch.float64).item() == 2.0**70
    with pytest.raises(OverflowError, match="int too large to convert to float"):
        torch.tensor([10**400, 1.0])
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        torch.tensor([1, 2**70])
    assert torch.tensor([0.5, 2**70]).dtype == torch.float32
