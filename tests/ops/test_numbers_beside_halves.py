"""Numbers and whole numbers beside float16 and bfloat16 are taken to that type first; factors and
divisors that are numbers are not. References: the same in float32 with the number rounded or not,
and NumPy's float16."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import flambeau as torch
import flambeau.nn.functional as F

C = 0.11727  # either type holds a smaller number
HALVES = [torch.float16, torch.bfloat16]
WAYS = [lambda f: f, torch.compile]
ROUNDED = {
    "add": torch.add, "sub": torch.sub, "rsub": torch.rsub, "remainder": torch.remainder,
    "fmod": torch.fmod, "eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le,
    "gt": torch.gt, "ge": torch.ge, "pow": torch.pow, "front": lambda x, c: torch.mul(c, x),
    "under": lambda x, c: torch.div(c, x), "power of": lambda x, c: c**x,
    "minus": lambda x, c: c - x,
    "hypot": lambda x, c: torch.hypot(x, torch.tensor(c, dtype=torch.float64)),
    "alpha": lambda x, c: torch.add(x, x, alpha=c), "hardshrink": F.hardshrink,
    "list": lambda x, c: torch._foreach_add([x], c)[0],
}  # fmt: skip
EXACT = {
    "mul": torch.mul, "div": torch.div, "floor_divide": torch.floor_divide,
    "times": lambda x, c: c * x, "lerp": lambda x, c: torch.lerp(x, x.flip(0), c),
    "addcmul": lambda x, c: torch.addcmul(x, x, x, value=c),
    "list": lambda x, c: torch._foreach_mul([x], c)[0],
    "trunc": lambda x, c: torch.div(x, c, rounding_mode="trunc"),
}  # fmt: skip


def values(dtype):
    x = torch.from_numpy(np.random.default_rng(0).uniform(0.05, 3, 300)).to(dtype)
    x[:20] = C
    x[20:30] = x[0] * 2.0 ** torch.arange(10)  # quotients are just below whole numbers
    return x


@pytest.mark.parametrize("way", WAYS, ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", ROUNDED)
def test_a_number_is_what_the_type_holds_of_it(name, dtype, way):
    x, f = values(dtype), ROUNDED[name]
    held = torch.tensor(C, dtype=dtype).item()
    assert held != C
    want = f(x.float(), held)
    assert torch.equal(way(f)(x, C), want if want.dtype == torch.bool else want.to(dtype))


@pytest.mark.parametrize("way", WAYS, ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", EXACT)
def test_factors_and_divisors_keep_their_precision(name, dtype, way):
    x, f = values(dtype), EXACT[name]
    got = way(f)(x, C)
    assert torch.equal(got, f(x.float(), C).to(dtype))
    assert not torch.equal(got, f(x.float(), torch.tensor(C, dtype=dtype).item()).to(dtype))


@pytest.mark.parametrize("dtype", HALVES)
def test_what_was_filled_with_a_number_equals_it(dtype):
    x = torch.full((3,), 0.1, dtype=dtype)
    assert (x == 0.1).all() and not (x > 0.1).any() and not (x % 0.1).any()
    x = values(dtype)
    y = x.clone()
    torch._foreach_sub_([y], C)
    assert torch.equal(y, x - C) and not y[:20].any()
    torch._foreach_add_([y], [x], alpha=C)
    assert torch.equal(y, torch.add(x - C, x, alpha=C))


@pytest.mark.parametrize("way", WAYS, ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", HALVES)
def test_whole_numbers_too(dtype, way):
    x, i = values(dtype), torch.arange(300) * 17
    for f in (operator.add, operator.mul, operator.truediv, operator.lt, operator.pow):
        assert torch.equal(way(f)(x, i), f(x, i.to(dtype)))
    assert torch.equal(way(operator.sub)(i.view(300, 1).t(), x), i.to(dtype).view(1, 300) - x)


def test_against_numpy():
    x = values(torch.float16)
    for f in (operator.add, operator.sub, operator.eq, operator.lt, operator.mod):
        np.testing.assert_array_equal(f(x, C).numpy(), f(x.numpy(), np.float16(C)))
    ends = np.float16([C, 2.7182])
    np.testing.assert_array_equal(torch.linspace(C, 2.7182, 2, dtype=torch.float16).numpy(), ends)
    edges = np.float16([0, -0.0, 6e-8, 1, -1, 2, 65504, np.inf, -np.inf, np.nan])
    x, y = (a.ravel() for a in np.meshgrid(edges, edges))
    with np.errstate(over="ignore"):
        want = np.nextafter(x, y)
    got = torch.nextafter(torch.from_numpy(x), torch.from_numpy(y)).numpy()
    np.testing.assert_array_equal(got, want)
    known = (x != y) & (want == want)
    assert np.array_equal(np.signbit(got)[known], np.signbit(want)[known])


def test_the_next_bfloat16():
    one, three = torch.tensor([1.0, -1.0, 0.0], dtype=torch.bfloat16), torch.tensor(3.0)
    assert torch.nextafter(one, three).tolist() == [1 + 2**-7, -1 + 2**-8, 2.0**-133]
    assert torch.nextafter(one, -three).tolist() == [1 - 2**-8, -1 - 2**-7, -(2.0**-133)]
