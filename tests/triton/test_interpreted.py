"""Emitted modules in Triton's interpreter against eager."""

from __future__ import annotations

import graphs
import interpreting
import measure
import numpy as np
import pytest
import triton_primitives as primitives
from interpreting import load_module
from triton_programs import compiled

import flambeau as torch
from flambeau._compiler import triton_module, triton_tiles

# Of the interpreter's own: it takes arrays of one element for numbers.
pytestmark = pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLAMBEAU_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def quiet():
    """NumPy computes what masks leave out, too."""
    with np.errstate(all="ignore"):
        yield


@pytest.fixture
def small_tiles(monkeypatch):
    for name, value in {"WHOLE": 16, "LOOPED": 16, "PIECE": 16, "FLAT": 64, "COLUMNS": 8}.items():
        monkeypatch.setattr(triton_tiles, name, value)


@pytest.mark.parametrize("name", graphs.cases(False))
def test_nests_agree_with_cpp_and_results_with_eager(name):
    counts = measure.Counts()
    torch.manual_seed(0)
    measure.interpreted(graphs.cases(False)[name](), counts)
    assert counts["agree"] == counts["nests"] > 0
    assert counts["as eager"] == counts["as exact"] == counts["results"] > 1


@pytest.mark.parametrize("name", ["layer_norm", "ResNet-18"])
def test_a_wrong_constant_is_noticed(name, monkeypatch):
    other = lambda text: load_module(text.replace("1e-05", "1.001e-05"))  # noqa: E731
    monkeypatch.setattr(interpreting, "load_module", other)
    torch.manual_seed(0)
    counts = measure.Counts()
    measure.interpreted(graphs.cases(False)[name](), counts)
    assert counts["as eager"] < counts["results"]


def uniform(*shape):
    made = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    return made * 2 - 1


@pytest.mark.parametrize("shape", [(4, 150), (150, 4), (9, 30)])
@pytest.mark.parametrize("dim", [0, 1])
def test_loops_and_pieces(shape, dim, small_tiles):
    f = lambda x: (torch.erf(x).softmax(dim), x.amax(dim), (x * 1).sum())  # noqa: E731
    x = uniform(*shape)
    for a, b in zip(compiled(f, [x], load_module)(x), f(x), strict=True):
        assert torch.allclose(a, b, atol=1e-5)


def test_sizes_that_vary():
    f = lambda x: (x * 2).softmax(-1) + x.sum(-1, True)  # noqa: E731
    g = compiled(f, [uniform(6, 10)], load_module, dynamic=True)
    for shape in ((6, 10), (3, 17), (5, 3000)):
        x = uniform(*shape)
        assert torch.allclose(g(x)[0], f(x), atol=1e-4)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_floating_types(dtype):
    x = uniform(6, 40).to(getattr(torch, dtype))
    f = lambda x: ((x * 2 + 1).softmax(1), (x * 2).sum(0), x.amax(0))  # noqa: E731
    for a, b in zip(compiled(f, [x], load_module)(x), f(x), strict=True):
        bound = 1e-12 if dtype == "float64" else 0.02
        assert a.dtype is b.dtype and torch.allclose(a.double(), b.double(), atol=bound, rtol=bound)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "bool"])
def test_whole_numbers_wrap_as_eager_ones_do(dtype):
    x = torch.arange(0, 200).to(getattr(torch, dtype))
    f = lambda x: (x * 3 + x, x > 5, (x * 3).sum(), x.amax(), x.any(), x.all())  # noqa: E731
    for a, b in zip(compiled(f, [x], load_module)(x), f(x), strict=True):
        assert a.dtype is b.dtype and bool((a == b).all())


def test_nan_is_kept_by_extremes():
    x = uniform(4, 40)
    x[1, 7] = float("nan")
    f = lambda x: ((x * 1).amax(1), (x * 1).amin(1), (x * 1).amax(0))  # noqa: E731
    for a, b in zip(compiled(f, [x], load_module)(x), f(x), strict=True):
        assert torch.allclose(a, b, equal_nan=True) and bool(b.isnan().any())


@pytest.fixture(scope="module")
def all_primitives(cache):
    nests, buffers = primitives.everything()
    return load_module(triton_module.source(nests, [])), buffers


@pytest.mark.parametrize("k", range(len(primitives.cases())), ids=map("-".join, primitives.cases()))
def test_primitives_are_those_of_eager(k, all_primitives):
    module, buffers = all_primitives
    op, type = primitives.cases()[k]
    module.run(k, buffers, [], None)
    a, b, ours = buffers[3 * k : 3 * k + 3]
    found = primitives.differences(op, type, ours, primitives.eager(op, type, a, b))
    assert not len(found), [(a[i], b[i], ours[i]) for i in found[:4]]
