"""`Library`, and the functions of `torch.library` that take names."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import _C
from flambeau._library.operators import Ops, overload_of

ops = Ops()


@pytest.fixture
def lib():
    with torch.library._scoped_library("tests_lib", "FRAGMENT") as made:
        yield made


def test_defined_and_given_kernels(lib):
    assert lib.define("twice(Tensor x) -> Tensor") == "twice"
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(NotImplementedError, match="Could not run 'tests_lib::twice'.*no kernel"):
        ops.tests_lib.twice(x)
    lib.impl("twice", lambda x: 2 * x, "CPU")
    ops.tests_lib.twice(x).sum().backward()  # what the function does is recorded
    assert x.grad.tolist() == [2, 2]
    lib.impl("twice", lambda x: 3 * x, "CPU")
    assert ops.tests_lib.twice(x).tolist() == [3, 3]
    lib.impl("twice", torch.library.fallthrough_kernel, "CPU")
    lib.impl("twice", lambda x: 4 * x)
    assert ops.tests_lib.twice(x).tolist() == [4, 4]
    with pytest.raises(RuntimeError, match="there is an operator of that name already"):
        lib.define("twice(Tensor x, int n) -> Tensor")


def test_overloads(lib):
    assert lib.define("tests_lib::f.one(Tensor x) -> Tensor") == "f.one"
    lib.define("f.two(Tensor x, int n) -> Tensor")
    lib.impl("f.one", lambda x: x + 1)
    lib.impl(ops.tests_lib.f.two, lambda x, n: x + n)
    x = torch.zeros(1)
    assert ops.tests_lib.f.overloads() == list(ops.tests_lib.f) == ["one", "two"]
    assert [ops.tests_lib.f(x).item(), ops.tests_lib.f(x, 5).item()] == [1, 5]
    assert ops.tests_lib.f.two(x, 7).item() == 7
    with pytest.raises(TypeError, match="tests_lib.f: no overload takes these arguments"):
        ops.tests_lib.f("x")


def test_autograd_kernels(lib):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return ops.tests_lib.cube.default.below_autograd(x)

        @staticmethod
        def backward(ctx, g):
            return 3 * ctx.saved_tensors[0] ** 2 * g

    lib.define("cube(Tensor x) -> Tensor")
    lib.impl("cube", lambda x: torch.from_numpy(x.detach().numpy() ** 3), "CPU")
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="tests_lib::cube but no autograd formula"):
        ops.tests_lib.cube(x).sum().backward()
    lib.impl("cube", Cube.apply, "Autograd")
    assert torch.autograd.gradcheck(ops.tests_lib.cube, (x,))
    assert torch.autograd.gradgradcheck(ops.tests_lib.cube, (x,))


def test_composites_are_what_they_call(lib):
    lib.define("norm(Tensor x, float p=2.0) -> Tensor")
    lib.impl("norm", lambda x, p: (x.abs() ** p).sum() ** (1 / p), "CompositeImplicitAutograd")
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    norm = ops.tests_lib.norm
    assert torch.autograd.gradcheck(norm, (x,))
    assert torch.func.vmap(norm)(x).allclose(x.norm(dim=1))
    assert torch.func.vmap(torch.func.grad(norm))(x).allclose(x / x.norm(dim=1, keepdim=True))
    assert norm(torch.ones(3, device="meta")).shape == ()


def test_what_goes_with_a_library():
    one = torch.library.Library("tests_two", "DEF")
    one.define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="Only a single Library of kind DEF"):
        torch.library.Library("tests_two", "DEF")
    two = torch.library.Library("tests_two", "IMPL", "CPU")
    two.impl("f", lambda x: x + 1)
    f = ops.tests_two.f
    assert f(torch.zeros(1)).item() == 1
    two._destroy()
    with pytest.raises(NotImplementedError, match="no kernel"):
        f(torch.zeros(1))
    one._destroy()
    assert not hasattr(ops.tests_two, "f") and "tests_two::f" not in _C._ops_added()
    torch.library.Library("tests_two", "DEF")._destroy()


def test_what_a_library_refuses(lib):
    lib.define("g(Tensor x) -> Tensor")
    f = lambda x: x  # noqa: E731
    library, absent = torch.library, NotImplementedError
    for call, error, words in (
        (lambda: library.Library("a", "USE"), ValueError, "Unsupported kind: USE"),
        (lambda: library.Library("aten", "IMPL"), absent, "namespace of your own"),
        (lambda: lib.define("other::g(Tensor x) -> Tensor"), RuntimeError, "namespace tests_lib"),
        (lambda: lib.define("g(Tensor x) -> Tensor", "ALL"), RuntimeError, "alias_analysis"),
        (lambda: lib.define("nonsense"), RuntimeError, "expected '('"),
        (lambda: lib.impl("nope", f), RuntimeError, "operator tests_lib::nope does not exist"),
        (lambda: lib.impl("g", f, "FuncTorchBatched"), absent, "use register_vmap"),
        (lambda: lib.impl("g", f, "Nowhere"), absent, "expected one of CPU"),
        (lambda: lib.impl("g", f, "CPU", with_keyset=True), absent, "with_keyset"),
        (lambda: lib.impl("g", 3, "CPU"), TypeError, "expected a function, got int"),
        (lambda: lib.fallback(f), absent, "each operator its kernel"),
        (lambda: library.register_torch_dispatch("tests_lib::g", int, f), absent,
         "__torch_function__"),
        (lambda: library.triton_op("a::b", f), absent, "custom_op"),
        (lambda: library.wrap_triton(f), absent, "custom_op"),
        (lambda: library.get_ctx().new_dynamic_size(), absent, "depend on the data"),
        (lambda: library.get_kernel("tests_lib::g", "CPU"), RuntimeError, "no kernel for CPU"),
        (library.fallthrough_kernel, absent, "should never be called"),
    ):  # fmt: skip
        with pytest.raises(error) as e:
            call()
        assert words in str(e.value)
    lib.impl("g", f, "MPS")  # never called
    lib.impl("g", lambda x: x + 1, "CPU")
    with pytest.raises(RuntimeError, match="has a kernel for CPU already"):
        lib.impl("g", f, "CPU", allow_override=False)
    kernel = torch.library.get_kernel("tests_lib::g", "CPU")
    assert kernel.call_boxed(None, torch.zeros(1)).item() == 1


def test_functions_that_take_names():
    torch.library.define("tests_names::f", "(Tensor x, *, int n=2) -> Tensor")

    @torch.library.impl("tests_names::f", "cpu")
    def f(x, *, n):
        return x.detach().clone() * n

    assert f(torch.ones(1), n=3).item() == 3
    assert ops.tests_names.f(torch.ones(1)).item() == 2
    torch.library.impl("tests_names::f", ["cuda", "default"], lambda x, *, n: x)

    @torch.library.register_fake("tests_names::f")
    def _(x, *, n=2):
        return torch.empty_like(x)

    assert ops.tests_names.f(torch.ones(3, device="meta")).shape == (3,)
    torch.library.register_autograd("tests_names::f", lambda ctx, g: g * 2)
    x = torch.ones(1, requires_grad=True)
    ops.tests_names.f(x).backward()
    assert x.grad.item() == 2
    torch.library.register_kernel("tests_names::f", "cpu", lambda x, *, n: x.detach() * 10)
    assert ops.tests_names.f(x).item() == 10
    with pytest.raises(RuntimeError, match="operator tests_names::g does not exist"):
        torch.library.register_autograd("tests_names::g", lambda ctx, g: g)
    with pytest.raises(ValueError, match="expected a schema like"):
        torch.library.define("tests_names::h", "h(Tensor x) -> Tensor")


def test_the_forms_that_take_a_library(lib):
    @torch.library.define(lib, "plus(Tensor x, int n=1) -> Tensor")
    def plus(x, n=1):
        return x + n

    @torch.library.impl(lib, "plus", "CPU")
    def _(x, n):
        return x + 10 * n

    assert ops.tests_lib.plus(torch.zeros(1), 2).item() == 20 and plus(torch.zeros(1)).item() == 1


def test_fakes_before_their_operators():
    torch.library.register_fake("tests_early::f", lambda x: x.new_empty(5))
    torch.library.define("tests_early::f", "(Tensor x) -> Tensor")
    assert ops.tests_early.f(torch.ones(1, device="meta")).shape == (5,)
    assert overload_of("tests_early::f")._fake is not None


def test_operators_are_found_under_the_name_of_the_package() -> None:
    import subprocess
    import sys

    with torch.library._scoped_library("at_top", "DEF") as lib:
        lib.define("twice(Tensor x) -> Tensor")
        lib.impl("twice", lambda x: x * 2, "CPU")
        assert torch.ops.at_top.twice(torch.ones(2)).tolist() == [2.0, 2.0]
        assert torch.ops.at_top.twice.default._schema.name == "at_top::twice"
        assert not hasattr(torch.ops.at_top, "thrice")
    assert torch.ops.aten.add(torch.ones(1), 2).item() == 3.0
    from flambeau.ops import views  # files of the table stay what they are

    assert callable(views.select)
    code = "import flambeau as f, flambeau.as_torch as a; a.install(); import torch; assert torch.ops.x is f.ops.x"
    subprocess.run([sys.executable, "-c", code], check=True)
