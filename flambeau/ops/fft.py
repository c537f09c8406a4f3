"""Discrete Fourier transforms: three kernels (complex, from real, to real) and the public forms.

Kernels: csrc/kernels/fft.cpp. The public module is `fft`; entries are named `fft_NAME`. Lengths,
dims and norms are settled here; kernels get dims and one scale.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(namespaces=(), method=False)
def _fft_strides(input: Tensor, dims: Ints, shape: Ints, last: bool) -> Ints:
    """Strides of a transform's result: other dims outside, transformed dims inside, each group in
    the order of the input's strides; with `last`, the last of `dims` is innermost.

    >>> torch.fft.fft(torch.ones(2, 3), dim=0).stride()
    (1, 2)
    """
    order: Ints = []
    for group in range(3):
        found: Ints = []
        for d in range(input.ndim):
            inside = contains(dims, d)
            end = last and inside and d == dims[len(dims) - 1]
            mine = end if group == 2 else (inside and not end) if group == 1 else not inside
            if mine:
                at = len(found)
                while at > 0 and input.stride(found[at - 1]) < input.stride(d):
                    at -= 1
                found.insert(at, d)
        order.extend(found)
    strides = contiguous_strides(shape)
    step = 1
    for i in range(len(order)):
        d = order[len(order) - 1 - i]
        strides[d] = step
        step *= max(1, shape[d])
    return strides


@composite(namespaces=(), method=False)
def _fft_empty(input: Tensor, dims: Ints, shape: Ints, dtype: DType, last: bool) -> Tensor:
    """The place of a transform's result.

    >>> torch.fft.fft(torch.ones(2, 3), dim=0).stride()
    (1, 2)
    """
    return empty_strided_as(shape, _fft_strides(input, dims, shape, last), dtype=dtype, like=input)


@structured(kernel="fft_c2c", namespaces=(), method=False, out=False, batch=True)
def _fft_c2c(input: Tensor, dims: Ints, scale: float, forward: bool) -> Tensor:
    """Complex to complex, over dims counted from 0.

    >>> torch.fft.fft(torch.ones(2))
    tensor([2.+0.j, 0.+0.j])
    """
    return _fft_empty(input, dims, input.shape, input.dtype, False)


@_fft_c2c.vjp
def _(g, dims: Ints, scale: float, forward: bool):
    return _fft_c2c(g, dims, scale, not forward)


@structured(kernel="fft_r2c", namespaces=(), method=False, out=False, batch=True)
def _fft_r2c(input: Tensor, dims: Ints, scale: float) -> Tensor:
    """Real to complex; of the last of `dims` only the first half of the spectrum, and one.

    >>> torch.fft.rfft(torch.ones(2))
    tensor([2.+0.j, 0.+0.j])
    """
    shape = input.shape
    d = dims[len(dims) - 1]
    shape[d] = shape[d] // 2 + 1
    return _fft_empty(input, dims, shape, to_complex(input.dtype), True)


@_fft_r2c.vjp
def _(g, input, dims: Ints, scale: float):
    d = dims[len(dims) - 1]
    return real(_fft_c2c(_fft_fit(g, d, input.shape[d]), dims, scale, False))


@structured(kernel="fft_c2r", namespaces=(), method=False, out=False, batch=True)
def _fft_c2r(input: Tensor, dims: Ints, n: int, scale: float) -> Tensor:
    """Complex to real: the inverse of what gives half of a spectrum; `n` long in the last dim.

    >>> torch.fft.irfft(torch.tensor([2.0 + 0j, 0]))
    tensor([1., 1.])
    """
    shape = input.shape
    shape[dims[len(dims) - 1]] = n
    return _fft_empty(input, dims, shape, to_real(input.dtype), True)


@_fft_c2r.vjp
def _(g, input, dims: Ints, n: int, scale: float):
    # Entries that stand for two of the whole spectrum count twice.
    d = dims[len(dims) - 1]
    x = _fft_r2c(g, dims, scale)
    k = x.size(d)
    twice = n - k
    if twice <= 0:
        return x
    parts: Tensors = [x.narrow(d, 0, 1), 2.0 * x.narrow(d, 1, twice)]
    if k > 1 + twice:
        parts.append(x.narrow(d, 1 + twice, k - 1 - twice))
    return cat(parts, d)


# What the public forms share ----------------------------------------------------------------------


@composite(namespaces=(), method=False)
def _fft_fit(input: Tensor, dim: int, n: int) -> Tensor:
    """input cut, or filled up with zeros, to length n along dim.

    >>> torch.fft.fft(torch.ones(2), 1)
    tensor([1.+0.j])
    """
    have = input.size(dim)
    if n == have:
        return input
    if n < have:
        return input.narrow(dim, 0, n)
    shape = input.shape
    shape[dim] = n - have
    return cat([input, zeros(shape, dtype=input.dtype)], dim)


@composite(namespaces=(), method=False)
def _fft_scale(norm: str | None, n: int, forward: bool) -> float:
    """The factor that a normalisation mode asks for.

    >>> torch.fft.fft(torch.ones(2), norm="forward")
    tensor([1.+0.j, 0.+0.j])
    """
    mode = "backward"
    if norm is not None:
        mode = norm
    check(
        mode == "backward" or mode == "forward" or mode == "ortho",
        f'Invalid normalization mode: "{mode}"',
    )
    if mode == "ortho":
        return 1.0 / sqrt(float(n))
    return 1.0 / float(n) if (mode == "forward") == forward else 1.0


@composite(namespaces=(), method=False)
def _fft_float(input: Tensor) -> Tensor:
    """input in a floating dtype.

    >>> torch.fft.rfft(torch.tensor([1, 1]))
    tensor([2.+0.j, 0.+0.j])
    """
    x = input if input.dtype.is_inexact else input.to(default_dtype())
    check(
        x.dtype != float16 and x.dtype != bfloat16,
        f"Unsupported dtype {scalar_type_name(x.dtype)}",
    )
    return x


@composite(namespaces=(), method=False)
def _fft_complex(input: Tensor) -> Tensor:
    """input in a complex dtype.

    >>> torch.fft.ifft(torch.tensor([2, 0]))
    tensor([1.+0.j, 1.+0.j])
    """
    x = _fft_float(input)
    return x.to(to_complex(x.dtype))


@composite(namespaces=(), method=False)
def _fft_real(name: str, what: str, input: Tensor) -> Tensor:
    """input in a real floating dtype; refuses complex ones.

    >>> torch.fft.rfft(torch.tensor([1, 1]))
    tensor([2.+0.j, 0.+0.j])
    """
    check(
        not input.is_complex(),
        f"{name} expects a {what} input tensor, but got {scalar_type_name(input.dtype)}",
    )
    return _fft_float(input)


@composite(namespaces=(), method=False)
def _fft_length(input: Tensor, dim: int, n: int | None) -> int:
    """Length of the transform along dim.

    >>> torch.fft.fft(torch.ones(2), 1)
    tensor([1.+0.j])
    """
    length = input.size(dim)
    if n is not None:
        length = n
    check(length >= 1, f"Invalid number of data points ({length}) specified")
    return length


@composite(namespaces=(), method=False)
def _fft_axes(input: Tensor, s: Ints | None, dim: Ints | None) -> Tuple[Ints, Ints]:
    """Dims from 0 and the lengths of a transform over several of them; length -1 is the input's.

    >>> torch.fft.fft2(torch.ones(2, 2)).shape
    torch.Size([2, 2])
    """
    dims: Ints = []
    lengths: Ints = []
    if dim is not None:
        for d in dim:
            w = wrap_dim(d, input.ndim)
            check(not contains(dims, w), "FFT dims must be unique")
            dims.append(w)
    if s is not None:
        check(
            dim is None or len(dims) == len(s),
            "When given, dim and shape arguments must have the same length",
        )
        check(
            len(s) <= input.ndim,
            f"Got shape with {len(s)} values but input tensor only has {input.ndim} dimensions.",
        )
        if dim is None:
            dims = list(range(input.ndim - len(s), input.ndim))
        lengths = s
    elif dim is None:
        dims = list(range(input.ndim))
    for i in range(len(dims)):
        if s is None:
            lengths.append(input.size(dims[i]))
        elif lengths[i] == -1:
            lengths[i] = input.size(dims[i])
        check(lengths[i] >= 1, f"Invalid number of data points ({lengths[i]}) specified")
    return dims, lengths


@composite(namespaces=(), method=False)
def _fft_fit_all(input: Tensor, dims: Ints, lengths: Ints) -> Tensor:
    """input cut or filled up along several dims.

    >>> torch.fft.fft2(torch.ones(2, 2), (1, 1))
    tensor([[1.+0.j]])
    """
    x = input
    for i in range(len(dims)):
        x = _fft_fit(x, dims[i], lengths[i])
    return x


@composite(namespaces=(), method=False)
def _fft_many(
    input: Tensor, s: Ints | None, dim: Ints | None, norm: str | None, forward: bool
) -> Tensor:
    """fftn and its inverse.

    >>> torch.fft.fftn(torch.ones(2))
    tensor([2.+0.j, 0.+0.j])
    """
    x = _fft_complex(input)
    dims, lengths = _fft_axes(x, s, dim)
    if len(dims) == 0:
        return x.clone()
    return _fft_c2c(
        _fft_fit_all(x, dims, lengths), dims, _fft_scale(norm, prod(lengths), forward), forward
    )


@composite(namespaces=(), method=False)
def _fft_half(
    name: str, input: Tensor, s: Ints | None, dim: Ints | None, norm: str | None, forward: bool
) -> Tensor:
    """rfftn, and with forward=False ihfftn: the conjugate with the inverse's scale.

    >>> torch.fft.rfftn(torch.ones(2))
    tensor([2.+0.j, 0.+0.j])
    """
    x = _fft_real(name, "real-valued", input)
    dims, lengths = _fft_axes(x, s, dim)
    check(len(dims) > 0, f"{name} must transform at least one axis")
    x = _fft_fit_all(x, dims, lengths)
    scale = _fft_scale(norm, prod(lengths), forward)
    if forward:
        return _fft_r2c(x, dims, scale)
    k = len(dims) - 1
    y = _fft_r2c(x, dims[k:], scale).conj()
    return _fft_c2c(y, dims[:k], 1.0, False) if k > 0 else y


@composite(namespaces=(), method=False)
def _fft_whole(
    name: str, input: Tensor, s: Ints | None, dim: Ints | None, norm: str | None, forward: bool
) -> Tensor:
    """irfftn, and with forward=True hfftn: of the conjugate, with the forward transform's scale.

    >>> torch.fft.irfftn(torch.tensor([2.0 + 0j, 0]))
    tensor([1., 1.])
    """
    x = _fft_complex(input)
    given, lengths = _fft_axes(x, s, dim)
    check(len(given) > 0, f"{name} must transform at least one axis")
    k = len(given) - 1
    last = given[k]
    if s is None or s[k] == -1:
        lengths[k] = 2 * (x.size(last) - 1)
    n = lengths[k]
    check(n >= 1, f"Invalid number of data points ({n}) specified")
    scale = _fft_scale(norm, prod(lengths), forward)
    lengths[k] = n // 2 + 1
    x = _fft_fit_all(x, given, lengths)
    return _fft_c2r(x.conj() if forward else x, given, n, scale)


# One dim ------------------------------------------------------------------------------------------


@composite(
    namespaces=("_C._fft",),
    aliases=("fft.fft",),
    method=False,
    out=True,
    autocast="float32",
    out_casts=True,
    sizes=("n",),
)
def fft_fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform along `dim`, of the input cut or zero-filled to length n.

    >>> torch.fft.fft(torch.ones(2))
    tensor([2.+0.j, 0.+0.j])
    """
    x = _fft_complex(input)
    d = wrap_dim(dim, x.ndim)
    length = _fft_length(x, d, n)
    return _fft_c2c(_fft_fit(x, d, length), [d], _fft_scale(norm, length, True), True)


