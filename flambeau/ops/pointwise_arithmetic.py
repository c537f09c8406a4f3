"""Arithmetic, element by element."""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(namespaces=(), method=False)
def _check_fits(op: str, argument: str, value: Number, dtype: DType) -> None:
    """Refuses a number that a dtype cannot hold."""
    check(
        value.fits(dtype),
        f"{op}: value cannot be converted to type {dtype_name(dtype)} without overflow: "
        f"{argument}={value}",
    )


@composite(namespaces=(), method=False)
def _check_number(
    op: str, argument: str, number: Tensor, input: Tensor, computed: bool = False
) -> None:
    """Refuses a number that is too large for the tensor beside it, or for what it computes in."""
    if is_wrapped(number):
        kind = result_type(input, number)
        _check_fits(op, argument, number.item(), opmath(kind) if computed else kind)


@composite(namespaces=(), method=False)
def _check_alpha(op: str, input: Tensor, other: Tensor, alpha: Number) -> None:
    """Refuses a factor of another kind than the numbers it multiplies."""
    kind = result_type(input, other)
    check(
        not alpha.is_bool() or kind.is_bool,
        f"{op}: Boolean alpha only supported for Boolean results.",
    )
    check(
        alpha.is_integral() or alpha.is_bool() or kind.is_inexact,
        f"{op}: For integral input tensors, argument alpha must not be a floating point number.",
    )
    check(
        not alpha.is_complex() or kind.is_complex,
        f"{op}: For non-complex input tensors, argument alpha must not be a complex number.",
    )
    _check_fits(op, "alpha", alpha, kind)


@pointwise(rounded=("alpha",), numbers=True, old_orders=("input alpha other",))
def add(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Sum of `input` and `alpha` times `other`.

    >>> torch.add(torch.tensor([1.0, 2.0]), 10)
    tensor([11., 12.])
    """
    if alpha == 1 and not alpha.is_bool():
        return input + other
    _check_alpha("add", input, other, alpha)
    return input + alpha * other


@pointwise(aliases=("multiply",), exact=("other",), numbers=True)
def mul(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Product.

    >>> torch.mul(torch.tensor([1.0, 2.0]), 3)
    tensor([3., 6.])
    """
    return input * other
