"""Numbers beside tensors of small whole numbers are taken to the tensor's type first, as NumPy's
arrays of that type have them; what has no meaning for whole numbers or truth values is refused."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import flambeau as torch

X = np.array([0, 1, 4, 7, 100, 120], np.uint8)
BINARY = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
    "maximum": np.maximum, "minimum": np.minimum, "floor_divide": np.floor_divide,
    "remainder": np.remainder, "fmod": np.fmod, "gcd": np.gcd, "add": np.add, "mul": np.multiply,
}  # fmt: skip


@pytest.mark.parametrize("way", ["eager", "compiled"])
@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("name", BINARY)
def test_a_number_is_what_the_type_holds_of_it(name, kind, way):
    f = getattr(torch, name)
    x = X.astype(kind)
    for number in (-3, -1, 300, 2):
        want = BINARY[name](x, np.array(number).astype(kind))
        other = torch.tensor(number)  # without dims: it does not widen the type
        call = torch.compile(f) if way == "compiled" else f
        got = call(torch.from_numpy(x), other).numpy()
        assert got.dtype == want.dtype and np.array_equal(got, want), number


@pytest.mark.parametrize("way", [lambda f: f, torch.compile])
def test_python_numbers_too(way):
    x = torch.from_numpy(X)
    above, rest, raised = way(lambda x: (x > -1, x % -3, x.clamp_min(-3)))(x)
    assert above.tolist() == [False] * 6  # 255 there
    assert rest.tolist() == (X % np.uint8(253)).tolist()
    assert raised.tolist() == [253] * 6


@pytest.mark.parametrize("f", [operator.sub, torch.rsub])
def test_truth_values_are_not_subtracted(f):
    truth, number = torch.tensor([True, False]), torch.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="with two bool tensors is not supported"):
        f(truth, truth)
    for a, b in ((truth, number), (number, truth), (number, True), (truth, 1)):
        with pytest.raises(RuntimeError, match="with a bool tensor is not supported"):
            f(a, b)
    with pytest.raises(RuntimeError, match="with a bool tensor is not supported"):
        1 - truth


def test_whole_numbers_have_no_negative_powers():
    x = torch.tensor([1, 2])
    for f in (lambda: x**-1, lambda: x.pow(-2), lambda: x.clone().pow_(-1)):
        with pytest.raises(RuntimeError, match="Integers to negative integer powers"):
            f()
    assert (x**-1.0).tolist() == [1, 0.5]
    assert (x ** torch.tensor([-1, -1])).tolist() == [1, 0]
    assert torch.compile(lambda x, n: x**n)(x, 5).tolist() == [1, 32]
