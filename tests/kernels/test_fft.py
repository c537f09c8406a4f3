"""Fourier transforms against NumPy's and SciPy's, which share no code with ours; gradients."""

import numpy as np
import pytest
from scipy import signal

import flambeau as torch

LENGTHS = [
    1,
    2,
    3,
    5,
    7,
    8,
    12,
    16,
    25,
    31,
    32,
    37,
    49,
    64,
    74,
    100,
    101,
    121,
    256,
    362,
    1000,
    1009,
]
LONG = [2048, 6561, 10007, 32768, 20014, 65536, 3 * 2**16, 37 * 37 * 29]
NORMS = [None, "backward", "ortho", "forward"]


def values(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def close(got, want, dtype):
    got = got.numpy()
    assert got.shape == want.shape
    limit = 3e-6 if np.dtype(dtype).name in ("float32", "complex64") else 1e-14
    scale = max(1.0, np.abs(want).max(initial=0.0))
    assert np.abs(got - want).max(initial=0.0) <= limit * scale


@pytest.mark.parametrize("n", LENGTHS + LONG)
@pytest.mark.parametrize("lines", [1, 3, 19])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_one_dim(n, lines, dtype):
    if n > 1009 and lines > 3:
        lines = 2
    wide, real = "complex128", "float32" if dtype == "complex64" else "float64"
    x = values((lines, n), dtype)
    t = torch.from_numpy(x)
    close(torch.fft.fft(t), np.fft.fft(x.astype(wide)), dtype)
    close(torch.fft.ifft(t), np.fft.ifft(x.astype(wide)), dtype)
    y = values((lines, n), real)
    close(torch.fft.rfft(torch.from_numpy(y)), np.fft.rfft(y.astype("float64")), dtype)
    close(torch.fft.ihfft(torch.from_numpy(y)), np.fft.ihfft(y.astype("float64")), dtype)
    half = values((lines, n // 2 + 1), dtype)
    h = torch.from_numpy(half)
    close(torch.fft.irfft(h, n), np.fft.irfft(half.astype(wide), n), real)
    close(torch.fft.hfft(h, n), np.fft.hfft(half.astype(wide), n), real)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("n", [None, 4, 9])
def test_norms_and_lengths(name, norm, n):
    x = values((3, 6, 2), "float64" if name in ("rfft", "ihfft") else "complex128")
    got = getattr(torch.fft, name)(torch.from_numpy(x), n, 1, norm)
    close(got, getattr(np.fft, name)(x, n, 1, norm), "float64")


@pytest.mark.parametrize("dims", [(0,), (1, 2), (2, 0), (0, 1, 2), (-1, -3)])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_several_dims_of_any_layout(dims, order):
    x = values((4, 5, 6), "complex128").transpose(order)
    t = torch.from_numpy(np.ascontiguousarray(x.transpose(np.argsort(order)))).permute(order)
    close(torch.fft.fftn(t, dim=dims), np.fft.fftn(x, axes=dims), "float64")
    close(torch.fft.ifftn(t, dim=dims), np.fft.ifftn(x, axes=dims), "float64")
    close(torch.fft.rfftn(torch.real(t), dim=dims), np.fft.rfftn(x.real, axes=dims), "float64")
    s = [x.shape[d] for d in dims]
    for last in (s[-1], s[-1] - 1):
        s[-1] = 2 * last - 2
        if s[-1] > 0:
            want = np.fft.irfftn(x, s=s, axes=dims)
            close(torch.fft.irfftn(t, s, dim=dims), want, "float64")


def test_forms_of_real_results():
    x = values((5, 4), "complex128")
    t = torch.from_numpy(x)
    close(torch.fft.hfft2(t), np.fft.hfft(np.fft.fft(x, axis=0), axis=1), "float64")
    y = values((5, 4), "float64")
    want = np.fft.ifft(np.fft.ihfft(y, axis=1), axis=0)
    close(torch.fft.ihfftn(torch.from_numpy(y)), want, "float64")
    close(torch.fft.fft2(torch.from_numpy(y), (3, 7)), np.fft.fft2(y, (3, 7)), "float64")


def test_frequencies_and_shifts():
    for n in (1, 4, 7):
        np.testing.assert_allclose(torch.fft.fftfreq(n, 0.5).numpy(), np.fft.fftfreq(n, 0.5), 1e-6)
        np.testing.assert_allclose(torch.fft.rfftfreq(n, 2).numpy(), np.fft.rfftfreq(n, 2), 1e-6)
        x = np.arange(n * 3).reshape(3, n)
        for dim in (None, 1, (0, 1)):
            for name in ("fftshift", "ifftshift"):
                got = getattr(torch.fft, name)(torch.from_numpy(x), dim)
                np.testing.assert_array_equal(got.numpy(), getattr(np.fft, name)(x, dim))


def test_integers_are_transformed_as_floats():
    assert torch.fft.fft(torch.arange(4)).dtype == torch.complex64
    assert torch.fft.rfft(torch.ones(4, dtype=torch.bool)).dtype == torch.complex64


@pytest.mark.parametrize(
    "name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "irfft2"]
)
@pytest.mark.parametrize("n", [4, 5])
def test_gradients(name, n):
    dtype = "float64" if name in ("rfft", "ihfft") else "complex128"
    x = torch.from_numpy(values((2, n), dtype)).requires_grad_()
    run = getattr(torch.fft, name)
    assert torch.autograd.gradcheck(run, (x,))
    assert torch.autograd.gradgradcheck(run, (x,))


def test_errors():
    x = torch.ones(3)
    with pytest.raises(RuntimeError, match=r"Invalid number of data points \(0\) specified"):
        torch.fft.fft(x, 0)
    with pytest.raises(RuntimeError, match='Invalid normalization mode: "loud"'):
        torch.fft.fft(x, norm="loud")
    with pytest.raises(
        RuntimeError, match="rfft expects a real input tensor, but got ComplexFloat"
    ):
        torch.fft.rfft(torch.fft.fft(x))
    with pytest.raises(RuntimeError, match="FFT dims must be unique"):
        torch.fft.fftn(x, dim=(0, -1))
    with pytest.raises(IndexError):
        torch.fft.fft(x, dim=1)


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 16])
def test_windows(name, periodic, n):
    got = getattr(torch, f"{name}_window")(n, periodic, dtype=torch.float64)
    kind = ("kaiser", 12.0) if name == "kaiser" else name
    want = signal.get_window(kind, n, periodic) if n > 0 else np.zeros(0)
    np.testing.assert_allclose(got.numpy(), want, atol=1e-12)


@pytest.mark.parametrize("n_fft,hop,width", [(16, 4, 16), (16, 5, 10), (9, 3, 9)])
@pytest.mark.parametrize("center", [True, False])
def test_short_time_transform(n_fft, hop, width, center):
    x = values((2, 50), "float64")
    window = np.hanning(width + 2)[1:-1]
    got = torch.stft(
        torch.from_numpy(x), n_fft, hop, width, torch.from_numpy(window), center=center,
        return_complex=True,
    )  # fmt: skip
    left = (n_fft - width) // 2
    w = np.pad(window, (left, n_fft - width - left))
    padded = np.pad(x, ((0, 0), (n_fft // 2,) * 2), "reflect") if center else x
    frames = np.lib.stride_tricks.sliding_window_view(padded, n_fft, 1)[:, ::hop]
    want = np.fft.rfft(frames * w).transpose(0, 2, 1)
    close(got, want, "float64")
    if center:
        length = (got.shape[2] - 1) * hop
        back = torch.istft(got, n_fft, hop, width, torch.from_numpy(window), length=length)
        np.testing.assert_allclose(back.numpy(), x[:, :length], atol=1e-10)


def test_short_time_gradients():
    x = torch.from_numpy(values((12,), "float64")).requires_grad_()
    w = torch.hann_window(4, dtype=torch.float64)

    def there_and_back(x):
        return torch.istft(torch.stft(x, 4, window=w, return_complex=True), 4, window=w)

    assert torch.autograd.gradcheck(there_and_back, (x,))
