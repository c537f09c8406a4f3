"""Linear algebra: factors multiplied out, NumPy and SciPy, finite differences; by LAPACK and by the
plain routines that stand in for it.
"""

import numpy as np
import pytest
import scipy.linalg

import flambeau as torch

L = torch.linalg
DTYPES = ["float32", "float64", "complex64", "complex128"]
LIMITS = {"float32": 5e-4, "complex64": 5e-4, "float64": 1e-10, "complex128": 1e-10}


@pytest.fixture(params=[False, True], ids=["lapack", "plain"])
def maker(request):
    use = torch._C._linalg._linalg_use_builtin
    before = use(request.param)
    yield request.param
    use(before)


def values(shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def tensor(x):
    return torch.from_numpy(np.ascontiguousarray(x))


def leaf(x):
    return tensor(x).requires_grad_()


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def positive(n, dtype, batch=(2,)):
    x = values((*batch, n, n), dtype)
    return (x @ adjoint(x) + n * np.eye(n)).astype(dtype)


def close(got, want, dtype="float64"):
    got = got.numpy() if isinstance(got, torch.Tensor) else got
    assert got.shape == np.shape(want)
    if got.size:
        assert np.abs(got - want).max() <= LIMITS[str(dtype)] * max(1.0, np.abs(want).max())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 5, 17])
def test_square_factors(n, dtype, maker):
    a, s, b = values((2, n, n), dtype), positive(n, dtype), values((2, n, 3), dtype)
    a = a + 2 * np.eye(n, dtype=dtype)
    t = tensor(a)
    for upper in (False, True):
        f = L.cholesky(tensor(s), upper=upper).numpy()
        close(adjoint(f) @ f if upper else f @ adjoint(f), s, dtype)
        close(torch.cholesky_solve(tensor(b), tensor(f), upper), np.linalg.solve(s, b), dtype)
        close(torch.cholesky_inverse(tensor(f), upper), np.linalg.inv(s), dtype)
    x = L.solve(t, tensor(b)).numpy()
    close(a @ x, b, dtype)
    close(L.solve(t, tensor(adjoint(b)), left=False).numpy() @ a, adjoint(b), dtype)
    close(L.inv(t).numpy() @ a, np.broadcast_to(np.eye(n), a.shape), dtype)
    p, lower, upper_factor = (y.numpy() for y in L.lu(t))
    close(p @ lower @ upper_factor, a, dtype)
    wide = a.astype("complex128")
    det = np.linalg.det(wide)
    close(L.det(t).numpy() / np.abs(det), det / np.abs(det), dtype)
    sign, log = L.slogdet(t)
    want_sign, want_log = np.linalg.slogdet(wide)
    close(sign, want_sign, dtype), close(log, want_log, dtype)
    w, v = (y.numpy() for y in L.eigh(tensor(s)))
    close(v @ (w[..., None] * adjoint(v)), s, dtype)
    w, v = (y.numpy() for y in L.eig(t))
    close(a @ v, v * w[:, None], dtype)
    close(L.matrix_exp(t), np.stack([scipy.linalg.expm(m) for m in wide]) if n else a, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (3, 5), (5, 3), (20, 4), (4, 20)])
