"""Operators that programs add: called, differentiated, batched, autocast, checked."""

from __future__ import annotations

import gc
import pickle
import threading
import warnings
from collections.abc import Sequence

import numpy as np
import pytest

import flambeau as torch
from flambeau import _C, Tensor
from flambeau._library.checks import OpCheckError
from flambeau._library.operators import Ops, overload_of
from flambeau.func import grad, hessian, jvp, vmap

ops = Ops()


@torch.library.custom_op("tests::sin", mutates_args=())
def numpy_sin(x: Tensor, scale: float = 1.0, *, power: int = 1) -> Tensor:
    """Sine, in NumPy."""
    return torch.from_numpy(np.sin(x.numpy() * scale) ** power)


def _keep(ctx, inputs, keyword_only_inputs, output):
    (x, ctx.scale), ctx.power = inputs, keyword_only_inputs["power"]
    ctx.save_for_backward(x)


def _sin_backward(ctx, g):
    (x,) = ctx.saved_tensors
    inner, n = x * ctx.scale, ctx.power
    outer = n * inner.sin() ** (n - 1) if n > 1 else 1
    return g * ctx.scale * outer * inner.cos(), None


numpy_sin.register_autograd(_sin_backward, setup_context=_keep)


@torch.library.custom_op("tests::scaled", mutates_args=())
def scaled(xs: Sequence[Tensor], by: list[int], last: Tensor | None = None) -> list[Tensor]:
    out = [x * n for x, n in zip(xs, by, strict=True)]
    return out if last is None else [*out, last * 2]


def _scaled_keep(ctx, inputs, output):
    ctx.by, ctx.last, ctx.count = inputs[1], inputs[2] is not None, len(output)
    ctx.needs = ctx.needs_input_grad


def _scaled_backward(ctx, grads):
    assert len(grads) == ctx.count and isinstance(ctx.needs[0], list)
    mine = [g * n for g, n in zip(grads, ctx.by, strict=False)]
    return mine, None, 2 * grads[-1] if ctx.last else None


scaled.register_autograd(_scaled_backward, setup_context=_scaled_keep)


@torch.library.custom_op("tests::double_into", mutates_args={"out"})
def double_into(x: Tensor, out: Tensor) -> None:
    out.numpy()[...] = 2 * x.numpy()


def doubles(*shape, **options):
    return torch.randn(*shape, dtype=torch.float64, **options)


def test_called():
    x = doubles(3)
    np.testing.assert_array_equal(numpy_sin(x), np.sin(x))
    np.testing.assert_array_equal(numpy_sin(x, 2.0, power=2), np.sin(2 * x) ** 2)
    np.testing.assert_array_equal(ops.tests.sin(scale=2, x=x), np.sin(2 * x))
    assert repr(numpy_sin) == "<CustomOpDef(tests::sin)>" and numpy_sin.__doc__ == "Sine, in NumPy."
    overload = ops.tests.sin.default
    assert overload is numpy_sin._opoverload and ops.tests.sin.overloads() == ["default"]
    assert (str(overload), overload.name(), overload.namespace) == (
        "tests.sin.default", "tests::sin", "tests",
    )  # fmt: skip
    text = "tests::sin(Tensor x, float scale=1., *, SymInt power=1) -> Tensor"
    assert str(overload._schema) == text
    assert pickle.loads(pickle.dumps(overload)) is overload
    assert "sin" in dir(ops.tests) and "tests::sin" in _C._ops_added()
    with pytest.raises(AttributeError, match="'tests' object has no attribute 'nope'"):
        ops.tests.nope  # noqa: B018
    with pytest.raises(AttributeError, match="no overload name 'nope'"):
        ops.tests.sin.nope  # noqa: B018