@composite(
    namespaces=("_C._fft",),
    aliases=("fft.ifft",),
    method=False,
    out=True,
    autocast="float32",
    sizes=("n",),
)
def fft_ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of fft.

    >>> torch.fft.ifft(torch.tensor([2.0, 0.0]))
    tensor([1.+0.j, 1.+0.j])
    """
    x = _fft_complex(input)
    d = wrap_dim(dim, x.ndim)
    length = _fft_length(x, d, n)
    return _fft_c2c(_fft_fit(x, d, length), [d], _fft_scale(norm, length, False), False)


@composite(
    namespaces=("_C._fft",),
    aliases=("fft.rfft",),
    method=False,
    out=True,
    autocast="float32",
    out_casts=True,
    sizes=("n",),
)
def fft_rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The transform of a real signal: the n // 2 + 1 entries that the others follow from.

    >>> torch.fft.rfft(torch.ones(2))
    tensor([2.+0.j, 0.+0.j])
    """
    x = _fft_real("rfft", "real", input)
    d = wrap_dim(dim, x.ndim)
    length = _fft_length(x, d, n)
    return _fft_r2c(_fft_fit(x, d, length), [d], _fft_scale(norm, length, True))


@composite(namespaces=(), method=False)
def _fft_to_real(input: Tensor, n: int | None, dim: int, norm: str | None, forward: bool) -> Tensor:
    """irfft, and with forward=True hfft.

    >>> torch.fft.irfft(torch.tensor([2.0 + 0j, 0]))
    tensor([1., 1.])
    """
    x = _fft_complex(input)
    d = wrap_dim(dim, x.ndim)
    length = 2 * (x.size(d) - 1)
    if n is not None:
        length = n
    check(length >= 1, f"Invalid number of data points ({length}) specified")
    x = _fft_fit(x, d, length // 2 + 1)
    scale = _fft_scale(norm, length, forward)
    return _fft_c2r(x.conj() if forward else x, [d], length, scale)


@composite(
    namespaces=("_C._fft",),
    aliases=("fft.irfft",),
    method=False,
    out=True,
    autocast="float32",
    out_casts=True,
    sizes=("n",),
)
def fft_irfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None
) -> Tensor:
    """The inverse of rfft: real, and n long (an even length unless said).

    >>> torch.fft.irfft(torch.tensor([2.0 + 0j, 0]))
    tensor([1., 1.])
    """
    return _fft_to_real(input, n, dim, norm, False)


