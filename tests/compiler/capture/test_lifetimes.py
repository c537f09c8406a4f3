"""What compiled functions are given lives no longer than the caller keeps it: nothing waits for the
collector of cycles, which is off here."""

from __future__ import annotations

import gc
import weakref

import pytest

import flambeau as torch
from flambeau import nn

BACK_ENDS = ("eager", "aot_eager", "inductor")


@pytest.fixture(autouse=True)
def _no_collector():
    torch.compiler.reset()
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def plain(x, y):
    return (x * 2 + y).sum()


def several(x, y):
    return [x.sin(), {"y": y}]


def branch(x, y):
    return x * 2 if x.sum() > 0 else x * y


def broken(x, y):
    z = x + y
    torch._dynamo.graph_break()
    return z * x


def looped(x, y):
    for k in range(3):
        torch._dynamo.graph_break()
        y = y + x * k
    return y


def caught(x, y):
    try:
        raise ValueError(x)
    except ValueError as e:
        return e.args[0] + y


def shapes(x, y):
    return x.reshape(-1)[: y.shape[0] - 1] * x.shape[0]


def leaves(value):
    if isinstance(value, torch.Tensor):
        return [value]
    values = value.values() if isinstance(value, dict) else value
    return [t for v in values for t in leaves(v)]


@pytest.mark.parametrize("backend", BACK_ENDS)
@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("body", [plain, several, branch, broken, looped, caught, shapes])
def test_inputs_go_at_once(body, grad, dynamic, backend):
    compiled = torch.compile(body, backend=backend, dynamic=dynamic)
    for n in (4, 5, 6):
        x, y = torch.randn(n, requires_grad=grad), torch.randn(n)
        watched = [weakref.ref(x), weakref.ref(y)]
        result = compiled(x, y)
        if grad:
            torch.stack([t.sum() for t in leaves(result)]).sum().backward()
        del x, y, result
        assert [r() for r in watched] == [None, None], n


@pytest.mark.parametrize("backend", BACK_ENDS)
def test_a_step_of_training(backend):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    compiled = torch.compile(model, backend=backend)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    for n in (3, 4, 5):
        x = torch.randn(n, 4)
        loss = compiled(x).square().mean()
        watched = [weakref.ref(x), weakref.ref(loss)]
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        del x, loss
        assert [r() for r in watched] == [None, None], n


@pytest.mark.parametrize("backend", BACK_ENDS)
def test_a_model_that_is_dropped(backend):
    model = nn.Linear(3, 2)
    watched = [weakref.ref(model), weakref.ref(model.weight)]
    compiled = torch.compile(model, backend=backend)
    compiled(torch.ones(1, 3)).sum().backward()
    del model, compiled
    gc.collect()  # a module and its wrapper are a cycle of their own
    assert [r() for r in watched] == [None, None]


def test_what_cannot_be_captured():
    compiled = torch.compile(branch, backend="eager", fullgraph=True)
    x, y = torch.ones(2), torch.ones(2)
    watched = [weakref.ref(x), weakref.ref(y)]
    with pytest.raises(torch._dynamo.exc.Unsupported):
        compiled(x, y)
    del x, y
    assert [r() for r in watched] == [None, None]


def test_a_back_end_that_fails():
    def fails(graph, example_inputs):
        raise NotImplementedError("no")

    x = torch.ones(2)
    watched = weakref.ref(x)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed):
        torch.compile(lambda x: x + 1, backend=fails)(x)
    del x
    assert watched() is None
