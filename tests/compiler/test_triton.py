"""Emitted Triton, without Triton: the text, and what it computes in a stand-in over NumPy."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest
import triton_primitives as primitives
from programs import generate, shrunk
from triton_programs import compiled, program_of
from triton_standin import load_module

import flambeau as torch
from flambeau import nn
from flambeau._compiler import languages, triton_module, triton_scalar, triton_tiles
from flambeau._compiler.nest import Nest, Stage, Store, variable
from flambeau._compiler.scalar import MEMORY, Body
from flambeau._ir.graph_parse import parse
from flambeau._ir.symexpr import expr

F = nn.functional


def nests_of(text):
    program, _ = program_of(parse(text))
    return [s for s in program.steps if isinstance(s, Nest)], program.symbols


def source(text):
    return triton_module.source(*nests_of(text))


def uniform(*shape, seed=0, dtype=torch.float32, grad=False):
    made = torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (made * 2 - 1).to(dtype).requires_grad_(grad)


def same(f, *inputs, tolerance=1e-5, dynamic=False, params=()):
    """The results and gradients of eager, to a part of the largest entry."""
    g = compiled(f, inputs, load_module, dynamic)
    ours, theirs = (
        [y] if isinstance(y, torch.Tensor) else list(y) for y in (f(*inputs), g(*inputs))
    )
    leaves = [x for x in (*inputs, *params) if x.requires_grad]
    if leaves:
        ours += torch.autograd.grad(sum((y * 1.5).sum() for y in ours), leaves)
        theirs += torch.autograd.grad(sum((y * 1.5).sum() for y in theirs), leaves)
    assert len(ours) == len(theirs)
    for x, y in zip(ours, theirs, strict=True):
        assert x.shape == y.shape and x.dtype is y.dtype
        x, y = x.detach().to(torch.float64), y.detach().to(torch.float64)
        bound = tolerance * max(1.0, x.abs().max().item())
        assert (x - y).abs().max().item() <= bound
    return g


# Text -------------------------------------------------------------------------------------------

SOFTMAX = """graph(%0: f32[64, 100]):
  %1: f32[64, 100] = softmax(%0, 1, None)
  return %1
"""


def test_text_parses_and_is_stable():
    text = source(SOFTMAX)
    tree = ast.parse(text)
    assert {f.name for f in tree.body if isinstance(f, ast.FunctionDef)} >= {"nest0", "run"}
    assert source(SOFTMAX) == text


def test_a_row_that_fits_is_read_once():
    kernel = source(SOFTMAX).split("def nest0(")[1].split("def ")[0]
    assert kernel.count("tl.load") == 1 and kernel.count("tl.store") == 1
    assert "for " not in kernel


def test_what_ends_with_the_data_is_not_masked():
    text = source(SOFTMAX.replace("100", "128"))
    assert "_in" not in text.split("def nest0(")[1]


def test_dims_that_lie_together_are_one():
    text = source("graph(%0: f32[4, 5, 6]):\n  %1: f32[4, 5, 6] = sin(%0)\n  return %1\n")
    assert "i2 < 120" in text and "//" not in text.split("def nest0")[1].split("def launch")[0]


def test_nests_that_differ_in_their_buffers_share_a_kernel():
    text = source(
        """graph(%0: f32[64, 100], %1: f32[64, 100]):
  %2: f32[64] = sum(%0, (1,), False, None)
  %3: f32[64] = sum(%1, (1,), False, None)
  return %2, %3
"""
    )
    assert "def nest0(" in text and "def nest1(" not in text
    assert text.count("(launch_nest0,") == 2


def test_indices_are_wide_where_they_must_be():
    def kernel(n):
        text = f"graph(%0: f32[{n}]):\n  %1: f32[{n}] = sin(%0)\n  return %1\n"
        return source(text).split("def nest0")[1]

    assert "tl.program_id(0) * 1024" in kernel(2**30)
    assert "tl.program_id(0).to(tl.int64) * 1024" in kernel(2**31)


def test_a_stride_makes_indices_wide():
    text = """graph(%0: f32[2048, 2048]{STRIDE, 1}):
  %1: f32[2048, 2048] = sin(%0)
  return %1
