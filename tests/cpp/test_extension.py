"""Extension modules: built when the program runs and by setuptools, operators added by C++."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import flambeau as torch
from flambeau._library.operators import Ops
from flambeau.utils import cpp_extension
from tests.cpp.conftest import PROGRAMS, program

pytest.importorskip("pybind11")
OPS = Ops(lambda name: None)  # torch.ops of the alias

INLINE = program("inline")
NAMES = ["sigmoid_add", "both", "made", "shaped", "refused", "cube", "call", "type_of"]


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        path = tmp_path_factory.mktemp("extensions")
        patch.setenv("FLAMBEAU_EXTENSIONS_DIR", str(path))
        yield path


@pytest.fixture(scope="module")
def module(folder):
    return cpp_extension.load_inline("inline_test", INLINE, functions=NAMES)


def test_functions_take_and_give_tensors(module):
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    assert torch.equal(module.sigmoid_add(x, y), x.sigmoid() + y.sigmoid())
    first, second = module.both(x, y, 3, 0.5)
    assert torch.equal(first, x * 3) and torch.equal(second, y * 0.5)
    assert module.both(x, None, 3, 0.5)[1] is None
    made = module.made([2, 3], torch.float64, torch.device("cpu"))
    assert made.shape == (2, 3) and made.dtype == torch.float64 and made[0, 0] == 3
    assert torch.equal(module.shaped(x, (4, 3), 2), x.view(4, 3) * 2)
    assert torch.equal(module.shaped(x, [2, 6], 0.5), x.view(2, 6) * 0.5)
    assert module.type_of(x.half()) is torch.float16
    assert torch.equal(module.call(x, lambda t: t + 1), x + 1)
    parameter = torch.nn.Parameter(x)
    assert torch.equal(module.sigmoid_add(parameter, y), module.sigmoid_add(x, y))
    assert module.sigmoid_add(parameter, y).requires_grad


def test_errors_are_those_of_python(module):
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="refused: expected kind 1, got 0"):
        module.refused(x, 0)
    with pytest.raises(IndexError, match="no such index"):
        module.refused(x, 1)
    with pytest.raises(ValueError, match="Expected kind != 2 to be true"):
        module.refused(x, 2)
    with pytest.raises(ValueError, match="of the standard library"):
        module.refused(x, 3)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        module.sigmoid_add(x, 1)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        module.shaped(x, ["a"], 1)
    with pytest.raises(RuntimeError, match="invalid for input of size 2"):
        module.shaped(x, [5], 1)


def test_functions_of_cpp_are_differentiated(module):
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(module.cube, x)
    assert torch.autograd.gradgradcheck(module.cube, x)
    assert module.cube(x).grad_fn.name() == "torch::autograd::CppNode<Cube>"
    with pytest.raises(NotImplementedError, match="inside of a transform"):
        torch.vmap(module.cube)(x)


def test_what_was_built_is_found_again(module, folder):
    began = time.monotonic()
    again = cpp_extension.load_inline("inline_test", INLINE, functions=NAMES)
    assert time.monotonic() - began < 1.0
    assert torch.equal(again.cube(torch.ones(1)), torch.ones(1))
    other = cpp_extension.load_inline(
        "inline_test", "int f() { return 2; }", functions={"f": 'says "two"'}
    )
    assert other.f() == 2 and 'says "two"' in other.f.__doc__


def test_what_the_compiler_refuses_is_shown(folder):
    with pytest.raises(RuntimeError, match="Error building extension 'wrong'.*[\\s\\S]*not_there"):
        cpp_extension.load_inline("wrong", "int f() { return not_there; }", functions="f")
    with pytest.raises(RuntimeError, match="accelerators"):
        cpp_extension.load_inline("wrong", "", cuda_sources="__global__ void f() {}")
    with pytest.raises(RuntimeError, match="expected source files"):
        cpp_extension.load("wrong", ["missing.cpp"])
    with pytest.raises(RuntimeError, match="accelerators"):
        cpp_extension.CUDAExtension("wrong", [])
    code = "from flambeau.utils import cpp_extension as c; c.load_inline('x', 'int f();')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={"PATH": str(folder), "HOME": str(folder)},
    )  # fmt: skip
    assert "expected a C++ compiler" in done.stderr


def test_files_with_a_header_of_their_own(tmp_path):
    (tmp_path / "a.cpp").write_text(
        '#include <torch/extension.h>\n#include "b.h"\n'
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n'
    )
    (tmp_path / "b.h").write_text("torch::Tensor f(torch::Tensor x);\n")
    (tmp_path / "b.cpp").write_text(
        '#include <torch/torch.h>\n#include "b.h"\n'
        "torch::Tensor f(torch::Tensor x) { return x + STEP; }\n"
    )
    sources = [str(tmp_path / "a.cpp"), str(tmp_path / "b.cpp")]
    where = str(tmp_path / "build")
    for step in (1, 2):
        flags = ["-std=c++17", f"-DSTEP={step}"]
        module = cpp_extension.load("files", sources, extra_cflags=flags, build_directory=where)
        assert module.f(torch.zeros(1)).item() == step


@pytest.fixture(scope="module")
def operators(folder):
    sources = [str(PROGRAMS / "operators.cpp")]
    return cpp_extension.load("cpptest_operators", sources, is_python_module=False)


def test_operators_of_cpp(operators):
    ops = OPS.cpptest
    x = torch.randn(3, 4, dtype=torch.float64)
    assert torch.equal(ops.scaled(x, 3.0), x * 3) and torch.equal(ops.scaled(x), x * 2)
    np.testing.assert_array_equal(ops.scaled(x.half(), 2.0).numpy(), x.half().numpy() * 2)
    assert str(ops.scaled.default._schema) == "cpptest::scaled(Tensor x, float by=2.) -> Tensor"
    with pytest.raises(RuntimeError, match="scaled: expected a floating tensor, got torch.int64"):
        ops.scaled(torch.ones(2, dtype=torch.int64))
    x.requires_grad_()
    assert torch.autograd.gradcheck(lambda t: ops.scaled(t, 3.0), x)
    total, n, word = ops.parts([x, x], [4, 3], None, "word", True, None)
    assert torch.equal(total, (x + x).view(4, 3)) and (n, word) == (1, "word!")
    assert ops.parts([x], [12], x, "w", False, 7)[1] == 7
    assert torch.equal(ops.square(x), x * x) and ops.square(x).requires_grad
    assert torch.equal(torch.vmap(ops.square)(x), x * x)
    y = torch.zeros(2)
    assert ops.add_one_(y) is not None and y.tolist() == [1, 1] and y._version > 0
    assert torch.equal(OPS.cpptest_old.negate(x), -x)
    assert torch.equal(OPS.cpptest_old.twice(x), x * 2)
    assert torch.equal(torch.compile(lambda t: ops.square(t) + 1)(x.detach()), (x * x + 1).detach())


def test_what_cannot_be_added_is_an_error(operators, tmp_path):
    with pytest.raises(RuntimeError, match=r"TORCH_LIBRARY\(cpptest\)[\s\S]*cpptest_bad"):
        cpp_extension.load(
            "cpptest_twice", [str(PROGRAMS / "twice_defined.cpp")], is_python_module=False
        )
    with pytest.raises(OSError, match="cannot be loaded"):
        OPS.load_library(str(tmp_path / "missing.so"))


def test_setuptools_builds_a_package(tmp_path):
    (tmp_path / "fast.cpp").write_text(
        "#include <torch/extension.h>\n"
        "at::Tensor twice(const at::Tensor& x) { return x * 2; }\n"
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("twice", &twice, "Doubles."); }\n'
    )
    (tmp_path / "setup.py").write_text(
        textwrap.dedent("""
            from setuptools import setup
            from flambeau.utils.cpp_extension import BuildExtension, CppExtension
            setup(
                name="fast",
                ext_modules=[CppExtension("fast._C", ["fast.cpp"],
                             extra_compile_args={"cxx": ["-O1", "-std=c++17"]})],
                cmdclass={"build_ext": BuildExtension.with_options(no_python_abi_suffix=True)},
            )
        """)
    )
    command = [sys.executable, "setup.py", "-q", "build_ext", "--build-lib", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "fast" / "_C.so").is_file()
    code = "import flambeau as t; from fast import _C; print(_C.twice(t.ones(2)), _C.twice.__doc__)"
    (tmp_path / "out" / "fast" / "__init__.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "out", capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.stdout.startswith("tensor([2., 2.]) twice(") and "Doubles." in done.stdout, done
