"""`replace_pattern`: what is found, what is left alone, and that the graph still computes."""

import pytest

import flambeau as torch
from flambeau import fx, nn
from flambeau.fx.subgraph_rewriter import replace_pattern_with_filters


def calls(gm):
    return [getattr(n.target, "__name__", n.target) for n in gm.graph.nodes if "call" in n.op]


def test_every_place_is_replaced():
    def f(x, y):
        a = torch.relu(x + y)
        b = torch.relu(a + x)
        return a * b

    gm = fx.symbolic_trace(f)
    found = fx.replace_pattern(
        gm, lambda a, b: torch.relu(a + b), lambda a, b: torch.sigmoid(a - b)
    )
    assert len(found) == 2 and calls(gm) == ["sub", "sigmoid", "sub", "sigmoid", "mul"]
    x, y = torch.randn(4), torch.randn(4)
    a = torch.sigmoid(x - y)
    assert torch.allclose(gm(x, y), a * torch.sigmoid(a - x))
    assert all(match.anchor.name.startswith("relu") for match in found)


def test_matches_that_follow_one_another():
    gm = fx.symbolic_trace(lambda x: torch.neg(torch.neg(torch.neg(torch.neg(x)))))
    found = fx.replace_pattern(gm, lambda x: torch.neg(torch.neg(x)), lambda x: torch.exp(x))
    x = torch.rand(3)
    assert len(found) == 2 and torch.allclose(gm(x), x.exp().exp())


def test_what_is_used_elsewhere_is_left_alone():
    def f(x):
        inner = torch.neg(x)
        return torch.relu(inner) + inner

    gm = fx.symbolic_trace(f)
    assert fx.replace_pattern(gm, lambda x: torch.relu(torch.neg(x)), lambda x: torch.exp(x)) == []
    assert calls(gm) == ["neg", "relu", "add"]


def test_literals_and_one_name_twice():
    gm = fx.symbolic_trace(lambda x, y: (x * 2 + x * 3, x + x, x + y))
    assert len(fx.replace_pattern(gm, lambda x: x * 2, lambda x: x + x)) == 1
    assert fx.replace_pattern(gm, lambda x: x * 5, lambda x: x) == []
    found = fx.replace_pattern(gm, lambda x: x + x, lambda x: x - 7)
    x, y = torch.rand(2), torch.rand(2)
    assert len(found) == 2
    assert torch.allclose(torch.stack(gm(x, y)), torch.stack((x - 7 + x * 3, x - 7, x + y)))
    gm = fx.symbolic_trace(lambda x: x * 2 + x * 3)
    negate = (lambda x: x * 1), (lambda x: torch.neg(x))
    found = replace_pattern_with_filters(gm, *negate, ignore_literals=True)
    assert len(found) == 2 and torch.allclose(gm(x), -2 * x)
    assert all(len(each.replacements) == 1 for each in found)


def test_several_results_and_filters():
    gm = fx.symbolic_trace(lambda x: (lambda s, c: s * c + s)(torch.sin(x), torch.cos(x)))
    swap = (lambda x: (torch.sin(x), torch.cos(x))), (lambda x: (torch.cos(x), torch.sin(x)))
    assert replace_pattern_with_filters(gm, *swap, match_filters=[lambda *a: False]) == []
    assert len(fx.replace_pattern(gm, *swap)) == 1
    x = torch.rand(3)
    assert torch.allclose(gm(x), x.cos() * x.sin() + x.cos())


def test_modules_and_methods():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = nn.ReLU()

        def forward(self, x):
            return self.act(x).clamp(min=0.5)

    class New(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Sigmoid()
            self.shift = nn.Parameter(torch.ones(()))

        def forward(self, x):
            return self.gate(x) + self.shift

    gm = fx.symbolic_trace(Net())
    pattern = fx.symbolic_trace(Net())
    assert len(fx.replace_pattern(gm, pattern, fx.symbolic_trace(New()))) == 1
    assert torch.allclose(gm(torch.zeros(2)), torch.full((2,), 1.5))
    assert len(list(gm.parameters())) == 1


def test_refused():
    gm = fx.symbolic_trace(lambda x: x + 1)
    with pytest.raises(ValueError, match="expected a replacement with 1 parameters and 1 results"):
        fx.replace_pattern(gm, lambda x: x + 1, lambda x, y: x + y)
    with pytest.raises(ValueError, match="expected a pattern that computes what it returns"):
        fx.replace_pattern(gm, lambda x: x, lambda x: x)
