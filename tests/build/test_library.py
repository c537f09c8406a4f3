"""libflambeau: the core without Python, which the binding and programs in C++ link to."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from flambeau import _C
from flambeau._compiler import toolchain

BINDING = Path(_C.__file__)

#: y = mean(3 (x + 2)²) of ones, so that dy/dx = 6 (x + 2) / 4; modes of threads; an error
PROGRAM = r"""
#include <cstdio>
#include <dlfcn.h>
#include <thread>

#include "autograd/engine.h"
#include "autograd/meta.h"
#include "core/error.h"
#include "gen/ops.h"

using namespace flambeau;

int main() {
  Tensor x = ops::ones(Ints{2, 2}), two = ops::full(Ints{}, 2), three = ops::full(Ints{}, 3);
  set_requires_grad(x, true);
  Tensor y = ops::add(x, two);
  Tensor out = ops::mean(ops::mul(ops::mul(y, y), three));
  run_backward({out}, {Tensor()}, false, false, {}, true);
  std::printf("%g", out.item().to_double());
  for (int i = 0; i < 4; ++i) {
    std::printf(" %g", ops::select(ops::flatten(grad_of(x)), 0, i).item().to_double());
  }
  bool outside = false, other = false;
  {
    NoGradGuard off;
    outside = requires_grad(ops::mul(x, two));
    std::thread([&] { other = requires_grad(ops::mul(x, two)); }).join();
  }
  std::printf(" %d %d", outside, other);
  try {
    ops::add(x, ops::ones(Ints{3}));
  } catch (const Error& e) {
    std::printf(" '%s'", e.what());
  }
  std::printf(" %d\n", static_cast<int>(dlsym(RTLD_DEFAULT, "Py_Initialize") != nullptr));
}
"""


def symbols(library: Path, *flags: str) -> set[str]:
    """Demangled names of the dynamic table: --defined-only, --undefined-only."""
    run = ["nm", "-DC", "--format=posix", *flags, str(library)]
    lines = subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()
    return {line for line in lines if line}


def test_the_library_knows_nothing_of_python():
    names = symbols(toolchain.library())
    assert any(x.startswith("flambeau::run_backward(") for x in names)
    assert [x for x in names if x.startswith(("Py", "_Py"))] == []


def test_the_binding_defines_nothing_of_the_core():
    defined = symbols(BINDING, "--defined-only")
    assert any(x.startswith("PyInit__C") for x in defined)
    assert [x for x in defined if x.startswith("flambeau::")] == []
    assert any(x.startswith("flambeau::modes") for x in symbols(BINDING, "--undefined-only"))


def test_variables_of_the_core_exist_once():
    """Never unique by the loader's grace alone: other compilers make one in each library."""
    lines = symbols(toolchain.library(), "--defined-only")
    kinds = {line.split(" ")[0]: line.split(" ")[1] for line in lines if "(" not in line}
    assert kinds["flambeau::modes"] in "BD" and kinds["flambeau::storage_age"] in "BD"
    constant = re.compile(r"::k[A-Z]\w*$")
    assert [x for x, kind in kinds.items() if kind == "u" and not constant.search(x)] == []


def test_the_binding_finds_the_library_beside_itself():
    with open("/proc/self/maps") as maps:
        loaded = {line.split()[-1] for line in maps if "libflambeau.so" in line}
    assert loaded == {str(toolchain.library().resolve())}


@pytest.fixture(scope="module")
def program(compile_program) -> Path:
    return compile_program(PROGRAM)


def test_a_program_makes_tensors_and_differentiates(program):
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    # Modes belong to a thread: gradients are off in one, on in the other.
    text = (
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1"
    )
    assert done.stdout == f"27 4.5 4.5 4.5 4.5 0 1 '{text}' 0\n"


def test_a_program_needs_no_python(program):
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    run = ["ldd", str(program)]
    needed = subprocess.run(run, capture_output=True, text=True, check=True, env=environment).stdout
    assert str(toolchain.library()) in needed and "libpython" not in needed


@pytest.mark.parametrize("library", [toolchain.library(), BINDING])
def test_thread_local_variables_are_our_own(library):
    """Code that reaches another library's by its offset cannot be opened after that library."""
    run = ["readelf", "--dyn-syms", "-W", str(library)]
    lines = subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [line.split() for line in lines if " TLS " in line]
    assert rows or library == BINDING
    assert [r[-1] for r in rows if r[6] == "UND" and "flambeau" not in r[7]] == []
