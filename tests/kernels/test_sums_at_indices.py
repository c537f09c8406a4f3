"""Sums of half types at indices: places are added up wider and rounded once, whatever the
operation, the layout and the share of the result that is named. Held to NumPy in double."""

import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional
HALVES = [torch.float16, torch.bfloat16]
N = 4000


def ones(*shape, dtype):
    return torch.ones(*shape, dtype=dtype)


# name -> f(rows of zeros [R, 3], index [N] of rows, addends [N, 3]) -> the rows with the sums
SUMS = {
    "scatter_add": lambda t, i, s: t.scatter_add(0, i[:, None].expand(N, 3), s),
    "scatter": lambda t, i, s: t.scatter(0, i[:, None].expand(N, 3), s, reduce="add"),
    "scatter_reduce": lambda t, i, s: t.scatter_reduce(0, i[:, None].expand(N, 3), s, "sum"),
    "index_add": lambda t, i, s: t.index_add(0, i, s),
    "index_add_": lambda t, i, s: t.clone().index_add_(0, i, s),
    "index_add of columns": lambda t, i, s: t.t().contiguous().index_add_(1, i, s.t()).t(),
    "index_put": lambda t, i, s: t.index_put((i,), s, accumulate=True),
    "index_put of columns": lambda t, i, s: (
        t.t().contiguous().index_put((torch.arange(3)[:, None], i), s.t(), accumulate=True).t()
    ),
    "index_put, transposed": lambda t, i, s: t.t().contiguous().t().index_put_((i,), s, True),
    "put": lambda t, i, s: t.put(
        (i[:, None] * 3 + torch.arange(3)).reshape(-1), s.reshape(-1), accumulate=True
    ),
}


@pytest.mark.parametrize("rows", [5, 20000], ids=["all named", "few named"])
@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("dtype", HALVES)
def test_sums(dtype, name, rows):
    r = np.random.default_rng(0)
    at = r.integers(0, 5, N) * (rows // 5)
    addends = torch.from_numpy(r.uniform(0.5, 1.5, (N, 3)).astype("float32")).to(dtype)
    start = torch.from_numpy(r.standard_normal((rows, 3)).astype("float32")).to(dtype)
    want = start.double().numpy()
    np.add.at(want, at, addends.double().numpy())
    got = SUMS[name](start, torch.from_numpy(at), addends)
    assert got.dtype == dtype
    # Rounded once: the nearest half of the sum, which float32 has to a few units.
    np.testing.assert_allclose(got.double().numpy(), want, rtol=torch.finfo(dtype).eps / 2 * 1.01)


@pytest.mark.parametrize("rows", [2, 60000], ids=["all named", "few named"])
@pytest.mark.parametrize("dtype", HALVES)
def test_means_and_products(dtype, rows):
    at = torch.zeros(N, dtype=torch.int64)
    x = torch.zeros(rows, dtype=dtype)
    for own, count in ((True, N + 1), (False, N)):
        want = torch.tensor(N / count, dtype=dtype)
        one = ones(N, dtype=dtype)
        assert x.scatter_reduce(0, at, one, "mean", include_self=own)[0] == want
        assert x.index_reduce(0, at, one, "mean", include_self=own)[0] == want
    step = torch.tensor(1 + 2**-7, dtype=dtype)
    want = torch.tensor(float(step) ** 500, dtype=dtype)
    for f in (x.scatter_reduce, x.index_reduce):
        assert f(0, at[:500], step.expand(500), "prod", include_self=False)[0] == want


@pytest.mark.parametrize("dtype", HALVES)
def test_alpha_is_not_rounded(dtype):
    for rows in (2, 60000):
        got = torch.zeros(rows, dtype=dtype).index_add(
            0, torch.zeros(N, dtype=torch.int64), ones(N, dtype=dtype), alpha=0.3
        )
        assert got[0] == torch.tensor(0.3 * N, dtype=dtype)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "look",
    [
        lambda x, i: x.gather(0, i),
        lambda x, i: x[i],
        lambda x, i: x.index_select(0, i),
        lambda x, i: x.take(i),
        lambda x, i: x.take_along_dim(i),
        lambda x, i: F.embedding(i, x[:, None]),
        lambda x, i: x.view(2, 1).expand(2, 3)[i, 0],
    ],
    ids=["gather", "index", "index_select", "take", "take_along_dim", "embedding", "two indices"],
)
@pytest.mark.parametrize("dtype", HALVES)
def test_gradients_of_what_is_looked_up(dtype, look, compiled):
    index = torch.zeros(N, dtype=torch.int64)
    x = ones(2, dtype=dtype).requires_grad_()
    f = torch.compile(look) if compiled else look
    f(x, index).sum().backward()
    assert x.grad.tolist() == [N, 0]


def test_an_index_out_of_range_leaves_the_tensor_alone():
    x = ones(4, dtype=torch.bfloat16)
    at = torch.tensor([0, 9])
    for f in (
        lambda: x.scatter_add_(0, at, ones(2, dtype=x.dtype)),
        lambda: x.index_add_(0, at, ones(2, dtype=x.dtype)),
        lambda: x.index_put_((at,), ones(2, dtype=x.dtype), accumulate=True),
        lambda: x.put_(at, ones(2, dtype=x.dtype), accumulate=True),
    ):
        with pytest.raises((IndexError, RuntimeError), match="9"):
            f()
        assert x.tolist() == [1, 1, 1, 1]


def test_a_source_that_is_the_result():
    x = ones(2000, dtype=torch.bfloat16)
    x[:1000].index_add_(0, torch.zeros(1000, dtype=torch.int64), x[:1000])
    assert x[0] == 1001 - 1 and x[1] == 1  # 1001 rounds to 1000
