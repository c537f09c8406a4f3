"""What a compiled function keeps for backward is not what its caller may change meanwhile."""

from __future__ import annotations

import pytest

import flambeau as torch

F = torch.nn.functional


def bias_before_tanh(x, b):
    return ((x * 2 + b).tanh(),)


def result_that_eager_keeps_not(x, b):
    y = x.sin() + b
    return y, (y * 3).sigmoid() + y.detach()


def view_that_eager_keeps_not(x, b):
    y = x * 2 + b
    return y.t(), F.gelu(y + 1) * y.detach().sum()


def same_value_twice(x, b):
    """Eager keeps the second sine alone."""
    return x.sin(), x.sin() * b


def kept_by_a_rule_for_the_other(x, b):
    return ((x * b).exp() * 0.5,)


def norm_with_a_bias(x, b):
    return (torch.relu(F.batch_norm(x, None, None, None, b, training=True)),)


FUNCTIONS = [
    bias_before_tanh, result_that_eager_keeps_not, view_that_eager_keeps_not, same_value_twice,
    kept_by_a_rule_for_the_other, norm_with_a_bias,
]  # fmt: skip


def gradients(f, changed):
    """Gradients when argument or result number `changed` is changed before backward; or None."""
    torch.manual_seed(0)
    leaves = [
        torch.rand(5, 3, dtype=torch.float64, requires_grad=True),
        torch.rand(3, dtype=torch.float64, requires_grad=True),
    ]
    args = [x * 1 for x in leaves]
    results = f(*args)
    loss = sum(
        (r * torch.linspace(0, 1, r.numel(), dtype=r.dtype).view(r.shape)).sum() for r in results
    )
    with torch.no_grad():
        [*args, *results][changed].fill_(0.7)
    try:
        return torch.autograd.grad(loss, leaves)
    except RuntimeError as e:
        assert "modified by an inplace operation" in str(e)
        return None


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_gradients_are_eagers_when_eager_does_not_mind(f, backend, dynamic):
    compiled = torch.compile(f, backend=backend, dynamic=dynamic)
    minded = 0
    for changed in range(2 + len(f(torch.rand(5, 3), torch.rand(3)))):
        want = gradients(f, changed)
        minded += want is None
        if want is not None:
            for g, w in zip(gradients(compiled, changed), want, strict=True):
                assert torch.allclose(g, w, rtol=1e-12, atol=1e-12)
    assert minded < changed + 1


def test_what_eager_refuses_is_refused():
    """A change of what both keep is no silent error."""

    def f(x, b):
        return (x.sin(), b * 2)

    assert gradients(f, 0) is None
    assert gradients(torch.compile(f), 0) is None
