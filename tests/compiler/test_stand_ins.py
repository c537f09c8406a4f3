"""x[i] where i is a traced tensor of one whole number: a view in eager, and nobody can tell."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._dynamo.exc import Unsupported

BACKENDS = ("eager", "aot_eager", "inductor")
J = torch.tensor([0, 1, 3])


def fresh():
    return torch.arange(60.0).reshape(3, 4, 5)


def scatter_rows(x, i):
    x[i, :, J] = torch.arange(12.0).reshape(4, 3)
    return x


def add_in_place(x, i):
    y = x[:, i]
    y.mul_(3)
    return x


def counter(x, i):
    x[i] += 1
    x[i, i] += x[i].sum()
    return x


def through_a_view(x, i):
    x[i][1:].mul_(3)
    x[i][i][i] = 7
    return x


def reshape_that_is_a_view(x, i):
    x[:, :, i].reshape(-1).add_(1)
    return x


def reshape_that_is_a_copy(x, i):
    x[:, :, i].T.reshape(-1).add_(1)
    return x


def assigned(x, i):
    x[i] = torch.ones(1, 1, 4, 5, dtype=torch.int64)
    x[:, i] = 2
    return x


def advanced_and_added(x, i):
    x[i, :, J] += 1
    x[:, i][J - 1] = 3
    return x


def read_after_change_below(x, i):
    y = x[i]
    x.mul_(3)
    return y + 1


def index_changed(x, i):
    k = i.clone()
    y = x[k]
    k.fill_(0)
    y.add_(1)
    return x


def two_views_of_one(x, i):
    a, b = x[i], x[i.clone()]
    a.add_(1)
    return b * 2


def rows_that_are_one(x, i):
    rows = x[0, 0].broadcast_to(3, 5)  # one may be changed, all at once may not
    rows[i] = 0.75
    y = rows[i - 1]
    y.add_(1)
    return x * 2


WRITES = [
    scatter_rows, add_in_place, counter, through_a_view, reshape_that_is_a_view,
    reshape_that_is_a_copy, assigned, advanced_and_added, read_after_change_below, index_changed,
    two_views_of_one, rows_that_are_one,
]  # fmt: skip
READS = {
    "row": lambda x, i: x[i] * 2,
    "column": lambda x, i: x[:, :, i] * 2,
    "block": lambda x, i: x[i, 1:, None] + 1,
    "number": lambda x, i: x[i, i, i] + 1,
    "order of dims": lambda x, i: x[i, :, J] + 1,
    "order of dims, a list": lambda x, i: x[i, :, [0, 1]] + 1,
    "a mask": lambda x, i: x[i, torch.tensor([True, False, True, False]), i] + 1,
    "negative, short": lambda x, i: x[(i - 3).to(torch.int8)] + 1,
    "place in the storage": lambda x, i: x[i] * x[i].storage_offset(),
    "strides": lambda x, i: x[:, i] * x[:, i].stride(0),
    "of a temporary": lambda x, i: (x * 2)[:, i],
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", WRITES, ids=lambda f: f.__name__)
def test_changes_are_seen_as_eager_sees_them(f, backend):
    want = [fresh()]
    want.append(f(want[0], torch.tensor(2)))
    got = [fresh()]
    compiled = torch.compile(f, backend=backend)
    got.append(compiled(got[0], torch.tensor(2)))
    for a, b in zip(got, want, strict=True):
        assert torch.equal(a, b)
    want, got = fresh(), fresh()
    f(want, torch.tensor(1))
    compiled(got, torch.tensor(1))
    assert torch.equal(got, want)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", READS)
def test_reads(name, backend):
    f = READS[name]
    compiled = torch.compile(f, backend=backend)
    for i in (0, 2):
        x, y = (fresh().requires_grad_() for _ in range(2))
        want, got = f(x, torch.tensor(i)), compiled(y, torch.tensor(i))
        assert torch.equal(got, want) and got.stride() == want.stride()
        want.sum().backward()
        got.sum().backward()
        assert torch.equal(y.grad, x.grad)


def test_gradients_through_writes():
    def f(x, i):
        y = x * 1
        y[i].mul_(x[0])
        y[:, i] += x[:, 0].sin()
        return (y * y)[i]

    x, y = (fresh().requires_grad_() for _ in range(2))
    want, got = f(x, torch.tensor(2)), torch.compile(f)(y, torch.tensor(2))
    want.sum().backward()
    got.sum().backward()
    assert torch.allclose(got, want, rtol=1e-6) and torch.allclose(y.grad, x.grad, rtol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_result_is_a_view_of_its_argument(backend):
    f = torch.compile(lambda x, i: x.select(0, 1)[i], backend=backend)
    x = fresh()
    y = f(x, torch.tensor(2))
    y.fill_(-1)
    assert x[1, 2].tolist() == [-1.0] * 5


def test_two_results_share_memory():
    def f(x, i):
        y = x * 2
        return y[i], y

    row, whole = torch.compile(f)(fresh(), torch.tensor(1))
    row.fill_(-1)
    assert bool((whole[1] == -1).all())


def test_arguments_that_share_memory():
    def f(x, y, i):
        a = x[i]
        y.mul_(2)
        return a + 1

    want, got = fresh(), fresh()
    i = torch.tensor(2)
    assert torch.equal(torch.compile(f)(got, got[1:], i), f(want, want[1:], i))


def test_whole_graphs_say_why_they_end():
    f = torch.compile(lambda x, i: x[i], fullgraph=True)
    with pytest.raises(Unsupported, match="place depends on data"):
        f(fresh(), torch.tensor(1))
    g = torch.compile(lambda x, i: x[i] + 1, fullgraph=True)
    assert torch.equal(g(fresh(), torch.tensor(1)), fresh()[1] + 1)


def test_errors():
    f = torch.compile(lambda x, i: x[i] + 1)
    with pytest.raises(IndexError):
        f(fresh(), torch.tensor(3))
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        f(torch.tensor(1.0), torch.tensor(0))


@pytest.mark.parametrize("dynamic", [False, True])
def test_views_whose_elements_share_memory(dynamic):
    """A graph cannot write a copy in such strides, so it ends there, with eager's results."""

    def f(x, i):
        row = x.unsqueeze(1).expand(x.shape[0], 3, 1)[i % x.shape[0]]
        return x.sum() + row.sum()

    x = torch.arange(4.0).view(4, 1)
    i = torch.tensor(-3)
    assert torch.compile(f, dynamic=dynamic)(x, i).item() == 6 + 3 * 1  # row 1
    with pytest.raises(Unsupported, match="repeats elements"):
        torch.compile(f, dynamic=dynamic, fullgraph=True)(x, i)
