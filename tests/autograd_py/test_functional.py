"""Jacobians and Hessians against formulas."""

import numpy as np
import pytest

import flambeau as fb
from flambeau.autograd import functional


def real(*shape, seed=0):
    return fb.rand(shape, generator=fb.Generator().manual_seed(seed), dtype=fb.float64)


def same(tensor, want):
    np.testing.assert_allclose(np.array(tensor.tolist()), want, rtol=1e-12, atol=1e-12)


A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def affine(x):
    return fb.tensor(A.tolist(), dtype=fb.float64) @ x.sin()


@pytest.mark.parametrize(
    "options", [{}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}], ids=str
)
def test_jacobian(options):
    x = real(3)
    got = functional.jacobian(affine, x, **options)
    same(got, A * np.cos(np.array(x.tolist())))
    assert not got.requires_grad and not x.requires_grad


def test_jacobian_of_several_inputs_and_outputs():
    x, y = real(2), real(3, seed=1)
    rows = functional.jacobian(lambda x, y: (fb.outer(x, y), x.sum()), (x, y))
    assert [[tuple(b.shape) for b in row] for row in rows] == [
        [(2, 3, 2), (2, 3, 3)],
        [(2,), (3,)],
    ]
    xs, ys = np.array(x.tolist()), np.array(y.tolist())
    same(rows[0][0], np.einsum("j,ik->ijk", ys, np.eye(2)))
    same(rows[0][1], np.einsum("i,jk->ijk", xs, np.eye(3)))
    same(rows[1][1], np.zeros(3))


def test_jacobian_is_differentiable_on_request():
    x = real(3).requires_grad_()
    functional.jacobian(lambda x: x**3, x, create_graph=True).sum().backward()
    same(x.grad, 6 * np.array(x.tolist()))


@pytest.mark.parametrize("outer", ["reverse-mode", "forward-mode"])
def test_hessian(outer):
    x = real(3)
    got = functional.hessian(
        lambda x: (x**3).sum() + x[0] * x[1],
        x,
        vectorize=outer == "forward-mode",
        outer_jacobian_strategy=outer,
    )
    want = np.diag(6 * np.array(x.tolist()))
    want[0, 1] = want[1, 0] = 1
    same(got, want)


def test_hessian_of_two_inputs():
    x, y = real(2), real(2, seed=1)
    (xx, xy), (yx, yy) = functional.hessian(lambda x, y: (x**2 * y).sum(), (x, y))
    xs, ys = np.array(x.tolist()), np.array(y.tolist())
    same(xx, np.diag(2 * ys))
    same(xy, np.diag(2 * xs))
    same(yx, np.diag(2 * xs))
    same(yy, np.zeros((2, 2)))


def test_products():
    x, v, w = real(3), real(3, seed=1), real(2, seed=2)
    jac = A * np.cos(np.array(x.tolist()))
    out, product = functional.vjp(affine, x, w)
    same(out, A @ np.sin(np.array(x.tolist())))
    same(product, np.array(w.tolist()) @ jac)
    same(functional.jvp(affine, x, v)[1], jac @ np.array(v.tolist()))
    hess = np.diag(6 * np.array(x.tolist()))
    for product in (functional.hvp, functional.vhp):
        same(product(lambda x: (x**3).sum(), x, v)[1], hess @ np.array(v.tolist()))


def test_vector_may_be_left_out_for_a_single_element():
    x = real(1)
    same(functional.vjp(lambda x: x.sum(), real(3))[1], np.ones(3))
    same(functional.jvp(lambda x: x * 2, x)[1], [2.0])
    with pytest.raises(RuntimeError, match="vector v can only be None if"):
        functional.vjp(affine, real(3))
    with pytest.raises(RuntimeError, match="v has invalid size: should be"):
        functional.jvp(affine, real(3), real(4))


def test_strict_mode():
    x, y = real(2), real(2, seed=1)
    same(functional.vjp(lambda x, y: x.sum(), (x, y))[1][1], np.zeros(2))
    with pytest.raises(RuntimeError, match="independent of input 1"):
        functional.vjp(lambda x, y: x.sum(), (x, y), strict=True)
    with pytest.raises(RuntimeError, match="Output 0 of the user-provided function does not"):
        functional.jacobian(lambda x: fb.ones(2), x, strict=True)


def test_wrong_arguments():
    x = real(2)
    with pytest.raises(TypeError, match="must be either a Tensor or a tuple of Tensors"):
        functional.jacobian(fb.sin, 3)
    with pytest.raises(TypeError, match="value at index 1 has type"):
        functional.jacobian(fb.sin, (x, 3))
    with pytest.raises(RuntimeError, match="should contain a single element"):
        functional.hessian(fb.sin, x)
    with pytest.raises(AssertionError, match="Expected strategy to be either"):
        functional.jacobian(fb.sin, x, strategy="sideways")
    with pytest.raises(NotImplementedError, match="vectorize=True"):
        functional.jacobian(fb.sin, x, strategy="forward-mode")