def test_arguments_that_do_not_fit():
    x = torch.ones(2)
    for call, words in (
        (lambda: numpy_sin(), 'missing 1 required positional arguments: "x"'),
        (lambda: numpy_sin(3), "argument 'x' (position 1) must be Tensor, not int"),
        (lambda: numpy_sin(x, "a"), "argument 'scale' (position 2) must be float, not str"),
        (lambda: numpy_sin(x, q=1), "unexpected keyword argument 'q'"),
        (lambda: numpy_sin(x, 1.0, 2), "takes"),
        (lambda: scaled([x, 1], [1]), "expected Tensor as element 1 in argument 0"),
    ):
        with pytest.raises(TypeError) as e:
            call()
        assert words in str(e.value)


def test_results_that_do_not_fit():
    @torch.library.custom_op("tests::wrong", mutates_args=())
    def wrong(x: Tensor, kind: int) -> tuple[Tensor, int]:
        return [(x.clone(), 1.5), x.clone(), (x, 1), (x.clone(), 1, 2), None, (1, 1)][kind]

    x = torch.ones(2)
    for kind, error, words in (
        (0, TypeError, "expected a result of type SymInt, got float (number 1)"),
        (1, TypeError, "expected a tuple of 2 results, got Tensor"),
        (2, RuntimeError, "expected results with memory of their own, got one (result 0)"),
        (3, TypeError, "expected a tuple of 2 results, got tuple"),
        (4, TypeError, "expected a tuple of 2 results, got NoneType"),
        (5, TypeError, "expected a result of type Tensor, got int (number 0)"),
    ):
        with pytest.raises(error) as e:
            wrong(x, kind)
        assert words in str(e.value)
    with pytest.raises(IndexError, match="list index out of range"):
        wrong(x, 99)

    @torch.library.custom_op("tests::not_none", mutates_args=())
    def not_none(x: Tensor) -> None:
        return x

    with pytest.raises(TypeError, match="expected a kernel that returns None, got Tensor"):
        not_none(x)


def test_hostile_arguments_are_refused():
    class Odd:
        def __torch_function__(self, *args, **kwargs):
            return NotImplemented

        def __index__(self):
            raise ZeroDivisionError

    @torch.library.custom_op("tests::hostile", mutates_args=())
    def hostile(t: Tensor, ts: list[Tensor], n: int, ns: list[int], f: float, s: str) -> Tensor:
        return t.clone()

    def anything(*args):
        return args[0]

    with torch.library._scoped_library("tests_any", "FRAGMENT") as lib:
        lib.define("f(Tensor?[] a, Scalar b, Scalar[] c, Device? d) -> Tensor")
        lib.impl("f", anything, "CPU")
        kernel = torch.library.get_kernel("tests_any::f", "CPU")
        values = [None, Odd(), 2**70, -1, 1.5, "x", b"x", [], [None], [[1]], {}, object(), ...]
        values += [torch.ones(2), [torch.ones(1)], torch.ones(1, 1), np.ones(1), torch.float32]
        draw = np.random.default_rng(3)
        good = 0
        for _ in range(3000):
            args = [torch.ones(1), [torch.ones(1)], 1, [1], 1.5, "x"]
            few = [[None], 2, [1], None]
            for k in draw.integers(6, size=2):
                args[k] = values[draw.integers(len(values))]
                few[k % 4] = values[draw.integers(len(values))]
            for call in (
                lambda: hostile(*args),  # noqa: B023
                lambda: ops.tests_any.f(*few),  # noqa: B023
                lambda: kernel.call_boxed(None, *few),  # noqa: B023
            ):
                try:
                    call()
                    good += 1
                except (TypeError, ValueError, OverflowError, RuntimeError, ZeroDivisionError):
                    pass
        assert good > 0


