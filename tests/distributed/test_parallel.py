"""DistributedDataParallel: losses of several processes are those of one on the joined batch."""

import itertools

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.utils.checkpoint import checkpoint
from tests.distributed import worlds

dist = torch.distributed
DDP = nn.parallel.DistributedDataParallel
F = nn.functional


class Net(nn.Module):
    """Shared, unused and checkpointed parameters, as asked for."""

    def __init__(self, unused=False, again=None, buffers=False):
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)
        self.side = nn.Linear(8, 8) if unused else None
        self.shared = nn.Linear(8, 8)
        self.again, self.times = again, 2
        if buffers:
            self.norm = nn.SyncBatchNorm(8)
        self.buffers_too = buffers

    def part(self, x):
        return torch.tanh(self.shared(x))

    def forward(self, x):
        x = torch.tanh(self.first(x))
        for _ in range(self.times):
            if self.again is None:
                x = self.part(x)
            else:
                x = checkpoint(self.part, x, use_reentrant=self.again)
        if self.buffers_too:
            x = self.norm(x)
        return {"out": [self.last(x)]}


def batches(steps, size):
    draw = np.random.default_rng(0)
    for _ in range(steps):
        x = torch.from_numpy(draw.normal(size=(4 * size, 6)))
        yield x, torch.from_numpy(draw.integers(0, 3, 4 * size))


def train(net, steps, size, part, accumulate=1, to_none=True):
    """Losses on the batches, of which `part` is a slice."""
    optim = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
    losses = []
    for i, (x, y) in enumerate(batches(steps, size)):
        ends = (i + 1) % accumulate == 0
        waits = isinstance(net, DDP) and not ends
        with net.no_sync() if waits else torch.enable_grad():
            loss = F.cross_entropy(net(x[part])["out"][0], y[part])
            loss.backward()
        losses.append(loss.detach())
        if ends:
            optim.step()
            optim.zero_grad(set_to_none=to_none)
    return torch.stack(losses)


def combinations():
    for unused, again, buffers in itertools.product((False, True), (None, False, True), (0, 1)):
        for how in ("plain", "unused", "static"):
            if how == "plain" and (unused or again) or how == "unused" and again:
                continue  # refused, below
            yield {"unused": unused, "again": again, "buffers": bool(buffers)}, how


def equal(rank, size):
    torch.set_default_dtype(torch.float64)
    for n, (kind, how) in enumerate(combinations()):
        torch.manual_seed(3)
        one = Net(**kind)
        if kind["buffers"]:
            one.norm = nn.BatchNorm1d(8)  # of the joined batch
        torch.manual_seed(3 + rank)  # rank 0's values are sent to all
        net = Net(**kind)
        options = {
            "find_unused_parameters": how == "unused",
            "static_graph": how == "static",
            "gradient_as_bucket_view": n % 2 == 0,
            "bucket_cap_mb": (25, 1e-4)[n % 3 == 0],
        }
        both = {"accumulate": 1 + n % 2, "to_none": n % 4 < 2}
        expected = train(one, 12, size, slice(None), **both)
        mine = slice(4 * rank, 4 * rank + 4)
        losses = train(DDP(net, **options), 12, size, mine, **both)
        dist.all_reduce(losses, dist.ReduceOp.AVG)
        np.testing.assert_allclose(losses.numpy(), expected.numpy(), rtol=0, atol=1e-12)
        for (name, p), q in zip(net.named_parameters(), one.parameters(), strict=True):
            np.testing.assert_allclose(p.detach(), q.detach(), rtol=0, atol=1e-12, err_msg=name)
        for p, q in zip(net.buffers(), one.buffers(), strict=True):
            np.testing.assert_allclose(p, q, rtol=0, atol=1e-12)
        if kind["unused"]:
            assert net.side.weight.grad is None


def used_by_some(rank, size):
    """A parameter that rank 0 alone uses in a step gets its part of the mean, everywhere."""

    class Branch(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))

        def forward(self, x, both):
            return (self.a * x).sum() + ((self.b * x).sum() if both else 0)

    net = DDP(Branch(), find_unused_parameters=True)
    for step in range(3):
        net(torch.full((2,), rank + 1.0), both=rank == 0).backward()
        mean = sum(range(1, size + 1)) / size
        assert net.module.a.grad.tolist() == [mean * (step + 1)] * 2
        assert net.module.b.grad.tolist() == [(step + 1) / size] * 2


def wrong(rank, size):
    torch.manual_seed(0)
    x = torch.ones(2, 6)

    def run(net):
        net(x)["out"][0].sum().backward()

    net = DDP(Net(unused=True))
    run(net)
    with pytest.raises(RuntimeError, match=r"not used in producing loss: side.weight, side.bias"):
        run(net)
    net = DDP(Net(again=True))
    with pytest.raises(RuntimeError, match="shared.(weight|bias) has two gradients in one step"):
        run(net)
    net = DDP(Net(again=True), static_graph=True)
    run(net)
    net.module.times = 3
    with pytest.raises(RuntimeError, match="graph has changed .*: parameter shared.(weight|bias)"):
        run(net)
    dist.barrier()
    layers = nn.Linear(2, 3 if rank == size - 1 else 2)
    text = rf"weight \[2, 2\] torch.float32 of rank 0 is weight \[3, 2\] .* on rank {size - 1}"
    with pytest.raises(RuntimeError, match=text):
        DDP(layers)
    with pytest.raises(NotImplementedError, match="_get_ddp_logging_data: no such log is kept"):
        net._get_ddp_logging_data()
    with pytest.raises(RuntimeError, match="Rank 0 has 2 params, while rank 1 has 1"):
        DDP(nn.Linear(2, 2, bias=rank != 1))
    with pytest.raises(ValueError, match="bucket_cap_mb above 0"):
        DDP(nn.Linear(2, 2), bucket_cap_mb=0)
    with pytest.raises(NotImplementedError, match="mixed_precision: not built yet"):
        DDP(nn.Linear(2, 2), mixed_precision=1)


