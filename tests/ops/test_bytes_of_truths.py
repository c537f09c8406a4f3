"""Any byte of a bool tensor but 0 is true: its memory may be NumPy's, a view's, or nobody's yet."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch

BYTES = np.array([0, 190, 2, 255, 1, 0, 128, 64] * 40, np.uint8)
TRUTHS = BYTES != 0
X = np.arange(len(BYTES), dtype=np.float64)

ARRAYS = {
    "sum": (lambda m, x: m.sum(), lambda m, x: m.sum()),
    "mean": (lambda m, x: m.double().mean(), lambda m, x: m.mean()),
    "sum_rows": (lambda m, x: m.view(8, -1).sum(1), lambda m, x: m.reshape(8, -1).sum(1)),
    "sum_columns": (lambda m, x: m.view(8, -1).sum(0), lambda m, x: m.reshape(8, -1).sum(0)),
    "any": (lambda m, x: m.view(-1, 2).any(1), lambda m, x: m.reshape(-1, 2).any(1)),
    "all": (lambda m, x: m.view(-1, 2).all(1), lambda m, x: m.reshape(-1, 2).all(1)),
    "count_nonzero": (lambda m, x: m.count_nonzero(), lambda m, x: np.count_nonzero(m)),
    "prod": (lambda m, x: m[1:5].prod(), lambda m, x: m[1:5].prod()),
    "cumsum": (lambda m, x: m.cumsum(0), lambda m, x: m.cumsum()),
    "long": (lambda m, x: m.long(), lambda m, x: m.astype(int)),
    "half": (lambda m, x: m.half(), lambda m, x: m.astype(np.float16)),
    "complex": (lambda m, x: m.to(torch.complex64), lambda m, x: m.astype(np.complex64)),
    "not": (lambda m, x: ~m, lambda m, x: ~m),
    "xor": (lambda m, x: m ^ m.flip(0), lambda m, x: m ^ m[::-1]),
    "equal_to": (lambda m, x: m == m.flip(0), lambda m, x: m == m[::-1]),
    "less": (lambda m, x: m < m.flip(0), lambda m, x: m < m[::-1]),
    "times": (lambda m, x: m * x, lambda m, x: m * x),
    "where": (lambda m, x: torch.where(m, x, -x), lambda m, x: np.where(m, x, -x)),
    "masked_fill": (lambda m, x: x.masked_fill(m, 3), lambda m, x: np.where(m, 3, x)),
    "copied": (lambda m, x: torch.zeros(len(m), dtype=torch.int32).copy_(m), lambda m, x: m + 0),
}
ROWS = {
    "nonzero": (lambda m, x: m.nonzero()[:, 0], lambda m, x: m.nonzero()[0]),
    "masked_select": (lambda m, x: x.masked_select(m), lambda m, x: x[m]),
    "index": (lambda m, x: x[m], lambda m, x: x[m]),
    "sort": (lambda m, x: m.sort(stable=True)[1], lambda m, x: m.argsort(kind="stable")),
    "unique": (
        lambda m, x: m.unique(return_counts=True)[1],
        lambda m, x: np.unique(m, return_counts=True)[1],
    ),
    "masked_scatter": (
        lambda m, x: x.masked_scatter(m, x[: int(m.sum())]),
        lambda m, x: np.where(m, x[np.maximum(m.cumsum() - 1, 0)], x),
    ),
    "scatter_add": (
        lambda m, x: torch.zeros(2, dtype=torch.bool).scatter_add(0, m.long() * 0, m),
        lambda m, x: np.array([True, False]),
    ),
    "tolist": (lambda m, x: torch.tensor(m.tolist()), lambda m, x: m),
    "item": (lambda m, x: torch.tensor([k.item() for k in m]), lambda m, x: m),
}  # fmt: skip


def odd():
    return torch.from_numpy(BYTES.copy().view(bool))


def same(got, want):
    assert np.array_equal(got.to(torch.complex128).numpy(), np.asarray(want, np.complex128))


@pytest.mark.parametrize("name", [*ARRAYS, *ROWS])
def test_eager(name):
    f, reference = (ARRAYS | ROWS)[name]
    same(f(odd(), torch.from_numpy(X)), reference(TRUTHS, X))


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled(dynamic):
    def f(m, x):
        return tuple(f(m, x) for f, _ in ARRAYS.values())

    got = torch.compile(f, dynamic=dynamic)(odd(), torch.from_numpy(X))
    for y, (_, reference) in zip(got, ARRAYS.values(), strict=True):
        same(y, reference(TRUTHS, X))


@pytest.mark.parametrize("way", [lambda f: f, torch.compile])
def test_changed_in_place(way):
    m = odd()
    before = m.clone()
    way(lambda m: m.logical_not_())(m)
    same(m, ~TRUTHS)
    way(lambda m, k: m.logical_xor_(k))(m, before)
    assert m.all() and np.array_equal(m.view(torch.uint8).numpy(), np.ones(len(BYTES)))


def test_attention():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 8, 4, dtype=torch.float64)
    masks = [torch.from_numpy(b[:64].reshape(8, 8)) for b in (BYTES.view(bool), TRUTHS)]
    for m in masks:
        m[:, 1] = True  # no row without keys
    one, other = (torch.nn.functional.scaled_dot_product_attention(q, k, v, m) for m in masks)
    assert torch.equal(one, other)


@pytest.mark.parametrize(
    "enter",
    [
        lambda b: torch.from_numpy(b).view(torch.bool),
        lambda b: torch.frombuffer(b, dtype=torch.bool),
        lambda b: torch.asarray(b.view(bool)),
        lambda b: torch.from_dlpack(b.view(bool)),
        lambda b: torch.from_numpy(b.view(np.float32)).view(torch.bool),
    ],
    ids=["view", "frombuffer", "asarray", "dlpack", "wider"],
)
def test_every_way_in(enter):
    m = enter(BYTES.copy())
    assert m.dtype is torch.bool and m.sum() == TRUTHS.sum() and m.tolist() == TRUTHS.tolist()
    assert "190" not in repr(m) and f"{bool(m[1])}" == "True"


def test_what_is_written_later_counts():
    bytes = np.zeros(64, np.uint8)
    m = torch.from_numpy(bytes.view(bool))
    bytes[5:9] = 190
    assert m.nonzero()[:, 0].tolist() == [5, 6, 7, 8]
    m.view(torch.uint8)[:] = 254
    assert m.sum() == 64


def test_counts_of_every_byte_and_length():
    for n in (*range(40), 255 * 8, 255 * 8 + 7, 5000):
        bytes = np.arange(n).astype(np.uint8)
        m = torch.from_numpy(bytes.view(bool))
        assert m.nonzero()[:, 0].tolist() == bytes.nonzero()[0].tolist()


def test_outer_products_of_truths_do_not_wrap_around():
    """Bytes of 16 multiply to 256, and 255 and 1 add up to it."""
    sixteens = torch.full((3,), 16, dtype=torch.uint8).view(torch.bool)
    assert torch.addr(torch.zeros(3, 3, dtype=torch.bool), sixteens, sixteens).all()
    most = torch.full((3, 3), 255, dtype=torch.uint8).view(torch.bool)
    ones = torch.ones(3, dtype=torch.bool)
    assert torch.addr(most, ones, ones).all() and torch.addr(most, ones, ones, alpha=-1).all()
    assert not torch.addr(most, ones, ones, beta=0, alpha=0).any()
    with pytest.raises(RuntimeError, match="must not be a floating point number"):
        torch.addr(most, ones, ones, beta=1.5)
