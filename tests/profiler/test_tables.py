"""Averages and tables of events."""

import pytest

import flambeau as torch
from flambeau.autograd._profiler_text import time_text
from flambeau.autograd.profiler import FunctionEvent, profile, record_function
from flambeau.autograd.profiler_util import EventList, FunctionEventAvg


def event(name, start, end, parent=None, **fields):
    made = FunctionEvent(0, name, 1, start, end, **fields)
    if parent is not None:
        parent.append_cpu_child(made)
    return made


def made_events():
    a = event("a", 0.0, 100.0)
    b = event("b", 10.0, 40.0, a, input_shapes=[[2]], stack=["f", "g"])
    c = event("b", 50.0, 60.0, a, input_shapes=[[3]], stack=["f", "h"])
    d = event("c", 15.0, 20.0, b)
    return EventList([a, b, d, c])


def test_averages_are_sums():
    averages = {e.key: e for e in made_events().key_averages()}
    assert list(averages) == ["a", "b", "c"]
    b = averages["b"]
    assert (b.count, b.cpu_time_total, b.self_cpu_time_total, b.cpu_time) == (2, 40, 35, 20)
    assert averages["a"].self_cpu_time_total == 60
    assert made_events().self_cpu_time_total == 100
    total = made_events().total_average()
    assert (total.key, total.count, total.self_cpu_time_total) == ("Total", 4, 100)
    with pytest.raises(ValueError, match="expected an event of 'b', got one of 'c'"):
        b.add(averages["c"])


def test_groups_by_shape_and_stack():
    events = made_events()
    by_shape = events.key_averages(group_by_input_shapes=True)
    assert [(e.key, e.input_shapes) for e in by_shape] == [
        ("a", "[]"), ("b", "[[2]]"), ("c", "[]"), ("b", "[[3]]"),
    ]  # fmt: skip
    assert [e.count for e in events.key_averages(group_by_stack_n=1) if e.key == "b"] == [2]
    apart = events.key_averages(group_by_stack_n=2)
    assert [e.stack for e in apart if e.key == "b"] == [["f", "g"], ["f", "h"]]


def rows_of(text):
    return [line.split() for line in text.splitlines() if line and "--" not in line]


def test_tables_are_sorted_and_cut():
    averages = made_events().key_averages()
    rows = rows_of(averages.table(sort_by="self_cpu_time_total", row_limit=2))
    assert [row[0] for row in rows[1:3]] == ["a", "b"] and rows[3][0] == "Self"
    assert rows[1] == ["a", "60.00%", "60.000us", "100.00%", "100.000us", "100.000us", "1"]
    assert rows[3] == ["Self", "CPU", "time", "total:", "100.000us"]
    by_count = rows_of(averages.table(sort_by="count", time_unit="ms"))
    assert by_count[1][:3] == ["b", "35.00%", "0.035ms"]
    top = rows_of(made_events().table(top_level_events_only=True, header="Steps"))
    assert top[0] == ["Steps"] and [row[0] for row in top[2:-1]] == ["a"]
    shapes = made_events().table(max_shapes_column_width=4, max_name_column_width=4)
    assert "Input Shapes" in shapes and "[..." in shapes and "Source Location" in shapes
    assert EventList().table() == ""
    with pytest.raises(ValueError, match="expected sort_by to be one of cpu_time, .*got 'tim'"):
        averages.table(sort_by="tim")
    with pytest.raises(ValueError, match="expected time_unit to be 's', 'ms' or 'us', got 'm'"):
        averages.table(time_unit="m")


def test_lines_of_a_table_are_of_one_width():
    with profile(record_shapes=True, profile_memory=True, with_flops=True) as prof:
        torch.rand(20, 30) @ torch.rand(30, 40)
    lines = str(prof.key_averages(group_by_input_shape=True)).splitlines()
    head = lines[1]
    for title in ("CPU Mem", "Self CPU Mem", "# of Calls", "Input Shapes", "Total FLOPs"):
        assert title in head
    assert len({len(line) for line in lines[:-1]}) == 1
    assert "48000" in str(prof.key_averages()) and "KB" in str(prof)


def test_fields_that_programs_read():
    with profile() as prof, record_function("x"):
        torch.ones(2).exp()
    for found in (prof.events()[0], prof.key_averages()[0], prof.total_average()):
        for name in (
            "key", "count", "cpu_time", "cpu_time_total", "self_cpu_time_total", "flops",
            "cpu_memory_usage", "self_cpu_memory_usage", "input_shapes", "stack", "scope",
            "cuda_time_total", "self_cuda_time_total", "device_time_total", "device_type",
            "self_device_memory_usage", "is_remote", "is_async", "node_id", "cpu_parent",
        ):  # fmt: skip
            getattr(found, name)
        assert found.cuda_time_total == found.device_memory_usage == 0
        assert found.cpu_time_total_str.endswith(("us", "ms", "s"))
    assert isinstance(prof.key_averages()[0], FunctionEventAvg)
    assert repr(prof.key_averages()[0]).startswith("<FunctionEventAvg key=x count=1")
    assert repr(prof.events()[0]).startswith("<FunctionEvent id=0 name=x")
    assert repr(profile()) == "<unfinished torch.autograd.profile>"


@pytest.mark.parametrize(
    "us, text", [(1.5, "1.500us"), (1500, "1.500ms"), (2.5e6, "2.500s"), (-1.5, "-1.500us")]
)
def test_times_as_text(us, text):
    assert time_text(us) == text


def test_stacks_for_flame_graphs(tmp_path):
    def work():
        return torch.rand(200, 200) @ torch.rand(200, 200)

    with profile(with_stack=True) as prof:
        work()
    path = tmp_path / "stacks.txt"
    prof.export_stacks(str(path))
    lines = path.read_text().splitlines()
    assert any(line.split(" ")[0].endswith("aten::mm") and "work" in line for line in lines)
    assert all(int(line.split(" ")[1]) > 0 for line in lines)
    with pytest.raises(ValueError, match="expected metric to be one of"):
        prof.export_stacks(str(path), "count")
    with profile() as plain:
        work()
    with pytest.raises(RuntimeError, match="expected a profile with with_stack=True"):
        plain.export_stacks(str(path))
