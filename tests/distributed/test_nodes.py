"""Launchers of one run on several machines, which are all this one here."""

import re
import signal
import time

import pytest

from flambeau.distributed import run
from tests.distributed import worlds
from tests.distributed.test_launcher import begin, gone

MEETS = """
import os, sys
import flambeau as torch
import flambeau.distributed as dist
dist.init_process_group()
x = torch.tensor([1.0 + dist.get_rank()])
dist.all_reduce(x)
names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE".split()
say(x.item(), *(os.environ[n] for n in names))
dist.destroy_process_group()
"""


def start(tmp_path, code, options, each):
    """Launchers with common options and each its own."""
    started = []
    for i, own in enumerate(each):
        folder = tmp_path / str(i)
        folder.mkdir(parents=True, exist_ok=True)
        started.append(begin(folder, code, *options, *own))
    return started


def finish(started):
    """(status, output, errors) of each."""
    ends = []
    try:
        for p in started:
            out, err = p.communicate(timeout=60)
            ends.append((p.returncode, out, err))
    finally:
        for p in started:
            p.kill()
    return ends


def launch(*args):
    return finish(start(*args))


def static(port, *more):
    return ("--nnodes=2", "--master-addr=127.0.0.1", f"--master-port={port}", *more)


def c10d(port, *more):
    endpoint = f"--rdzv-endpoint=localhost:{port}"
    return ("--nnodes=2:2", "--rdzv-backend=c10d", endpoint, "--rdzv-id=run", *more)


def test_nodes_of_different_sizes(tmp_path):
    each = [("--node-rank=0", "--nproc-per-node=1"), ("--node-rank=1", "--nproc-per-node=2")]
    ends = launch(tmp_path, MEETS, static(worlds.free_port()), each)
    assert [status for status, _, _ in ends] == [0, 0], ends
    assert ends[0][1].split() == "6.0 0 0 3 1 0 2".split()
    assert sorted(ends[1][1].splitlines()) == ["6.0 1 0 3 2 1 2", "6.0 2 1 3 2 1 2"]


# The rank that fails in the first attempt is of one machine; all start again.
FAILS_ONCE = (
    MEETS
    + """
attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
if (attempt, dist.get_rank() if dist.is_initialized() else os.environ["RANK"]) == ("0", "1"):
    sys.exit(3)
say("attempt", attempt)
"""
)


def test_all_start_again(tmp_path):
    options = c10d(worlds.free_port(), "--max-restarts=2")
    ends = launch(tmp_path, FAILS_ONCE, options, [(), ()])
    assert [status for status, _, _ in ends] == [0, 0], ends
    text = "".join(err for _, _, err in ends)
    assert len(re.findall("started again, 1 of 2", text)) == 2 and "2 of 2" not in text
    assert re.search(r"node \d failed: rank 1 ended with 3\n", text)
    assert all("attempt 1" in out for _, out, _ in ends)


WAITS = """
import os, sys, time
say(os.getpid())
if os.environ["RANK"] == "1" and len(sys.argv) < 2:
    sys.exit(4)
time.sleep(60)
"""


def test_a_failure_ends_all_machines(tmp_path):
    before = time.monotonic()
    each = [("--node-rank=0",), ("--node-rank=1",)]
    ends = launch(tmp_path, WAITS, static(worlds.free_port()), each)
    assert time.monotonic() - before < 20 and [status for status, _, _ in ends] == [1, 1]
    assert "node 1 failed: rank 1 ended with 4; the processes of this machine" in ends[0][2]
    assert "first: rank 1 (local rank 0" in ends[1][2]
    assert all(gone(int(out)) for _, out, _ in ends)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_launcher_that_goes(tmp_path, number):
    """The others end their processes, also where it has served the store."""
    options = static(worlds.free_port())
    first, second = (
        begin(tmp_path, WAITS, *options, f"--node-rank={r}", arguments=["on"]) for r in range(2)
    )
    pids = [int(p.stdout.readline()) for p in (first, second)]
    first.send_signal(number)
    _, err = second.communicate(timeout=30)
    first.communicate(timeout=30)
    assert second.returncode == 1
    told = "node 0 stopped by SIGTERM" if number == signal.SIGTERM else "is gone"
    assert told in err and "the processes of this machine were ended" in err, err
    deadline = time.monotonic() + 10
    while not all(map(gone, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert all(map(gone, pids))


def test_launchers_that_do_not_fit(tmp_path):
    three = static(worlds.free_port(), "--nnodes=3", "--rdzv-conf=timeout=3")
    differ = [("--node-rank=0", "--max-restarts=1"), ("--node-rank=1",)]
    late = static(worlds.free_port(), "--rdzv-conf=join_timeout=0.5")
    runs = [
        (three, [(f"--node-rank={r}",) for r in (0, 1, 1)]),
        (static(worlds.free_port()), differ),
        (late, [("--node-rank=0",)]),
    ]
    begun = [start(tmp_path / f"run{i}", WAITS, *run) for i, run in enumerate(runs)]
    of_three, of_two, of_one = map(finish, begun)
    text = "".join(err for _, _, err in of_three)
    assert "--node-rank: 1 is the number of another machine of the run" in text
    assert "node 2 did not come in 3 s" in text
    text = "--max-restarts: expected the same on all machines, got 0 on node 1"
    assert text in of_two[1][2]
    ((status, _, err),) = of_one
    assert status == 1 and "node 1 did not come in 0.5 s" in err


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--nnodes=1:4"], "--nnodes: expected one number of machines, got 1:4; machines"),
        (["--nnodes=two"], "--nnodes: expected a number from 1, got 'two'"),
        (["--nnodes=2", "--node-rank=2"], "--node-rank: expected 0 to 1, got 2"),
        (["--nnodes=2", "--standalone"], "--standalone: not with 2 machines; they meet at"),
        (["--nnodes=2", "--local-addr=a"], "--local-addr: not with 2 machines; GLOO_SOCKET"),
        (["--nnodes=2", "--rdzv-backend=c10d"], "--rdzv-endpoint: expected host:port, got ''"),
        (["--nnodes=2", "--rdzv-endpoint=a:b"], "--rdzv-endpoint: expected host:port, got 'a:b'"),
        (["--nnodes=2", "--rdzv-conf=a=b"], "--rdzv-conf: expected timeout=SECONDS or join_time"),
        (["--nnodes=2", "--master-addr=0.0.0.0"], "set FLAMBEAU_STORE_SECRET to the same text"),
    ],
)
def test_refused(options, text, monkeypatch):
    monkeypatch.delenv("FLAMBEAU_STORE_SECRET", raising=False)
    with pytest.raises(SystemExit, match=text):
        run.main([*options, "program.py"])
