"""`jit.freeze` and its kin: what a frozen module computes, what is left of it, what is refused."""

import copy
import io
import types
import warnings

import pytest

import flambeau as torch
from flambeau import nn

from . import programs
from .nn_modules import CASES
from .test_machine import tensors
from .test_nn_modules import ON_PYTHON, equal, held, on_python
from .test_scripts import _same

MODULES = [c for c in programs.CASES if not isinstance(c, types.FunctionType)]


def reloaded(m):
    return torch.jit.load(io.BytesIO(m.save_to_buffer()))


@pytest.mark.parametrize("case", MODULES, ids=lambda c: c.__name__)
@pytest.mark.parametrize("numerics", [True, False])
def test_programs(case, numerics):
    torch.manual_seed(0)
    plain = case().eval()
    script = torch.jit.script(copy.deepcopy(plain)).eval()
    frozen = torch.jit.freeze(script, optimize_numerics=numerics)
    again = reloaded(frozen)
    assert not list(frozen.parameters()) and not list(frozen.buffers()) and not frozen._modules
    torch.manual_seed(0)
    given = programs.ARGUMENTS[case.__name__]()
    results = []
    for f in (plain, frozen, again):
        torch.manual_seed(1)
        results.append([f(*copy.deepcopy(given)) for _ in range(2)])  # state goes on
    for made in results[1:]:
        if numerics:
            pairs = zip(tensors(results[0]), tensors(made), strict=True)
            assert all(torch.allclose(a, b, atol=1e-6) for a, b in pairs)
        else:
            assert _same(results[0], made)


@pytest.mark.parametrize("case", programs.CASES, ids=lambda c: c.__name__)
def test_inlined_graphs(case):
    script = torch.jit.script(case if isinstance(case, types.FunctionType) else case())
    assert "return(" in str(script.inlined_graph)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted({c[0] for c in CASES} - set(ON_PYTHON)))
def test_modules_of_nn(name):
    for case in [c for c in CASES if c[0] == name]:
        m = held(*case).eval()
        frozen = torch.jit.freeze(torch.jit.script(copy.deepcopy(m)), optimize_numerics=False)
        found = []
        for f in (m, frozen, reloaded(frozen)):
            torch.manual_seed(1)
            found.append(tensors(f()))
        assert equal(found[0], found[1]) and equal(found[0], found[2])
        assert not list(frozen.parameters()) and not on_python(frozen)[1]


def trained(*layers, shape):
    torch.manual_seed(0)
    m = nn.Sequential(*layers)
    for _ in range(3):
        m(torch.randn(*shape) * 2 + 1)
    for p in m.parameters():
        with torch.no_grad():
            p.add_(torch.rand_like(p))
    return m.eval()


FOLDED = [
    ([nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4)], (5, 3, 8)),
    ([nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU()], (5, 3, 8, 8)),
    ([nn.Conv2d(4, 4, 3, 2, 1, groups=2), nn.BatchNorm2d(4, affine=False)], (5, 4, 8, 8)),
    ([nn.Conv3d(2, 3, 2), nn.BatchNorm3d(3), nn.Dropout3d()], (3, 2, 4, 4, 4)),
    ([nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 2, 3), nn.BatchNorm2d(2)], (5, 3, 8, 8)),
]


@pytest.mark.parametrize(("layers", "shape"), FOLDED)
def test_convolutions_take_normalisations_in(layers, shape):
    m = trained(*layers, shape=shape)
    script = torch.jit.script(m)
    frozen = torch.jit.freeze(script)
    text = str(frozen.graph)
    assert "batch_norm" not in text and "dropout" not in text
    x = torch.randn(*shape)
    assert torch.allclose(frozen(x), m(x), atol=1e-5, rtol=1e-5)
    assert torch.equal(script(x), m(x)) and "batch_norm" in str(script.inlined_graph)
    exact = torch.jit.freeze(script, optimize_numerics=False)
    assert torch.equal(exact(x), m(x)) and "batch_norm" in str(exact.graph)
    torch.jit.run_frozen_optimizations(exact, optimize_numerics=False)
    assert torch.equal(exact(x), m(x)) and "batch_norm" in str(exact.graph)
    torch.jit.run_frozen_optimizations(exact)
    assert torch.equal(exact(x), frozen(x)) and "batch_norm" not in str(exact.graph)
    assert torch.equal(reloaded(exact)(x), frozen(x))


def test_linear_layers_take_normalisations_of_rows_in():
    m = trained(nn.Linear(3, 4), nn.BatchNorm1d(4), shape=(6, 3))
    frozen = torch.jit.optimize_for_inference(torch.jit.script(m))
    for shape in ((6, 3), (2, 4, 3)):  # the second has its channels in the middle
        x = torch.randn(*shape)
        assert torch.allclose(frozen(x), m(x), atol=1e-5)
    with pytest.raises(ValueError, match="expected 2D or 3D input"):
        frozen(torch.randn(2, 4, 2, 3))


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2.0
        self.version = 3
        self.linear = nn.Linear(2, 2)
        self.register_buffer("mean", torch.ones(2))
        self.count = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x) * self.scale - self.mean.exp().t()
        if self.training:
            y = y + 100
        return y + self.version

    @torch.jit.export
    def counted(self, n: int = 1) -> int:
        self.count += n
        return self.count + self.version

    @torch.jit.export
    def early(self, x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 0):
            return self.forward(x)
        return self.linear(x)


def test_what_is_preserved():
    torch.manual_seed(0)
    plain = Two().eval()
    script = torch.jit.script(copy.deepcopy(plain))
    frozen = torch.jit.freeze(script, ["counted", "early", "version"])
    x = torch.randn(3, 2)
    assert torch.allclose(frozen(x), plain(x), atol=1e-6)
    assert frozen.version == 3 and not hasattr(frozen, "scale")
    for m in (frozen, reloaded(frozen)):
        assert [m.counted(), m.counted(2)] == [4, 6]
        for y in (x.abs(), -x.abs()):
            assert torch.allclose(m.early(y), plain.early(y), atol=1e-6)
    frozen.version = 10
    assert torch.allclose(frozen(x), plain(x) + 7, atol=1e-6)
    alone = torch.jit.freeze(script)
    assert not hasattr(alone, "counted") and not hasattr(alone, "version")
    assert "exp" not in str(alone.graph) and "training" not in str(alone.graph)
    assert script.linear.weight.requires_grad and not alone(x).requires_grad


def test_what_is_refused():
    script = torch.jit.script(Two())
    with pytest.raises(RuntimeError, match="in training mode; call eval"):
        torch.jit.freeze(script)
    for f in (torch.jit.freeze, torch.jit.optimize_for_inference):
        with pytest.raises(RuntimeError, match="expected a scripted module, got Two"):
            f(Two().eval())
    script.eval()
    with pytest.raises(ValueError, match="preserved_attrs names 'nothing'"):
        torch.jit.freeze(script, ["nothing"])
    with pytest.raises(ValueError, match="'linear' is a module"):
        torch.jit.freeze(script, ["linear"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sync = torch.jit.script(nn.Sequential(nn.SyncBatchNorm(2)).eval())
    with pytest.raises(RuntimeError, match="SyncBatchNorm runs as it is"):
        torch.jit.freeze(sync)
