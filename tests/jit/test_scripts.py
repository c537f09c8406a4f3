"""Scripts: eager Python = scripted = saved and loaded, values, gradients and texts."""

import copy
import io
import types

import pytest

import flambeau as torch
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