@composite(
    namespaces=("_C._fft",),
    aliases=("fft.hfft",),
    method=False,
    out=True,
    autocast="float32",
    out_casts=True,
    sizes=("n",),
)
def fft_hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The transform of a Hermitian signal, of which one half is given: real.

    >>> torch.fft.hfft(torch.tensor([2.0 + 0j, 0]))
    tensor([2., 2.])
    """
    return _fft_to_real(input, n, dim, norm, True)


@composite(
    namespaces=("_C._fft",),
    aliases=("fft.ihfft",),
    method=False,
    out=True,
    autocast="float32",
    sizes=("n",),
)
def fft_ihfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None
) -> Tensor:
    """The inverse of hfft.

    >>> torch.fft.ihfft(torch.tensor([2.0, 2.0]))
    tensor([2.-0.j, 0.-0.j])
    """
    x = _fft_real("ihfft", "real", input)
    d = wrap_dim(dim, x.ndim)
    length = _fft_length(x, d, n)
    return _fft_r2c(_fft_fit(x, d, length), [d], _fft_scale(norm, length, False)).conj()


# Several dims -------------------------------------------------------------------------------------


@composite(
    namespaces=("_C._fft",),
    aliases=("fft.fftn",),
    method=False,
    out=True,
    autocast="float32",
    out_casts=True,
)
def fft_fftn(
    input: Tensor, s: Ints1 | None = None, dim: Ints1 | None = None, norm: str | None = None
) -> Tensor:
    """The transform over several dims (all by default, the last ones for a given `s`).

    >>> torch.fft.fftn(torch.ones(1))
    tensor([1.+0.j])
    """
    return _fft_many(input, s, dim, norm, True)


@composite(
    namespaces=("_C._fft",),
    aliases=("fft.fft2",),
    method=False,
    out=True,
    autocast="float32",
    out_casts=True,
)
def fft_fft2(
    input: Tensor, s: Ints1 | None = None, dim: Ints1 = (-2, -1), norm: str | None = None
) -> Tensor:
    """The transform over two dims.

    >>> torch.fft.fft2(torch.ones(1, 1))
    tensor([[1.+0.j]])
    """
    return fft_fftn(input, s, dim, norm)


@composite(
    namespaces=("_C._fft",),
    aliases=("fft.ifftn",),
    method=False,
    out=True,
    autocast="float32",
    out_casts=True,
)
def fft_ifftn(
    input: Tensor, s: Ints1 | None = None, dim: Ints1 | None = None, norm: str | None = None
) -> Tensor:
    """The inverse transform over several dims (all by default, the last ones for a given `s`).

    >>> torch.fft.ifftn(torch.ones(1))
    tensor([1.+0.j])
    """
    return _fft_many(input, s, dim, norm, False)


@composite(
    namespaces=("_C._fft",),
    aliases=("fft.ifft2",),
    method=False,
    out=True,
    autocast="float32",
    out_casts=True,
)
def fft_ifft2(
    input: Tensor, s: Ints1 | None = None, dim: Ints1 = (-2, -1), norm: str | None = None
) -> Tensor:
    """The inverse transform over two dims.

    >>> torch.fft.ifft2(torch.ones(1, 1))
    tensor([[1.+0.j]])
    """
    return fft_ifftn(input, s, dim, norm)


@composite(
    namespaces=("_C._fft",),
    aliases=("fft.rfftn",),
    method=False,
    out=True,
    autocast="float32",
    out_casts=True,
)
def fft_rfftn(
    input: Tensor, s: Ints1 | None = None, dim: Ints1 | None = None, norm: str | None = None
) -> Tensor:
    """The transform of a real signal over several dims (all by default, the last for an `s`).

    >>> torch.fft.rfftn(torch.ones(1))
    tensor([1.+0.j])
    """
    return _fft_half("rfftn", input, s, dim, norm, True)


@composite(
    namespaces=("_C._fft",),
    aliases=("fft.rfft2",),
    method=False,
    out=True,
    autocast="float32",
    out_casts=True,
)
def fft_rfft2(
    input: Tensor, s: Ints1 | None = None, dim: Ints1 = (-2, -1), norm: str | None = None
) -> Tensor:
    """The transform of a real signal over two dims.

    >>> torch.fft.rfft2(torch.ones(1, 1))
    tensor([[1.+0.j]])
    """
    return fft_rfftn(input, s, dim, norm)


@composite(
    namespaces=("_C._fft",),
    aliases=("fft.irfftn",),
    method=False,
    out=True,
    autocast="float32",
    out_casts=True,
)
def fft_irfftn(
    input: Tensor, s: Ints1 | None = None, dim: Ints1 | None = None, norm: str | None = None
) -> Tensor:
    """The inverse of rfft over several dims (all by default, the last ones for a given `s`).

    >>> torch.fft.irfftn(torch.tensor([2.0 + 0j, 0]))
    tensor([1., 1.])
    """
    return _fft_whole("irfftn", input, s, dim, norm, False)


@composite(
    namespaces=("_C._fft",),
    aliases=("fft.irfft2",),
    method=False,
    out=True,
    autocast="float32",
    out_casts=True,
)
def fft_irfft2(
    input: Tensor, s: Ints1 | None = None, dim: Ints1 = (-2, -1), norm: str | None = None
) -> Tensor:
    """The inverse of rfft over two dims.

    >>> torch.fft.irfft2(torch.tensor([[2.0 + 0j, 0]]))
    tensor([[1., 1.]])
    """
    return fft_irfftn(input, s, dim, norm)


@composite(namespaces=("_C._fft",), aliases=("fft.hfftn",), method=False, out=True, out_casts=True)
def fft_hfftn(
    input: Tensor, s: Ints1 | None = None, dim: Ints1 | None = None, norm: str | None = None
) -> Tensor:
    """The transform of a Hermitian signal over several dims (all by default, the last for an `s`).

    >>> torch.fft.hfftn(torch.tensor([2.0 + 0j, 0]))
    tensor([2., 2.])
    """
    return _fft_whole("hfftn", input, s, dim, norm, True)


@composite(namespaces=("_C._fft",), aliases=("fft.hfft2",), method=False, out=True, out_casts=True)
def fft_hfft2(
    input: Tensor, s: Ints1 | None = None, dim: Ints1 = (-2, -1), norm: str | None = None
) -> Tensor:
    """The transform of a Hermitian signal over two dims.

    >>> torch.fft.hfft2(torch.tensor([[2.0 + 0j, 0]]))
    tensor([[2., 2.]])
    """
    return fft_hfftn(input, s, dim, norm)


@composite(namespaces=("_C._fft",), aliases=("fft.ihfftn",), method=False, out=True)
def fft_ihfftn(
    input: Tensor, s: Ints1 | None = None, dim: Ints1 | None = None, norm: str | None = None
) -> Tensor:
    """The inverse of hfft over several dims (all by default, the last ones for a given `s`).

    >>> torch.fft.ihfftn(torch.ones(1))
    tensor([1.-0.j])
    """
    return _fft_half("ihfftn", input, s, dim, norm, False)


@composite(namespaces=("_C._fft",), aliases=("fft.ihfft2",), method=False, out=True, out_casts=True)
def fft_ihfft2(
    input: Tensor, s: Ints1 | None = None, dim: Ints1 = (-2, -1), norm: str | None = None
) -> Tensor:
    """The inverse of hfft over two dims.

    >>> torch.fft.ihfft2(torch.ones(1, 1))
    tensor([[1.-0.j]])
    """
    return fft_ihfftn(input, s, dim, norm)


# Frequencies and their order ----------------------------------------------------------------------


@composite(namespaces=("_C._fft",), aliases=("fft.fftfreq",), method=False, factory=True, out=True)
def fft_fftfreq(
    n: int, d: float = 1.0, *, dtype: DType | None = None, device: Device | None = None
) -> Tensor:
    """Frequencies of the entries of a transform of n samples that are d apart.

    >>> torch.fft.fftfreq(2)
    tensor([ 0.0000, -0.5000])
    """
    out = empty([n], dtype=default_dtype() if dtype is None else dtype, device=device)
    half = (n + 1) // 2
    out.narrow(0, 0, half).copy_(arange(half))
    out.narrow(0, half, n - half).copy_(arange(-(n // 2), 0))
    return out.mul_(1.0 / (float(n) * d))


@composite(namespaces=("_C._fft",), aliases=("fft.rfftfreq",), method=False, factory=True, out=True)
def fft_rfftfreq(
    n: int, d: float = 1.0, *, dtype: DType | None = None, device: Device | None = None
) -> Tensor:
    """Frequencies of the entries of rfft of n samples that are d apart.

    >>> torch.fft.rfftfreq(2)
    tensor([0.0000, 0.5000])
    """
    kind = default_dtype() if dtype is None else dtype
    return arange(n // 2 + 1, dtype=kind, device=device).mul_(1.0 / (float(n) * d))


@composite(namespaces=(), method=False)
def _fft_roll(input: Tensor, dim: Ints | None, up: bool) -> Tensor:
    """fftshift, and its inverse.

    >>> torch.fft.fftshift(torch.tensor([0, 1]))
    tensor([1, 0])
    """
    dims: Ints = []
    if dim is None:
        dims = list(range(input.ndim))
    else:
        dims = dim
    shifts = [(input.size(d) + (1 if up else 0)) // 2 for d in dims]
    if len(dims) == 0:
        return input.clone()
    return roll(input, shifts, dims)


@composite(namespaces=("_C._fft",), aliases=("fft.fftshift",), method=False)
def fft_fftshift(input: Tensor, dim: Ints1 | None = None) -> Tensor:
    """Entries of negative frequency first.

    >>> torch.fft.fftshift(torch.tensor([0, 1]))
    tensor([1, 0])
    """
    return _fft_roll(input, dim, False)


@composite(namespaces=("_C._fft",), aliases=("fft.ifftshift",), method=False)
def fft_ifftshift(input: Tensor, dim: Ints1 | None = None) -> Tensor:
    """The inverse of fftshift.

    >>> torch.fft.ifftshift(torch.tensor([1, 0]))
    tensor([0, 1])
    """
    return _fft_roll(input, dim, True)
