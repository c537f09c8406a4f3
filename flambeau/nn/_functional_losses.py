"""Losses of `nn.functional`: the entries of the table with the arguments of early versions.

Owns `size_average` and `reduce`, the warnings about sizes that broadcast, and the losses that call
a Python function. The arithmetic is in the table (flambeau/ops/losses*.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

from flambeau import _C
from flambeau._C import nn_functional as _ops

from . import _reduction

Tensor = _C.Tensor

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "linear_cross_entropy",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


def _mode(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The name of the reduction, the two old flags and the old name of "mean" counted."""
    if size_average is not None or reduce is not None:
        return _reduction.legacy_get_string(size_average, reduce)
    if reduction == "elementwise_mean":
        _reduction.get_enum(reduction)
        return "mean"
    return reduction


def _same_sizes(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both in one shape, so that neither counts as a number beside the other in promotion."""
    if target.shape != input.shape:
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}). This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=3,
        )
        input, target = _C.broadcast_tensors([input, target])
    return input, target


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Squared difference of `input` and `target`, perhaps weighted."""
    mode = _mode(size_average, reduce, reduction)
    input, target = _same_sizes(input, target)
    return _ops.mse_loss(input, target, mode, weight)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Absolute difference of `input` and `target`, perhaps weighted."""
    mode = _mode(size_average, reduce, reduction)
    input, target = _same_sizes(input, target)
    return _ops.l1_loss(input, target, mode, weight)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Quadratic within `beta` of zero, then linear with slope one (Girshick, 2015)."""
    mode = _mode(size_average, reduce, reduction)
    input, target = _same_sizes(input, target)
    return _ops.smooth_l1_loss(input, target, mode, beta)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Quadratic within `delta` of zero, then linear with slope delta (Huber, 1964)."""
    mode = _mode(None, None, reduction)
    input, target = _same_sizes(input, target)
    return _ops.huber_loss(input, target, mode, delta, weight)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Cross entropy of probabilities `input` and `target`."""
    mode = _mode(size_average, reduce, reduction)
    return _ops.binary_cross_entropy(input, target, weight, mode)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Cross entropy of the logistic function of `input` and `target`."""
    mode = _mode(size_average, reduce, reduction)
    return _ops.binary_cross_entropy_with_logits(input, target, weight, mode, pos_weight)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Kullback-Leibler divergence of log-probabilities `input` from `target`."""
    mode = _mode(size_average, reduce, reduction)
    if mode == "mean" and size_average is None and reduce is None:
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next major "
            "release.",
            stacklevel=2,
        )
    return _ops.kl_div(input, target, mode, log_target)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-likelihood of counts under Poisson rates (or their logarithms)."""
    mode = _mode(size_average, reduce, reduction)
    return _ops.poisson_nll_loss(input, target, log_input, full, eps, mode)


def _differing(input: Tensor, var: Tensor) -> list[int]:
    """Sizes of `var` where they are not those of the input."""
    return [v for n, v in zip(input.shape, var.shape, strict=True) if n != v]


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-likelihood of `target` under normal distributions.

    Args:
        input: means.
        var: variances: of the shape of the input, with one dimension of 1 instead, without the last
            dimension, or one number. Values below `eps` count as `eps`, but their gradient is kept.
        full: adds the constant term.
    """
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * _C.ones_like(input)
    elif bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif input.ndim != var.ndim or _differing(input, var) != [1]:
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    raw = var.detach()
    var = var + (raw.clamp(min=eps) - raw)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.9189385332046727  # log(2 pi) / 2
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target input)) for targets 1 and -1."""
    return _ops.soft_margin_loss(input, target, _mode(size_average, reduce, reduction))


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Distances where the target is 1, what is missing to the margin where it is -1."""
    return _ops.hinge_embedding_loss(input, target, margin, _mode(size_average, reduce, reduction))


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """What is missing for `input1` to rank above (1) or below (-1) `input2` by the margin."""
    mode = _mode(size_average, reduce, reduction)
    return _ops.margin_ranking_loss(input1, input2, target, margin, mode)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cosine where the target is 1, the cosine beyond the margin where it is -1."""
    mode = _mode(size_average, reduce, reduction)
    return _ops.cosine_embedding_loss(input1, input2, target, margin, mode)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """What is missing for `positive` to be nearer to the anchor than `negative` by the margin."""
    mode = _mode(size_average, reduce, reduction)
    return _ops.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, mode)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """The same with any distance (default: the Euclidean one)."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative "
            f"{negative.ndim}D inputs"
        )
    distance = distance_function or _ops.pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = _C.minimum(far, distance(positive, negative))
    loss = (margin + near - far).clamp_min(0)
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-probability of the target class; see `NLLLoss`."""
    mode = _mode(size_average, reduce, reduction)
    return _ops.nll_loss(input, target, weight, ignore_index, mode)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of logits and classes or probabilities; see `CrossEntropyLoss`."""
    mode = _mode(size_average, reduce, reduction)
    return _ops.cross_entropy(input, target, weight, ignore_index, mode, label_smoothing)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: object = None,
) -> Tensor:
    """Cross entropy of the outputs of a linear layer; see `LinearCrossEntropyLoss`.

    `options` (how to split the work) may be given and change nothing: all logits exist at once.
    """
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    classes, features = linear_weight.shape[:-1], linear_weight.shape[-1]
    if input.shape[-1] != features:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {features}, respectively"
        )
    if input.ndim == 1 and len(classes) > 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} "
            f"requires batched input, (N, {features}), got unbatched input with shape ({features},)"
        )
    if linear_bias is not None and linear_bias.shape != classes:
        raise RuntimeError(
            f"expected linear_bias shape {tuple(classes)}, got {tuple(linear_bias.shape)}"
        )
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = _ops.linear(input, linear_weight.reshape(-1, features), bias)
    logits = logits.reshape(input.shape[:-1] + classes)
    ignored = -100 if ignore_index is None else ignore_index
    mode = _mode(None, None, reduction)
    return _ops.cross_entropy(logits, target, weight, ignored, mode, label_smoothing)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Hinge between the score of the target class and those of all others."""
    mode = _mode(size_average, reduce, reduction)
    return _ops.multi_margin_loss(input, target, p, margin, weight, mode)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Hinge between a sample's classes and the others; targets are filled up with -1."""
    return _ops.multilabel_margin_loss(input, target, _mode(size_average, reduce, reduction))


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Mean over the classes of the cross entropy of each score's logistic function."""
    mode = _mode(size_average, reduce, reduction)
    return _ops.multilabel_soft_margin_loss(input, target, weight, mode)


def _lengths(lengths: Tensor | Sequence[int], name: str) -> Sequence[int]:
    if not isinstance(lengths, Tensor):
        return lengths
    if lengths.is_floating_point() or lengths.is_complex():
        raise RuntimeError(f"{name} must be integral")
    return lengths.reshape(-1).tolist()


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification (Graves et al., 2006); see `CTCLoss`."""
    return _ops.ctc_loss(
        log_probs,
        targets,
        _lengths(input_lengths, "input_lengths"),
        _lengths(target_lengths, "target_lengths"),
        blank,
        _mode(None, None, reduction),
        zero_infinity,
    )
