"""Random numbers drawn until something is accepted, and how they move with their parameters.

Gamma and Dirichlet numbers have pathwise derivatives, whose own derivatives are refused: no formula
gives them. csrc/kernels/random_rejection.cpp draws, random_slopes.cpp differentiates.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@structured(kernel="binomial", namespaces=("torch",), method=False, out=False)
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Successes among `count` trials of probability `prob`, elementwise.

    Source: Hoermann, J. Statist. Comput. Simul. 46 (1993); waiting times where few are expected.

    >>> torch.binomial(torch.tensor([3.0, 3.0]), torch.tensor([0.0, 1.0]))
    tensor([0., 3.])
    """
    check_value(
        count.is_floating_point(),
        f"binomial only supports floating-point dtypes for count, got: "
        f"{scalar_type_name(count.dtype)}",
    )
    check_value(
        prob.is_floating_point(),
        f"binomial only supports floating-point dtypes for prob, got: "
        f"{scalar_type_name(prob.dtype)}",
    )
    check(
        count.dtype == prob.dtype,
        f"Found dtype {scalar_type_name(count.dtype)} but expected {scalar_type_name(prob.dtype)}",
    )
    return empty(broadcast_shapes(count.shape, prob.shape), like=count)


@binomial.vjp
def _(g, count, prob):
    return zeros(count.shape, dtype=g.dtype), zeros(prob.shape, dtype=g.dtype)


@binomial.vmap
def _(count, count_b, prob, prob_b, generator):
    n = max(count.ndim - int(count_b), prob.ndim - int(prob_b))
    return binomial(_aligned(count, count_b, n), _aligned(prob, prob_b, n), generator)


@structured(kernel="standard_gamma", namespaces=("torch",), method=False, out=False, batch=True)
def _standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers of the gamma distribution with the shapes `input` and rate one.

    Their derivative is that of the number at a fixed value of its distribution function.
    Source: Marsaglia & Tsang, ACM TOMS 26 (2000); Figurnov, Mohamed & Mnih, Implicit
    reparameterization gradients (2018).

    >>> torch._standard_gamma(torch.ones(2)).shape
    torch.Size([2])
    """
    check(
        input.is_floating_point(),
        f"\"gamma_cpu\" not implemented for '{scalar_type_name(input.dtype)}'",
    )
    return empty(input.shape, like=input)


@_standard_gamma.vjp
def _(g, input, result):
    return g * _standard_gamma_grad(input, result)


@structured(
    kernel="standard_gamma_grad", namespaces=("torch",), method=False, out=False, batch=True
)
def _standard_gamma_grad(input: Tensor, output: Tensor) -> Tensor:
    """How a gamma number moves with its shape. Same shapes.

    >>> torch._standard_gamma_grad(torch.tensor([1.0]), torch.tensor([1.0]))
    tensor([1.1736])
    """
    check(
        input.shape == output.shape,
        f"_standard_gamma_grad: expected tensors of one shape, got {input.shape} and "
        f"{output.shape}",
    )
    return empty(input.shape, like=input)


@_standard_gamma_grad.vjp
def _(g):
    check_not_implemented(False, "derivative for aten::_standard_gamma_grad is not implemented")
    return g, g


@structured(kernel="sample_dirichlet", namespaces=("torch",), method=False, out=False, batch=True)
def _sample_dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Points of the simplex from the Dirichlet distributions with the rows `input`.

    >>> torch._sample_dirichlet(torch.ones(2, 3)).shape
    torch.Size([2, 3])
    """
    check(
        input.is_floating_point(),
        f"\"dirichlet\" not implemented for '{scalar_type_name(input.dtype)}'",
    )
    check(input.ndim > 0, "_sample_dirichlet: expected concentrations of at least 1 dim, got 0")
    return empty(input.shape, like=input)


@_sample_dirichlet.vjp
def _(g, input, result):
    slope = _dirichlet_grad(result, input, input.sum(-1, True).expand(input.shape))
    return slope * (g - (result * g).sum(-1, True))


@structured(kernel="dirichlet_grad", namespaces=("torch",), method=False, out=False, batch=True)
def _dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """How an entry of a Dirichlet point moves with its concentration, over one minus itself.

    The entry is a beta number of shapes `alpha` and `total - alpha`. Same shapes.

    >>> half = torch.tensor([0.5])
    >>> torch._dirichlet_grad(half, torch.ones(1), 2 * torch.ones(1))
    tensor([0.6931])
    """
    check(
        x.shape == alpha.shape and x.shape == total.shape,
        f"_dirichlet_grad: expected tensors of one shape, got {x.shape}, {alpha.shape} and "
        f"{total.shape}",
    )
    return empty(x.shape, like=x)


@_dirichlet_grad.vjp
def _(g):
    check_not_implemented(False, "derivative for aten::_dirichlet_grad is not implemented")
    return g, g, g
