"""Which engine a group gets: shared memory on one machine, Gloo between machines, or an error."""

import os
import socket
import time
from datetime import timedelta

import pytest

import flambeau as torch
from flambeau.distributed import _engine
from tests.distributed import worlds

dist = torch.distributed


def between_machines(rank, size):
    """Sums, messages and new groups of ranks that seem to be on different machines."""
    assert dist.group.WORLD._engine == "gloo" and dist.get_backend() == "gloo"
    for count in (3, 100_000):
        x = torch.full((count,), rank + 1.0)
        dist.all_reduce(x)
        assert (x == size * (size + 1) / 2).all()
    pair = dist.new_group([0, 1])
    if rank < 2:
        assert pair._engine == "gloo"
        dist.send(torch.ones(2), 1, pair) if rank == 0 else dist.recv(torch.ones(2), 0, pair)
    alone = dist.new_group([rank], use_local_synchronization=True)
    assert alone._engine == "shm"
    with pytest.raises(dist.DistBackendError, match="the engine 'shm' joins those of one machine"):
        dist.new_group(backend="shm")


def same_bits(rank, size):
    """Sums do not depend on the engine: ranks are joined in their order."""
    os.environ[worlds.ENGINE] = "shm"
    shared = dist.new_group()
    os.environ[worlds.ENGINE] = "gloo"
    gloo = dist.new_group()
    assert (shared._engine, gloo._engine) == ("shm", "gloo")
    draw = torch.Generator().manual_seed(rank)
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        for count in (100, 150_001):
            for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.PRODUCT):
                x = torch.randn(count, generator=draw, dtype=torch.float64).to(dtype)
                y = x.clone()
                dist.all_reduce(x, op, shared)
                dist.all_reduce(y, op, gloo)
                assert torch.equal(x, y), (dtype, count, op)


def stopped_in_the_middle(rank, size):
    """A rank is killed while much data is under way: the others name it, soon."""
    x = torch.ones(8_000_000)
    dist.all_reduce(x)
    if rank == 1:
        dist.all_reduce(x, async_op=True)
        time.sleep(0.05)
        os._exit(9)
    before = time.monotonic()
    with pytest.raises(
        dist.DistBackendError, match="rank 1 has (died|left)|rank . gave up"
    ) as told:
        for _ in range(100):
            dist.all_reduce(x)
    assert "rank 1" in str(told.value) and time.monotonic() - before < 20


def wants(rank, size):
    """Ranks that ask for different engines are told so, all of them."""
    os.environ[worlds.ENGINE] = ("gloo", "shm")[rank]
    with pytest.raises(
        ValueError, match="one engine on all ranks, got rank 0 'gloo', rank 1 'shm'"
    ):
        dist.new_group()
    dist.barrier()  # rank 0 serves the store
    os.environ[worlds.ENGINE] = "mpi"
    with pytest.raises(ValueError, match="ENGINE: expected 'gloo' or 'shm', got 'mpi'"):
        dist.new_group()


def without_the_library(rank, size):
    os.environ[worlds.ENGINE] = "gloo"
    torch._C._distributed.has_gloo = lambda: False
    with pytest.raises(
        dist.DistBackendError, match="ENGINE asks for it, which takes the library G"
    ):
        dist.new_group()
    del os.environ[worlds.ENGINE]
    torch._C._distributed.machine = lambda: f"machine of rank {rank}"
    text = (
        "rank 1 and rank 0 are on different machines.*Gloo; it is not part of this build: install"
    )
    with pytest.raises(dist.DistBackendError, match=text):
        dist.new_group()
    dist.barrier()


@pytest.mark.parametrize("size", [2, 3])
def test_between_machines(size):
    worlds.run("test_engines", "between_machines", size, MACHINES="1", GLOO_SOCKET_IFNAME="lo")


def test_same_bits():
    worlds.run("test_engines", "same_bits", 3)


def test_a_rank_dies_in_the_middle():
    started = worlds.start("test_engines", "stopped_in_the_middle", 3, **{worlds.ENGINE: "gloo"})
    ended = worlds.finish(started)
    assert [status for status, _, _ in ended] == [0, 9, 0], ended


@pytest.mark.parametrize("case", ["wants", "without_the_library"])
def test_choices(case):
    worlds.run("test_engines", case, 2)


def test_interfaces(monkeypatch):
    assert _engine.address_of_interface("lo") == "127.0.0.1"
    with pytest.raises(ValueError, match="GLOO_SOCKET_IFNAME: expected one of .*lo.*, got 'eth77'"):
        _engine.address_of_interface("eth77")
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    store = dist.PrefixStore("a", dist.TCPStore("localhost", 0, is_master=True))
    assert _engine._own_address(store) == "127.0.0.1"
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth77")
    with pytest.raises(ValueError, match="got 'eth77'"):
        _engine._own_address(store)


def test_strangers():
    """Who connects without the number that the rank gave away, or says nothing, is sent away."""
    store = dist.HashStore()
    store.set("g/machine 1", "gloo other")
    store.set("g/address 1", "127.0.0.1 1 00")
    before = time.monotonic()

    class Watched(dist.PrefixStore):
        def set(self, key, value):
            super().set(key, value)
            if key == "address 0":
                host, port, _ = value.split(" ")
                with socket.create_connection((host, int(port))) as stranger:
                    stranger.sendall(b"x" * 24)

    with pytest.raises(
        dist.DistBackendError, match="rank 1 did not connect to rank 0 at 127.0.0.1"
    ):
        _engine.join("gloo", 0, 2, "g", Watched("g", store), timedelta(seconds=0.5))
    assert time.monotonic() - before < 5
