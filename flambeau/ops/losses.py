"""Losses of two tensors of one shape: pointwise terms and how they are reduced.

`old_reduction` places the arguments of early versions (size_average, reduce). Losses over classes
are in losses_classes.py.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(namespaces=(), method=False)
def _reduced(loss: Tensor, reduction: str) -> Tensor:
    """The terms of a loss, their mean or their sum.

    >>> F.mse_loss(torch.ones(2), torch.zeros(2), reduction="sum")
    tensor(2.)
    """
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    check_value(reduction == "mean", f"{reduction} is not a valid value for reduction")
    return loss.mean()


@composite(namespaces=(), method=False)
def _weighted(loss: Tensor, input: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    """Like _reduced; the mean is that of the weights too.

    >>> F.mse_loss(torch.ones(2), torch.zeros(2), weight=torch.tensor([1.0, 3.0]))
    tensor(1.)
    """
    if weight is None:
        return _reduced(loss, reduction)
    check_value(weight.shape == input.shape, "Weights and input must have the same size.")
    if reduction == "mean":
        return (loss * weight).sum() / weight.sum()
    return _reduced(loss * weight, reduction)


@composite(namespaces=(), method=False)
def _same_sizes(input: Tensor, target: Tensor) -> Tuple[Tensor, Tensor]:
    """Both in one shape, so that neither counts as a number beside the other in promotion."""
    if target.shape == input.shape:
        return input, target
    warn(
        f"Using a target size (torch.Size({target.shape})) that is different to the input size "
        f"(torch.Size({input.shape})). This will likely lead to incorrect results due to "
        "broadcasting. Please ensure they have the same size."
    )
    shape = broadcast_shapes(input.shape, target.shape)
    return input.expand(shape), target.expand(shape)


@pointwise(dtypes="f", namespaces=(), method=False, inplace=False, out=False, label="mse_cpu")
def _squared_error(input: Tensor, target: Tensor) -> Tensor:
    """Terms of mse_loss.

    >>> F.mse_loss(torch.ones(2), torch.zeros(2), reduction="none")
    tensor([1., 1.])
    """
    d = input - target
    return d * d


@composite(namespaces=("nn.functional",), method=False, autocast="float32", old_reduction=(2, 3))
def mse_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None
) -> Tensor:
    """Squared difference of `input` and `target`: each one, their mean or their sum.

    >>> F.mse_loss(torch.ones(2), torch.zeros(2))
    tensor(1.)
    """
    x, y = _same_sizes(input, target)
    return _weighted(_squared_error(x, y), x, weight, reduction)


@composite(namespaces=("nn.functional",), method=False, autocast="float32", old_reduction=(2, 3))
def l1_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None
) -> Tensor:
    """Absolute difference.

    >>> F.l1_loss(torch.ones(2), torch.zeros(2))
    tensor(1.)
    """
    x, y = _same_sizes(input, target)
    return _weighted((x - y).abs(), x, weight, reduction)


@pointwise(dtypes="f", namespaces=(), method=False, inplace=False, out=False, label="smooth_l1_cpu")
def _smooth_l1(input: Tensor, target: Tensor, beta: float) -> Tensor:
    """Terms of smooth_l1_loss for beta > 0.

    >>> F.smooth_l1_loss(torch.tensor([3.0]), torch.zeros(1), reduction="none")
    tensor([2.5000])
    """
    d = s.abs(input - target)
    return 0.5 * d * d / beta if d < beta else d - 0.5 * beta


@_smooth_l1.vjp
def _(g, input, target, beta):
    d = input - target
    slope = s.minimum(s.maximum(d / beta, -1), 1)
    return g * slope, -g * slope


@composite(namespaces=("nn.functional",), method=False, autocast="float32", old_reduction=(2, 3))
def smooth_l1_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """Squared difference within `beta` of zero, absolute difference beyond (Girshick, 2015).

    >>> F.smooth_l1_loss(torch.tensor([3.0]), torch.zeros(1))
    tensor(2.5000)
    """
    check(beta >= 0.0, "smooth_l1_loss does not support negative values for beta.")
    x, y = _same_sizes(input, target)
    if beta == 0.0:
        return _reduced((x - y).abs(), reduction)
    return _reduced(_smooth_l1(x, y, beta), reduction)


@pointwise(dtypes="f", namespaces=(), method=False, inplace=False, out=False, label="huber_cpu")
def _huber(input: Tensor, target: Tensor, delta: float) -> Tensor:
    """Terms of huber_loss.

    >>> F.huber_loss(torch.tensor([3.0]), torch.zeros(1), reduction="none")
    tensor([2.5000])
    """
    d = s.abs(input - target)
    return 0.5 * d * d if d <= delta else delta * (d - 0.5 * delta)


@_huber.vjp
def _(g, input, target, delta):
    slope = s.minimum(s.maximum(input - target, -delta), delta)
    return g * slope, -g * slope


@composite(namespaces=("nn.functional",), method=False, autocast="float32", old_reduction=())
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Squared difference within `delta` of zero, a line of slope delta beyond (Huber, 1964).

    >>> F.huber_loss(torch.tensor([3.0]), torch.zeros(1))
    tensor(2.5000)
    """
    check(delta > 0.0, "huber_loss does not support non-positive values for delta.")
    x, y = _same_sizes(input, target)
    return _weighted(_huber(x, y.to(x.dtype), delta), x, weight, reduction)


