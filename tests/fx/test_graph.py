"""Graphs that programs trace, change and run; plain calls are the reference."""

from __future__ import annotations

import copy
import operator

import pytest

import flambeau as torch
from flambeau import fx, nn


def test_tracing_a_module():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    traced = fx.symbolic_trace(model)
    x = torch.randn(2, 2)
    assert torch.equal(traced(x), model(x)) and torch.equal(fx.Interpreter(traced).run(x), model(x))
    assert [n.target for n in traced.graph.nodes if n.op == "call_module"] == ["0", "1"]
    made = copy.deepcopy(traced)
    assert made.code == traced.code and torch.equal(made(x), model(x))


def test_changing_a_graph():
    traced = fx.symbolic_trace(lambda x: torch.relu(x) + torch.sin(x))
    graph = traced.graph
    sine = next(n for n in graph.nodes if n.target is torch.sin)
    with graph.inserting_after(sine):
        twice = graph.call_function(operator.mul, (sine, 2))
    sine.replace_all_uses_with(twice, lambda user: user is not twice)
    graph.lint()
    traced.recompile()
    x = torch.tensor([1.0, -2.0])
    assert torch.allclose(traced(x), x.relu() + 2 * x.sin())
    with pytest.raises(RuntimeError, match="still had 1 users"):
        graph.erase_node(sine)
    sine.args = (twice,)
    with pytest.raises(RuntimeError, match="used before it has been defined"):
        graph.lint()


def test_what_cannot_be_traced():
    with pytest.raises(fx.TraceError, match="control flow"):
        fx.symbolic_trace(lambda x: x if x.sum() > 0 else -x)
    with pytest.raises(RuntimeError, match="got int"):
        fx.wrap(3)


def test_a_graph_written_by_proxies_holds_calls_of_contractions_whole() -> None:
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"), fx.proxy.GraphAppendingTracer(graph))
    y = torch.tensordot(x, torch.einsum("ij,kj->ik", [x, x]), dims=([0], [0]))
    graph.output(y.node)
    called = [n.target for n in graph.nodes if n.op == "call_function"]
    assert called == [torch.einsum, torch.tensordot]
    v = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(fx.GraphModule({}, graph)(v), v.T @ (v @ v.T))
