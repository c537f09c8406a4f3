"""Every construct of the language: eager = scripted = its Python = its file; the table of docs/script.md."""

import copy
import io
import re
from pathlib import Path

import pytest

import flambeau as torch
from flambeau import nn

from . import constructs
from .test_scripts import _plain, _same

#: what runs as Python of its own, and why
AS_PYTHON = {
    "torch.memory_format": "a constant legacy_contiguous_format", "xs[i:j] = ys": "core.setslice",
}  # fmt: skip


def outcome(f, given):
    """What a call gives and leaves in its arguments, or its error."""
    args = copy.deepcopy(given)
    try:
        return _plain(f(*args)), args
    except Exception as error:
        return type(error).__name__, str(error).partition("\n")[0]


@pytest.mark.parametrize("c", constructs.ALL, ids=lambda c: f"{c.section}: {c.name}")
@pytest.mark.filterwarnings("ignore")
def test_construct(c):
    f = constructs.program(c)
    given = copy.deepcopy(f) if isinstance(f, nn.Module) else f
    if c.refused:
        with pytest.raises(RuntimeError, match="error: "):
            torch.jit.script(given)
        return
    script = torch.jit.script(given)
    want = outcome(f, c.given)
    assert _same(want, outcome(script, c.given))
    if c.name != "ignore":  # of which there is no file
        buffer = io.BytesIO(script.save_to_buffer())
        if not isinstance(f, nn.Module):  # whose state the call before has changed
            assert _same(want, outcome(torch.jit.load(buffer), c.given))
    is_function = hasattr(script, "_call")
    name = script._function_name if is_function else script._script_record.methods["forward"]
    program = script._program if is_function else script._script_program
    assert program.machine.reason(name) == AS_PYTHON.get(c.name)
    if is_function and c.name not in AS_PYTHON:
        assert _same(want, outcome(script._call.as_python, c.given))


def test_the_documentation_holds_the_table():
    page = (Path(__file__).parents[2] / "docs" / "script.md").read_text()
    found = re.search(r"\n## Constructs\n.*?\n\n(\*\*.*?)\n\n## ", page, re.DOTALL)
    assert found is not None and found[1] == constructs.table()


def test_names_stand_once():
    names = [(c.section, c.name) for c in constructs.ALL]
    assert len(set(names)) == len(names)
    refused = sum(1 for c in constructs.ALL if c.refused)
    assert len(names) - refused >= 300
