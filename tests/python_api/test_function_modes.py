"""`overrides.TorchFunctionMode`: who sees which calls, and what a mode may answer."""

import threading

import pytest

import flambeau as torch
from flambeau.overrides import TorchFunctionMode, resolve_name


class Log(TorchFunctionMode):
    def __init__(self, name="", log=None):
        self.name = name
        self.log = [] if log is None else log

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.log.append((self.name, resolve_name(func)) if self.name else resolve_name(func))
        return func(*args, **(kwargs or {}))


def test_functions_methods_operators_properties_and_factories_are_seen():
    x = torch.ones(2, 2)
    with Log() as mode:
        x + 1
        2 * x
        -x  # noqa: B018
        x > 1  # noqa: B015
        x[0]
        x[0] = 2
        x.T  # noqa: B018
        x.view(4)
        x.add_(1)
        torch.matmul(x, x)
        torch.nn.functional.relu(x)
        torch.zeros(3)
        torch.tensor([1.0])
    words = "add mul neg gt __getitem__ __setitem__ T.__get__ view add_".split()
    names = ["matmul", "nn.functional.relu", "zeros", "tensor"]
    assert mode.log == [f"torch.Tensor.{w}" for w in words] + [f"torch.{n}" for n in names]
    torch.exp(x)
    assert len(mode.log) == 13


def test_modes_nest_from_the_inside_out():
    log = []
    with Log("outer", log), Log("inner", log):
        torch.exp(torch.ones(1))
    assert log == [(n, f"torch.{f}") for f in ("ones", "exp") for n in ("inner", "outer")]


def test_a_mode_may_answer_decline_and_raise():
    class Answers(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is torch.add:
                return "five"
            if func is torch.sub:
                raise KeyError("sub")
            return NotImplemented

    x = torch.ones(1)
    with Answers():
        assert torch.add(x, x) == "five"
        with pytest.raises(KeyError):
            torch.sub(x, x)
        with pytest.raises(TypeError, match="Answers.__torch_function__ returned NotImplemented"):
            torch.exp(x)
    with Log() as mode, Answers():  # the one around it is asked
        assert torch.exp(torch.ones(1)).item() == pytest.approx(2.718281828)
    assert mode.log == ["torch.ones", "torch.exp"]
    assert torch.add(x, x).item() == 2


def test_a_mode_without_the_method():
    with pytest.raises(NotImplementedError, match="needs a method __torch_function__"):
        with TorchFunctionMode():
            torch.ones(1)
    assert torch.ones(1).item() == 1


def test_subclasses_are_asked_after_modes():
    log = []

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append(("Sub", resolve_name(func)))
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))

    s = torch.ones(2).as_subclass(Sub)
    with Log("mode", log):
        assert type(torch.exp(s)) is torch.Tensor
    assert log == [("mode", "torch.exp"), ("Sub", "torch.exp")]
    log.clear()
    with Log("mode", log), torch._C.DisableTorchFunctionSubclass():
        torch.exp(s)
    assert log == [("mode", "torch.exp")]
    with Log("mode", log), torch._C.DisableTorchFunction():
        torch.exp(s)
    assert log == [("mode", "torch.exp")]
    torch.exp(s)
    assert len(log) == 2


def test_compiled_functions_and_scripts_are_seen_call_by_call():
    x = torch.rand(3)

    def f(x):
        return x.sin() + 1

    compiled = torch.compile(f, backend="eager")
    expected = compiled(x)
    for g in (compiled, torch.jit.script(f)):
        with Log() as mode:
            y = g(x)
        assert torch.equal(y, expected)
        assert [name.rpartition(".")[2] for name in mode.log] == ["sin", "add"]

    def inside(x):
        with Log() as mode:
            y = x + 1
        return y.sin(), mode.log

    y, log = torch.compile(inside, backend="eager")(x)
    assert log == ["torch.Tensor.add"] and torch.equal(y, (x + 1).sin())


def test_gradients_flow_and_other_threads_are_apart():
    x = torch.ones(2, requires_grad=True)
    seen = []
    with Log() as mode:
        (x * 3).sum().backward()
        thread = threading.Thread(target=lambda: seen.append(torch.exp(torch.zeros(1)).item()))
        thread.start()
        thread.join()
    assert x.grad.tolist() == [3.0, 3.0] and seen == [1.0]
    assert "torch.exp" not in mode.log


def test_functions_of_the_programs_own():
    def own(x):
        if torch.overrides.has_torch_function((x,)):
            return torch.overrides.handle_torch_function(own, (x,), x)
        return x * 2

    seen = []

    class Own(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = torch.ones(1)
    with Own():
        assert own(x).item() == 2
    assert seen[0] is own
    assert own(x).item() == 2 and len(seen) == 1


def test_functions_of_the_programs_own_ask_nobody_where_that_is_off():
    def own(x):
        if torch.overrides.has_torch_function((x,)):
            return torch.overrides.handle_torch_function(own, (x,), x)
        return torch.overrides.has_torch_function((x,))

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            with torch._C.DisableTorchFunctionSubclass():
                return "Sub", func(*args, **(kwargs or {}))

    s = torch.ones(1).as_subclass(Sub)
    assert own(s) == ("Sub", False)
    with Log() as mode, torch._C.DisableTorchFunction():
        assert own(s) is False
    assert mode.log == []


def test_modes_are_left_in_order():
    first, second = Log(), Log()
    first.__enter__()
    second.__enter__()
    with pytest.raises(RuntimeError, match="innermost mode to be left first"):
        first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    first.__exit__(None, None, None)
    with pytest.raises(RuntimeError, match="no mode of functions is entered"):
        torch._C._leave_function_mode()
    once = torch._C.DisableTorchFunction()
    with once, pytest.raises(RuntimeError, match="not entered yet"):
        once.__enter__()
