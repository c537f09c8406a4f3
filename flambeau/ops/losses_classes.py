"""Losses over classes: cross entropy, negative log-likelihood, multi-class margins, CTC.

Kernels: csrc/kernels/losses.cpp. A cross entropy of logits is one fused kernel over rows, with a
fused backward kernel and a formula for derivatives of derivatives.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(namespaces=(), method=False)
def _reduction_number(reduction: str) -> int:
    """0, 1, 2 for none, mean, sum."""
    check_value(
        reduction in ("none", "mean", "sum"), f"{reduction} is not a valid value for reduction"
    )
    return 0 if reduction == "none" else 1 if reduction == "mean" else 2


@composite(namespaces=(), method=False)
def _check_classes(target: Tensor, weight: Tensor | None, classes: int, dtype: DType) -> None:
    """Refuses class indices of a wrong dtype and weights that do not fit."""
    check(
        target.dtype == int64 or target.dtype == uint8,
        f"expected target dtype to be Long or Byte, but got {scalar_type_name(target.dtype)}",
    )
    if weight is not None:
        check(
            weight.ndim == 1 and weight.numel() == classes,
            f"weight tensor should be defined either for all {classes} classes or no classes but "
            f"got weight tensor of shape: {weight.shape}",
        )
        check(
            weight.dtype == dtype,
            f"expected scalar type {scalar_type_name(dtype)} but found "
            f"{scalar_type_name(weight.dtype)}",
        )


@composite(namespaces=(), method=False)
def _check_targets(input: Tensor, target: Tensor) -> None:
    """Refuses class indices whose shape does not fit the scores (N, C, *) or (C)."""
    check_value(input.ndim > 0, f"Expected 1 or more dimensions (got {input.ndim})")
    if input.ndim == 1:
        check(target.ndim <= 1, "0D or 1D target tensor expected, multi-target not supported")
        check_value(
            target.ndim == 0 or target.size(0) == 1,
            f"For 1D input, 1D target must have size 1, but got target size: {target.numel()}",
        )
    else:
        n = target.size(0) if target.ndim > 0 else 0
        check_value(
            input.size(0) == n,
            f"Expected input batch_size ({input.size(0)}) to match target batch_size ({n}).",
        )
        if input.ndim == 2:
            check(target.ndim == 1, "0D or 1D target tensor expected, multi-target not supported")
        elif input.ndim == 4:
            check(
                target.ndim == 3,
                "only batches of spatial targets supported (3D tensors) but got targets of "
                f"dimension: {target.ndim}",
            )
        expected = [input.size(0)] + input.shape[2:]
        check(target.shape == expected, f"Expected target size {expected}, got {target.shape}")


# Negative log-likelihood ------------------------------------------------------------------------


@structured(kernel="nll_loss", namespaces=(), method=False, out=False)
def _nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> Tuple[Tensor, Tensor]:
    """Loss of (N, C, *) and (N, *), and the sum of the weights of its terms.

    >>> F.nll_loss(torch.tensor([[-1.0, -2.0]]), torch.tensor([1]))
    tensor(2.)
    """
    check_not_implemented(
        input.dtype.is_floating_point,
        f"\"nll_loss_out_frame\" not implemented for '{scalar_type_name(input.dtype)}'",
    )
    none: Ints = []
    return empty(target.shape if reduction == 0 else none, like=input), empty(none, like=input)


@_nll_loss.vjp
def _(g0, input, target, weight, reduction, ignore_index, result1):
    d_input = _nll_loss_backward(g0, input.shape, target, weight, reduction, ignore_index, result1)
    return d_input, None, None


@composite(namespaces=(), method=False)
def _target_weights(
    target: Tensor, weight: Tensor | None, weight_b: bool, ignore_index: int, dtype: DType
) -> Tensor:
    """The weight of each target of a batch, 0 for those that do not count.

    >>> torch.vmap(F.nll_loss)(torch.zeros(3, 2, 4), torch.ones(3, 2).long()).shape
    torch.Size([3])
    """
    valid = target != ignore_index
    if weight is None:
        return valid.to(dtype)
    at = where(valid, target, 0).to(int64)
    rows = at.reshape([at.size(0), -1])
    of_class = weight if weight_b else weight.unsqueeze(0).expand([at.size(0), weight.size(0)])
    return of_class.gather(1, rows).reshape(at.shape).to(dtype) * valid.to(dtype)


@_nll_loss.vmap
def _(input, target, weight, reduction, ignore_index, input_b, target_b, weight_b, batch):
    x = _folded(input, input_b, batch)
    t = _in_front(target, target_b, batch)
    own = _target_weights(t, weight, weight_b, ignore_index, input.dtype)
    each, _ = _nll_loss(x, _folded(t, True, batch), None, 0, ignore_index)
    terms = each.reshape(t.shape) * own
    total = own.reshape([batch, -1]).sum([1])
    if reduction == 0:
        return terms, total
    loss = terms.reshape([batch, -1]).sum([1])
    return (loss / total if reduction == 1 else loss), total


@structured(kernel="nll_loss_backward", namespaces=(), method=False, out=False)
def _nll_loss_backward(
    grad: Tensor,
    shape: Ints,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total: Tensor,
) -> Tensor:
    """Cotangent of the log-probabilities.

    >>> x = torch.zeros(1, 2, requires_grad=True)
    >>> F.nll_loss(x, torch.tensor([1])).backward()
    >>> x.grad
    tensor([[ 0., -1.]])
    """
    return empty(shape, like=grad)


@_nll_loss_backward.vjp
def _(g, target, weight, reduction, ignore_index):
    loss, _ = _nll_loss(g, target, weight, reduction, ignore_index)
    return loss, None, None, None


@_nll_loss_backward.vmap
def _(
    grad,
    shape,
    target,
    weight,
    reduction,
    ignore_index,
    total,
    grad_b,
    target_b,
    weight_b,
    total_b,
    batch,
):
    t = _in_front(target, target_b, batch)
    own = _target_weights(t, weight, weight_b, ignore_index, grad.dtype)
    g = _in_front(grad, grad_b, batch)
    if reduction == 1:
        g = g / total
    terms = _aligned(g, True, t.ndim - 1) * own
    size = [batch * shape[0]] + shape[1:]
    flat = terms.reshape([batch * shape[0]] + t.shape[2:])
    d = _nll_loss_backward(
        flat, size, _folded(t, True, batch), None, 0, ignore_index, ones([], dtype=grad.dtype)
    )
    return _unfolded(d, batch)


@composite(namespaces=("nn.functional",), method=False, autocast="float32", old_reduction=(3, 5))
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Minus the entry of `input` (N, C, *) at the class `target` (N, *), times its weight.

    Args:
        weight: one per class; "mean" divides by the sum of the weights that were used
        ignore_index: targets that do not count

    >>> F.nll_loss(torch.tensor([[-1.0, -2.0]]), torch.tensor([1]))
    tensor(2.)
    """
    mode = _reduction_number(reduction)
    _check_targets(input, target)
    if input.ndim == 1:
        _check_classes(target, weight, input.size(0), input.dtype)
        one, _ = _nll_loss(input.unsqueeze(0), target.reshape([1]), weight, mode, ignore_index)
        return one.reshape([]) if mode == 0 else one
    _check_classes(target, weight, input.size(1), input.dtype)
    loss, _ = _nll_loss(input, target, weight, mode, ignore_index)
    return loss


