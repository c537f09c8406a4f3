"""Derivatives as transforms: closed forms, nesting in any order, refusals."""

import math

import pytest

import flambeau as fb
from flambeau.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)


def t(*values):
    return fb.tensor(values if len(values) > 1 else values[0], dtype=fb.float64)


def close(a, b):
    return a.shape == b.shape and fb.allclose(a, b, atol=1e-10)


X = t(0.3, -1.2, 2.0)


def test_grad_of_powers():
    cube = lambda x: x**3  # noqa: E731
    x = t(2.0)
    assert [f(x).item() for f in (grad(cube), grad(grad(cube)), grad(grad(grad(cube))))] == [
        12,
        12,
        6,
    ]
    assert not grad(cube)(x).requires_grad and x.grad is None


def test_argnums_trees_and_aux():
    f = lambda x, d: (x * d["w"]).sum() + d["b"]  # noqa: E731
    d = {"w": X * 2, "b": t(1.0)}
    gx, gd = grad(f, (0, 1))(X, d)
    assert close(gx, d["w"]) and close(gd["w"], X) and gd["b"].item() == 1
    assert close(grad(f, -1)(X, d)["w"], X)
    g, (value, aux) = grad_and_value(lambda x: (x.sum(), {"twice": x * 2}), has_aux=True)(X)
    assert close(g, fb.ones_like(X)) and close(value, X.sum()) and close(aux["twice"], 2 * X)
    assert not aux["twice"].requires_grad
    g, aux = grad(lambda x: (x.sum(), 7), has_aux=True)(X)
    assert aux == 7


def test_no_confusion_of_levels():
    # d/dx (x * d/dy (x + y)) = 1, where a confusion would give 2.
    f = lambda x: x * grad(lambda y: x + y)(t(1.0))  # noqa: E731
    assert grad(f)(t(1.0)).item() == 1
    g = lambda x: x * jvp(lambda y: x + y, (t(1.0),), (t(1.0),))[1]  # noqa: E731
    assert jvp(g, (t(1.0),), (t(1.0),))[1].item() == 1
    assert grad(g)(t(1.0)).item() == 1
    assert grad(lambda x: grad(lambda y: x * x * y)(x))(t(3.0)).item() == 6


def test_unused_inputs_have_zero_gradients():
    assert close(grad(lambda x: t(1.0))(X), fb.zeros_like(X))
    assert close(grad(lambda x, y: x.sum(), 1)(X, X), fb.zeros_like(X))


def test_parameters_outside_are_reached():
    w = t(2.0).requires_grad_()
    slope = grad(lambda x: w * x * x)(t(3.0))
    assert fb.autograd.grad(slope, w)[0].item() == 6
    each = vmap(grad(lambda x: w * x * x))(X)
    assert close(fb.autograd.grad(each.sum(), w)[0], 2 * X.sum())
    x = t(3.0).requires_grad_()
    assert fb.autograd.grad(grad(lambda y: y**3)(x), x)[0].item() == 18
    with fb.no_grad():
        assert not grad(lambda x: w * x)(t(3.0)).requires_grad
        assert grad(lambda x: x * x)(t(3.0)).item() == 6


def test_vjp_and_jvp():
    out, pull = vjp(lambda x, y: {"a": x * y, "b": x.sum()}, X, X + 1)
    gx, gy = pull({"a": fb.ones_like(X), "b": t(2.0)})
    assert close(gx, X + 3) and close(gy, X) and not out["a"].requires_grad
    gx, _ = pull({"a": fb.zeros_like(X), "b": t(1.0)})
    assert close(gx, fb.ones_like(X))
    value, slope = jvp(fb.sin, (X,), (fb.ones_like(X),))
    assert close(value, X.sin()) and close(slope, X.cos())
    value, slope, aux = jvp(lambda x: (x * 2, x), (X,), (X,), has_aux=True)
    assert close(slope, 2 * X) and close(aux, X)
    _, slope = jvp(lambda x: fb.ones(2), (X,), (X,))
    assert slope.tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="independent of the inputs"):
        jvp(lambda x: fb.ones(2), (X,), (X,), strict=True)


