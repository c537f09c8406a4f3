"""Masks and index tensors against NumPy: blocks, element sizes, layouts, indices out of range."""

import re
import time

import numpy as np
import pytest

import flambeau as torch

SIZES = [0, 1, 7, 16, 100, 16384, 50007]
DTYPES = ["bool", "int8", "int16", "int32", "float32", "int64", "float64", "complex128"]


def numbers(n, dtype, seed=0):
    x = np.random.default_rng(seed).integers(-100, 100, n)
    return (x % 2 == 0) if dtype == "bool" else x.astype(dtype)


def masks(n):
    r = np.random.default_rng(1)
    yield np.zeros(n, bool)
    yield np.ones(n, bool)
    for density in (0.02, 0.5, 0.97):
        yield r.random(n) < density


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_masked_select(n, dtype):
    x = numbers(n, dtype)
    for mask in masks(n):
        got = torch.from_numpy(x).masked_select(torch.from_numpy(mask))
        np.testing.assert_array_equal(got.numpy(), x[mask])


def test_index_by_a_mask():
    x = np.random.default_rng(0).standard_normal((300, 257)).astype("float32")
    mask = x > 0.3
    t, m = torch.from_numpy(x), torch.from_numpy(mask)
    np.testing.assert_array_equal(t[m].numpy(), x[mask])
    np.testing.assert_array_equal(t.t()[m.t()].numpy(), x.T[mask.T])
    t.requires_grad_()
    weights = torch.arange(float(mask.sum()))
    (t[m] * weights).sum().backward()
    want = np.zeros_like(x)
    want[mask] = weights.numpy()
    np.testing.assert_array_equal(t.grad.numpy(), want)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float32", "complex64"])
@pytest.mark.parametrize(
    "shape", [(50007,), (300, 257), (3, 1, 7001), (40, 33, 29), (0, 4), (5, 0)]
)
def test_nonzero(shape, dtype):
    r = np.random.default_rng(2)
    for density in (0.0, 0.1, 1.0):
        x = (r.random(shape) < density).astype(dtype)
        got = torch.nonzero(torch.from_numpy(x))
        np.testing.assert_array_equal(got.numpy(), np.argwhere(x))


