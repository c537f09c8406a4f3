"""`torch.tensor` of a script's data is what it is of Python's, and needs no Python."""

from typing import List, Tuple

import pytest

import flambeau as torch


def floats(xs: List[List[float]]):
    return torch.tensor(xs)


def ints(xs: List[int]):
    return torch.tensor(xs), torch.tensor(xs, dtype=torch.bool), torch.as_tensor(xs)


def written(a: int, b: float):
    return (
        torch.tensor([[1, a], [3, 4]]),
        torch.tensor([[1.5, b], [2.0, a]], dtype=torch.float64),
        torch.tensor([[True, False]]),
        torch.tensor([1j, 2.0]),
        torch.tensor([[[1.0]], [[b]]], requires_grad=True),
        torch.tensor(3),
        torch.tensor(b, device="cpu"),
    )


def tensors(xs: List[torch.Tensor], pair: Tuple[int, float]):
    return torch.tensor(xs), torch.tensor(pair)


def small(xs: List[int]):
    return torch.tensor(xs, dtype=torch.int8)


ITEMS = [torch.tensor(1.0), torch.tensor(2)]
CASES = [
    (floats, ([[1.0, 2.0], [3.0, 4.0]],)),
    (floats, ([],)),
    (floats, ([[], []],)),
    (ints, ([1, 0, 2**40],)),
    (ints, ([],)),
    (written, (7, -0.5)),
    (tensors, (ITEMS, (1, 2.5))),
    (small, ([-128, 127, -1],)),
]


@pytest.mark.parametrize(("function", "args"), CASES)
def test_as_of_python(function, args):
    scripted = torch.jit.script(function)
    made, expected = scripted(*args), function(*args)
    pairs = zip(made, expected, strict=True) if isinstance(made, tuple) else [(made, expected)]
    for a, b in pairs:
        assert (a.dtype, a.shape, a.requires_grad) == (b.dtype, b.shape, b.requires_grad)
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (floats, ([[1.0, 2.0], [3.0]],)),
        (floats, ([[], [1.0]],)),
        (floats, ([[1.0], []],)),
        (small, ([300],)),
        (tensors, ([torch.ones(2)], (1, 2.0))),
    ],
)
def test_refused_as_of_python(function, args):
    with pytest.raises((ValueError, RuntimeError)) as expected:
        function(*args)
    with pytest.raises(type(expected.value)) as found:
        torch.jit.script(function)(*args)
    assert str(expected.value) in str(found.value)
