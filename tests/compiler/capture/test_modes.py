"""Gradient, inference and autocast modes: inside and around, across breaks, never left behind."""

from __future__ import annotations

import copy

import pytest

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import nn

from .test_interpreter import captured
from .test_tensors import same

BACKENDS = ["eager", "aot_eager"]


def modes():
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"),
    )


def broken_in_inference_mode(x):
    with torch.inference_mode():
        y = x * 2
        print(end="")
        y = y + 1
    return x * 3


def broken_in_no_grad(x):
    with torch.no_grad():
        y = x * 2
        print(end="")
        y = y + 1
    return x * 3 + y


def enabled_again(x):
    with torch.enable_grad():
        return x * 3


def raised_in_no_grad(x):
    try:
        with torch.no_grad():
            y = x * 2
            raise ValueError("v")
    except ValueError:
        return x * y


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("around", [torch.enable_grad, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize(
    "f", [broken_in_inference_mode, broken_in_no_grad, enabled_again, raised_in_no_grad]
)
def test_history_and_modes(f, around, backend):
    x = torch.ones(2, requires_grad=True)
    compiled = torch.compile(f, backend=backend)
    before = modes()
    for context in (torch.enable_grad, around, torch.enable_grad, around):
        with context():
            inside = modes()
            expected, found = f(x), compiled(x)
            assert found.requires_grad == expected.requires_grad
            assert torch.equal(found.detach(), expected.detach())
            assert modes() == inside
        assert modes() == before


def test_a_context_entered_before_is_guarded():
    x = torch.ones(2, requires_grad=True)
    compiled = captured(broken_in_no_grad)
    assert compiled(x).requires_grad
    with torch.no_grad():
        assert not compiled(x).requires_grad
        assert not torch.is_grad_enabled()


def mixed(x, w):
    y = x + 1
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = y @ w
        y = F.linear(y, w)
        with torch.autocast("cpu", enabled=False):
            y = y.float() @ w
    return y, x * 2, x @ w


def mixed_and_broken(x, w):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ w
        print(end="")
        y = F.linear(y, w)
    return y, x @ w


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [mixed, mixed_and_broken])
def test_autocast_inside_and_around(f, backend):
    torch.manual_seed(0)
    x, w = torch.randn(2, 3), torch.randn(3, 2, requires_grad=True)
    compiled = torch.compile(f, backend=backend, fullgraph=f is mixed)
    for enabled in (False, True, False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            pairs = [(g(x, w), w) for g in (f, compiled)]
        for a, b in zip(pairs[0][0], pairs[1][0], strict=True):
            assert a.dtype == b.dtype and torch.equal(a, b)
        sums = [sum(t.float().sum() for t in out) for out, _ in pairs]
        grads = [torch.autograd.grad(total, w)[0] for total in sums]
        # bfloat16 gradients may be added in another order: a unit in its last place
        assert torch.allclose(*grads, rtol=2**-7, atol=2**-7)
        assert not torch.is_autocast_enabled("cpu")


def test_autocast_nesting_is_counted():
    x, w = torch.randn(2, 3), torch.randn(3, 2)
    captured(mixed_and_broken)(x, w)
    assert torch.autocast_increment_nesting() == 1
    assert torch.autocast_decrement_nesting() == 0


def test_other_autocast_dtype_is_another_graph():
    x = torch.randn(3, 3)
    compiled = captured(lambda x: x @ x)
    for dtype in (torch.bfloat16, torch.float16, torch.bfloat16):
        with torch.autocast("cpu", dtype=dtype):
            assert compiled(x).dtype == dtype
    assert compiled(x).dtype == torch.float32
    assert len(compiled._flambeau_config.parts) == 3


def test_training_under_autocast():
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4))
    other = copy.deepcopy(plain)
    compiled = torch.compile(other, backend="aot_eager", fullgraph=True)
    x, y = torch.randn(5, 8), torch.randint(4, (5,))
    for model in (plain, compiled):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
    for p, q in zip(plain.parameters(), other.parameters(), strict=True):
        assert torch.allclose(p.grad, q.grad, rtol=2**-6, atol=2**-8)


def test_out_under_autocast_is_left_to_eager():
    def f(x, out):
        torch.mm(x, x, out=out)
        return out * 2

    x = torch.randn(3, 3)
    compiled = captured(f)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        same(compiled(x, torch.empty(3, 3)), f(x, torch.empty(3, 3)))
