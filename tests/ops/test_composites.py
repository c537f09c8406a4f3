"""Edges of structured and composite entries: whole numbers, empty and negative indices, names met
twice, what is copied and what is refused. References: NumPy, SciPy, closed forms, differences.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import special

import flambeau as torch
import flambeau.nn.functional as F

gradcheck = torch.autograd.gradcheck


def doubles(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def leaf(*shape, seed=0):
    return doubles(*shape, seed=seed).requires_grad_()


# Sequences ----------------------------------------------------------------------------------------


def test_whole_sequences():
    assert torch.linspace(0, 10, 5, dtype=torch.int64).tolist() == [0, 2, 5, 7, 10]
    assert torch.linspace(2**53 - 4, 2**53, 5, dtype=torch.int64).tolist() == [
        2**53 - 4 + i for i in range(5)
    ]
    # Whole results come from whole ends.
    assert torch.logspace(0, 1.2, 2, dtype=torch.int64).tolist() == [1, 10]
    assert torch.logspace(0, 3, 4, dtype=torch.int64).tolist() == [1, 10, 100, 1000]


@pytest.mark.parametrize("name", ["linspace", "logspace"])
def test_ends_as_tensors(name):
    f = getattr(torch, name)
    want = f(0.5, 2.0, 4).tolist()
    for ends in (
        (torch.tensor(0.5), 2.0),
        (0.5, torch.tensor(2.0)),
        (torch.tensor(0.5), torch.tensor(2.0)),
    ):
        assert f(*ends, 4).tolist() == want
    with pytest.raises(RuntimeError, match="0-dimensional start and end"):
        f(torch.ones(2), 1.0, 4)


def test_ranges_go_the_way_of_their_step():
    for start, end, step in ((3, 0, 1), (0, 3, -1), (9, 8, 5)):
        with pytest.raises(RuntimeError, match="inconsistent with step sign"):
            torch.arange(start, end, step)
    with pytest.raises(RuntimeError, match="unsupported range"):
        torch.arange(0.0, float("inf"))
    assert torch.arange(3, 3).shape == (0,)


# Indexing -----------------------------------------------------------------------------------------


def test_narrow_from_a_tensor():
    x = torch.arange(6)
    assert x.narrow(0, torch.tensor(2), 2).tolist() == [2, 3]
    with pytest.raises(RuntimeError, match="0-dim integral"):
        x.narrow(0, torch.tensor([1, 2]), 1)
    with pytest.raises(RuntimeError, match="0-dim integral"):
        x.narrow(0, torch.tensor(True), 1)


def test_empty_index_of_any_dtype():
    x = torch.ones(5)
    empty = torch.empty(0, dtype=torch.uint8)
    assert torch.gather(x, 0, empty).shape == (0,)
    assert torch.scatter(x, 0, empty, torch.empty(0)).tolist() == [1] * 5


def test_scatter_that_reduces():
    x, index = torch.full((3,), 2.0), torch.tensor([1, 1])
    src = torch.tensor([3.0, 5.0])
    assert x.scatter(0, index, src, reduce="add").tolist() == [2, 10, 2]
    assert x.scatter(0, index, src, reduce="multiply").tolist() == [2, 30, 2]
    assert x.scatter(0, index, 3.0, reduce="multiply").tolist() == [2, 18, 2]
    assert x.scatter_(0, index, 3.0, reduce="add") is x
    assert x.tolist() == [2, 8, 2]
    with pytest.raises(RuntimeError, match="add or multiply"):
        x.scatter(0, index, src, reduce="mean")


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_scatter_reduce_derivatives(reduce, include_self):
    index = torch.tensor([[0, 2, 0], [2, 2, 1]])  # row 3 is left alone

    def f(x, src):
        return x.scatter_reduce(0, index, src, reduce, include_self=include_self)

    assert gradcheck(f, (leaf(4, 3), leaf(2, 3, seed=1)))


def test_index_fill_fills_a_place_once():
    value = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    index = torch.tensor([1, 1, 2])
    assert gradcheck(lambda x, v: x.index_fill(0, index, v), (leaf(4, 2), value))


def test_negative_places_along_a_dim():
    x = torch.tensor([[1, 2, 3], [4, 5, 6]])
    assert x.take_along_dim(torch.tensor([[-1], [0]]), 1).tolist() == [[3], [4]]


@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
def test_index_reduce(reduce):
    x, source, index = doubles(2, 4), doubles(2, 3, seed=1), torch.tensor([2, 0, 2])
    numpy = {"prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}[reduce]
    want = x.numpy().copy()
    for at in (0, 2):
        met = [x.numpy()[:, [at]], source.numpy()[:, index.numpy() == at]]
        want[:, at] = numpy(np.concatenate(met, 1), axis=1)
    np.testing.assert_allclose(x.index_reduce(1, index, source, reduce).numpy(), want)


def test_nonzero_of_a_known_count():
    x = torch.tensor([[0, 1], [2, 0]])
    assert torch.nonzero_static(x, size=1).tolist() == [[0, 1]]
    assert x.nonzero_static(size=3, fill_value=7).tolist() == [[0, 1], [1, 0], [7, 7]]


def test_unravelled_places():
    flat = np.array([[0, 7], [22, 59]])
    got = torch.unravel_index(torch.from_numpy(flat), (3, 4, 5))
    for g, w in zip(got, np.unravel_index(flat, (3, 4, 5)), strict=True):
        np.testing.assert_array_equal(g.numpy(), w)
    with pytest.raises(TypeError, match="integer dtype"):
        torch.unravel_index(torch.ones(1), (2,))


# Values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_frexp(dtype):
    info = np.finfo(dtype)
    values = [0.0, -0.0, 1.0, -6.5, info.max, info.tiny, info.smallest_subnormal, np.inf, np.nan]
    x = np.array(values, dtype)
    got = torch.frexp(torch.from_numpy(x))
    mantissa, exponent = np.frexp(x)
    np.testing.assert_array_equal(got.mantissa.numpy(), mantissa)
    finite = np.isfinite(x)
    np.testing.assert_array_equal(got.exponent.numpy()[finite], exponent[finite])
    assert got.exponent.dtype == torch.int32


def test_parts_and_angles():
    r, a = leaf(5), leaf(5, seed=1)
    want = r.detach().numpy() * np.exp(1j * a.detach().numpy())
    np.testing.assert_allclose(torch.polar(r, a).detach().numpy(), want)
    assert gradcheck(torch.polar, (r, a))
    x = torch.tensor([0.0, float("inf"), -float("inf"), float("nan")])
    assert torch.isposinf(x).tolist() == [False, True, False, False]
    assert torch.isneginf(x).tolist() == [False, False, True, False]
    assert torch.isreal(torch.tensor([1 + 0j, 1j])).tolist() == [True, False]
    np.testing.assert_allclose(torch.deg2rad(r).detach().numpy(), np.deg2rad(r.detach().numpy()))
    np.testing.assert_allclose(torch.rad2deg(r).detach().numpy(), np.rad2deg(r.detach().numpy()))


X = np.linspace(0.25, 7.5, 30)
UNARY = {
    "airy_ai": lambda x: special.airy(x)[0],
    "bessel_j0": special.j0,
    "bessel_j1": special.j1,
    "bessel_y0": special.y0,
    "bessel_y1": special.y1,
    "modified_bessel_i0": special.i0,
    "modified_bessel_i1": special.i1,
    "modified_bessel_k0": special.k0,
    "modified_bessel_k1": special.k1,
    "scaled_modified_bessel_k0": special.k0e,
    "scaled_modified_bessel_k1": special.k1e,
    "spherical_bessel_j0": lambda x: np.sin(x) / x,
}
POLYNOMIALS = {
    "chebyshev_polynomial_t": special.eval_chebyt,
    "chebyshev_polynomial_u": special.eval_chebyu,
    "shifted_chebyshev_polynomial_t": special.eval_sh_chebyt,
    "shifted_chebyshev_polynomial_u": special.eval_sh_chebyu,
    "hermite_polynomial_h": special.eval_hermite,
    "hermite_polynomial_he": special.eval_hermitenorm,
    "laguerre_polynomial_l": special.eval_laguerre,
    "legendre_polynomial_p": special.eval_legendre,
}


@pytest.mark.parametrize("name", UNARY)
def test_special_functions(name):
    got = getattr(torch.special, name)(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(got, UNARY[name](X), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", ["arange", "linspace", "logspace"])
def test_sequences_of_truths_are_refused(name):
    args = (0, 1, 1) if name == "arange" else (0, 1, 3)
    with pytest.raises(NotImplementedError, match=f"\"{name}_cpu\" not implemented for 'Bool'"):
        getattr(torch, name)(*args, dtype=torch.bool)


FAR = {
    "modified_bessel_k0": special.k0, "modified_bessel_k1": special.k1,
    "scaled_modified_bessel_k0": special.k0e, "scaled_modified_bessel_k1": special.k1e,
    "airy_ai": lambda x: special.airy(x)[0], "i0": special.i0, "i1": special.i1,
    "i0e": special.i0e, "i1e": special.i1e, "modified_bessel_i0": special.i0,
    "erfcx": special.erfcx, "digamma": special.digamma, "log_ndtr": special.log_ndtr,
}  # fmt: skip


@pytest.mark.parametrize("name", FAR)
def test_special_functions_far_out(name):
    x = np.concatenate([np.geomspace(1e-3, 100, 400), np.geomspace(100, 700, 100)])
    if name.endswith("e") or name.startswith("scaled"):
        x = np.append(x, [1e5, 1e10, 1e300, 1e308, np.inf])
    if name == "airy_ai":
        x = x[x < 103]  # smaller than any normal number
    got = getattr(torch.special, name)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(got, FAR[name](x), rtol=2e-12, atol=0)


def test_polynomials_of_absurd_degree_end():
    k = 2.0**31
    ends = torch.tensor([1.0, -1.0], dtype=torch.float64)
    assert torch.special.chebyshev_polynomial_t(ends, k).tolist() == [1, 1]
    assert torch.special.chebyshev_polynomial_u(ends, k + 1).tolist() == [k + 2, -k - 2]
    assert torch.special.chebyshev_polynomial_v(ends, k + 1).tolist() == [1, -2 * k - 3]
    assert torch.special.chebyshev_polynomial_w(ends, k + 1).tolist() == [2 * k + 3, -1]
    for name in ("laguerre_polynomial_l", "legendre_polynomial_p"):
        assert getattr(torch.special, name)(torch.full((1000,), 0.5), 2.0**40).isnan().all()
    assert torch.special.laguerre_polynomial_l(torch.tensor([-1.0]), k).tolist() == [math.inf]


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_special_polynomials(name):
    x = np.linspace(-0.9, 0.9, 11)
    for n in range(6):
        got = getattr(torch.special, name)(torch.from_numpy(x), n).numpy()
        np.testing.assert_allclose(got, POLYNOMIALS[name](n, x), rtol=1e-10, atol=1e-12)
    degrees = torch.tensor([-0.9, 0.9, 1.7, -1.1])  # truncated
    got = getattr(torch.special, name)(torch.from_numpy(x[:4]), degrees)
    want = [POLYNOMIALS[name](n, x[k]) for k, n in enumerate([0, 0, 1])]
    np.testing.assert_allclose(got.numpy(), [*want, 0], rtol=1e-10, atol=1e-12)


def test_xlogy():
    a, b = np.array([0.0, 0.0, 2.0, -1.0]), np.array([0.0, 3.0, 0.5, 2.0])
    got = torch.xlogy(torch.from_numpy(a), torch.from_numpy(b)).numpy()
    np.testing.assert_allclose(got, special.xlogy(a, b))
    x = torch.from_numpy(b[1:].copy()).requires_grad_()
    assert gradcheck(torch.xlogy, (leaf(3), x)) and gradcheck(torch.special.xlogy, (leaf(3), x))


def test_polygamma_is_a_method():
    x = torch.tensor([1.0, 2.0])
    assert x.polygamma(1).tolist() == torch.polygamma(1, x).tolist()
    want = x.polygamma(2).tolist()
    assert x.polygamma_(2) is x and x.tolist() == want


def test_squares_of_bools_are_counted():
    got = torch.square(torch.tensor([True, False]))
    assert got.dtype == torch.int64 and got.tolist() == [1, 0]


def test_whole_factors_of_products():
    m, v = torch.full((2, 2), 3), torch.full((2,), 3)
    assert torch.addmv(v, m, v, beta=1.5, alpha=2.7).tolist() == [39, 39]
    assert torch.addmm(m, m, m, beta=1.5, alpha=2.7).tolist() == [[39, 39], [39, 39]]
    with pytest.raises(RuntimeError, match="must not be a floating point number"):
        torch.addr(m, v, v, alpha=2.7)


# Derivatives --------------------------------------------------------------------------------------


def test_filling_is_differentiable():
    value = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    assert gradcheck(torch.fill, (leaf(2, 2), value))
    assert torch.fill(leaf(2), 1.0).requires_grad


@pytest.mark.parametrize("name", ["round", "floor", "ceil", "trunc", "sign"])
def test_steps_have_the_derivative_zero(name):
    x = leaf(4)
    step = getattr(torch, name)
    (step(x) + x).sum().backward()
    assert x.grad.tolist() == [1] * 4
    assert gradcheck(step, (leaf(4),)) and torch.autograd.gradgradcheck(step, (leaf(4),))
    y = leaf(4) * 1
    getattr(y, name + "_")()
    assert y.requires_grad


def test_power_zero_is_differentiable():
    x = leaf(2, 2)
    torch.linalg.matrix_power(x, 0).sum().backward()
    assert x.grad.tolist() == [[0, 0], [0, 0]]


def test_next_number_moves_with_its_first_argument():
    x, y = leaf(3), leaf(3, seed=1)
    torch.nextafter(x, y).sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_output_padding_beyond_the_stride(axes):
    f = getattr(F, f"conv_transpose{axes}d")
    x, w = leaf(1, 2, *(3,) * axes), leaf(2, 1, *(2,) * axes, seed=1)

    def run(x, w):
        return f(x, w, stride=2, output_padding=3, dilation=4)

    assert gradcheck(run, (x, w), fast_mode=True)
    assert torch.autograd.gradgradcheck(run, (x, w), fast_mode=True)


# Images -------------------------------------------------------------------------------------------


def test_averages_of_whole_numbers_are_truncated():
    x = np.random.default_rng(0).integers(-9, 10, (1, 1, 5, 5))
    got = F.avg_pool2d(torch.from_numpy(x), 2, 2, 1).numpy()
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))[..., :6, :6]
    sums = padded.reshape(1, 1, 3, 2, 3, 2).sum((3, 5))
    np.testing.assert_array_equal(got, np.trunc(sums / 4))
    got = F.avg_pool2d(torch.from_numpy(x), 2, 2, divisor_override=3).numpy()
    sums = x[..., :4, :4].reshape(1, 1, 2, 2, 2, 2).sum((3, 5))
    np.testing.assert_array_equal(got, np.trunc(sums / 3))


def test_circular_padding_wraps_what_is_left():
    x = np.arange(4.0).reshape(1, 1, 4)
    want = np.pad(x[..., 1:], ((0, 0), (0, 0), (0, 2)), mode="wrap")
    np.testing.assert_array_equal(F.pad(torch.from_numpy(x), (-1, 2), "circular").numpy(), want)


@pytest.mark.parametrize("name", ["pixel_shuffle", "pixel_unshuffle"])
def test_rearranged_pixels_are_copies(name):
    x = torch.ones(1, 1, 2, 2)
    getattr(F, name)(x, 1).zero_()
    assert x.sum() == 4


def test_batch_norm_of_nothing():
    for shape in ((0, 3), (0, 3, 4), (0, 3, 2, 2)):
        x, w, b = leaf(*shape), leaf(3), leaf(3, seed=1)
        mean, var = torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
        out = F.batch_norm(x, mean, var, w, b, training=True)
        assert out.shape == shape
        out.sum().backward()
        assert w.grad.tolist() == [0] * 3 and mean.tolist() == [0] * 3
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        F.batch_norm(doubles(1, 3), None, None, training=True)


def test_fractional_pools_without_a_batch():
    x = doubles(2, 6, 6, 6)
    samples = torch.full((1, 2, 3), 0.5, dtype=torch.float64)
    got = F.fractional_max_pool3d(x, 2, output_size=3, _random_samples=samples)
    want = F.fractional_max_pool3d(x[None], 2, output_size=3, _random_samples=samples)
    assert got.tolist() == want[0].tolist()
    assert F.fractional_max_pool3d(doubles(0, 1, 4, 4, 4), 2, output_size=2).shape == (
        0,
        1,
        2,
        2,
        2,
    )


def test_adaptive_pools_name_the_dimensions_they_need():
    with pytest.raises(ValueError, match="at least 3"):
        F.adaptive_avg_pool2d(torch.ones(2, 2), (2, 2))
    with pytest.raises(RuntimeError, match=r"pool2d\(\): Expected 3D or 4D tensor, but got \[2, 2"):
        F.adaptive_avg_pool2d(torch.ones(2, 2), 2)


def test_rolling_a_number():
    assert torch.tensor(3.0).roll(1).item() == 3.0
    with pytest.raises(IndexError, match="no dimensions"):
        torch.tensor(3.0).roll(0, 0)


def test_products_of_a_chain():
    xs = [doubles(*s, seed=i) for i, s in enumerate([(2, 5), (5, 3), (3, 4)])]
    want = np.linalg.multi_dot([x.numpy() for x in xs])
    np.testing.assert_allclose(torch.linalg.multi_dot(xs).numpy(), want)


def test_dims_in_another_order_in_memory():
    x = torch.empty_permuted((2, 3, 4), (1, 0, 2))
    assert x.shape == (2, 3, 4) and x.stride() == (4, 8, 1)
    with pytest.raises(RuntimeError, match="Duplicate"):
        torch.empty_permuted((2, 3), (1, 1))


def test_mask_fills_with_what_fits():
    x, mask = torch.zeros(2), torch.tensor([True, False])
    for fill in (1j, torch.tensor(1j)):
        with pytest.raises(RuntimeError, match="without overflow"):
            x.masked_fill(mask, fill)
    assert x.to(torch.complex64).masked_fill(mask, 1j).tolist() == [1j, 0]


# Derivatives of derivatives -----------------------------------------------------------------------


def test_second_derivatives_of_layer_norm():
    x, w, b = leaf(2, 3), leaf(3, seed=1), leaf(3, seed=2)
    assert torch.autograd.gradgradcheck(lambda x, w, b: F.layer_norm(x, (3,), w, b, 0.5), (x, w, b))
    for output in range(3):

        def one(x, output=output):
            return torch.native_layer_norm(x, (3,), None, None, 0.5)[output]

        assert gradcheck(one, (x,)) and torch.autograd.gradgradcheck(one, (x,))


@pytest.mark.parametrize(
    "norm",
    [
        lambda x, w, b: torch.native_batch_norm(x, w, b, None, None, True, 0.1, 0.5),
        lambda x, w, b: torch.native_group_norm(x, w, b, 2, 4, 3, 2, 0.5),
    ],
)
def test_derivatives_of_the_statistics_of_a_norm(norm):
    leaves = leaf(2, 4, 3), leaf(4, seed=1), leaf(4, seed=2)
    assert gradcheck(norm, leaves) and torch.autograd.gradgradcheck(norm, leaves)
    for output in (1, 2):

        def one(x, output=output):
            return norm(x, None, None)[output]

        assert gradcheck(one, leaves[:1]) and torch.autograd.gradgradcheck(one, leaves[:1])


@pytest.mark.parametrize("geometry", [((2, 2), (3, 1)), ((2, 3), (1, 1), 1), ((2, 2), (0, 2))])
def test_second_derivatives_of_any_view(geometry):
    x = leaf(3, 3)
    assert torch.autograd.gradgradcheck(lambda x: x.as_strided(*geometry), (x,))


def test_second_derivatives_of_empty_products():
    x = leaf(0)
    (g,) = torch.autograd.grad(x.prod(), x, create_graph=True)
    assert g.requires_grad and g.shape == (0,)


@pytest.mark.parametrize("name", ["i1", "i1e"])
def test_second_derivatives_of_bessel_functions_at_zero(name):
    x = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    (g,) = torch.autograd.grad(getattr(torch.special, name)(x), x, create_graph=True)
    (gg,) = torch.autograd.grad(g, x)
    assert g.item() == 0.5 and gg.item() == 0


def test_missing_derivatives_are_refused():
    x, grid = leaf(1, 1, 3, 3), (doubles(1, 2, 2, 2, seed=1) / 4).requires_grad_()
    out = F.grid_sample(x, grid, align_corners=False)
    (g,) = torch.autograd.grad(out.sum(), grid, create_graph=True)
    (gg,) = torch.autograd.grad(g.pow(2).sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="_grid_sample_twice"):
        torch.autograd.grad(gg.sum(), x, allow_unused=True)


def test_bounds_without_dims_are_tensors():
    """Their dtype counts, and gradients flow to them."""
    low, high = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (-0.5, 0.5))
    assert torch.tensor(1.0).clamp(low, high).dtype is torch.float64
    assert torch.ones(3).clamp(low, high).dtype is torch.float32
    assert torch.tensor(1.0).clamp(-0.5, 0.5).dtype is torch.float32
    x = torch.tensor([-2.0, -1.0, 0.0, 3.0], dtype=torch.float64)
    got = torch.autograd.grad(x.clamp(low, high).sum(), [low, high])
    assert [g.item() for g in got] == [2.0, 1.0]
    assert torch.autograd.grad(x.clamp(max=high).sum(), high)[0].item() == 1.0


@pytest.mark.parametrize("rows", [5, 5000])  # small ones take a shorter way
def test_results_beside_a_number_are_laid_out_as_their_tensor(rows):
    x = torch.empty_strided((rows, 7, 1, 1), (7, 1, 7, 7)).fill_(1.0)
    assert (x / 2).stride() == (7, 1, 7, 7)
    assert ((x / 2) - torch.ones(7, 1)).stride() == (49, 1, 7, 49)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("r", [0, 1, 2, 3, 5, 7])
@pytest.mark.parametrize("n", [0, 1, 2, 6])
def test_combinations_are_those_of_itertools(n, r, again):
    x = list(range(0, 10 * n, 10))
    choose = itertools.combinations_with_replacement if again else itertools.combinations
    got = torch.combinations(torch.tensor(x, dtype=torch.int64), r, again)
    want = [list(c) for c in choose(x, r)] if r else []
    assert got.tolist() == want and got.shape == ((len(want), r) if r else (0,))
