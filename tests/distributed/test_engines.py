"""Which engine a group gets: shared memory on one machine, TCP between machines, or an error."""

import os
import socket
import threading
import time
from datetime import timedelta

import pytest

import flambeau as torch
from flambeau.distributed import _engine
from tests.distributed import worlds

dist = torch.distributed


def between_machines(rank, size):
    """Sums, messages and new groups of ranks that seem to be on different machines."""
    assert dist.group.WORLD._engine == "tcp" and dist.get_backend() == "gloo"
    for count in (3, 100_000):
        x = torch.full((count,), rank + 1.0)
        dist.all_reduce(x)
        assert (x == size * (size + 1) / 2).all()
    pair = dist.new_group([0, 1])
    if rank < 2:
        assert pair._engine == "tcp"
        dist.send(torch.ones(2), 1, pair) if rank == 0 else dist.recv(torch.ones(2), 0, pair)
    alone = dist.new_group([rank], use_local_synchronization=True)
    assert alone._engine == "shm"
    with pytest.raises(dist.DistBackendError, match="the engine 'shm' joins those of one machine"):
        dist.new_group(backend="shm")
    dist.barrier()  # rank 0 serves the store


def same_bits(rank, size):
    """Sums do not depend on the engine: ranks are joined in their order."""
    os.environ[worlds.ENGINE] = "shm"
    shared = dist.new_group()
    os.environ[worlds.ENGINE] = "tcp"
    tcp = dist.new_group()
    assert (shared._engine, tcp._engine) == ("shm", "tcp")
    draw = torch.Generator().manual_seed(rank)
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        for count in (100, 150_001):
            for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.PRODUCT):
                x = torch.randn(count, generator=draw, dtype=torch.float64).to(dtype)
                y = x.clone()
                dist.all_reduce(x, op, shared)
                dist.all_reduce(y, op, tcp)
                assert torch.equal(x, y), (dtype, count, op)


def large_ones(rank, size):
    """Data that goes in many pieces, of odd sizes, is where shared memory puts it."""
    groups = []
    for name in ("shm", "tcp"):
        os.environ[worlds.ENGINE] = name
        groups.append(dist.new_group())
    draw = torch.Generator().manual_seed(rank)
    count = 333_337
    mine = torch.randn(count, generator=draw)
    sizes = [count + 40_001 * r for r in range(size)]
    parts = [torch.randn(n, generator=draw) for n in sizes]
    ends = []
    for group in groups:
        x, y, z, part = mine.clone(), mine.clone(), mine.clone(), torch.zeros(count)
        dist.reduce(x, 1, group=group)
        assert rank == 1 or torch.equal(x, mine)
        dist.broadcast(y, 2, group)
        uneven = [torch.zeros(n) for n in sizes]
        dist.all_gather(uneven, parts[rank], group)
        scattered = torch.zeros(sizes[rank])
        dist.reduce_scatter(scattered, parts, group=group)
        gathered = [torch.zeros(count) for _ in range(size)] if rank == 1 else None
        dist.gather(mine, gathered, 1, group)
        dist.scatter(part, [mine * r for r in range(size)] if rank == 0 else None, 0, group)
        exchanged = torch.zeros(sizes[rank] * size)
        dist.all_to_all_single(exchanged, torch.cat(parts), [sizes[rank]] * size, sizes, group)
        dist.all_reduce(z, dist.ReduceOp.MAX, group)
        works = [dist.all_reduce(t, async_op=True, group=group) for t in (part, z)]
        for work in works:
            work.wait()
        ends.append([x, y, z, part, scattered, exchanged, *uneven, *(gathered or [])])
    for i, (a, b) in enumerate(zip(*ends, strict=True)):
        assert torch.equal(a, b), i
    dist.barrier()


def other_secret(rank, size):
    """A rank that does not know the others' secret gets no connection."""
    os.environ[worlds.ENGINE] = "tcp"
    os.environ["FLAMBEAU_STORE_SECRET"] = ("one", "another")[rank]
    begun = time.monotonic()
    text = ("rank 1 did not connect to rank 0", "no connection to rank 0 .*: it was closed: the s")
    with pytest.raises(dist.DistBackendError, match=text[rank]):
        dist.new_group(timeout=timedelta(seconds=1.5))
    assert time.monotonic() - begun < 10
    del os.environ[worlds.ENGINE]
    dist.barrier()


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
    with pytest.raises(ValueError, match="one engine on all ranks, got rank 0 'tcp', rank 1 'shm'"):
        dist.new_group()
    dist.barrier()  # rank 0 serves the store
    os.environ[worlds.ENGINE] = "mpi"
    with pytest.raises(ValueError, match="ENGINE: expected 'tcp' or 'shm', got 'mpi'"):
        dist.new_group()


@pytest.mark.parametrize("size", [2, 3])
def test_between_machines(size):
    worlds.run("test_engines", "between_machines", size, MACHINES="1", GLOO_SOCKET_IFNAME="lo")


def test_same_bits():
    worlds.run("test_engines", "same_bits", 3)


def test_a_rank_dies_in_the_middle():
    started = worlds.start("test_engines", "stopped_in_the_middle", 3, **{worlds.ENGINE: "tcp"})
    ended = worlds.finish(started)
    assert [status for status, _, _ in ended] == [0, 9, 0], ended


@pytest.mark.parametrize(("case", "size"), [("wants", 2), ("other_secret", 2), ("large_ones", 3)])
def test_choices(case, size):
    worlds.run("test_engines", case, size)


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
    """Who cannot prove to know the number that the rank gave away is closed, and delays nobody."""
    store = dist.HashStore()
    store.set("g/machine 1", "tcp other")
    silent, ends = [], []

    def other():
        address = store.get("g/address 0").decode()
        host, port, _ = address.split(" ")
        for said in (b"", b"x", b"x" * 80, b"FBRANKS1" + bytes(72)):
            silent.append(socket.create_connection((host, int(port))))
            silent[-1].sendall(said)
        core = torch._C._distributed.make_tcp_group(1, 2, "g", "127.0.0.1", "")
        store.set("g/address 1", core.address)
        core.begin([address, core.address], 5000)
        ends.append(time.monotonic() - begun)

    begun = time.monotonic()
    thread = threading.Thread(target=other)
    thread.start()
    prefixed = dist.PrefixStore("g", store)
    core, engine = _engine.join("gloo", 0, 2, "g", prefixed, timedelta(seconds=5))
    thread.join()
    assert engine == "tcp" and ends[0] < 1.5
    del core
    for each in silent:
        each.close()
    store.set("h/machine 1", "tcp other")
    store.set("h/address 1", "127.0.0.1 1 00")
    text = "rank 1 did not connect to rank 0 at 127.0.0.1"
    with pytest.raises(dist.DistBackendError, match=text):
        _engine.join("gloo", 0, 2, "h", dist.PrefixStore("h", store), timedelta(seconds=0.3))