def test_second_derivatives_by_jvp():
    sin2 = lambda x: jvp(fb.sin, (x,), (fb.ones_like(x),))[1]  # noqa: E731
    value, slope = jvp(sin2, (X,), (fb.ones_like(X),))
    assert close(value, X.cos()) and close(slope, -X.sin())
    sin3 = lambda x: jvp(sin2, (x,), (fb.ones_like(x),))[1]  # noqa: E731
    assert close(jvp(sin3, (X,), (fb.ones_like(X),))[1], -X.cos())


A = t([1.0, 2.0, 0.5], [0.0, -1.0, 3.0])


def quadratic(x):
    return (A @ x) * x[:2]


def jacobian_of_quadratic(x):
    pick = fb.eye(3, dtype=fb.float64)[:2]
    return A * x[:2, None] + (A @ x)[:, None] * pick


@pytest.mark.parametrize("jac", [jacrev, jacfwd])
@pytest.mark.parametrize("chunk", [None, 1, 2])
def test_jacobians(jac, chunk):
    assert close(jac(quadratic, chunk_size=chunk)(X), jacobian_of_quadratic(X))


@pytest.mark.parametrize("jac", [jacrev, jacfwd])
def test_jacobians_of_trees(jac):
    f = lambda x, y: {"p": x[:, None] * y, "s": x.sum()}  # noqa: E731
    y = t(1.0, 2.0)
    out = jac(f, (0, 1))(X, y)
    assert out["p"][0].shape == (3, 2, 3) and out["p"][1].shape == (3, 2, 2)
    eye3, eye2 = fb.eye(3, dtype=fb.float64), fb.eye(2, dtype=fb.float64)
    assert close(out["p"][0], eye3[:, None, :] * y[None, :, None])
    assert close(out["p"][1], X[:, None, None] * eye2[None])
    assert close(out["s"][0], fb.ones_like(X)) and close(out["s"][1], fb.zeros_like(y))
    value, aux = jac(lambda x: (x * x, x.sum()), has_aux=True)(X)
    assert close(value, fb.diag(2 * X)) and close(aux, X.sum())


@pytest.mark.parametrize("outer", [jacrev, jacfwd])
@pytest.mark.parametrize("inner", [jacrev, jacfwd])
def test_jacobians_of_jacobians(outer, inner):
    f = lambda x: (x**3).sum() + x[0] * x[1]  # noqa: E731
    want = fb.diag(6 * X)
    want[0, 1] = want[1, 0] = 1
    assert close(outer(inner(f))(X), want)
    assert close(vmap(outer(inner(f)))(fb.stack([X, X])), fb.stack([want, want]))


def test_hessian():
    f = lambda x: (x.sin() * x.cumsum(0)).sum()  # noqa: E731
    want = fb.autograd.functional.hessian(f, X)
    assert close(hessian(f)(X), want)
    out = hessian(lambda x, y: (x * y).sum(), (0, 1))(X, X)
    assert close(out[0][1], fb.eye(3, dtype=fb.float64)) and close(out[0][0], out[1][1])


def test_linearize():
    value, push = linearize(quadratic, X)
    assert close(value, quadratic(X))
    for v in (X, X * 2 + 1):
        assert close(push(v), jacobian_of_quadratic(X) @ v)


def test_vmap_of_derivatives_and_derivatives_of_vmap():
    f = lambda x: (x.sin() ** 2).sum()  # noqa: E731
    xs = fb.stack([X, X + 1, X * 2])
    slope = lambda x: (2 * x).sin()  # noqa: E731
    assert close(vmap(grad(f))(xs), slope(xs))
    assert close(grad(lambda a: vmap(f)(a).sum())(xs), slope(xs))
    assert close(vmap(vmap(grad(lambda x: x.sin())))(xs), xs.cos())
    assert close(grad(lambda a: vmap(grad(f))(a).sum())(xs), 2 * (2 * xs).cos())
    assert close(vmap(grad(lambda x: grad(f)(x).sum()))(xs), 2 * (2 * xs).cos())
    assert close(vmap(lambda x: jvp(f, (x,), (fb.ones_like(x),))[1])(xs), slope(xs).sum(1))
    assert close(jvp(vmap(f), (xs,), (fb.ones_like(xs),))[1], slope(xs).sum(1))
    assert close(vmap(lambda x: vjp(f, x)[1](t(1.0))[0])(xs), slope(xs))