# Cross entropy ----------------------------------------------------------------------------------


@structured(kernel="cross_entropy_rows", namespaces=(), method=False, out=False)
def _cross_entropy_rows(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    label_smoothing: float,
) -> Tuple[Tensor, Tensor, Tensor]:
    """Cross entropy of logits (N, C) and classes (N), log-sum-exp of the rows, sum of the weights.

    >>> F.cross_entropy(torch.zeros(1, 2), torch.tensor([1]))
    tensor(0.6931)
    """
    check_not_implemented(
        input.dtype.is_floating_point,
        '"log_softmax_lastdim_kernel_impl" not implemented for '
        f"'{scalar_type_name(input.dtype)}'",
    )
    none: Ints = []
    kind = opmath(input.dtype)
    return (
        empty(target.shape if reduction == 0 else none, like=input),
        empty(target.shape, dtype=float64, like=input),
        empty(none, dtype=kind, like=input),
    )


@_cross_entropy_rows.decompose(outside="IndexError: Target {index} is out of bounds.")
def _(input, target, weight, reduction, ignore_index, label_smoothing):
    kind = opmath(input.dtype)
    x = input.to(kind)
    valid = target != ignore_index
    at = where(valid, target, 0).to(int64).unsqueeze(1)
    top = x.amax([1], True)
    rest = (x - top).exp().sum([1]).to(float64).log()
    lse = top.squeeze([1]).to(float64) + rest
    counted = valid.to(float64)
    if weight is not None:
        counted = where(valid, weight.to(kind).index_select(0, at.squeeze([1])).to(float64), 0)
    terms = (lse - x.gather(1, at).squeeze([1]).to(float64)) * counted
    if label_smoothing > 0.0:
        c = input.size(1)
        w = ones([c], dtype=kind) if weight is None else weight.to(kind)
        spread = w.sum().to(float64) * lse - (x * w).sum([1]).to(float64)
        terms = (1.0 - label_smoothing) * terms + label_smoothing / float(c) * spread
    terms = where(valid, terms, 0)
    total = counted.sum()
    loss = terms
    if reduction == 1:
        loss = terms.sum() / total
    if reduction == 2:
        loss = terms.sum()
    return loss.to(input.dtype), lse, total.to(kind)


