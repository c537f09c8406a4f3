"""Runs a function of a test file in several fresh processes, each with its rank; no tests.

Both engines pass the same tests: over TCP a few by default, all with DIST=all in the environment
(`make dist`).
"""

import importlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
from datetime import timedelta

import pytest

ROOT = pathlib.Path(__file__).parents[2]
CODE = "import sys; from tests.distributed import worlds; worlds.main(*sys.argv[1:])"


ENGINE = "FLAMBEAU_DISTRIBUTED_ENGINE"


def engines(name, values, tcp=(), more=()):
    """Parametrise by engine and `name`; over TCP those `tcp`. With DIST=all by all, and `more`."""
    over = [v for v in values if v in tcp]
    if os.environ.get("DIST") == "all":
        values = over = list(dict.fromkeys((*values, *tcp, *more)))
    cases = [("shm", v) for v in values] + [("tcp", v) for v in over or tcp]
    return pytest.mark.parametrize(("engine", name), cases)


def both(test):
    """Parametrise by engine."""
    return pytest.mark.parametrize("engine", ["shm", "tcp"])(test)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(module, function, size, before=None, **variables):
    """The processes, begun; `before` has the words before each rank's command."""
    given = {
        "WORLD_SIZE": size,
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": free_port(),
        **variables,
    }
    command = [sys.executable, "-X", "faulthandler", "-c", CODE, module, function]
    started = []
    for rank in range(size):
        env = {**os.environ, **{k: str(v) for k, v in given.items()}, "RANK": str(rank)}
        env["OMP_NUM_THREADS"] = "1"
        pipe = subprocess.PIPE
        options = {"env": env, "cwd": ROOT, "stdout": pipe, "stderr": pipe, "text": True}
        words = before[rank] if before else []
        started.append(subprocess.Popen([*words, *command], **options))
    return started


def finish(processes, timeout=60):
    """(status, output, errors) of each; none is left behind."""
    try:
        return [(p.returncode, *out) for p in processes for out in [p.communicate(timeout=timeout)]]
    finally:
        for p in processes:
            if p.poll() is None:
                p.send_signal(signal.SIGCONT)
                p.kill()
                p.communicate()


def run(module, function, size, timeout=60, **variables):
    """Run it; what each rank printed."""
    ended = finish(start(module, function, size, **variables), timeout)
    bad = [f"rank {r}: {status}\n{err}" for r, (status, _, err) in enumerate(ended) if status]
    assert not bad, "\n".join(bad)[-6000:]
    return [out for _, out, _ in ended]


def main(module, function):
    import warnings

    warnings.simplefilter("error")
    import flambeau as torch

    dist = torch.distributed
    if "MACHINES" in os.environ:  # each rank seems to be on a machine of its own
        torch._C._distributed.machine = lambda: "machine of rank " + os.environ["RANK"]
    dist.init_process_group(timeout=timedelta(seconds=60))
    dist.barrier()  # starting takes a while on a busy machine
    dist.barrier()
    if seconds := os.environ.get("GROUP_SECONDS"):
        dist.distributed_c10d._set_pg_timeout(timedelta(seconds=float(seconds)))
    found = importlib.import_module(f"tests.distributed.{module}")
    getattr(found, function)(dist.get_rank(), dist.get_world_size())
    dist.destroy_process_group()
