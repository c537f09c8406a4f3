"""gradcheck accepts right derivatives and refuses wrong ones, in every mode."""

import pytest

import flambeau as fb
from flambeau.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck

MODES = pytest.mark.parametrize(
    "options",
    [
        {},
        {"fast_mode": True},
        {"check_forward_ad": True},
        {"fast_mode": True, "check_forward_ad": True, "check_backward_ad": False},
    ],
    ids=str,
)


def real(*shape, seed=0):
    g = fb.Generator().manual_seed(seed)
    return fb.rand(shape, generator=g, dtype=fb.float64).requires_grad_()


def cplx(*shape, seed=0):
    pairs = real(*shape, 2, seed=seed).detach()
    return fb.view_as_complex(pairs).clone().requires_grad_()


RIGHT = {
    "product": (lambda x, y: (x * y).sin(), lambda: (real(2, 3), real(3, seed=1))),
    "two outputs": (lambda x: (x.exp(), x.sum()), lambda: real(3)),
    "unused": (lambda x, y: x * 2, lambda: (real(2), real(2, seed=1))),
    "with an integer": (lambda x, i: x[i] ** 2, lambda: (real(4), fb.tensor([0, 2]))),
    "complex to complex": (lambda z: z * z.exp(), lambda: cplx(2)),
    "complex to real": (lambda z: (z * z.conj()).real, lambda: cplx(2)),
    "real to complex": (lambda x: fb.complex(x.sin(), x.cos()), lambda: real(3)),
    "constant output": (lambda x: (x * 2, fb.ones(2, dtype=fb.float64)), lambda: real(2)),
    "0-d": (lambda x: x * x, lambda: real()),
    "empty": (lambda x: x * x, lambda: real(0, 3)),
}


@MODES
@pytest.mark.parametrize("name", RIGHT)
def test_right_derivatives_pass(name, options):
    func, inputs = RIGHT[name]
    given = inputs()
    before = [x.tolist() for x in (given if isinstance(given, tuple) else (given,))]
    assert gradcheck(func, given, **options)
    assert [x.tolist() for x in (given if isinstance(given, tuple) else (given,))] == before


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", ["product", "two outputs", "complex to complex", "0-d"])
def test_second_derivatives_pass(name, fast):
    func, inputs = RIGHT[name]
    assert gradgradcheck(func, inputs(), fast_mode=fast, check_fwd_over_rev=True)


class Wrong(fb.autograd.Function):
    """A square whose derivative is off by a factor."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad * ctx.factor, None


@pytest.mark.parametrize("fast", [False, True])
def test_wrong_derivatives_are_refused(fast):
    x = real(3)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to inpu"):
        gradcheck(lambda x: Wrong.apply(x, 1.01), x, fast_mode=fast)
    assert not gradcheck(lambda x: Wrong.apply(x, 1.01), x, fast_mode=fast, raise_exception=False)
    assert gradcheck(lambda x: Wrong.apply(x, 1.0), x, fast_mode=fast)


def test_wrong_complex_derivative_is_refused():
    class NoConj(fb.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx, grad):
            (z,) = ctx.saved_tensors
            return 2 * z * grad

    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(NoConj.apply, cplx(2))


def test_wrong_second_derivative_is_refused():
    class Detached(fb.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x.detach() ** 2 * grad

    assert gradcheck(Detached.apply, real(2))
    with pytest.raises(GradcheckError, match="mismatch"):
        gradgradcheck(Detached.apply, real(2))


def test_random_backward_is_refused():
    class Noisy(fb.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad + fb.rand_like(grad) * 1e-9

    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(Noisy.apply, real(2))
    assert gradcheck(Noisy.apply, real(2), nondet_tol=1e-6, check_undefined_grad=False)


def test_gradients_of_undefined_vectors():
    class Shifted(fb.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad + 1e-7

    with pytest.raises(GradcheckError, match="None or zero"):
        gradcheck(Shifted.apply, real(2))
    assert gradcheck(Shifted.apply, real(2), check_undefined_grad=False)


def test_functions_that_close_over_an_input():
    x = real(2)
    assert gradcheck(lambda _: x.sin(), x)


def test_gaps_in_the_vectors_of_backward():
    assert gradgradcheck(lambda x: x**3, real(2, 2), gen_non_contig_grad_outputs=True)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(fb.sin, real(2).detach())
    with pytest.raises(RuntimeError, match="dimension with stride 0"):
        gradcheck(fb.sin, real(1).detach().expand(3).requires_grad_())
    with pytest.raises(AssertionError, match="at least one of"):
        gradcheck(fb.sin, real(2), check_backward_ad=False)
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double"):
        gradcheck(lambda x: x * 2, real(2).float().detach().requires_grad_(), eps=1e-2, atol=1e-2)


def test_the_numerical_side_sees_what_the_analytical_one_sees():
    seen = set()

    def f(x):
        y = x * x
        seen.add((fb.is_grad_enabled(), x.requires_grad, y.requires_grad))
        return y

    x = fb.tensor([1.0, 2.0], dtype=fb.float64, requires_grad=True)
    assert fb.autograd.gradcheck(f, x)
    assert seen == {(True, True, True)}

    def differentiates(x):
        (g,) = fb.autograd.grad((x**3).sum(), x, create_graph=True)
        return g

    assert fb.autograd.gradcheck(differentiates, x)
    assert fb.autograd.gradcheck(differentiates, x, fast_mode=True)
