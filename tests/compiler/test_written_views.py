"""Views that are changed where gradients must not notice, or that hold an element twice."""

from __future__ import annotations

import pytest

import flambeau as torch


def without_gradients(b):
    a = b * 2
    v = a[0]
    with torch.no_grad():
        v.mul_(0.5)
    return v.sin(), a.cos()


def detached_view_of_a_result(b):
    a = b * 2
    v = a[0]
    v.detach().mul_(0.5)
    return v.sin(), a.cos()


def detached_argument(b):
    b.detach()[0].mul_(0.5)
    return (b.sin(),)


def detached_view_of_an_argument(b):
    v = b[0]
    d = v.detach()
    d.mul_(0.5)
    return v.sin(), d


def detached_view_of_what_was_put_together(b):
    t = torch.zeros(2, 3, dtype=b.dtype)
    t[0].copy_(b[1])
    t.detach().mul_(0.5)
    return (t,)


def elements_that_repeat(b):
    t = b.detach()[:1].unsqueeze(0).expand(3, 1, 3)
    t.zero_()
    return t, b * 2


def seen(f):
    leaf = torch.arange(6.0, dtype=torch.float64).reshape(2, 3).requires_grad_()
    b = leaf * 1
    results = f(b)
    loss = sum((r * torch.arange(1, r.shape[-1] + 1)).sum() for r in results if r.requires_grad)
    (grad,) = torch.autograd.grad(loss, leaf)
    facts = [(r.requires_grad, r.stride()) for r in results]
    return facts, [*(r.detach() for r in results), b.detach(), grad]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize(
    "f",
    [
        without_gradients, detached_view_of_a_result, detached_argument,
        detached_view_of_an_argument, detached_view_of_what_was_put_together, elements_that_repeat,
    ],
)  # fmt: skip
def test_changes_that_leave_no_history(f, backend):
    facts, values = seen(f)
    got_facts, got = seen(torch.compile(f, backend=backend))
    assert got_facts == facts
    for x, y in zip(got, values, strict=True):
        assert torch.allclose(x, y, rtol=1e-12, atol=1e-12)


def gradients_through_a_detached_view(b):
    b.detach().mul_(b.sum() * 0 + 2)
    return (b * 2,)


def memory_in_gaps(b):
    b = b[:, ::2]
    b.detach().as_strided((4,), (1,)).add_(1)
    return (b * 2,)


@pytest.mark.parametrize("f", [gradients_through_a_detached_view, memory_in_gaps])
def test_what_is_not_functional_runs_as_it_was_captured(f, capfd, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_LOGS", "graph_breaks")
    facts, values = seen(f)
    got_facts, got = seen(torch.compile(f, fullgraph=True))
    assert got_facts == facts
    for x, y in zip(got, values, strict=True):
        assert torch.equal(x, y)
    assert "a graph runs uncompiled" in capfd.readouterr().err
