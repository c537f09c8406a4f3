"""Emitted modules compile to machine code of a GPU."""

from __future__ import annotations

import graphs
import measure
import pytest
import triton_primitives as primitives
from compiling import compiled
from triton_programs import program_of

from flambeau._compiler import languages, triton_module, triton_tiles
from flambeau._compiler.nest import Nest
from flambeau._trace import trace


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("FLAMBEAU_CACHE", str(folder))
        patch.setenv("TRITON_CACHE_DIR", str(folder))
        yield


@pytest.mark.parametrize(
    "name", ["softmax", "layer_norm", "rms_norm", "chain12", "attention", "MLP"]
)
def test_graphs_in_full_size(name):
    counts = measure.Counts()
    measure.compiled(graphs.cases(True)[name](), counts)
    assert counts["compiled"] == counts["emitted"] == counts["nests"] > 0


@pytest.mark.parametrize("type", primitives.TYPES)
def test_all_primitives_of_a_type(type):
    text = triton_module.source([primitives.together(type)], [])
    (kernel,) = compiled(languages.of("cuda").begin(text).result())
    assert kernel.cubin.startswith(b"\x7fELF")


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("combine", ["sum", "amax", "amin", "any", "all"])
def test_reductions_of_each_strategy(combine, dynamic, monkeypatch):
    import flambeau as torch

    for name, value in {"WHOLE": 64, "LOOPED": 64, "PIECE": 64, "COLUMNS": 16}.items():
        monkeypatch.setattr(triton_tiles, name, value)
    seen = set()
    for shape, dim in (((300, 40), 1), ((300, 200), 1), ((70, 3000), 0), ((3, 3000), 1)):
        for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool):
            x = torch.zeros(shape, dtype=dtype)
            graph = trace(lambda x, d=dim: getattr(x, combine)(d), [x], "primitive", dynamic)
            program, _ = program_of(graph)
            nests = [s for s in program.steps if isinstance(s, Nest)]
            seen |= {triton_tiles.plan(n).strategy for n in nests}
            compiled(triton_module.load(triton_module.source(nests, program.symbols)))
    assert seen >= ({"rows", "columns"} if dynamic else {"rows", "columns", "split"})
