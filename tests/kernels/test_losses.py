"""Losses against closed forms in NumPy and SciPy; derivatives against finite differences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import special

import flambeau as fb
import flambeau.nn.functional as F

RNG = np.random.default_rng(7)


def t(x, grad=False):
    out = fb.from_numpy(np.ascontiguousarray(x))
    return out.requires_grad_() if grad else out


def reduced(x: np.ndarray, reduction: str):
    return {"none": lambda: x, "mean": lambda: x.mean(), "sum": lambda: x.sum()}[reduction]()


POINTWISE = {
    "mse_loss": lambda x, y: (x - y) ** 2,
    "l1_loss": lambda x, y: np.abs(x - y),
    "smooth_l1_loss": lambda x, y: np.where(
        np.abs(x - y) < 1, 0.5 * (x - y) ** 2, np.abs(x - y) - 0.5
    ),
    "huber_loss": lambda x, y: special.huber(1.0, x - y),
    "binary_cross_entropy": lambda x, y: -(special.xlogy(y, x) + special.xlog1py(1 - y, -x)),
    "binary_cross_entropy_with_logits": lambda x, y: np.logaddexp(0, x) - x * y,
    "kl_div": lambda x, y: special.xlogy(y, y) - y * x,
    "poisson_nll_loss": lambda x, y: np.exp(x) - y * x,
    "soft_margin_loss": lambda x, y: np.logaddexp(0, -x * y),
    "hinge_embedding_loss": lambda x, y: np.where(
        y == 1, x, np.where(y == -1, np.maximum(0, 1 - x), x + np.maximum(0, 1 - x))
    ),
}


def pair(name):
    x, y = RNG.standard_normal((5, 4)) * 2, RNG.standard_normal((5, 4))
    if name in ("binary_cross_entropy", "kl_div", "binary_cross_entropy_with_logits"):
        y = special.expit(y)
    if name == "binary_cross_entropy":
        x = special.expit(x)
    if name in ("soft_margin_loss", "hinge_embedding_loss"):
        y = np.sign(y)
    return x, y


@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", POINTWISE)
def test_pointwise_losses(name, reduction):
    x, y = pair(name)
    got = getattr(F, name)(t(x), t(y), reduction=reduction)
    np.testing.assert_allclose(got.numpy(), reduced(POINTWISE[name](x, y), reduction), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize("name", POINTWISE)
def test_pointwise_gradients(name):
    x, y = pair(name)
    f = getattr(F, name)
    assert fb.autograd.gradcheck(lambda a: f(a, t(y)), (t(x, True),))
    if name != "hinge_embedding_loss":
        assert fb.autograd.gradgradcheck(lambda a: f(a, t(y)), (t(x, True),))


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
def test_weights(name):
    x, y, w = RNG.random((3, 4)), RNG.random((3, 4)), RNG.random((3, 4))
    terms = POINTWISE[name](x, y) * w
    f = getattr(F, name)
    np.testing.assert_allclose(f(t(x), t(y), weight=t(w)).item(), terms.sum() / w.sum())
    np.testing.assert_allclose(f(t(x), t(y), weight=t(w), reduction="none").numpy(), terms)
    with pytest.raises(ValueError, match="Weights and input must have the same size"):
        f(t(x), t(y), weight=t(w[0]))


def test_beta_and_delta():
    x, y = RNG.standard_normal(20) * 3, RNG.standard_normal(20)
    d = np.abs(x - y)
    np.testing.assert_allclose(
        F.smooth_l1_loss(t(x), t(y), beta=2.0, reduction="none").numpy(),
        np.where(d < 2, d * d / 4, d - 1),
    )
    np.testing.assert_allclose(F.smooth_l1_loss(t(x), t(y), beta=0.0).item(), d.mean())
    np.testing.assert_allclose(
        F.huber_loss(t(x), t(y), delta=0.5, reduction="none").numpy(), special.huber(0.5, x - y)
    )


def test_pos_weight():
    x, y, w = RNG.standard_normal((4, 3)), RNG.random((4, 3)), RNG.random(3) + 0.5
    want = -(w * y * np.log(special.expit(x)) + (1 - y) * np.log(special.expit(-x)))
    got = F.binary_cross_entropy_with_logits(t(x), t(y), pos_weight=t(w), reduction="none")
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)


def test_large_logits_stay_finite():
    x = fb.tensor([1e4, -1e4])
    assert F.binary_cross_entropy_with_logits(x, fb.tensor([0.0, 1.0])).item() == 1e4
    assert F.binary_cross_entropy(fb.zeros(1), fb.ones(1)).item() == 100


def test_kl_div_forms():
    p = special.softmax(RNG.standard_normal((3, 5)), axis=1)
    q = special.softmax(RNG.standard_normal((3, 5)), axis=1)
    want = special.rel_entr(p, q).sum()
    got = F.kl_div(t(np.log(q)), t(p), reduction="batchmean").item()
    np.testing.assert_allclose(got, want / 3)
    got = F.kl_div(t(np.log(q)), t(np.log(p)), reduction="sum", log_target=True).item()
    np.testing.assert_allclose(got, want)


def test_poisson_full_and_rates():
    x, y = RNG.random(6) + 0.5, np.array([0.0, 1, 2, 3, 10, 100])
    z = np.maximum(y, 1)
    stirling = np.where(y > 1, z * np.log(z) - z + 0.5 * np.log(2 * np.pi * z), 0)
    got = F.poisson_nll_loss(t(x), t(y), log_input=False, full=True, reduction="none")
    np.testing.assert_allclose(got.numpy(), x - y * np.log(x + 1e-8) + stirling, rtol=1e-12)


def test_gaussian():
    x, y, v = RNG.standard_normal((3, 4)), RNG.standard_normal((3, 4)), RNG.random((3, 1)) + 0.1
    want = 0.5 * (np.log(v) + (x - y) ** 2 / v) + 0.5 * math.log(2 * math.pi)
    got = F.gaussian_nll_loss(t(x), t(y), t(v), full=True, reduction="none")
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    small = fb.zeros(1, requires_grad=True)
    F.gaussian_nll_loss(fb.zeros(1), fb.ones(1), small, eps=0.5).backward()
    np.testing.assert_allclose(small.grad.item(), 0.5 * (1 / 0.5 - 1 / 0.25), rtol=1e-5)
    with pytest.raises(ValueError, match="negative"):
        F.gaussian_nll_loss(t(x), t(y), t(-v))


# Distances --------------------------------------------------------------------------------------


def test_ranking_cosine_triplet():
    a, b, c = (RNG.standard_normal((4, 6)) for _ in range(3))
    s = np.sign(RNG.standard_normal(4))
    got = F.margin_ranking_loss(t(a[:, 0]), t(b[:, 0]), t(s), margin=0.3)
    want = np.maximum(0, -s * (a[:, 0] - b[:, 0]) + 0.3).mean()
    np.testing.assert_allclose(got.item(), want)
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    got = F.cosine_embedding_loss(t(a), t(b), t(s), margin=0.1, reduction="none")
    want = np.where(s == 1, 1 - cosine, np.maximum(0, cosine - 0.1))
    np.testing.assert_allclose(got.numpy(), want)

    def distance(u, v):
        return np.linalg.norm(u - v + 1e-6, axis=1)

    want = np.maximum(0, 1 + distance(a, b) - np.minimum(distance(a, c), distance(b, c)))
    got = F.triplet_margin_loss(t(a), t(b), t(c), swap=True, reduction="none")
    np.testing.assert_allclose(got.numpy(), want)
    got = F.triplet_margin_with_distance_loss(t(a), t(b), t(c), swap=True, reduction="none")
    np.testing.assert_allclose(got.numpy(), want)


# Classes ----------------------------------------------------------------------------------------


def log_softmax(x, axis=1):
    return x - special.logsumexp(x, axis=axis, keepdims=True)


def smoothed(x, y, w, ignore, smoothing, reduction):
    """Cross entropy from the definition: rows of (N, C) logits, one class each."""
    n, c = x.shape
    lp = log_softmax(x)
    w = np.ones(c) if w is None else w
    terms, weights = np.zeros(n), np.zeros(n)
    for i in range(n):
        if y[i] == ignore:
            continue
        q = np.full(c, smoothing / c) * w
        q[y[i]] += (1 - smoothing) * w[y[i]]
        terms[i], weights[i] = -(q * lp[i]).sum(), w[y[i]]
    if reduction == "none":
        return terms
    return terms.sum() / (weights.sum() if reduction == "mean" else 1)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("ignore", [-100, 2])
def test_cross_entropy(reduction, weighted, smoothing, ignore):
    x, y = RNG.standard_normal((9, 5)), RNG.integers(0, 5, 9)
    y[0] = 2
    w = RNG.random(5) + 0.2 if weighted else None
    options = {
        "weight": None if w is None else t(w),
        "ignore_index": ignore,
        "reduction": reduction,
        "label_smoothing": smoothing,
    }
    got = F.cross_entropy(t(x), t(y), **options)
    want = smoothed(x, y, w, ignore, smoothing, reduction)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    leaf = t(x, True)
    assert fb.autograd.gradcheck(lambda a: F.cross_entropy(a, t(y), **options), (leaf,))
    assert fb.autograd.gradgradcheck(lambda a: F.cross_entropy(a, t(y), **options), (leaf,))


@pytest.mark.parametrize("shape", [(4, 3, 5), (2, 3, 4, 5), (2, 3, 2, 2, 2)])
@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_cross_entropy_of_images(shape, reduction):
    x = RNG.standard_normal(shape)
    y = RNG.integers(0, 3, (shape[0], *shape[2:]))
    rows = np.moveaxis(x, 1, -1).reshape(-1, 3)
    want = smoothed(rows, y.reshape(-1), None, -100, 0.0, reduction)
    got = F.cross_entropy(t(x), t(y), reduction=reduction)
    np.testing.assert_allclose(got.numpy(), want.reshape(y.shape) if reduction == "none" else want)
    nll = F.nll_loss(t(log_softmax(x)), t(y), reduction=reduction)
    np.testing.assert_allclose(nll.numpy(), got.numpy(), rtol=1e-12)


def test_cross_entropy_of_many_classes_in_float():
    x = (RNG.standard_normal((8, 20000)) * 5).astype("float32")
    y = RNG.integers(0, 20000, 8)
    leaf = t(x, True)
    loss = F.cross_entropy(leaf, t(y))
    loss.backward()
    np.testing.assert_allclose(
        loss.item(), smoothed(x.astype(float), y, None, -1, 0, "mean"), rtol=1e-6
    )
    p = special.softmax(x.astype(float), axis=1)
    p[np.arange(8), y] -= 1
    np.testing.assert_allclose(leaf.grad.numpy(), p / 8, atol=1e-7)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_cross_entropy_of_half_formats(name):
    x = t(RNG.standard_normal((6, 10)).astype("float32")).to(getattr(fb, name)).requires_grad_()
    loss = F.cross_entropy(x, fb.arange(6))
    loss.backward()
    full = x.detach().float().requires_grad_()
    F.cross_entropy(full, fb.arange(6)).backward()
    assert loss.dtype == x.dtype and x.grad.dtype == x.dtype
    np.testing.assert_allclose(x.grad.float().numpy(), full.grad.numpy(), rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_cross_entropy_of_probabilities(smoothing):
    x, w = RNG.standard_normal((4, 3, 2)), RNG.random(3)
    p = special.softmax(RNG.standard_normal((4, 3, 2)), axis=1)
    q = p * (1 - smoothing) + smoothing / 3
    terms = -(q * log_softmax(x) * w[:, None]).sum(1)
    got = F.cross_entropy(t(x), t(p), weight=t(w), label_smoothing=smoothing)
    np.testing.assert_allclose(got.item(), terms.mean())
    got = F.cross_entropy(t(x), t(p), weight=t(w), label_smoothing=smoothing, reduction="none")
    np.testing.assert_allclose(got.numpy(), terms)


def test_nothing_to_average_is_nan():
    assert math.isnan(F.cross_entropy(fb.zeros(2, 3), fb.tensor([-100, -100])).item())
    assert math.isnan(F.nll_loss(fb.zeros(0, 3), fb.zeros(0, dtype=fb.int64)).item())
    assert F.cross_entropy(fb.zeros(0, 3), fb.zeros(0, dtype=fb.int64), reduction="sum").item() == 0


@pytest.mark.parametrize("f", [F.cross_entropy, F.nll_loss])
@pytest.mark.parametrize(
    ("x", "y", "error", "message"),
    [
        (fb.zeros(2, 3), [0, 5], IndexError, "Target 5 is out of bounds"),
        (fb.zeros(2, 3), [0, -1], IndexError, "Target -1 is out of bounds"),
        (fb.zeros(2, 3), [0], ValueError, r"batch_size \(2\) to match target batch_size \(1\)"),
        (fb.zeros(2, 3, 2), [[0], [1]], RuntimeError, r"Expected target size \[2, 2\]"),
        (fb.zeros(2, 3), [0.0, 1.0], RuntimeError, "Long or Byte, but got Float"),
    ],
)
def test_class_errors(f, x, y, error, message):
    with pytest.raises(error, match=message):
        f(x, fb.tensor(y))


def test_multi_margin_and_multilabel():
    x, y = RNG.standard_normal((4, 5)), RNG.integers(0, 5, 4)
    for p in (1, 2):
        want = np.zeros(4)
        for i, j in itertools.product(range(4), range(5)):
            if j != y[i]:
                want[i] += max(0, 1 - x[i, y[i]] + x[i, j]) ** p / 5
        got = F.multi_margin_loss(t(x), t(y), p=p, reduction="none")
        np.testing.assert_allclose(got.numpy(), want)
    labels = np.array([[1, 3, -1, 0, 2], [0, -1, -1, -1, -1], [-1] * 5, [4, 3, 2, 1, 0]])
    want = np.zeros(4)
    for i in range(4):
        own = list(itertools.takewhile(lambda c: c >= 0, labels[i]))
        for a in own:
            want[i] += sum(max(0, 1 - x[i, a] + x[i, j]) for j in range(5) if j not in own) / 5
    got = F.multilabel_margin_loss(t(x), t(labels), reduction="none")
    np.testing.assert_allclose(got.numpy(), want)
    z = RNG.random((4, 5))
    want = -(z * np.log(special.expit(x)) + (1 - z) * np.log(special.expit(-x))).mean(1)
    got = F.multilabel_soft_margin_loss(t(x), t(z), reduction="none")
    np.testing.assert_allclose(got.numpy(), want)


# Sequences --------------------------------------------------------------------------------------


def ctc_by_enumeration(lp: np.ndarray, target: list[int], blank: int) -> float:
    """Sum over all paths that collapse to the target."""
    total = 0.0
    for path in itertools.product(range(lp.shape[1]), repeat=lp.shape[0]):
        merged = [c for c, _ in itertools.groupby(path)]
        if [c for c in merged if c != blank] == target:
            total += math.exp(sum(lp[i, c] for i, c in enumerate(path)))
    return -math.log(total) if total else math.inf


@pytest.mark.parametrize("blank", [0, 2])
def test_ctc(blank):
    logits = RNG.standard_normal((5, 3, 4))
    lp = log_softmax(logits, axis=2)
    labels = [c for c in range(4) if c != blank]
    targets = [[labels[0], labels[1]], [labels[2], labels[2]], [labels[1]]]
    steps = [5, 4, 3]
    want = np.array([ctc_by_enumeration(lp[: steps[i], i], targets[i], blank) for i in range(3)])
    flat = fb.tensor([c for s in targets for c in s])
    got = F.ctc_loss(t(lp), flat, steps, [2, 2, 1], blank=blank, reduction="none")
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    padded = fb.tensor([targets[0], targets[1], [*targets[2], labels[0]]])
    mean = F.ctc_loss(t(lp), padded, fb.tensor(steps), fb.tensor([2, 2, 1]), blank=blank)
    np.testing.assert_allclose(mean.item(), (want / [2, 2, 1]).mean())

    def loss(x):
        return F.ctc_loss(fb.log_softmax(x, 2), padded, steps, [2, 2, 1], blank=blank)

    assert fb.autograd.gradcheck(loss, (t(logits, True),))


def test_ctc_that_does_not_fit():
    lp = fb.log_softmax(fb.zeros(1, 1, 3), 2).requires_grad_()
    target = fb.tensor([[1, 2]])
    assert F.ctc_loss(lp, target, (1,), (2,)).item() == math.inf
    zero = F.ctc_loss(lp, target, (1,), (2,), zero_infinity=True)
    zero.backward()
    assert zero.item() == 0 and not lp.grad.any()
    with pytest.raises(RuntimeError, match="blank must be in label range"):
        F.ctc_loss(lp, target, (1,), (2,), blank=3)


# Arguments --------------------------------------------------------------------------------------


def test_old_arguments_and_warnings():
    x, y = fb.ones(2, 3), fb.zeros(2, 3)
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert F.mse_loss(x, y, size_average=False).item() == 6
    with pytest.warns(UserWarning, match="reduction='none'"):
        assert F.l1_loss(x, y, reduce=False).shape == (2, 3)
    with pytest.warns(UserWarning, match="Using a target size"):
        F.mse_loss(x, fb.zeros(3))
    with pytest.raises(ValueError, match="is not a valid value for reduction"):
        F.mse_loss(x, y, reduction="average")


def test_range_of_probabilities():
    with pytest.raises(RuntimeError, match="input should be between 0 and 1"):
        F.binary_cross_entropy(fb.tensor([1.5]), fb.ones(1))
    with pytest.raises(RuntimeError, match="target should be between 0 and 1"):
        F.binary_cross_entropy(fb.tensor([0.5]), fb.tensor([2.0]))
    with pytest.raises(ValueError, match="different to the input size"):
        F.binary_cross_entropy(fb.zeros(2, 3), fb.zeros(3))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("offset", [0, 1e3, 3e4])
def test_cross_entropy_of_large_logits(offset, smoothing):
    x = (RNG.standard_normal((20, 50)) + offset).astype(np.float32)
    y = RNG.integers(0, 50, 20)
    leaf = t(x, grad=True)
    F.cross_entropy(leaf, t(y), label_smoothing=smoothing).backward()
    hit = (1 - smoothing) * np.eye(50)[y] + smoothing / 50
    expected = (special.softmax(x.astype(np.float64), 1) - hit) / 20
    np.testing.assert_allclose(leaf.grad.numpy(), expected, rtol=2e-6, atol=1e-9)
