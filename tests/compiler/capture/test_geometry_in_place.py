"""`unsqueeze_` and its kin: an object of the program shows its memory another way from then on.

Plain calls are the reference: values, sizes, strides, what shares memory, gradients.
"""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import nn
from flambeau._capture.errors import Unsupported


@pytest.fixture(autouse=True)
def _fresh():
    torch.compiler.reset()


def chain(x):
    y = x * 2
    z = y.unsqueeze_(0).transpose_(1, 2)
    y.swapaxes_(0, 2).swapdims_(1, 2)
    return y, z is y, y.squeeze_(1), y.squeeze_()


def of_a_view(x):
    row = x[0].unsqueeze_(-1)
    row.mul_(2)
    return row, x


def seen_by_views(x):
    a = torch.zeros(2, 3)
    flat = a.view(-1)
    a.t_()
    a.add_(x[0, 0])
    flat[1] = 7.0
    a[2, 1] += 1
    return a, flat


def by_strides(x):
    y = x + 1
    y.as_strided_((2, 2), (1, 4), 1)
    return y.mul_(3), y.stride()


def on_both_sides_of_a_branch(x):
    y = x + 1
    if y.ndim == 2:
        y.unsqueeze_(0)
    return y.sum(0) if y.ndim == 3 else y


PROGRAMS = [chain, of_a_view, seen_by_views, by_strides, on_both_sides_of_a_branch]


def facts(result):
    for r in result if isinstance(result, tuple) else (result,):
        if isinstance(r, torch.Tensor):
            yield r.tolist(), tuple(r.shape), r.stride()
        else:
            yield r


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_as_plain_calls(f, backend):
    x = torch.arange(12.0).view(3, 4)
    expected = list(facts(f(x.clone())))
    compiled = torch.compile(f, backend=backend, fullgraph=True)
    assert list(facts(compiled(x.clone()))) == expected
    assert list(facts(compiled(x.clone()))) == expected


def test_gradients_pass_through():
    net = nn.Linear(4, 4)

    def f(x):
        y = net(x)
        y.unsqueeze_(1)
        y.transpose_(1, 2)
        return (y * y).sum()

    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    f(x).backward()
    expected = net.weight.grad.clone()
    net.zero_grad()
    torch.compile(f, fullgraph=True)(x).backward()
    torch.testing.assert_close(net.weight.grad, expected)


def test_an_input_keeps_its_object():
    def f(x):
        x.unsqueeze_(0)
        return x + 1

    x = torch.ones(3)
    assert torch.compile(f)(x).shape == (1, 3) and x.shape == (1, 3)
    with pytest.raises(Unsupported, match=r"unsqueeze_\(\): not traced on a tensor.*from outside"):
        torch.compile(f, fullgraph=True)(torch.ones(3))
