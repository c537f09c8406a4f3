"""Activation functions beside those of pointwise_activation.py, element by element."""

from __future__ import annotations

from flambeau.ops._lang import *
from flambeau.ops.pointwise_arithmetic import _check_fits


@pointwise(
    dtypes="f",
    namespaces=("nn.functional",),
    inplace=True,
    out=False,
    label="elu_cpu",
    inplace_flag=True,
)
def elu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """x above 0, alpha * (exp(x) - 1) below (Clevert et al., 2015).

    >>> F.elu(torch.tensor([1.0]))
    tensor([1.])
    """
    return input if input > 0 else alpha * s.expm1(input)


@elu.vjp
def _(g, input, alpha):
    return s.where(input > 0, g, g * alpha * s.exp(input))


@pointwise(
    dtypes="f",
    namespaces=("torch", "nn.functional"),
    inplace=True,
    label="elu_cpu",
    inplace_flag=True,
)
def selu(input: Tensor) -> Tensor:
    """Scaled elu of self-normalising networks (Klambauer et al., 2017).

    >>> F.selu(torch.tensor([0.0]))
    tensor([0.])
    """
    return 1.0507009873554804934193349852946 * (
        input if input > 0 else 1.6732632423543772848170429916717 * s.expm1(input)
    )


@selu.vjp
def _(g, input):
    slope = 1.6732632423543772848170429916717 * s.exp(input)
    return 1.0507009873554804934193349852946 * s.where(input > 0, g, g * slope)


@pointwise(
    dtypes="f",
    namespaces=("torch", "nn.functional"),
    inplace=True,
    label="elu_cpu",
    inplace_flag=True,
)
def celu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Continuously differentiable elu (Barron, 2017).

    >>> F.celu(torch.tensor([1.0]))
    tensor([1.])
    """
    return input if input > 0 else alpha * s.expm1(input / alpha)


@celu.vjp
def _(g, input, alpha):
    return s.where(input > 0, g, g * s.exp(input / alpha))


@pointwise(
    dtypes="f",
    namespaces=("nn.functional",),
    inplace=True,
    out=False,
    label="leaky_relu_cpu",
    inplace_flag=True,
)
def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x above 0, a small slope below.

    >>> F.leaky_relu(torch.tensor([-1.0]))
    tensor([-0.0100])
    """
    return input if input > 0 else input * negative_slope


@pointwise(dtypes="if", namespaces=("nn.functional",), inplace=True, out=False, inplace_flag=True)
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """Clamped to [min_val, max_val].

    >>> F.hardtanh(torch.tensor([2.0]))
    tensor([1.])
    """
    check_value(min_val <= max_val, "min_val cannot be greater than max_val")
    _check_fits("hardtanh", "min_val", min_val, input.dtype)
    _check_fits("hardtanh", "max_val", max_val, input.dtype)
    return s.minimum(s.maximum(input, min_val), max_val)


@hardtanh.vjp
def _(g, input, min_val, max_val):
    return s.where((input <= min_val) | (input >= max_val), 0, g)


@pointwise(dtypes="if", namespaces=("nn.functional",), inplace=True, out=False, inplace_flag=True)
def relu6(input: Tensor) -> Tensor:
    """Clamped to [0, 6].

    >>> F.relu6(torch.tensor([7.0]))
    tensor([6.])
    """
    return s.minimum(s.maximum(input, 0), 6)


@relu6.vjp
def _(g, input):
    return s.where((input <= 0) | (input >= 6), 0, g)


@pointwise(
    dtypes="f",
    namespaces=("nn.functional",),
    inplace=True,
    out=False,
    label="hardsigmoid_cpu",
    inplace_flag=True,
)
def hardsigmoid(input: Tensor) -> Tensor:
    """relu6(x + 3) / 6.

    >>> F.hardsigmoid(torch.tensor([0.0]))
    tensor([0.5000])
    """
    return s.minimum(s.maximum(input + 3, 0), 6) / 6


@hardsigmoid.vjp
def _(g, input):
    return s.where((input > -3) & (input < 3), g / 6, 0)


@pointwise(
    dtypes="f",
    namespaces=("nn.functional",),
    inplace=True,
    out=False,
    label="hardswish_cpu",
    inplace_flag=True,
)
def hardswish(input: Tensor) -> Tensor:
    """x * relu6(x + 3) / 6 (Howard et al., 2019).

    >>> F.hardswish(torch.tensor([3.0]))
    tensor([3.])
    """
    return input * s.minimum(s.maximum(input + 3, 0), 6) / 6


