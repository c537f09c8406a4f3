"""no_grad and its kin as context managers, decorators and functions; inference mode."""

import inspect

import pytest

import flambeau as torch


def records():
    return (torch.ones(1, requires_grad=True) * 2).requires_grad


def test_blocks_nest_and_restore():
    assert records()
    with torch.no_grad():
        assert not records() and not torch.is_grad_enabled()
        with torch.enable_grad():
            assert records()
        assert not records()
        with torch.set_grad_enabled(True):
            assert records()
        assert not records()
    assert records()


def test_restored_after_an_exception():
    with pytest.raises(ZeroDivisionError), torch.no_grad():
        raise ZeroDivisionError
    assert torch.is_grad_enabled()


def test_set_grad_enabled_as_a_function():
    torch.set_grad_enabled(False)
    try:
        assert not records()
    finally:
        torch.set_grad_enabled(True)
    assert records()


@pytest.mark.parametrize("decorator", [torch.no_grad, torch.no_grad(), torch.inference_mode()])
def test_decorator(decorator):
    @decorator
    def f(a, *, b=1):
        """Doc."""
        return records(), a, b

    assert f(2, b=3) == (False, 2, 3)
    assert f.__name__ == "f" and f.__doc__ == "Doc."
    assert torch.is_grad_enabled()


def test_decorated_set_grad_enabled_acts_inside_only():
    @torch.set_grad_enabled(False)
    def f():
        return records()

    assert torch.is_grad_enabled()
    assert not f()
    assert torch.is_grad_enabled()


def test_recursive_decorated_function():
    @torch.no_grad()
    def f(n):
        return torch.is_grad_enabled() if n == 0 else f(n - 1)

    assert f(3) is False
    assert torch.is_grad_enabled()


def test_generators_hold_the_mode_only_while_they_run():
    @torch.no_grad()
    def numbers():
        closed = []
        try:
            received = yield torch.is_grad_enabled()
            assert not torch.is_grad_enabled()
            try:
                yield received
            except KeyError:
                yield "caught", torch.is_grad_enabled()
        finally:
            closed.append(torch.is_grad_enabled())
            assert closed == [False]
        return "result"

    assert inspect.isgeneratorfunction(numbers)
    g = numbers()
    assert next(g) is False
    assert torch.is_grad_enabled()
    assert g.send(5) == 5
    assert torch.is_grad_enabled()
    assert g.throw(KeyError()) == ("caught", False)
    with pytest.raises(StopIteration) as stop:
        next(g)
    assert stop.value.value == "result"
    g = numbers()
    next(g)
    g.close()
    assert torch.is_grad_enabled()


def test_classes_are_decorated_by_their_init():
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @torch.no_grad()
        class C:
            def __init__(self):
                self.inside = torch.is_grad_enabled()

    assert C().inside is False


def test_inference_mode():
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        assert torch.is_inference_mode_enabled() and not torch.is_grad_enabled()
        y = x * 2
        assert y.is_inference() and not y.requires_grad
        y.add_(1)
        with torch.inference_mode(False):
            assert records() and not torch.ones(1).is_inference()
    assert not torch.is_inference_mode_enabled() and torch.is_grad_enabled()
    with pytest.raises(
        RuntimeError, match="Inplace update to inference tensor outside InferenceMode"
    ):
        y.add_(1)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * y
    with pytest.raises(
        RuntimeError, match="Setting requires_grad=True on inference tensor outside"
    ):
        y.requires_grad_()
    assert (x * y.clone()).requires_grad


def test_view_of_a_normal_tensor_in_inference_mode():
    y = torch.ones(2, requires_grad=True).clone()
    with torch.inference_mode():
        v = y[:1]
        assert not v.is_inference()
    with pytest.raises(RuntimeError, match="A view was created in inference mode and is being"):
        v.mul_(2)


def test_is_grad_enabled_in_backward():
    seen = []
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: seen.append(torch.is_grad_enabled()))
    torch.autograd.grad(y, x, retain_graph=True)
    torch.autograd.grad(y, x, create_graph=True)
    assert seen == [False, True]
    assert torch.is_grad_enabled()
