"""Hooks around the call, forward and backward, of one module and of all."""

import warnings

import numpy as np
import pytest

import flambeau as fb
from flambeau import nn
from flambeau.nn.modules import module as global_hooks


def same(got, wanted):
    """Equal tensors, or tuples of them, up to rounding."""
    if isinstance(got, tuple):
        for g, w in zip(got, wanted, strict=True):
            same(g, w)
    else:
        np.testing.assert_allclose(
            got.detach().numpy(), wanted.detach().numpy(), rtol=1e-6, atol=1e-6
        )


def test_unhooked_modules_keep_no_hook_dictionaries():
    layer = nn.Identity()
    layer(1)
    assert not layer._hooked and "_forward_hooks" not in layer.__dict__
    layer._forward_hooks[0] = lambda module, args, output: output + 1  # written to directly
    assert layer(1) == 2


def test_forward_hooks_run_in_order_and_replace():
    layer = nn.Identity()
    log = []
    layer.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    layer.register_forward_pre_hook(lambda m, args: args[0] + 1)
    layer.register_forward_hook(lambda m, args, out: log.append((args, out)))
    last = layer.register_forward_hook(lambda m, args, out: out * 10)
    layer.register_forward_hook(lambda m, args, out: log.append("first"), prepend=True)
    assert layer(3) == 70
    assert log == ["first", ((7,), 7)]
    last.remove()
    assert layer(3) == 7


def test_hooks_with_kwargs():
    class Add(nn.Module):
        def forward(self, a, *, b=0):
            return a + b

    layer = Add()
    layer.register_forward_pre_hook(lambda m, a, k: (a, {"b": k["b"] + 1}), with_kwargs=True)
    layer.register_forward_hook(lambda m, a, k, out: (out, k), with_kwargs=True)
    assert layer(1, b=2) == (4, {"b": 3})
    layer.register_forward_pre_hook(lambda m, a, k: 5, with_kwargs=True)
    with pytest.raises(RuntimeError, match="forward pre-hook must return None or a tuple"):
        layer(1, b=2)


def test_always_called_hooks_run_after_a_failure():
    class Fails(nn.Module):
        def forward(self):
            raise KeyError("x")

    layer, log = Fails(), []
    layer.register_forward_hook(lambda m, a, out: log.append(out), always_call=True)
    layer.register_forward_hook(lambda m, a, out: log.append("not this"))
    with pytest.raises(KeyError):
        layer()
    assert log == [None]

    def broken(m, a, out):
        raise ValueError("hook")

    layer.register_forward_hook(broken, always_call=True)
    with pytest.warns(UserWarning, match="raised an exception that was silenced"):
        with pytest.raises(KeyError):
            layer()


def test_full_backward_hooks_see_and_replace_gradients():
    layer = nn.Linear(3, 2, bias=False)
    log = []

    def hook(module, grad_input, grad_output):
        log.append((grad_input[0].clone(), grad_output[0].clone()))
        return (grad_input[0] * 10,)

    layer.register_full_backward_hook(hook)
    layer.register_full_backward_pre_hook(lambda m, grad_output: (grad_output[0] * 2,))
    x = fb.ones(1, 3, requires_grad=True)
    layer(x).sum().backward()
    columns = layer.weight.detach().sum(0, keepdim=True) * 2
    same(log[0][0], columns)
    assert log[0][1].tolist() == [[2, 2]]
    same(x.grad, columns * 10)
    assert layer.weight.grad.tolist() == [[2, 2, 2], [2, 2, 2]]


def test_full_backward_hook_without_input_gradients():
    layer = nn.Linear(2, 1)
    log = []
    layer.register_full_backward_hook(lambda m, gi, go: log.append((gi, go[0].tolist())))
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        layer(fb.ones(1, 2)).sum().backward()
    assert log == [((None,), [[1.0]])]


def test_backward_hook_of_wrong_length():
    layer = nn.Linear(2, 1)
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    out = layer(fb.ones(1, 2, requires_grad=True)).sum()
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        out.backward()


def test_kinds_of_backward_hook_do_not_mix():
    layer = nn.Identity()
    layer.register_full_backward_hook(lambda *a: None)
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full"):
        layer.register_backward_hook(lambda *a: None)


def test_old_backward_hook():
    layer = nn.Linear(2, 1)
    log = []
    layer.register_backward_hook(lambda m, gi, go: log.append(go[0].tolist()))
    with pytest.warns(FutureWarning, match="non-full backward hook"):
        out = layer(fb.ones(1, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out.sum().backward()
    assert log == [[[1.0]]]


def test_global_hooks():
    log = []
    layer = nn.Identity()
    handles = [
        global_hooks.register_module_forward_pre_hook(lambda m, a: (a[0] + 1,)),
        global_hooks.register_module_forward_hook(lambda m, a, out: log.append(out)),
        global_hooks.register_module_parameter_registration_hook(lambda m, n, p: log.append(n)),
        global_hooks.register_module_module_registration_hook(lambda m, n, c: log.append(n)),
        global_hooks.register_module_buffer_registration_hook(lambda m, n, b: log.append(n)),
    ]
    try:
        assert layer(1) == 2
        box = nn.Module()
        box.p = nn.Parameter(fb.ones(1))
        box.child = nn.Module()
        box.register_buffer("b", fb.ones(1))
    finally:
        for handle in handles:
            handle.remove()
    assert log == [2, "p", "child", "b"]
    assert layer(1) == 1


def test_a_handle_is_a_context():
    layer = nn.Identity()
    with layer.register_forward_hook(lambda m, a, out: out + 1):
        assert layer(0) == 1
    assert layer(0) == 0


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda g: g.double(), RuntimeError),
        (lambda g: g * 1j, RuntimeError),
        (lambda g: g[:1], RuntimeError),
        (lambda g: fb.ones(2, *g.shape), RuntimeError),
        (lambda g: 2.0, TypeError),
    ],
)
@pytest.mark.parametrize("before", [False, True])
def test_backward_hooks_keep_the_kind_of_a_gradient(change, error, before):
    m = fb.nn.Linear(3, 3)
    if before:
        m.register_full_backward_pre_hook(lambda m, arrived: (change(arrived[0]),))
    else:
        m.register_full_backward_hook(lambda m, made, arrived: (change(made[0]),))
    x = fb.ones(3, requires_grad=True)
    with pytest.raises(error, match="expected grad_"):
        m(x).sum().backward()
    assert x.grad is None
