"""Long pointwise bodies are cut where slow functions follow one another; values stay eager's."""

from __future__ import annotations

import pytest
from test_native import agree, compiled, uniform

import flambeau as torch
from flambeau._compiler.emit_cpp import source
from flambeau._compiler.scalar import MEMORY
from flambeau._compiler.schedule import schedule
from flambeau._trace import trace

pytestmark = pytest.mark.usefixtures("cache")


def loops(f, *inputs):
    """Loops over tiles in the C++ of a function."""
    program = schedule(trace(f, [x.detach() for x in inputs], "primitive", False))
    memory = {name: MEMORY[b.dtype] for name, b in program.buffers.items()}
    return source(program.steps, memory, program.symbols).count("j < size")


def chain(x):
    y = ((x * 0.5 + 1).sin() * x).tanh() - x
    return torch.maximum((-(y.abs() + 0.1).sqrt()).exp().sigmoid(), x)


def reused(x, y):
    a = (x + y).sin()
    positive = a > 0.1
    b = (a * x).exp()
    c = torch.where(positive, b.tanh() + a, y.cos())
    return c, positive, (b + c).log1p() * a


def whole(x):
    n = (x.sin() * 100).to(torch.int64)
    return (n * 2 + 1).to(torch.float32).exp().tanh() + n


CASES = {
    "chain": (chain, 1, 4),
    "values needed later": (reused, 2, 4),
    "whole numbers between": (whole, 1, 3),
    "rows": (lambda x, y: (x.transpose(0, 1).exp().sin() * y[:1, :1].exp()).tanh(), 2, 3),
    "one slow function": (lambda x: x.sin() * 2 + x.abs().sqrt(), 1, 0),
    "two side by side": (lambda x: x.sin() + x.cos(), 1, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_loops(name):
    f, count, wanted = CASES[name]
    for shape in ((40, 50), (3, 257), (70, 300)):
        inputs = [uniform(*shape).detach() for _ in range(count)]
        got, expected = compiled(f, inputs)(*inputs), f(*inputs)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for x, y in zip(got, expected, strict=True):
            assert x.dtype is y.dtype
            assert torch.allclose(x.double(), y.double(), rtol=1e-5, atol=1e-6)
    assert loops(f, *inputs) == wanted


def test_half_formats_are_floats_between_loops():
    def f(x):
        return x.bfloat16().exp().tanh().float().sin()

    x = uniform(7, 300).detach()
    exact = x.bfloat16().double().exp().tanh().sin()
    assert (compiled(f, [x])(x)[0] - exact).abs().max() < 2**-8


def test_gradients():
    agree(chain, [uniform(30, 70)])
    agree(lambda x, y: reused(x, y)[2], [uniform(30, 70), uniform(30, 70)])


def test_angles_beyond_the_limit_in_a_later_loop():
    x = uniform(20, 400).detach()
    x[3, 7], x[5, 390] = 3e6, -8e7

    def f(x):
        return (x * 1.5).tanh() + ((x * 0.25).exp().clamp(max=1.0) + x).sin().tanh()

    assert torch.allclose(compiled(f, [x])(x)[0], f(x), rtol=1e-5, atol=1e-6)


def test_complex_numbers_stay_in_one_loop():
    z = torch.complex(uniform(9, 40).detach(), uniform(9, 40).detach())
    (got,) = compiled(lambda z: z.exp().sin().tanh(), [z])(z)
    assert torch.allclose(got, z.exp().sin().tanh(), rtol=1e-5, atol=1e-5)
