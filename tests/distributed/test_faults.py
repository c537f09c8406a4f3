"""What survivors are told: who died, stopped, did not come or calls something else. And no rest."""

import os
import signal
import sys
import threading
import time
from datetime import timedelta

import pytest

import flambeau as torch
from tests.distributed import worlds
from tools import rank_faults

dist = torch.distributed
Op = dist.ReduceOp


def disagree(rank, size):
    """All get one error, and the group goes on."""
    ones = torch.ones
    calls = [
        (
            lambda: dist.all_reduce(ones(4 if rank == 1 else 3)),
            "rank 0 all_reduce of 12 bytes of torch.float32 by SUM; "
            "rank 1 all_reduce of 16 bytes of torch.float32 by SUM; rank 2 all_reduce of 12 bytes",
        ),
        (
            lambda: dist.barrier() if rank == 2 else dist.broadcast(ones(3), 1),
            "rank 1 broadcast of 12 bytes of torch.float32, root 1; rank 2 barrier",
        ),
        (lambda: dist.all_reduce(ones(2), Op.MAX if rank else Op.MIN), "by MIN.*by MAX.*by MAX"),
        (lambda: dist.broadcast(ones(2), rank), "root 0; .* root 1; .* root 2"),
        (
            lambda: dist.all_gather(
                [ones(4 - rank if r < 2 and rank < 2 and r != rank else 2) for r in range(3)],
                ones(2),
            ),
            "all_gather of",
        ),
        (
            lambda: dist.all_to_all(
                [ones(2 if rank == r == 2 or rank != 1 else 3) for r in range(3)], [ones(2)] * 3
            ),
            r"rank 0 sends 8 bytes to rank 1, which expects 12",
        ),
        (
            lambda: dist.all_reduce(ones(2, dtype=[torch.int32, torch.float32, torch.int32][rank])),
            "torch.int32 by SUM; rank 1 all_reduce of 8 bytes of torch.float32",
        ),
    ]
    for call, text in calls:
        with pytest.raises(dist.DistBackendError, match=text):
            call()
        x = ones(1)
        dist.all_reduce(x)
        assert x.item() == size


def fails(call, text, within=10):
    before = time.monotonic()
    with pytest.raises(dist.DistBackendError, match=text):
        call()
    assert time.monotonic() - before < within


def late(rank, size):
    """Rank 2 does not come to the collective of which the others have time for 1 s."""
    dist.group.WORLD._set_default_timeout(timedelta(seconds=20))
    dist.barrier()
    dist.group.WORLD._set_default_timeout(timedelta(seconds=1))
    x = torch.ones(1)
    if rank == 2:
        time.sleep(1.8)
        fails(lambda: dist.all_reduce(x), "rank 0 gave up: all_reduce .* timed out after 1 s")
        return
    text = "timed out after 1 s; rank 2 did not come: it ended barrier, collective 3"
    # The one that waited a moment less may have told the other already.
    fails(lambda: dist.all_reduce(x), rf"all_reduce \(group '0'\): ({text}|rank \d gave up)")
    fails(lambda: dist.all_reduce(x), "the group failed before")
    time.sleep(1)


def late_in_messages(rank, size):
    x = torch.ones(1)
    if rank == 0:
        fails(
            lambda: dist.recv(x, 1), r"recv \(group '0'\): timed out after 1 s waiting for rank 1"
        )
        work = dist.irecv(x, 2)
        with pytest.raises(dist.DistBackendError, match="not done after 50 ms; it goes on"):
            work.wait(timedelta(milliseconds=50))
        fails(work.wait, "timed out after 1 s waiting for rank 2")
        assert isinstance(work.exception(), dist.DistBackendError) and not work.is_success()
    else:
        time.sleep(3)


def killed(rank, size):
    group = dist.new_group([0, 1])
    dist.barrier()
    if rank == 1:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    x = torch.ones(100_000)
    died = r"rank 1 has died \(process \d+ is gone\)"
    if rank == 0:
        fails(lambda: dist.all_reduce(x, group=group), died)
        fails(lambda: dist.recv(x, 1), died)
        work = dist.isend(torch.ones(1_000_000), 1)
        fails(work.wait, died)
    for _ in range(2):
        fails(lambda: dist.all_reduce(x), f"{died}|rank 0 gave up")


