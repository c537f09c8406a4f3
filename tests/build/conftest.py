"""Small tables of operations, compiled from text; programs in C++ that link to the library."""

from __future__ import annotations

import shutil
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from flambeau._build import compiler, emit_files
from flambeau._build.compiler import Unit
from flambeau._compiler import toolchain

ROOT = Path(__file__).resolve().parents[2]

#: what the rules of the tests call
BASE = '''
@structured(kernel="mul")
def mul(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Product."""
    return empty(input.shape, dtype=input.dtype, like=input)


@structured(kernel="sum")
def sum(input: Tensor, dim: Ints | None = None, keepdim: bool = False) -> Tensor:
    """Sum."""
    return empty(input.shape, dtype=input.dtype, like=input)
'''

MakeUnit = Callable[..., Unit]


@pytest.fixture
def make_unit(tmp_path: Path) -> MakeUnit:
    """Compiles the text of one entry file, with `mul` and `sum` beside it."""

    def make(source: str, base: str = BASE) -> Unit:
        folder = tmp_path / "flambeau" / "ops"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "base.py").write_text(base)
        (folder / "family.py").write_text(textwrap.dedent(source))
        return compiler.load(tmp_path)

    return make


@pytest.fixture(scope="session")
def compile_program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Compiles a program and links it to the library that this process runs."""
    gxx = shutil.which("g++")
    if gxx is None:
        pytest.skip("needs g++")
    headers = tmp_path_factory.mktemp("headers")
    (headers / "gen").mkdir()
    for name, text in emit_files.all_files(compiler.load(ROOT)).items():
        if name.endswith(".h"):
            (headers / "gen" / name).write_text(text)
    library = toolchain.library()

    def make(source: str) -> Path:
        folder = tmp_path_factory.mktemp("program")
        (folder / "program.cpp").write_text(source)
        command = [
            gxx, "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'csrc'}", f"-I{headers}",
            "program.cpp", "-o", "program", f"-L{library.parent}", "-lflambeau", "-ldl",
            f"-Wl,-rpath,{library.parent}",
        ]  # fmt: skip
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return folder / "program"

    return make
