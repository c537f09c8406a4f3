"""Graphs of primitives in native code: fusion, and agreement with eager."""

from __future__ import annotations

import pytest
from programs import generate, shrunk

import flambeau as torch
from flambeau import nn
from flambeau._aot import aot, callable_of
from flambeau._compiler import scalar, toolchain
from flambeau._compiler.decompose import decompose
from flambeau._compiler.execute import back_end
from flambeau._compiler.nest import Nest, Store
from flambeau._compiler.schedule import schedule
from flambeau._ir.graph_parse import parse
from flambeau._trace import trace

F = nn.functional


pytestmark = pytest.mark.usefixtures("cache")


def program_of(text):
    return schedule(decompose(parse(text)))


def compiled(f, inputs, dynamic=False):
    graph = trace(f, inputs, "captured", dynamic)
    wanted = [bool(x.requires_grad) for x in (*inputs, *graph.attached)]
    return callable_of(aot(graph, wanted), back_end)


def tensors(x):
    if isinstance(x, (list, tuple)):
        return [t for item in x for t in tensors(item)]
    return [x] if isinstance(x, torch.Tensor) else []


def weighted(outputs):
    """A number to which every entry contributes differently."""
    weights = [torch.linspace(0.5, 1.5, max(1, x.numel())) for x in outputs]
    return sum((x.flatten() * w[: x.numel()]).sum() for x, w in zip(outputs, weights, strict=True))


def agree(f, inputs, params=(), tolerance=1e-5, dynamic=False):
    """Results and gradients of both ways, relative to the largest entry."""
    g = compiled(f, inputs, dynamic)
    ours, theirs = tensors(g(*inputs)), tensors(f(*inputs))
    assert len(ours) == len(theirs)
    leaves = [x for x in (*inputs, *params) if x.requires_grad]
    if leaves:
        ours += torch.autograd.grad(weighted(ours), leaves)
        theirs += torch.autograd.grad(weighted(theirs), leaves)
    for x, y in zip(ours, theirs, strict=True):
        assert x.shape == y.shape and x.dtype is y.dtype
        if y.numel():
            bound = tolerance * max(1.0, y.detach().to(torch.float64).abs().max().item())
            assert (x - y).detach().to(torch.float64).abs().max().item() <= bound
    return g


# Fusion -----------------------------------------------------------------------------------------


def test_softmax_and_its_neighbours_are_one_nest():
    program = program_of(
        """graph(%0: f32[64, 128], %1: f32[128]):
  %2: f32[64, 128] = mul(%0, %1)
  %3: f32[64, 128] = softmax(%2, 1, None)
  %4: f32[64, 128] = add(%3, 1, 1)
  return %4
"""
    )
    (nest,) = program.steps
    assert isinstance(nest, Nest) and nest.reduced == {1}
    assert nest.reads == {"b0", "b1"} | set(nest.local)
    assert len([b for b in program.buffers.values() if b.kind == "temporary"]) == 0


def test_layer_norm_is_one_nest():
    program = program_of(
        """graph(%0: f32[64, 128], %1: f32[128], %2: f32[128]):
  %3: f32[64, 128], %4: f32[64, 1], %5: f32[64, 1] = native_layer_norm(%0, (128,), %1, %2, 1e-05)
  return %3, %4, %5
"""
    )
    assert len(program.steps) == 1


def test_unused_results_are_not_stored():
    program = program_of(
        """graph(%0: f32[8, 8]):
  %1: f32[8, 8] = sin(%0)
  %2: f32[8, 8] = cos(%1)
  %3: f32[8, 8] = add(%1, %2, 1)
  return %3
"""
    )
    (nest,) = program.steps
    assert [s.buffer for s in nest.statements if isinstance(s, Store)] == [
        program.outputs[0].buffer
    ]


def test_reductions_over_other_dims_do_not_share_a_nest():
    program = program_of(
        """graph(%0: f32[30, 20]):
  %1: f32[30] = sum(%0, (1,), False, None)
  %2: f32[20] = sum(%0, (0,), False, None)
  return %1, %2
"""
    )
    assert len(program.steps) == 2


def test_equal_expressions_are_one_object():
    body = scalar.Body()
    x = body.const(1.5, "float")
    assert body.make("sin", "float", (x,)) is body.make("sin", "float", (x,))
    assert body.const(1, "float") is not body.const(1.0, "float")


# Agreement --------------------------------------------------------------------------------------


def uniform(*shape, grad=True, dtype=torch.float32, seed=0):
    made = torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (made * 2 - 1).to(dtype).requires_grad_(grad)


