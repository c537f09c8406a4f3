"""Events of profiles: what is counted, nested, timed, and on which thread."""

import os
import threading
import time
from collections import Counter

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.autograd.profiler import emit_itt, emit_nvtx, profile, record_function


def named(prof, name):
    return [e for e in prof.events() if e.name == name]


def inside(event, name):
    """Is an event within one of that name?"""
    while event is not None and event.name != name:
        event = event.cpu_parent
    return event is not None


def test_every_call_is_an_event():
    x = torch.rand(4)
    with profile() as prof:
        for _ in range(7):
            y = x + 1
            y.mul_(2)
        torch.add(x, x, out=y)
        x[1:3]
        torch.cat([x, x])
    counts = Counter(e.name for e in prof.events())
    assert counts["aten::add"] == 8 and counts["aten::mul_"] == 7 and counts["aten::cat"] == 1
    assert counts["aten::slice"] == 1
    assert [e.overload_name for e in named(prof, "aten::add")].count("out") == 1
    assert all(e.count == 1 and e.thread == 1 and e.scope == 0 for e in prof.events())


def test_nothing_is_recorded_outside():
    torch.ones(2) + 1
    with profile() as prof:
        pass
    torch.ones(2) + 1
    assert len(prof.events()) == 0 and not torch._C._profiler_enabled()
    with profile(enabled=False) as off:
        torch.ones(2) + 1
    with pytest.raises(RuntimeError, match="there is nothing recorded"):
        off.events()
    with record_function("nobody listens") as r:
        assert r._place is None


def test_operations_lie_in_what_calls_them():
    layer = nn.Linear(3, 4)
    with profile() as prof, record_function("outer"):
        with record_function("forward"):
            y = layer(torch.ones(2, 3))
        with record_function("sum"):
            y.sum()
    events = {e.name: e for e in prof.events()}
    assert events["aten::linear"].cpu_parent is events["forward"]
    assert events["forward"].cpu_parent is events["outer"] is events["sum"].cpu_parent
    assert events["outer"].cpu_parent is None
    assert events["aten::sum"].cpu_parent is events["sum"]
    # A composite holds the operations that it is made of.
    assert any(c.cpu_parent is events["aten::linear"] for c in prof.events())
    for e in prof.events():
        for child in e.cpu_children:
            assert e.time_range.start <= child.time_range.start
            assert child.time_range.end <= e.time_range.end


def test_times_are_those_of_a_clock():
    with profile() as prof, record_function("all"):
        with record_function("sleeps"):
            time.sleep(0.02)
        with record_function("works"):
            torch.rand(200, 200) @ torch.rand(200, 200)
    began = time.perf_counter()
    with profile() as other, record_function("timed"):
        torch.rand(300, 300) @ torch.rand(300, 300)
    wall = (time.perf_counter() - began) * 1e6
    events = {e.name: e for e in prof.events()}
    assert 20_000 <= events["sleeps"].cpu_time_total <= events["all"].cpu_time_total
    # Self times add up to the whole, for each moment belongs to one event.
    total = sum(e.self_cpu_time_total for e in prof.events())
    assert total == pytest.approx(events["all"].cpu_time_total, rel=1e-6)
    for e in prof.events():
        parts = sum(child.cpu_time_total for child in e.cpu_children)
        assert e.self_cpu_time_total == pytest.approx(e.cpu_time_total - parts, abs=1e-6)
    assert named(other, "timed")[0].cpu_time_total <= wall
    assert prof.self_cpu_time_total == pytest.approx(total)


def test_backward_has_its_nodes():
    x = torch.rand(3, 4, requires_grad=True)
    with profile() as prof:
        y = (x * 2).exp()
        y.sum().backward()
    nodes = [e.name for e in prof.events() if e.scope == 1 and "::" not in e.name]
    assert nodes == ["SumBackward0", "ExpBackward0", "MulBackward0", "AccumulateGrad"]
    exp = named(prof, "ExpBackward0")[0]
    assert exp.cpu_parent.name == "autograd::engine::evaluate_function: ExpBackward0"
    # Both sides know the number of the node; the node knows the thread of the call.
    assert exp.sequence_nr == named(prof, "aten::exp")[0].sequence_nr == y.grad_fn._sequence_nr()
    assert exp.fwd_thread == 1
    assert any(inside(e, "SumBackward0") for e in named(prof, "aten::expand"))


