"""Scripts: eager Python = scripted = saved and loaded, values, gradients and texts."""

import copy
import dataclasses
import io
import types
from typing import Optional

import pytest

import flambeau as torch
from flambeau import nn
from flambeau._script import text

from . import language, programs


def _same(a, b):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    return type(a).__name__ == type(b).__name__ and (a == b or str(a) == str(b))


def _program(case):
    """The Python object and its script, each with a state of its own."""
    if isinstance(case, types.FunctionType):
        return case, torch.jit.script(case)
    torch.manual_seed(0)
    made = case()
    return made, torch.jit.script(copy.deepcopy(made))


@pytest.mark.parametrize("case", programs.CASES, ids=lambda c: c.__name__)
def test_programs(case):
    made, script = _program(case)
    file = io.BytesIO()
    torch.jit.save(script, file)
    file.seek(0)
    loaded = torch.jit.load(file)
    torch.manual_seed(0)
    given = programs.ARGUMENTS[case.__name__]()
    results = []
    for f in (made, script, loaded):
        torch.manual_seed(1)
        results.append(f(*copy.deepcopy(given)))
    assert _same(results[0], results[1])
    assert _same(results[0], results[2])
    programs_of = [getattr(x, "_program", None) or x._script_program for x in (script, loaded)]
    texts = [text.write(p.unit) for p in programs_of]
    assert texts[0] == texts[1] == text.write(text.read(texts[0]))
    assert script.code.startswith("def ") and "def " in str(script.graph)


def _plain(x):
    """Shapes are lists in scripts."""
    if isinstance(x, torch.Size):
        return list(x)
    return tuple(map(_plain, x)) if type(x) is tuple else x


@pytest.mark.parametrize(
    ("f", "given"), language.PROGRAMS, ids=lambda x: getattr(x, "__name__", "")
)
def test_language(f, given):
    script = torch.jit.script(f)
    want = _plain(f(*copy.deepcopy(given)))
    assert _same(want, script(*copy.deepcopy(given)))
    if f.__name__ != "ignored":
        loaded = torch.jit.load(io.BytesIO(script.save_to_buffer()))
        assert _same(want, loaded(*copy.deepcopy(given)))
    else:
        with pytest.raises(RuntimeError, match="left to Python"):
            script.save_to_buffer()


class Blocks(nn.ModuleDict):
    """A container with a forward of its own, as models have them."""

    def __init__(self):
        super().__init__({f"layer{i}": nn.Linear(3 * (i + 1), 3) for i in range(3)})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = [x]
        for _, layer in self.items():
            found.append(layer(torch.cat(found, 1)))
        return torch.cat(found, 1)


class Stage(nn.Module):
    def __init__(self, checkpointing: bool = False):
        super().__init__()
        self.first, self.blocks = nn.Conv2d(1, 3, 3, padding="same"), Blocks()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.norm = nn.BatchNorm2d(3)
        self.kind = "avg"
        self.shift = (1, 2)
        self.checkpointing = checkpointing

    def forward(self, x: torch.Tensor, kind: Optional[str] = None) -> torch.Tensor:  # noqa: UP045
        if self.checkpointing and not torch.jit.is_scripting():
            return torch.utils.checkpoint.checkpoint(self.first, x)
        kind = self.kind if kind is None else kind
        torch._assert(kind.startswith("a"), f"no {kind}")
        for child in self.children():
            if hasattr(child, "in_channels"):
                x = child(x)
        x = self.norm(x)
        if any(self.shift):
            x = torch.roll(x, shifts=self.shift, dims=(2, 3))
        return self.blocks(self.pool(x).flatten(1))


def test_modules_as_models_have_them():
    stage = Stage().eval()
    script = torch.jit.script(stage)
    x = torch.randn(2, 1, 6, 6)
    loaded = torch.jit.load(io.BytesIO(script.save_to_buffer()))
    assert torch.equal(script(x), stage(x)) and torch.equal(loaded(x, "a"), stage(x))
    with pytest.raises(AssertionError, match="no b"):
        loaded(x, "b")


def _modules():
    given = {
        "Linear": (3, 4), "Bilinear": (3, 3, 2), "Conv1d": (2, 3, 2), "Conv2d": (2, 3, 2),
        "Conv3d": (2, 3, 2), "ConvTranspose1d": (2, 3, 2), "ConvTranspose2d": (2, 3, 2),
        "ConvTranspose3d": (2, 3, 2), "Embedding": (5, 3), "EmbeddingBag": (5, 3), "LSTM": (3, 4),
        "GRU": (3, 4), "RNN": (3, 4), "LSTMCell": (3, 4), "GRUCell": (3, 4), "RNNCell": (3, 4),
        "MultiheadAttention": (4, 2), "Transformer": (4, 2, 1, 1, 8),
        "TransformerEncoderLayer": (4, 2, 8), "TransformerDecoderLayer": (4, 2, 8),
        "AdaptiveLogSoftmaxWithLoss": (4, 6, [2]), "Unflatten": (1, (2, 2)),
    }  # fmt: skip
    left_out = ("Container", "Module", "NLLLoss2d", "RNNBase", "RNNCellBase")
    for name in dir(nn):
        kind = getattr(nn, name)
        if not isinstance(kind, type) or not issubclass(kind, nn.Module) or name in left_out:
            continue
        if name.startswith(("Lazy", "TransformerEncoder", "TransformerDecoder")) and (
            name not in given
        ):
            continue
        for args in (given.get(name, ()), (2,), (2, 4), (2, 2, 2), (4, 2)):
            try:
                made = kind(*args)
            except (TypeError, ValueError, RuntimeError):
                continue
            yield pytest.param(made, id=name)
            break


@pytest.mark.parametrize("module", list(_modules()))
def test_modules_of_nn_script_save_and_load(module):
    script = torch.jit.script(module)
    loaded = torch.jit.load(io.BytesIO(script.save_to_buffer()))
    want = module.state_dict()
    assert isinstance(script, torch.jit.ScriptModule)
    for made in (script, loaded):
        assert list(made.state_dict()) == list(want)
        assert all(torch.equal(a, b) for a, b in zip(made.state_dict().values(), want.values(),
                                                     strict=True))  # fmt: skip


@dataclasses.dataclass(init=False)
class Selected:
    index: torch.Tensor
    count: int

    def __init__(self, index: torch.Tensor, count: int):
        self.index = index
        self.count = count

    def total(self) -> torch.Tensor:
        return self.index.sum() * self.count


def test_what_dataclass_makes_is_no_part_of_a_class():
    # torch_geometric scripts such a class, whose __repr__ and __eq__ have no text.
    assert torch.jit.script(Selected) is Selected

    @torch.jit.script
    def f(x: torch.Tensor) -> torch.Tensor:
        return Selected(x, 2).total()

    assert f(torch.ones(3)).item() == 6
    assert repr(Selected(torch.ones(1), 1)).endswith("Selected(index=tensor([1.]), count=1)")


def test_results_that_go_elsewhere_are_cast_or_refused():
    @torch.jit.script
    def f(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        return torch.mul(x, x, out=out)

    x = torch.tensor([3.0])
    wide = torch.empty(1, dtype=torch.float64)
    assert f(x, wide) is wide and wide.item() == 9
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type torch.int64"):
        f(x, torch.empty(1, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        f(x.requires_grad_(), wide)
