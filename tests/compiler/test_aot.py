"""Ahead-of-time autograd against eager: values and gradients to 1e-12 in float64."""

from __future__ import annotations

import pytest
from programs import generate, shrunk

import flambeau as torch
from flambeau import nn
from flambeau._aot import aot, callable_of
from flambeau._aot.mincut import Network
from flambeau._aot.partition import partition
from flambeau._aot.passes import clean
from flambeau._compiler.lower import RULES
from flambeau._ir.graph import show
from flambeau._ir.graph_parse import parse
from flambeau._ir.graph_verify import verify
from flambeau._table.entries import entries
from flambeau._trace import trace

F = nn.functional


def compiled(f, inputs, dynamic=False, recompute=True):
    """`f` by way of captured, functional and partitioned graphs."""
    graph = trace(f, inputs, "captured", dynamic)
    wanted = [bool(x.requires_grad) for x in (*inputs, *graph.attached)]
    made = aot(graph, wanted, recompute)
    for g in filter(None, (made.forward, made.backward)):
        assert show(parse(show(g))) == show(g)
    return callable_of(made), made


def tensors(x):
    if isinstance(x, (list, tuple)):
        return [t for item in x for t in tensors(item)]
    return [x] if isinstance(x, torch.Tensor) else []


def grads(outs, inputs):
    losses = []
    for o in outs:
        if o.requires_grad:
            weights = torch.linspace(0.5, 1.5, o.numel(), dtype=o.dtype).view(o.shape)
            losses.append((o * weights).sum())
    if not losses:
        return [None] * len(inputs)
    loss = torch.stack(losses).sum()
    return torch.autograd.grad(loss, inputs, allow_unused=True)


def close(a, b, tolerance=1e-12):
    if a is None or b is None:  # eager's None is a gradient of zeros
        other = a if b is None else b
        assert other is None or not bool((other != 0).any())
        return
    assert a.shape == b.shape and a.dtype is b.dtype
    assert torch.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


def check(f, make, dynamic=False, recompute=True, tolerance=1e-12):
    """Values, gradients and changed inputs of both ways."""
    torch.manual_seed(3)
    inputs = make()
    g, made = compiled(f, make(), dynamic, recompute)
    torch.manual_seed(3)
    wanted = tensors(f(*inputs))
    torch.manual_seed(3)
    others = make()
    got = tensors(g(*others))
    assert len(got) == len(wanted)
    for x, y in zip([*got, *others], [*wanted, *inputs], strict=True):
        close(x.detach(), y.detach(), tolerance)
        assert x.requires_grad == y.requires_grad
    leaves = [x for x in inputs if x.requires_grad and x.is_leaf]
    own = [x for x in others if x.requires_grad and x.is_leaf]
    for x, y in zip(grads(got, own), grads(wanted, leaves), strict=True):
        close(x, y, tolerance)
    return made


def program_check(program, dynamic=False, recompute=True):
    f = program.function()
    check(
        lambda *xs: f(*[x.clone() for x in xs]),
        lambda: program.inputs(requires_grad=True),
        dynamic,
        recompute,
        1e-5 if "float32" in program.text() else 1e-12,  # where a step rounds to float32
    )


def agrees(program, **options):
    """Checks a program; a failure is reported as the shortest that still fails."""

    def fails(p):
        try:
            program_check(p, **options)
        except Exception:
            return True
        return False

    if fails(program):
        small = shrunk(program, fails)
        print(small.text())
        program_check(small, **options)
        raise AssertionError(f"fails now and then:\n{program.text()}")


@pytest.mark.parametrize("seed", range(1000, 1100))
def test_random_programs(seed):
    agrees(generate(seed))


@pytest.mark.parametrize("seed", range(1100, 1130))
def test_random_programs_without_recomputing(seed):
    agrees(generate(seed), recompute=False)


@pytest.mark.parametrize("seed", range(1200, 1230))
def test_random_programs_with_symbolic_sizes(seed):
    agrees(generate(seed), dynamic=True)


def doubles(*shapes, grad=True):
    def make():
        generator = torch.Generator().manual_seed(5)
        made = [torch.rand(s, generator=generator, dtype=torch.float64) - 0.5 for s in shapes]
        return [x.requires_grad_(grad) for x in made]

    return make


