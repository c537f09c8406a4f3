"""Connectionist temporal classification. Kernels: csrc/kernels/ctc.cpp."""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(kernel="ctc_loss", namespaces=(), method=False, out=False)
def _ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Ints,
    target_lengths: Ints,
    blank: int,
    zero_infinity: bool,
) -> Tuple[Tensor, Tensor]:
    """Minus the log-likelihood of each sample (N), and the forward variables of its derivative.

    >>> F.ctc_loss(torch.zeros(1, 1, 2), torch.tensor([[1]]), (1,), (1,))
    tensor(0.)
    """
    check(log_probs.ndim == 3, f"ctc_loss: expected log_probs of 3 dims, got {log_probs.shape}")
    steps = log_probs.size(0)
    n = log_probs.size(1)
    check_not_implemented(
        log_probs.dtype == float32 or log_probs.dtype == float64,
        f"\"ctc_loss_cpu\" not implemented for '{scalar_type_name(log_probs.dtype)}'",
    )
    check(blank >= 0 and blank < log_probs.size(2), "blank must be in label range")
    check(len(input_lengths) == n, "input_lengths must be of size batch_size")
    check(len(target_lengths) == n, "target_lengths must be of size batch_size")
    longest = 0
    total = 0
    for length in target_lengths:
        check(
            length >= 0,
            f"Expected target_lengths to have value at least 0, but got value {length} (while "
            "checking arguments for ctc_loss)",
        )
        longest = max(longest, length)
        total += length
    for length in input_lengths:
        check(
            length >= 0 and length <= steps,
            f"Expected input_lengths to have value at most {steps}, but got value {length} (while "
            "checking arguments for ctc_loss)",
        )
    if targets.ndim == 1:
        check(
            targets.size(0) == total,
            f"Expected tensor to have size {total} at dimension 0, but got size {targets.size(0)} "
            "for argument #2 'targets' (while checking arguments for ctc_loss)",
        )
    else:
        check(
            targets.ndim == 2 and targets.size(0) == n and targets.size(1) >= longest,
            f"Expected targets of shape [{n}, {longest} or more], but got {targets.shape} for "
            "argument #2 'targets' (while checking arguments for ctc_loss)",
        )
    return empty([n], like=log_probs), empty([n, steps, 2 * longest + 1], like=log_probs)


@_ctc_loss.vjp
def _(
    g0, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity, result0, result1
):  # fmt: skip
    d = _ctc_loss_backward(
        g0, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity, result0,
        result1,
    )  # fmt: skip
    return d, None


@_ctc_loss.jvp
def _(
    log_probs, targets, input_lengths, target_lengths, blank, zero_infinity, log_probs_t, result0,
    result1,
):  # fmt: skip
    # Samples are independent: the sum of the gradient's products is the tangent of each.
    d = _ctc_loss_backward(
        ones_like(result0), log_probs, targets, input_lengths, target_lengths, blank, zero_infinity,
        result0, result1,
    )  # fmt: skip
    return (d * log_probs_t).sum([0, 2]), zeros_like(result1)


@structured(kernel="ctc_loss_backward", namespaces=(), method=False, out=False)
def _ctc_loss_backward(
    grad: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Ints,
    target_lengths: Ints,
    blank: int,
    zero_infinity: bool,
    loss: Tensor,
    log_alpha: Tensor,
) -> Tensor:
    """Cotangent of the logits under log_probs, which are taken to be normalised."""
    return empty(log_probs.shape, like=log_probs)


@composite(namespaces=("nn.functional",), method=False, autocast="float32")
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Ints,
    target_lengths: Ints,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the log-likelihood of label sequences without alignment (Graves et al., 2006).

    Args:
        log_probs: log-probabilities (T, N, C) or (T, C)
        targets: labels (N, S), or those of all samples one after another
        blank: the label that stands for none
        reduction: "mean" divides each loss by the length of its target first
        zero_infinity: infinite losses (of targets that do not fit) count as 0, gradient too

    >>> F.ctc_loss(torch.zeros(1, 1, 2), torch.tensor([[1]]), (1,), (1,))
    tensor(0.)
    """
    check_value(
        reduction in ("none", "mean", "sum"), f"{reduction} is not a valid value for reduction"
    )
    probs = log_probs if log_probs.ndim == 3 else log_probs.unsqueeze(1)
    loss, _ = _ctc_loss(probs, targets, input_lengths, target_lengths, blank, zero_infinity)
    if zero_infinity:
        loss = where(loss == inf, 0, loss)
    if reduction == "sum":
        return loss.sum()
    if reduction == "mean":
        each = [float(max(n, 1)) for n in target_lengths]
        scaled: Tensors = []
        for i in range(len(each)):
            scaled.append(loss.select(0, i) / each[i])
        return stack(scaled).mean()
    return loss if log_probs.ndim == 3 else loss.reshape([])


@ctc_loss.overload(namespaces=("nn.functional",), method=False)
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The same, lengths in tensors.

    >>> one = torch.ones(1, dtype=torch.int64)
    >>> F.ctc_loss(torch.zeros(1, 1, 2), torch.tensor([[1]]), one, one)
    tensor(0.)
    """
    check(input_lengths.is_integral(), "input_lengths must be integral")
    check(target_lengths.is_integral(), "target_lengths must be integral")
    inputs = [int(n.item()) for n in input_lengths.reshape([-1]).unbind()]
    labels = [int(n.item()) for n in target_lengths.reshape([-1]).unbind()]
    return ctc_loss(log_probs, targets, inputs, labels, blank, reduction, zero_infinity)
