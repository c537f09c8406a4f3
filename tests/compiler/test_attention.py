"""Attention in plain operations: where the fused entry takes its place, and where it must not."""

from __future__ import annotations

import math

import pytest

import flambeau as torch
from flambeau import nn
from flambeau._aot import aot, callable_of
from flambeau._trace import trace

F = nn.functional
HEADS = (2, 3, 7, 4)
INF = math.inf


def tensors(shape=HEADS, dtype=torch.float64, grad=True):
    torch.manual_seed(5)
    return [torch.randn(shape, dtype=dtype, requires_grad=grad) for _ in range(3)]


def compiled(f, inputs, dynamic=False):
    """Way of the joint graph, and the targets of its forward and its backward."""
    graph = trace(f, inputs, "captured", dynamic)
    made = aot(graph, [x.requires_grad for x in (*inputs, *graph.attached)])
    targets = [n.target for g in (made.forward, made.backward) if g is not None for n in g.nodes]
    return callable_of(made), targets


def gradients(y, inputs):
    weights = torch.linspace(0.5, 1.5, y.numel(), dtype=y.dtype).view(y.shape)
    return torch.autograd.grad((y * weights).sum(), inputs, allow_unused=True)


def agree(f, inputs, tolerance, dynamic=False):
    """Compiled values and gradients are eager's; the targets."""
    g, targets = compiled(f, inputs, dynamic)
    (got,), wanted = g(*inputs), f(*inputs)
    assert got.stride() == wanted.stride()
    pairs = [(got, wanted)]
    if wanted.requires_grad:
        pairs += zip(gradients(got, inputs), gradients(wanted, inputs), strict=True)
    for a, b in pairs:
        if a is None or b is None:  # eager's None is a gradient of zeros
            assert a is b or not (b if a is None else a).any()
            continue
        assert a.shape == b.shape
        assert torch.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
    return targets


def causal(*shape, dtype=torch.bool):
    return torch.ones(*shape, dtype=dtype).tril()


def scores(q, k):
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def masked(q, k, v):
    hidden = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1)
    return torch.softmax(scores(q, k).masked_fill(hidden, -INF), dim=-1) @ v


def numbers_as_mask(q, k, v):
    hidden = causal(1, 1, 7, 7, dtype=torch.float32) == 0
    return F.softmax((q @ k.mT * 0.3).masked_fill(hidden, -INF), 3) @ v


def folded(q, k, v):
    mask = torch.full((7, 7), -INF, dtype=q.dtype).triu(1)
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    return torch.bmm(torch.softmax(2 * torch.bmm(q, k.transpose(1, 2)) + mask, -1), v)


def heads_beside(q, k, v):
    q, k, v = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v))
    y = F.dropout(masked(q, k, v), 0.0, True)
    return y.transpose(1, 2).reshape(2, 7, 12)


MATCHES = {
    "without mask": lambda q, k, v: torch.softmax(scores(q, k), -1) @ v,
    "without scale": lambda q, k, v: torch.softmax(q @ k.mT, -1) @ v,
    "masked_fill": masked,
    "a mask of numbers": numbers_as_mask,
    "added": folded,
    "zeros filled": lambda q, k, v: (
        torch.softmax(
            scores(q, k) + torch.zeros(7, 7, dtype=q.dtype).masked_fill(~causal(7, 7), -INF), -1
        )
        @ v
    ),
    "where allowed": lambda q, k, v: (
        torch.softmax(torch.where(causal(7, 7), scores(q, k), -INF), -1) @ v
    ),
    "where hidden": lambda q, k, v: (
        torch.softmax(torch.where(causal(7, 7).logical_not(), -INF, scores(q, k)), -1) @ v
    ),
    "heads side by side": heads_beside,
    "twice": lambda q, k, v: masked(masked(q, k, v), k, v),
}


@pytest.mark.parametrize("name", MATCHES)
def test_attention_is_fused(name):
    targets = agree(MATCHES[name], tensors(), 1e-12)
    assert "softmax" not in targets and "bmm" not in targets
    assert targets.count("_attention") == targets.count("_attention_backward") >= 1


def test_of_floats_within_1e_5():
    targets = agree(masked, tensors((2, 4, 130, 32), torch.float32), 1e-5)
    assert "_attention_backward" in targets
    agree(MATCHES["without mask"], tensors((2, 4, 130, 32), torch.float32), 1e-5)


