"""Captured graphs as `GraphModule`s: the contract of back ends that PyTorch's guide describes."""

from __future__ import annotations

import operator

import pytest

import flambeau as torch
from flambeau import nn
from flambeau._dynamo.backends.common import aot_autograd, make_boxed_func


@pytest.fixture(autouse=True)
def _fresh():
    torch.compiler.reset()


def body(x, y):
    a = torch.sin(x)
    with torch.no_grad():
        b = a * 2
    p, q = y.split(2)
    return torch.relu(a + b) * y.sum(0, keepdim=True), p.add_(1), x.shape[0] * 2


def close(a, b):
    return all(
        torch.allclose(torch.as_tensor(x), torch.as_tensor(y)) for x, y in zip(a, b, strict=True)
    )


def test_what_a_back_end_reads(capsys):
    seen = []

    def back_end(gm, example_inputs):
        gm.graph.print_tabular()
        gm.graph.lint()
        for n in gm.graph.nodes:
            seen.append((n.op, n.name, n.target, n.args, n.kwargs, list(n.users), n.meta))
        assert [x.shape for x in example_inputs] == [(4, 3), (4, 3)]
        return gm.forward

    x, y = torch.randn(4, 3), torch.randn(4, 3)
    assert close(torch.compile(body, backend=back_end)(x, y.clone()), body(x, y.clone()))
    printed = capsys.readouterr().out
    assert printed.startswith("opcode") and "call_function" in printed and "<torch.sin>" in printed
    ops = [s[0] for s in seen]
    assert ops[:2] == ["placeholder"] * 2 and ops[-1] == "output"
    assert [s[1] for s in seen[:3]] == ["l_x_", "l_y_", "sin"]
    sin = seen[2]
    assert sin[2] is torch.sin and sin[3][0].name == "l_x_" and [u.name for u in sin[5]][0] == "mul"
    assert sin[6]["val"].shape == (4, 3) and sin[6]["val"].device.type == "meta"
    assert "test_captured.py" in sin[6]["stack_trace"]


def test_generated_code_is_readable():
    codes = []
    torch.compile(
        lambda x, k: torch.relu(x) + 1, backend=lambda gm, ex: codes.append(gm.code) or gm
    )(torch.ones(2), 3)
    assert [line.strip() for line in codes[0].splitlines() if "#" not in line] == [
        "def forward(self, l_x_):",
        "relu = torch.relu(l_x_);  l_x_ = None",
        "add = torch.add(relu, 1);  relu = None",
        "return (add,)",
    ]


@pytest.mark.parametrize("dynamic", [None, True])
def test_sizes_that_vary(dynamic):
    def f(x, k):
        n, m = x.shape
        return x.reshape(m, n)[: max(n // 2, 1)] * (k + n) / (n - 0.5), n * m % 7

    compiled = torch.compile(f, backend=lambda gm, ex: gm.forward, dynamic=dynamic, fullgraph=True)
    for n, m, k in ((3, 4, 2), (5, 4, 3), (6, 7, 4), (9, 2, 8)):
        x = torch.randn(n, m)
        assert close(compiled(x, k), f(x, k))


def test_a_graph_that_is_changed():
    def adds_to_subtractions(gm, example_inputs):
        for n in gm.graph.nodes:
            if n.op == "call_function" and n.target is torch.add:
                n.target = torch.sub
        with gm.graph.inserting_before(gm.graph.output_node()):
            last = gm.graph.output_node().args[0][0]
            negated = gm.graph.call_function(operator.neg, (last,))
        last.replace_all_uses_with(negated, lambda user: user is not negated)
        gm.graph.lint()
        gm.recompile()
        return gm.forward

    f = torch.compile(lambda x: torch.relu(x) + 1, backend=adds_to_subtractions)
    assert f(torch.tensor([3.0])).tolist() == [-2.0]


@pytest.mark.parametrize("name", ["eager", "aot_eager", "inductor"])
def test_a_changed_graph_given_to_another_back_end(name):
    def changes(gm, example_inputs):
        for n in gm.graph.nodes:
            if n.target is torch.relu:
                n.target = torch.sin
        gm.recompile()
        return torch._dynamo.lookup_backend(name)(gm, example_inputs)

    x = torch.randn(3, requires_grad=True)
    out = torch.compile(lambda x: torch.relu(x) * 2, backend=changes)(x)
    out.sum().backward()
    assert torch.allclose(out, x.sin() * 2) and torch.allclose(x.grad, x.detach().cos() * 2)


def test_training_through_a_module():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.GELU(), nn.Linear(4, 1))
    x = torch.randn(5, 3)
    gradients = []
    for call in (model, torch.compile(model, backend=lambda gm, ex: gm.forward, fullgraph=True)):
        model.zero_grad()
        call(x).square().mean().backward()
        gradients.append([p.grad.clone() for p in model.parameters()])
    assert close(*gradients)


def test_forward_and_backward_graphs():
    codes = []

    def compiler(gm, example_inputs):
        assert all(x is None or x.device.type == "meta" for x in example_inputs)
        codes.append(gm.code)
        return make_boxed_func(gm.forward)

    x = torch.randn(4, requires_grad=True)
    f = torch.compile(lambda x: (x.sin() * x).sum(), backend=aot_autograd(fw_compiler=compiler))
    f(x).backward()
    assert torch.allclose(x.grad, (x.cos() * x + x.sin()).detach())
    assert len(codes) == 2 and "torch.sin" in codes[0] and "torch.mul" in codes[1]


def test_boxed_and_registered():
    @torch._dynamo.register_backend(name="boxed_in_test")
    def back_end(gm, example_inputs):
        def call(args):
            (x,) = args
            args.clear()
            return gm.forward(x)

        call._boxed_call = True
        return call

    assert "boxed_in_test" in torch._dynamo.list_backends()
    assert torch._dynamo.lookup_backend("boxed_in_test") is back_end
    assert torch.compile(lambda x: x + 1, backend="boxed_in_test")(torch.ones(1)).item() == 2


def test_the_native_path_does_not_go_through_it():
    import subprocess
    import sys

    program = (
        "import sys, flambeau as t; t.compile(lambda x: x.sin() + 1)(t.ones(2)); "
        "assert 'flambeau.fx' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
