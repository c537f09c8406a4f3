"""Compiled functions stop at a collective, and go on behind it with what it gave."""

import pytest

import flambeau as torch
from tests.distributed import worlds

dist, nn = torch.distributed, torch.nn
DDP = nn.parallel.DistributedDataParallel


def step(x, rank, size):
    y = x * 2 + rank
    dist.all_reduce(y)
    out = [torch.zeros_like(y) for _ in range(size)]
    dist.all_gather(out, y.sin())
    return y * 3 + sum(out)


def later(x, rank, size):
    y = x * 2 + rank
    work = dist.all_reduce(y, async_op=True)
    z = x.cos()
    work.wait()
    return y * z


def messages(x, rank, size):
    y = x.sin() + rank
    if rank == 0:
        dist.send(y, 1)
    elif rank == 1:
        dist.recv(y, 0)
    found = [None] * size
    dist.all_gather_object(found, rank)
    return y * sum(found)


def differentiable(x, rank, size):
    return (torch.distributed.nn.all_reduce(x * (rank + 1)).sin() * x).sum()


class Layer(torch.nn.Module):
    """Parts of it are on the ranks, whose results are summed: tensor parallelism by hand."""

    def __init__(self):
        super().__init__()
        self.part = torch.nn.Linear(6, 6)

    def forward(self, x, rank, size):
        return torch.distributed.nn.all_reduce(torch.tanh(self.part(x)))


def compiled(rank, size):
    torch.manual_seed(0)
    for function in (step, later, messages, Layer()):
        run = torch.compile(function)
        for n in range(3):
            x = torch.arange(6.0) + n
            torch.testing.assert_close(run(x, rank, size), function(x, rank, size))
    grads = []
    for function in (differentiable, torch.compile(differentiable)):
        x = torch.arange(6.0).requires_grad_()
        function(x, rank, size).backward()
        grads.append(x.grad)
    torch.testing.assert_close(*grads)
    explained = torch._dynamo.explain(step)(torch.ones(6), rank, size)
    assert explained.graph_break_count == 2 and explained.graph_count == 3


def refused(rank, size):
    """Nobody else is waited for: the error comes before anything is sent."""
    calls = ("all_reduce", 2), ("all_reduce", 2), ("send", 3), ("all_reduce", 1)
    functions = step, later, messages, differentiable
    for function, (call, line) in zip(functions, calls, strict=True):
        at = function.__code__.co_firstlineno + line
        text = rf"fullgraph=True\): {call} of torch.distributed, in which other processes take part"
        with pytest.raises(torch._dynamo.exc.Unsupported, match=text) as caught:
            torch.compile(function, fullgraph=True)(torch.ones(6), 0, size)
        assert f"test_compiled.py:{at} in {function.__name__}" in str(caught.value)


def wrapped(rank, size):
    """Compiling the wrapped module, or the wrapper, changes nothing."""
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(rank))
    grads = []
    for wrap in (DDP, lambda m: torch.compile(DDP(m)), lambda m: DDP(torch.compile(m))):
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
        net = wrap(module)
        for _ in range(2):
            net(x).sum().backward()
        grads.append([p.grad.clone() for p in module.parameters()])
    for other in grads[1:]:
        for g, h in zip(grads[0], other, strict=True):
            torch.testing.assert_close(g, h)


def everything(rank, size):
    compiled(rank, size)
    wrapped(rank, size)
    refused(rank, size)


def test_compiled_steps():
    worlds.run("test_compiled", "everything", 2)
