"""Activations and losses against NumPy."""

import math

import numpy as np
import pytest
from scipy import special

import flambeau as fb
from flambeau import nn

X = np.linspace(-4, 4, 17)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ELU = np.where(X > 0, X, np.exp(np.minimum(X, 0)) - 1)


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (nn.ReLU(), np.maximum(X, 0)),
        (nn.ReLU6(), np.clip(X, 0, 6)),
        (nn.Hardtanh(-1, 2), np.clip(X, -1, 2)),
        (nn.Sigmoid(), sigmoid(X)),
        (nn.Tanh(), np.tanh(X)),
        (nn.SiLU(), X * sigmoid(X)),
        (nn.Mish(), X * np.tanh(np.log1p(np.exp(X)))),
        (nn.Hardsigmoid(), np.clip(X / 6 + 0.5, 0, 1)),
        (nn.Hardswish(), X * np.clip(X / 6 + 0.5, 0, 1)),
        (nn.ELU(), ELU),
        (nn.CELU(2.0), np.where(X > 0, X, 2 * (np.exp(np.minimum(X, 0) / 2) - 1))),
        (
            nn.SELU(),
            1.0507009873554805 * np.where(X > 0, X, 1.6732632423543772 * ELU),
        ),
        (nn.GELU(), X * special.ndtr(X)),
        (
            nn.GELU("tanh"),
            0.5 * X * (1 + np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3))),
        ),
        (nn.LeakyReLU(0.2), np.where(X > 0, X, 0.2 * X)),
        (nn.LogSigmoid(), np.log(sigmoid(X))),
        (nn.Softplus(2.0), np.log1p(np.exp(2 * X)) / 2),
        (nn.Hardshrink(1.0), np.where(np.abs(X) > 1, X, 0)),
        (nn.Softshrink(1.0), np.sign(X) * np.maximum(np.abs(X) - 1, 0)),
        (nn.Softsign(), X / (1 + np.abs(X))),
        (nn.Tanhshrink(), X - np.tanh(X)),
        (nn.Threshold(1.0, 9.0), np.where(X > 1, X, 9)),
        (nn.RReLU(0.1, 0.3).eval(), np.where(X > 0, X, 0.2 * X)),
        (nn.Softmax(0), special.softmax(X)),
        (nn.Softmin(0), special.softmax(-X)),
        (nn.LogSoftmax(0), special.log_softmax(X)),
    ],
    ids=lambda v: type(v).__name__ if isinstance(v, nn.Module) else "",
)
def test_activation(layer, expected):
    x = fb.tensor(X.tolist(), dtype=fb.float64)
    np.testing.assert_allclose(layer(x).numpy(), expected, rtol=1e-6, atol=1e-7)


def test_activations_of_several_channels():
    x = fb.tensor([[[-1.0, 2.0], [-3.0, 4.0]]])
    prelu = nn.PReLU(2, init=0.5)
    assert prelu(x).tolist() == [[[-0.5, 2.0], [-1.5, 4.0]]]
    np.testing.assert_allclose(
        nn.GLU(1)(x).numpy(), [[[-1 * sigmoid(-3.0), 2 * sigmoid(4.0)]]], rtol=1e-6
    )
    image = fb.ones(1, 4, 2, 2)
    assert nn.Softmax2d()(image).flatten().tolist() == [0.25] * 16
    with pytest.raises(ValueError, match="expected input to be 3D or 4D"):
        nn.Softmax2d()(fb.ones(2, 2))
    with pytest.raises(AssertionError, match="must be greater than min_val"):
        nn.Hardtanh(1, 0)


def test_inplace():
    x = fb.tensor([-1.0, 1.0])
    assert nn.ReLU(inplace=True)(x) is x and x.tolist() == [0, 1]


A = np.array([[0.3, -1.2, 2.0], [1.5, 0.1, -0.4]])
B = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
CLASSES = np.array([2, 0])
LOGP = special.log_softmax(A, axis=1)
SIGN = 2 * B - 1


def bce(p, t):
    return -(t * np.log(p) + (1 - t) * np.log(1 - p))


def huber(d, beta):
    d = np.abs(d)
    return np.where(d < beta, 0.5 * d * d, beta * (d - 0.5 * beta))


def hinge(score, target, margin=1.0):
    """Mean over the classes of max(0, margin - s[y] + s[i]) for i != y."""
    n = len(score)
    terms = np.maximum(0, margin - score[np.arange(n), target][:, None] + score)
    terms[np.arange(n), target] = 0
    return terms.sum(1) / score.shape[1]


@pytest.mark.parametrize(
    ("loss", "args", "terms"),
    [
        (nn.L1Loss, (A, B), np.abs(A - B)),
        (nn.MSELoss, (A, B), (A - B) ** 2),
        (nn.SmoothL1Loss, (A, B), huber(A - B, 1.0)),
        (nn.HuberLoss, (A, B), huber(A - B, 1.0)),
        (nn.BCELoss, (sigmoid(A), B), bce(sigmoid(A), B)),
        (nn.BCEWithLogitsLoss, (A, B), bce(sigmoid(A), B)),
        (nn.NLLLoss, (LOGP, CLASSES), -LOGP[np.arange(2), CLASSES]),
        (nn.CrossEntropyLoss, (A, CLASSES), -LOGP[np.arange(2), CLASSES]),
        (nn.PoissonNLLLoss, (A, B), np.exp(A) - B * A),
        (nn.KLDivLoss, (A, B + 0.5), (B + 0.5) * (np.log(B + 0.5) - A)),
        (nn.SoftMarginLoss, (A, SIGN), np.log1p(np.exp(-SIGN * A))),
        (nn.HingeEmbeddingLoss, (A, SIGN), np.where(B > 0, A, np.maximum(0, 1 - A))),
        (nn.MultiLabelSoftMarginLoss, (A, B), bce(sigmoid(A), B).mean(1)),
        (nn.MultiMarginLoss, (A, CLASSES), hinge(A, CLASSES)),
        (nn.MarginRankingLoss, (A, B, SIGN), np.maximum(0, -SIGN * (A - B))),
        (
            nn.GaussianNLLLoss,
            (A, B, np.full_like(A, 0.5)),
            0.5 * (math.log(0.5) + (A - B) ** 2 / 0.5),
        ),
    ],
    ids=lambda v: v.__name__ if isinstance(v, type) else "",
)
@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides:UserWarning")
def test_loss(loss, args, terms):
    tensors = [fb.tensor(a.tolist(), dtype=None if a is CLASSES else fb.float64) for a in args]
    for reduction, expected in (("none", terms), ("sum", terms.sum()), ("mean", terms.mean())):
        got = loss(reduction=reduction)(*tensors)
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6, atol=1e-9)