@_cross_entropy_rows.vjp
def _(
    g0, input, target, weight, reduction, ignore_index, label_smoothing, result1, result2
):  # fmt: skip
    if not differentiated():
        d = _cross_entropy_backward(
            g0, input, target, weight, reduction, ignore_index, label_smoothing, result1, result2
        )
        return d, None, None
    kind = opmath(input.dtype)
    n = input.size(0)
    c = input.size(1)
    valid = target != ignore_index
    at = where(valid, target, 0).to(int64)
    counted = valid.to(kind)
    per_class = ones([c], dtype=kind) if weight is None else weight.to(kind)
    a = g0.to(kind).expand([n]) * counted
    if reduction == 1:
        a = a / result2
    share = label_smoothing / float(max(c, 1))
    hit = a * (1.0 - label_smoothing) * per_class.index_select(0, at)
    spread = a * share
    p = softmax(input.to(kind), 1)
    d = p * (hit + spread * per_class.sum()).unsqueeze(1) - spread.unsqueeze(1) * per_class
    d = d - zeros([n, c], dtype=kind).scatter(1, at.unsqueeze(1), hit.unsqueeze(1))
    return d.to(input.dtype), None, None


@_cross_entropy_rows.vmap
def _(
    input,
    target,
    weight,
    reduction,
    ignore_index,
    label_smoothing,
    input_b,
    target_b,
    weight_b,
    batch,
):
    t = _in_front(target, target_b, batch)
    x = _in_front(input, input_b, batch)
    kind = opmath(input.dtype)
    total = _target_weights(t, weight, weight_b, ignore_index, kind).sum([1])
    if weight is not None and weight_b:
        losses: Tensors = []
        sums: Tensors = []
        for b in range(batch):
            one, lse, _ = _cross_entropy_rows(
                x.select(0, b),
                t.select(0, b),
                weight.select(0, b),
                reduction,
                ignore_index,
                label_smoothing,
            )
            losses.append(one)
            sums.append(lse)
        return stack(losses), stack(sums), total
    each, lse, _ = _cross_entropy_rows(
        _folded(x, True, batch), _folded(t, True, batch), weight, 0, ignore_index, label_smoothing
    )
    terms = _unfolded(each, batch)
    rows = _unfolded(lse, batch)
    if reduction == 0:
        return terms, rows, total
    loss = terms.to(kind).sum([1])
    return (loss / total if reduction == 1 else loss).to(input.dtype), rows, total


