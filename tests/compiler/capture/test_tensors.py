"""Programs with tensors: captured without a break, equal to eager, gradients too."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools

import pytest

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import nn

from .test_interpreter import captured

PROGRAMS = []


def program(f):
    PROGRAMS.append(f)
    return f


def same(a, b):
    if isinstance(a, torch.Tensor):
        assert isinstance(b, torch.Tensor) and a.dtype == b.dtype and a.shape == b.shape
        assert a.requires_grad == b.requires_grad
        assert torch.equal(a.detach(), b.detach())
    elif isinstance(a, (list, tuple)):
        assert type(a) is type(b) and len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        same(list(a.values()), list(b.values()))
    elif hasattr(a, "__dict__") and not isinstance(a, type):
        same(vars(a), vars(b))
    else:
        assert type(a) is type(b) and a == b


@program
def operators(x, y):
    return (
        x + y,
        x - 1,
        2 * x,
        x / y,
        x**2,
        -x,
        x @ y.T,
        x > y,
        x == y,
        abs(x),
        1 - x,
        x // 2,
        x % 3,
        ~(x > 0),
    )


@program
def methods(x, y):
    return (
        x.sum(),
        x.mean(1, keepdim=True),
        x.relu().exp(),
        x.view(-1),
        x.reshape(2, -1),
        x.transpose(0, 1),
        x.T,
    )


@program
def functions(x, y):
    return (
        torch.cat([x, y], dim=1),
        torch.stack((x, y)),
        torch.where(x > 0, x, y),
        torch.maximum(x, y),
        F.softmax(x, -1),
    )


@program
def indexing(x, y):
    return x[0], x[:, 1], x[..., None], x[1:, ::2], x[-1, -1], x[x[:, 0].argsort()], x[[0, 1]]


@program
def shapes(x, y):
    n, d = x.shape
    return (
        x.size(0),
        x.numel(),
        n * d,
        x.dim(),
        x.new_zeros(n, d + 1),
        x.dtype,
        x.device,
        x.shape,
        len(x),
        x.ndim,
    )


@program
def in_place(x, y):
    z = x.clone()
    z += y
    z.mul_(2)
    z[0] = 1
    z[:, 1] += 5
    v = z.view(-1)
    v.add_(1)
    return z, v


@program
def factories(x, y):
    return (
        torch.zeros(3) + x.sum(),
        torch.arange(4),
        torch.ones_like(x),
        torch.full((2,), 7.0),
        torch.eye(2),
    )


@program
def loops(x, y):
    out = []
    for i, row in enumerate(x):
        out.append(row * i)
    total = sum(out)
    for _ in range(3):
        total = total + y[0]
    return total, [o + 1 for o in out], {f"k{i}": o for i, o in enumerate(out)}


@program
def unpacking(x, y):
    a, b = x.chunk(2, dim=1)
    values, indices = torch.max(x, dim=0)
    top = x.topk(2)
    return a, b, values, indices, top.values, x.unbind(0)


@program
def no_grad_inside(x, y):
    with torch.no_grad():
        a = x * 2
        b = torch.is_grad_enabled()
    with torch.enable_grad():
        c = x * 3
    return a, b, c, x.detach() * 2, (x * y).requires_grad


@torch.no_grad()
def _decorated(x):
    return x * 2


@program
def decorated(x, y):
    return _decorated(x), x + 1


@program
def branches(x, y):
    if x.shape[0] > 1 and x.dim() == 2:
        x = x * 2
    if y is None:
        x = x + 100
    if x.requires_grad:
        x = x + 1
    if x.is_floating_point():
        x = x * 3
    return x if isinstance(x, torch.Tensor) else None


@program
def helpers(x, y):
    def scale(t, by=2.0):
        return t * by

    f = functools.partial(scale, by=3.0)
    g = lambda t: f(t) + scale(t)  # noqa: E731
    return g(x), list(map(scale, [x, y])), functools.reduce(lambda a, b: a + b, [x, y, x])


@dataclasses.dataclass
class Pair:
    a: torch.Tensor
    b: object = None

    def total(self):
        return self.a.sum() + (0 if self.b is None else self.b)


@program
def dataclass_of_tensors(x, y):
    p = Pair(x * 2, y.sum())
    q = dataclasses.replace(p, b=None)
    return p.total(), q.total(), p


@program
def generator_of_tensors(x, y):
    def rows(t):
        for i in range(t.shape[0]):
            yield t[i]

    return torch.stack([r * 2 for r in rows(x)]), sum(r.sum() for r in rows(y))


@contextlib.contextmanager
def _doubled(t):
    yield t * 2


@program
def context_managers(x, y):
    with _doubled(x) as d, contextlib.nullcontext(y) as z:
        return d + z


@program
def exceptions(x, y):
    try:
        x.view(1000)
    except RuntimeError:
        x = x + 1
    try:
        {}["k"]
    except KeyError:
        y = y * 2
    finally:
        x = x - 3
    return x, y


@program
def casts(x, y):
    return (
        x.double(),
        x.to(torch.float64),
        x.to(y),
        x.long(),
        x.bool(),
        x.half().float(),
        x.type_as(y),
    )


@program
def losses(x, y):
    return (
        F.mse_loss(x, y),
        F.cross_entropy(x, y.argmax(1)),
        F.linear(x, y),
        F.layer_norm(x, (4,)),
        F.gelu(x),
    )


@program
def strings_and_numbers(x, y):
    name = f"{x.dim()}d-{tuple(x.shape)}"
    return x * len(name), name, float(x.shape[0]), x.size(-1) ** 0.5, max(x.shape), str(x.dtype)


@program
def input_returned(x, y):
    return x, y, x.view_as(x), x.contiguous()


@program
def constant_tensor(x, y):
    return x + torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor(5), torch.as_tensor(2.5) * y


@program
def constant_changed_in_place(x, y):
    t = torch.tensor([1.0, 2.0, 3.0, 4.0])
    t += 1
    t[0] = 0
    z = torch.zeros(4)
    z.add_(x[0].detach())
    return t, z, t + z


@program
def type_tests(x, y):
    return (
        isinstance(x, torch.Tensor),
        type(x) is torch.Tensor,
        torch.is_tensor(y),
        hasattr(x, "shape"),
        callable(x),
    )


@program
def einsum_and_bmm(x, y):
    return torch.einsum("ij,kj->ik", x, y), torch.bmm(x[None], y.T[None]), torch.matmul(x, y.t())


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_program(f, grad):
    torch.manual_seed(0)
    x, y = torch.randn(3, 4, requires_grad=grad), torch.randn(3, 4)
    compiled = captured(f)
    for _ in range(2):
        same(compiled(x, y), f(x, y))
    parts = compiled._flambeau_config.parts
    assert [p.reason for p in parts] == [None], parts
    if grad:
        _same_gradients(f, compiled, x, y)


def _scalar(values):
    if isinstance(values, torch.Tensor):
        return values.sum() if values.requires_grad else 0
    if isinstance(values, dict):
        values = values.values()
    if isinstance(values, (list, tuple)) or type(values).__name__ == "dict_values":
        return sum(_scalar(v) for v in values)
    return 0


def _same_gradients(f, compiled, x, y):
    grads = []
    for g in (f, compiled):
        total = _scalar(g(x, y))
        if not isinstance(total, torch.Tensor):
            return
        grads.append(torch.autograd.grad(total, x)[0])
    assert torch.equal(*grads)


# Modules ------------------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.heads = heads

    def forward(self, x):
        b, t, c = x.size()
        parts = self.qkv(self.norm(x)).split(c, dim=2)
        q, k, v = (p.view(b, t, self.heads, c // self.heads).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).contiguous().view(b, t, c))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.blocks = nn.ModuleList([Block(8, 2) for _ in range(2)])
        self.extra = nn.ModuleDict({"a": nn.Linear(8, 8), "b": nn.Identity()})
        self.weights = nn.ParameterList([nn.Parameter(torch.ones(8)) for _ in range(2)])
        self.register_buffer("scale", torch.tensor(2.0))
        self.seq = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.BatchNorm1d(4), nn.Linear(4, 3))

    def forward(self, idx, flag=True):
        x = self.embed(idx)
        for block in self.blocks:
            x = block(x)
        for name, layer in self.extra.items():
            x = layer(x) * (2 if name == "a" else 1)
        for w in self.weights:
            x = x * w
        x = x * self.scale
        return self.seq(x.mean(1)) if flag else x


def test_model_training_step():
    torch.manual_seed(0)
    model = Model()
    other = copy.deepcopy(model)
    compiled = captured(model, fullgraph=True)
    idx = torch.randint(0, 10, (4, 5))
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, other)]
    for step in range(4):
        results = []
        for run, opt in ((compiled, optimizers[0]), (other, optimizers[1])):
            opt.zero_grad()
            loss = F.cross_entropy(run(idx), torch.arange(4) % 3)
            loss.backward()
            opt.step()
            results.append(loss)
        assert torch.equal(*results), step
    for (name, a), (_, b) in zip(
        model.state_dict().items(), other.state_dict().items(), strict=True
    ):
        assert torch.equal(a, b), name
    assert len(compiled._flambeau_config.parts) == 1


def test_hooks_run_and_are_guarded():
    layer = nn.Linear(3, 3)
    compiled = captured(layer)
    x = torch.ones(2, 3)
    plain = compiled(x)
    handle = layer.register_forward_hook(lambda module, args, out: out * 2)
    assert torch.equal(compiled(x), plain * 2)
    handle.remove()
    assert torch.equal(compiled(x), plain)
    layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    assert torch.equal(compiled(x), layer(x))


def test_lstm_cell_loop():
    torch.manual_seed(0)
    cell = nn.LSTMCell(3, 4)

    def run(xs):
        h = c = torch.zeros(2, 4)
        out = []
        for x in xs:
            h, c = cell(x, (h, c))
            out.append(h)
        return torch.stack(out)

    xs = torch.randn(5, 2, 3)
    same(captured(run, fullgraph=True)(xs), run(xs))


def test_function_with_its_own_derivative():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    def f(x):
        return Double.apply(x + 1) + 1

    x = torch.ones(2, requires_grad=True)
    compiled = captured(f)
    out = compiled(x)
    out.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0] and out.tolist() == [5.0, 5.0]
    with torch.no_grad():
        assert captured(f, fullgraph=True)(x).tolist() == [5.0, 5.0]


def test_buffers_and_attributes_are_put_back():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(2))
            self.calls, self.log = 0, []

        def forward(self, x):
            self.calls += 1
            self.total = self.total + x
            self.log.append(self.calls)
            self.last = x * 2
            return self.total * 1

    a, b = Counter(), Counter()
    compiled = captured(a)
    for _ in range(6):
        x = torch.randn(2)
        same(compiled(x), b(x))
    assert a.calls == 6 and a.log == [1, 2, 3, 4, 5, 6]
    same(a.total, b.total)
    same(a.last, b.last)
    assert list(a._buffers) == ["total"]


def test_autocast_state_is_restored():
    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            inside = torch.is_autocast_enabled("cpu")
        return x + 1, inside

    x = torch.ones(2)
    same(captured(f)(x), f(x))
    assert not torch.is_autocast_enabled("cpu")


def test_operations_under_autocast():
    def f(x, w):
        y = x + 1
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = y @ w
        return y, x * 2

    x, w = torch.randn(2, 3), torch.randn(3, 2)
    compiled = captured(f)
    for _ in range(3):
        same(compiled(x, w), f(x, w))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            same(compiled(x, w), f(x, w))
    assert all(p.reason is None for p in compiled._flambeau_config.parts)