def test_functions_of_the_user_have_their_names():
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            with record_function("in backward"):
                return g * 2

    x = torch.ones(2, requires_grad=True)
    with profile() as prof:
        Doubled.apply(x).sum().backward()
    assert named(prof, "aten::mul")[0].cpu_parent.name == "Doubled"
    assert inside(named(prof, "aten::mul")[1], "in backward")
    assert inside(named(prof, "in backward")[0], "DoubledBackward")
    assert named(prof, "DoubledBackward")[0].sequence_nr == named(prof, "Doubled")[0].sequence_nr


def test_operators_of_the_user_are_events():
    @torch.library.custom_op("profiled::scaled", mutates_args=())
    def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
        return x * by

    with profile(record_shapes=True) as prof:
        scaled(torch.ones(2, 3), 2.0)
    (event,) = named(prof, "profiled::scaled")
    assert event.input_shapes == [[2, 3], []] and event.concrete_inputs == [None, 2.0]
    assert inside(named(prof, "aten::mul")[0], "profiled::scaled")


def test_all_threads_are_seen():
    ready = threading.Barrier(2)

    def work(name):
        ready.wait()
        with record_function(name):
            for _ in range(20):
                torch.rand(60, 60) @ torch.rand(60, 60)

    with profile() as prof:
        threads = [threading.Thread(target=work, args=(n,)) for n in ("left", "right")]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    left, right = named(prof, "left")[0], named(prof, "right")[0]
    assert left.thread != right.thread
    for side in (left, right):
        products = [e for e in named(prof, "aten::mm") if e.thread == side.thread]
        assert len(products) == 20 and all(inside(e, side.name) for e in products)


def test_backward_on_another_thread():
    x = torch.rand(3, requires_grad=True)
    with profile() as prof:
        y = x.sin().sum()
        t = threading.Thread(target=y.backward)
        t.start()
        t.join()
    forward, node = named(prof, "aten::sin")[0], named(prof, "SinBackward0")[0]
    assert node.thread != forward.thread and node.fwd_thread == forward.thread


def test_ranges_as_decorators_and_by_recursion():
    @record_function("f", "some args")
    def f(n):
        return f(n - 1) + 1 if n else torch.ones(1)

    with profile() as prof:
        f(3)
    ranges = named(prof, "f")
    assert len(ranges) == 4 and all(e.scope == 7 and e.is_user_annotation for e in ranges)
    assert [e.cpu_parent for e in ranges] == [None, *ranges[:3]]
    assert ranges[0].args == "some args"


def test_ranges_that_end_elsewhere_or_out_of_order():
    a, b = record_function("a"), record_function("b")
    with profile() as prof:
        a.__enter__()
        b.__enter__()
        a.__exit__(None, None, None)
        torch.ones(1) + 1  # in b alone
        b.__exit__(None, None, None)
        torch.ones(1) * 1
        c = record_function("c").__enter__()
        t = threading.Thread(target=c.__exit__, args=(None, None, None))
        t.start()
        t.join()
        torch.ones(1) - 1
    assert named(prof, "aten::add")[0].cpu_parent.name == "b"
    assert named(prof, "aten::mul")[0].cpu_parent is None
    assert named(prof, "aten::sub")[0].cpu_parent is None
    assert all(e.self_cpu_time_total >= 0 for e in prof.events())


def test_what_is_open_when_a_profile_ends_ends_with_it():
    late = record_function("late")
    with profile() as first:
        late.__enter__()
        torch.ones(1) + 1
    with profile() as second:
        torch.ones(1) * 1
        late.__exit__(None, None, None)  # of the profile before
        torch.ones(1) * 1
    event = named(first, "late")[0]
    assert event.time_range.end >= named(first, "aten::add")[0].time_range.end
    assert len(named(second, "aten::mul")) == 2 and not named(second, "late")


