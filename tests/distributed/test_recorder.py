"""The flight recorder: which calls a process made, from which line, and what became of them."""

import json
import os
import pathlib
import sys
import time
from datetime import timedelta

import pytest

import flambeau as torch
from tests.distributed import worlds

dist = torch.distributed


def trace():
    return json.loads(dist._dump_fr_trace_json())


def line():
    return sys._getframe(1).f_lineno


@pytest.fixture
def world(monkeypatch):
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


def test_entries_of_one_process(world):
    x = torch.ones(2, 3)
    dist.all_reduce(x, dist.ReduceOp.MAX), dist.all_gather([x.new_empty(3, 2).t()], x)
    at = line() - 1
    work = dist.broadcast(x.bfloat16(), 0, async_op=True)
    work.wait()
    found = trace()
    assert found["rank"] == 0 and found["reason"] is None and found["pid"] == os.getpid()
    assert found["pg_config"] == {"0": {"desc": "default_pg", "ranks": [0]}}
    first, second, third = found["entries"]
    assert first == {
        "process_group": ["0", "default_pg"],
        "collective_seq_id": 1,
        "profiling_name": "all_reduce",
        "state": "completed",
        "input_sizes": [[2, 3]],
        "input_dtypes": ["float32"],
        "output_sizes": [],
        "output_dtypes": [],
        "reduce_op": "MAX",
        "root": None,
        "is_p2p": False,
        "is_async": False,
        "timeout_ms": 1800000,
        "time_created": first["time_created"],
        "error": None,
        "frames": [{"filename": __file__, "line": at, "name": "test_entries_of_one_process"}],
    }
    assert abs(first["time_created"] - time.time()) < 60
    assert second["output_sizes"] == [[2, 3]] and second["collective_seq_id"] == 2
    assert third["is_async"] and third["state"] == "completed" and third["root"] == 0
    assert third["input_dtypes"] == ["bfloat16"] and third["reduce_op"] is None
    with pytest.raises(RuntimeError, match="non-integral"):  # nobody else has seen this call
        dist.all_reduce(x, dist.ReduceOp.BAND)
    dist.barrier()
    assert [e["collective_seq_id"] for e in trace()["entries"]] == [1, 2, 3, 4]


def test_how_many_are_kept(monkeypatch):
    def made(text):
        monkeypatch.setenv("FLAMBEAU_DIST_TRACE_SIZE", text)
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        for _ in range(5):
            dist.barrier()
        entries = trace()["entries"]
        dist.destroy_process_group()
        return [e["collective_seq_id"] for e in entries]

    assert made("2") == [4, 5] and made("0") == [] and made("9") == [1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="FLAMBEAU_DIST_TRACE_SIZE: expected a number .*'many'"):
        made("many")
    assert not dist.is_initialized()


def test_lines_of_gradients(world):
    """The call of a bucket is the user's line that began the backward pass."""
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    loss = net(torch.ones(1, 2)).sum()
    loss.backward()
    assert trace()["entries"][-1]["frames"][0]["line"] == line() - 1


def times_out(rank, size):
    pair = dist.new_group([0, 1], group_desc="a pair")
    dist.barrier()
    if rank == 1:
        time.sleep(1.5)
        return
    dist.barrier(pair, async_op=True)
    dist.irecv(torch.ones(4), 1)
    dist.group.WORLD._set_default_timeout(timedelta(milliseconds=500))
    with pytest.raises(dist.DistBackendError, match="rank 1 did not come: .* barrier") as caught:
        dist.all_reduce(torch.ones(7))
    (note,) = caught.value.__notes__
    assert f"all_reduce 4 of [7] ({__file__}:{line() - 2} in times_out)" in note
    before = dict(os.environ)
    if "FLAMBEAU_DIST_TRACE_FILE" not in before:
        assert "With FLAMBEAU_DIST_TRACE_FILE=PREFIX each rank" in note
        return
    if rank == 0:
        if "nowhere" in before["FLAMBEAU_DIST_TRACE_FILE"]:
            assert "could not be written" in note
            return
        path = before["FLAMBEAU_DIST_TRACE_FILE"] + "0.json"
        assert f"All of them are in {path}." in note
        found = json.loads(pathlib.Path(path).read_text())
        assert found["reason"] == str(caught.value) and found["rank"] == 0
        assert found["pg_config"]["1"] == {"desc": "a pair", "ranks": [0, 1]}
        states = [(e["profiling_name"], e["state"]) for e in found["entries"][-3:]]
        assert states == [("barrier", "started"), ("recv", "started"), ("all_reduce", "failed")]
        assert found["entries"][-1]["error"] == found["reason"]
        (again,) = pathlib.Path(path).parent.iterdir()  # no part of a file is left
        with pytest.raises(dist.DistBackendError, match="failed before") as more:
            dist.barrier()
        assert not hasattr(more.value, "__notes__")  # it is told once


@pytest.mark.parametrize("where", [None, "there", "nowhere/deep"])
def test_time_outs_are_written_down(tmp_path, where):
    given = {} if where is None else {"FLAMBEAU_DIST_TRACE_FILE": tmp_path / where}
    worlds.run("test_recorder", "times_out", 2, **given)
    assert [p.name for p in tmp_path.iterdir()] == (["there0.json"] if where == "there" else [])


def fails_later(rank, size):
    """Also what is waited for later: each rank writes its own file."""
    if rank == 1:
        os._exit(0)
    works = [dist.all_reduce(torch.ones(3), async_op=True) for _ in range(3)]
    with pytest.raises(dist.DistBackendError, match="rank 1 has died") as caught:
        works[0].wait()
    path = pathlib.Path(os.environ["FLAMBEAU_DIST_TRACE_FILE"] + f"{rank}.json")
    found = json.loads(path.read_text())
    assert "rank 1 has died" in found["reason"] and "All of them" in caught.value.__notes__[0]
    with pytest.raises(dist.DistBackendError, match="failed before"):
        works[2].wait()
    states = [e["state"] for e in trace()["entries"][-3:]]
    assert states == ["failed", "failed", "failed"]


def test_deaths_are_written_down(tmp_path):
    started = worlds.start(
        "test_recorder", "fails_later", 2, FLAMBEAU_DIST_TRACE_FILE=f"{tmp_path}/"
    )
    ended = worlds.finish(started)
    assert [status for status, _, _ in ended] == [0, 0], ended
