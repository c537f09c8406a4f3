"""Bounds, replacement, special functions of several arguments, complex numbers."""

from __future__ import annotations

from flambeau.ops._lang import *


@pointwise(dtypes="ifc", aliases=("negative",))
def neg(input: Tensor) -> Tensor:
    """Negative.

    >>> torch.neg(torch.tensor([1.0]))
    tensor([-1.])
    """
    check(
        input.dtype != bool_,
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
        "invert a mask, use the `~` or `logical_not()` operator instead.",
    )
    return -input


@pointwise(promote="real", aliases=("absolute",))
def abs(input: Tensor) -> Tensor:
    """Absolute value; the modulus of a complex number.

    >>> torch.abs(torch.tensor([-1.0]))
    tensor([1.])
    """
    return s.abs(input)


@composite()
def positive(input: Tensor) -> Tensor:
    """The input itself, as a copy is not needed.

    >>> torch.positive(torch.tensor([1.0]))
    tensor([1.])
    """
    check(
        not input.dtype.is_bool,
        "The `+` operator, on a bool tensor is not supported.",
    )
    return input


@pointwise(dtypes="if", differentiable=True, aliases=("special.round",), label="round_vml_cpu")
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Rounded to whole numbers, halves to even; to `decimals` places.

    >>> torch.round(torch.tensor([0.5, 1.5]))
    tensor([0., 2.])
    """
    check_not_implemented(
        decimals == 0 or input.is_floating_point(),
        f"\"round_cpu\" with decimals not implemented for '{scalar_type_name(input.dtype)}'",
    )
    if decimals == 0:
        return s.round(input)
    if decimals < 0:
        return s.round(input / 10.0**-decimals) * 10.0**-decimals
    return s.round(input * 10.0**decimals) / 10.0**decimals


@round.vjp
def _(g):
    return s.fmin(s.abs(g), 0)


@composite()
def conj(input: Tensor) -> Tensor:
    """Complex conjugate; a real tensor is its own.

    >>> torch.conj(torch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return conj_physical(input)


@composite()
def resolve_conj(input: Tensor) -> Tensor:
    """`input` itself: conjugation is never postponed.

    >>> torch.resolve_conj(torch.tensor([1 + 2j]).conj())
    tensor([1.-2.j])
    """
    return input


@composite()
def resolve_neg(input: Tensor) -> Tensor:
    """`input` itself: negation is never postponed.

    >>> torch.resolve_neg(torch.tensor([1.0]))
    tensor([1.])
    """
    return input


@pointwise(namespaces=(), method=False, out=False, inplace=False, label="conj_physical")
def _conj(input: Tensor) -> Tensor:
    """Complex conjugate in new memory.

    >>> torch.conj(torch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return s.conj(input)


@composite(inplace=True, out=True)
def conj_physical(input: Tensor) -> Tensor:
    """Complex conjugate; a real tensor is its own.

    >>> torch.conj_physical(torch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return _conj(input) if input.is_complex() else input


@composite(namespaces=(), method=False)
def _is_part(dtype: DType) -> bool:
    """Can numbers of the dtype be parts of complex ones?"""
    return dtype.is_floating_point and dtype != bfloat16


@pointwise(dtypes="f", method=False, out_exact=True)
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Complex numbers of given real and imaginary parts.

    >>> torch.complex(torch.tensor([1.0]), torch.tensor([2.0]))
    tensor([1.+2.j])
    """
    check(
        _is_part(real.dtype) and _is_part(imag.dtype),
        "Expected both inputs to be Half, Float or Double tensors but got "
        f"{scalar_type_name(real.dtype)} and {scalar_type_name(imag.dtype)}",
    )
    check(
        real.dtype == imag.dtype,
        f"Expected object of scalar type {scalar_type_name(real.dtype)} but got scalar type "
        f"{scalar_type_name(imag.dtype)} for second argument",
    )
    check_not_implemented(
        real.dtype != float16,
        "complex: expected parts of float32 or float64, got float16; there are "
        "no complex numbers of two halves",
    )
    return s.complex(real, imag)


@composite(method=False, out=True)
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers of given modulus and angle.

    >>> torch.polar(torch.tensor([2.0]), torch.tensor([0.0]))
    tensor([2.+0.j])
    """
    check(
        _is_part(abs.dtype) and _is_part(angle.dtype),
        "Expected both inputs to be Half, Float or Double tensors but got "
        f"{scalar_type_name(abs.dtype)} and {scalar_type_name(angle.dtype)}",
    )
    check(
        abs.dtype == angle.dtype,
        f"Expected object of scalar type {scalar_type_name(abs.dtype)} but got scalar type "
        f"{scalar_type_name(angle.dtype)} for second argument",
    )
    check_not_implemented(
        abs.dtype != float16,
        "polar: expected parts of float32 or float64, got float16; there are "
        "no complex numbers of two halves",
    )
    return complex(abs * angle.cos(), abs * angle.sin())


@pointwise(promote="float", dtypes="bif", namespaces=(), method=False, inplace=False, label="logit")
def _logit(input: Tensor) -> Tensor:
    """Logarithm of x / (1 - x).

    >>> torch.logit(torch.tensor([0.5]))
    tensor([0.])
    """
    return s.log(input / (1 - input))


@_logit.vjp
def _(g, input):
    return s.where((input < 0) | (input > 1), nan, g / (input * (1 - input)))


@composite(inplace=True, out=True, aliases=("special.logit",), out_casts=True)
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """Logarithm of x / (1 - x), x clamped to [eps, 1 - eps] when eps is given.

    >>> torch.logit(torch.tensor([0.5]))
    tensor([0.])
    """
    if eps is None:
        return _logit(input)
    x = input if input.is_floating_point() else input.to(default_dtype())
    return _logit(x.clamp(eps, 1.0 - eps))


@composite(inplace=True, out=True)
def nan_to_num(
    input: Tensor,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """NaN and infinities replaced: by 0 and the dtype's largest numbers unless given.

    >>> torch.nan_to_num(torch.tensor([float("nan")]))
    tensor([0.])
    """
    if input.is_complex():
        return view_as_complex(nan_to_num(view_as_real(input), nan, posinf, neginf))
    if not input.is_floating_point():
        return input.clone()
    high = posinf if posinf is not None else largest(input.dtype)
    low = neginf if neginf is not None else -largest(input.dtype)
    x = where(input.isnan(), nan if nan is not None else 0.0, input)
    x = where(x == inf, high, x)
    return where(x == -inf, low, x)


@composite(method=True, namespaces=("torch", "nn.functional"), autocast="lower")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x above 0, `weight` times x below: one weight for all or one per channel (dim 1).

    Source: He et al., Delving Deep into Rectifiers, 2015.

    >>> torch.prelu(torch.tensor([-1.0]), torch.tensor([0.5]))
    tensor([-0.5000])
    """
    check(
        input.dtype == weight.dtype,
        f"prelu: Type promoting not supported. Got {input.dtype} and {weight.dtype}",
    )
    if weight.numel() == 1:
        return _prelu(input, weight.reshape([]))
    check(input.ndim > 0, "Not allow zero-dim input tensor.")
    channels = input.size(1) if input.ndim >= 2 else 1
    check(
        weight.ndim <= 1,
        f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}",
    )
    check(
        channels == weight.numel(),
        f"prelu: expected 1 weight or {channels}, one per channel, got {weight.numel()}",
    )
    shape: Ints = [1 for d in input.shape]
    if input.ndim >= 2:
        shape[1] = channels
    return _prelu(input, weight.reshape(shape))