@hardswish.vjp
def _(g, input):
    return s.where(input <= -3, 0, s.where(input < 3, g * (input / 3 + 0.5), g))


@pointwise(dtypes="f", namespaces=("nn.functional",), inplace=False, label="softplus_cpu")
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta; x itself where beta x exceeds the threshold.

    >>> F.softplus(torch.tensor([0.0]))
    tensor([0.6931])
    """
    return input if input * beta > threshold else s.log1p(s.exp(input * beta)) / beta


@softplus.vjp
def _(g, input, beta, threshold):
    return s.where(input * beta > threshold, g, g * s.sigmoid(input * beta))


@pointwise(
    dtypes="f",
    namespaces=("nn.functional",),
    inplace=True,
    out=False,
    label="mish_cpu",
    inplace_flag=True,
)
def mish(input: Tensor) -> Tensor:
    """x * tanh(softplus(x)) (Misra, 2019).

    >>> F.mish(torch.tensor([0.0]))
    tensor([0.])
    """
    return input * s.tanh(input if input > 20 else s.log1p(s.exp(input)))


@mish.vjp
def _(g, input):
    t = s.tanh(s.where(input > 20, input, s.log1p(s.exp(s.minimum(input, 20)))))
    return g * (t + input * s.sigmoid(input) * (1 - t * t))


@composite(namespaces=("nn.functional",), out=True)
def logsigmoid(input: Tensor) -> Tensor:
    """Logarithm of the logistic function, laid out by rows.

    >>> F.logsigmoid(torch.tensor([0.0]))
    tensor([-0.6931])
    """
    return _logsigmoid(input.contiguous())


@pointwise(dtypes="f", namespaces=(), inplace=False, out=False, label="log_sigmoid_cpu")
def _logsigmoid(input: Tensor) -> Tensor:
    """The pointwise part of logsigmoid.

    >>> F.logsigmoid(torch.tensor([0.0]))
    tensor([-0.6931])
    """
    return s.logsigmoid(input)


@pointwise(promote="float", dtypes="bifc", namespaces=("nn.functional",), inplace=False)
def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|).

    >>> F.softsign(torch.tensor([1.0]))
    tensor([0.5000])
    """
    return input / (1 + s.abs(input))


@pointwise(promote="float", dtypes="ifc", namespaces=("nn.functional",), inplace=False)
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x).

    >>> F.tanhshrink(torch.tensor([0.0]))
    tensor([0.])
    """
    return input - s.tanh(input)


@pointwise(
    dtypes="f",
    namespaces=("torch", "nn.functional"),
    inplace=False,
    method=True,
    label="hardshrink_cpu",
    rounded=("lambd",),
)
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Zero within [-lambd, lambd], x outside.

    >>> F.hardshrink(torch.tensor([0.3, 1.0]))
    tensor([0., 1.])
    """
    return 0 if (input >= -lambd) & (input <= lambd) else input


@pointwise(dtypes="f", namespaces=("nn.functional",), inplace=False, label="softshrink_check")
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Moved towards zero by lambd.

    >>> F.softshrink(torch.tensor([0.3, 1.0]))
    tensor([0.0000, 0.5000])
    """
    check(lambd >= 0, f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return input - s.minimum(s.maximum(input, -lambd), lambd)


@softshrink.vjp
def _(g, input, lambd):
    return s.where((input >= -lambd) & (input <= lambd), 0, g)


@pointwise(dtypes="if", namespaces=("torch", "nn.functional"), inplace=True, inplace_flag=True)
def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """x above the threshold, `value` elsewhere.

    >>> F.threshold(torch.tensor([1.0, 3.0]), 2.0, 0.0)
    tensor([0., 3.])
    """
    _check_fits("threshold", "value", value, input.dtype)
    return value if input <= threshold else input


@pointwise(dtypes="f", name="_prelu", inplace=False, method=False)
def _prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x above 0, `weight` times x below (He et al., 2015). One weight per channel (dim 1) or one
    for all.

    >>> torch._prelu(torch.tensor([-1.0]), torch.tensor([0.5]))
    tensor([-0.5000])
    """
    return input if input > 0 else weight * input
