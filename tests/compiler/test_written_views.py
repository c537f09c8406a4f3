"""Views that are changed where gradients must not notice, or that hold an element twice."""

from __future__ import annotations

import numpy as np
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


def detached_windows(b):
    b.unfold(1, 2, 1).detach()[:1].narrow(2, 0, 1).mul_(0.5)
    return (b.sin(),)


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
        detached_windows,
    ],
)  # fmt: skip
def test_changes_that_leave_no_history(f, backend):
    facts, values = seen(f)
    got_facts, got = seen(torch.compile(f, backend=backend))
    assert got_facts == facts
    for x, y in zip(got, values, strict=True):
        assert torch.allclose(x, y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("f", [detached_argument, detached_windows])
def test_leaves_may_be_changed_where_they_are_detached(f, backend):
    leaves = [torch.arange(6.0, dtype=torch.float64).reshape(2, 3).requires_grad_() for _ in "ab"]
    for g, leaf in zip((torch.compile(f, backend=backend), f), leaves, strict=True):
        g(leaf)[0].sum().backward()
    got, want = leaves
    assert got.grad_fn is None and torch.equal(got, want)
    assert torch.allclose(got.grad, want.grad, rtol=1e-12, atol=1e-12)


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


def windows_that_overlap(b):
    t = b.unfold(1, 2, 1)
    t.masked_fill_(t > 2.5, 0.25)
    return (t,)


def test_windows_that_overlap_are_changed_as_eager_does():
    for dynamic in (False, True):
        facts, values = seen(windows_that_overlap)
        got_facts, got = seen(torch.compile(windows_that_overlap, dynamic=dynamic))
        assert got_facts == facts
        for x, y in zip(got, values, strict=True):
            assert torch.equal(x, y)


def test_an_argument_that_repeats_its_elements():
    def f(x):
        x.select(0, 0).mul_(2)
        return x + 1

    def call(function):
        x = torch.arange(3.0).expand(4, 3)
        return function(x), x

    for got, want in zip(call(torch.compile(f)), call(f), strict=True):
        assert torch.equal(got, want)


def test_a_sign_has_a_gradient_of_zeros():
    """copysign is piecewise constant in it."""
    x, s = torch.rand(3), torch.rand(3, requires_grad=True)
    f = torch.compile(lambda x, s: (torch.copysign(x, s), torch.copysign(s, x)))
    first, second = f(x, s)
    assert first.requires_grad
    assert torch.autograd.grad((first * 3 + second).sum(), s)[0].tolist() == [1, 1, 1]


def test_rows_of_memory_that_was_changed_through_a_view():
    def f(x):
        turned = x.transpose(0, 2)
        turned.transpose(0, 2).add_(1)
        return x.view(-1, 1) * 2, turned.neg()

    x = torch.arange(24.0).view(2, 3, 4)
    got = torch.compile(f)(x.clone())
    assert torch.equal(got[0], ((x + 1) * 2).reshape(-1, 1))
    assert torch.equal(got[1], -(x + 1).permute(2, 1, 0))


def test_views_of_computed_values_have_eagers_strides():
    def f(x):
        return (x * 2).rot90().unfold(0, 2, 1)

    x = torch.rand(3, 7, 6)[..., :1]
    for dynamic in (False, True):
        got = torch.compile(f, dynamic=dynamic)(x)
        assert got.stride() == f(x).stride() and torch.equal(got, f(x))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_results_of_a_graph_may_be_changed_after_it(backend):
    def f(x):
        y = (x * 2).squeeze()
        y.tolist()  # ends the graph
        y.view(-1).add_(1)
        return y

    x = torch.rand(3, 1, requires_grad=True)
    got, want = torch.compile(f, backend=backend)(x), f(x)
    assert torch.equal(got, want)
    (g,) = torch.autograd.grad(got.sum(), x)
    assert torch.equal(g, torch.full_like(x, 2.0))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x * 2)[:, ::2].as_strided((4,), (1,)),
        lambda x: (x * 2).t().as_strided((4,), (1,)),
        lambda x: (x * 2)[1:].as_strided((3,), (1,)),
        lambda x: (x * 2).flip(0)[..., 1:].mT.as_strided((2, 2), (1, 2)) + 1,
    ],
)
@pytest.mark.parametrize("dynamic", [False, True])
def test_strides_over_the_memory_of_a_computed_view(f, dynamic):
    x = torch.arange(12.0).reshape(3, 4)
    got = torch.compile(f, dynamic=dynamic)(x)
    assert torch.equal(got, f(x)) and got.stride() == f(x).stride()


def test_memory_of_gaps_after_a_change():
    def f(x):
        y = x.as_strided((3,), (1,))
        x.clamp_(-0.5, 0.5)
        return (y + 1,)

    def call(function):
        x = torch.arange(12.0).reshape(3, 4)[:, ::2]
        return *function(x), x

    for got, want in zip(call(torch.compile(f)), call(f), strict=True):
        assert torch.equal(got, want)


def real_parts(z):
    z.real.flatten().add_(1)
    z.imag.add_(z.real * 2)
    return z * 2


def pairs_of_numbers(z):
    torch.view_as_real(z)[..., 1].fill_(3)
    return z * 2j


def bits(x):
    x.view(torch.int32)[:, 1:].bitwise_and_(-2)
    return x * x


def bytes_of_numbers(x):
    x.view(torch.uint8)[..., ::2].fill_(0)
    return x * x


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("wants", [False, True])
@pytest.mark.parametrize("f", [real_parts, pairs_of_numbers, bits, bytes_of_numbers])
def test_views_of_another_dtype(f, wants, dynamic, backend):
    compiled = torch.compile(f, dynamic=dynamic, backend=backend)
    for rows in (1, 3):
        leaf = torch.arange(1.0, 4.0 * rows + 1).reshape(rows, 4).requires_grad_(wants)

        def called(g, leaf=leaf):
            x = torch.complex(leaf, leaf.sin()) if f in (real_parts, pairs_of_numbers) else leaf * 1
            y = g(x)
            grads = torch.autograd.grad(torch.view_as_real(y + 0j).sum(), leaf) if wants else ()
            assert y.requires_grad == x.requires_grad == wants
            return y.detach(), x.detach(), *grads

        for got, want in zip(called(compiled), called(f), strict=True):
            assert torch.allclose(got, want, rtol=1e-6)


def test_numbers_in_pairs_are_changed_as_complex_ones():
    def f(x):
        torch.view_as_complex(x).mul_(2j)
        return x + 1

    x, y = torch.ones(3, 2), torch.ones(3, 2)
    assert torch.equal(torch.compile(f)(x), f(y)) and torch.equal(x, y)


@pytest.mark.parametrize("p", [0.5, 1.0, 0.0])
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_dropout_in_place_drops_and_writes(p, backend):
    def f(x):
        y = x * 2
        z = torch.nn.functional.dropout(y, p, True, inplace=True)
        return y, z

    x = torch.ones(64, requires_grad=True)
    y, z = torch.compile(f, backend=backend)(x)
    z.sum().backward()
    dropped = y.detach().numpy() == 0
    np.testing.assert_array_equal(z.detach().numpy(), y.detach().numpy())
    scale = 0.0 if p == 1 else 2 / (1 - p)
    np.testing.assert_array_equal(y.detach().numpy(), np.where(dropped, 0, scale))
    np.testing.assert_array_equal(x.grad.numpy(), np.where(dropped, 0, scale))
    assert dropped.all() if p == 1 else 0 < dropped.sum() < 64 if p else not dropped.any()
