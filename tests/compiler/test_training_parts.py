"""Parts of training loops, compiled, step after step beside eager: checkpoints, values that are
read, averages that count their batches, loops that are left early."""

from __future__ import annotations

import copy

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.utils.checkpoint import checkpoint

pytestmark = pytest.mark.filterwarnings("error")
BACKENDS = ["eager", "aot_eager", "inductor"]


def same(got, want):
    if isinstance(want, torch.Tensor):
        assert got.dtype is want.dtype and got.shape == want.shape
        bound = 1e-10 if want.dtype is torch.float64 else 1e-5
        assert torch.allclose(got, want, rtol=bound, atol=bound / 10)
    elif isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            same(a, b)
    else:
        assert type(got) is type(want) and got == pytest.approx(want, rel=1e-5)


def trained(model, inputs, compiled=None):
    """What a model gives for each input, and where its parameters and buffers go."""
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(1)
    seen = []
    for x in inputs:
        optimiser.zero_grad()
        y = (compiled or model)(x)
        (y * y).mean().backward()
        optimiser.step()
        seen.append(y.detach())
    return seen, [v.detach().clone() for v in model.state_dict().values()]


def batches(count=4, rows=6, columns=8):
    g = torch.Generator().manual_seed(0)
    return [torch.randn(rows, columns, generator=g) for _ in range(count)]


class Checkpointed(nn.Module):
    def __init__(self, reentrant, drop):
        super().__init__()
        self.reentrant = reentrant
        self.first = nn.Linear(8, 16)
        self.block = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Dropout(drop))
        self.last = nn.Linear(16, 3)

    def forward(self, x):
        x = self.first(x).relu()
        x = checkpoint(self.block, x, use_reentrant=self.reentrant)
        return self.last(x + checkpoint(lambda t, k: t.sin() * k, x, 2, use_reentrant=False))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("drop", [0.0, 0.4])
@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints(reentrant, drop, backend):
    torch.manual_seed(0)
    model = Checkpointed(reentrant, drop)
    other = copy.deepcopy(model)
    want = trained(model, batches())
    same(trained(other, batches(), torch.compile(other, backend=backend)), want)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("momentum", [None, 0.3])
@pytest.mark.parametrize("affine", [False, True])
def test_statistics_of_batches(momentum, affine, backend):
    """Without momentum each batch counts as much: the factor changes from step to step."""
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(8, momentum=momentum, affine=affine)
    model = nn.Sequential(nn.Linear(8, 8), norm, nn.Tanh(), nn.Linear(8, 2))
    other = copy.deepcopy(model)
    compiled = torch.compile(other, backend=backend)
    want = trained(model, batches(5))
    same(trained(other, batches(5), compiled), want)
    assert int(other[1].num_batches_tracked) == 5
    for m in (model, other):
        m.eval()
    same(compiled(batches(1)[0]), model(batches(1)[0]))
    for m in (model, other):
        m.train()
    same(trained(other, batches(2), compiled), trained(model, batches(2)))


def number_read(x):
    scale = x.abs().max().item()
    return x / scale, scale


def number_decides(x):
    y = x * 2
    return y.relu() if y.sum().item() > 0 else y.sin() - 1


def number_of_a_whole_tensor(x):
    n = int((x > 0).sum().item())
    return x[:, : n % 4] * n, n


def numbers_kept(x, seen):
    for k in range(3):
        seen.append((x * k).mean().item())
    return x + sum(seen)


def left_at_a_count(x):
    for k in range(10):
        x = x * 1.5 + k
        if k == 3:
            break
    else:
        x = x * 0
    return x


def left_at_a_size(x):
    parts = []
    for row in x:
        if len(parts) * row.numel() >= 16:
            break
        parts.append(row.cumsum(0))
    return torch.stack(parts), len(parts)


def left_at_a_value(x):
    steps = 0
    while True:
        steps += 1
        x = x / 2
        if x.abs().max() < 0.2:
            break
        x = x + 0.01
    return x, steps


def inner_loop_left(x):
    out = []
    for i in range(3):
        for j in range(5):
            if j > i:
                break
            if j == 1:
                continue
            out.append(x * i - j)
    return torch.stack(out)


def left_in_a_try(x):
    for k in range(4):
        try:
            x = x + k
            if k == 2:
                break
        finally:
            x = x * 2
    return x


def left_under_a_mode(x):
    for k in range(4):
        with torch.no_grad():
            y = x * k
            if k == 2:
                break
    return x * y, torch.is_grad_enabled()


FUNCTIONS = [
    number_read, number_decides, number_of_a_whole_tensor, left_at_a_count, left_at_a_size,
    left_at_a_value, inner_loop_left, left_in_a_try, left_under_a_mode,
]  # fmt: skip


def called(f, x):
    x = x.double().requires_grad_()
    result = f(x)
    y = result[0] if isinstance(result, tuple) else result
    (grad,) = torch.autograd.grad((y * y).sum(), x)
    return result, grad


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_functions(f, backend):
    compiled = torch.compile(f, backend=backend)
    for x in (*batches(2), -batches(1)[0], batches(1)[0] * 0.1):
        same(called(compiled, x), called(f, x))


@pytest.mark.parametrize("f", [left_at_a_count, left_at_a_size, inner_loop_left, left_in_a_try])
def test_loops_that_are_left_are_one_graph(f):
    x = batches(1)[0]
    same(torch.compile(f, fullgraph=True)(x), f(x))


@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_are_kept_in_the_callers_list(backend):
    x, got, want = batches(1)[0], [], []
    compiled = torch.compile(numbers_kept, backend=backend)
    for _ in range(2):
        same((compiled(x, got), got), (numbers_kept(x, want), want))


def test_a_result_changed_later_counts_for_its_own_gradient_alone():
    def f(x):
        a = x.sin()
        b = a.cumsum(0)
        c = b * b  # backward would need b as it was, had c a gradient
        torch._dynamo.graph_break()
        c.add_(b.mul_(0.5))
        return a

    x = torch.ones(3, requires_grad=True)
    (want,) = torch.autograd.grad(f(x).sum(), x)
    (got,) = torch.autograd.grad(torch.compile(f)(x).sum(), x)
    assert torch.allclose(got, want)