@structured(kernel="cross_entropy_backward", namespaces=(), method=False, out=False)
def _cross_entropy_backward(
    grad: Tensor,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    label_smoothing: float,
    lse: Tensor,
    total: Tensor,
) -> Tensor:
    """Cotangent of the logits, in one pass over the rows.

    >>> x = torch.zeros(1, 2, requires_grad=True)
    >>> F.cross_entropy(x, torch.tensor([1])).backward()
    >>> x.grad
    tensor([[ 0.5000, -0.5000]])
    """
    return empty(input.shape, like=input)


@_cross_entropy_backward.decompose(outside="IndexError: Target {index} is out of bounds.")
def _(grad, input, target, weight, reduction, ignore_index, label_smoothing, lse, total):
    kind = opmath(input.dtype)
    c = input.size(1)
    valid = target != ignore_index
    at = where(valid, target, 0).to(int64).unsqueeze(1)
    g = grad.to(float64)
    if reduction == 1:
        g = g / total.to(float64)
    counted = valid.to(float64)
    w = ones([c], dtype=kind) if weight is None else weight.to(kind)
    if weight is not None:
        counted = where(valid, w.index_select(0, at.squeeze([1])).to(float64), 0)
    hit = g * (1.0 - label_smoothing) * counted
    spread = where(valid, g * (label_smoothing / float(c)), 0).to(kind).unsqueeze(1)
    # What a float has no digits for is a factor: large logits lose nothing.
    centre = lse.to(kind)
    rest = (centre.to(float64) - lse).exp()
    slope = hit * rest
    if label_smoothing > 0.0:
        slope = (hit + spread.squeeze([1]) * w.sum()) * rest
    d = (input.to(kind) - centre.unsqueeze(1)).exp() * slope.to(kind).unsqueeze(1)
    if label_smoothing > 0.0:
        d = d - spread * w
    there = arange(c).unsqueeze(0) == at
    d = d - where(there, hit.to(kind).unsqueeze(1), 0)
    return where(valid.unsqueeze(1), d, 0).to(input.dtype)


@_cross_entropy_backward.vmap
def _(
    grad,
    input,
    target,
    weight,
    reduction,
    ignore_index,
    label_smoothing,
    lse,
    total,
    grad_b,
    input_b,
    target_b,
    weight_b,
    lse_b,
    total_b,
    batch,
):
    t = _in_front(target, target_b, batch)
    x = _in_front(input, input_b, batch)
    rows = _in_front(lse, lse_b, batch)
    g = _in_front(grad, grad_b, batch)
    if reduction == 1:
        g = (g / _in_front(total, total_b, batch)).to(grad.dtype)
    if reduction != 0:
        g = g.unsqueeze(1).expand(t.shape)
    one = ones([], dtype=total.dtype)
    if weight is not None and weight_b:
        parts: Tensors = []
        for b in range(batch):
            parts.append(
                _cross_entropy_backward(
                    g.select(0, b),
                    x.select(0, b),
                    t.select(0, b),
                    weight.select(0, b),
                    0,
                    ignore_index,
                    label_smoothing,
                    rows.select(0, b),
                    one,
                )
            )
        return stack(parts)
    d = _cross_entropy_backward(
        _folded(g, True, batch),
        _folded(x, True, batch),
        _folded(t, True, batch),
        weight,
        0,
        ignore_index,
        label_smoothing,
        _folded(rows, True, batch),
        one,
    )
    return _unfolded(d, batch)


