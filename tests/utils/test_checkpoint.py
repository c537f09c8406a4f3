"""Checkpointing: equal gradients, recomputation counted, mismatches named."""

import contextlib

import pytest

import flambeau as fb
from flambeau import nn
from flambeau.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

WAYS = pytest.mark.parametrize("reentrant", [False, True])


def leaf(n=4):
    return fb.linspace(0.1, 1.0, n, dtype=fb.float64).requires_grad_()


@WAYS
def test_gradients_equal_those_without(reentrant):
    w = leaf()

    def f(x, y):
        return (x * y).sin() * (x + w).exp()

    x, y = leaf(), leaf()
    f(x, y).sum().backward()
    want = [t.grad.tolist() for t in (x, y, w)]
    w.grad, x, y = None, leaf(), leaf()
    checkpoint(f, x, y, use_reentrant=reentrant).sum().backward()
    assert [t.grad.tolist() for t in (x, y, w)] == want


@WAYS
def test_the_function_runs_twice_and_outputs_keep_their_structure(reentrant):
    calls = []

    def f(x, flag):
        calls.append(flag)
        return x.sin(), {"n": 3}["n"]

    x = leaf()
    y, n = checkpoint(f, x, "flag", use_reentrant=reentrant)
    y.sum().backward()
    assert n == 3 and calls == ["flag", "flag"]
    assert x.grad.tolist() == pytest.approx(x.detach().cos().tolist())


@WAYS
def test_random_numbers_repeat(reentrant):
    def f(x):
        return x * fb.rand(4, dtype=fb.float64)

    fb.manual_seed(0)
    x = leaf()
    y = checkpoint(f, x, use_reentrant=reentrant)
    after = fb.get_rng_state()
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx((y / x).tolist())
    assert fb.equal(fb.get_rng_state(), after)


def test_parameters_get_gradients_though_no_input_needs_one():
    layer = nn.Linear(3, 2)
    y = checkpoint(layer, fb.ones(1, 3), use_reentrant=False)
    y.sum().backward()
    assert layer.weight.grad.tolist() == [[1, 1, 1]] * 2
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad"):
        assert not checkpoint(layer, fb.ones(1, 3), use_reentrant=True).requires_grad


def test_keywords_and_grad_and_higher_order():
    x = leaf()
    y = checkpoint(lambda x, *, k: (x * k) ** 3, x, k=x.detach() * 2, use_reentrant=False)
    (g,) = fb.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = fb.autograd.grad(g.sum(), x)
    k = x.detach() * 2
    assert g.tolist() == pytest.approx((3 * x**2 * k**3).tolist())
    assert h.tolist() == pytest.approx((6 * x * k**3).tolist())


def test_graph_may_be_kept():
    calls, x = [], leaf()
    y = checkpoint(lambda x: (calls.append(1), x.sin())[1], x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == pytest.approx((2 * x.detach().cos()).tolist())
    assert len(calls) == 3


def test_early_stop_leaves_out_the_tail():
    log, x = [], leaf()

    def f(x):
        y = x.sin()
        log.append("tail")
        return y + 1

    checkpoint(f, x, use_reentrant=False).sum().backward()
    assert log == ["tail"]
    with set_checkpoint_early_stop(False):
        z = checkpoint(f, x, use_reentrant=False)
    z.sum().backward()
    assert log == ["tail"] * 3


def test_nested():
    x = leaf()
    calls = {"inner": 0, "outer": 0}

    def inner(x):
        calls["inner"] += 1
        return x.sin().exp()

    def outer(x):
        calls["outer"] += 1
        return checkpoint(inner, x.cos(), use_reentrant=False).tanh()

    checkpoint(outer, x, use_reentrant=False).sum().backward()
    y = leaf()
    y.cos().sin().exp().tanh().sum().backward()
    assert x.grad.tolist() == pytest.approx(y.grad.tolist())
    assert calls["outer"] >= 2 and calls["inner"] >= 2


def test_inside_no_grad_nothing_is_recorded():
    with fb.no_grad():
        assert not checkpoint(fb.sin, leaf(), use_reentrant=False).requires_grad


def test_contexts_of_both_runs():
    log = []

    @contextlib.contextmanager
    def note(what):
        log.append(what)
        yield

    x = leaf()
    y = checkpoint(
        fb.sin, x, use_reentrant=False, context_fn=lambda: (note("first"), note("second"))
    )
    assert log == ["first"]
    y.sum().backward()
    assert log == ["first", "second"]


def changing(*results):
    runs = iter(results)
    return lambda x: next(runs)(x)


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ((lambda x: x.sin().cos(), lambda x: x.sin()), "different number of tensors was saved"),
        ((lambda x: x.sin(), lambda x: x[:1].sin()), "different metadata"),
    ],
)
def test_a_different_second_run_is_an_error(functions, message):
    x = leaf()
    y = checkpoint(changing(*functions), x, use_reentrant=False).sum()
    with pytest.raises(CheckpointError, match=message):
        y.backward()
    with set_checkpoint_debug_enabled(True):
        y = checkpoint(changing(*functions), x, use_reentrant=False).sum()
    with pytest.raises(CheckpointError, match="Saved during recomputation:\n  0:"):
        y.backward()


def test_more_saved_tensors_are_an_error():
    functions = (lambda x: x.sin(), lambda x: x.sin().cos())
    y = checkpoint(changing(*functions), leaf(), use_reentrant=False, early_stop=False).sum()
    with pytest.raises(CheckpointError, match="trying to save more tensors"):
        y.backward()


@WAYS
@pytest.mark.parametrize("segments", [1, 2, 3])
def test_sequential(segments, reentrant):
    fb.manual_seed(0)
    net = nn.Sequential(*[nn.Linear(3, 3) for _ in range(5)])
    x = fb.ones(2, 3).requires_grad_()
    net(x).sum().backward()
    want, x.grad = x.grad.tolist(), None
    checkpoint_sequential(net, segments, x, use_reentrant=reentrant).sum().backward()
    for row, other in zip(x.grad.tolist(), want, strict=True):
        assert row == pytest.approx(other)


def test_wrong_options():
    x = leaf()
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(fb.sin, x)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: foo"):
        checkpoint(fb.sin, x, use_reentrant=True, foo=1)
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        checkpoint(fb.sin, x, use_reentrant=True, debug=True)
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(fb.sin, x, use_reentrant=False, determinism_check="maybe")