def test_types_of_values_come_back():
    seen = []

    @torch.library.custom_op(
        "tests::types",
        mutates_args=(),
        schema="(Tensor? t, Tensor?[] ts, int[2] n, float[]? f, bool[] b, Scalar s, Scalar[] ss, "
        "str q, ScalarType d, Device v, Layout l, MemoryFormat m, Generator? g) -> (Scalar, bool)",
    )
    def types(*args):
        seen.append(args)
        return args[5], args[4][0]

    x, g = torch.ones(1), torch.Generator()
    given = (
        x, [None, x], 3, [0.5], [True], 2 + 1j, [1, 2.5], "é", torch.int8, torch.device("meta"),
        torch.strided, torch.channels_last, g,
    )  # fmt: skip
    assert types(*given) == (2 + 1j, True)
    (out,) = seen
    assert out[0] is x and out[1][1] is x
    assert out[2:12] == ([3, 3], *given[3:12]) and isinstance(out[12], torch.Generator)
    assert types(None, [], [1, 2], None, [False], 1, [], "", float, "cpu", *given[10:12], None) == (
        1, False,
    )  # fmt: skip
    assert seen[1][0] is None and seen[1][8] is torch.float64


def test_gradients():
    x = doubles(3, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: numpy_sin(x, 2.0, power=3), (x,))
    assert torch.autograd.gradgradcheck(lambda x: numpy_sin(x, 2.0, power=3), (x,))
    name = type(numpy_sin(x).grad_fn).__name__
    assert name == "GeneratedBackwardFor_tests_sin_defaultBackward"
    assert not numpy_sin(x.detach()).requires_grad
    with torch.no_grad():
        assert not numpy_sin(x).requires_grad
    a, b, c = (doubles(2, requires_grad=True) for _ in range(3))
    assert torch.autograd.gradcheck(lambda a, b: scaled([a, b], [2, 3]), (a, b))
    assert torch.autograd.gradcheck(lambda a, b, c: scaled([a, b], [2, 3], c), (a, b, c))
    assert torch.autograd.gradcheck(lambda c: scaled([a.detach()], [2], c), (c,))