def test_errors_close_their_events():
    with profile() as prof:
        with pytest.raises(RuntimeError):
            torch.ones(2, 3) @ torch.ones(2, 3)
        with pytest.raises(ZeroDivisionError), record_function("fails"):
            raise ZeroDivisionError
        torch.ones(1) + 1
    assert named(prof, "aten::add")[0].cpu_parent is None and len(named(prof, "fails")) == 1


def test_shapes_and_numbers_of_arguments():
    x, w = torch.rand(2, 3), torch.rand(3, 4)
    with profile(record_shapes=True) as prof:
        x @ w
        torch.cat([x, x.t().contiguous().t()], 0)
        torch.add(x, x, alpha=3)
        x.sum(1, keepdim=True)
    mm = named(prof, "aten::mm")[0]
    assert mm.input_shapes == [[2, 3], [3, 4]] and mm.input_dtypes == ["float32", "float32"]
    assert mm.input_strides == [[3, 1], [4, 1]] and mm.concrete_inputs == [None, None]
    cat = named(prof, "aten::cat")[0]
    assert cat.input_shapes == [[[2, 3], [2, 3]], []] and cat.concrete_inputs == [None, 0]
    assert cat.input_strides == [[[3, 1], [1, 2]], []]
    assert named(prof, "aten::add")[0].concrete_inputs == [None, None, 3]
    assert named(prof, "aten::sum")[0].concrete_inputs[1:3] == [[1], True]
    by_shape = prof.key_averages(group_by_input_shape=True)
    assert "[[2, 3], [3, 4]]" in {e.input_shapes for e in by_shape if e.key == "aten::mm"}


def test_memory_is_that_of_the_tensors():
    with profile(profile_memory=True) as prof:
        with record_function("keeps"):
            kept = torch.zeros(100, 100)
        with record_function("drops"):
            torch.zeros(50, 50) + 1
        del kept
    keeps, drops = named(prof, "keeps")[0], named(prof, "drops")[0]
    assert keeps.cpu_memory_usage == 40_000 and keeps.self_cpu_memory_usage == 0
    assert named(prof, "aten::zeros")[0].cpu_memory_usage == 40_000
    assert drops.cpu_memory_usage == 0 and drops.self_cpu_memory_usage == -20_000
    assert named(prof, "aten::add")[0].cpu_memory_usage == 10_000
    outside = named(prof, "[memory]")
    assert [e.cpu_memory_usage for e in outside] == [-40_000]
    assert sum(e.self_cpu_memory_usage for e in prof.events()) == 0


def test_stacks_lead_to_the_line():
    def caller():
        return torch.ones(2).exp()

    with profile(with_stack=True) as prof:
        caller()
        big = torch.ones(300, 300).exp()  # runs without the interpreter's lock
    small, large = named(prof, "aten::exp")
    assert small.stack[0].startswith(os.path.abspath(__file__)) and "caller" in small.stack[0]
    line = caller.__code__.co_firstlineno + 1
    assert f"({line}): " in small.stack[0]
    assert "test_stacks_lead_to_the_line" in small.stack[1]
    assert large.stack[0].split(": ")[1] == "test_stacks_lead_to_the_line" and big.shape[0] == 300


def test_flops_of_products_and_convolutions():
    x = torch.rand(2, 3, 8, 8)
    conv = nn.Conv2d(3, 5, 3, padding=1, stride=2, bias=False)
    with profile(with_flops=True) as prof:
        torch.rand(4, 5) @ torch.rand(5, 6)
        torch.bmm(torch.rand(2, 4, 5), torch.rand(2, 5, 6))
        nn.Linear(7, 9)(torch.rand(3, 7))
        conv(x)
        x + x
    counted = Counter()
    for e in prof.events():
        if e.flops:
            counted[e.name] += e.flops
    assert counted["aten::mm"] == 2 * 4 * 5 * 6 and counted["aten::bmm"] == 2 * 2 * 4 * 5 * 6
    assert counted["aten::_linear"] == 2 * 3 * 7 * 9
    assert counted["aten::conv2d"] == 2 * 2 * 5 * 3 * 9 * 4 * 4
    assert counted["aten::add"] == x.numel()
    assert prof.total_average().flops == sum(counted.values())


