"""Look-ups in tables and distances of rows against NumPy; derivatives by finite differences."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as fb
import flambeau.nn.functional as F

RNG = np.random.default_rng(3)


def t(x, grad=False):
    out = fb.from_numpy(np.array(x, order="C"))
    return out.requires_grad_() if grad else out


def table(rows=7, width=5):
    return RNG.standard_normal((rows, width))


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0,), (3, 0)])
@pytest.mark.parametrize("index", ["int64", "int32"])
def test_embedding(shape, index):
    w, i = table(), RNG.integers(0, 7, shape).astype(index)
    np.testing.assert_array_equal(F.embedding(t(np.array(i)), t(w)).numpy(), w[i])


def test_large_table_keeps_rows():
    w, i = RNG.random((1000, 256)).astype("float32"), RNG.integers(0, 1000, 40000)
    np.testing.assert_array_equal(F.embedding(t(i), t(w)).numpy(), w[i])


@pytest.mark.parametrize("padding", [None, 2, -1])
@pytest.mark.parametrize("by_frequency", [False, True])
def test_embedding_gradient(padding, by_frequency):
    w, i, g = t(table(), True), RNG.integers(0, 7, (6, 4)), RNG.standard_normal((6, 4, 5))
    F.embedding(t(i), w, padding_idx=padding, scale_grad_by_freq=by_frequency).backward(t(g))
    want = np.zeros((7, 5))
    counts = np.bincount(i.ravel(), minlength=7)
    for at, row in zip(i.ravel(), g.reshape(-1, 5), strict=True):
        if padding is None or at != padding % 7:
            want[at] += row / (counts[at] if by_frequency else 1)
    np.testing.assert_allclose(w.grad.numpy(), want, rtol=1e-12)


def test_embedding_second_derivative():
    w, i = t(table(), True), t(RNG.integers(0, 7, (2, 3)))
    assert fb.autograd.gradgradcheck(lambda a: F.embedding(i, a, padding_idx=1).tanh(), (w,))


@pytest.mark.parametrize("norm_type", [1.0, 2.0, np.inf])
def test_max_norm_scales_rows_in_place(norm_type):
    w = table()
    weight = t(w.copy())
    F.embedding(fb.tensor([1, 1, 3]), weight, max_norm=0.5, norm_type=norm_type)
    norms = np.linalg.norm(w, norm_type, axis=1)
    for row in range(7):
        scale = 0.5 / (norms[row] + 1e-7) if row in (1, 3) and norms[row] > 0.5 else 1
        np.testing.assert_allclose(weight[row].numpy(), w[row] * scale, rtol=1e-12)


def test_embedding_errors():
    with pytest.raises(IndexError, match="index out of range in self"):
        F.embedding(fb.tensor([7]), t(table()))
    with pytest.raises(IndexError, match="index out of range in self"):
        F.embedding(fb.tensor([-1]), t(table()))
    with pytest.raises(RuntimeError, match="scalar types: Long, Int"):
        F.embedding(fb.tensor([0.0]), t(table()))
    with pytest.raises(RuntimeError, match="'weight' must be 2-D"):
        F.embedding(fb.tensor([0]), fb.ones(3))
    with pytest.raises(AssertionError, match="Padding_idx"):
        F.embedding(fb.tensor([0]), t(table()), padding_idx=7)
    sparse = F.embedding(fb.tensor([0]), t(table(), True), sparse=True)
    with pytest.raises(NotImplementedError, match="sparse gradients"):
        sparse.sum().backward()


# Bags -------------------------------------------------------------------------------------------


def bags(w, i, offsets, mode, padding=None, scale=None):
    ends = [*offsets[1:], len(i)]
    out = np.zeros((len(offsets), w.shape[1]))
    for b, (begin, end) in enumerate(zip(offsets, ends, strict=True)):
        used = [k for k in range(begin, end) if i[k] != padding]
        if used:
            rows = np.stack([w[i[k]] * (1 if scale is None else scale[k]) for k in used])
            out[b] = getattr(rows, mode)(axis=0)
    return out


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2])
@pytest.mark.parametrize("last", [False, True])
def test_embedding_bag(mode, padding, last):
    w, i, offsets = table(), RNG.integers(0, 7, 12), [0, 3, 3, 8]
    given = fb.tensor([*offsets, 12] if last else offsets)

    def f(a):
        return F.embedding_bag(
            t(i), a, given, mode=mode, padding_idx=padding, include_last_offset=last
        )

    np.testing.assert_allclose(f(t(w)).numpy(), bags(w, i, offsets, mode, padding), rtol=1e-12)
    assert fb.autograd.gradcheck(f, (t(w, True),))


def test_bags_of_one_size_and_sample_weights():
    w, i, s = table(), RNG.integers(0, 7, (4, 3)), RNG.random((4, 3))
    np.testing.assert_allclose(F.embedding_bag(t(i), t(w)).numpy(), w[i].mean(1), rtol=1e-12)
    np.testing.assert_allclose(
        F.embedding_bag(t(i), t(w), per_sample_weights=t(s), mode="sum").numpy(),
        (w[i] * s[..., None]).sum(1),
        rtol=1e-12,
    )
    assert fb.autograd.gradcheck(
        lambda a, b: F.embedding_bag(t(i), a, per_sample_weights=b, mode="sum"),
        (t(w, True), t(s, True)),
    )


@pytest.mark.parametrize(
    ("index", "offsets", "error", "message"),
    [
        ([0, 9], [0], RuntimeError, "Index 1 of input takes value 9"),
        ([0, 1], [1], RuntimeError, r"offsets\[0\] has to be 0"),
        ([0, 1], [0, 3], RuntimeError, "can not be greater than input's length 2"),
        ([0, 1, 2], [0, 2, 1], RuntimeError, "must not decrease"),
        ([0, 1], [[0]], ValueError, "offsets has to be a 1D Tensor"),
    ],
)
def test_bag_errors(index, offsets, error, message):
    with pytest.raises(error, match=message):
        F.embedding_bag(fb.tensor(index), t(table()), fb.tensor(offsets))


# Indicators and distances -----------------------------------------------------------------------


def test_one_hot():
    i = RNG.integers(0, 4, (2, 3))
    np.testing.assert_array_equal(F.one_hot(t(i), 4).numpy(), np.eye(4, dtype=np.int64)[i])
    assert F.one_hot(fb.tensor([0, 2])).shape == (2, 3)
    for index, classes in (([0, 2], 2), ([0, -1], -1), ([], -1)):
        with pytest.raises(RuntimeError, match="[Cc]lass"):
            F.one_hot(fb.tensor(index, dtype=fb.int64), classes)


def test_cosine_similarity():
    a, b = RNG.standard_normal((3, 1, 5)), RNG.standard_normal((4, 5))
    want = (a * b).sum(2) / np.linalg.norm(a, axis=2) / np.linalg.norm(b, axis=1)
    np.testing.assert_allclose(F.cosine_similarity(t(a), t(b), dim=-1).numpy(), want, rtol=1e-12)
    assert fb.autograd.gradcheck(
        lambda x, y: F.cosine_similarity(x, y, dim=-1), (t(a, True), t(b, True))
    )
    zero = fb.zeros(1, 3, requires_grad=True)
    F.cosine_similarity(zero, fb.ones(1, 3)).sum().backward()
    assert not zero.grad.isnan().any()


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, np.inf])
def test_pairwise_distance(p):
    a, b = RNG.standard_normal((4, 5)), RNG.standard_normal((4, 5))
    want = np.linalg.norm(a - b + 1e-6, p, axis=1)
    np.testing.assert_allclose(F.pairwise_distance(t(a), t(b), p).numpy(), want, rtol=1e-12)
    assert F.pairwise_distance(t(a), t(b), p, keepdim=True).shape == (4, 1)