@composite(namespaces=(), method=False)
def _cross_entropy_probabilities(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: int, label_smoothing: float
) -> Tensor:
    """Cross entropy of logits and probabilities of the same shape.

    >>> F.cross_entropy(torch.zeros(1, 2), torch.full((1, 2), 0.5))
    tensor(0.6931)
    """
    check(
        target.is_floating_point(),
        "Expected floating point type for target with class probabilities, got "
        f"{scalar_type_name(target.dtype)}",
    )
    dim = 0 if input.ndim == 1 else 1
    c = input.size(dim)
    if weight is not None:
        check(
            weight.ndim == 1 and weight.numel() == c,
            f"cross_entropy: weight tensor should be defined either for all {c} classes or no "
            f"classes but got weight tensor of shape: {weight.shape}",
        )
    t = target
    if label_smoothing > 0.0:
        t = target * (1.0 - label_smoothing) + label_smoothing / float(max(c, 1))
    terms = log_softmax(input, dim) * t
    if weight is not None:
        shape = [1 for d in input.shape]
        shape[dim] = c
        terms = terms * weight.view(shape)
    if reduction == 0:
        return -terms.sum([dim])
    loss = -terms.sum()
    if reduction == 2:
        return loss
    return loss / float(input.numel()) * float(c) if input.numel() > 0 else loss * nan


@composite(namespaces=("nn.functional",), method=False, autocast="float32", old_reduction=(3, 5))
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy of logits (N, C, *) or (C) and classes (N, *), or probabilities (N, C, *).

    Args:
        weight: one per class; "mean" divides by the sum of the weights that were used
        ignore_index: classes that do not count
        label_smoothing: share of each target that is spread over all classes

    >>> F.cross_entropy(torch.zeros(1, 2), torch.tensor([1]))
    tensor(0.6931)
    """
    mode = _reduction_number(reduction)
    check(
        label_smoothing >= 0.0 and label_smoothing <= 1.0,
        f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}",
    )
    if input.shape == target.shape:
        check(ignore_index < 0, "ignore_index is not supported for floating point target")
        return _cross_entropy_probabilities(input, target, weight, mode, label_smoothing)
    _check_targets(input, target)
    c = input.size(min(input.ndim - 1, 1))
    _check_classes(target, weight, c, input.dtype)
    # Classes last, one row per target.
    rows = input
    if input.ndim == 1:
        rows = input.unsqueeze(0)
    elif input.ndim > 2:
        rows = input.movedim([1], [-1]).reshape([target.numel(), c])
    loss, _, _ = _cross_entropy_rows(
        rows, target.reshape([target.numel()]), weight, mode, ignore_index, label_smoothing
    )
    if mode != 0 or input.ndim == 2:
        return loss
    return loss.reshape([]) if input.ndim == 1 else loss.reshape(target.shape)


# Margins ----------------------------------------------------------------------------------------


@composite(namespaces=(), method=False)
def _check_scores(name: str, input: Tensor) -> None:
    """Refuses scores that are not (C) or (N, C) with C > 0.

    >>> F.multi_margin_loss(torch.ones(2), torch.tensor(1))
    tensor(0.5000)
    """
    check(
        input.ndim <= 2 and (input.ndim == 0 or input.size(-1) != 0),
        f"{name}: Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
        f"{input.shape}",
    )


@composite(namespaces=("nn.functional",), method=False, autocast="float32", old_reduction=(5, 6))
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Hinge between the score of the target class and those of all others, to the power of p.

    >>> F.multi_margin_loss(torch.tensor([[0.0, 1.0]]), torch.tensor([1]))
    tensor(0.)
    """
    check_value(p == 1 or p == 2, "only p == 1 and p == 2 supported")
    mode = _reduction_number(reduction)
    if weight is not None:
        check_value(weight.ndim == 1, "weight must be one-dimensional")
    _check_scores("multi_margin_loss", input)
    check_not_implemented(
        input.dtype == float32 or input.dtype == float64,
        f"\"multi_margin_loss_cpu_kernel\" not implemented for '{scalar_type_name(input.dtype)}'",
    )
    check(
        target.dtype == int64,
        f"expected scalar type Long but found {scalar_type_name(target.dtype)}",
    )
    rows = input if input.ndim == 2 else input.reshape([1, -1])
    n = rows.size(0)
    c = rows.size(1)
    check(
        target.ndim <= 1 and target.numel() == n,
        "multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
        f"samples (batch size). Expected target size [{n}], but got {target.shape}. Input has "
        f"shape {input.shape}.",
    )
    at = target.reshape([n, 1])
    inside = ((at >= 0) & (at < c)).all()
    check(truth(inside, True), "multi_margin_loss: target out of range")
    excess = (margin - rows.gather(1, at) + rows).clamp_min(0)
    if p == 2:
        excess = excess * excess
    if weight is not None:
        check(weight.numel() == c, f"inconsistent weight size, expected {c} but got {weight.shape}")
        check(
            weight.dtype == input.dtype,
            f"expected scalar type {scalar_type_name(input.dtype)} but found "
            f"{scalar_type_name(weight.dtype)}",
        )
        excess = excess * weight.index_select(0, target.reshape([n])).unsqueeze(1)
    loss = excess.scatter(1, at, 0).sum([1]) / float(c)
    if mode == 0:
        return loss.reshape([]) if target.ndim == 0 else loss
    return loss.mean() if mode == 1 else loss.sum()