class Block(nn.Module):
    """A residual block, as in ResNet-18."""

    def __init__(self, n):
        super().__init__()
        self.a, self.b = (nn.Conv2d(n, n, 3, padding=1, bias=False) for _ in range(2))
        self.n, self.m = nn.BatchNorm2d(n), nn.BatchNorm2d(n)

    def forward(self, x):
        y = F.relu(self.n(self.a(x)), inplace=True)
        y = self.m(self.b(y))
        y += x
        return F.relu(y, inplace=True)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.MaxPool2d(2))
        self.body = nn.Sequential(Block(4), Block(4), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(4, 5)

    def forward(self, x):
        return self.head(self.body(self.stem(x)))


class GPT(nn.Module):
    def __init__(self, n=8, heads=2):
        super().__init__()
        self.embed, self.place = nn.Embedding(11, n), nn.Embedding(6, n)
        self.norm, self.last = nn.LayerNorm(n), nn.LayerNorm(n)
        self.qkv, self.out = nn.Linear(n, 3 * n), nn.Linear(n, n)
        self.up, self.down = nn.Linear(n, 4 * n), nn.Linear(4 * n, n)
        self.heads = heads

    def forward(self, ids, targets):
        b, t = ids.shape
        x = self.embed(ids) + self.place(torch.arange(t))
        q, k, v = (
            y.view(b, t, self.heads, -1).transpose(1, 2)
            for y in self.qkv(self.norm(x)).chunk(3, -1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, -1))
        x = x + self.down(F.gelu(self.up(self.last(x))))
        logits = x @ self.embed.weight.t()
        return F.cross_entropy(logits.view(b * t, -1), targets.view(-1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.mid = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = F.silu(self.down(x))
        b = F.silu(self.mid(F.max_pool2d(a, 2)))
        return self.out(torch.cat([a, self.up(b)], 1))


def model_check(model, make):
    model = model.double()
    state = {k: v.clone() for k, v in model.state_dict().items()}

    def f(*xs):
        return model(*xs)

    params = list(model.parameters())
    torch.manual_seed(3)
    g, made = compiled(f, make())
    model.load_state_dict(state)
    wanted = tensors(f(*make()))
    a = grads(wanted, params)
    after = {k: v.clone() for k, v in model.state_dict().items()}
    model.load_state_dict(state)
    got = tensors(g(*make()))
    b = grads(got, params)
    for x, y in zip([*got, *b], [*wanted, *a], strict=True):
        close(x, y)
    for k, v in model.state_dict().items():
        close(v, after[k])
    return made


def test_mlp():
    model_check(nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3), nn.LogSoftmax(-1)),
                doubles((5, 6), grad=False))  # fmt: skip


def test_resnet():
    made = model_check(ResNet(), doubles((2, 3, 16, 16), grad=False))
    assert len(made.metadata.mutated) == 12  # mean, variance and count of each of four norms


def test_gpt():
    ids = torch.randint(0, 11, (2, 6))
    model_check(GPT(), lambda: [ids, ids.roll(-1, 1)])


def test_unet():
    model_check(UNet(), doubles((2, 1, 8, 8), grad=False))


def test_lstm():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head = nn.LSTM(4, 5, 2, batch_first=True), nn.Linear(5, 2)

        def forward(self, x):
            y, (h, c) = self.rnn(x)
            return self.head(y), h + c

    model_check(Model(), doubles((3, 6, 4), grad=False))


def test_dropout_draws_what_eager_draws():
    check(lambda x: F.dropout(x * 2, 0.5) + torch.rand(4, dtype=x.dtype), doubles((3, 4)))


def test_changed_inputs():
    def f(x, y):
        x.add_(1)
        x[0].mul_(y[0])
        return x.sum() * y, x

    check(f, lambda: [*doubles((2, 3), grad=False)(), *doubles((2, 3))()])


def test_changed_inputs_that_share_memory():
    """What no functional graph knows of runs as it was written, for this call."""

    def f(x, y):
        return x.add_(y), y * 2

    g, _ = compiled(f, doubles((2, 3), (2, 3), grad=False)())
    for parts in (lambda x: (x[:2], x[2:]), lambda x: (x[:2], x[:2])):
        (a,), (b,) = (doubles((4, 3), grad=False)() for _ in range(2))
        for got, want in zip((*g(*parts(a)), a), (*f(*parts(b)), b), strict=True):
            close(got, want)


def test_outputs_that_share_memory():
    def f(x):
        y = x * 2
        return x, x[0], y, y[1:], y.t()

    g, made = compiled(f, doubles((3, 2), grad=False)())
    (x,) = doubles((3, 2), grad=False)()
    same, view, y, part, turned = g(x)
    assert same is x
    view.fill_(9)
    assert bool((x[0] == 9).all())
    part.zero_()
    assert not bool(y[1:].any()) and not bool(turned[:, 1:].any())


def test_outputs_that_share_memory_have_gradients():
    check(lambda x: (x[0], (x * 2)[1:], x.t()), doubles((3, 2)))


def test_one_graph_for_many_sizes():
    w = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)

    def f(x):
        return ((x @ w).tanh().softmax(-1) / x.shape[0]).sum(0)

    g, made = compiled(f, doubles((6, 4))(), {0: [0]})
    assert not made.forward.env.guards
    for n in (2, 3, 9):
        x = torch.randn(n, 4, dtype=torch.float64, requires_grad=True)
        close(g(x)[0], f(x))
        for a, b in zip(grads(g(x), [x, w]), grads([f(x)], [x, w]), strict=True):
            close(a, b)


