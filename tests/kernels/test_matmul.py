"""Matrix products against NumPy: every dtype, layout, way of the kernel, and gradients."""

import numpy as np
import pytest

import flambeau as torch

TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "complex64": 2e-5, "complex128": 1e-12}
SHAPES = [(1, 1, 1), (4, 4, 4), (5, 1, 3), (1, 5, 3), (3, 4, 0), (37, 61, 33), (70, 65, 130)]


def numbers(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype.startswith(("int", "uint")):
        return rng.integers(0, 100, shape).astype(dtype)
    x = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def close(got, want, tolerance):
    got = got.numpy()
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_allclose(
        got, want, rtol=tolerance, atol=tolerance * max(1.0, abs(want).max(initial=0))
    )


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "strided"])
def test_mm_of_inexact(dtype, shape, layout):
    m, n, k = shape
    a, b = numbers((m, k), dtype), numbers((k, n), dtype, 1)
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    if layout == "tn":
        x = torch.from_numpy(np.ascontiguousarray(a.T)).t()
    if layout == "nt":
        y = torch.from_numpy(np.ascontiguousarray(b.T)).t()
    if layout == "strided":
        wide = np.zeros((2 * m, 3 * k), dtype)
        wide[::2, ::3] = a
        x = torch.from_numpy(wide)[::2, ::3]
    close(torch.mm(x, y), a @ b, TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_mm_of_integers_wraps(dtype):
    a, b = numbers((13, 70), dtype), numbers((70, 33), dtype, 1)
    want = (a.astype("int64") @ b.astype("int64")).astype(dtype)
    assert (torch.mm(torch.from_numpy(a), torch.from_numpy(b)).numpy() == want).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(5, 7, 3), (64, 40, 129), (33, 50, 2300)])
def test_mm_of_half_formats_rounds_once(dtype, shape):
    m, n, k = shape
    a = torch.from_numpy(numbers((m, k), "float32")).to(dtype)
    b = torch.from_numpy(numbers((k, n), "float32", 1)).to(dtype)
    want = a.double().numpy() @ b.double().numpy()
    step = 2.0**-8 if dtype == torch.bfloat16 else 2.0**-11
    error = abs(torch.mm(a, b).double().numpy() - want)
    assert (error <= step * abs(want) + 1e-4 * k**0.5).all()


@pytest.mark.parametrize("beta,alpha", [(1, 1), (0, 1), (0.5, -2.0)])
@pytest.mark.parametrize("bias", [(5,), (3, 5), (3, 1), (1,)])
def test_addmm(beta, alpha, bias):
    c, a, b = numbers(bias, "float64"), numbers((3, 4), "float64", 1), numbers((4, 5), "float64", 2)
    if beta == 0:
        c[...] = np.nan  # is not read
    got = torch.addmm(*map(torch.from_numpy, (c, a, b)), beta=beta, alpha=alpha)
    want = alpha * (a @ b) + (beta * c if beta else 0)
    close(got, want, 1e-13)


@pytest.mark.parametrize(
    "left,right",
    [
        ((4,), (4,)),
        ((3, 4), (4,)),
        ((4,), (2, 4, 3)),
        ((2, 3, 4), (4, 5)),
        ((2, 1, 3, 4), (5, 4, 2)),
    ],
)
def test_matmul_broadcasts(left, right):
    a, b = numbers(left, "float64"), numbers(right, "float64", 1)
    got = torch.matmul(torch.from_numpy(a), torch.from_numpy(b))
    close(got, np.asarray(a @ b), 1e-13)


def test_gradients_of_products():
    def leaf(*shape):
        return torch.from_numpy(numbers(shape, "complex128")).requires_grad_()

    assert torch.autograd.gradcheck(torch.mm, (leaf(2, 3), leaf(3, 4)))
    assert torch.autograd.gradcheck(torch.nn.functional.linear, (leaf(2, 3), leaf(4, 3), leaf(4)))
    assert torch.autograd.gradgradcheck(torch.bmm, (leaf(2, 2, 3), leaf(2, 3, 2)))
    assert torch.autograd.gradcheck(torch.addmm, (leaf(4), leaf(2, 3), leaf(3, 4)))


@pytest.mark.parametrize(
    "dtype,shape", [("float64", (200, 3100, 300)), ("float32", (30, 8300, 1024))]
)
def test_threads_that_share_out_columns_keep_apart(dtype, shape):
    """Blocks of columns are unequal here: the threads' shares of one overlap those of the next."""
    m, n, k = shape
    a, b = numbers((m, k), dtype), numbers((k, n), dtype, 1)
    want = a @ b
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        for _ in range(20):  # which thread is ahead differs from call to call
            close(torch.mm(torch.from_numpy(a), torch.from_numpy(b)), want, TOLERANCE[dtype])
    finally:
        torch.set_num_threads(before)


def test_out_may_be_strided():
    a, b = numbers((6, 4), "float32"), numbers((4, 5), "float32", 1)
    out = torch.zeros(12, 10)[::2, ::2]
    torch.mm(torch.from_numpy(a), torch.from_numpy(b), out=out)
    close(out, a @ b, 1e-5)


