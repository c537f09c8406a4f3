"""Binary functions beside those of pointwise_arithmetic.py and pointwise_comparison.py."""

from __future__ import annotations

from flambeau.ops._lang import *
from flambeau.ops.pointwise_arithmetic import _check_alpha, _check_fits


@pointwise(
    dtypes="ifc", aliases=("subtract",), rounded=("alpha",), numbers=True,
    old_orders=("input alpha other",),
)  # fmt: skip
def sub(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Difference of `input` and `alpha` times `other`.

    >>> torch.sub(torch.tensor([1.0, 2.0]), 1)
    tensor([0., 1.])
    """
    _check_subtraction(input, other)
    if alpha == 1 and not alpha.is_bool():
        return input - other
    _check_alpha("sub", input, other, alpha)
    return input - alpha * other


@composite(namespaces=(), method=False)
def _check_subtraction(input: Tensor, other: Tensor) -> None:
    """Truth values are not subtracted."""
    check(
        not input.dtype.is_bool or not other.dtype.is_bool,
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
        "`logical_xor()` operator instead.",
    )
    check(
        not input.dtype.is_bool and not other.dtype.is_bool,
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
        "invert a mask, use the `~` or `logical_not()` operator instead.",
    )


@pointwise(dtypes="ifc", inplace=False, rounded=("alpha",))
def rsub(input: Tensor, other: Tensor | Number, alpha: Number = 1) -> Tensor:
    """Difference of `other` and `alpha` times `input`.

    >>> torch.rsub(torch.tensor([1.0, 2.0]), 1)
    tensor([ 0., -1.])
    """
    _check_subtraction(input, other)
    if alpha == 1 and not alpha.is_bool():
        return other - input
    _check_alpha("rsub", input, other, alpha)
    return other - alpha * input


@pointwise(dtypes="if", differentiable=False, label="div_floor_cpu", exact=("other",), numbers=True)
def floor_divide(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Quotient rounded down.

    >>> torch.floor_divide(torch.tensor([7, -7]), 2)
    tensor([ 3, -4])
    """
    return s.floor_divide(input, other)


@pointwise(dtypes="if", label="remainder_cpu")
def remainder(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Remainder with the sign of the divisor.

    >>> torch.remainder(torch.tensor([7, -7]), 2)
    tensor([1, 1])
    """
    return s.remainder(input, other)


@pointwise(dtypes="if", label="fmod_cpu")
def fmod(input: Tensor, other: Tensor | Number) -> Tensor:
    """Remainder with the sign of the dividend.

    >>> torch.fmod(torch.tensor([7, -7]), 2)
    tensor([ 1, -1])
    """
    return s.fmod(input, other)


@pointwise(dtypes="bif", inplace=False)
def maximum(input: Tensor, other: Tensor) -> Tensor:
    """The larger; NaN if either is.

    >>> torch.maximum(torch.tensor([1, 5]), torch.tensor([3, 3]))
    tensor([3, 5])
    """
    return s.maximum(input, other)


@pointwise(dtypes="bif", inplace=False)
def minimum(input: Tensor, other: Tensor) -> Tensor:
    """The smaller; NaN if either is.

    >>> torch.minimum(torch.tensor([1, 5]), torch.tensor([3, 3]))
    tensor([1, 3])
    """
    return s.minimum(input, other)


@pointwise(dtypes="bif", inplace=False)
def fmax(input: Tensor, other: Tensor) -> Tensor:
    """The larger; the other if one is NaN.

    >>> torch.fmax(torch.tensor([1, 5]), torch.tensor([3, 3]))
    tensor([3, 5])
    """
    return s.fmax(input, other)


@pointwise(dtypes="bif", inplace=False)
def fmin(input: Tensor, other: Tensor) -> Tensor:
    """The smaller; the other if one is NaN.

    >>> torch.fmin(torch.tensor([1, 5]), torch.tensor([3, 3]))
    tensor([1, 3])
    """
    return s.fmin(input, other)


@pointwise(promote="float", dtypes="bif", label="copysign_cpu")
def copysign(input: Tensor, other: Tensor | Number) -> Tensor:
    """Magnitude of `input` with the sign of `other`.

    >>> torch.copysign(torch.tensor([1.0, 2.0]), -1.0)
    tensor([-1., -2.])
    """
    return s.copysign(input, other)


@copysign.vjp
def _(g, input, other):
    slope = s.where(input == 0, 0, s.where(s.signbit(input) == s.signbit(other), 1, -1))
    return g * slope, s.fmin(s.abs(g), 0)


@pointwise(dtypes="f", label="hypot_cpu")
def hypot(input: Tensor, other: Tensor) -> Tensor:
    """Root of the sum of squares.

    >>> torch.hypot(torch.tensor([3.0]), torch.tensor([4.0]))
    tensor([5.])
    """
    return s.hypot(input, other)


@pointwise(promote="float", dtypes="bif", aliases=("arctan2",), label="atan2_cpu")
def atan2(input: Tensor, other: Tensor) -> Tensor:
    """Angle of the point (other, input).

    >>> torch.atan2(torch.tensor([1.0]), torch.tensor([1.0]))
    tensor([0.7854])
    """
    return s.atan2(input, other)


@composite(inplace=True, out=True, out_casts=True)
def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """The next number of the type towards `other`; in float32 and float64 it moves with `input`.

    >>> torch.nextafter(torch.tensor([1.0]), torch.tensor([1.0]))
    tensor([1.])
    """
    dtype = result_type(input, other)
    if dtype != float16 and dtype != bfloat16:
        return _nextafter(input, other)
    x = input.to(dtype)
    y = other.to(dtype)
    # Neighbours of one sign have neighbouring bits; past zero comes the least number.
    next = view_dtype(x, int16) + where((y > x) == (x > 0), 1, -1)
    bits = where(x == 0, where(y > x, 1, -32767), next)
    bits = where(isnan(x) | isnan(y), 32767, where(x == y, view_dtype(y, int16), bits))
    return view_dtype(bits.to(int16), dtype)


@pointwise(
    dtypes="f", namespaces=(), method=False, inplace=False, out=False, label="nextafter_cpu"
)  # fmt: skip
def _nextafter(input: Tensor, other: Tensor) -> Tensor:
    """The next number of the type that the loop computes in.

    >>> torch.nextafter(torch.tensor([1.0]), torch.tensor([1.0]))
    tensor([1.])
    """
    return s.nextafter(input, other)


@_nextafter.vjp
def _(g, input, other):
    return s.where(input == other, 0, g), None


@pointwise(dtypes="i", label="gcd_cpu")
def gcd(input: Tensor, other: Tensor) -> Tensor:
    """Greatest common divisor.

    >>> torch.gcd(torch.tensor([4, 6]), torch.tensor([6, 9]))
    tensor([2, 3])
    """
    return s.gcd(input, other)


@pointwise(dtypes="i", label="lcm_cpu")
def lcm(input: Tensor, other: Tensor) -> Tensor:
    """Least common multiple.

    >>> torch.lcm(torch.tensor([4, 6]), torch.tensor([6, 9]))
    tensor([12, 18])
    """
    return s.lcm(input, other)


@pointwise(promote="float", dtypes="bif", exact=("other",))
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """Input times two to the power of `other`.

    >>> torch.ldexp(torch.tensor([1.0]), torch.tensor([3]))
    tensor([8.])
    """
    return s.ldexp(input, other)


@pointwise(dtypes="bif", differentiable=False)
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 below zero, 1 above, `values` at zero.

    >>> torch.heaviside(torch.tensor([-1.0, 0.0]), torch.tensor([0.5]))
    tensor([0.0000, 0.5000])
    """
    return s.heaviside(input, values)


@pointwise(dtypes="fc", inplace=False, label="logaddexp_cpu")
def logaddexp(input: Tensor, other: Tensor) -> Tensor:
    """Logarithm of the sum of exponentials.

    >>> torch.logaddexp(torch.tensor([0.0]), torch.tensor([0.0]))
    tensor([0.6931])
    """
    return s.logaddexp(input, other)


@pointwise(dtypes="f", inplace=False, label="logaddexp2_cpu")
def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """Logarithm to base 2 of the sum of powers of 2.

    >>> torch.logaddexp2(torch.tensor([0.0]), torch.tensor([0.0]))
    tensor([1.])
    """
    return s.logaddexp2(input, other)


@pointwise(dtypes="bifc")
def eq(input: Tensor, other: Tensor | Number) -> Tensor:
    """Are they equal?

    >>> torch.eq(torch.tensor([1, 2]), 2)
    tensor([False,  True])
    """
    return input == other


@pointwise(dtypes="bifc", aliases=("not_equal",))
def ne(input: Tensor, other: Tensor | Number) -> Tensor:
    """Do they differ?

    >>> torch.ne(torch.tensor([1, 2]), 2)
    tensor([ True, False])
    """
    return input != other


@pointwise(dtypes="bif", aliases=("less",), label="lt_cpu")
def lt(input: Tensor, other: Tensor | Number) -> Tensor:
    """Is `input` less than `other`?

    >>> torch.lt(torch.tensor([1, 2]), 2)
    tensor([ True, False])
    """
    return input < other


@pointwise(dtypes="bif", aliases=("less_equal",), label="le_cpu")
def le(input: Tensor, other: Tensor | Number) -> Tensor:
    """Is `input` at most `other`?

    >>> torch.le(torch.tensor([1, 2]), 2)
    tensor([True, True])
    """
    return input <= other


@pointwise(dtypes="bif", aliases=("greater_equal",), label="ge_cpu")
def ge(input: Tensor, other: Tensor | Number) -> Tensor:
    """Is `input` at least `other`?

    >>> torch.ge(torch.tensor([1, 2]), 2)
    tensor([False,  True])
    """
    return input >= other


@pointwise()
def logical_and(input: Tensor, other: Tensor) -> Tensor:
    """Are both other than zero?

    >>> torch.logical_and(torch.tensor([0, 2]), torch.tensor([1, 1]))
    tensor([False,  True])
    """
    return s.logical_and(input, other)


@pointwise()
def logical_or(input: Tensor, other: Tensor) -> Tensor:
    """Is one of them other than zero?

    >>> torch.logical_or(torch.tensor([0, 2]), torch.tensor([1, 1]))
    tensor([True, True])
    """
    return s.logical_or(input, other)


@pointwise()
def logical_xor(input: Tensor, other: Tensor) -> Tensor:
    """Is just one of them other than zero?

    >>> torch.logical_xor(torch.tensor([0, 2]), torch.tensor([1, 1]))
    tensor([ True, False])
    """
    return s.logical_xor(input, other)


@pointwise(dtypes="bi", label="bitwise_and_cpu")
def bitwise_and(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Bits set in both.

    >>> torch.bitwise_and(torch.tensor([1, 2]), 3)
    tensor([1, 2])
    """
    return s.bitwise_and(input, other)


@pointwise(dtypes="bi", label="bitwise_or_cpu")
def bitwise_or(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Bits set in either.

    >>> torch.bitwise_or(torch.tensor([1, 2]), 3)
    tensor([3, 3])
    """
    return s.bitwise_or(input, other)


@pointwise(dtypes="bi", label="bitwise_xor_cpu")
def bitwise_xor(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Bits set in one alone.

    >>> torch.bitwise_xor(torch.tensor([1, 2]), 3)
    tensor([2, 1])
    """
    return s.bitwise_xor(input, other)


@pointwise(dtypes="i", label="lshift_cpu")
def bitwise_left_shift(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Bits moved up.

    >>> torch.bitwise_left_shift(torch.tensor([1, 2]), 1)
    tensor([2, 4])
    """
    return s.bitwise_left_shift(input, other)


@pointwise(dtypes="i", label="rshift_cpu")
def bitwise_right_shift(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Bits moved down, the sign kept.

    >>> torch.bitwise_right_shift(torch.tensor([1, 2]), 1)
    tensor([0, 1])
    """
    return s.bitwise_right_shift(input, other)


@composite(namespaces=(), method=False)
def _check_weight(input: Tensor, end: Tensor, weight: Tensor) -> None:
    """Tensors are of one dtype; a weight that is a number is computed with beside theirs."""
    check(
        end.dtype == input.dtype,
        f"lerp: expected dtype {input.dtype} for `end` but got dtype {end.dtype}",
    )
    check(
        weight.ndim == 0 or weight.dtype == input.dtype,
        f"lerp: expected dtype {input.dtype} for `weight` but got dtype {weight.dtype}",
    )
    if is_wrapped(weight):
        _check_fits("lerp", "weight", weight.item(), opmath(input.dtype))


@pointwise(dtypes="fc", exact=("weight",), numbers_stay=("weight",))
def lerp(input: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor:
    """Input moved towards `end` by `weight`: input + weight * (end - input).

    >>> torch.lerp(torch.tensor([0.0]), torch.tensor([10.0]), 0.3)
    tensor([3.])
    """
    _check_weight(input, end, weight)
    return s.where(
        s.abs(weight) < 0.5, input + weight * (end - input), end - (end - input) * (1 - weight)
    )


@lerp.vjp
def _(g, input, end, weight):
    return g * (1 - s.conj(weight)), g * s.conj(weight), g * s.conj(end - input)


@composite(namespaces=(), method=False)
def _check_factor(op: str, value: Number, input: Tensor, tensor1: Tensor, tensor2: Tensor) -> None:
    """Refuses a factor that what the three tensors compute in cannot hold."""
    kind = promote(promote(input.dtype, tensor1.dtype), tensor2.dtype)
    _check_fits(op, "value", value, opmath(kind))


@pointwise(old_orders=("input value tensor1 tensor2",))
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """Input plus `value` times the product of two tensors.

    >>> torch.addcmul(torch.ones(1), torch.ones(1), torch.ones(1), value=2)
    tensor([3.])
    """
    _check_factor("addcmul", value, input, tensor1, tensor2)
    return input + value * tensor1 * tensor2


@pointwise(dtypes="fc", old_orders=("input value tensor1 tensor2",))
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """Input plus `value` times the quotient of two tensors.

    >>> torch.addcdiv(torch.ones(1), torch.ones(1), torch.ones(1), value=2)
    tensor([3.])
    """
    _check_factor("addcdiv", value, input, tensor1, tensor2)
    return input + value * (tensor1 / tensor2)