@pytest.mark.parametrize("dtype", DTYPES)
def test_masked_scatter(dtype):
    n = 40001
    x, source = numbers(n, dtype), numbers(n, dtype, 5)
    for mask in masks(n):
        want = x.copy()
        want[mask] = source[: mask.sum()]
        m, s = torch.from_numpy(mask), torch.from_numpy(source)
        np.testing.assert_array_equal(torch.from_numpy(x).masked_scatter(m, s).numpy(), want)
        strided = torch.zeros(n, 2, dtype=s.dtype)[:, 0]
        strided.copy_(torch.from_numpy(x))
        np.testing.assert_array_equal(strided.masked_scatter_(m, s).numpy(), want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape,dim", [((70, 1100), 1), ((1100, 70), 0), ((9, 50, 31), 1)])
def test_gather(shape, dim, dtype):
    x = numbers(int(np.prod(shape)), dtype).reshape(shape)
    index = np.random.default_rng(3).integers(0, shape[dim], shape)
    want = np.take_along_axis(x, index, dim)
    t, at = torch.from_numpy(x), torch.from_numpy(index)
    np.testing.assert_array_equal(t.gather(dim, at).numpy(), want)
    back = tuple(reversed(range(len(shape))))  # the indexed dim at another stride
    turned = torch.from_numpy(np.ascontiguousarray(x.transpose(back))).permute(back)
    np.testing.assert_array_equal(turned.gather(dim, at).numpy(), want)


def test_gather_past_the_caches():
    x = np.random.default_rng(4).standard_normal((64, 100_001)).astype("float32")
    index = np.random.default_rng(5).integers(0, x.shape[1], x.shape)
    got = torch.from_numpy(x).gather(1, torch.from_numpy(index))
    np.testing.assert_array_equal(got.numpy(), np.take_along_axis(x, index, 1))


def test_scatter_add():
    x = np.random.default_rng(6).integers(-9, 9, (70, 500)).astype("float32")
    index = np.random.default_rng(7).integers(0, 40, x.shape)
    for dim, size in ((1, (70, 40)), (0, (40, 500))):
        want = np.zeros(size, "float32")
        places = np.indices(x.shape)
        places[dim] = index
        np.add.at(want, tuple(places), x)
        got = torch.zeros(size).scatter_add(dim, torch.from_numpy(index), torch.from_numpy(x))
        np.testing.assert_array_equal(got.numpy(), want)


SCATTERS = {
    "scatter": torch.scatter,
    "scatter_add": torch.scatter_add,
    "scatter_reduce": lambda x, dim, index, src: x.scatter_reduce(dim, index, src, "sum"),
}


@pytest.mark.parametrize("op", SCATTERS)
@pytest.mark.parametrize("index, src", [([0, 0, 0], 7.0), (0, []), ([1, 1], [7.0])])
def test_no_dims_count_as_one_entry(op, index, src):
    at, s = torch.tensor(index), torch.tensor(src)
    message = (
        f"{op}: expected index no larger than self [5] apart from dim 0 and than src "
        f"{list(s.shape)}, got shape {list(at.shape)}"
    )
    with pytest.raises(RuntimeError, match=re.escape(message)):
        SCATTERS[op](torch.zeros(5), 0, at, s)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("index", [0, [0], []])
@pytest.mark.parametrize("src", [3.0, [3.0], [3.0, 4.0]])
def test_gradients_of_scatters_without_dims(reduce, index, src):
    at = torch.tensor(index, dtype=torch.int64)
    met = at.numel() > 0
    x, s = torch.tensor([2.0, 5.0], requires_grad=True), torch.tensor(src, requires_grad=True)
    x.scatter_reduce(0, at, s, reduce).sum().backward()
    to_x, to_src = {
        "sum": (1.0, 1.0), "prod": (3.0, 2.0), "mean": (0.5, 0.5), "amax": (0.0, 1.0),
        "amin": (1.0, 0.0),
    }[reduce]  # fmt: skip
    assert x.grad.tolist() == [to_x if met else 1.0, 1.0]
    assert s.grad.shape == s.shape
    assert s.grad.reshape(-1).tolist() == [to_src if met else 0.0, 0.0][: s.numel()]


@pytest.mark.parametrize("bad", [-1, 500, 2**62, -(2**63)])
@pytest.mark.parametrize("dim", [0, 1])
def test_indices_out_of_range(dim, bad):
    index = np.zeros((500, 500), "int64")
    index[311, 407] = bad
    x, at = torch.zeros(500, 500), torch.from_numpy(index)
    message = rf"gather\(\): index {bad} is out of bounds for dimension {dim} with size 500"
    with pytest.raises(RuntimeError, match=message):
        x.gather(dim, at)
    with pytest.raises(RuntimeError, match="out of bounds"):
        x.scatter_add(dim, at, x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_fill(dtype):
    for n in (1, 3, 64, 1001, 300_007):
        for start in (0, 1, 5):
            x = torch.zeros(n + start + 3, dtype=getattr(torch, dtype))
            x[start : start + n].fill_(1)
            want = np.zeros(n + start + 3, dtype)
            want[start : start + n] = 1
            np.testing.assert_array_equal(x.numpy(), want)


def test_combinations_of_more_than_there_are():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    none = torch.combinations(x, 64)
    assert none.shape == (0, 64) and none.dtype == x.dtype
    (g,) = torch.autograd.grad(none.sum(), x)
    assert g.tolist() == [0.0, 0.0]
    for again in (False, True):
        with pytest.raises(RuntimeError, match="combinations: expected r of at most 64"):
            torch.combinations(x, 2**63 - 1, again)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_topk_of_long_lines(dtype, largest):
    """Ties go to the first, NaN is the largest; lines in any layout."""
    rng = np.random.default_rng(0)
    x = rng.integers(-40, 40, (7, 1003)).astype(dtype)
    if dtype != "int32":
        x[0, 500:503], x[1, :], x[2, 3], x[3, ::2] = np.nan, np.nan, -np.inf, np.nan
        x[4, 10:990] = np.inf
    for made in (torch.from_numpy(x), torch.from_numpy(np.asfortranarray(x))):
        values, places = made.topk(12, largest=largest)
        for row in range(7):
            v = x[row].astype(np.float64)
            rank = (v != v).astype(int) * (1 if largest else -1)
            clean = np.where(v != v, 0, v) * (1 if largest else -1)
            best = np.lexsort((np.arange(1003), -clean, -rank))[:12]
            assert places[row].tolist() == best.tolist()
            assert np.array_equal(values[row].numpy(), x[row][best], equal_nan=dtype != "int32")


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("n", [64, 81, 511, 2049])
def test_topk_of_any_number(n, largest):
    """Around the numbers at which the way of finding them changes; ties, infinities and NaN."""
    rng = np.random.default_rng(n)
    x = np.stack(
        [
            rng.standard_normal(n),
            rng.integers(-5, 5, n),
            np.zeros(n),
            np.where(rng.random(n) < 0.9, np.nan, 1.0),
            np.where(rng.random(n) < 0.5, -np.inf, rng.standard_normal(n)),
            np.where(rng.random(n) < 0.5, np.inf, -np.inf),
        ]
    )
    missing = np.isnan(x)
    keys = np.where(missing, 0, x) * (-1 if largest else 1)
    first = ~missing if largest else missing
    order = np.stack([np.lexsort((np.arange(n), k, f)) for k, f in zip(keys, first, strict=True)])
    for dtype in (np.float32, np.float64):
        made = torch.from_numpy(x.astype(dtype))
        for k in (1, 10, 12, 13, 16, 17, 48, 49, n // 4, n):
            values, places = made.topk(k, largest=largest)
            assert places.tolist() == order[:, :k].tolist()
            expected = np.take_along_axis(x.astype(dtype), order[:, :k], 1)
            assert np.array_equal(values.numpy(), expected, equal_nan=True)


@pytest.mark.parametrize("median", [torch.median, torch.nanmedian])
def test_the_median_of_all_shares_its_derivative_among_ties(median):
    x = torch.tensor([[1.0, 2.0, 1.0], [3.0, 1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    median(x).backward()
    third = torch.tensor(1 / 3, dtype=torch.float64)
    assert x.grad.equal(torch.where(x == 1, third, 0.0))
    batch = torch.stack([x.detach(), x.detach() + 1])
    assert torch.func.vmap(median)(batch).tolist() == [1, 2]
    shares = torch.func.vmap(torch.func.grad(median))(batch)
    assert shares.equal(torch.stack([x.grad, x.grad]))


IN_PLACE = {
    "index_copy_": lambda x, i, s: x.index_copy_(1, i, s),
    "index_add_": lambda x, i, s: x.index_add_(1, i, s, alpha=2),
    "index_fill_": lambda x, i, s: x.index_fill_(1, i, 3),
    "index_fill_ of a tensor": lambda x, i, s: x.index_fill_(1, i, torch.tensor(3.0).to(x.dtype)),
    "scatter_": lambda x, i, s: x.scatter_(1, i.view(1, -1, 1).expand_as(s), s),
    "scatter_ of a number": lambda x, i, s: x.scatter_(1, i.view(1, -1, 1).expand_as(s), 4),
    "scatter_add_": lambda x, i, s: x.scatter_add_(1, i.view(1, -1, 1).expand_as(s), s),
}


def in_numpy(name, x, i, s):
    x = x.copy()
    if name == "index_add_":
        x[:, i] += 2 * s
    elif name == "scatter_add_":
        x[:, i] += s
    else:
        x[:, i] = 3 if "fill" in name else 4 if "number" in name else s
    return x


@pytest.mark.parametrize("layout", ["dense", "transposed", "sliced"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_in_their_own_memory(name, layout):
    shape, at = (3, 9, 4), [7, 0, 2]
    r = np.random.default_rng(0)
    x, s = (
        r.integers(-9, 9, shape).astype("float32"),
        r.integers(-9, 9, (3, 3, 4)).astype("float32"),
    )
    expected = in_numpy(name, x, at, s)
    if layout == "transposed":
        t = torch.from_numpy(x.transpose(2, 1, 0).copy()).transpose(0, 2)
    elif layout == "sliced":
        t = torch.zeros(3, 18, 8)[:, ::2, 1:5].copy_(torch.from_numpy(x))
    else:
        t = torch.from_numpy(x.copy())
    before = t._version
    assert IN_PLACE[name](t, torch.tensor(at), torch.from_numpy(s)) is t
    np.testing.assert_array_equal(t.numpy(), expected)
    assert t._version > before
    with pytest.raises((IndexError, RuntimeError), match="out of"):
        IN_PLACE[name](t, torch.tensor([1, 9, 2]), torch.from_numpy(s))
    np.testing.assert_array_equal(t.numpy(), expected)


def test_in_their_own_memory_from_their_own_memory():
    x = torch.arange(6.0)
    x.index_copy_(0, torch.tensor([1, 2, 3]), x[:3])
    assert x.tolist() == [0, 0, 1, 2, 4, 5]
    i = torch.tensor([2, 0, 1])
    i.index_copy_(0, i, torch.tensor([7, 8, 9]))
    assert i.tolist() == [8, 9, 7]


def test_writing_one_entry_takes_no_copy_of_the_others():
    cache, row, at = torch.zeros(2, 4000, 1024), torch.ones(2, 1, 1024), torch.tensor([3])

    def best(f):
        times = []
        for _ in range(5):
            start = time.perf_counter()
            f()
            times.append(time.perf_counter() - start)
        return min(times)

    assert best(lambda: cache.index_copy_(1, at, row)) < best(cache.clone) / 10  # measured: 1/1000
    assert (cache[:, 3] == 1).all() and cache.sum() == 2048
