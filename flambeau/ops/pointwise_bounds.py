"""Division, powers, clamping, masks: pointwise operations with more than one public form."""

from __future__ import annotations

from flambeau.ops._lang import *
from flambeau.ops.pointwise_arithmetic import _check_fits, _check_number


@pointwise(promote="float", aliases=("true_divide", "divide"), exact=("other",), numbers=True)
def div(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Quotient.

    >>> torch.div(torch.tensor([1, 2]), 2)
    tensor([0.5000, 1.0000])
    """
    return input / other


@div.overload(kind="composite", inplace=True, out=True, numbers=True, out_casts=True)
def div(input: Tensor | Number, other: Tensor | Number, *, rounding_mode: str | None) -> Tensor:
    """Quotient, rounded down ("floor") or towards zero ("trunc").

    >>> torch.div(torch.tensor([7]), 2, rounding_mode="floor")
    tensor([3])
    """
    if rounding_mode is None:
        return div(input, other)
    check(
        rounding_mode == "trunc" or rounding_mode == "floor",
        f"div: expected rounding_mode None, 'trunc' or 'floor', got '{rounding_mode}'",
    )
    if rounding_mode == "floor":
        return _div_floor(input, other)
    return _div_trunc(input, other)


@pointwise(
    dtypes="if", inplace=False, out=False, namespaces=(), method=False, label="div",
    exact=("other",),
)  # fmt: skip
def _div_floor(input: Tensor, other: Tensor | Number) -> Tensor:
    """Quotient rounded down; its derivative is zero.

    >>> torch.div(torch.tensor([-7]), 2, rounding_mode="floor")
    tensor([-4])
    """
    return s.floor_divide(input, other)


@_div_floor.vjp
def _(g, input, other):
    return s.fmin(s.abs(g), 0), s.fmin(s.abs(g), 0)


@pointwise(
    dtypes="if", inplace=False, out=False, namespaces=(), method=False, label="div",
    exact=("other",),
)  # fmt: skip
def _div_trunc(input: Tensor, other: Tensor | Number) -> Tensor:
    """Quotient rounded towards zero; its derivative is zero.

    >>> torch.div(torch.tensor([-7]), 2, rounding_mode="trunc")
    tensor([-3])
    """
    return s.trunc_divide(input, other)


@_div_trunc.vjp
def _(g, input, other):
    return s.fmin(s.abs(g), 0), s.fmin(s.abs(g), 0)


@composite(namespaces=(), method=False)
def _check_exponent(input: Tensor, exponent: Tensor) -> None:
    """Whole numbers have no whole powers below zero."""
    whole = not input.dtype.is_inexact and not exponent.dtype.is_inexact
    check(
        not is_wrapped(exponent) or not whole or int(exponent.item()) >= 0,
        "Integers to negative integer powers are not allowed.",
    )
    if whole:
        _check_number("pow", "exponent", exponent, input)


@pointwise(result_for=("exponent",))
def pow(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """Input to the power of the exponent.

    >>> torch.pow(torch.tensor([1.0, 2.0, 3.0]), 2)
    tensor([1., 4., 9.])
    """
    _check_exponent(input, exponent)
    if is_wrapped(exponent) and exponent.item() == 2:
        return input * input
    if is_wrapped(exponent) and exponent.item() == 3:
        return input * input * input
    if is_wrapped(exponent) and exponent.item() == 0.5:
        return s.sqrt(input)
    if is_wrapped(exponent) and exponent.item() == -0.5:
        return s.rsqrt(input)
    if is_wrapped(exponent) and exponent.item() == -1:
        return s.reciprocal(input)
    if is_wrapped(exponent) and exponent.item() == -2:
        return s.square(s.reciprocal(input))
    return input**exponent


@composite(inplace=True, out=True)
def float_power(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """Power computed in double precision.

    >>> torch.float_power(torch.tensor([2]), 3)
    tensor([8.], dtype=torch.float64)
    """
    kind = complex128 if input.is_complex() or exponent.is_complex() else float64
    return pow(input.to(kind), exponent.to(kind))


@pointwise(dtypes="bif", inplace=True, inplace_function=True, label="maximum_cpu")
def clamp_min(input: Tensor, min: Tensor | Number) -> Tensor:
    """Input, but at least `min`.

    >>> torch.clamp_min(torch.tensor([1, 5]), 3)
    tensor([3, 5])
    """
    _check_number("clamp", "min", min, input)
    return s.maximum(input, min)


@clamp_min.vjp
def _(g, input, min):
    return s.where(input >= min, g, 0), s.where(input < min, g, 0)


@pointwise(dtypes="bif", inplace=True, inplace_function=True, label="minimum_cpu")
def clamp_max(input: Tensor, max: Tensor | Number) -> Tensor:
    """Input, but at most `max`.

    >>> torch.clamp_max(torch.tensor([1, 5]), 3)
    tensor([1, 3])
    """
    _check_number("clamp", "max", max, input)
    return s.minimum(input, max)


@clamp_max.vjp
def _(g, input, max):
    return s.where(input <= max, g, 0), s.where(input > max, g, 0)


@pointwise(dtypes="bif", namespaces=(), method=False, inplace=True, label="clamp")
def _clamp(input: Tensor, min: Tensor | Number, max: Tensor | Number) -> Tensor:
    """Input between two bounds; `max` where they cross.

    >>> torch.clamp(torch.tensor([0, 2, 5]), 1, 3)
    tensor([1, 2, 3])
    """
    _check_number("clamp", "min", min, input)
    _check_number("clamp", "max", max, input)
    return s.minimum(s.maximum(input, min), max)


@_clamp.vjp
def _(g, input, min, max):
    inside = (input >= min) & (input <= max)
    below = (min < max) & (input < min)
    above = (input > max) | (max < min)
    return s.where(inside, g, 0), s.where(below, g, 0), s.where(above, g, 0)


@composite(inplace=True, out=True, aliases=("clip",))
def clamp(input: Tensor, min: Number | None = None, max: Number | None = None) -> Tensor:
    """Input kept within [min, max]; one bound may be missing.

    >>> torch.clamp(torch.tensor([0, 2, 5]), min=1, max=3)
    tensor([1, 2, 3])
    """
    check(
        min is not None or max is not None,
        "torch.clamp: At least one of 'min' or 'max' must not be None",
    )
    if min is None and max is not None:
        return clamp_max(input, max)
    if max is None and min is not None:
        return clamp_min(input, min)
    if min is not None and max is not None:
        return _clamp(input, min, max)
    return input


@clamp.overload(inplace=True, out=True, aliases=("clip",), out_casts=True)
def clamp(input: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    """Bounds given as tensors, broadcast.

    >>> torch.clamp(torch.tensor([0, 5]), max=torch.tensor([1, 2]))
    tensor([0, 2])
    """
    check(
        min is not None or max is not None,
        "torch.clamp: At least one of 'min' or 'max' must not be None",
    )
    if min is None and max is not None:
        return clamp_max(input, max)
    if max is None and min is not None:
        return clamp_min(input, min)
    if min is not None and max is not None:
        return _clamp(input, min, max)
    return input


@pointwise(
    promote="first",
    conditions=("mask",),
    inplace=True,
    namespaces=(),
    method=False,
    label="masked_fill",
)
def _masked_fill(input: Tensor, mask: Tensor, value: Tensor | Number) -> Tensor:
    """The pointwise part of masked_fill.

    >>> torch.masked_fill(torch.zeros(2), torch.tensor([True, False]), 1.0)
    tensor([1., 0.])
    """
    return value if mask else input


@composite(inplace=False)
def masked_fill(input: Tensor, mask: Tensor, value: Tensor | Number) -> Tensor:
    """Copy of `input` with `value` where the mask (bool, broadcast) is true, laid out by rows.

    >>> torch.masked_fill(torch.zeros(2), torch.tensor([True, False]), 1.0)
    tensor([1., 0.])
    """
    _check_mask(input, mask, value)
    return _masked_fill(input, mask, value).contiguous()


@composite(namespaces=(), method=True)
def masked_fill_(self: Tensor, mask: Tensor, value: Tensor | Number) -> Tensor:
    """Writes `value` where the mask (bool, broadcast) is true.

    >>> torch.zeros(2).masked_fill_(torch.tensor([True, False]), 1.0)
    tensor([1., 0.])
    """
    _check_mask(self, mask, value)
    return self._masked_fill_(mask, value if is_wrapped(value) else value.clone())


@composite(namespaces=(), method=False)
def _check_mask(input: Tensor, mask: Tensor, value: Tensor) -> None:
    """What masked_fill asks of its arguments."""
    check(
        mask.dtype == bool_,
        f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype}",
    )
    check(
        value.ndim == 0,
        "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
        f"{value.ndim} dimension(s), of shape {value.shape}",
    )
    if is_wrapped(value):
        _check_fits("masked_fill", "value", value.item(), input.dtype)
    check(
        input.is_complex() or not value.is_complex(),
        f"masked_fill: value cannot be converted to type {dtype_name(input.dtype)} without "
        f"overflow: it is of dtype {dtype_name(value.dtype)}",
    )
