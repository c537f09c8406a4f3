"""Programs in C++ as users build them: the package's headers and its library, nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import flambeau

PACKAGE = Path(flambeau.__file__).parent
#: scripts/cppsan.sh has the same programs instrumented
FLAGS = os.environ.get("FLAMBEAU_CPP_FLAGS", "").split()
PROGRAMS = Path(__file__).with_name("programs")


def program(name: str) -> str:
    """The text of a program of the tests."""
    return (PROGRAMS / f"{name}.cpp").read_text()


@pytest.fixture(scope="session")
def build_program(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """build(source, *flags): the program, or the object file with the flag -c."""
    gxx = shutil.which("g++")
    if gxx is None:
        pytest.skip("needs g++")

    def build(source: str, *flags: str) -> Path:
        folder = tmp_path_factory.mktemp("cpp")
        (folder / "program.cpp").write_text(source)
        command = [gxx, "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{PACKAGE / 'include'}"]
        command += [f"-I{PROGRAMS}"]
        command += ["program.cpp", "-o", "program", *flags]
        if not {"-c", "-fsyntax-only"} & set(flags):
            command += [f"-L{PACKAGE / 'lib'}", "-lflambeau", f"-Wl,-rpath,{PACKAGE / 'lib'}"]
            command += FLAGS
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:4000]
        return folder / "program"

    return build


@pytest.fixture(scope="session")
def run_program(build_program: Callable[..., Path]) -> Callable[..., str]:
    """run(source): what the program prints; it must end well and say nothing else."""

    def run(source: str, *flags: str) -> str:
        environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        done = subprocess.run(
            [build_program(source, *flags)], capture_output=True, text=True, check=False,
            env=environment, timeout=300,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), done.stderr + done.stdout
        return done.stdout

    return run
