"""Ranks on two machines, as far as one machine can have two: network and process namespaces.

With DIST=all (`make dist`), as root and where `ip` and `unshare` are. The cable between them can be
cut.
"""

import os
import shutil
import subprocess
import time

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from tests.distributed import worlds

dist = torch.distributed
FIRST, SECOND = "10.213.77.1", "10.213.77.2"


def trains(rank, size):
    """DistributedDataParallel between machines is one process on the joined batch."""
    assert dist.group.WORLD._engine == "tcp"
    torch.set_default_dtype(torch.float64)
    draw = np.random.default_rng(3)
    x, y = (torch.from_numpy(draw.normal(size=(16, 6))) for _ in range(2))
    ends = []
    for rows, wrap in ((slice(None), lambda m: m), (slice(8 * rank, 8 * rank + 8), None)):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(6, 400), nn.Tanh(), nn.Linear(400, 6))
        model = (wrap or nn.parallel.DistributedDataParallel)(net)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(10):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
            optimizer.step()
        ends.append([p.detach() for p in net.parameters()])
    for p, q in zip(*ends, strict=True):
        np.testing.assert_allclose(p, q, rtol=0, atol=1e-12)
    big = torch.full((3_000_000,), float(rank))
    dist.all_reduce(big)
    assert (big == 1).all()
    if rank:
        dist.send(big, 0)
    else:
        dist.recv(torch.zeros_like(big), 1)


def cut(rank, size):
    """The cable is cut: nobody answers any more, and the time-out says so."""
    dist.all_reduce(torch.ones(10))
    if rank:
        subprocess.run(["ip", "link", "set", "cable", "down"], check=True)
    before = time.monotonic()
    text = f"timed out after 2 s; rank {1 - rank} did not come: it does not answer, .* or cut off"
    with pytest.raises(dist.DistBackendError, match=text):
        for _ in range(2):  # what had been sent before may still be enough for one
            dist.all_reduce(torch.ones(300_000))
    assert time.monotonic() - before < 20


@pytest.fixture
def machines():
    """How to start a program on the one and the other."""
    if os.environ.get("DIST") != "all":
        pytest.skip("with DIST=all")
    if os.getuid() or not shutil.which("ip") or not shutil.which("unshare"):
        pytest.skip("needs root, ip and unshare")
    names = [f"flambeau-{os.getpid()}-{i}" for i in range(2)]

    def ip(*arguments, inside=None):
        where = ["netns", "exec", inside, "ip"] if inside else []
        subprocess.run(["ip", *where, *arguments], check=True)

    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", "cable", "netns", names[0], "type", "veth", "peer", "name", "cable",
           "netns", names[1])  # fmt: skip
        for name, address in zip(names, (FIRST, SECOND), strict=True):
            ip("addr", "add", f"{address}/24", "dev", "cable", inside=name)
            ip("link", "set", "cable", "up", inside=name)
            ip("link", "set", "lo", "up", inside=name)
        yield [["ip", "netns", "exec", n, "unshare", "-pf", "--kill-child"] for n in names]
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False)


@pytest.mark.parametrize("case", ["trains", "cut"])
def test_two_machines(machines, case):
    given = {
        "MASTER_ADDR": FIRST,
        "FLAMBEAU_STORE_SECRET": "of the test",
        "GLOO_SOCKET_IFNAME": "cable",
    }
    if case == "cut":
        given["GROUP_SECONDS"] = 2
    started = worlds.start("test_machines", case, 2, machines, **given)
    ended = worlds.finish(started)
    # The one that was cut off cannot say goodbye to the store.
    assert all(status == 0 for status, _, _ in ended[: 1 if case == "cut" else 2]), ended
