"""Modules of few lines: fx, onnx, types, overrides, profiler, accelerator, checks."""

import gc
import pickle
import sys
import threading
import weakref

import pytest

import flambeau as torch


def test_objects_answer_for_themselves():
    overrides = torch.overrides

    class Mine:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return (func.__name__, types, args) if args[0] != "decline" else NotImplemented

    class Derived(Mine):
        pass

    @overrides.wrap_torch_function(lambda first, *more: more)
    def f(first, *more):
        return first

    a, b = Mine(), Derived()
    assert f(1, torch.ones(1)) == 1
    assert f(1, a, b) == ("f", (Derived, Mine), (1, a, b))
    assert overrides.has_torch_function_unary(a) and not overrides.has_torch_function((1, None))
    assert overrides.has_torch_function_variadic(torch.ones(1), a) and overrides.is_tensor_like(a)
    with pytest.raises(TypeError, match="no implementation found for"):
        f("decline", a)


def test_ranges_and_schedules_of_a_profiler():
    from flambeau.profiler import ProfilerAction as Action

    @torch.autograd.profiler.record_function("f")
    def f(x):
        return x + 1

    with torch.profiler.record_function("outer") as r:
        assert f(1) == 2 and r.name == "outer"
    at = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1, skip_first=1)
    names = [at(i) for i in range(6)]
    assert names == [
        Action.NONE, Action.NONE, Action.WARMUP, Action.RECORD, Action.RECORD_AND_SAVE, Action.NONE,
    ]  # fmt: skip
    with pytest.raises(AssertionError):
        torch.profiler.schedule(wait=0, warmup=0, active=0)


def test_there_is_no_accelerator():
    assert not torch.accelerator.is_available() and not torch.xpu.is_available()
    assert torch.accelerator.current_accelerator() is None and torch.mps.device_count() == 0
    with pytest.raises(RuntimeError, match="no accelerator"):
        torch.accelerator.synchronize()


def test_notes_for_tracers_and_exporters():
    @torch.fx.wrap
    def f(x):
        return x

    assert f(2) == 2 and torch.fx.wrap("len") == "len"
    with pytest.raises(RuntimeError, match="expected a function or its name, got int"):
        torch.fx.wrap(3)
    with pytest.raises(ValueError, match="domain::op"):
        torch.onnx.register_custom_op_symbolic("op", f, 11)


def test_checks_raise_their_exceptions():
    for check, error in (
        (torch._check, RuntimeError),
        (torch._check_index, IndexError),
        (torch._check_value, ValueError),
        (torch._check_type, TypeError),
        (torch._check_not_implemented, NotImplementedError),
    ):
        check(True, lambda: 1 / 0)
        with pytest.raises(error, match="why"):
            check(False, lambda: "why")
    with pytest.raises(TypeError, match="cond must be a bool"):
        torch._check(1)
    with pytest.raises(AssertionError, match="no"):
        torch._assert(False, "no")
    torch._check_tensor_all(torch.ones(2) > 0)
    with pytest.raises(RuntimeError):
        torch._check_tensor_all(torch.tensor([True, False]))
    with pytest.raises(RuntimeError):
        torch._check_is_size(-1)

    @torch.compile(fullgraph=True, backend="eager")
    def checked(x):
        torch._check(x.shape[0] == 2, lambda: "two")
        torch._assert(x.ndim == 1, "one")
        return x + 1

    assert checked(torch.ones(2)).tolist() == [2, 2]


def test_types_are_for_annotations():
    assert isinstance(3, torch.types.Number) and not isinstance("a", torch.types.Number)
    assert torch.types._dtype is torch.dtype and torch.types.Device is not None


def test_limits_of_numbers_that_are_not_there():
    from flambeau._limits import absent_dtype

    f8 = absent_dtype("float8_e5m2")
    info = torch.finfo(f8)
    # 5 bits of exponent, 2 of mantissa: the largest is 1.75 * 2**15, the smallest normal 2**-14
    assert (info.max, info.tiny, info.eps, info.bits) == (1.75 * 2**15, 2.0**-14, 0.25, 8)
    assert pickle.loads(pickle.dumps(f8)) is f8
    e4m3 = torch.finfo(absent_dtype("float8_e4m3fn"))  # all ones are NaN: 1.75 * 2**8
    assert (e4m3.max, e4m3.tiny) == (1.75 * 2**8, 2.0**-6)