def test_rectangular_factors(shape, dtype, maker):
    m, n = shape
    a = values((2, m, n), dtype)
    t, k = tensor(a), min(shape)
    for mode in ("reduced", "complete", "r"):
        q, r = L.qr(t, mode)
        if mode != "r":
            close(q.numpy() @ r.numpy(), a, dtype)
            eye = np.broadcast_to(np.eye(q.shape[-1]), (2, q.shape[-1], q.shape[-1]))
            close(adjoint(q.numpy()) @ q.numpy(), eye, dtype)
    for full in (False, True):
        u, s, vh = (y.numpy() for y in L.svd(t, full))
        close((u[..., :k] * s[:, None]) @ vh[:, :k], a, dtype)
        close(s, np.linalg.svd(a, compute_uv=False), dtype)
        assert u.shape == (2, m, m if full else k) and vh.shape == (2, n if full else k, n)
    if m:
        close(L.pinv(t), np.linalg.pinv(a), dtype)
        b = values((2, m, 3), dtype)
        for driver in ("gels", "gelsy", "gelsd", "gelss"):
            close(L.lstsq(t, tensor(b), driver=driver).solution, np.linalg.pinv(a) @ b, dtype)
        p, lower, upper = (y.numpy() for y in L.lu(t))
        close(p @ lower @ upper, a, dtype)
        reflectors, tau = torch.geqrf(t)
        if m >= n:
            q = L.householder_product(reflectors, tau)
            close(q.numpy() @ np.triu(reflectors.numpy())[:, :n], a, dtype)
        # The reflectors' whole Q times R.
        r = tensor(np.triu(reflectors.numpy()))
        if m >= n:
            close(torch.ormqr(reflectors, tau, r), a, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("zero_diagonal", [False, True])
def test_symmetric_indefinite_factors(dtype, hermitian, zero_diagonal):
    a = values((3, 7, 7), dtype)
    a = a + (adjoint(a) if hermitian else np.swapaxes(a, -1, -2))
    if zero_diagonal:
        a = a * (1 - np.eye(7, dtype=dtype))
    b = values((3, 7, 2), dtype)
    factors, pivots = L.ldl_factor(tensor(a), hermitian=hermitian)
    x = L.ldl_solve(factors, pivots, tensor(b), hermitian=hermitian).numpy()
    close(a @ x, b, dtype)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_systems(upper, left, unit, maker):
    a = values((3, 4, 4)) + 5 * np.eye(4)
    b = values((4, 2) if left else (2, 4))
    x = L.solve_triangular(tensor(a), tensor(b), upper=upper, left=left, unitriangular=unit).numpy()
    m = np.triu(a) if upper else np.tril(a)
    if unit:
        m = m - m * np.eye(4) + np.eye(4)
    close(m @ x if left else x @ m, np.broadcast_to(b, x.shape))


@pytest.mark.parametrize("order", [0, 0.5, 1, 2, 2.5, 3, -1, np.inf, -np.inf])
@pytest.mark.parametrize("dim", [None, 0, 1, (0, 2), (2, 1)])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_vector_norm(order, dim, dtype):
    x = values((5, 40, 30), dtype)
    axes = tuple(range(3)) if dim is None else (dim,) if isinstance(dim, int) else dim
    size = np.abs(x).astype("float64")
    if order == 0:
        want = (size != 0).sum(axes)
    elif np.isinf(order):
        want = size.max(axes) if order > 0 else size.min(axes)
    else:
        want = (size**order).sum(axes) ** (1 / order)
    got = L.vector_norm(tensor(x), order, dim)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5 if dtype == "float32" else 1e-12)
    flipped = tensor(x.T).permute(2, 1, 0)
    np.testing.assert_allclose(L.vector_norm(flipped, order, dim).numpy(), got.numpy(), rtol=1e-5)


@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_matrix_norms_and_condition_numbers(order):
    x = values((3, 4, 4))
    want = [np.linalg.norm(m, order) for m in x]
    close(L.matrix_norm(tensor(x), order), np.array(want))
    close(L.matrix_norm(tensor(x.transpose(1, 0, 2)), order, (2, 0)).numpy(),
          np.array([np.linalg.norm(m.T, order) for m in x]))  # fmt: skip
    close(L.cond(tensor(x), order), np.linalg.cond(x, order))
    assert L.norm(tensor(x[0]), order).item() == pytest.approx(want[0])


def test_nan_reaches_the_norm():
    x = torch.ones(100)
    x[57] = float("nan")
    for order in (1, 2, 3, float("inf"), -float("inf")):
        assert np.isnan(L.vector_norm(x, order).item())


def test_ranks_and_tolerances():
    a = np.diag([3.0, 1e-3, 0.0])
    assert L.matrix_rank(tensor(a)).item() == 2
    assert L.matrix_rank(tensor(a), 0.01).item() == 1
    assert L.matrix_rank(tensor(a), rtol=0.5, hermitian=True).item() == 1
    assert L.matrix_rank(tensor(a), atol=torch.tensor([1e-4, 1.0])).tolist() == [2, 1]
    close(L.pinv(tensor(a), rtol=0.1), np.diag([1 / 3, 0, 0]))