"""
    assert "to(tl.int64)" in source(text.replace("STRIDE", "2097152"))
    assert "to(tl.int64)" not in source(text.replace("STRIDE", "4096"))


def test_sizes_are_arguments():
    g = same(lambda x: (x * 2).softmax(-1) + x.sum(-1, True), uniform(6, 10), dynamic=True)
    for shape in ((3, 17), (40, 300)):
        x = uniform(*shape)
        assert torch.allclose(g(x)[0], (x * 2).softmax(-1) + x.sum(-1, True), atol=1e-5)


# Agreement --------------------------------------------------------------------------------------

CASES = {
    "pointwise": (lambda x, y: torch.sin(x) + torch.cos(y), [(10, 10), (10, 10)]),
    "rows": (lambda x: (x * 2).softmax(-1), [(9, 70)]),
    "columns": (lambda x: (x * 2).sum(0), [(70, 90)]),
    "middle": (lambda x: (x * 2).softmax(1), [(3, 20, 7)]),
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
    "one": (lambda x: (x * 2).sum(0), [(1, 1)]),
    "several reduced dims": (lambda x: x.mean((0, 2)), [(6, 5, 30)]),
}


@pytest.mark.parametrize("name", CASES)
def test_functions(name):
    f, shapes = CASES[name]
    same(f, *(uniform(*s, seed=i, grad=True) for i, s in enumerate(shapes)))


@pytest.fixture
def small_tiles(monkeypatch):
    """Limits so low that small inputs are looped over and cut into pieces."""
    for name, value in {"WHOLE": 16, "LOOPED": 8, "PIECE": 8, "FLAT": 16, "COLUMNS": 4}.items():
        monkeypatch.setattr(triton_tiles, name, value)


@pytest.mark.parametrize("name", CASES)
def test_functions_in_small_tiles(name, small_tiles):
    test_functions(name)


@pytest.mark.parametrize(
    ("shape", "dim", "strategy"),
    [((300, 40), 1, "rows"), ((70, 300), 0, "columns"), ((3, 300), 1, "split"),
     ((300, 3), 0, "split")],
)  # fmt: skip
def test_strategies(shape, dim, strategy, small_tiles):
    f = lambda x: (x.softmax(dim), x.logsumexp(dim))  # noqa: E731
    same(f, uniform(*shape))
    text = f"""graph(%0: f32[{shape[0]}, {shape[1]}]):
  %1: f32[{shape[0]}, {shape[1]}] = softmax(%0, {dim}, None)
  %2: f32[{shape[1 - dim]}] = sum(%1, ({dim},), False, None)
  return %1, %2
"""
    nests, symbols = nests_of(text)
    assert [triton_tiles.plan(n).strategy for n in nests] == [strategy]
    kernels = re.findall(r"^def nest0", triton_module.source(nests, symbols), re.M)
    assert len(kernels) == (len(nests[0].stages) if strategy == "split" else 1)


def test_long_rows_are_looped_over(small_tiles):
    assert "for start in range(0, 300, 8)" in source(SOFTMAX.replace("100", "300"))


def test_local_arrays_of_long_rows_are_memory(small_tiles):
    nests, symbols = nests_of(
        """graph(%0: f32[80, 50]):
  %1: f32[80, 50] = erf(%0)
  %2: f32[80, 50] = mul(%1, %0)
  %3: f32[80, 50] = softmax(%2, 1, None)
  return %3
