"""Programs of docs/cpp.md print what stands below them; CMake and pkg-config find the package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import flambeau
from tests.cpp.conftest import PACKAGE

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cpp.md"
PROGRAMS = re.findall(r"```cpp\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_programs_of_the_page(run_program, number):
    source, wanted = PROGRAMS[number]
    assert run_program(source) == wanted


@pytest.mark.parametrize("name", ["Flambeau", "Torch"])
def test_cmake_finds_the_package(tmp_path, name):
    if shutil.which("cmake") is None:
        pytest.skip("needs CMake")
    (tmp_path / "first.cpp").write_text(PROGRAMS[0][0])
    target = "Flambeau::flambeau" if name == "Flambeau" else '"${TORCH_LIBRARIES}"'
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(first CXX)\n"
        f"find_package({name} REQUIRED)\nadd_executable(first first.cpp)\n"
        f"target_link_libraries(first {target})\n"
        # Projects written for PyTorch ask for an older standard; the library raises it.
        "set_property(TARGET first PROPERTY CXX_STANDARD 17)\n"
    )
    where = f"-DCMAKE_PREFIX_PATH={flambeau.utils.cmake_prefix_path}"
    for command in (["cmake", "-S", ".", "-B", "b", where], ["cmake", "--build", "b"]):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    run = [tmp_path / "b" / "first"]
    done = subprocess.run(run, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout) == (0, PROGRAMS[0][1])
    needed = subprocess.run(["ldd", *run], capture_output=True, text=True, check=True).stdout
    assert "libflambeau.so" in needed and "libpython" not in needed


def test_pkg_config_gives_the_flags(tmp_path):
    if shutil.which("pkg-config") is None:
        pytest.skip("needs pkg-config")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(PACKAGE / "share" / "pkgconfig")}
    run = ["pkg-config", "--cflags", "--libs", "flambeau"]
    flags = subprocess.run(run, capture_output=True, text=True, check=True, env=environment).stdout
    assert "-std=c++20" in flags and "-lflambeau" in flags


def test_each_header_compiles_alone(build_program):
    include = PACKAGE / "include"
    names = sorted(str(p.relative_to(include)) for p in include.rglob("*.h"))
    inside = {"flambeau/api/members.h", "flambeau/gen/api/methods.h"}
    parts = [n for n in names if n not in inside and "gen/" not in n]
    assert {"torch/torch.h", "flambeau/flambeau.h", "flambeau/nn.h"} <= set(parts)
    for name in ("torch/torch.h", "flambeau/flambeau.h", "flambeau/nn.h", "flambeau/optim.h"):
        build_program(f"#include <{name}>\n#include <{name}>\nint main() {{}}\n", "-fsyntax-only")


def test_what_a_program_compiles_of_the_headers(tmp_path):
    """No threads, and not the copying of a hundred layers, which took as long as all the rest."""
    gxx = shutil.which("g++")
    if gxx is None:
        pytest.skip("needs g++")
    (tmp_path / "a.cpp").write_text("#include <torch/torch.h>\nint main() {}\n")
    command = [gxx, "-std=c++20", "-fsyntax-only", f"-I{PACKAGE / 'include'}", "a.cpp", "-H"]
    done = subprocess.run(
        [*command, "-fdump-tree-original=made"], cwd=tmp_path, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    names = set(re.findall(r"^\.+ \S*/(\w+)$", done.stderr, re.MULTILINE))
    assert {"iostream", "memory", "vector"} <= names
    assert not names & {"thread", "condition_variable", "future", "random", "regex", "deque"}
    made = (tmp_path / "made").read_text(errors="replace")
    assert len(re.findall(r"^;; Function .*make_shared", made, re.MULTILINE)) < 20
