"""Uneven inputs: a process without input gives zeros, and ends with the others' parameters."""

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.distributed.algorithms.join import Join, Joinable, JoinHook
from tests.distributed import worlds

dist = torch.distributed
DDP = nn.parallel.DistributedDataParallel


class Net(nn.Module):
    """One parameter that some steps leave out, and a buffer that counts forward passes."""

    def __init__(self):
        super().__init__()
        self.first, self.last, self.side = nn.Linear(3, 5), nn.Linear(5, 1), nn.Linear(5, 1)
        self.register_buffer("passes", torch.zeros(1))

    def forward(self, x, side):
        self.passes += 1
        x = torch.tanh(self.first(x))
        return self.last(x) + (self.side(x) if side else 0)


def inputs(rank, count):
    draw = np.random.default_rng(rank)
    return [torch.from_numpy(draw.normal(size=(4, 3))) for _ in range(count)]


def by_one(net, counts, divides_by_all, side, every):
    """Parameters after the steps of all ranks, taken by one process."""
    optim = torch.optim.SGD(net.parameters(), lr=0.1)
    data = [inputs(rank, count) for rank, count in enumerate(counts)]
    for step in range(max(counts)):
        going = [mine[step] for mine in data if step < len(mine)]
        share = len(counts) if divides_by_all else len(going)
        for x in going:
            (net(x, side).square().mean() / share).backward()
        if (step + 1) % every == 0:
            optim.step()
            optim.zero_grad()
    return [p.detach().clone() for p in net.parameters()]


def uneven(rank, size):
    torch.set_default_dtype(torch.float64)
    uneven_counts = [[3, 7, 0, 5][:size], [6, 2, 4, 4][:size], [0, 4, 2, 2][:size], [3] * size]
    n = 0
    for counts in uneven_counts:
        for how in ("plain", "unused", "static"):
            for by_all, every in ((True, 1), (False, 1), (True, 2)):
                if every == 2 and any(count % 2 for count in counts):
                    continue
                n += 1
                side = how == "plain" or n % 2 == 0
                torch.manual_seed(3)
                expected = by_one(Net(), counts, by_all, side, every)
                torch.manual_seed(3)
                net = Net()
                wrapped = DDP(
                    net,
                    find_unused_parameters=how == "unused",
                    static_graph=how == "static",
                    gradient_as_bucket_view=n % 3 == 0,
                    bucket_cap_mb=(25, 1e-4)[n % 2],
                )
                optim = torch.optim.SGD(net.parameters(), lr=0.1)
                with wrapped.join(divide_by_initial_world_size=by_all):
                    for i, x in enumerate(inputs(rank, counts[rank])):
                        ends = (i + 1) % every == 0
                        with torch.enable_grad() if ends else wrapped.no_sync():
                            wrapped(x, side).square().mean().backward()
                        if ends:
                            optim.step()
                            optim.zero_grad()
                told = f"{counts} {how} {by_all} {every}"
                for p, q in zip(net.parameters(), expected, strict=True):
                    np.testing.assert_allclose(p.detach(), q, rtol=0, atol=1e-12, err_msg=told)
                assert net.passes.item() == max(counts)
                # Even steps after the block need no such thing.
                wrapped(torch.ones(1, 3), side).sum().backward()
    assert n > 20


def evaluated(rank, size):
    """Forward passes without gradients count as steps too."""
    net = DDP(nn.BatchNorm1d(2))
    with net.join():
        for i in range(rank + 1):
            with torch.set_grad_enabled(i % 2 == 1):
                y = net(torch.randn(3, 2)).sum()
            if i % 2 == 1:
                y.backward()
    means = [torch.zeros(2) for _ in range(size)]
    dist.all_gather(means, net.module.running_mean)
    assert all(torch.equal(m, means[0]) for m in means)


def hooked(rank, size):
    """A communication hook runs for those without input too, with zeros."""

    def summed(state, bucket):
        state.append(bucket.buffer().abs().sum().item())
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future()

    seen = []
    net = DDP(nn.Linear(2, 1, bias=False))
    net.register_comm_hook(seen, summed)
    with net.join():
        for _ in range(rank + 1):
            net.zero_grad()
            net(torch.ones(1, 2)).sum().backward()
            found = net.module.weight.grad.tolist()
    assert found == [[size - rank] * 2]
    assert seen == [2.0] * (rank + 1) + [0.0] * (size - rank - 1)


def ends_early(rank, size):
    net = DDP(nn.Linear(2, 2))
    text = "Rank 0 exhausted all inputs" if rank == 0 else "Throwing across all ranks"
    done = 0
    with pytest.raises(RuntimeError, match=text):
        with net.join(throw_on_early_termination=True):
            for _ in range(2 + rank):
                net(torch.ones(1, 2)).sum().backward()
                done += 1
    assert done == 2
    with net.join(throw_on_early_termination=True):  # even ones do not
        net(torch.ones(1, 2)).sum().backward()
    with net.join(enable=False):
        net(torch.ones(1, 2)).sum().backward()
    text = "call different collectives|gave up|has left"
    net = DDP(nn.SyncBatchNorm(2))
    with pytest.raises(dist.DistBackendError, match=text), net.join():
        for _ in range(1 + rank):
            net(torch.ones(3, 2)).sum().backward()


class Counter(Joinable):
    """The example of PyTorch's tutorial: counts all processes' inputs."""

    def __init__(self):
        super().__init__()
        self.count, self.most = 0, None

    def __call__(self):
        Join.notify_join_context(self)
        one = torch.ones(1)
        dist.all_reduce(one)
        self.count += int(one.item())

    def join_hook(self, **kwargs):
        counter = self

        class Hook(JoinHook):
            def main_hook(self):
                dist.all_reduce(torch.zeros(1))

            def post_hook(self, is_last_joiner):
                counter.most = is_last_joiner
                total = torch.tensor([counter.count if is_last_joiner else 0])
                dist.all_reduce(total, dist.ReduceOp.MAX)
                counter.count = int(total.item())

        return Hook()

    @property
    def join_device(self):
        return torch.device("cpu")

    @property
    def join_process_group(self):
        return dist.group.WORLD


def several(rank, size):
    """Joinables side by side, of which the first tells for all."""
    counter, net = Counter(), DDP(nn.Linear(1, 1, bias=False))
    steps = 3 * rank
    with Join([counter, net], divide_by_initial_world_size=False):
        for step in range(steps):
            counter()
            net.zero_grad()
            net(torch.ones(1, 1)).sum().backward()
            assert net.module.weight.grad.item() == 1, step
    assert counter.count == sum(3 * r for r in range(size))
    assert counter.most == (rank == size - 1)


def everything(rank, size):
    for part in (uneven, evaluated, several):
        part(rank, size)
    torch.set_default_dtype(torch.float32)
    hooked(rank, size)
    ends_early(rank, size)


@worlds.engines("size", [3], more=[2, 4])
def test_uneven_inputs(engine, size):
    given = {"GROUP_SECONDS": 20, worlds.ENGINE: engine}
    worlds.run("test_uneven", "everything", size, timeout=100, **given)