"""
    )
    assert nests[0].local, "the case needs a nest with a local array"
    text = triton_module.source(nests, symbols)
    assert "l0 = empty(4000" in text and "tl.debug_barrier()" in text
    same(lambda x: (torch.erf(x) * x).softmax(1), uniform(80, 50))


def test_local_arrays_of_short_rows_are_registers():
    text = source(
        """graph(%0: f32[80, 50]):
  %1: f32[80, 50] = erf(%0)
  %2: f32[80, 50] = softmax(%1, 1, None)
  return %2
"""
    )
    assert "l0" not in text and text.count("tl.store") == 1


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_floating_types(dtype):
    kind = getattr(torch, dtype)
    tolerance = 1e-12 if dtype == "float64" else 0.02
    x = uniform(6, 40, dtype=kind, grad=True)
    same(lambda x: (x * 2 + 1).softmax(1), x, tolerance=tolerance)
    same(lambda x: (x * 2).sum(0) + x.amax(0), uniform(50, 6, dtype=kind), tolerance=tolerance)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "bool"])
def test_whole_numbers_wrap_as_eager_ones_do(dtype):
    x = torch.arange(0, 200).to(getattr(torch, dtype))
    f = lambda x: (x * 3 + x, x > 5, (x * 3).sum(), x.amax(), x.any(), x.all())  # noqa: E731
    for a, b in zip(compiled(f, [x], load_module)(x), f(x), strict=True):
        assert a.dtype is b.dtype and bool((a == b).all())


@pytest.mark.parametrize("looped", [False, True])
def test_nan_is_kept_by_extremes(looped, request):
    if looped:
        request.getfixturevalue("small_tiles")
    x = uniform(4, 40)
    x[1, 7] = float("nan")
    f = lambda x: ((x * 1).amax(1), (x * 1).amin(1), (x * 1).amax(0))  # noqa: E731
    for a, b in zip(compiled(f, [x], load_module)(x), f(x), strict=True):
        assert torch.allclose(a, b, equal_nan=True) and bool(b.isnan().any())


def test_training_step_of_a_network():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(12, 20), nn.GELU(), nn.LayerNorm(20), nn.Linear(20, 5))
    target = torch.tensor([0, 1, 4, 2])
    same(
        lambda x: F.cross_entropy(net(x), target), uniform(4, 12), tolerance=1e-4,
        params=list(net.parameters()),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed):
    def fails(program):
        f = program.function()
        inputs = program.inputs()
        g = compiled(lambda *xs: f(*[x.clone() for x in xs]), inputs, load_module)
        for a, b in zip(g(*inputs), f(*program.inputs()), strict=True):
            if a.dtype is not b.dtype or a.shape != b.shape:
                return True
            if not torch.allclose(a.double(), b.double(), rtol=1e-5, atol=1e-5, equal_nan=True):
                return True
        return False

    program = generate(seed)
    if fails(program):
        pytest.fail("emitted Triton and eager differ:\n" + shrunk(program, fails).text())


# Primitives -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def all_primitives():
    nests, buffers = primitives.everything()
    return load_module(triton_module.source(nests, [])), buffers


@pytest.mark.parametrize("k", range(len(primitives.cases())), ids=map("-".join, primitives.cases()))
def test_primitives_are_those_of_eager(k, all_primitives):
    module, buffers = all_primitives
    op, type = primitives.cases()[k]
    module.run(k, buffers, [], None)
    a, b, ours = buffers[3 * k : 3 * k + 3]
    theirs = primitives.eager(op, type, a, b)
    found = primitives.differences(op, type, ours, theirs)
    assert not len(found), [(a[i], b[i], ours[i], theirs[i]) for i in found[:4]]


def test_what_is_refused_is_listed():
    refused = triton_scalar.unsupported()
    assert {"digamma", "igamma", "zeta", "complex"} <= refused
    assert not refused & {"add", "erf", "lgamma", "floor_divide", "where", "gcd"}


@pytest.mark.parametrize(
    ("op", "dtype", "message"),
    [("digamma", torch.float32, "digamma of float has no equal"),
     ("add", torch.complex64, "expected real or whole numbers, got C64")],
)  # fmt: skip
def test_refusals_say_what_and_why(op, dtype, message):
    body = Body()
    x = body.load("b0", variable(0), dtype)
    value = body.make(op, x.type, (x, x) if op == "add" else (x,))
    store = Store("b1", variable(0), value, MEMORY[dtype])
    with pytest.raises(triton_scalar.Refused, match=message):
        triton_module.source([Nest((4,), frozenset(), [Stage("full", [store])])], [])


def test_what_is_refused_is_called():
    x = uniform(6, 40) + 3
    f = lambda x: (torch.digamma(x * 2) + 1, torch.complex(x, x).abs() * 2, torch.erf(x) * x)  # noqa: E731
    for a, b in zip(compiled(f, [x], load_module)(x), f(x), strict=True):
        assert torch.allclose(a, b)
    program, _ = program_of(
        parse(
            """graph(%0: f32[6, 40]):
  %1: f32[6, 40] = mul(%0, 2)
  %2: f32[6, 40] = digamma(%1)
  %3: f32[6, 40] = add(%2, 1, 1)
  return %3
