"""Conversions of real to whole numbers, of what these cannot hold: as eager, which is as PyTorch.

What x86 processors do: the least number of the 32 or 64 bits that the conversion goes through.
"""

import itertools

import pytest

import flambeau as torch

REALS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
WHOLES = [
    torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.int64,
    torch.uint64, torch.bool,
]  # fmt: skip
INF, NAN = float("inf"), float("nan")
NUMBERS = [
    INF, -INF, NAN, 3e9, -3e9, 1e20, -1e20, 300.0, -300.0, 2.7, -2.7, 2.0**31 - 1, 2.0**63, 5e18,
    2.0**31 + 5, 2.0**32 + 3, -(2.0**31) - 0.5, 2.0**32 - 1, -(2.0**32) - 1,
]  # fmt: skip
X = torch.tensor(NUMBERS * 3, dtype=torch.float64)


def test_eager_numbers():
    least = -(2**31)
    x = torch.tensor([INF, NAN, 3e9, -3e9, 2.7])
    assert x.to(torch.int32).tolist() == [least, least, least, least, 2]
    assert x.to(torch.int16).tolist() == [0, 0, 0, 0, 2]
    assert x.to(torch.int64).tolist() == [-(2**63), -(2**63), 3 * 10**9, -3 * 10**9, 2]


@pytest.mark.parametrize("source", REALS, ids=str)
def test_compiled_conversions_are_eagers(source):
    x = X.to(source)

    def each(x):
        y = torch.where(x > 0, x * 1, NAN)
        return [v.to(d) for v, d in itertools.product((x * 1, x, y), WHOLES)]

    for part in (x, x[:3]):
        for got, want in zip(torch.compile(each)(part), each(part), strict=True):
            assert torch.equal(got, want), want.dtype


@pytest.mark.parametrize("number", [INF, -INF, NAN, 3e9, -2.7, 1e20])
def test_constants(number):
    def each(x):
        made = torch.full_like(x, number)
        return [made.to(d) for d in WHOLES] + [torch.full((2,), number).to(torch.int32) + x.long()]

    x = torch.ones(2)
    for got, want in zip(torch.compile(each)(x), each(x), strict=True):
        assert torch.equal(got, want), want.dtype


def test_eager_numbers_beyond_64_bits():
    """As PyTorch's, whichever instructions the processor has."""
    x = torch.tensor(
        [INF, NAN, -3e9, 1e20, -1e20, 2.0**63, 5e18, -2.7, 2.0**64], dtype=torch.float64
    )
    want = [0, 2**63, 2**64 - 3 * 10**9, 0, 2**63, 2**63, 5 * 10**18, 2**64 - 2, 0]
    for y in (x, x.repeat(5)):
        assert y.to(torch.uint64)[:9].tolist() == want