def test_refusals():
    with pytest.raises(RuntimeError, match=r"cannot be multiplied \(2x3 and 4x5\)"):
        torch.mm(torch.ones(2, 3), torch.ones(4, 5))
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.mm(torch.ones(2, 3), torch.ones(3, 5).double())
    with pytest.raises(RuntimeError, match="1D tensors expected"):
        torch.dot(torch.ones(2, 3), torch.ones(3))


@pytest.mark.parametrize(
    "equation", ["ij,jk->ik", "bij,bjk", "ii->i", "ij->", "i,j", "...ij,...jk->...ik"]
)
def test_einsum(equation):
    shapes = {
        "ij,jk->ik": [(2, 3), (3, 4)], "bij,bjk": [(2, 3, 4), (2, 4, 5)], "ii->i": [(3, 3)],
        "ij->": [(2, 3)], "i,j": [(2,), (3,)], "...ij,...jk->...ik": [(2, 1, 3, 4), (5, 4, 2)],
    }  # fmt: skip
    xs = [numbers(s, "float64", i) for i, s in enumerate(shapes[equation])]
    got = torch.einsum(equation, *map(torch.from_numpy, xs))
    close(got, np.asarray(np.einsum(equation, *xs)), 1e-13)


@pytest.mark.parametrize("k", [1, 15, 16, 31, 64, 100, 257])
def test_products_of_bfloat16_in_any_layout(k):
    """Tiles that are full and others, with what is added: sums in float, rounded once."""
    rng = np.random.default_rng(k)

    def matrix(m, n, form):
        shape = [(m, n), (n, m), (m + 3, n + 5), (2 * m, 3 * n)][form]
        x = torch.from_numpy(rng.standard_normal(shape)).bfloat16()
        return [x, x.t(), x[1 : m + 1, 2 : n + 2], x[::2, ::3]][form]

    eps = torch.finfo(torch.bfloat16).eps
    for m, n, left, right in [
        (16, 16, 0, 0), (17, 33, 1, 2), (70, 31, 2, 1), (33, 200, 3, 0), (100, 64, 0, 3),
        (300, 40, 1, 1), (40, 300, 2, 3), (64, 96, 3, 2), (130, 130, 0, 1),
    ]:  # fmt: skip
        a, b, bias = matrix(m, k, left), matrix(k, n, right), matrix(1, n, 0)[0]
        exact, sizes = a.double() @ b.double(), a.double().abs() @ b.double().abs()
        for got, want in [
            (a @ b, exact),
            (torch.addmm(bias, a, b, alpha=0.5, beta=2), exact * 0.5 + 2 * bias.double()),
            (torch.ones(m, n).bfloat16().addmm_(a, b, beta=3), exact + 3),
        ]:
            bound = eps / 2 * want.abs() + k * 2.0**-23 * (sizes + 8)
            assert ((got.double() - want).abs() <= bound * 1.01).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        (64, 64, 2000), (64, 2, 2000), (64, 1, 2000), (17, 5, 300), (16, 8, 257), (12, 40, 1000),
        (100, 33, 700), (3, 3, 5000), (1, 7, 900), (2000, 2, 64), (2000, 3, 128), (65, 6, 1000),
        (64, 4, 400), (130, 2, 65),
    ],
)  # fmt: skip
def test_long_sums_and_few_columns(m, n, k, threads, dtype):
    """As gradients of small layers over large batches are; operands are parts of larger arrays."""
    rng = np.random.default_rng(m * n + k)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for rows_dense in (False, True):
            a = rng.standard_normal((m, k + 3) if rows_dense else (k, m + 3))
            b = rng.standard_normal((k, n + 5))
            bias, c = rng.standard_normal(n), rng.standard_normal((m, n))
            left, right, shift, old = (torch.tensor(x, dtype=dtype) for x in (a, b, bias, c))
            left = left[:, :k] if rows_dense else left[:, 1 : m + 1].t()
            a = left.double().numpy()
            right = right[:, 2 : n + 2]
            b = right.double().numpy()
            want = a @ b
            size = np.abs(a) @ np.abs(b) + np.abs(bias) + np.abs(c)
            tolerance = 2e-15 if dtype == torch.float64 else 1e-6
            for got, wanted in (
                (left @ right, want),
                (torch.addmm(shift, left, right, beta=0.5, alpha=2), 2 * want + 0.5 * bias),
                (torch.addmm(old, left, right, beta=-1), want - c),
            ):
                assert (np.abs(got.double().numpy() - wanted) <= tolerance * size).all()
    finally:
        torch.set_num_threads(before)


def test_long_sums_are_the_same_with_more_threads():
    a, b = torch.randn(3000, 64), torch.randn(3000, 48)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append((a.t() @ b, a.t() @ b[:, :3], a @ b[:64, :2]))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(x, y) for x, y in zip(*results, strict=True))