"""
        )
    )
    assert [type(s).__name__ for s in program.steps] == ["Nest", "Call", "Nest"]


def test_the_language_goes_with_the_device():
    assert languages.of("cpu").source is not languages.of("cuda").source
    with pytest.raises(NotImplementedError, match="expected tensors on cpu or cuda, got meta"):
        languages.of("meta")


def test_an_unknown_combination_is_refused():
    from flambeau._compiler.nest import Accumulate

    body = Body()
    x = body.load("b0", variable(0), torch.float32)
    stage = Stage("full", [Accumulate("r0_0", "hypot", 0, x)])
    done = Store("b1", expr(0), body.make("result", "float", (), "r0_0"), "float")
    with pytest.raises(triton_scalar.Refused, match="hypot does not combine"):
        triton_module.source([Nest((4,), frozenset({0}), [stage, Stage("row", [done])])], [])


def test_an_initial_value_is_combined_once(small_tiles):
    from flambeau._compiler.nest import Accumulate

    for n in (4, 300):  # whole, and cut into pieces
        body = Body()
        x = body.load("b0", variable(0), torch.float32)
        stage = Stage("full", [Accumulate("r0_0", "add", 5, x)])
        done = Store("b1", expr(0), body.make("result", "float", (), "r0_0"), "float")
        nest = Nest((n,), frozenset({0}), [stage, Stage("row", [done])])
        buffers = [torch.ones(n), torch.zeros(1)]
        module = load_module(triton_module.source([nest], []))
        module.run(0, buffers, [], lambda count, dtype: torch.zeros(count))
        assert buffers[1].item() == n + 5


# The stand-in itself ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [(("tl.load(b0 + (", "tl.load(b0 + (6400 + "), "outside"),
     ((", 0.0)", ", 1.0)"), "differ"),
     (("* 100 + i1), t", "* 0 + i1), t"), "one place"),
     (("tl.where(r_in, ", "tl.where(r_in == r_in, "), "differ")],
)  # fmt: skip
def test_the_stand_in_notices(change, message):
    text = source(SOFTMAX)
    wrong = text.replace(*change)
    assert wrong != text
    x, y = uniform(64, 100) - 3, torch.zeros(64, 100)
    module = load_module(wrong)
    try:
        module.run(0, dict(zip(module.NESTS[0][1], (x, y), strict=True)), [], None)
        seen = "" if torch.allclose(y, x.softmax(1), atol=1e-6) else "differ"
    except AssertionError as e:
        seen = str(e)
    assert message in seen


def test_triton_is_not_imported():
    code = (
        "import sys, flambeau as t; from flambeau._compiler import triton_module\n"
        "t.compile(lambda x: x.sin() + 1)(t.ones(3)); assert 'triton' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
