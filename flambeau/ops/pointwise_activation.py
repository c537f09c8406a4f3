"""Activation functions."""

from __future__ import annotations

from flambeau.ops._lang import *


@pointwise(dtypes="f", namespaces=("nn.functional",), inplace=False, label="GeluKernelImpl")
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Input times the normal distribution function at it (Hendrycks & Gimpel, 2016).

    `approximate="tanh"` uses a hyperbolic tangent for the distribution function.

    >>> F.gelu(torch.tensor([-1.0, 1.0]))
    tensor([-0.1587,  0.8413])
    """
    check(
        approximate in ("none", "tanh"),
        f"approximate argument must be either none or tanh, got {approximate}",
    )
    if approximate == "tanh":
        inner = 0.7978845608028654 * (input + 0.044715 * input * input * input)
        return 0.5 * input * (1 + s.tanh(inner))
    return 0.5 * input * (1 + s.erf(input * 0.7071067811865476))


@pointwise(
    inplace=True, namespaces=("torch", "nn.functional"), dtypes="if", method=True, inplace_flag=True
)
def relu(input: Tensor) -> Tensor:
    """Input where it is positive, else 0.

    >>> torch.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return s.maximum(input, 0)


@relu.vjp
def _(g, result):
    return s.where(result <= 0, 0, g)


@pointwise(
    dtypes="fc",
    namespaces=("nn.functional",),
    inplace=True,
    out=False,
    label="silu_cpu",
    inplace_flag=True,
)
def silu(input: Tensor) -> Tensor:
    """Input times its logistic sigmoid (Elfwing et al., 2017).

    >>> F.silu(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """
    return input * s.sigmoid(input)