@pointwise(
    dtypes="f", namespaces=(), method=False, inplace=False, out=False, label="binary_cross_entropy"
)
def _binary_cross_entropy(input: Tensor, target: Tensor) -> Tensor:
    """Terms of binary_cross_entropy.

    >>> F.binary_cross_entropy(torch.full((1,), 0.5), torch.ones(1), reduction="none")
    tensor([0.6931])
    """
    return (target - 1) * s.maximum(s.log1p(-input), -100) - target * s.maximum(s.log(input), -100)


@_binary_cross_entropy.vjp
def _(g, input, target):
    d_input = g * (input - target) / s.maximum((1 - input) * input, 1e-12)
    return d_input, g * (s.maximum(s.log1p(-input), -100) - s.maximum(s.log(input), -100))


@composite(namespaces=(), method=False)
def _check_unit_interval(x: Tensor, name: str) -> None:
    """Refuses values outside [0, 1], NaN too.

    >>> F.binary_cross_entropy(torch.ones(1), torch.ones(1))
    tensor(0.)
    """
    inside = truth(((x >= 0) & (x <= 1)).all(), True)
    check(inside, f"all elements of {name} should be between 0 and 1")


@composite(namespaces=("nn.functional",), method=False, autocast="float32", old_reduction=(3, 4))
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Cross entropy of probabilities in `input` and `target`; logarithms are at least -100.

    >>> F.binary_cross_entropy(torch.full((1,), 0.5), torch.ones(1))
    tensor(0.6931)
    """
    check_value(
        input.shape == target.shape,
        f"Using a target size (torch.Size({target.shape})) that is different to the input size "
        f"(torch.Size({input.shape})) is deprecated. Please ensure they have the same size.",
    )
    check(
        input.dtype == target.dtype,
        f"Found dtype {scalar_type_name(target.dtype)} but expected "
        f"{scalar_type_name(input.dtype)}",
    )
    _check_unit_interval(input, "input")
    _check_unit_interval(target, "target")
    loss = _binary_cross_entropy(input, target)
    if weight is not None:
        loss = loss * weight.expand(input.shape)
    return _reduced(loss, reduction)


@pointwise(
    dtypes="f", namespaces=(), method=False, inplace=False, out=False, label="log_sigmoid_cpu"
)
def _bce_with_logits(input: Tensor, target: Tensor) -> Tensor:
    """Terms of binary_cross_entropy_with_logits.

    >>> F.binary_cross_entropy_with_logits(torch.zeros(1), torch.ones(1), reduction="none")
    tensor([0.6931])
    """
    return (1 - target) * input - s.logsigmoid(input)


@pointwise(
    dtypes="f", namespaces=(), method=False, inplace=False, out=False, label="log_sigmoid_cpu"
)
def _bce_with_pos_weight(input: Tensor, target: Tensor, pos_weight: Tensor) -> Tensor:
    """The same, positive targets weighted.

    >>> F.binary_cross_entropy_with_logits(
    ...     torch.zeros(1), torch.ones(1), pos_weight=torch.full((1,), 2.0))
    tensor(1.3863)
    """
    return (1 - target) * input - (1 + (pos_weight - 1) * target) * s.logsigmoid(input)


@composite(
    namespaces=("nn.functional", "torch"), method=False, autocast="float32", old_reduction=(3, 4)
)
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Cross entropy of the logistic function of `input` and `target`, without overflow.

    >>> F.binary_cross_entropy_with_logits(torch.zeros(1), torch.ones(1))
    tensor(0.6931)
    """
    check_value(
        target.shape == input.shape,
        f"Target size (torch.Size({target.shape})) must be the same as input size "
        f"(torch.Size({input.shape}))",
    )
    check(
        target.dtype.is_floating_point or not input.dtype.is_floating_point,
        f"result type {scalar_type_name(input.dtype)} can't be cast to the desired output type "
        f"{scalar_type_name(target.dtype)}",
    )
    loss = (
        _bce_with_logits(input, target)
        if pos_weight is None
        else _bce_with_pos_weight(input, target, pos_weight)
    )
    if weight is not None:
        loss = loss * weight
    return _reduced(loss, reduction)