def several_passes(rank, size):
    """Backward passes one after another add up to the mean of all of them."""
    x = torch.full((3, 4), rank + 1.0)
    mean = 3 * sum(range(1, size + 1)) / size
    for as_view in (False, True):
        net = DDP(nn.Linear(4, 1, bias=False), gradient_as_bucket_view=as_view)
        y = net(x).sum()
        y.backward(retain_graph=True)
        y.backward()
        assert net.module.weight.grad.tolist() == [[2 * mean] * 4]
        net.zero_grad()
        a, b = net(x).sum(), net(2 * x).sum()
        (a + b).backward()
        assert net.module.weight.grad.tolist() == [[3 * mean] * 4]
        net.zero_grad()
        with net.no_sync():
            net(x).sum().backward()
        assert net.module.weight.grad.tolist() == [[3 * (rank + 1.0)] * 4]
        net(x).sum().backward()
        assert net.module.weight.grad.tolist() == [[2 * mean] * 4]
        with torch.no_grad():
            net(x)
        net(x)
        net(x).sum().backward()


def hooks(rank, size):
    """A hook's tensor takes the place of the mean; half formats round it once."""
    from flambeau.distributed.algorithms.ddp_comm_hooks import default_hooks as given

    torch.set_default_dtype(torch.float32)
    x = torch.linspace(0.1, 1, 4) * (rank + 1)
    mean = torch.linspace(0.1, 1, 4) * (sum(range(1, size + 1)) / size)
    seen = []

    def doubled(state, bucket):
        seen.append((state, bucket.index(), bucket.is_last(), bucket.buffer().dtype))
        assert [g.shape for g in bucket.gradients()] == [p.shape for p in bucket.parameters()]
        future = torch.futures.Future()
        future.set_result(bucket.buffer() * 2)
        return future

    for hook, expected, near in (
        (given.allreduce_hook, mean, 1e-6),
        (given.fp16_compress_hook, mean, 2e-3),
        (given.bf16_compress_hook, mean, 2e-2),
        (given.fp16_compress_wrapper(given.allreduce_hook), mean, 2e-3),
        (given.bf16_compress_wrapper(doubled), 2 * x, 2e-2),
    ):
        for as_view in (False, True):
            layers = nn.Sequential(nn.Linear(4, 1, bias=False), nn.Linear(1, 1, bias=False))
            nn.init.ones_(layers[1].weight)
            net = DDP(layers, gradient_as_bucket_view=as_view, bucket_cap_mb=1e-6)
            net.register_comm_hook(None, hook)
            for step in (1, 2):
                net(x).backward()
                found = layers[0].weight.grad[0]
                if hook is not given.allreduce_hook:
                    assert (found != expected).any()  # it has been rounded
                if expected is mean:
                    torch.testing.assert_close(found, step * mean, rtol=near, atol=0)
    assert seen[:2] == [(None, 0, False, torch.bfloat16), (None, 1, True, torch.bfloat16)]
    with pytest.raises(RuntimeError, match="can only be called once"):
        net.register_comm_hook(None, doubled)
    net = DDP(nn.Linear(4, 1))
    net.register_comm_hook(None, lambda state, bucket: bucket.buffer())
    with pytest.raises(RuntimeError, match="expected the hook to return a Future, got Tensor"):
        net(x).backward()
    dist.barrier()


def norm(rank, size):
    """Statistics of uneven batches are those of the joined one; so are gradients."""
    torch.set_default_dtype(torch.float64)
    draw = np.random.default_rng(1)
    parts = [torch.from_numpy(draw.normal(size=(r + 1, 3, 4))) for r in range(size)]
    weights = [torch.from_numpy(draw.normal(size=p.shape)) for p in parts]
    for options in ({}, {"momentum": None}, {"affine": False}, {"track_running_stats": False}):
        one, sync = nn.BatchNorm1d(3, **options), nn.SyncBatchNorm(3, **options)
        for _ in range(2):
            x, mine = torch.cat(parts).requires_grad_(), parts[rank].clone().requires_grad_()
            y, out = one(x), sync(mine)
            rows = slice(sum(range(rank + 1)), sum(range(rank + 2)))
            np.testing.assert_allclose(out.detach(), y[rows].detach(), rtol=0, atol=1e-12)
            (y * torch.cat(weights)).sum().backward()
            (out * weights[rank]).sum().backward()
            np.testing.assert_allclose(mine.grad, x.grad[rows], rtol=0, atol=1e-12)
        for a, b in zip(one.buffers(), sync.buffers(), strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
        if "affine" not in options:
            total = sync.weight.grad.clone()
            dist.all_reduce(total)
            np.testing.assert_allclose(total, one.weight.grad, rtol=0, atol=1e-12)
        one.eval(), sync.eval()
        if "track_running_stats" not in options:
            np.testing.assert_allclose(sync(mine).detach(), one(mine).detach(), atol=1e-12)


def everything(rank, size):
    for part in (equal, used_by_some, several_passes, norm):
        part(rank, size)
    hooks(rank, size)
    wrong(rank, size)


@worlds.engines("size", [4], tcp=[2])
def test_training(engine, size):
    worlds.run("test_parallel", "everything", size, timeout=100, **{worlds.ENGINE: engine})
