"""Numbers of NumPy as arguments and attributes: one graph for arguments beside tensors, two for
attributes that vary, values and classes as NumPy has them; what NumPy alone computes is a constant,
compiled for each value."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn

X, WHOLE = torch.tensor([[0.5, -1.5], [2.0, 3.25]]), torch.arange(4)
CLASSES = [np.float64, np.float32, np.float16, np.int64, np.int32, np.uint8]


@pytest.fixture(autouse=True)
def _fresh():
    torch.compiler.reset()


def flat(v):
    if isinstance(v, torch.Tensor):
        return str(v.dtype), v.tolist()
    if isinstance(v, (list, tuple)):
        return type(v), [flat(x) for x in v]
    return type(v), repr(v)


def compilations(f, calls):
    """How many there are, whatever is called giving what eager gives."""
    count = 0

    def backend(graph, inputs):
        nonlocal count
        count += 1
        return graph.forward

    compiled = torch.compile(f, backend=backend, fullgraph=True)
    for args in calls:
        assert flat(compiled(*args)) == flat(f(*args))
    return count


def beside(x, v):
    return x * v, v * x, v - x, x / v, x.add(v), x > v, torch.where(x > 0, x, v), x + float(v)


def kinds(x, v):
    y = x + v if isinstance(v, (int, float)) else x - v
    return y, v, torch.tensor(v), type(v) is np.float64


def arithmetic(x, v):
    return x * (v + 1), (v - 1) * x, v * 2.5, v / 4, [v * v]


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("x", [X, WHOLE], ids=["floats", "integers"])
@pytest.mark.parametrize("f", [beside, kinds])
def test_arguments_that_vary_are_compiled_once(f, x, cls):
    assert compilations(f, [(x, cls(2 + k)) for k in range(6)]) == 1


@pytest.mark.parametrize("cls", CLASSES)
def test_arithmetic_in_64_bits_is_followed(cls):
    wide = cls in (np.float64, np.int64)
    assert compilations(arithmetic, [(X, cls(2 + k)) for k in range(4)]) == (1 if wide else 4)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, v: x * np.sqrt(v),
        lambda x, v: x[: int(v)] + 1,
        lambda x, v: x * abs(v) + v.item() + min(v, 3),
        lambda x, v: x + 1 if v > 3 else x - 1,
        lambda x, v: x.to(getattr(torch, v.dtype.name)),
        lambda x, v: torch.full((2,), v) + x,
        lambda x, v: x * (v**2) + v // 2 + v % 2,
    ],
)
@pytest.mark.parametrize("cls", [np.float64, np.int64])
def test_what_numpy_alone_computes_is_a_constant(f, cls):
    compilations(f, [(X, cls(2 + k)) for k in range(4)])


def test_signs_of_zero_and_nan():
    values = [0.0, 0.0, -0.0, float("nan"), 1.0]
    assert compilations(lambda x, v: (x / v, v), [(X, np.float64(v)) for v in values[:3]]) == 1
    f = torch.compile(lambda x, v: x / v)
    for v in values:
        with np.errstate(divide="ignore"):
            want = X.numpy() / np.float32(v)
        np.testing.assert_array_equal(f(X, np.float64(v)).numpy(), want)
    nan = [(X, np.float64("nan"))] * 3
    assert compilations(lambda x, v: (x * v).isnan(), nan) == 1


def test_an_attribute_that_varies():
    class Scaled(nn.Module):
        scale = np.float64(1.0)

        def forward(self, x):
            return x * self.scale

    m, count = Scaled(), 0

    def backend(graph, inputs):
        nonlocal count
        count += 1
        return graph.forward

    compiled = torch.compile(m, backend=backend)
    for k in range(6):
        m.scale = np.float64(k + 0.5)
        assert torch.equal(compiled(X), X * (k + 0.5))
    assert count == 2


def test_gradients_beside_a_number_that_varies():
    f = torch.compile(lambda x, v: (x * v).sin().sum())
    for k in range(4):
        x = X.clone().requires_grad_()
        f(x, np.float64(k + 0.5)).backward()
        c = k + 0.5
        np.testing.assert_allclose(x.grad.numpy(), c * np.cos(c * X.numpy()), rtol=2e-6)


def test_switches_keep_them_constants():
    with torch._dynamo.config.patch(specialize_float=True):
        assert compilations(lambda x, v: x * v, [(X, np.float64(k)) for k in range(3)]) == 3