def test_one_profile_at_a_time():
    with profile() as prof:
        with pytest.raises(RuntimeError, match="expected no profile to be open"), profile():
            pass
        with pytest.raises(RuntimeError, match="not reentrant"):
            prof.__enter__()
        torch.ones(1) + 1
    assert len(named(prof, "aten::add")) == 1
    with pytest.raises(RuntimeError, match="expected an open profile to stop"):
        torch._C._profiler_stop()
    with pytest.raises(RuntimeError, match="expected an open profile to pause"):
        prof.toggle_collection_dynamic(False)


def test_a_profile_can_be_paused():
    with profile() as prof:
        torch.ones(1) + 1
        prof.toggle_collection_dynamic(False)
        torch.ones(1) + 1
        prof.toggle_collection_dynamic(True)
        torch.ones(1) * 1
    assert len(named(prof, "aten::add")) == 1 and len(named(prof, "aten::mul")) == 1


def test_places_and_names_of_strangers_do_no_harm():
    with profile() as prof:
        place = torch._C._record_enter("a", None)
        for other in ((place[0], place[1], 10**6), (place[0], 10**6, 0), (10**9, 1, 0), (0, 0, 0)):
            torch._C._record_exit(other)
        torch._C._record_exit(place)
        torch._C._record_exit(place)  # once more
        with record_function("\0 é \n" * 1000):
            torch.ones(1) + 1
        with pytest.raises(TypeError):
            torch._C._record_exit("x")
        with pytest.raises(UnicodeEncodeError), record_function("\ud800"):
            pass
        torch.ones(1) * 1
    assert len(named(prof, "a")) == 1 and len(named(prof, "\0 é \n" * 1000)) == 1
    assert named(prof, "aten::mul")[0].cpu_parent is None


def test_profiles_while_threads_run_and_end():
    stop = threading.Event()

    def work():
        while not stop.is_set():
            with record_function("range"):
                torch.ones(3) + 1

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    try:
        for _ in range(30):
            with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
                torch.ones(2).exp()
            assert len(named(prof, "aten::exp")) == 1
            for e in prof.events():
                assert e.time_range.start <= e.time_range.end and e.self_cpu_time_total >= 0
    finally:
        stop.set()
        for t in threads:
            t.join()


@pytest.mark.parametrize("tool", [emit_nvtx, emit_itt])
def test_tools_of_others_are_refused(tool):
    with pytest.raises(NotImplementedError, match=f"{tool.__name__} is not supported: use"):
        tool()


@pytest.mark.parametrize("given", [
    {"with_modules": True}, {"experimental_config": object()}, {"use_cpu": False},
    {"custom_trace_id_callback": len},
])  # fmt: skip
def test_options_without_effect_are_refused(given):
    with pytest.raises(NotImplementedError, match=next(iter(given))):
        profile(**given)


def test_devices_that_are_not_there_are_told():
    with pytest.warns(UserWarning, match="CUDA is not available, disabling CUDA profiling"):
        profile(use_cuda=True)
    with pytest.raises(TypeError, match="expected a name, got int"):
        record_function(3)
    with pytest.raises(TypeError, match="expected args to be text, got int"):
        record_function("x", 3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_children_of_fork_record_nothing():
    read, write = os.pipe()
    with profile() as prof:
        torch.ones(1) + 1
        pid = os.fork()
        if pid == 0:
            try:
                torch.ones(1) + 1
                on = torch._C._profiler_enabled()
                with profile() as own:
                    torch.ones(1) * 1
                both = [len(named(own, f"aten::{name}")) for name in ("add", "mul")]
                os.write(write, f"{on} {both}".encode())
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
    assert os.read(read, 100).decode() == "False [0, 1]"
    assert len(named(prof, "aten::add")) == 1
