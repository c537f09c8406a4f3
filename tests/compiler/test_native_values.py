"""Values, layouts and memory of what native code gives, where they have been wrong once."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._compiler.emit_cpp import _canonical
from flambeau.ops.scalar import PRIMITIVES

pytestmark = pytest.mark.usefixtures("cache")


def test_digits_of_constants_are_no_names():
    line = "x = b12[i0] + float(-0x1.b2dd2fp-2) + double(0x1.b2p-2);"
    assert _canonical([line])[0] == [line.replace("b12", "b0")]


def test_constants_keep_their_value():
    x = torch.rand(3, 4) * 4 - 2
    f = lambda x: torch.nn.functional.hardtanh(x, -0.431, 0.631)  # noqa: E731
    assert torch.equal(torch.compile(f)(x), f(x))


def test_division_of_whole_numbers_by_a_tensor():
    a, b = torch.tensor([7, -7, 5]), torch.tensor([2, 2, -3])
    f = torch.compile(lambda a, b: (a // b, a % b, torch.fmod(a, b)))
    got, want = f(a, b), (a // b, a % b, torch.fmod(a, b))
    assert all(torch.equal(x, y) for x, y in zip(got, want, strict=True))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        f(a, torch.tensor([1, 0, 1]))


def test_functions_of_the_extension():
    x = torch.rand(5) + 0.5
    f = lambda x: (x.lgamma() * 2, x.digamma(), torch.special.i0(x) + 1)  # noqa: E731
    for a, b in zip(torch.compile(f)(x), f(x), strict=True):
        assert torch.equal(a, b)
    assert PRIMITIVES["lgamma"].library and not PRIMITIVES["exp"].library


def test_numbers_made_of_sizes():
    f = lambda x: x * (x.shape[0] ** 0.5) - 0.25 * x.shape[1]  # noqa: E731
    g = torch.compile(f, dynamic=True)
    for shape in ((3, 4), (5, 7)):
        x = torch.rand(shape)
        assert torch.allclose(g(x), f(x), atol=1e-6)


def test_views_with_another_dtype():
    f = lambda x: torch.view_as_real(torch.complex(x, x.cos())) * 2  # noqa: E731
    x = torch.rand(3, 4)
    assert torch.allclose(torch.compile(f)(x), f(x), atol=1e-6)


def test_results_with_equal_values_have_memory_of_their_own():
    x = torch.rand(3)
    a, b, c = torch.compile(lambda x: (x.exp(), x.exp(), x.exp()[1:]))(x)
    a.zero_()
    assert torch.equal(b, x.exp()) and torch.equal(c, x.exp()[1:])


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_view_of_what_was_computed_keeps_its_strides(dynamic):
    def f(x):
        part = x.double().split(1, 1)[0]
        return part, part.sum(0) + 1

    x = torch.rand(7, 3)
    for a, b in zip(torch.compile(f, dynamic=dynamic)(x), f(x), strict=True):
        assert a.stride() == b.stride() and torch.equal(a, b)


def test_detached_views_of_arguments_and_results_carry_no_gradient():
    x = torch.rand(3, requires_grad=True)

    def f(x):
        y = x * 2
        return x.detach(), y, y.detach()[1:], x[1:]

    got, want = torch.compile(f)(x), f(x)
    assert [t.requires_grad for t in got] == [t.requires_grad for t in want]
    assert got[0].data_ptr() == x.data_ptr() and got[2].data_ptr() == got[1][1:].data_ptr()


def test_results_written_out_keep_the_layout_of_the_entry():
    x = torch.rand(2, 5).t().requires_grad_()
    got, want = torch.compile(lambda x: x.atan().softmax(0))(x), x.atan().softmax(0)
    assert got.stride() == want.stride() and torch.allclose(got, want)
    w = torch.rand(5, 2)
    (g,), (h,) = (torch.autograd.grad((y * w).sum(), x) for y in (got, want))
    assert torch.allclose(g, h)


def test_a_write_through_a_view_that_has_elements_twice():
    x = torch.rand(4, requires_grad=True)

    def f(x):
        y = x * 2
        y.unfold(0, 2, 1)[..., 0].fill_(0.5)
        return y

    (g,), (h,) = (torch.autograd.grad(way(x).sum(), x) for way in (torch.compile(f), f))
    assert torch.equal(g, h) and torch.equal(torch.compile(f)(x), f(x))


def test_random_numbers_follow_the_layout_of_a_computed_view():
    def f(t):
        turned = (t * 2).expand(2, *t.shape).rot90()
        some = turned[:, :, ::2]
        return (
            torch.nn.functional.dropout(turned, 0.3),
            torch.nn.functional.dropout(some, 0.3),
            some + 1,
        )

    x = torch.rand(6, 5, dtype=torch.float64)
    torch.manual_seed(1)
    want = f(x)
    compiled = torch.compile(f, fullgraph=True)
    torch.manual_seed(1)
    for a, b in zip(compiled(x), want, strict=True):
        assert a.stride() == b.stride() and torch.equal(a, b)


def test_rows_of_one_element():
    # The loop over the row must not take the name of the one over the rows.
    x = torch.rand(2, 1, dtype=torch.float64)
    f = lambda x: (x.sum(1, keepdim=True) * 0.1, x.mean(1) + 1)  # noqa: E731
    for got, want in zip(torch.compile(f)(x), f(x), strict=True):
        assert torch.equal(got, want)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: ((x * 2)[..., ::2].narrow(2, 1, 1), (x * 2)[..., ::2].exp()),
        lambda x: (x * 2).unsqueeze(0).expand(3, *x.shape).narrow(3, 0, 2),
        lambda x: (x * 0.5).mT.unfold(2, 2, 1),
        lambda x: (x.mT + 1).unbind(1)[-1],
    ],
)
@pytest.mark.parametrize("dynamic", [False, True])
def test_results_that_are_views_have_eagers_strides(f, dynamic):
    x = torch.rand(5, 6, 4)
    got, want = torch.compile(f, dynamic=dynamic)(x), f(x)
    pairs = [(got, want)] if isinstance(want, torch.Tensor) else zip(got, want, strict=True)
    for a, b in pairs:
        assert a.stride() == b.stride()
        assert torch.equal(a, b)


def test_an_expression_that_is_known_to_be_one_is_broadcast():
    def f(x):
        half = x[: x.shape[0] // 2]
        return torch.copysign(half, half.sum(1) - 3)

    compiled = torch.compile(f, dynamic=True)
    for shape in ((2, 5, 6), (3, 8, 7)):
        x = torch.rand(shape, dtype=torch.float64)
        assert torch.equal(compiled(x), f(x))


def test_backward_knows_what_forward_knows_of_sizes():
    def f(a, b):
        return torch.minimum(a, b.sum(0)[: b.shape[1] // 2])

    a = torch.rand(5, 7, dtype=torch.float64)
    b = torch.rand(4, 2, dtype=torch.float64, requires_grad=True)
    weights = torch.rand(5, 7, dtype=torch.float64)
    compiled = torch.compile(f, dynamic=True)
    got, want = (torch.autograd.grad((g(a, b) * weights).sum(), b)[0] for g in (compiled, f))
    assert torch.allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize(
    "f",
    [
        torch.view_as_real,
        lambda z: z.view(torch.float64),
        lambda z: z[1:].imag,
        lambda z: torch.view_as_real(z)[1:, 0].view(torch.int64),
    ],
)
def test_results_in_an_inputs_memory_of_another_dtype(f, backend):
    z = torch.randn(6, dtype=torch.complex128)[2:]
    got, want = torch.compile(f, backend=backend)(z), f(z)
    assert got.dtype is want.dtype
    assert (got.stride(), got.data_ptr()) == (want.stride(), want.data_ptr())
    assert torch.equal(got, want)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_derivatives_compute_with_numbers_in_the_type_of_their_entry(backend, dtype):
    """`1 - 0.3` of lerp's rule, rounded to the default type, would be off in float64."""
    x = torch.linspace(-2, 2, 12, dtype=dtype).requires_grad_()
    end = torch.ones(12, dtype=dtype)
    for f in (
        lambda x: torch.lerp(x, end, 0.3),
        lambda x: torch.lerp(end, x, 0.1).pow(3) / 0.7,
        lambda x: torch.pow(1.3, x) - torch.addcmul(end, x, x, value=0.3),
        lambda x: torch.where(x > 0, x * 0.1, 0.3),
        lambda x: torch.hypot(x, torch.tensor(0.3, dtype=dtype)) + x.clamp(-0.3, 1.1),
    ):
        (want,) = torch.autograd.grad(f(x).sum(), x)
        (got,) = torch.autograd.grad(torch.compile(f, backend=backend)(x).sum(), x)
        assert (got - want).abs().max() <= 4 * torch.finfo(dtype).eps * want.abs().max()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_view_of_nothing_may_begin_behind_its_memory(backend, dynamic):
    def f(x):
        return x.sum(0).repeat(2)[::2].tensor_split(2, 0)[1]

    x = torch.randn(5)
    got, want = torch.compile(f, backend=backend, dynamic=dynamic)(x), f(x)
    assert (got.shape, got.stride(), got.tolist()) == (want.shape, want.stride(), [])