def test_futures_call_back_in_order():
    futures = torch.futures
    first, seen = futures.Future(), []
    first.add_done_callback(lambda f: seen.append(("a", f.value())))
    second = first.then(lambda f: f.value() + 1)
    failing = first.then(lambda f: 1 / 0)
    both = futures.collect_all([first, second])
    assert not first.done() and not both.done()
    with pytest.raises(RuntimeError, match="expected a future that is done"):
        first.value()
    thread = threading.Thread(target=first.set_result, args=(1,))
    thread.start()
    assert futures.wait_all([first, second]) == [1, 2] and both.wait() == [first, second]
    thread.join()
    first.add_done_callback(lambda f: seen.append(("b", f.wait())))
    assert seen == [("a", 1), ("b", 1)]
    with pytest.raises(ZeroDivisionError):
        failing.wait()
    with pytest.raises(RuntimeError, match="once"):
        first.set_result(2)
    assert futures.collect_all([]).wait() == []


def test_errors_of_callbacks_hit_nobody_else(monkeypatch):
    first, seen, reported = torch.futures.Future(), [], []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: reported.append(found.exc_type))
    first.add_done_callback(lambda f: 1 / 0)
    first.add_done_callback(lambda f: seen.append(f.value()))
    first.set_result(1)
    assert seen == [1] and reported == [ZeroDivisionError]


def test_a_chain_of_futures_takes_no_stack():
    first = last = torch.futures.Future()
    for _ in range(50_000):
        last = last.then(lambda f: f.wait() + 1)
    first.set_result(0)
    assert last.wait() == 50_000
    first = last = torch.futures.Future()  # nobody sets it
    for _ in range(50_000):
        last = last.then(lambda f: f.wait())
    del first, last


def test_what_follows_from_a_callback_comes_before_the_next():
    first, seen = torch.futures.Future(), []
    first.then(lambda f: seen.append(1)).then(lambda f: seen.append(2))
    first.add_done_callback(lambda f: seen.append(3))
    first.set_result(None)
    assert seen == [1, 2, 3]


def test_futures_collected_have_the_first_error_of_them():
    futures = [torch.futures.Future() for _ in range(3)]
    every = torch.futures.collect_all(futures)
    futures[1].set_exception(KeyError("no"))
    futures[2].set_exception(ValueError("neither"))
    assert not every.done()
    futures[0].set_result(1)
    with pytest.raises(KeyError, match="no"):
        every.wait()
    assert torch.futures.collect_all(tuple(futures[:1])).wait() == futures[:1]


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda f: f.then(3), TypeError, "then: expected a function as callback, got int"),
        (lambda f: f.add_done_callback(None), TypeError, "expected a function as callback, got No"),
        (lambda f: f.set_result(), TypeError, "set_result: expected one argument, result, got 0"),
        (lambda f: f.set_exception(3), AssertionError, "3 is of type <class 'int'>"),
        (lambda f: torch.futures.collect_all([f, 3]), TypeError, "got int at position 1"),
        (lambda f: torch.futures.collect_all(3), TypeError, "not iterable"),
        (lambda f: torch.futures.Future(3), TypeError, "takes"),
        (lambda f: pickle.dumps(f), TypeError, "cannot pickle"),
    ],
)
def test_what_futures_refuse(call, error, message):
    with pytest.raises(error, match=message):
        call(torch.futures.Future(devices=["cpu"]))


def test_futures_that_hold_each_other_are_freed():
    first = torch.futures.Future()
    first.note = first.then(lambda f, other=first: other)  # in a circle
    every = torch.futures.collect_all([first, torch.futures.Future()])
    refs = [weakref.ref(x) for x in (first, first.note, every)]
    del first, every
    gc.collect()
    assert [r() for r in refs] == [None] * 3


def test_many_threads_wait_for_one_future():
    future, seen = torch.futures.Future(), []
    threads = [threading.Thread(target=lambda: seen.append(future.wait())) for _ in range(8)]
    for t in threads:
        t.start()
    future.set_result(result=7)
    for t in threads:
        t.join()
    assert seen == [7] * 8


def test_lists_of_tensors_are_grouped():
    from flambeau.utils._foreach_utils import _group_tensors_by_device_and_dtype as group

    a, b, c = torch.ones(1), torch.ones(1, dtype=torch.float64), torch.ones(2)
    out = group([[a, b, c], [1, 2, 3]], with_indices=True)
    cpu = torch.device("cpu")
    assert list(out) == [(cpu, torch.float32), (cpu, torch.float64)]
    lists, indices = out[cpu, torch.float32]
    assert lists[0][0] is a and lists[0][1] is c and lists[1] == [1, 3] and indices == [0, 2]


def test_what_the_build_says():
    assert torch.__config__.show().startswith(f"Flambeau {torch.__version__}")
    assert str(torch.get_num_threads()) in torch.__config__.parallel_info()
    assert not torch.__future__.get_swap_module_params_on_conversion()
    from flambeau.utils import collect_env

    assert f"Flambeau version: {torch.__version__}" in collect_env.get_pretty_env_info()