def stopped(rank, size):
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    fails(lambda: dist.barrier(), "rank 1 did not come: .*, and its process is stopped")


def left(rank, size):
    """One leaves the group while the other waits for it; one in a thread of the same process."""
    pair = dist.new_group([0, 1])
    if rank == 1:
        time.sleep(0.3)
        pair.shutdown()
    else:
        fails(lambda: dist.barrier(pair), "rank 1 has left the group")
    pair = dist.new_group([0, 1])
    if rank == 0:
        threading.Timer(0.3, pair.shutdown).start()
        fails(lambda: dist.barrier(pair), "the group was destroyed meanwhile")
        fails(lambda: dist.barrier(pair), "the group was destroyed|failed before")
    dist.barrier()
    child = os.fork()
    if child == 0:
        try:
            dist.barrier()
        except RuntimeError as e:
            os._exit(7 if "forked after the group was made" in str(e) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    dist.barrier()


def interrupted(rank, size):
    """Ctrl-C ends a wait."""
    # A shell lets its background jobs ignore it, and those what they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if rank == 0:
        threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,)).start()
        with pytest.raises(KeyboardInterrupt):
            dist.barrier()
        sys.stdout.write("interrupted")
    else:
        fails(lambda: (time.sleep(1.2), dist.barrier()), "rank 0 gave up|rank 0 has left")


@worlds.both
def test_ranks_that_call_different_things(engine):
    worlds.run("test_faults", "disagree", 3, **{worlds.ENGINE: engine})


def rest():
    """What lies in shared memory; other programs' semaphores come and go."""
    return {name for name in os.listdir("/dev/shm") if not name.startswith("sem.")}


@worlds.engines("case", ["late", "late_in_messages"])
def test_time_is_over(engine, case):
    worlds.run("test_faults", case, 3, GROUP_SECONDS=1, **{worlds.ENGINE: engine})


@worlds.both
def test_a_rank_dies(engine):
    before = rest()
    started = worlds.start("test_faults", "killed", 3, **{worlds.ENGINE: engine})
    ended = worlds.finish(started)
    assert [status for status, _, _ in ended] == [0, -signal.SIGKILL, 0], ended
    assert rest() <= before


@worlds.both
def test_a_rank_is_stopped(engine):
    given = {"GROUP_SECONDS": 1.5, worlds.ENGINE: engine}
    started = worlds.start("test_faults", "stopped", 2, **given)
    try:
        assert started[0].wait(timeout=30) == 0, started[0].communicate()
    finally:
        started[1].kill()
        worlds.finish(started)


@worlds.both
def test_leaving(engine):
    worlds.run("test_faults", "left", 2, **{worlds.ENGINE: engine})


@worlds.both
def test_ctrl_c(engine):
    given = {worlds.ENGINE: engine}
    assert worlds.run("test_faults", "interrupted", 2, **given)[0] == "interrupted"


def test_processes_that_never_come():
    store = dist.TCPStore("localhost", 0, is_master=True)
    with pytest.raises(
        dist.DistBackendError, match="rank 1 did not come: it has not joined the gr"
    ):
        dist.init_process_group(
            store=store, rank=0, world_size=2, timeout=timedelta(milliseconds=100)
        )
    text = (
        "making group '0': rank 0 did not come: it has not joined the group: .* keys: default_pg/"
    )
    with pytest.raises(dist.DistBackendError, match=text):
        dist.init_process_group(
            store=dist.HashStore(), rank=1, world_size=2, timeout=timedelta(milliseconds=100)
        )
    assert not dist.is_initialized()
    with pytest.raises(ValueError, match="expected at most 256 ranks"):
        dist.init_process_group(store=store, rank=0, world_size=1000)


def test_faults_at_random_moments():
    assert rank_faults.main(count=6, seed=5) == 0


@pytest.mark.parametrize("name", ["nccl", "mpi", "ucc", "cpu:gloo,cuda:nccl"])
def test_engines_of_another_build(name):
    with pytest.raises(RuntimeError, match="Distributed package doesn't have .* built in"):
        dist.init_process_group(name, store=dist.HashStore(), rank=0, world_size=1)
    with pytest.raises(ValueError, match="Invalid backend: 'other'"):
        dist.init_process_group("other", store=dist.HashStore(), rank=0, world_size=1)
