"""Copies, conversions and fills between all dtypes and layouts, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch

DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
    "complex64", "complex128",
]  # fmt: skip
LAYOUTS = {
    "dense": lambda x: x,
    "transposed": lambda x: x.T.copy().T,
    "strided": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "broadcast": lambda x: np.broadcast_to(x[:, :1], x.shape),
}


def values(dtype):
    x = np.random.default_rng(0).integers(0, 100, (70, 90))
    return (x > 50) if dtype == "bool" else x.astype(dtype)


@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_conversion(dtype, to):
    x = values(dtype)
    want = (
        x.real.astype(to) if to != "bool" and x.dtype.kind == "c" and to[0] != "c" else x.astype(to)
    )
    given = torch.from_numpy(x)
    if x.dtype.kind == "c" and to != "bool" and to[0] != "c":
        with pytest.warns(UserWarning, match="discards the imaginary part"):
            got = given.to(getattr(torch, to))
    else:
        got = given.to(getattr(torch, to))
    assert got.dtype == getattr(torch, to)
    assert (got.numpy() == want).all()


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("source", LAYOUTS)
def test_layouts(source, dtype):
    x = LAYOUTS[source](values(dtype))
    src = (
        torch.from_numpy(np.ascontiguousarray(x)) if source == "broadcast" else torch.from_numpy(x)
    )
    assert (src.contiguous().numpy() == x).all()
    for order in ((0, 1), (1, 0)):
        dst = torch.zeros([x.shape[d] for d in order], dtype=src.dtype).permute(order)
        dst.copy_(src)
        assert (dst.numpy() == x).all()


def test_bfloat16_rounds_to_even():
    x = torch.tensor([1.0, 1.00390625, 1.01171875, 3.4e38, float("inf"), float("nan")])
    got = x.to(torch.bfloat16).to(torch.float32)
    np.testing.assert_array_equal(got.numpy(), [1.0, 1.0, 1.015625, np.inf, np.inf, np.nan])


@pytest.mark.parametrize("shape", [(), (0,), (5,), (3000, 3000)])
def test_fill(shape):
    assert (torch.empty(shape).fill_(2.5).numpy() == 2.5).all()
    assert (torch.empty(shape, dtype=torch.int8).fill_(-3).numpy() == -3).all()
    assert (torch.empty(shape).zero_().numpy() == 0).all()


def test_fill_refuses_what_does_not_fit():
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.zeros(2, dtype=torch.int8).fill_(1000)


def test_copy_refuses_other_shapes():
    message = r"The size of tensor a \(3\) must match the size of tensor b \(4\)"
    with pytest.raises(RuntimeError, match=message):
        torch.zeros(3).copy_(torch.zeros(4))


def test_overlapping_copy():
    x = torch.arange(10)
    x[1:].copy_(x[:-1].clone())
    assert x.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    y = torch.arange(10)
    y[1:].copy_(y[:-1])
    assert y.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
