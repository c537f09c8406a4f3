"""The tool that finds every hand-written file that names an operation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools import where

HEAD = "from flambeau.ops._lang import *\n\n\n"


def test_a_name_in_a_stage_is_found() -> None:
    source = "x = {'cat': 1, 'fill_.new': 2, 'no entry': 'cat', 'add': 'sum'}"
    assert [name for name, _ in where.words(source)] == ["cat", "fill_", "cat"]


def test_a_function_written_twice_is_found(tmp_path: Path) -> None:
    """Entries and functions are told by namespace: `functional.mean` is `torch.mean`."""
    for file, text in {
        "flambeau/ops/few.py": HEAD
        + '@composite()\ndef twin(x: Tensor) -> Tensor:\n    """X."""\n    return x\n',
        "flambeau/functional.py": "def twin(x): ...\ndef other(x): ...\n",
        "flambeau/fft.py": "def twin(x): ...\n",
        "flambeau/_aot/stage.py": "name = 'twin'\n",
    }.items():
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert where.strays(tmp_path) == {
        "flambeau/functional.py twin": 1,
        "flambeau/_aot/stage.py twin": 1,
    }


def test_needs_no_extension() -> None:
    code = "import sys, runpy; sys.modules['flambeau._C'] = None; sys.argv = ['where', 'softmax'];"
    code += "runpy.run_module('tools.where', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=where.ROOT
    )
    assert "csrc/kernels/softmax.cpp" in done.stdout and done.returncode == 0, done.stderr


def test_sites_of_a_structured_operation(capsys: pytest.CaptureFixture[str]) -> None:
    assert where.main(["index_select"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "index_select:"
    assert shown[1].startswith("  flambeau/ops/indexing_along.py:")
    assert shown[2].startswith("  csrc/kernels/indexing.cpp:")


def test_unknown_operation(capsys: pytest.CaptureFixture[str]) -> None:
    assert where.main(["no_such_operation"]) == 1
    assert "no entry named no_such_operation" in capsys.readouterr().err