CASES = {
    "article": (lambda x, y: torch.sin(x) + torch.cos(y), [(10, 10), (10, 10)]),
    "large angles": (lambda x: torch.sin(x + 1e9), [(500,)]),
    "large angles in rows": (lambda x: (x + 1e9).cos().softmax(-1), [(5, 64)]),
    "columns": (lambda x: (x * 2).sum(0), [(70, 90)]),
    "everything": (lambda x: x.tanh().sum(), [(33, 65)]),
    "max of columns": (lambda x: x.exp().amax(0), [(40, 70)]),
    "normalised": (
        lambda x: (x - x.mean(1, True)) / (x.var(1, keepdim=True) + 1).sqrt(),
        [(9, 70)],
    ),
    "transposed": (lambda x, y: x.t().exp() * y, [(20, 30), (30, 20)]),
    "split heads": (lambda x: x.view(4, 6, 2, 5).permute(0, 2, 1, 3).sigmoid(), [(4, 6, 10)]),
    "cat": (lambda x, y: torch.cat([x.exp(), y * 2], 1).sum(1), [(6, 3), (6, 5)]),
    "flip": (lambda x: x.flip(0) * x, [(7, 3)]),
    "triangle": (lambda x: (x * 2).tril(1) + x.triu(), [(9, 9)]),
    "product": (lambda x, y: torch.relu(x @ y) * 2, [(8, 9), (9, 4)]),
    "0-d": (lambda x: x.exp() * 2, [()]),
    "empty": (lambda x: (x * 2).sum(0), [(0, 3)]),
    "one": (lambda x: (x * 2).sum(0), [(1, 1)]),
}


@pytest.mark.parametrize("name", CASES)
def test_functions(name):
    f, shapes = CASES[name]
    agree(f, [uniform(*s, seed=i) for i, s in enumerate(shapes)])


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_dtypes(dtype):
    kind = getattr(torch, dtype)
    x = uniform(6, 40, dtype=kind)
    agree(lambda x: (x * 2 + 1).softmax(1), [x], tolerance=1e-12 if kind is torch.float64 else 0.02)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "bool"])
def test_whole_numbers_wrap_as_eager_ones_do(dtype):
    x = torch.arange(0, 200).to(getattr(torch, dtype))
    y = compiled(lambda x: (x * 3 + x, x > 5, (x * 3).sum()), [x])(x)
    for a, b in zip(y, (x * 3 + x, x > 5, (x * 3).sum()), strict=True):
        assert a.dtype is b.dtype and bool((a == b).all())


def test_nan_is_kept_by_extremes():
    x = torch.tensor([[1.0, float("nan"), 2.0], [1.0, 2.0, 3.0]])
    y = compiled(lambda x: (x * 1).amax(1), [x])(x)[0]
    assert y[0].isnan() and y[1] == 3


def test_training_step_of_a_network():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(12, 20), nn.GELU(), nn.LayerNorm(20), nn.Linear(20, 5))
    target = torch.tensor([0, 1, 4, 2])
    agree(
        lambda x: F.cross_entropy(net(x), target), [uniform(4, 12, grad=False)],
        params=list(net.parameters()), tolerance=1e-4,
    )  # fmt: skip


def test_sizes_that_vary():
    f = lambda x: (x * 2).softmax(-1) + x.sum(-1, True)  # noqa: E731
    g = compiled(f, [uniform(6, 10)], dynamic=True)
    for shape in ((6, 10), (3, 17), (40, 300)):
        x = uniform(*shape)
        assert torch.allclose(g(x)[0], f(x), atol=1e-5)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed):
    def fails(program):
        f = program.function()
        inputs, others = program.inputs(), program.inputs()
        g = compiled(lambda *xs: f(*[x.clone() for x in xs]), inputs)
        for a, b in zip(tensors(g(*inputs)), tensors(f(*others)), strict=True):
            if a.dtype is not b.dtype or a.shape != b.shape:
                return True
            if not torch.allclose(a.double(), b.double(), rtol=1e-5, atol=1e-5, equal_nan=True):
                return True
        return False

    program = generate(seed)
    if fails(program):
        pytest.fail("compiled and eager differ:\n" + shrunk(program, fails).text())


# The C++ compiler ------------------------------------------------------------------------------


def test_a_missing_compiler_says_what_to_install(monkeypatch):
    toolchain.compiler.cache_clear()
    monkeypatch.setattr(toolchain.shutil, "which", lambda name: None)
    with pytest.raises(toolchain.CompilerError, match="install one .*aot_eager"):
        toolchain.compiler()
    toolchain.compiler.cache_clear()


def test_numbers_are_written_as_they_are():
    """A number of base 16 may hold what looks like the name of a buffer."""
    numbers = [27.0, 27.5, 1.6875, 27.0625, 1.75 / 3, 171.0, 2735.0]
    numbers += [float.fromhex(f"0x1.b{k}p{e:+}") for k in range(10) for e in (-3, 0, 4)]
    x = torch.ones(3, dtype=torch.float64)
    graph = trace(lambda x: [x * n for n in numbers], (x,), "captured", False)
    made = callable_of(aot(graph, [False] * (1 + len(graph.attached))), back_end)(x)
    assert [y[0].item() for y in made] == numbers
