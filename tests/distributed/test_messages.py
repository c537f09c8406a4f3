"""send and recv between two and four processes."""

import os
import signal
import time

import pytest

import flambeau as torch
from tests.distributed import worlds

dist = torch.distributed


def ring(rank, size):
    """Every rank sends to the next, with messages smaller and larger than what is shared."""
    after, before = (rank + 1) % size, (rank - 1) % size
    for n in (0, 1, 1000, 3_000_001):
        x, y = torch.full((n,), float(rank)), torch.zeros(n)
        works = [dist.isend(x, after), dist.irecv(y, before)]
        assert all(w.wait() for w in works) and works[1].source_rank() == before
        assert (y == before).all()
        ops = [dist.P2POp(dist.irecv, y, before), dist.P2POp(dist.isend, x + 1, after)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        assert (y == before + 1).all()


def in_turn(rank, size):
    if rank == 0:
        for i in range(1, size):
            dist.send(torch.arange(6).reshape(2, 3).T + i, i)
            assert dist.recv(got := torch.zeros(3, 2)[:, :1], i) == i and (got == i).all()
    else:
        wide = torch.zeros(3, 4, dtype=torch.int64)
        assert dist.recv(wide[:, ::2], 0) == 0
        assert wide[:, ::2].tolist() == (torch.arange(6).reshape(2, 3).T + rank).tolist()
        assert wide[:, 1::2].sum() == 0
        dist.send(torch.full((3, 1), float(rank)), 0)


def by_tag(rank, size):
    """Messages are taken by their tags, those of one tag in their order."""
    if rank == 0:
        for tag in (1, 2, 1, 3):
            dist.send(torch.tensor([tag * 10 + len(str(tag))]), 1, tag=tag)
        dist.send(torch.tensor([7]), 1, tag=1)
        dist.send(torch.zeros(200_000), 1, tag=5)
        dist.send(torch.ones(200_000), 1, tag=4)
    if rank == 1:
        x = torch.zeros(1, dtype=torch.int64)
        seen = []
        for tag in (3, 1, 2, 1, 1):
            dist.recv(x, 0, tag=tag)
            seen.append(x.item())
        assert seen == [31, 11, 21, 11, 7]
        y = torch.zeros(200_000)
        dist.recv(y, 0, tag=4)
        assert (y == 1).all()
        dist.recv(y, 0, tag=5)
        assert (y == 0).all()


def from_any(rank, size):
    if rank:
        dist.send(torch.tensor([rank]), 0)
    else:
        x, seen = torch.zeros(1, dtype=torch.int64), set()
        for _ in range(size - 1):
            sender = dist.recv(x)
            assert x.item() == sender
            seen.add(sender)
        assert seen == set(range(1, size))


def beside_collectives(rank, size):
    """A message that is under way does not hold up a collective, nor the other way round."""
    other = 1 - rank
    x, y = torch.full((500_000,), float(rank)), torch.zeros(500_000)
    if rank < 2:
        works = [dist.isend(x, other), dist.irecv(y, other)]
    for _ in range(5):
        dist.all_reduce(torch.ones(100_000))
    if rank < 2:
        assert all(w.wait() for w in works) and (y == other).all()
    group = dist.new_group([0, 1])
    if rank < 2:
        dist.send(torch.ones(1), other, group) if rank else dist.recv(y[:1], other, group)
        dist.send(torch.ones(1), group=group, group_dst=1) if rank == 0 else dist.recv(
            y[:1], group=group, group_src=0
        )


def objects(rank, size):
    if rank == 0:
        dist.send_object_list(["text", {"k": 1}], 1)
    if rank == 1:
        got = [None, None]
        assert dist.recv_object_list(got, 0) == 0 and got == ["text", {"k": 1}]


def refused(rank, size):
    x = torch.zeros(1)
    for call in (dist.send, dist.recv, dist.isend, dist.irecv):
        with pytest.raises(ValueError, match="expected the rank of another process"):
            call(x, rank)
        with pytest.raises(ValueError, match="to be a rank of the group"):
            call(x, size)
        with pytest.raises(ValueError, match="expected a tag of 0 or more, got -1"):
            call(x, (rank + 1) % size, tag=-1)
    with pytest.raises(ValueError, match="Invalid ``op``"):
        dist.P2POp(dist.send, x, 0)
    with pytest.raises(ValueError, match="an empty one"):
        dist.batch_isend_irecv([])
    if rank == 0:
        dist.send(torch.zeros(2), 1)
        dist.send(torch.ones(1), 1)
    if rank == 1:
        with pytest.raises(dist.DistBackendError, match="rank 0 sends 8 bytes, expected 4"):
            dist.recv(x, 0)
        dist.recv(x, 0)
        assert x.item() == 1


def large(rank, size):
    """Around the sizes at which streams are cut, asked for before and after they come, at once."""
    if rank > 1:
        return
    other, seed = 1 - rank, torch.arange(1 << 21, dtype=torch.int32)
    counts = [64 << 10, (64 << 10) - 4, (64 << 10) + 1, 1 << 18, (1 << 18) + 3, 1 << 21, 1_700_001]
    for early in (True, False):
        got = [torch.zeros(n, dtype=torch.int32) for n in counts]
        works = []

        def receive(works=works, got=got):
            works += [dist.irecv(x, other, tag=len(x) % 3) for x in got]

        if early or rank:
            receive()
        works += [dist.isend(seed[:n] * (rank + 3), other, tag=n % 3) for n in counts]
        if not early:
            time.sleep(0.05)
            if not rank:
                receive()
        assert all(w.wait() for w in works)
        for n, x in zip(counts, got, strict=True):
            assert torch.equal(x, seed[:n] * (other + 3)), n
    if rank == 0:
        dist.send(seed, 1)
        dist.send(seed + 1, 1)
    else:
        with pytest.raises(dist.DistBackendError, match="sends 8388608 bytes, expected 4194304"):
            dist.recv(seed[: 1 << 20], 0)
        dist.recv(got := torch.zeros_like(seed), 0)
        assert torch.equal(got, seed + 1)


def late(rank, size):
    """A receive that ends in the middle of its message writes no more, whatever comes."""
    x = torch.full((1 << 24,), float(2 - rank))
    pids = [None, None]
    dist.all_gather_object(pids, os.getpid())
    if rank == 0:
        work = dist.isend(x, 1)
        os.kill(os.getpid(), signal.SIGSTOP)
        with pytest.raises(dist.DistBackendError):
            work.wait()
    else:
        with pytest.raises(dist.DistBackendError, match="timed out after 1 s waiting for rank 0"):
            dist.recv(x, 0)
        before = x.clone()
        assert before[-1] == 1
        os.kill(pids[0], signal.SIGCONT)
        time.sleep(0.3)
        assert torch.equal(x, before)


def everything(rank, size):
    for part in (ring, in_turn, by_tag, from_any, beside_collectives, objects, refused, large):
        part(rank, size)
        dist.barrier()


@worlds.engines("size", [4], tcp=[2])
def test_messages(engine, size):
    worlds.run("test_messages", "everything", size, **{worlds.ENGINE: engine})


@worlds.both
def test_receive_that_ends_in_the_middle(engine):
    worlds.run("test_messages", "late", 2, **{worlds.ENGINE: engine, "GROUP_SECONDS": 1})
