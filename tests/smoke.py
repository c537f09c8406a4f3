"""One look at everything, in seconds: `pytest tests/smoke.py`. Run first after a change, and by CI
on the build without optional libraries (`scripts/plain.sh`), where products, convolutions and
linear algebra are the built-in ones."""

from __future__ import annotations

import io

import numpy as np
import pytest

import flambeau as fb
import flambeau.nn.functional as F
from flambeau import nn

RNG = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def close(x: fb.Tensor, want: np.ndarray, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(x.detach().numpy(), want, rtol=tolerance, atol=tolerance)


def test_arithmetic_reductions_and_views():
    a = array(5, 7)
    x = fb.from_numpy(a)
    close((x * 2 - x.exp()).sum(1), (a * 2 - np.exp(a)).sum(1))
    close(x.t()[1:4, ::2], a.T[1:4, ::2])
    close(fb.cat([x, x]).softmax(0).sum(0), np.ones(7))
    assert x.argmax().item() == a.argmax()
    close(x.sort(1).values, np.sort(a, 1))
    x[x > 0] = 0.0
    assert (x <= 0).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int64"])
@pytest.mark.parametrize("n", [1, 7, 65, 200])
def test_products(dtype, n):
    a, b = (array(n, n + 1) * 3).astype(dtype), (array(n + 1, n) * 3).astype(dtype)
    tolerance = 1e-3 if dtype == "float32" else 1e-9
    close(fb.from_numpy(a) @ fb.from_numpy(b), a @ b, tolerance)
    close(fb.from_numpy(a)[0] @ fb.from_numpy(b), a[0] @ b, tolerance)


def test_products_of_half_precision():
    a = array(33, 40)
    for dtype in (fb.float16, fb.bfloat16):
        x = fb.from_numpy(a).to(dtype)
        close((x @ x.t()).double(), x.double().numpy() @ x.double().numpy().T, 0.5)


@pytest.mark.parametrize("stride", [1, 2])
def test_convolution_and_its_gradients(stride):
    x, w = fb.from_numpy(array(2, 3, 9, 8)), fb.from_numpy(array(4, 3, 3, 3))
    y = F.conv2d(x, w, stride=stride, padding=1)
    padded = np.pad(x.numpy(), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    close(y, np.einsum("nchwij,ocij->nohw", windows[:, :, ::stride, ::stride], w.numpy()))
    small = x[:1, :, :4, :4].clone().requires_grad_()
    assert fb.autograd.gradcheck(
        lambda a, b: F.conv2d(a, b, stride=stride), (small, w.requires_grad_())
    )


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("n", [1, 6, 40])
def test_linear_algebra(dtype, n):
    a = array(n, n).astype(dtype) + n * np.eye(n)
    if dtype == "complex128":
        a = a + 1j * array(n, n)
    x = fb.from_numpy(a)
    spd = a @ a.conj().T
    close(fb.linalg.solve(x, x), np.eye(n))
    close(fb.linalg.inv(x) @ x, np.eye(n))
    factor = fb.linalg.cholesky(fb.from_numpy(spd))
    close(factor @ factor.mH, spd, 1e-8)
    q, r = fb.linalg.qr(x)
    close(q @ r, a)
    u, s, vh = fb.linalg.svd(x)
    close(u @ (s.to(x.dtype)[:, None] * vh), a, 1e-8)
    values, vectors = fb.linalg.eigh(fb.from_numpy(spd))
    close(vectors @ (values.to(x.dtype)[:, None] * vectors.mH), spd, 1e-8)
    values, vectors = fb.linalg.eig(x)
    close(x.to(vectors.dtype) @ vectors, (vectors * values).numpy(), 1e-8)
    np.testing.assert_allclose(fb.linalg.det(x).item(), np.linalg.det(a), rtol=1e-8)


def test_fourier_transforms():
    a = array(6, 15)
    close(fb.fft.fft(fb.from_numpy(a)), np.fft.fft(a))
    close(fb.fft.irfft(fb.fft.rfft(fb.from_numpy(a)), n=15), a)


def test_a_small_net_learns():
    fb.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64, 3),
    )  # fmt: skip
    x, y = fb.randn(24, 1, 8, 8), fb.arange(24) % 3
    step = fb.optim.Adam(net.parameters(), lr=0.02)
    losses = []
    for _ in range(25):
        step.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        step.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
    stream = io.BytesIO()
    fb.save(net.state_dict(), stream)
    stream.seek(0)
    for name, value in fb.load(stream).items():
        assert fb.equal(value, net.state_dict()[name])


def test_attention_and_recurrence():
    q = fb.from_numpy(array(2, 3, 5, 4))
    out = F.scaled_dot_product_attention(q, q, q)
    weights = (q @ q.transpose(-1, -2) / 2).softmax(-1)
    close(out, (weights @ q).numpy())
    lstm = nn.LSTM(4, 6).double()
    y, (h, _) = lstm(q[0].detach())
    close(y[-1], h[0].detach().numpy())
    y.sum().backward()
    assert all(p.grad is not None for p in lstm.parameters())
