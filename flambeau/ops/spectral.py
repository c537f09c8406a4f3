"""Short-time Fourier transforms and the classical windows, composed of other operations.

Windows are worked out in the dtype asked for; a periodic one is a symmetric one that is longer by
one entry, without its last.
"""

from __future__ import annotations

from flambeau.ops._lang import *


@composite(namespaces=(), method=False)
def _window_dtype(name: str, length: int, dtype: DType | None) -> DType:
    """The dtype of a window; refuses negative lengths and dtypes that are not floating.

    >>> torch.hann_window(2)
    tensor([0., 1.])
    """
    kind = default_dtype()
    if dtype is not None:
        kind = dtype
    check(
        kind.is_floating_point,
        f"{name} expects floating point dtypes, got: {dtype_name(kind)}",
    )
    check(length >= 0, f"{name} requires non-negative window_length, got window_length={length}")
    return kind


@composite(namespaces=(), method=False)
def _cosines(
    name: str, length: int, periodic: bool, a: float, b: float, c: float,
    dtype: DType | None, device: Device | None,
) -> Tensor:  # fmt: skip
    """a - b cos(t) + c cos(2 t) over one period.

    >>> torch.hann_window(2)
    tensor([0., 1.])
    """
    kind = _window_dtype(name, length, dtype)
    if length <= 1:
        return ones([length], dtype=kind, device=device)
    steps = length if periodic else length - 1
    wide = float64 if kind == float64 else float32
    t = arange(length, dtype=wide, device=device) * (2.0 * pi / float(steps))
    w = t.cos() * (-b) + a
    if c != 0.0:
        w = w + (t * 2.0).cos() * c
    return w.to(kind)


@composite(factory=True, method=False)
def hann_window(
    window_length: int, periodic: bool = True,
    *, dtype: DType | None = None, device: Device | None = None,
) -> Tensor:  # fmt: skip
    """Hann's window: a raised cosine.

    >>> torch.hann_window(2)
    tensor([0., 1.])
    """
    return _cosines("hann_window", window_length, periodic, 0.5, 0.5, 0.0, dtype, device)


@composite(factory=True, method=False)
def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46,
    *, dtype: DType | None = None, device: Device | None = None,
) -> Tensor:  # fmt: skip
    """Hamming's window: alpha minus beta times a cosine.

    >>> torch.hamming_window(2)
    tensor([0.0800, 1.0000])
    """
    return _cosines("hamming_window", window_length, periodic, alpha, beta, 0.0, dtype, device)


@composite(factory=True, method=False)
def blackman_window(
    window_length: int, periodic: bool = True,
    *, dtype: DType | None = None, device: Device | None = None,
) -> Tensor:  # fmt: skip
    """Blackman's window: two cosines.

    >>> torch.blackman_window(1)
    tensor([1.])
    """
    w = _cosines("blackman_window", window_length, periodic, 0.42, 0.5, 0.08, dtype, device)
    return w.abs()


@composite(factory=True, method=False)
def bartlett_window(
    window_length: int, periodic: bool = True,
    *, dtype: DType | None = None, device: Device | None = None,
) -> Tensor:  # fmt: skip
    """Bartlett's window: a triangle.

    >>> torch.bartlett_window(2)
    tensor([0., 1.])
    """
    kind = _window_dtype("bartlett_window", window_length, dtype)
    if window_length <= 1:
        return ones([window_length], dtype=kind, device=device)
    steps = window_length if periodic else window_length - 1
    t = arange(window_length, dtype=kind, device=device) * (2.0 / float(steps))
    return 1.0 - (t - 1.0).abs()


@composite(factory=True, method=False)
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0,
    *, dtype: DType | None = None, device: Device | None = None,
) -> Tensor:  # fmt: skip
    """Kaiser's window: a ratio of modified Bessel functions.

    >>> torch.kaiser_window(1)
    tensor([1.])
    """
    kind = _window_dtype("kaiser_window", window_length, dtype)
    if window_length <= 1:
        return ones([window_length], dtype=kind, device=device)
    steps = window_length if periodic else window_length - 1
    wide = float64 if kind == float64 else float32
    t = arange(window_length, dtype=wide, device=device) * (2.0 / float(steps)) - 1.0
    w = ((1.0 - t * t).clamp(0.0).sqrt() * beta).i0() / full([], beta, dtype=wide).i0()
    return w.to(kind)