def test_an_input_that_is_the_same_for_all_samples():
    w = t(1.0, 2.0, 3.0)
    f = lambda w, x: (w * x).sum() ** 2  # noqa: E731
    xs = fb.stack([X, X + 1])
    want = fb.stack([2 * (w * x).sum() * x for x in xs])
    assert close(vmap(grad(f), (None, 0))(w, xs), want)
    assert close(vmap(lambda x: grad(f)(w, x))(xs), want)


def test_functional_call_and_stacks():
    net = fb.nn.Linear(2, 1)
    new = {"weight": fb.ones(1, 2), "bias": fb.zeros(1)}
    before = net.weight
    assert functional_call(net, new, fb.ones(1, 2)).item() == 2 and net.weight is before
    assert (
        functional_call(
            net, ({"weight": new["weight"]}, {"bias": new["bias"]}), fb.ones(1, 2)
        ).item()
        == 2
    )
    with pytest.raises(ValueError, match="multiple dictionaries"):
        functional_call(net, (new, new), fb.ones(1, 2))
    with pytest.raises(RuntimeError, match="at least one model"):
        stack_module_state([])
    with pytest.raises(RuntimeError, match="same class"):
        stack_module_state([net, fb.nn.ReLU()])
    with pytest.raises(RuntimeError, match="training/eval mode"):
        stack_module_state([net, fb.nn.Linear(2, 1).eval()])


def test_refusals():
    with pytest.raises(RuntimeError, match="scalar tensor, got tensor with 1 dims"):
        grad(fb.sin)(X)
    with pytest.raises(RuntimeError, match="to return tensor, got type"):
        grad(lambda x: 3)(X)
    with pytest.raises(RuntimeError, match="only 1 positional inputs"):
        grad(fb.sum, 1)(X)
    with pytest.raises(RuntimeError, match="argnums must be non-empty"):
        grad(fb.sum, ())(X)
    with pytest.raises(RuntimeError, match="must be unique"):
        grad(fb.sum, (0, 0))(X)
    with pytest.raises(RuntimeError, match="to be tensors"):
        grad(fb.sum)(3.0)
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype"):
        grad(fb.sum)(fb.tensor([1]))
    with pytest.raises(RuntimeError, match="primals to be a tuple"):
        jvp(fb.sin, X, X)
    with pytest.raises(RuntimeError, match="same python structure"):
        jvp(fb.sin, (X,), (X, X))
    with pytest.raises(RuntimeError, match="same structure"):
        vjp(fb.sin, X)[1]((X, X))
    with pytest.raises(RuntimeError, match="should be a tuple"):
        grad(fb.sum, has_aux=True)(X)


def test_slopes_of_arguments_without_tangents_have_no_say():
    """They may be infinite or no number, which a product with a tangent of zero would be too."""
    x, zeros, ones = t(-0.3, 0.2), t(0.0, 0.0), t(1.0, 1.0)
    for n in (0, 1, 4, 5, -3, fb.tensor(4.0), t(5.0, 4.0)):

        def power(x, n=n):
            return x**n

        slope = jvp(power, (x,), (ones,))[1]
        assert close(slope, n * x ** (n - 1)) and close(slope, grad(lambda x: power(x).sum())(x))  # noqa: B023
    assert jvp(lambda x: x / 0.0, (ones,), (ones,))[1].tolist() == [math.inf] * 2
    assert jvp(lambda x: fb.xlogy(x, zeros), (ones,), (ones,))[1].tolist() == [-math.inf] * 2
    assert jvp(lambda y: fb.hypot(zeros, y), (ones,), (ones,))[1].tolist() == [1, 1]


@pytest.mark.parametrize("name", "add sub mul div pow atan2 maximum fmin xlogy logaddexp".split())
def test_tangents_have_the_shape_and_the_type_of_their_results(name):
    f, wide = getattr(fb, name), fb.rand(2, 3, dtype=fb.float64) + 1
    narrow = fb.rand(3) + 1
    for g in (lambda x: f(x, wide), lambda x: f(wide, x)):
        y, slope = jvp(g, (narrow,), (fb.ones(3),))
        e = 1e-6
        expected = (g(narrow.double() + e) - g(narrow.double() - e)) / (2 * e)
        assert slope.dtype == y.dtype and slope.shape == y.shape
        assert fb.allclose(slope, expected, 1e-4, 1e-6)
