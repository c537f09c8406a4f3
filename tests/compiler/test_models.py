"""Whole models with `fullgraph=True`: inference and training are eager's, within tolerance.

The C++ compiler optimises less here than it does for users, which takes half the time: what full
optimisation makes of loops is held against eager by `test_native.py`.
"""

from __future__ import annotations

import copy

import pytest
from models import CASES, Encoder

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import nn
from tools._program_check import optimised

BACKENDS = ["aot_eager", "inductor"]
# float32 through some ten layers, sums in another order; gradients that cancel are near 0
CLOSE = {"rtol": 1e-4, "atol": 2e-5}


@pytest.fixture(autouse=True, scope="module")
def less_optimised():
    with optimised("-O1"):
        yield


def made(name):
    torch.manual_seed(0)
    build, inputs, loss = CASES[name]
    return build(), inputs, loss


def step(model, call, inputs, loss):
    """Loss, gradients and buffers of one training step."""
    model.zero_grad()
    torch.manual_seed(1)
    value = loss(call(*inputs))
    value.backward()
    grads = {n: p.grad.clone() for n, p in model.named_parameters()}
    return value.detach(), grads, {n: b.clone() for n, b in model.named_buffers()}


def agree(a, b, name=""):
    assert a.dtype == b.dtype and torch.allclose(a, b, **CLOSE), (name, (a - b).abs().max())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CASES)
def test_training_and_inference(name, backend):
    model, inputs, loss = made(name)
    other = copy.deepcopy(model)
    compiled = torch.compile(other, backend=backend, fullgraph=True)
    given = inputs(4)
    for _ in range(2):
        eager, native = step(model, model, given, loss), step(other, compiled, given, loss)
        agree(native[0], eager[0], "loss")
        for part in (1, 2):
            for n, expected in eager[part].items():
                agree(native[part][n], expected, n)
    model.eval()
    compiled.eval()
    with torch.no_grad():
        agree(compiled(*given), model(*given))


@pytest.mark.parametrize("name", CASES)
def test_two_compiles_for_eight_batch_sizes(name):
    model, inputs, loss = made(name)
    other = copy.deepcopy(model)
    compiled = torch.compile(other, backend="aot_eager", fullgraph=True)
    for n in (2, 3, 4, 5, 7, 8, 12, 16):
        torch.manual_seed(n)
        given = inputs(n)
        eager, native = step(model, model, given, loss), step(other, compiled, given, loss)
        agree(native[0], eager[0], n)
        for k, expected in eager[1].items():
            agree(native[1][k], expected, k)
    assert len(compiled._flambeau_config.parts) <= 2


def sin_plus_cos(x, y):
    a = torch.sin(x)
    b = torch.cos(y)
    return a + b


@torch.compile(fullgraph=True)
def decorated(x, y):
    a = torch.sin(x)
    b = torch.cos(y)
    return a + b


def test_the_first_function_called_and_decorated():
    x, y = torch.randn(10, 10), torch.randn(10, 10, requires_grad=True)
    expected = sin_plus_cos(x, y)
    for f in (torch.compile(sin_plus_cos, fullgraph=True), decorated):
        agree(f(x, y), expected)
        agree(*(torch.autograd.grad(g(x, y).sum(), y)[0] for g in (f, sin_plus_cos)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_dropout_draws_what_eager_draws(backend):
    torch.manual_seed(0)
    model = Encoder(dropout=0.3)
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    x = torch.randn(2, 6, 8)
    values = []
    for call in (model, compiled, compiled):
        model.zero_grad()
        torch.manual_seed(5)
        out = call(x)
        out.sum().backward()
        values.append((out.detach(), [p.grad.clone() for p in model.parameters()]))
    for out, grads in values[1:]:
        agree(out, values[0][0])
        for a, b in zip(grads, values[0][1], strict=True):
            agree(a, b)
    torch.manual_seed(6)
    assert not torch.allclose(compiled(x), values[0][0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_optimisers_and_schedulers_stay_outside(backend):
    def train(compile):
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Linear(5, 8, bias=False), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2)
        )
        call = torch.compile(model, backend=backend, fullgraph=True) if compile else model
        optimiser = torch.optim.AdamW(model.parameters(), lr=0.05)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 10)
        losses = []
        for _ in range(6):
            x = torch.randn(16, 5)
            loss = F.mse_loss(call(x), x[:, :2].sin())
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            losses.append(loss.item())
        return losses, model.state_dict()

    (a, plain), (b, native) = train(False), train(True)
    assert a == pytest.approx(b, rel=1e-4)
    assert int(native["1.num_batches_tracked"]) == 6
    for n in plain:
        assert torch.allclose(plain[n], native[n], rtol=1e-3, atol=1e-4), n
