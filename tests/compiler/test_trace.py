"""Traces: a graph does what the function did, at both levels, with sizes as symbols."""

from __future__ import annotations

import pytest
from programs import generate

import flambeau as torch
from flambeau import nn
from flambeau._ir.graph import show
from flambeau._ir.graph_parse import parse
from flambeau._ir.graph_run import run
from flambeau._ir.graph_verify import verify
from flambeau._trace import trace
from flambeau._trace.meanings import DataDependent

F = nn.functional


def flat(x):
    return [t for item in x for t in flat(item)] if isinstance(x, (list, tuple)) else [x]


def same(a, b, exact=True):
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert x.dtype is y.dtype and x.shape == y.shape
        if exact:
            assert torch.equal(x, y) or bool((x.isnan() == y.isnan()).all())
        else:
            assert torch.allclose(x, y, rtol=1e-12, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("level", ["captured", "primitive"])
@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed, level):
    program = generate(seed)
    f = program.function()
    graph = verify(trace(lambda *xs: f(*[x.clone() for x in xs]), program.inputs(), level), level)
    assert show(parse(show(graph))) == show(graph)
    wanted = f(*program.inputs())
    same(flat(run(graph, program.inputs())), flat(wanted), exact=False)


@pytest.mark.parametrize("seed", range(60, 90))
def test_random_programs_with_symbolic_sizes(seed):
    program = generate(seed)
    f = program.function()
    graph = trace(lambda *xs: f(*[x.clone() for x in xs]), program.inputs(), "primitive", True)
    verify(graph, "primitive")
    hints = graph.env.hints()
    assert all(g.holds(hints) for g in graph.env.conditions())
    same(flat(run(graph, program.inputs())), flat(f(*program.inputs())), exact=False)


def test_another_size_fits_the_guards():
    layer = nn.Linear(4, 3)

    def f(x):
        y = F.relu(layer(x))
        return y.softmax(-1) + x.mean(0)[:3], y.reshape(-1), y.shape[0] * 2

    graph = trace(f, [torch.randn(8, 4)], "primitive", {0: [0]})
    assert [str(g) for g in graph.env.guards] == []
    x = torch.randn(5, 4)
    got = run(graph, [x])
    same(got[:2], f(x)[:2])
    assert got[2] == 10


def test_modules():
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                          nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 16, 10)).eval()  # fmt: skip
    x = torch.randn(2, 3, 8, 8)
    for level in ("captured", "primitive"):
        graph = trace(model, [x], level)
        same(run(graph, [x]), [model(x)])


def test_in_place_and_views():
    def g(x):
        y = x * 2
        y[0] = 1.0
        y[:, 1:].mul_(3)
        z = y.t()
        z.add_(1)
        y[torch.tensor([0, 1]), torch.tensor([1, 0])] = 7.0
        return y, z

    x = torch.randn(3, 4)
    for level in ("captured", "primitive"):
        graph = verify(trace(g, [x], level), level)
        same(run(graph, [x.clone()]), g(x))


def test_factories_and_python_values():
    def f(x):
        n = x.size(0)
        a = torch.zeros(n, 2) + torch.arange(n, dtype=torch.float32)[:, None]
        b = torch.tensor([1.0, 2.0]) + x.new_ones(2) + torch.full((), 3.0)
        c = torch.stack([x[0], x[-1]]).to(torch.float64).float()
        return a + b, c.T, x.numel(), torch.eye(n)

    x = torch.randn(4, 2)
    graph = trace(f, [x], "captured", {0: [0]})
    y = torch.randn(6, 2)
    got, wanted = run(graph, [y]), f(y)
    same([*got[:2], got[3]], [*wanted[:2], wanted[3]])
    assert got[2] == 12


@pytest.mark.parametrize("level", ["captured", "primitive"])
def test_what_a_body_makes_is_where_its_tensors_are(level):
    def f(x):
        found = x.topk(2), x.mode(), x.cummax(0), x.kthvalue(2)
        return *found, torch.trapezoid(x[:1], dim=0), torch.mvlgamma(x + 5, 2)

    x = torch.ones(4, 5, device="meta")
    graph = trace(f, [x], level)
    assert [str(v.type.device) for v in flat(graph.outputs)] == ["meta"] * 10
    assert {str(v.type.device) for v in graph.values()} == {"meta"}
    assert [str(t.device) for t in flat(f(x))] == ["meta"] * 10


def test_values_are_refused():
    with pytest.raises(DataDependent):
        trace(lambda x: x if x.sum() > 0 else -x, [torch.ones(2)])


def test_no_grad_and_detach_are_kept():
    def f(x):
        with torch.no_grad():
            y = x * 2
        return (x * y.detach() + x.detach()).sum()

    x = torch.randn(3).requires_grad_()
    graph = trace(f, [x])
    assert "no_grad mul" in str(graph) and "no_grad alias" in str(graph)
    (got,) = run(graph, [x])
    got.backward()
    assert torch.equal(x.grad, 2 * x.detach())


def test_errors_are_eagers():
    with pytest.raises(RuntimeError, match="must match the size"):
        trace(lambda x: x + torch.ones(5), [torch.ones(3)])
    with pytest.raises(IndexError, match="out of range"):
        trace(lambda x: x.sum(7), [torch.ones(3)])