@pointwise(dtypes="f", namespaces=(), method=False, inplace=False, out=False, label="kl_div")
def _kl_div(input: Tensor, target: Tensor, log_target: bool) -> Tensor:
    """Terms of kl_div.

    >>> F.kl_div(torch.zeros(1), torch.ones(1), reduction="none")
    tensor([0.])
    """
    if log_target:
        return s.exp(target) * (target - input)
    return s.xlogy(target, target) - target * input


@composite(namespaces=("nn.functional",), method=False, autocast="float32", old_reduction=(2, 3))
def kl_div(
    input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """Kullback-Leibler divergence of log-probabilities `input` from `target`.

    Args:
        reduction: "batchmean" divides the sum by the size of the first dimension
        log_target: `target` holds log-probabilities too

    >>> F.kl_div(torch.zeros(1), torch.ones(1), reduction="sum")
    tensor(0.)
    """
    for t in [input, target]:
        check(not t.is_complex(), "kl_div: Complex inputs not supported.")
        check(t.is_floating_point(), "kl_div: Integral inputs not supported.")
    if reduction == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next major "
            "release."
        )
    loss = _kl_div(input, target, log_target)
    if reduction == "batchmean":
        return loss.sum() / input.size(0) if input.ndim > 0 else loss.sum()
    return _reduced(loss, reduction)


@pointwise(promote="float", dtypes="ifc", namespaces=(), method=False, inplace=False, out=False)
def _poisson_nll(input: Tensor, target: Tensor, log_input: bool, eps: float) -> Tensor:
    """Terms of poisson_nll_loss without the one of the target alone.

    >>> F.poisson_nll_loss(torch.zeros(1), torch.ones(1), reduction="none")
    tensor([1.])
    """
    if log_input:
        return s.exp(input) - target * input
    return input - target * s.log(input + eps)


@pointwise(promote="float", dtypes="if", namespaces=(), method=False, inplace=False, out=False)
def _stirling(target: Tensor) -> Tensor:
    """Stirling's approximation of log(target!); 0 up to 1.

    >>> F.poisson_nll_loss(torch.zeros(1), torch.full((1,), 2.0), full=True)
    tensor(1.6518)
    """
    safe = s.maximum(target, 1)
    value = safe * s.log(safe) - safe + 0.5 * s.log(6.283185307179586 * safe)
    return value if target > 1 else 0


@composite(namespaces=("nn.functional",), method=False, autocast="float32", old_reduction=(4, 6))
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-likelihood of counts `target` under Poisson rates.

    Args:
        log_input: `input` holds logarithms of the rates
        full: adds Stirling's approximation of the term that depends on the target alone
        eps: added to rates before their logarithm

    >>> F.poisson_nll_loss(torch.zeros(1), torch.ones(1))
    tensor(1.)
    """
    loss = _poisson_nll(input, target, log_input, eps)
    if full:
        loss = loss + _stirling(target)
    return _reduced(loss, reduction)


@pointwise(dtypes="f", namespaces=(), method=False, inplace=False, out=False)
def _at_least(input: Tensor, low: float) -> Tensor:
    """Input, or `low` where it is smaller; the gradient is that of the input everywhere.

    >>> F.gaussian_nll_loss(torch.zeros(1), torch.zeros(1), torch.zeros(1), eps=1.0)
    tensor(0.)
    """
    return s.maximum(input, low)


@_at_least.vjp
def _(g):
    return g


@composite(namespaces=("nn.functional",), method=False)
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | Number,
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

    >>> F.gaussian_nll_loss(torch.zeros(1), torch.ones(1), torch.ones(1))
    tensor(0.5000)
    """
    check_value(not truth((var < 0).any(), False), "var has negative entry/entries")
    v = var * ones_like(input) if is_wrapped(var) else var
    if v.shape != input.shape:
        if input.ndim > 0 and input.shape[:-1] == v.shape:
            v = v.unsqueeze(-1)
        else:
            check_value(input.ndim == v.ndim, "var is of incorrect size")
            differing = [m for n, m in zip(input.shape, v.shape) if n != m]
            check_value(len(differing) == 1 and differing[0] == 1, "var is of incorrect size")
    check_value(reduction in ("none", "mean", "sum"), f"{reduction} is not valid")
    v = _at_least(v, eps)
    loss = 0.5 * (v.log() + (input - target) ** 2 / v)
    if full:
        loss = loss + 0.9189385332046727  # log(2 pi) / 2
    return _reduced(loss, reduction)