@composite(namespaces=("nn.functional",), method=False, autocast="float32", old_reduction=(2, 3))
def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Hinge between the scores of a sample's classes and those of all others.

    Args:
        target: class indices of each sample, filled up with -1

    >>> F.multilabel_margin_loss(torch.tensor([[0.0, 1.0]]), torch.tensor([[1, -1]]))
    tensor(0.)
    """
    mode = _reduction_number(reduction)
    _check_scores("multilabel_margin_loss", input)
    check(
        target.shape == input.shape,
        f"inconsistent target size: {target.shape} for input of size: {input.shape}",
    )
    check_not_implemented(
        input.dtype == float32 or input.dtype == float64,
        '"multilabel_margin_loss_forward_out_frame" not implemented for '
        f"'{scalar_type_name(input.dtype)}'",
    )
    check(
        target.dtype == int64,
        f"expected scalar type Long but found {scalar_type_name(target.dtype)}",
    )
    rows = input if input.ndim == 2 else input.reshape([1, -1])
    at = target.reshape(rows.shape)
    c = rows.size(1)
    inside = ((at >= -1) & (at < c)).all()
    check(truth(inside, True), "multilabel_margin_loss: argument #2 'target' is out of range")
    # Everything from the first -1 on does not count.
    listed = (at < 0).cumsum(1) == 0
    index = at.clamp_min(0)
    is_target = zeros(rows.shape, dtype=int64).scatter_add(1, index, listed.to(int64)) > 0
    excess = (1 - rows.gather(1, index).unsqueeze(2) + rows.unsqueeze(1)).clamp_min(0)
    counted = listed.unsqueeze(2) & is_target.logical_not().unsqueeze(1)
    loss = where(counted, excess, 0).sum([1, 2]) / float(c)
    if mode == 0:
        return loss if input.ndim == 2 else loss.reshape([])
    return loss.mean() if mode == 1 else loss.sum()


@composite(namespaces=("nn.functional",), method=False, old_reduction=(3, 4))
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Mean over the classes of the cross entropy of the logistic function of each score.

    >>> F.multilabel_soft_margin_loss(torch.zeros(1, 2), torch.ones(1, 2))
    tensor(0.6931)
    """
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    terms = loss.sum([-1]) / float(max(input.size(-1), 1))
    check_value(reduction in ("none", "mean", "sum"), f"{reduction} is not valid")
    return terms if reduction == "none" else terms.mean() if reduction == "mean" else terms.sum()