def test_products():
    a, b = values((4, 3)), values((4, 3), seed=1)
    close(L.cross(tensor(a), tensor(b)), np.cross(a, b))
    close(torch.cross(tensor(a.T), tensor(b.T), 0), np.cross(a, b).T)
    close(L.vecdot(tensor(a + 1j * b), tensor(b + 0j)), (np.conj(a + 1j * b) * b).sum(-1))
    close(L.vander(tensor(a[0]), N=5), np.vander(a[0], 5, increasing=True))
    close(torch.vander(tensor(a[0])), np.vander(a[0]))
    x = values((4, 6, 8, 3))
    close(L.tensorinv(tensor(x)), np.linalg.tensorinv(x))
    x, y = values((2, 3, 6)), values((2, 3))
    close(L.tensorsolve(tensor(x), tensor(y)), np.linalg.tensorsolve(x, y))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_of_square_functions(dtype):
    a = values((2, 3, 3), dtype) + 3 * np.eye(3)
    b = values((2, 3, 2), dtype)
    check, twice = torch.autograd.gradcheck, torch.autograd.gradgradcheck
    for f in (
        L.inv, L.det, lambda x: L.slogdet(x)[1], L.matrix_exp, lambda x: L.lu_factor(x)[0],
        lambda x: L.cholesky(x @ x.mH), L.svdvals, L.pinv, lambda x: L.eigvalsh(x + x.mH),
        lambda x: L.qr(x)[1].abs(), lambda x: L.eigvals(x).abs(), lambda x: L.svd(x)[0].abs(),
        lambda x: L.eigh(x + x.mH)[1].abs(), lambda x: L.eig(x)[1].abs(),
        lambda x: L.matrix_norm(x, "nuc"), lambda x: L.matrix_norm(x, 1),
    ):  # fmt: skip
        assert check(f, (leaf(a),))
        assert twice(f, (leaf(a),), atol=1e-4)
    for f in (
        L.solve, lambda x, y: L.solve(x, y.mT, left=False),
        lambda x, y: L.solve_triangular(x, y, upper=True),
        lambda x, y: torch.cholesky_solve(y, x.tril()), lambda x, y: L.lstsq(x, y).solution,
        lambda x, y: L.lu_solve(*L.lu_factor(x), y, adjoint=True),
    ):  # fmt: skip
        assert check(f, (leaf(a), leaf(b)))
        assert twice(f, (leaf(a), leaf(b)), atol=1e-4)


@pytest.mark.parametrize("shape", [(2, 4), (4, 2)])
def test_gradients_of_rectangular_functions(shape):
    a = leaf(values(shape))
    for f in (
        lambda x: L.qr(x), lambda x: L.lu(x)[1:], L.pinv,
        lambda x: [y.abs() for y in L.svd(x, full_matrices=False)],
    ):  # fmt: skip
        assert torch.autograd.gradcheck(lambda x, f=f: f(x), (a,))


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_gradients_of_reflectors(left, transpose):
    a, tau = values((4, 3), "complex128"), values((3,), "complex128")
    c = values((4, 2) if left else (2, 4), "complex128")
    args = leaf(a), leaf(tau), leaf(c)
    assert torch.autograd.gradcheck(lambda a, t, c: torch.ormqr(a, t, c, left, transpose), args)
    assert torch.autograd.gradcheck(L.householder_product, args[:2])


@pytest.mark.parametrize("order", [0.5, 1, 1.5, 2, 3, float("inf"), -float("inf")])
def test_gradients_of_norms(order):
    x = leaf(values((3, 4), "complex128"))
    assert torch.autograd.gradcheck(lambda x: L.vector_norm(x, order, 1), (x,))


def test_gradient_of_det_of_singular_matrices():
    # Of rank n - 1 the cofactors are not zero; of rank n - 2 they are.
    a = np.array([[1.0, 2, 3], [2, 4, 6], [1, 0, 1]])
    for m in (a, np.outer(a[0], a[1]), np.zeros((3, 3))):
        assert torch.autograd.gradcheck(L.det, (leaf(m),))


def test_norm_at_zero_has_a_zero_gradient():
    x = torch.zeros(3, requires_grad=True)
    L.vector_norm(x).backward()
    assert x.grad.tolist() == [0, 0, 0]


