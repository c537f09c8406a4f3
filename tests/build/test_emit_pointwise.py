"""The call path of pointwise operations, around a plan of kernels that the test stands in for."""

from __future__ import annotations

import ast
import shutil
import subprocess
import types
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import MakeUnit

import flambeau._build as package
from flambeau._build import emit_files
from flambeau._build.model import Op

ROOT = Path(__file__).resolve().parents[2]

SOURCE = '''
    @structured(kernel="clone")
    def clone(input: Tensor) -> Tensor:
        """Copy."""
        return empty(input.shape, dtype=input.dtype, like=input)


    @pointwise
    def cube(input: Tensor) -> Tensor:
        """Third power."""
        return input * input * input


    @pointwise(differentiable=False)
    def positive_part(input: Tensor) -> Tensor:
        """Positive part."""
        return input
'''


class Plan:
    """What `pointwise.plan` gives, for `cube` and `positive_part`."""

    jvp = None

    def __init__(self, op: Op) -> None:
        self.op = op
        rule = ast.parse("def _(g, input):\n    return g * (input * input) * 3").body[0]
        self.composite_vjp = rule if op.name == "cube" else None

    def call(self, args: Sequence[str]) -> str:
        return f"run({', '.join(args)})"

    def call_inplace(self, self_: str, args: Sequence[str]) -> str:
        return f"run_inplace({self_}, {', '.join(args)})"

    def call_out(self, args: Sequence[str], outs: Sequence[str]) -> str:
        return f"run_out({', '.join([*args, *outs])})"

    def backward(self, grads: Sequence[str], needed: Sequence[str]) -> list[str]:
        return [f"return flambeau::flatten({needed[0]} ? run({grads[0]}, input) : Tensor());"]


@pytest.fixture
def text(make_unit: MakeUnit, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(package, "pointwise", types.SimpleNamespace(plan=Plan), raising=False)
    monkeypatch.setitem(
        __import__("sys").modules,
        "flambeau._build.pointwise",
        package.pointwise,  # type: ignore[attr-defined]
    )
    unit = make_unit(SOURCE)
    assert not unit.errors, [str(e) for e in unit.errors]
    return emit_files.all_files(unit)["ops_family.cpp"]


def test_backward_is_fused_unless_it_is_recorded(text: str) -> None:
    start = text.index("static Tensors cube_vjp(")
    body = text[start : text.index("\n}\n", start)]
    fused, composite = body.index("if (!modes.grad && !intercepted()) {"), body.index("ops::mul")
    assert fused < composite
    assert "return flambeau::flatten(need[0].wanted ? run(g, input) : Tensor());" in body


def test_inplace_saves_a_copy_of_what_it_overwrites(text: str) -> None:
    start = text.index("Ref<CubeBackward> cube_record_inplace(")
    record = text[start : text.index("\n}\n", start)]
    assert "node->input_ = SavedTensor(ops::clone(input), false);" in record
    start = text.index("Tensor cube_(")
    lines = text[start : text.index("\n}\n", start)].splitlines()
    order = ["check_inplace", "cube_record_inplace", "run_inplace(input, input)", "rebase_history"]
    places = [next(i for i, x in enumerate(lines) if what in x) for what in order]
    assert places == sorted(places)


def test_nondifferentiable_operation_records_nothing(text: str) -> None:
    start = text.index("Tensor positive_part(")
    body = text[start : text.index("\n}\n", start)]
    assert "record" not in body
    assert "set_history" not in body


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_generated_source_compiles(
    text: str, make_unit: MakeUnit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = emit_files.all_files(make_unit(SOURCE))
    emit_files.write(files, tmp_path / "gen")
    stand_in = (
        '#include "core/tensor.h"\nnamespace flambeau {\n'
        "template <class... T> Tensor run(const T&...) { return {}; }\n"
        "template <class... T> void run_inplace(const T&...) {}\n"
        "template <class... T> void run_out(const T&...) {}\n}\n"
    )
    (tmp_path / "stand_in.h").write_text(stand_in)
    command = ["g++", "-std=c++20", "-fsyntax-only", "-DFB_HAVE_ISA_v2=1"]
    command += ["-Wall", "-Wextra", "-Werror"]
    command += ["-include", "stand_in.h", "-I", str(ROOT / "csrc"), "-I", str(tmp_path)]
    done = subprocess.run(
        [*command, str(tmp_path / "gen" / "ops_family.cpp")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
