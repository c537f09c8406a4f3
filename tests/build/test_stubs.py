"""The committed stubs: what the table gives, names of the built module, what mypy makes of them."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import flambeau as torch
from flambeau._build import emit_stubs

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "flambeau"


def test_they_are_current():
    made = emit_stubs.current()
    stale = [
        name
        for name, text in made.items()
        if not (PACKAGE / name).is_file() or (PACKAGE / name).read_text() != text
    ]
    assert not stale, "run: python -m flambeau._build.emit_stubs"


def test_no_stub_is_left_over():
    made = {name.removeprefix("_C/") for name in emit_stubs.current() if name.startswith("_C/")}
    assert {p.name for p in (PACKAGE / "_C").iterdir()} == made | {"_core.pyi", "_distributed.pyi"}


def defined(nodes):
    names = {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    targets = [n.target for n in nodes if isinstance(n, ast.AnnAssign)]
    return names | {t.id for t in targets if isinstance(t, ast.Name)}


@pytest.fixture(scope="module")
def core():
    """Statements of the two stubs of the core, and those of its class Tensor."""
    files = [PACKAGE / "_C" / name for name in ("_core.pyi", "__init__.pyi")]
    nodes = [n for path in files for n in ast.parse(path.read_text()).body]
    classes = [n for n in nodes if isinstance(n, ast.ClassDef)]
    tensor = [m for c in classes if c.name in ("TensorBase", "Tensor") for m in c.body]
    return nodes, tensor


def test_functions_and_types_are_those_of_the_module(core):
    helpers = {"TensorBase", "_GradMode"}
    stub = {n for n in defined(core[0]) if not n.endswith("_result")} - helpers
    built = {n for n in vars(torch._C) if n[:2] != "__"}
    modules = {n for n in built if type(getattr(torch._C, n)) is type(torch)}
    assert stub == built - modules


def test_members_of_tensor_are_those_of_the_class(core):
    stub = {n for n in defined(core[1]) if n[:1] != "_"}
    assert stub == {n for n in vars(torch.Tensor) if n[:1] != "_"}


@pytest.mark.parametrize("space", ["_distributed", "fft", "linalg", "nn_functional", "special"])
def test_functions_of_namespaces_are_those_of_the_module(space):
    stub = defined(ast.parse((PACKAGE / "_C" / f"{space}.pyi").read_text()).body)
    assert stub == {n for n in vars(sys.modules[f"flambeau._C.{space}"]) if n[:2] != "__"}


def test_a_typed_program():
    pytest.importorskip("mypy")
    program = Path("tests", "typing", "program.py")
    options = ["--strict", "--follow-imports=silent", "--config-file="]
    outcome = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(program)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
