"""Sums of exponentials of complex numbers at infinities and NaN, against the definition."""

import cmath

import numpy as np
import pytest

import flambeau as torch

INF, NAN = float("inf"), float("nan")
BOTH = [torch.complex64, torch.complex128]


@pytest.mark.parametrize("dtype", BOTH)
def test_logaddexp_of_infinities(dtype):
    def f(a, b):
        return torch.logaddexp(torch.tensor([a], dtype=dtype), torch.tensor([b], dtype=dtype))[0]

    assert f(complex(INF, 0), complex(INF, 0)).item() == complex(INF, 0)
    nothing = f(complex(-INF, 5), complex(-INF, -1)).item()
    assert nothing.real == -INF and not cmath.isnan(nothing)
    assert f(complex(-INF, 5), 1 + 2j).item() == 1 + 2j
    assert f(1 + 2j, complex(-INF, 5)).item() == 1 + 2j
    assert f(complex(INF, 1), 1 + 2j).item() == complex(INF, 1)
    opposite = f(complex(INF, 2), complex(INF, -1)).item()
    assert cmath.isnan(opposite)
    for other in (1 + 1j, complex(-INF, 0), complex(INF, 0)):
        for bad in (complex(NAN, 1), complex(1, NAN)):
            assert cmath.isnan(f(bad, other).item()) and cmath.isnan(f(other, bad).item())


@pytest.mark.parametrize("dtype", BOTH)
def test_logcumsumexp_of_infinities(dtype):
    def f(*values):
        return torch.logcumsumexp(torch.tensor(values, dtype=dtype), 0).tolist()

    none = f(complex(-INF, 1), complex(-INF, 4), 1 + 2j)
    assert [z.real for z in none] == [-INF, -INF, 1] and none[2] == 1 + 2j
    assert none[0].imag == none[1].imag == 0  # nothing has no angle
    assert f(complex(INF, 1), 1 + 4j)[1] == complex(INF, 1)
    assert cmath.isnan(f(complex(INF, 2), complex(INF, 5))[1])
    for bad in (complex(NAN, 1), complex(1, NAN), complex(-INF, NAN)):
        assert all(cmath.isnan(z) for z in f(bad, 1 + 1j))


def test_finite_values_against_the_definition():
    rng = np.random.default_rng(0)
    z = rng.normal(size=20) * 3 + 1j * rng.uniform(-9, 9, size=20)
    got = torch.logcumsumexp(torch.tensor(z), 0).numpy()
    np.testing.assert_allclose(np.exp(got), np.cumsum(np.exp(z)), rtol=1e-10)
    pairs = torch.logaddexp(torch.tensor(z[:10]), torch.tensor(z[10:])).numpy()
    np.testing.assert_allclose(np.exp(pairs), np.exp(z[:10]) + np.exp(z[10:]), rtol=1e-10)
