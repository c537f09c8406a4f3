"""`functorch`: modules as pure functions, against the modules; the name under the alias."""

from __future__ import annotations

import subprocess
import sys

import pytest

import flambeau as torch
from flambeau import functorch, nn


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def test_make_functional():
    model = net()
    f, params = functorch.make_functional(model)
    x = torch.randn(5, 3)
    assert torch.equal(f(params, x), model(x))
    assert [p.requires_grad for p in params] == [True] * 4
    loss = lambda params: f(params, x).pow(2).sum()  # noqa: E731
    grads = torch.func.grad(loss)(params)
    model(x).pow(2).sum().backward()
    for g, p in zip(grads, model.parameters(), strict=True):
        torch.testing.assert_close(g, p.grad)
    _, still = functorch.make_functional(model, disable_autograd_tracking=True)
    assert not any(p.requires_grad for p in still)
    with pytest.raises(ValueError, match="expected 4 parameters, got 3"):
        f(params[:3], x)


def test_buffers():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).eval()
    with pytest.raises(RuntimeError, match="use make_functional_with_buffers"):
        functorch.make_functional(model)
    f, params, buffers = functorch.make_functional_with_buffers(model)
    x = torch.randn(5, 3)
    assert torch.equal(f(params, buffers, x), model(x))
    changed = (buffers[0] + 1, *buffers[1:])
    assert not torch.equal(f(params, changed, x), model(x))
    with pytest.raises(ValueError, match="expected 3 buffers, got 1"):
        f(params, buffers[:1], x)


def test_ensembles_and_samples():
    models = [net() for _ in range(3)]
    for k, m in enumerate(models):
        nn.init.constant_(m[2].bias, float(k))
    f, params, buffers = functorch.combine_state_for_ensemble(models)
    x = torch.randn(5, 3)
    got = functorch.vmap(f, in_dims=(0, 0, None))(params, buffers, x)
    torch.testing.assert_close(got, torch.stack([m(x) for m in models]))
    f, params = functorch.make_functional(models[0])
    slopes = functorch.grad(lambda p, x: f(p, x).sum())
    each = functorch.vmap(slopes, in_dims=(None, 0))(params, x)
    assert [tuple(g.shape) for g in each] == [(5, 4, 3), (5, 4), (5, 2, 4), (5, 2)]


@pytest.mark.parametrize("chunks", [1, 2, 3, 9])
def test_chunk_vmap(chunks):
    x, y = torch.randn(2, 7), torch.randn(2)
    got = functorch.chunk_vmap(torch.dot, in_dims=(1, None), chunks=chunks)(x, y)
    torch.testing.assert_close(got, x.T @ y)
    with pytest.raises(ValueError, match="at least one chunk"):
        functorch.chunk_vmap(torch.dot, chunks=0)


def test_the_package_under_the_alias():
    program = """
import functorch, torch
from functorch import vmap, vjp, make_functional, jacrev
assert vmap is torch.func.vmap and functorch is torch.functorch
x = torch.tensor([1.0, 2.0])
value, pull = vjp(torch.sin, x)
print(vmap(lambda v: pull(v)[0])(torch.eye(2)).diagonal().allclose(x.cos()), jacrev(torch.sum)(x))
"""
    out = subprocess.run(
        [sys.executable, "-m", "flambeau.as_torch", "-c", program], capture_output=True, text=True
    )
    assert out.stdout == "True tensor([1., 1.])\n", out.stderr