# Short-time transforms ----------------------------------------------------------------------------


@composite(namespaces=(), method=False)
def _frame_window(
    name: str, window: Tensor | None, length: int, n_fft: int, dtype: DType
) -> Tensor:
    """The window in the middle of a frame; ones where none is given.

    >>> torch.stft(torch.ones(8), 4, window=torch.ones(4), return_complex=True).shape
    torch.Size([3, 9])
    """
    check(
        length > 0 and length <= n_fft,
        f"{name}: expected 0 < win_length <= n_fft, but got win_length={length}",
    )
    w = ones([length], dtype=dtype)
    if window is not None:
        check(
            window.ndim == 1 and window.size(0) == length,
            f"{name}: expected a 1D window tensor of size equal to win_length={length}, but got "
            f"window with size {window.shape}",
        )
        w = window
    if length == n_fft:
        return w
    left = (n_fft - length) // 2
    return pad(w, [left, n_fft - length - left])


@composite(autocast="float32")
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Fourier transforms of overlapping frames of a signal. Shape: (..., frequencies, frames).

    Args:
        input: (time,) or (batch, time).
        n_fft: size of a frame.
        hop_length: distance of frames; a quarter of n_fft by default.
        win_length: length of the window, which is put in the middle of a frame.
        center: frames are centred on their times; the signal is padded with `pad_mode`.
        normalized: scale by the root of n_fft.
        onesided: only frequencies that are not negative; the default for real signals.
        return_complex: must be given for real signals; False gives pairs of reals.

    >>> torch.stft(torch.ones(8), 4, window=torch.ones(4), return_complex=True).shape
    torch.Size([3, 9])
    """
    check(
        input.dtype.is_inexact,
        f"stft: expected a tensor of floating point or complex values, got {input.dtype}",
    )
    check(
        input.ndim == 1 or input.ndim == 2,
        f"stft: expected a 1D or 2D tensor, got {input.ndim}D",
    )
    cplx = input.is_complex()
    if window is not None:
        cplx = cplx or window.is_complex()
    complex_result = cplx
    if return_complex is not None:
        complex_result = return_complex
    else:
        check(
            cplx,
            "stft requires the return_complex parameter be given for real inputs, and will "
            "further require that return_complex=True in a future PyTorch release.",
        )
    if not complex_result and not cplx:
        warn("stft: return_complex=False is deprecated: use view_as_real of the complex result")
    if window is None:
        warn("stft: without a window, frames end abruptly, which leaks into all frequencies")
    x = input.unsqueeze(0) if input.ndim == 1 else input
    if align_to_window is not None:
        check(
            not center,
            "stft align_to_window should only be set when center = false.",
        )
    if center:
        half = n_fft // 2
        x = pad(x.unsqueeze(0), [half, half], pad_mode).squeeze(0)
    time = x.size(1)
    hop = n_fft // 4
    if hop_length is not None:
        hop = hop_length
    length = n_fft
    if win_length is not None:
        length = win_length
    check(
        n_fft > 0 and n_fft <= time,
        f"stft: expected 0 < n_fft < {time}, but got n_fft={n_fft}",
    )
    check(hop > 0, f"stft: expected hop_length > 0, but got hop_length={hop}")
    w = _frame_window("stft", window, length, n_fft, input.dtype)
    frames = x.unfold(1, n_fft, hop)
    if window is not None or length < n_fft:
        frames = frames * w
    half_only = not cplx
    if onesided is not None:
        half_only = onesided
        check(
            not half_only or not cplx,
            "Cannot have onesided output if window or input is complex",
        )
    scale = 1.0 / sqrt(float(n_fft)) if normalized else 1.0
    out = frames
    if half_only:
        out = _fft_r2c(_fft_float(frames), [2], scale)
    else:
        out = _fft_c2c(_fft_complex(frames), [2], scale, True)
    out = out.transpose(1, 2)
    if input.ndim == 1:
        out = out.squeeze(0)
    return out if complex_result else view_as_real(out)


@composite(namespaces=(), method=False)
def _overlap_add(frames: Tensor, hop: int) -> Tensor:
    """Sums frames (batch, n, size) that begin `hop` apart. Shape: (batch, size + (n - 1) hop).

    >>> torch.stft(torch.ones(8), 4, window=torch.ones(4), return_complex=True).shape
    torch.Size([3, 9])
    """
    b, n, size = frames.shape
    pieces = (size + hop - 1) // hop
    x = frames if pieces * hop == size else pad(frames, [0, pieces * hop - size])
    total = (n + pieces - 1) * hop
    out = zeros([b, total], dtype=frames.dtype)
    for j in range(pieces):
        piece = x.narrow(2, j * hop, hop).reshape([b, n * hop])
        out = out + pad(piece, [j * hop, total - (j + n) * hop])
    return out.narrow(1, 0, size + (n - 1) * hop)


@composite()
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal that comes nearest to having a short-time transform (Griffin and Lim, 1984).

    >>> x = torch.arange(16.0)
    >>> w = torch.hann_window(4)
    >>> torch.istft(torch.stft(x, 4, window=w, return_complex=True), 4, window=w).shape
    torch.Size([16])
    """
    check(
        input.is_complex(),
        "istft requires a complex-valued input tensor matching the output from stft with "
        "return_complex=True.",
    )
    check(
        input.numel() > 0 and (input.ndim == 2 or input.ndim == 3),
        f"istft: expected a tensor with 2 or 3 dimensions and entries, got shape {input.shape}",
    )
    if window is None:
        warn("istft: expected the window that stft was given; ones stand in for it")
    x = input.unsqueeze(0) if input.ndim == 2 else input
    hop = n_fft // 4
    if hop_length is not None:
        hop = hop_length
    width = n_fft
    if win_length is not None:
        width = win_length
    size = x.size(1)
    half_only = size != n_fft
    if onesided is not None:
        half_only = onesided
    want = n_fft // 2 + 1 if half_only else n_fft
    how = f"n_fft / 2 + 1 when onesided=True, but got {size}"
    if not half_only:
        how = f"n_fft when onesided=False, but got {size}"
    check(
        size == want,
        "istft: expected the frequency dimension (3rd to the last) of the input tensor to match "
        f"{how}",
    )
    check(
        hop > 0 and hop <= width,
        f"istft: expected 0 < hop_length <= win_length, got hop_length={hop}, win_length={width}",
    )
    kind = input.dtype if return_complex else to_real(input.dtype)
    w = _frame_window("istft", window, width, n_fft, to_real(input.dtype))
    check(
        return_complex or not w.is_complex(),
        "Complex windows are incompatible with return_complex=False",
    )
    check(
        not return_complex or not half_only,
        "Cannot have onesided output if window or input is complex",
    )
    spectra = x.transpose(1, 2)
    scale = 1.0 / sqrt(float(n_fft)) if normalized else 1.0 / float(n_fft)
    frames = spectra
    if return_complex:
        frames = _fft_c2c(spectra, [2], scale, False)
    else:
        frames = _fft_c2r(_fft_fit(spectra, 2, n_fft // 2 + 1), [2], n_fft, scale)
    n = frames.size(1)
    signal = _overlap_add((frames * w).to(kind), hop)
    envelope = _overlap_add((w * w).expand([1, n, n_fft]), hop)
    whole = n_fft + hop * (n - 1)
    start = n_fft // 2 if center else 0
    end = whole - n_fft // 2 if center else whole
    if length is not None:
        check(length >= 0, f"istft: expected length >= 0, but got length={length}")
        end = start + length
    have = min(end, whole)
    signal = signal.narrow(1, start, max(0, have - start))
    envelope = envelope.narrow(1, start, max(0, have - start))
    if envelope.numel() > 0:
        least = envelope.abs().amin()
        check(
            truth(least > 1e-11, True),
            "istft: window overlap add min: 1",
        )
    out = signal / envelope
    if end > whole:
        out = pad(out, [0, end - whole])
    return out.squeeze(0) if input.ndim == 2 else out


@composite(aliases=("special.multigammaln",), inplace=True, out=True, out_casts=True)
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """Logarithm of the multivariate gamma function of dimension p.

    >>> torch.mvlgamma(torch.tensor([1.0]), 1)
    tensor([0.])
    """
    check(input.dtype != bool_, "The input tensor may not be a boolean tensor.")
    check(p >= 1, "p has to be greater than or equal to 1")
    check(not input.is_complex(), '"mvlgamma" not implemented for complex numbers')
    x = input if input.is_floating_point() else input.to(default_dtype())
    halves = arange(p, dtype=x.dtype) * -0.5
    constant = float(p * (p - 1)) * 0.25 * log(pi)
    return (x.unsqueeze(-1) + halves).lgamma().sum(-1) + constant
