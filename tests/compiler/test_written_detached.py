"""Values with gradients written to a view of memory that has none: the view has a history, what it
lies in has not."""

from __future__ import annotations

import pytest

import flambeau as torch


def copied(a, b):
    d = a.detach()
    d.copy_(b * 2)
    return b * 1, d * b, a * b


def a_part(a, b):
    d = a.detach()[1:]
    d.copy_((b * 2)[1:])
    return d * 3, a * b


def of_a_temporary(a, b):
    a = a * 2
    d = a.detach()
    v = d[0]
    d.mul_(b)
    a.mul_(2)
    return v * 2, a * b


def read_after_the_memory_changed(a, b):
    a = a * 2
    d = a.detach()
    d.copy_(b)
    a.mul_(b)
    return d * 1, a * b


def beside_another(a, b):
    d, w = a.detach(), a.detach()
    d.copy_(b)
    return w * b, d * 1, a + 1


def again_and_again(a, b):
    d = a.detach()
    d.mul_(b)
    d.mul_(b)
    v = d[1:]
    v.mul_(b[1:])
    return d * 3, v, a * b


def returned(a, b):
    d = a.detach()
    d.copy_(b)
    return d, a * b


def the_memory_has_the_history(a, b):
    d = a.detach()
    a.mul_(b)
    return d * b, d, a * b


CASES = [
    copied, a_part, of_a_temporary, read_after_the_memory_changed, beside_another, again_and_again,
    returned, the_memory_has_the_history,
]  # fmt: skip


def seen(f):
    a, leaf = torch.ones(3), torch.arange(1.0, 4.0).requires_grad_()
    results = (*f(a, leaf * 1), a)
    loss = sum((y * (k + 1)).sum() for k, y in enumerate(results) if y.requires_grad)
    (grad,) = torch.autograd.grad(loss, leaf)
    return [(y.requires_grad, y.tolist()) for y in results], grad.tolist()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("f", CASES)
def test_histories(f, backend):
    assert seen(torch.compile(f, backend=backend)) == seen(f)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_view_made_without_gradients_may_not_be_changed_with_them(backend):
    def f(a, b):
        with torch.no_grad():
            v = a[1:]
        v.copy_(b[1:])
        return v * 3, a * b

    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        seen(torch.compile(f, backend=backend))
