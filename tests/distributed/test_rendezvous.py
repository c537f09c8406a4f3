"""How processes meet: env://, tcp://, file://, a store, and what is refused."""

import os
import subprocess
import sys

import pytest

import flambeau as torch

dist = torch.distributed
ALONE = {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "localhost", "MASTER_PORT": 0}


def test_back_ends():
    with pytest.raises(ValueError, match="TCP backend has been deprecated. Please use Gloo or MPI"):
        dist.init_process_group("tcp", init_method="tcp://localhost:0", rank=0, world_size=1)
    assert not dist.is_initialized()


def one(**options):
    dist.init_process_group("gloo", **options)
    try:
        assert (dist.get_rank(), dist.get_world_size()) == (0, 1)
    finally:
        dist.destroy_process_group()


def test_ways_to_meet(tmp_path, monkeypatch):
    one(init_method="tcp://localhost:0", rank=0, world_size=1)
    one(init_method="tcp://localhost:0?rank=0&world_size=1")
    one(init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    assert not os.listdir(tmp_path)
    one(store=dist.HashStore(), rank=0, world_size=1)
    for name, value in ALONE.items():
        monkeypatch.setenv(name, str(value))
    one()
    one(init_method="env://")


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"init_method": "tcp://localhost", "rank": 0, "world_size": 1}, ValueError, "port number"),
        ({"init_method": "tcp://:1", "rank": 0, "world_size": 1}, ValueError, "host name"),
        ({"init_method": "tcp://a:1", "rank": 0}, ValueError, "world size parameter missing"),
        ({"init_method": "tcp://a:1", "world_size": 1}, ValueError, "rank parameter missing"),
        ({"init_method": "file://", "rank": 0, "world_size": 1}, ValueError, "path missing"),
        ({"init_method": "foo://a"}, RuntimeError, "No rendezvous handler for foo://"),
        ({"init_method": 3}, RuntimeError, "`url` must be a string"),
        ({"store": dist.HashStore(), "rank": 0}, ValueError, "world_size must be positive"),
        ({"store": dist.HashStore(), "world_size": 1}, ValueError, "rank must be non-negative"),
        ({"store": 1, "init_method": "env://"}, AssertionError, "both init_method and store"),
        ({"timeout": 3}, TypeError, "to be of type datetime.timedelta"),
    ],
)
def test_refused(options, error, text):
    with pytest.raises(error, match=text):
        dist.init_process_group("gloo", **options)
    assert not dist.is_initialized()


def test_a_scheme_of_ones_own():
    def meet(url, timeout):
        yield dist.HashStore(), 0, 1

    dist.register_rendezvous_handler("mine", meet)
    one(init_method="mine://anywhere")
    with pytest.raises(RuntimeError, match="for mine:// already registered"):
        dist.register_rendezvous_handler("mine", meet)


PROGRAM = """
import os, sys
import flambeau as torch
found = next(torch.distributed.rendezvous(sys.argv[1]))
store, rank, size = found
store.set(str(rank), str(rank * 10))
print([int(v) for v in store.multi_get([str(r) for r in range(size)])])
store.barrier("end", size)
"""


@pytest.mark.parametrize("scheme", ["env", "file"])
def test_two_processes_meet(scheme, tmp_path):
    port = dist.TCPStore("localhost", 0, is_master=True).port
    url = "env://" if scheme == "env" else f"file://{tmp_path}/store?world_size=2&rank="
    started = []
    for rank in range(2):
        given = {**ALONE, "RANK": rank, "WORLD_SIZE": 2, "MASTER_PORT": port}
        env = {**os.environ, **{k: str(v) for k, v in given.items()}}
        command = [sys.executable, "-c", PROGRAM, url if scheme == "env" else url + str(rank)]
        started.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
    assert [p.communicate(timeout=60)[0] for p in started] == ["[0, 10]\n"] * 2
    assert not os.listdir(tmp_path)
