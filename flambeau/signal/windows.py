"""Windows for spectral analysis. `sym=True` gives symmetric windows, for filters; `sym=False`
periodic ones, for Fourier transforms: longer by one entry, without the last.

Source: Harris, Proc. IEEE 66 (1978); Nuttall, IEEE Trans. ASSP 29 (1981); Kaiser, 1974.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import flambeau
from flambeau import _C

Tensor = _C.Tensor

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine",
    "general_hamming", "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip


class _Place:
    """What every window is told about its result, checked."""

    def __init__(
        self, name: str, M: int, sym: bool, dtype: Any, layout: Any, device: Any, grad: bool
    ) -> None:
        if M < 0:
            raise ValueError(f"{name} requires non-negative window length, got M={M}")
        if layout is not None and layout is not flambeau.strided:
            raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
        self.dtype = flambeau.get_default_dtype() if dtype is None else dtype
        if self.dtype not in (flambeau.float32, flambeau.float64):
            raise ValueError(f"{name} expects float32 or float64 dtypes, got: {self.dtype}")
        self.size, self.steps = M, max(1, M - 1 if sym else M)
        self.device, self.grad = device, grad

    def times(self, start: float, end: float) -> Tensor:
        """Evenly spaced, from start to end over the whole steps of the window."""
        x = flambeau.arange(self.size, dtype=flambeau.float64, device=self.device)
        return start + x * ((end - start) / self.steps)

    def centred(self) -> Tensor:
        """Distances from the middle, in entries."""
        return self.times(-self.steps / 2, self.steps / 2)

    def finish(self, x: Tensor) -> Tensor:
        if self.size == 1:
            x = flambeau.ones(1, dtype=self.dtype, device=self.device)
        return x.to(self.dtype).requires_grad_(self.grad)


def general_cosine(
    M: int, *, a: Iterable[float], sym: bool = True, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Sum of cosines of multiples of the angle, with coefficients `a` of alternating sign.

    >>> torch.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    place = _Place("general_cosine", M, sym, dtype, layout, device, requires_grad)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    coefficients = list(a)
    if not coefficients:
        raise ValueError("Coefficients cannot be empty")
    t = place.times(0.0, 2 * math.pi)
    total = flambeau.zeros_like(t)
    for k, c in enumerate(coefficients):
        total = total + (t * k).cos() * (-c if k % 2 else c)
    return place.finish(total)


def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """alpha minus 1 - alpha times a cosine.

    >>> torch.signal.windows.general_hamming(3, alpha=0.5)
    tensor([0., 1., 0.])
    """
    return general_cosine(
        M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device,
        requires_grad=requires_grad,
    )  # fmt: skip


def hann(M: int, *, sym: bool = True, **place: Any) -> Tensor:
    """Hann's window: a raised cosine.

    >>> torch.signal.windows.hann(3)
    tensor([0., 1., 0.])
    """
    return general_hamming(M, alpha=0.5, sym=sym, **place)


def hamming(M: int, *, sym: bool = True, **place: Any) -> Tensor:
    """Hamming's window: a cosine on a pedestal.

    >>> torch.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """
    return general_hamming(M, alpha=0.54, sym=sym, **place)


def blackman(M: int, *, sym: bool = True, **place: Any) -> Tensor:
    """Blackman's window: two cosines.

    >>> torch.signal.windows.blackman(1)
    tensor([1.])
    """
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **place)


def nuttall(M: int, *, sym: bool = True, **place: Any) -> Tensor:
    """Nuttall's window: three cosines, small side lobes.

    >>> torch.signal.windows.nuttall(1)
    tensor([1.])
    """
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **place)


def bartlett(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Bartlett's window: a triangle that touches zero.

    >>> torch.signal.windows.bartlett(3)
    tensor([0., 1., 0.])
    """
    place = _Place("bartlett", M, sym, dtype, layout, device, requires_grad)
    return place.finish(1.0 - place.times(-1.0, 1.0).abs())


def cosine(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Half a period of a sine, sampled in the middle of entries.

    >>> torch.signal.windows.cosine(1)
    tensor([1.])
    """
    place = _Place("cosine", M, sym, dtype, layout, device, requires_grad)
    x = flambeau.arange(M, dtype=flambeau.float64, device=device) + 0.5
    return place.finish((x * (math.pi / max(1, M if sym else M + 1))).sin())


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Decay on both sides of `center` (the middle, when symmetric) by e every `tau` entries.

    >>> torch.signal.windows.exponential(1)
    tensor([1.])
    """
    place = _Place("exponential", M, sym, dtype, layout, device, requires_grad)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    middle = place.steps / 2 if center is None else center
    x = flambeau.arange(M, dtype=flambeau.float64, device=device)
    return place.finish(((x - middle).abs() * (-1.0 / tau)).exp())


def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A bell of standard deviation `std` entries.

    >>> torch.signal.windows.gaussian(1)
    tensor([1.])
    """
    place = _Place("gaussian", M, sym, dtype, layout, device, requires_grad)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    x = place.centred() / std
    return place.finish((x * x * -0.5).exp())


def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Kaiser's window: a ratio of modified Bessel functions; larger `beta`, wider main lobe.

    >>> torch.signal.windows.kaiser(1)
    tensor([1.])
    """
    place = _Place("kaiser", M, sym, dtype, layout, device, requires_grad)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    t = place.times(-1.0, 1.0)
    top = ((1.0 - t * t).clamp(min=0.0).sqrt() * beta).i0()
    return place.finish(top / flambeau.tensor(beta, dtype=flambeau.float64).i0())