def test_gradients_that_are_not_there():
    @torch.library.custom_op("tests::opaque", mutates_args=())
    def opaque(x: Tensor) -> Tensor:
        return x * 2  # which is not looked into

    x = torch.ones(2, requires_grad=True)
    y = opaque(x)
    assert y.requires_grad
    with pytest.raises(
        RuntimeError, match="backward through tests::opaque but no autograd formula"
    ):
        y.sum().backward()

    opaque.register_autograd(lambda ctx, g: (g, g))
    with pytest.raises(RuntimeError, match="incorrect number of gradients|to return 1 gradients"):
        opaque(x).sum().backward()
    opaque.register_autograd(lambda ctx, g: g * 2)
    opaque(x).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_what_is_written_to():
    x, y = doubles(3), torch.zeros(3, dtype=torch.float64)
    version = y._version
    assert double_into(x, y) is None
    assert y.equal(2 * x) and y._version == version + 1
    assert double_into._opoverload._schema.is_mutable
    with pytest.raises(RuntimeError, match="Cannot register autograd formula for non-functional"):
        double_into.register_autograd(lambda ctx, g: g)
    kept = y * 1
    kept.requires_grad_()
    loss = (kept * kept).sum()
    with torch.no_grad():
        double_into(x, kept)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_what_comes_back():
    @torch.library.custom_op("tests::twice_", mutates_args={"x"}, tags=torch.Tag.inplace)
    def twice_(x: Tensor) -> Tensor:
        return x.mul_(2)

    @torch.library.custom_op("tests::two_out", mutates_args={"a", "b"}, tags=[torch.Tag.out])
    def two_out(x: Tensor, *, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return a.copy_(x), b.copy_(2 * x)

    x, a, b = doubles(3), doubles(3), doubles(3)
    before = x.clone()
    assert twice_(x) is x and x.equal(2 * before)
    assert str(twice_._opoverload._schema) == "tests::twice_(Tensor(a0!) x) -> Tensor(a0!)"
    out = two_out(x, a=a, b=b)
    assert out[0] is a and out[1] is b and b.equal(2 * x)
    meta = torch.ones(3, device="meta")
    assert twice_(meta) is meta  # there is nothing to tell

    def f(x):
        y = twice_(x)
        y.add_(1)  # which is a change of x
        a, b = two_out(x, a=torch.empty_like(x), b=torch.empty_like(x))
        return a + b * y

    x, y = doubles(3), doubles(3)
    y.copy_(x)
    assert torch.compile(f, fullgraph=True)(x).allclose(f(y)) and x.equal(y)
    torch.library.opcheck(twice_, (doubles(3),))
    torch.library.opcheck(two_out, (doubles(3),), {"a": doubles(3), "b": doubles(3)})
    twice_.register_kernel("cpu", lambda x: x.clone())
    with pytest.raises(RuntimeError, match="expected the argument that it writes to as result 0"):
        twice_(x)

    def mixed(x: Tensor, y: Tensor) -> Tensor: ...

    for written, tag, words in (
        ({"y"}, torch.Tag.inplace, "exactly the first argument"),
        ({"x"}, torch.Tag.out, "to be given by name alone"),
        ((), torch.Tag.out, "expected the result to be annotated"),
    ):
        with pytest.raises(ValueError, match=words):
            torch.library.infer_schema(mixed, mutates_args=written, tags=tag)


def test_batched():
    x = doubles(4, 3)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        assert vmap(numpy_sin)(x).allclose(torch.sin(x))
        assert vmap(vmap(lambda x: numpy_sin(x, power=2)))(x).allclose(torch.sin(x) ** 2)
        g = vmap(grad(lambda x: numpy_sin(x, 2.0).sum()))(x)
        assert g.allclose(2 * torch.cos(2 * x))
        out = vmap(lambda a, b: scaled([a, b], [2, 3]), in_dims=(0, None))(x, x[0])
        assert out[0].equal(2 * x) and out[1].equal((3 * x[0]).expand(4, 3))
        y = torch.zeros(4, 3, dtype=torch.float64)
        vmap(lambda x, y: (double_into(x, y), y)[1])(x, y)
        assert y.equal(2 * x)
        with pytest.raises(RuntimeError, match="same for all samples"):
            vmap(lambda x: (double_into(x, y[0]), x)[1])(x)
    tangent = jvp(numpy_sin, (x,), (torch.ones_like(x),))[1]
    assert tangent.allclose(torch.cos(x))
    assert hessian(lambda x: numpy_sin(x).sum())(x[0]).allclose(torch.diag(-torch.sin(x[0])))


def test_batching_rules():
    @torch.library.custom_op("tests::mul_and_count", mutates_args=())
    def mul(x: Tensor, y: Tensor, xs: Sequence[Tensor], n: int = 1) -> tuple[Tensor, Tensor]:
        return x * y + sum(xs) * n, torch.tensor(x.dim())

    seen = []

    @mul.register_vmap
    def _(info, in_dims, x, y, xs, n=1):
        seen.append((info.batch_size, info.randomness, in_dims))
        x, y = (
            t if d is not None else t.unsqueeze(0) for t, d in zip((x, y), in_dims[:2], strict=True)
        )
        return (mul(x, y, xs, n)[0].movedim(0, 1), torch.tensor(1)), (1, None)

    x, y = doubles(4, 3), doubles(3)
    out, count = vmap(lambda x: mul(x, y, [x, y], 2), randomness="same")(x)
    assert out.allclose(x * y + 2 * (x + y)) and count.tolist() == [1] * 4
    assert seen == [(4, "same", (0, None, [0, 0], None))]
    torch.library.register_vmap("tests::mul_and_count", lambda *args, **kwargs: 1)
    with pytest.raises(
        RuntimeError, match="expected the vmap rule to return results and their dims"
    ):
        vmap(lambda x: mul(x, y, [x], 1))(x)


def test_autocast():
    schema = "(Tensor a, Tensor b) -> Tensor"
    numpy_free = torch.library.custom_op(
        "tests::mm", lambda a, b: a @ b, mutates_args=(), schema=schema
    )
    a = torch.ones(2, 2)
    with torch.autocast("cpu", torch.bfloat16):
        assert numpy_free(a, a).dtype == torch.bfloat16  # as the operations in it
    numpy_free.register_autocast("cpu", torch.float16)
    with torch.autocast("cpu", torch.bfloat16):
        assert numpy_free(a, a).dtype == torch.float16
        assert numpy_free(a.double(), a.double()).dtype == torch.float64
    assert numpy_free(a, a).dtype == torch.float32
    with pytest.raises(ValueError, match="expected 'cpu' or 'cuda', got 'tpu'"):
        torch.library.register_autocast("tests::mm", "tpu", torch.float16)


def test_devices():
    x = torch.ones(2, 3, device="meta")
    with pytest.raises(NotImplementedError, match="tests::scaled.*'Meta' backend.*register_fake"):
        scaled([x], [1])
    assert double_into(x, x) is None  # there is nothing to tell

    @numpy_sin.register_fake
    def _(x, scale=1.0, *, power=1):
        assert x.device.type == "meta"
        return x.new_empty(x.shape)

    out = numpy_sin(x)
    assert out.device.type == "meta" and out.shape == (2, 3)

    @torch.library.custom_op("tests::elsewhere", mutates_args=(), device_types="cuda")
    def elsewhere(x: Tensor) -> Tensor:
        return x.clone()

    with pytest.raises(NotImplementedError, match="'CPU' backend: it has kernels for CUDA"):
        elsewhere(torch.ones(1))
    elsewhere.register_kernel(["cpu", "xpu"], lambda x: x + 1)
    assert elsewhere(torch.ones(1)).item() == 2
    with elsewhere.set_kernel_enabled("cpu", False):
        assert elsewhere(torch.ones(1)).item() == 1
    assert elsewhere(torch.ones(1)).item() == 2


def test_defined_again():
    def make(n):
        @torch.library.custom_op("tests::again", mutates_args=())
        def again(x: Tensor) -> Tensor:
            return x + n

        return again

    first, second = make(1), make(2)
    x = torch.zeros(1)
    assert second(x).item() == 2 and ops.tests.again(x).item() == 2
    with pytest.raises(
        RuntimeError, match="tests::again: the library that defined the operator is gone"
    ):
        first(x)


def test_texts_dicts_and_tuples_are_arguments_and_results():
    torch.library.define(
        "tests::any",
        "(str[] words, Dict(str, Tensor) d, (int, str)? pair=None, *, float[][] m) -> "
        "(Dict(str, Tensor), str[], Any)"
    )  # fmt: skip

    @torch.library.impl("tests::any", "cpu")
    def _(words, d, pair, *, m):
        assert type(m) is list and all(type(x) is float for row in m for x in row)
        return {k: x * 2 for k, x in d.items()}, sorted(words), pair

    x = torch.ones(2)
    d, words, pair = ops.tests.any(["b", "a"], {"x": x}, (3, "c"), m=[[1.0], [2.0, 3.0]])
    assert d["x"].tolist() == [2, 2] and words == ["a", "b"] and pair == (3, "c")
    assert ops.tests.any([], {}, m=[]) == ({}, [], None)

    @torch.jit.script
    def scripted(words: list[str], d: dict[str, torch.Tensor]):
        out, words, _ = torch.ops.tests.any(words, d, (1, "x"), m=[[0.5]])
        return out["x"], words[0]

    assert scripted(["b", "a"], {"x": x})[1] == "a"
    for args, message in (
        (([1], {}), r"any\(\): argument 'words' \(position 1\) must be str\[\], not list: \[1\]"),
        (([], {"x": 3}), r"argument 'd' \(position 2\) must be Dict\(str, Tensor\), not dict"),
        (([], {}, (1, 2)), r"argument 'pair' \(position 3\) must be \(int, str\)\?, not tuple"),
    ):
        with pytest.raises(TypeError, match=message):
            ops.tests.any(*args, m=[])
    ops.tests.any([], {"x": x.requires_grad_()}, m=[])[0]["x"].sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_names_that_are_refused():
    f = lambda x: x  # noqa: E731
    for name in ("plain", "a::b::c", "::b", "a::"):
        with pytest.raises(ValueError, match="expected a name like 'space::name'"):
            torch.library.custom_op(name, f, mutates_args=(), schema="(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="without an overload"):
        torch.library.custom_op("a::b.c", f, mutates_args=(), schema="(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="mutates_args names .'x'.*are written to"):
        torch.library.custom_op("a::b", f, mutates_args={"x"}, schema="(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="expected arguments of types Tensor.*got Dict"):
        torch.library.define("tests::dict", "(Dict(str, t) x) -> Tensor")
    many = ", ".join(f"int a{i}" for i in range(33))
    with pytest.raises(RuntimeError, match="at most 32 parameters, got 33"):
        torch.library.define("tests::many", f"({many}) -> Tensor")
    assert not hasattr(ops.tests, "dict") and not hasattr(ops.tests, "many")


def test_subclasses_are_asked():
    class Logged(torch.Tensor):
        calls = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.calls.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(2).as_subclass(Logged)
    assert type(scaled([x], [2])[0]) is Logged
    assert Logged.calls[0] is scaled._opoverload


def test_threads_add_and_call():
    errors = []

    def work(k):
        try:
            for i in range(30):
                name = f"tests::thread_{k}_{i}"
                torch.library.define(name, "(Tensor x) -> Tensor")
                torch.library.impl(name, "cpu", lambda x, i=i: x + i)
                assert overload_of(name)(torch.zeros(1)).item() == i
                assert len(_C._ops_added()) > i
        except Exception as e:  # noqa: BLE001
            errors.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def test_nothing_is_kept_of_what_went():
    class Big:
        pass

    big = Big()
    lib = torch.library.Library("tests_gone", "FRAGMENT")
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x, big=big: x, "CPU")
    alive = __import__("weakref").ref(big)
    del big, lib
    gc.collect()
    assert alive() is None


def test_checks():
    x = doubles(3, requires_grad=True)
    names = ("test_schema", "test_autograd_registration", "test_faketensor")
    numpy_sin.register_fake(lambda x, scale=1.0, *, power=1: torch.empty_like(x))
    done = torch.library.opcheck(numpy_sin, (x, 2.0), {"power": 2}, test_utils=names)
    assert done == dict.fromkeys(names, "SUCCESS")

    with torch.library._scoped_library("tests_check", "FRAGMENT") as lib:
        lib.define("writes(Tensor x) -> Tensor")
        lib.impl("writes", lambda x: x.add_(1) * 1, "CPU")
        lib.define("returns(Tensor x) -> Tensor")
        lib.impl("returns", lambda x: x[:1], "CPU")
        lib.define("faked(Tensor x) -> Tensor")
        lib.impl("faked", lambda x: x * 1, "CPU")
        lib.impl("faked", lambda x: x.new_empty(7), "Meta")
        space = ops.tests_check
        y = torch.ones(2)
        for op, args, test, words in (
            (space.writes, (y,), "test_schema", "argument 'x' is written to"),
            (space.returns, (y,), "test_schema", "shares memory with argument 'x'"),
            (space.returns, (x,), "test_autograd_registration", "has no derivative"),
            (space.returns, (y,), "test_faketensor", "register_fake"),
            (
                space.faked,
                (y,),
                "test_faketensor",
                "result 0 has shape torch.Size([2]), but the fake",
            ),
        ):
            with pytest.raises(OpCheckError) as e:
                torch.library.opcheck(op, args, test_utils=test)
            assert words in str(e.value)
        out = torch.library.opcheck(
            space.faked, (y,), test_utils="test_faketensor", raise_exception=False
        )
        assert "the fake says" in str(out["test_faketensor"])
    with pytest.raises(ValueError, match="expected names of test_schema"):
        torch.library.opcheck(numpy_sin, (x,), test_utils="nope")