@pointwise(dtypes="fc", namespaces=(), method=False, inplace=False, out=False)
def _soft_margin(input: Tensor, target: Tensor) -> Tensor:
    """Terms of soft_margin_loss.

    >>> F.soft_margin_loss(torch.zeros(1), torch.ones(1), reduction="none")
    tensor([0.6931])
    """
    return s.log1p(s.exp(-target * input))


@_soft_margin.vjp
def _(g, input, target):
    z = s.sigmoid(-target * input)
    return -g * target * z, -g * input * z


@composite(namespaces=("nn.functional",), method=False, autocast="float32", old_reduction=(2, 3))
def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target input)) for targets 1 and -1.

    >>> F.soft_margin_loss(torch.zeros(1), torch.ones(1))
    tensor(0.6931)
    """
    return _reduced(_soft_margin(input, target.to(input.dtype)), reduction)


@pointwise(dtypes="if", namespaces=(), method=False, inplace=False, out=False, label="clamp")
def _hinge_embedding(input: Tensor, target: Tensor, margin: float) -> Tensor:
    """Terms of hinge_embedding_loss.

    >>> F.hinge_embedding_loss(torch.ones(1), torch.ones(1), reduction="none")
    tensor([1.])
    """
    far = s.where(target == 1, 0, s.maximum(margin - input, 0))
    return far + s.where(target == -1, 0, input)


@_hinge_embedding.vjp
def _(g, input, target, margin):
    far = s.where((target != 1) & (input <= margin), g, 0)
    return s.where(target == -1, 0, g) - far, None


@composite(namespaces=("nn.functional",), method=False, autocast="float32", old_reduction=(3, 4))
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Distances where the target is 1, what is missing to the margin where it is -1.

    >>> F.hinge_embedding_loss(torch.ones(1), torch.ones(1))
    tensor(1.)
    """
    return _reduced(_hinge_embedding(input, target.to(input.dtype), margin), reduction)


@composite(namespaces=("nn.functional",), method=False, autocast="float32", old_reduction=(4, 5))
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """What is missing for `input1` to rank above (target 1) or below (-1) `input2` by the margin.

    >>> F.margin_ranking_loss(torch.zeros(1), torch.ones(1), torch.ones(1))
    tensor(1.)
    """
    check(
        input1.ndim == input2.ndim and input1.ndim == target.ndim,
        "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
        f"input1: torch.Size({input1.shape}), input2: torch.Size({input2.shape}), target: "
        f"torch.Size({target.shape}) ",
    )
    return _reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


@composite(namespaces=("nn.functional",), method=False, autocast="float32", old_reduction=(4, 5))
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """1 - cosine where the target is 1, the cosine beyond the margin where it is -1.

    >>> F.cosine_embedding_loss(torch.ones(1, 2), torch.ones(1, 2), -torch.ones(1))
    tensor(1.)
    """
    n = target.ndim
    check(n == 0 or n == 1, "0D or 1D target tensor expected, multi-target not supported")
    check(
        input1.ndim == n + 1 and input2.ndim == n + 1,
        f"{n}D target tensor expects {n + 1}D input tensors, but found inputs with sizes "
        f"{input1.shape} and {input2.shape}.",
    )
    product = (input1 * input2).sum([n])
    length1 = (input1 * input1).sum([n]) + 1e-12
    length2 = (input2 * input2).sum([n]) + 1e-12
    cosine = product / (length1 * length2).sqrt()
    near = where(target == 1, 1 - cosine, 0)
    far = where(target == -1, (cosine - margin).clamp_min(0), 0)
    return _reduced(near + far, reduction)


@composite(namespaces=("nn.functional",), method=False, autocast="float32", old_reduction=(7, 8))
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """What is missing for `positive` to be nearer to the anchor than `negative` by the margin.

    Args:
        p: of the distance
        swap: measures from the positive to the negative where that is nearer (Balntas et al., 2016)

    >>> F.triplet_margin_loss(torch.zeros(1, 2), torch.zeros(1, 2), torch.zeros(1, 2))
    tensor(1.)
    """
    check_value(margin > 0.0, f"margin must be greater than 0, got {margin}")
    check(
        anchor.ndim == positive.ndim and anchor.ndim == negative.ndim,
        "The anchor, positive, and negative tensors are expected to have the same number of "
        f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative "
        f"{negative.ndim}D inputs",
    )
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = minimum(far, pairwise_distance(positive, negative, p, eps))
    return _reduced((margin + near - far).clamp_min(0), reduction)