def test_lengths_that_differ_and_sizes_that_vary():
    q = torch.randn(2, 3, 5, 4, dtype=torch.float64)
    k, v = (torch.randn(2, 3, 9, 4, dtype=torch.float64) for _ in range(2))
    for operands in ((q, k, v), (k, q, q)):
        assert "_attention" in agree(masked, operands, 1e-12)
    f, targets = compiled(masked, [x.detach() for x in tensors()], dynamic=True)
    assert "_attention" in targets
    for n in (2, 11):
        x = torch.randn(4, 2, n, 4, dtype=torch.float64)
        assert torch.allclose(f(x, x, x)[0], masked(x, x, x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 2, 7), (3, 1, 2, 7)])
def test_queries_in_columns_give_rows(shape):
    """The kernel's result lies as its queries do; that of the product lies in rows."""
    q, k, v = (x.transpose(-2, -1) for x in tensors(shape, grad=False))
    assert "_attention" in agree(lambda q, k, v: scores(q, k).softmax(-1) @ v, [q, k, v], 1e-12)


def test_the_probabilities_are_not_saved():
    q, k, v = tensors((2, 3, 64, 4))
    made = aot(trace(masked, [q, k, v], "captured", False), [True] * 3)
    saved = made.forward.outputs[made.metadata.results :]
    assert max(math.prod(x.shape) for x in saved) == q.numel()


def with_mask(mask):
    return lambda q, k, v: torch.softmax(scores(q, k).masked_fill(mask(), -INF), -1) @ v


def both(q, k, v):
    p = torch.softmax(scores(q, k), -1)
    return (p @ v) * p.sum()


def scores_seen(q, k, v):
    s = scores(q, k)
    return (torch.softmax(s, -1) @ v) * s.sum()


def constant_weights(q, k, v):
    with torch.no_grad():
        p = torch.softmax(scores(q, k), -1)
    return p @ v


def own_derivative(q, k, v):
    return torch.softmax(scores(q, k).detach() + q.sum() * 0, -1) @ v


HIDDEN = ~causal(7, 7)
ROW_HIDDEN = torch.zeros(7, 7, dtype=torch.bool)
ROW_HIDDEN[2] = True
REFUSED = {
    "probabilities are used": both,
    "scores are used": scores_seen,
    "weights without gradient": constant_weights,
    "scores without gradient": own_derivative,
    "the diagonal is hidden": with_mask(lambda: torch.ones(7, 7, dtype=torch.bool).triu(2)),
    "a lower triangle": with_mask(lambda: torch.ones(7, 7, dtype=torch.bool).tril(-1)),
    "one mask for all rows": with_mask(lambda: ~causal(7, 7)[3:4]),
    "a mask from outside": with_mask(lambda: HIDDEN),
    "a row that sees nothing": with_mask(lambda: ROW_HIDDEN),
    "a finite fill": lambda q, k, v: (
        torch.softmax(scores(q, k).masked_fill(~causal(7, 7), -1e9), -1) @ v
    ),
    "a fill that adds": lambda q, k, v: (
        torch.softmax(scores(q, k) + causal(7, 7).logical_not() * -50.0, -1) @ v
    ),
    "columns": lambda q, k, v: torch.softmax(scores(q, k), -2) @ v,
    "another softmax": lambda q, k, v: F.softplus(scores(q, k)) @ v,
    "a tensor's scale": lambda q, k, v: torch.softmax(q @ k.mT * q.abs().mean(), -1) @ v,
    "a sum between": lambda q, k, v: torch.softmax(scores(q, k) + scores(k, q), -1) @ v,
    "transposed scores": lambda q, k, v: torch.softmax(scores(q, k).mT, -1) @ v,
    "in another dtype": lambda q, k, v: torch.softmax(scores(q, k).float(), -1).double() @ v,
    "doubled weights": lambda q, k, v: 2 * torch.softmax(scores(q, k), -1) @ v,
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_only_looks_like_attention_is_left(name):
    targets = agree(REFUSED[name], tensors(), 1e-12)
    assert "_attention" not in targets and "bmm" in targets


def test_dropped_weights_and_half_formats_are_left():
    def dropped(q, k, v):
        return F.dropout(torch.softmax(scores(q, k), -1), 0.5, True) @ v

    assert "_attention" not in compiled(dropped, tensors())[1]
    assert "_attention" not in compiled(masked, tensors(dtype=torch.bfloat16))[1]


def test_through_the_back_end(tmp_path, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_CACHE", str(tmp_path))
    inputs = tensors(dtype=torch.float32)
    f = torch.compile(masked)
    got, wanted = f(*inputs), masked(*inputs)
    grads = [torch.autograd.grad(y.square().sum(), inputs) for y in (got, wanted)]
    for a, b in zip((got, *grads[0]), (wanted, *grads[1]), strict=True):
        assert torch.allclose(a, b, rtol=1e-5, atol=1e-5)
