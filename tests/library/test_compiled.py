"""Operators that programs add in compiled functions: fakes, derivatives, writes, the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest

import flambeau as torch
from flambeau import Tensor
from flambeau._capture import back_ends
from flambeau._library.operators import Ops
from flambeau._trace import trace

ops = Ops()


@torch.library.custom_op("tests_c::sin", mutates_args=())
def sin(x: Tensor, scale: float = 1.0) -> Tensor:
    return torch.from_numpy(np.sin(x.numpy() * scale))


@sin.register_fake
def _(x, scale=1.0):
    return torch.empty_like(x)


def _keep(ctx, inputs, output):
    x, ctx.scale = inputs
    ctx.save_for_backward(x)


sin.register_autograd(
    lambda ctx, g: (g * ctx.scale * torch.cos(ctx.saved_tensors[0] * ctx.scale), None),
    setup_context=_keep,
)


@torch.library.custom_op("tests_c::scaled", mutates_args=())
def scaled(xs: Sequence[Tensor], by: list[int]) -> list[Tensor]:
    return [x * n for x, n in zip(xs, by, strict=True)]


scaled.register_fake(lambda xs, by: [torch.empty_like(x) for x in xs])


def _keep_by(ctx, inputs, output):
    ctx.by = inputs[1]


scaled.register_autograd(
    lambda ctx, grads: ([g * n for g, n in zip(grads, ctx.by, strict=True)], None),
    setup_context=_keep_by,
)


@torch.library.custom_op("tests_c::double_into", mutates_args={"out"})
def double_into(x: Tensor, out: Tensor) -> None:
    out.numpy()[...] = 2 * x.numpy()


@torch.library.custom_op("tests_c::blind", mutates_args=())
def blind(x: Tensor) -> Tensor:
    return x.clone()


def doubles(*shape, **options):
    return torch.randn(*shape, dtype=torch.float64, **options)


def whole(f, **options):
    return torch.compile(f, fullgraph=True, **options)


def test_forward_and_backward():
    x = doubles(3, 4, requires_grad=True)
    y = whole(lambda x: sin(x + 1, 2.0) * 2)(x)
    y.sum().backward()
    assert y.allclose(2 * torch.sin(2 * (x + 1)))
    assert x.grad.allclose(4 * torch.cos(2 * (x + 1)))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_every_back_end(backend):
    a, b = doubles(2, requires_grad=True), doubles(2, requires_grad=True)
    f = whole(lambda a, b: scaled([sin(a), b * 2], [2, 3]), backend=backend)
    u, v = f(a, b)
    (u.sum() + v.sum()).backward()
    assert u.allclose(2 * torch.sin(a)) and v.allclose(6 * b)
    assert a.grad.allclose(2 * torch.cos(a)) and b.grad.tolist() == [6, 6]


def test_by_every_name():
    x = doubles(3)
    for f in (
        lambda x: ops.tests_c.sin(x, scale=3.0),
        lambda x: ops.tests_c.sin.default(x, 3.0),
        lambda x: sin(scale=3.0, x=x),
        lambda x: sin._opoverload(x, 3.0),
    ):
        assert whole(f)(x).allclose(torch.sin(3 * x))


def test_sizes_that_vary(monkeypatch):
    compiled = []
    lower = back_ends._lower
    monkeypatch.setattr(back_ends, "_lower", lambda *a: (compiled.append(1), lower(*a))[1])
    f = whole(lambda x: sin(x * 2) + 1, dynamic=True)
    for n in (3, 5, 8):
        x = doubles(n, 2, requires_grad=True)
        y = f(x)
        assert y.allclose(torch.sin(2 * x) + 1)
        y.sum().backward()
        assert x.grad.allclose(2 * torch.cos(2 * x))
    assert len(compiled) <= 1


def test_what_is_written_to():
    def f(x, y):
        z = y[1:] + 1
        double_into(x, z)
        double_into(x + 1, y[1:])
        return z * y[:3]

    x, a, b = doubles(3), doubles(4), doubles(4)
    b.copy_(a)
    out = f(x, a)
    assert whole(f)(x, b).equal(out) and a.equal(b)
    assert a[1:].equal(2 * (x + 1))


def test_what_a_fake_says_is_held_to():
    @torch.library.custom_op("tests_c::lies", mutates_args=())
    def lies(x: Tensor, kind: int) -> Tensor:
        return [x[:1].clone(), x.double(), x.clone().t().contiguous().t()][kind]

    lies.register_fake(lambda x, kind: torch.empty_like(x))
    x = torch.ones(2, 3)
    with pytest.raises(RuntimeError, match=r"expected tests_c::lies to give .*got shape \[1, 3\]"):
        whole(lambda x: lies(x, 0) + 1)(x)
    with pytest.raises(RuntimeError, match="expected tests_c::lies to give .*dtype float64"):
        whole(lambda x: lies(x, 1) + 1)(x)
    out = whole(lambda x: lies(x, 2))(x)  # another layout is copied into the one that was said
    assert out.equal(x) and out.stride() == (3, 1)

    lies.register_fake(lambda x, kind: 3)
    with pytest.raises(Exception, match="the fake of tests_c::lies: expected a Tensor as result 0"):
        whole(lambda x: lies(x, 0))(x)


def test_without_a_fake_a_graph_ends():
    x = doubles(3)
    assert torch.compile(lambda x: blind(x * 2) + 1)(x).equal(x * 2 + 1)
    with pytest.raises(Exception, match="the operator tests_c::blind has no fake.*register_fake"):
        whole(lambda x: blind(x * 2) + 1)(x)


def test_a_backward_may_call_what_has_no_derivative():
    @torch.library.custom_op("tests_c::cubed", mutates_args=())
    def cubed(x: Tensor) -> Tensor:
        return x**3

    @torch.library.custom_op("tests_c::cubed_backward", mutates_args=())
    def cubed_backward(g: Tensor, x: Tensor) -> Tensor:
        return g * 3 * x**2

    cubed.register_fake(torch.empty_like)
    cubed_backward.register_fake(lambda g, x: torch.empty_like(g))
    cubed.register_autograd(
        lambda ctx, g: cubed_backward(g, *ctx.saved_tensors),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    f = whole(lambda x: cubed(x * 2).sum())
    x = doubles(3, requires_grad=True)
    f(x).backward()
    torch.testing.assert_close(x.grad, 24 * x.detach() ** 2)
    (first,) = torch.autograd.grad(f(x), x, create_graph=True)
    with pytest.raises(RuntimeError, match="cannot be differentiated twice"):
        first.sum().backward()


def test_without_a_derivative_a_graph_ends():
    @torch.library.custom_op("tests_c::constant", mutates_args=())
    def constant(x: Tensor) -> Tensor:
        return x.clone()

    constant.register_fake(torch.empty_like)
    x = doubles(3, requires_grad=True)
    assert whole(lambda x: constant(x))(x.detach()).equal(x)
    y = torch.compile(lambda x: constant(x * 2) + 1)(x)
    with pytest.raises(RuntimeError, match="backward through tests_c::constant but no autograd"):
        y.sum().backward()
    with pytest.raises(Exception, match="has no derivative.*register_autograd"):
        whole(lambda x: constant(x * 2))(x)


def test_sizes_that_depend_on_the_data():
    @torch.library.custom_op("tests_c::places", mutates_args=())
    def places(x: Tensor) -> Tensor:
        return torch.from_numpy(np.stack(x.numpy().nonzero(), 1))

    @places.register_fake
    def _(x):
        size = torch.library.get_ctx().new_dynamic_size()
        return x.new_empty(size, x.dim(), dtype=torch.int64)

    x = torch.tensor([0.0, 2.0, 3.0])
    assert torch.compile(lambda x: places(x + 0) * 2)(x).tolist() == [[2], [4]]
    with pytest.raises(Exception, match="compile without fullgraph=True"):
        whole(lambda x: places(x))(x)


def test_kernels_that_stand_for_operations_are_followed():
    with torch.library._scoped_library("tests_f", "FRAGMENT") as lib:
        lib.define("norm(Tensor x, float p=2.0) -> Tensor")
        lib.impl("norm", lambda x, p: (x.abs() ** p).sum() ** (1 / p))
        x = doubles(4, requires_grad=True)
        f = whole(lambda x: ops.tests_f.norm(x * 2))
        y = f(x)
        y.backward()
        assert y.allclose((2 * x).norm()) and x.grad.allclose(2 * x / x.norm())
        graph = trace(lambda x: ops.tests_f.norm(x), [x.detach()])
        assert "tests_f::norm" in str(graph) or "abs" in str(graph)


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return ops.tests_g.cube.default.below_autograd(x)

    @staticmethod
    def backward(ctx, g):
        return 3 * ctx.saved_tensors[0] ** 2 * g


def test_autograd_functions_are_followed():
    with torch.library._scoped_library("tests_g", "FRAGMENT") as lib:
        lib.define("cube(Tensor x) -> Tensor")
        lib.impl("cube", lambda x: torch.from_numpy(x.detach().numpy() ** 3), "CPU")
        lib.impl("cube", Cube.apply, "Autograd")
        torch.library.register_fake("tests_g::cube", torch.empty_like)
        x = doubles(3, requires_grad=True)
        whole(lambda x: ops.tests_g.cube(x) * 2)(x).sum().backward()
        assert x.grad.allclose(6 * x**2)


def test_defined_again():
    def make(n):
        @torch.library.custom_op("tests_c::again", mutates_args=())
        def again(x: Tensor) -> Tensor:
            return x + n

        again.register_fake(torch.empty_like)
        return again

    space = {"op": make(1)}
    f = whole(lambda x: space["op"](x) * 2)
    x = torch.zeros(1)
    assert f(x).item() == 2
    space["op"] = make(2)
    assert f(x).item() == 4


def test_kernels_are_not_captured():
    @torch.library.custom_op("tests_c::plain", mutates_args=())
    def plain(x: Tensor) -> Tensor:
        if x.sum().item() > 0:  # which would end a graph
            return x + 1
        return x - 1

    plain.register_fake(torch.empty_like)
    assert whole(lambda x: plain(x) * 2)(torch.ones(2)).tolist() == [4, 4]


def test_checks_of_everything():
    x = doubles(3, 4, requires_grad=True)
    names = ["test_schema", "test_autograd_registration", "test_faketensor"]
    names += ["test_aot_dispatch_static", "test_aot_dispatch_dynamic"]
    for op, args in (
        (sin, (x, 2.0)),
        (ops.tests_c.sin.default, (x,)),
        (scaled, ([x, x * 2], [2, 3])),
        (double_into, (doubles(3), doubles(3))),
    ):
        assert torch.library.opcheck(op, args, test_utils=names) == dict.fromkeys(names, "SUCCESS")

    wrong = torch.library.custom_op(
        "tests_c::wrong", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    wrong.register_fake(torch.empty_like)
    calls = []
    wrong.register_kernel("cpu", lambda x: (calls.append(1), x * len(calls))[1])
    with pytest.raises(Exception, match="compiled, it gives something else"):
        torch.library.opcheck(wrong, (doubles(3),), test_utils="test_aot_dispatch_static")


PROGRAM = """
import sys
import numpy as np
import flambeau as torch
from flambeau._capture import back_ends
ran, lower = [], back_ends._lower
back_ends._lower = lambda *a: (ran.append(1), lower(*a))[1]