def test_errors():
    with pytest.raises(L.LinAlgError, match="linalg.cholesky: .*minor of order 1 is not"):
        L.cholesky(-torch.eye(2))
    with pytest.raises(L.LinAlgError, match=r"linalg.inv: \(Batch element 1\): The diagonal"):
        L.inv(tensor(np.stack([np.eye(2), np.diag([1.0, 0.0])])))
    with pytest.raises(L.LinAlgError, match="torch.linalg.solve: The solver failed because"):
        L.solve(torch.zeros(2, 2), torch.ones(2))
    with pytest.raises(L.LinAlgError, match="linalg.svd: .*contained non-finite values"):
        L.svd(torch.full((2, 2), float("nan")))
    with pytest.raises(RuntimeError, match="linalg.inv: A must be batches of square matrices, but"):
        L.inv(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="linalg.det: The input tensor A must have at least"):
        L.det(torch.ones(2))
    with pytest.raises(RuntimeError, match="Expected a floating point or complex tensor as inp"):
        L.svd(torch.ones(2, 2, dtype=torch.int32))
    assert issubclass(L.LinAlgError, RuntimeError)
    assert L.inv_ex(torch.zeros(2, 2)).info.item() == 1
    assert L.lu_factor_ex(torch.zeros(2, 2)).info.item() == 1


def test_layout_of_results():
    assert L.inv(torch.eye(3)).stride() == (1, 3)
    assert L.eigh(torch.eye(3)).eigenvalues.tolist() == [1, 1, 1]


def test_lu_of_a_singular_matrix_is_no_error():
    x = torch.ones(2, 2)
    lower, upper = torch.lu_unpack(*torch.lu(x))[1:]
    assert (lower @ upper).tolist() == x.tolist()
    with pytest.raises(RuntimeError, match=r"U\[2,2\] is zero"):
        L.lu_factor(x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_factors_of_many_blocks(dtype):
    """Large enough to be factored by blocks and solved in shares."""
    n, limit = 333, LIMITS[dtype]
    a = values((n, n), dtype)
    h = (a @ adjoint(a) / n + np.eye(n)).astype(dtype)
    b = values((n, 40), dtype, seed=1)
    factor = np.asarray(L.cholesky(tensor(h)))
    np.testing.assert_allclose(factor @ adjoint(factor), h, atol=limit)
    factor = np.asarray(L.cholesky(tensor(h), upper=True))
    np.testing.assert_allclose(adjoint(factor) @ factor, h, atol=limit)
    for columns in (n, 300):
        p, lower, upper = (np.asarray(x) for x in L.lu(tensor(a[:, :columns])))
        np.testing.assert_allclose(p @ lower @ upper, a[:, :columns], atol=limit)
    for uplo in "LU":
        w, v = (np.asarray(x) for x in L.eigh(tensor(h), UPLO=uplo))
        np.testing.assert_allclose((v * w) @ adjoint(v), h, atol=limit)
        np.testing.assert_allclose(w, np.linalg.eigvalsh(h), atol=limit)
    np.testing.assert_allclose(h @ np.asarray(L.solve(tensor(h), tensor(b))), b, atol=limit)
    factors = L.lu_factor(tensor(h))
    x = np.asarray(L.lu_solve(*factors, tensor(b), adjoint=True))
    np.testing.assert_allclose(adjoint(h) @ x, b, atol=limit)
    order = np.random.default_rng(2).permutation(n)  # so that rows have to be exchanged
    inverse = np.asarray(L.inv(tensor(h[order])))
    np.testing.assert_allclose(inverse @ h[order], np.eye(n), atol=limit)
    with pytest.raises(L.LinAlgError, match="element 2 is zero"):
        L.inv(torch.ones(n, n))
    with pytest.raises(L.LinAlgError, match="minor of order 300 is not positive"):
        L.cholesky(torch.eye(n).index_fill(0, torch.tensor([299]), -1.0))


@pytest.mark.parametrize("name", ["svd", "pinv", "gelsd", "gelss"])
def test_singular_values_of_what_is_not_finite_are_refused(name, maker):
    # LAPACK looks for those of the first matrix for ever.
    first = [[0.0, 1e30, 1.0, 1e30], [-1.0, np.nan, -1.0, -np.inf], [-1.0, 0.0, np.nan, 0.0]]
    batch = torch.tensor([[[1.0] * 4] * 3, first], dtype=torch.float64)
    calls = {
        "svd": lambda: L.svd(batch),
        "pinv": lambda: L.pinv(batch, rtol=0.5),
        "gelsd": lambda: L.lstsq(batch, torch.ones(2, 3, 1).double(), driver="gelsd"),
        "gelss": lambda: L.lstsq(batch, torch.ones(2, 3, 1).double(), driver="gelss"),
    }
    with pytest.raises(L.LinAlgError, match="element 1.*non-finite"):
        calls[name]()
