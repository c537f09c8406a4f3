"""Profiles by schedule, their handlers, and what they refuse."""

import gzip
import json

import pytest

import flambeau as torch
from flambeau.profiler import (
    ExecutionTraceObserver,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)
from flambeau.profiler.profiler import _KinetoProfile


def steps_of(p):
    return [e.key for e in p.events() if e.key.startswith("ProfilerStep")]


def run(p, steps):
    with p:
        for n in range(steps):
            torch.ones(n + 1).exp()
            p.step()


def test_cycles_hold_their_steps_alone():
    seen = []
    p = profile(
        schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
        on_trace_ready=lambda p: seen.append((p.step_num, steps_of(p), p.key_averages())),
    )
    run(p, 10)
    assert [number for number, _, _ in seen] == [4, 8]
    assert seen[0][1] == ["ProfilerStep#2", "ProfilerStep#3"]
    assert seen[1][1] == ["ProfilerStep#6", "ProfilerStep#7"]
    counts = {e.key: e.count for e in seen[1][2]}
    assert counts["aten::exp"] == 2
    assert steps_of(p) == seen[1][1]  # the last cycle stays
    assert not torch._C._profiler_enabled()


def test_cycles_without_pause_and_open_ends():
    with pytest.warns(UserWarning, match="won't be using warmup"):
        plan = schedule(wait=0, warmup=0, active=2)
    seen = []
    p = profile(schedule=plan, on_trace_ready=lambda p: seen.append(steps_of(p)))
    run(p, 3)
    assert seen == [["ProfilerStep#0", "ProfilerStep#1"], ["ProfilerStep#2", "ProfilerStep#3"]]
    kept = profile(schedule=plan, acc_events=True)
    run(kept, 3)
    assert steps_of(kept) == seen[0] + seen[1]


def test_a_warm_up_is_not_looked_at():
    p = profile(schedule=schedule(wait=0, warmup=2, active=1, repeat=1))
    with p:
        torch.ones(1).exp()
        assert torch._C._profiler_enabled()
    with pytest.raises(RuntimeError, match="nothing is recorded"):
        p.events()


def test_without_a_schedule_all_is_recorded():
    ready = []
    with profile(on_trace_ready=ready.append) as p:
        torch.ones(1).exp()
        p.step()
        torch.ones(1).exp()
    assert ready == [p] and p.step_num == 1
    assert [e.key for e in p.events()].count("aten::exp") == 2 and steps_of(p) == []


def test_traces_for_tensorboard(tmp_path):
    p = profile(
        schedule=schedule(wait=0, warmup=1, active=1, repeat=2),
        on_trace_ready=tensorboard_trace_handler(str(tmp_path / "logs"), "me"),
    )
    run(p, 4)
    files = sorted((tmp_path / "logs").iterdir())
    assert len(files) == 2 and all(f.name.startswith("me.") for f in files)
    assert all(f.name.endswith(".pt.trace.json") and json.loads(f.read_text()) for f in files)
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path), use_gzip=True)):
        torch.ones(1).exp()
    (packed,) = tmp_path.glob("*.pt.trace.json.gz")
    with gzip.open(packed, "rt") as f:
        names = {e["name"] for e in json.load(f)["traceEvents"]}
    assert "aten::exp" in names
    (tmp_path / "file").write_text("")
    with pytest.raises(RuntimeError, match="Can't create directory"):
        tensorboard_trace_handler(str(tmp_path / "file" / "x"))(p)


def test_started_and_stopped_by_hand(tmp_path):
    p = _KinetoProfile()
    with pytest.raises(RuntimeError, match="expected a profile that was started"):
        p.stop()
    with pytest.raises(RuntimeError, match="nothing is recorded"):
        p.key_averages()
    p.start()
    p.add_metadata("model", "small")
    p.add_metadata_json("sizes", "[1, 2]")
    torch.ones(1).exp()
    p.stop()
    path = tmp_path / "trace.json"
    p.export_chrome_trace(str(path))
    found = json.loads(path.read_text())
    assert found["model"] == "small" and found["sizes"] == [1, 2]
    with pytest.raises(ValueError, match=r"expected JSON, got '\[1'"):
        p.add_metadata_json("x", "[1")


def test_what_is_not_there_is_told():
    assert supported_activities() == {ProfilerActivity.CPU}
    with pytest.warns(UserWarning, match="CUDA is not available, disabling CUDA profiling"):
        p = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
    run(p, 1)
    with (
        pytest.warns(UserWarning, match="CUDA"),
        pytest.raises(NotImplementedError, match=r"without ProfilerActivity\.CPU"),
    ):
        profile(activities=[ProfilerActivity.CUDA])
    with pytest.raises(AssertionError, match="No valid profiler activities"):
        profile(activities=[])
    with pytest.raises(TypeError, match="expected activities of ProfilerActivity, got 'cpu'"):
        profile(activities=["cpu"])
    with pytest.warns(FutureWarning, match="use `activities`"):
        profile(use_cuda=False)
    for refused in (
        lambda: profile(with_modules=True),
        lambda: profile(execution_trace_observer=1),
        lambda: profile(experimental_config=1),
        lambda: p.export_memory_timeline("x"),
        ExecutionTraceObserver,
    ):
        with pytest.raises(NotImplementedError):
            refused()


def test_ranges_are_one_class():
    assert record_function is torch.autograd.profiler.record_function


def test_names_by_which_programs_ask():
    assert torch.profiler.kineto_available() and not torch.autograd._profiler_enabled()
    assert torch.autograd.ProfilerActivity is ProfilerActivity
    assert torch.autograd.DeviceType is torch.profiler.DeviceType
    p = torch.autograd.profiler.profile()
    p.__enter__()
    torch.ones(1).exp()
    assert torch.autograd._profiler_enabled()
    torch.autograd._disable_profiler()
    assert not torch.autograd._profiler_enabled()
    assert "aten::exp" in {e.key for e in p.events()}
    p.__exit__(None, None, None)  # nothing is open any more
    with pytest.raises(RuntimeError, match="expected an open profile, found none"):
        torch.autograd._disable_profiler()
    with pytest.raises(NotImplementedError, match="load_nvprof is not supported"):
        torch.autograd.profiler.load_nvprof("x")