@torch.library.custom_op("tests_k::sin", mutates_args=sys.argv[1].split())
def sin(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(np.sin(x.numpy()))

sin.register_fake(torch.empty_like)
if "x" not in sys.argv[1]:
    sin.register_autograd(lambda ctx, g: g * NUMBER, setup_context=lambda ctx, inputs, output: None)
NUMBER = float(sys.argv[2])
x = torch.ones(3, requires_grad="x" not in sys.argv[1])
y = torch.compile(lambda x: sin(x * 2) + 1, fullgraph=True)(x)
assert np.allclose(y.detach().numpy(), np.sin(2) + 1)
if y.requires_grad:
    y.sum().backward()
    assert x.grad.tolist() == [2 * NUMBER] * 3
print(len(ran))
"""


def test_found_in_the_cache(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    env = {**os.environ, "FLAMBEAU_CACHE": str(tmp_path / "cache")}
    env.pop("FLAMBEAU_VERIFY", None)

    def passes(*args):
        command = [sys.executable, str(program), *args]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    assert passes("", "3") == 1
    assert passes("", "3") == 0  # found
    assert passes("", "4") == 1  # its derivative is another one
    assert passes("x", "3") == 1  # it writes to its argument
    assert passes("x", "3") == 0
    assert len(list((tmp_path / "cache").glob("*.plan"))) == 3