def test_class_weights_and_ignored_targets():
    weight = np.array([1.0, 2.0, 3.0])
    loss = nn.CrossEntropyLoss(weight=fb.tensor(weight.tolist(), dtype=fb.float64), ignore_index=0)
    assert list(loss.state_dict()) == ["weight"]
    got = loss(fb.tensor(A.tolist(), dtype=fb.float64), fb.tensor(CLASSES.tolist()))
    np.testing.assert_allclose(got.item(), -LOGP[0, 2], rtol=1e-9)


def test_triplets_and_cosines():
    a, p, n = fb.tensor([[0.0, 0.0]]), fb.tensor([[3.0, 4.0]]), fb.tensor([[0.0, 1.0]])
    for loss in (nn.TripletMarginLoss(margin=2.0), nn.TripletMarginWithDistanceLoss(margin=2.0)):
        assert loss(a, p, n).item() == pytest.approx(6, abs=1e-4)
        with pytest.raises(ValueError, match="expected margin to be greater than 0"):
            type(loss)(margin=-1.0)
    one = nn.CosineEmbeddingLoss(margin=0.5)
    assert one(p, p, fb.tensor([1])).item() == pytest.approx(0, abs=1e-6)
    assert one(p, p, fb.tensor([-1])).item() == pytest.approx(0.5, abs=1e-6)


def test_ctc_of_one_step():
    log_probs = fb.log_softmax(fb.tensor([[[1.0, 2.0, 3.0]]]), dim=2)
    loss = nn.CTCLoss()(log_probs, fb.tensor([[2]]), fb.tensor([1]), fb.tensor([1]))
    assert loss.item() == pytest.approx(-log_probs[0, 0, 2].item())


def test_linear_cross_entropy():
    fb.manual_seed(0)
    loss = nn.LinearCrossEntropyLoss(4, 3)
    x, target = fb.randn(5, 4), fb.tensor([0, 1, 2, 1, 0])
    logits = x.numpy() @ loss.linear.weight.detach().numpy().T
    expected = -special.log_softmax(logits, axis=1)[np.arange(5), target.numpy()].mean()
    assert loss(x, target).item() == pytest.approx(expected, rel=1e-5)
    with pytest.raises(RuntimeError, match="label_smoothing to be in range"):
        nn.LinearCrossEntropyLoss(4, 3, label_smoothing=2.0)
    with pytest.raises(ValueError, match="invalid acc_policy"):
        nn.LinearCrossEntropyOptions(acc_policy="x")


def test_old_flags_of_reduction():
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        assert nn.MSELoss(size_average=False).reduction == "sum"
    with pytest.raises(TypeError, match="delta must be a float or int"):
        nn.HuberLoss(delta="a")
    with pytest.raises(ValueError, match="only p == 1 and p == 2 supported"):
        nn.MultiMarginLoss(p=3)


def test_adaptive_log_softmax():
    fb.manual_seed(0)
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0)
    x, target = fb.randn(6, 8), fb.tensor([0, 2, 3, 6, 7, 11])
    log_prob = layer.log_prob(x)
    np.testing.assert_allclose(log_prob.exp().sum(1).detach().numpy(), np.ones(6), rtol=1e-5)
    output, loss = layer(x, target)
    picked = log_prob[fb.arange(6), target]
    np.testing.assert_allclose(output.detach().numpy(), picked.detach().numpy(), rtol=1e-5)
    assert loss.item() == pytest.approx(-picked.mean().item(), rel=1e-5)
    assert fb.equal(layer.predict(x), log_prob.argmax(1))
    single = layer(x[0], target[0])
    assert single.output.item() == pytest.approx(picked[0].item(), rel=1e-5)
    with pytest.raises(RuntimeError, match=r"Target values should be in \[0, 11\]"):
        layer(x, target + 5)
    with pytest.raises(ValueError, match="sorted in an increasing order"):
        nn.AdaptiveLogSoftmaxWithLoss(8, 12, [7, 3])


@pytest.mark.parametrize("dtype", [fb.complex64, fb.complex128])
def test_of_complex_numbers(dtype):
    z = np.array([1 + 2j, -3j, 0.5, -1 - 0.25j])
    x = fb.tensor(z, dtype=dtype)
    close = {"rtol": 0, "atol": 5e-7 if dtype == fb.complex64 else 1e-15}
    np.testing.assert_allclose(nn.functional.softsign(x).numpy(), z / (1 + abs(z)), **close)
    np.testing.assert_allclose(nn.functional.tanhshrink(x).numpy(), z - np.tanh(z), **close)
    assert nn.Softsign()(x).dtype == dtype
    if dtype == fb.complex128:
        for f in (nn.functional.softsign, nn.functional.tanhshrink):
            assert fb.autograd.gradcheck(f, (x.requires_grad_(),))
