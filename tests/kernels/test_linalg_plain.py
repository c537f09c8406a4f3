"""The plain factorisations that stand in for LAPACK: backward error, orthogonality and values
against NumPy, for matrices that are hard on such routines, and for sizes around the blocks.
"""

import numpy as np
import pytest

import flambeau as torch

L = torch.linalg
DTYPES = ["float32", "float64", "complex64", "complex128"]
SIZES = [1, 2, 3, 7, 16, 31, 33, 64, 65, 97, 130]
SHAPES = [(100, 33), (33, 100), (65, 64), (5, 1)]


@pytest.fixture(autouse=True)
def plain():
    use = torch._C._linalg._linalg_use_builtin
    before = use(True)
    yield
    use(before)


def rng():
    return np.random.default_rng(0)


def normal(shape, dtype):
    r = rng()
    x = r.standard_normal(shape)
    return (x + 1j * r.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def adjoint(x):
    return x.conj().T


def unitary(n, dtype):
    wide = "complex128" if np.dtype(dtype).kind == "c" else "float64"
    return np.linalg.qr(normal((n, n), wide))[0]


def real(dtype):
    return np.dtype(dtype).type(0).real.dtype


def limit(n, dtype):
    return 20 * (n + 4) * np.finfo(dtype).eps


SPECTRA = {
    "spread": lambda n: np.logspace(0, -6, n),
    "ill-conditioned": lambda n: np.logspace(0, -30, n),
    "rank-deficient": lambda n: np.where(np.arange(n) < n // 2, 1.0 + np.arange(n), 0.0),
    "clustered": lambda n: 1 + 1e-9 * np.arange(n),
    "equal": lambda n: np.ones(n),
    "both signs": lambda n: np.linspace(-1, 1, n),
    "zero": lambda n: np.zeros(n),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("n", [2, 33, 97])
def test_eigenvalues_of_hard_spectra(n, spectrum, dtype):
    values, q = SPECTRA[spectrum](n), unitary(n, dtype)
    a = ((q * values) @ adjoint(q)).astype(dtype)
    a = (a + adjoint(a)) / 2
    w, v = (x.numpy() for x in L.eigh(torch.from_numpy(a)))
    size, allowed = max(np.abs(values).max(), 1e-30), limit(n, dtype)
    assert np.abs(w - np.linalg.eigvalsh(a.astype(v.dtype))).max() <= allowed * size
    assert np.abs(adjoint(v) @ v - np.eye(n)).max() <= allowed
    assert np.abs((v * w) @ adjoint(v) - a).max() <= allowed * size
    assert np.abs(L.eigvalsh(torch.from_numpy(a)).numpy() - w).max() <= allowed * size


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("shape", [(2, 2), (33, 33), (97, 65), (40, 97), (97, 96)])
def test_singular_values_of_hard_spectra(shape, spectrum, dtype):
    m, n = shape
    k = min(m, n)
    values = np.abs(SPECTRA[spectrum](k))
    a = ((unitary(m, dtype)[:, :k] * values) @ unitary(n, dtype)[:k]).astype(dtype)
    size, allowed = max(values.max(), 1e-30), limit(max(m, n), dtype)
    for full in (False, True):
        u, s, vh = (x.numpy() for x in L.svd(torch.from_numpy(a), full_matrices=full))
        assert (s >= 0).all() and (np.diff(s) <= 0).all()
        assert np.abs(s - np.linalg.svd(a, compute_uv=False)).max() <= allowed * size
        assert np.abs(adjoint(u) @ u - np.eye(u.shape[1])).max() <= allowed
        assert np.abs(vh @ adjoint(vh) - np.eye(len(vh))).max() <= allowed
        assert np.abs((u[:, :k] * s) @ vh[:k] - a).max() <= allowed * size
    assert np.abs(L.svdvals(torch.from_numpy(a)).numpy() - s).max() <= allowed * size


def test_small_singular_values_of_a_bidiagonal_matrix_keep_their_digits():
    n = 40
    a = np.diag(np.logspace(0, -200, n)) + np.diag(np.logspace(-1, -200, n)[:-1], 1) * 0.3
    got = L.svdvals(torch.from_numpy(a)).numpy()
    product = np.sum(np.log(got))  # of all singular values: the determinant, the diagonal's product
    np.testing.assert_allclose(product, np.sum(np.log(np.diag(a))), rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("power", [-0.9, -0.5, 0.5, 0.9])
def test_tiny_and_huge_matrices(power, dtype):
    # Squares of such numbers overflow or vanish.
    n, info = 37, np.finfo(dtype)
    scale = real(dtype).type(10.0 ** (power * np.log10(float(info.max))))
    a = normal((n, n), dtype)
    h = (a + adjoint(a)) / 2
    w, v = (x.numpy() for x in L.eigh(torch.from_numpy(h * scale)))
    want, allowed = np.linalg.eigvalsh(h), limit(n, dtype)
    assert np.abs(w / scale - want).max() <= allowed * np.abs(want).max()
    assert np.abs(adjoint(v) @ v - np.eye(n)).max() <= allowed
    s, want = L.svdvals(torch.from_numpy(a * scale)).numpy(), np.linalg.svd(a, compute_uv=False)
    assert np.abs(s / scale - want).max() <= allowed * want[0]
    q, r = (x.numpy() for x in L.qr(torch.from_numpy(a * scale)))
    assert np.abs(q @ (r / scale) - a).max() <= allowed * want[0]
    x = L.solve(torch.from_numpy(a * scale), torch.from_numpy(a * scale)).numpy()
    assert np.abs(x - np.eye(n)).max() <= allowed * np.linalg.cond(a)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_solve_invert_and_cholesky(n, dtype):
    a, b = normal((n, n), dtype), normal((n, 5), dtype)
    allowed = limit(n, dtype) * np.linalg.cond(a)
    x = L.solve(torch.from_numpy(a), torch.from_numpy(b)).numpy()
    assert np.abs(x - np.linalg.solve(a, b)).max() <= allowed * np.abs(x).max()
    inverse = L.inv(torch.from_numpy(a)).numpy()
    assert np.abs(inverse @ a - np.eye(n)).max() <= allowed
    p, lower, upper = L.lu(torch.from_numpy(a))
    assert np.abs((p @ lower @ upper).numpy() - a).max() <= limit(n, dtype) * np.abs(a).max()
    assert np.abs(lower.numpy()).max() <= np.sqrt(2) + 1e-5  # of every pivot: the largest
    positive = a @ adjoint(a) + n * np.eye(n, dtype=dtype)
    for flag in (False, True):
        f = L.cholesky(torch.from_numpy(positive), upper=flag).numpy()
        assert (np.tril(f, -1) == 0).all() if flag else (np.triu(f, 1) == 0).all()
        product = adjoint(f) @ f if flag else f @ adjoint(f)
        assert np.abs(product - positive).max() <= limit(n, dtype) * np.abs(positive).max()


@pytest.mark.parametrize("n", [1, 5, 33, 130])
def test_where_a_factorisation_stops(n):
    for bad in {0, n // 2, n - 1}:
        a = np.eye(n)
        a[bad, bad] = -1
        assert L.cholesky_ex(torch.from_numpy(a)).info.item() == bad + 1
        a[bad, bad] = 0
        assert L.lu_factor_ex(torch.from_numpy(a)).info.item() == bad + 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(n, n) for n in SIZES] + SHAPES)
def test_qr_and_its_reflectors(shape, dtype):
    m, n = shape
    a = normal(shape, dtype)
    allowed = limit(max(m, n), dtype)
    for mode in ("reduced", "complete"):
        q, r = (x.numpy() for x in L.qr(torch.from_numpy(a), mode=mode))
        assert np.abs(q @ r - a).max() <= allowed * np.abs(a).max()
        assert np.abs(adjoint(q) @ q - np.eye(q.shape[1])).max() <= allowed
        assert (np.tril(r, -1) == 0).all()
    raw, tau = torch.geqrf(torch.from_numpy(a))
    whole = q
    for left in (True, False):
        for transpose in (True, False):
            c = normal((m, 3) if left else (3, m), dtype)
            got = torch.ormqr(raw, tau, torch.from_numpy(c), left=left, transpose=transpose)
            op = adjoint(whole) if transpose else whole
            want = op @ c if left else c @ op
            assert np.abs(got.numpy() - want).max() <= allowed * 10


@pytest.mark.parametrize("dtype", DTYPES)
def test_qr_of_dependent_columns(dtype):
    a = normal((50, 4), dtype) @ normal((4, 40), dtype)
    a[:, 7] = 0
    q, r = (x.numpy() for x in L.qr(torch.from_numpy(a)))
    assert np.abs(q @ r - a).max() <= limit(50, dtype) * np.abs(a).max()
    assert np.abs(adjoint(q) @ q - np.eye(40)).max() <= limit(50, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("shape", [(70, 33), (33, 70), (40, 40), (1, 3)])
def test_least_squares(shape, driver, dtype):
    a, b = normal(shape, dtype), normal((shape[0], 3), dtype)
    got = L.lstsq(torch.from_numpy(a), torch.from_numpy(b), driver=driver)
    want = np.linalg.lstsq(a, b, rcond=None)[0]
    allowed = limit(70, dtype) * np.linalg.cond(a) * max(1, np.abs(want).max())
    assert np.abs(got.solution.numpy() - want).max() <= allowed
    if driver != "gels":
        assert got.rank.item() == min(shape)


@pytest.mark.parametrize("driver", ["gelsy", "gelsd", "gelss"])
def test_least_squares_of_dependent_columns(driver):
    a, b = normal((50, 4), "float64") @ normal((4, 40), "float64"), normal((50, 2), "float64")
    got = L.lstsq(torch.from_numpy(a), torch.from_numpy(b), rcond=1e-10, driver=driver)
    want, _, rank, _ = np.linalg.lstsq(a, b, rcond=1e-10)
    assert got.rank.item() == rank == 4
    np.testing.assert_allclose(got.solution.numpy(), want, atol=1e-10)


def test_a_column_of_zeros_has_no_full_rank():
    a = torch.eye(4, 3, dtype=torch.float64)
    a[:, 1] = 0
    with pytest.raises(L.LinAlgError, match="does not have full rank"):
        L.lstsq(a, torch.ones(4, 1, dtype=torch.float64), driver="gels")


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_not_finite_is_refused(bad):
    a = torch.eye(5)
    a[2, 2] = bad
    for run in (L.eigh, L.svd):
        with pytest.raises(L.LinAlgError):
            run(a)


def test_empty_matrices():
    none = torch.zeros(0, 0, dtype=torch.float64)
    assert L.eigh(none).eigenvectors.shape == (0, 0)
    assert L.svd(torch.zeros(0, 3), full_matrices=False).Vh.shape == (0, 3)
    assert L.qr(torch.zeros(3, 0)).Q.shape == (3, 0)
    assert L.inv(none).shape == L.cholesky(none).shape == (0, 0)
