"""Traces for viewers: JSON in the trace event format, parsed and looked at."""

import json

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.autograd.profiler import profile, record_function


def trace_of(prof, tmp_path, name="trace.json"):
    path = tmp_path / name
    prof.export_chrome_trace(str(path))
    with open(path) as f:
        return json.load(f)


def complete(trace, name=None):
    events = [e for e in trace["traceEvents"] if e["ph"] == "X" and e.get("cat") != "Trace"]
    return [e for e in events if name is None or e["name"] == name]


def test_each_event_is_a_complete_one(tmp_path):
    with profile(record_shapes=True, with_stack=True) as prof, record_function("all", "42"):
        torch.rand(3, 4) @ torch.rand(4, 5)
    trace = trace_of(prof, tmp_path)
    assert trace["schemaVersion"] == 1 and trace["record_shapes"] == 1 and trace["with_flops"] == 0
    events = complete(trace)
    assert len(events) == len(prof.events())
    for e, found in zip(events, prof.events(), strict=True):
        assert {"ph", "ts", "dur", "pid", "tid", "name", "cat", "args"} <= e.keys()
        assert e["name"] == found.name and e["tid"] == found.device_index
        assert e["dur"] == pytest.approx(found.cpu_time_total, abs=1e-3)
        assert e["ts"] == pytest.approx(found.time_range.start, abs=1e-3)
    (mm,) = complete(trace, "aten::mm")
    assert mm["args"]["Input Dims"] == [[3, 4], [4, 5]]
    assert mm["args"]["Input type"] == ["float32", "float32"]
    assert "test_each_event_is_a_complete_one" in mm["args"]["Call stack"]
    (everything,) = complete(trace, "all")
    assert everything["cat"] == "user_annotation" and everything["args"]["Args"] == "42"


def test_arrows_lead_from_calls_to_nodes(tmp_path):
    x = torch.rand(3, requires_grad=True)
    with profile() as prof:
        x.exp().sum().backward()
    trace = trace_of(prof, tmp_path)
    starts = {e["id"]: e for e in trace["traceEvents"] if e["ph"] == "s"}
    ends = {e["id"]: e for e in trace["traceEvents"] if e["ph"] == "f"}
    assert starts.keys() == ends.keys() and len(starts) == 2
    for number, start in starts.items():
        (call,) = [e for e in complete(trace, "aten::exp") + complete(trace, "aten::sum")
                   if e["ts"] == start["ts"]]  # fmt: skip
        (node,) = [e for e in complete(trace) if e["ts"] == ends[number]["ts"]
                   and e["name"].endswith("Backward0") and "::" not in e["name"]]  # fmt: skip
        assert node["name"][:3].lower() == call["name"].removeprefix("aten::")
        assert start["ts"] < ends[number]["ts"]


def test_memory_is_a_line_of_totals(tmp_path):
    with profile(profile_memory=True) as prof:
        x = torch.zeros(1000)
        del x
    found = [e for e in trace_of(prof, tmp_path)["traceEvents"] if e["name"] == "[memory]"]
    assert [(e["ph"], e["args"]["Bytes"], e["args"]["Total Allocated"]) for e in found] == [
        ("i", 4000, 4000), ("i", -4000, 0),
    ]  # fmt: skip


class Bidirectional(nn.Module):
    """Two LSTMs at once, as the tutorial on parallelism in scripts has them."""

    def __init__(self, n):
        super().__init__()
        self.cell_f = nn.LSTM(n, n)
        self.cell_b = nn.LSTM(n, n)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        future = torch.jit.fork(self.cell_f, x)
        output_b, _ = self.cell_b(torch.flip(x, dims=[0]))
        output_f, _ = torch.jit.wait(future)
        return torch.cat((output_f, torch.flip(output_b, dims=[0])), dim=2)


def test_both_lstms_on_their_threads(tmp_path):
    torch.manual_seed(0)
    script = torch.jit.script(Bidirectional(96))
    x = torch.rand(50, 32, 96)
    with torch.no_grad():
        script(x)
        for _ in range(20):  # on a busy machine a thread may get its turn when the other is done
            with torch.autograd.profiler.profile() as prof:
                y = script(x)
            assert y.shape == (50, 32, 192)
            trace = trace_of(prof, tmp_path, "parallel.json")
            lstms = complete(trace, "aten::lstm")
            assert len(lstms) == 2
            first, second = sorted(lstms, key=lambda e: e["ts"])
            if first["tid"] != second["tid"] and second["ts"] < first["ts"] + first["dur"]:
                break
        else:
            raise AssertionError("both LSTMs ran one after the other, 20 times")
    named = {e["tid"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert {first["tid"], second["tid"]} <= named


def test_compiled_programs_are_an_event_with_their_steps(tmp_path):
    f = torch.compile(lambda a, b: torch.mm((a.sin() + b).relu(), b).sum(1))
    x = torch.rand(16, 16)
    f(x, x)
    with profile() as prof:
        f(x, x)
    trace = trace_of(prof, tmp_path)
    (program,) = complete(trace, "CompiledFunction")
    steps = [e for e in complete(trace) if e is not program]
    assert "aten::mm" in {e["name"] for e in steps}
    assert sum(e["name"].startswith("compiled::nest_") for e in steps) >= 1
    for e in steps:
        assert program["ts"] <= e["ts"]
        assert e["ts"] + e["dur"] <= program["ts"] + program["dur"] + 1e-3