def test_double_backward_says_that_it_is_not_there():
    g, _ = compiled(lambda x: x.sin().sum(), doubles((3,))())
    (x,) = doubles((3,))()
    (dx,) = torch.autograd.grad(g(x)[0], x, create_graph=True)
    with pytest.raises(RuntimeError, match="cannot be differentiated twice"):
        dx.sum().backward()


def test_recomputing_saves_less():
    def f(x):
        return x.sin().exp().tanh().cos().sigmoid().sum()

    few = compiled(f, doubles((100,))())[1].metadata.saved
    many = compiled(f, doubles((100,))(), recompute=False)[1].metadata.saved
    assert few == 1 < many


def test_what_kernels_take_on_both_sides_is_saved():
    weight, bias = torch.ones(4, 3, requires_grad=True), torch.ones(4, requires_grad=True)
    last = torch.ones(2, 4, requires_grad=True)

    def f(x):
        return F.linear(F.gelu(F.linear(x, weight, bias)), last)

    backward = compiled(f, [torch.ones(5, 3)])[1].backward
    targets = [n.target for n in backward.nodes]
    # the products run first: neither gelu nor anything else of forward is computed again for them
    assert targets.index("mm") < min(targets.index(t) for t in ("erf", "exp") if t in targets)


def test_what_loops_only_move_is_computed_again():
    def f(x):
        return x.tril().sin() * x.triu().cos() + x.flip(0).tanh()

    made = compiled(f, doubles((8, 8))())[1]
    assert made.metadata.saved == 1
    check(f, doubles((8, 8)))


@pytest.mark.parametrize("call", ["sum(%3, None, False, None)", "amax(%3, (0,), False)"])
def test_what_a_loop_reduces_need_not_be_in_memory(call):
    shape = "8" if "amax" in call else ""
    # backward hands sin(x) to a product; forward does not, it reduces it in a loop
    joint = parse(
        "graph(%0: f32[8, 8], %1: f32[8, 8]):\n  %3: f32[8, 8] = sin(%0)\n"
        f"  %4: f32[{shape}] = {call}\n  %5: f32[8, 8] = mm(%1, %3)\n  return %4, %5\n"
    )
    parts = partition(verify(joint, "primitive"), 1, (joint.inputs[1],), recompute=True)
    assert parts.saved == [joint.inputs[0]]
    assert [n.target for n in parts.backward.nodes] == ["sin", "mm"]


def test_the_rules_of_loops_that_entries_name_exist():
    named = {op.looped for op in entries().values() if op.looped}
    assert named == {(kind, name) for kind, rules in RULES.items() for name in rules}
    assert all(sum(kind in op.options for kind in RULES) <= 1 for op in entries().values())


def test_what_is_computed_again_is_computed_when_it_is_needed():
    weight = torch.ones(3, 3, dtype=torch.float64, requires_grad=True)
    backward = compiled(lambda x: F.linear(x.sin(), weight).tanh().sum(), doubles((3, 3))())[1]
    targets = [n.target for n in backward.backward.nodes]
    assert targets.index("mm") < targets.index("cos")


def test_clean_shares_and_drops():
    text = (
        "graph(%0: f32[2]):\n  %1: f32[2] = sin(%0)\n  %2: f32[2] = sin(%0)\n"
        "  %3: f32[2] = cos(%0)\n  %4: f32[2] = add(%1, %2, 1)\n  return %4\n"
    )
    made = clean(verify(parse(text), "primitive"))
    assert [n.target for n in made.nodes] == ["sin", "add"]
    assert made.nodes[1].args[0] is made.nodes[1].args[1]


def test_mincut():
    net = Network()
    for a, b, c in (("s", "a", 3), ("s", "b", 2), ("a", "t", 1), ("b", "t", 4), ("a", "b", 1)):
        net.edge(a, b, c)
    side = net.cut("s", "t")
    assert sum(c for a, b, c in (("s", "a", 3), ("s", "b", 2), ("a", "t", 1), ("b", "t", 4),
                                 ("a", "b", 1)) if a in side and b not in side) == 4  # fmt: skip


def test_of_equal_cuts_the_one_nearest_to_the_sink():
    net = Network()
    for a, b in (("s", "a"), ("a", "b"), ("b", "c"), ("c", "t")):
        net.edge(a, b, 1 if b in "bt" else 2)
    assert net.cut("s", "t") == {"s", "a", "b", "c"}


def test_derivatives_know_the_numbers_that_they_compute_with():
    """A square's is a product, not a power to a tensor."""
    _, made = compiled(lambda x: (x.tanh() ** 2) + x**3, [torch.randn(5, requires_grad=True)])
    assert "pow" not in show(made.backward)
