"""Arrays of NumPy in captured programs: what is compiled gives what NumPy gives, in dtype, shape,
class and values, or ends the graph."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau._capture.arrays import UFUNCS
from flambeau._dynamo.exc import Unsupported

DTYPES = "bool uint8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()
EDGES = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.3, 7.0, np.inf, -np.inf, np.nan, 3.0]


def data(dtype, second=False):
    kind = np.dtype(dtype).kind
    values = np.array(EDGES if kind in "fc" else [0, 1, 2, 3, 5, 7, 100, 0, 1, 11, 6, 4])
    if second:
        values = np.roll(values, 5)
    if kind == "i":
        values = values * np.array([1, -1] * 6)
    if kind == "c":
        values = np.where(np.isfinite(values), values, 4.0)
        values = values + 1j * values[::-1]
    return torch.from_numpy(values.astype(dtype).reshape(3, 4).copy())


def eager(f, *tensors):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return f(*(t.clone() for t in tensors))


def compiled(f, *tensors, backend="eager"):
    torch._dynamo.reset()
    return torch.compile(f, fullgraph=True, backend=backend)(*(t.clone() for t in tensors))


def same(got, want):
    assert type(got) is type(want)
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w)
        return
    if not isinstance(want, (np.ndarray, np.generic, torch.Tensor)):
        assert got == want
        return
    assert got.dtype == want.dtype and got.shape == want.shape
    got, want = np.asarray(got), np.asarray(want)
    if want.dtype.kind in "fc":
        eps = np.finfo(want.dtype).eps
        np.testing.assert_allclose(got, want, rtol=16 * eps, atol=16 * eps)
    else:
        assert np.array_equal(got, want)


def agrees(f, *tensors, must=False):
    """Whether it was compiled whole; then its result is NumPy's. What NumPy refuses is not."""
    try:
        want = eager(f, *tensors)
    except (TypeError, ValueError, OverflowError) as e:
        with pytest.raises((type(e), Unsupported)):
            compiled(f, *tensors)
        return False
    try:
        got = compiled(f, *tensors)
    except Unsupported:
        assert not must
        return False
    same(got, want)
    return True


@pytest.mark.parametrize("ufunc", sorted(UFUNCS, key=lambda u: u.__name__))
def test_ufuncs(ufunc):
    whole = 0
    for dtype in DTYPES:
        if ufunc.nin == 1:
            whole += agrees(lambda x: ufunc(x.numpy()), data(dtype))
            continue
        for other in DTYPES:
            y = data(other, second=True)
            y = y.T.contiguous() if ufunc is np.matmul else y
            if ufunc is np.matmul and (dtype[0] in "fc" or other[0] in "fc"):
                x, y = (torch.nan_to_num(t, posinf=1, neginf=1) for t in (data(dtype), y))
                whole += agrees(lambda x, y: x.numpy() @ y.numpy(), x, y)
            else:
                whole += agrees(lambda x, y: ufunc(x.numpy(), y.numpy()), data(dtype), y)
        if ufunc is not np.matmul:
            for n in (2, -1, 0.5, True, np.float32(1.5), np.int64(3), 2j, 300):
                whole += agrees(lambda x, n=n: ufunc(x.numpy(), n), data(dtype))
                whole += agrees(lambda x, n=n: ufunc(n, x.numpy()), data(dtype))
    assert whole >= 2


REDUCTIONS = {
    "sum": lambda a, **k: a.sum(**k),
    "mean": lambda a, **k: a.mean(**k),
    "max": lambda a, **k: a.max(**k),
    "np.amin": lambda a, **k: np.amin(a, **k),
    "np.all": lambda a, **k: np.all(a, **k),
    "any": lambda a, **k: a.any(**k),
    "np.var": lambda a, **k: np.var(a, **k),
    "std": lambda a, **k: a.std(**k),
    "prod": lambda a, **k: a.prod(**k),
    "np.argmax": lambda a, **k: np.argmax(a, **k),
    "argmin": lambda a, **k: a.argmin(**k),
    "cumsum": lambda a, **k: a.cumsum(**k),
    "np.sum": lambda a, **k: np.sum(a, **k),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    f = REDUCTIONS[name]
    for dtype in DTYPES:
        x = data(dtype)
        if x.is_floating_point():
            x = torch.nan_to_num(x, nan=0.5, posinf=2.0, neginf=-3.0)
        agrees(lambda x: f(x.numpy()), x, must=dtype in ("int64", "float32", "float64"))
        agrees(lambda x: f(x.numpy(), axis=0), x, must=dtype in ("int64", "float32"))
        agrees(lambda x: f(x.numpy(), axis=-1), x)
        agrees(lambda x: f(x.numpy()[1]), x)
        agrees(lambda x: f(x.numpy()[1:1]), x) if name in ("sum", "any", "np.all") else None
        if name not in ("prod", "np.argmax", "argmin", "cumsum"):
            agrees(lambda x: f(x.numpy(), axis=(0, 1), keepdims=True), x)
    for missing in (data("float32"), data("float64")):
        agrees(lambda x: f(x.numpy(), axis=0), missing)


SHAPES = {
    "reshape": lambda a: (a.reshape(4, 3), a.reshape((2, -1)), np.reshape(a, -1)),
    "flat": lambda a: (a.ravel(), a.flatten(), a.T.ravel()),
    "transpose": lambda a: (a.T, a.transpose(1, 0), np.transpose(a), a.swapaxes(0, 1)),
    "facts": lambda a: (a.shape, a.ndim, a.size, len(a), a.itemsize, a.dtype == np.float32),
    "index": lambda a: (a[1], a[1, 2], a[:, 1:], a[..., 0], a[None], a[-1, ::2], a[(0, 1)]),
    "advanced": lambda a: (a[np.array([0, 2])], a[:, np.array([1, 1])]),
    "iterate": lambda a: [row.sum() for row in a],
    "join": lambda a: (np.concatenate([a, a], axis=1), np.stack((a, a)), np.concatenate((a, a))),
    "mixed": lambda a: np.concatenate([a, np.ones((1, 4))]),
    "like": lambda a: (np.zeros_like(a), np.ones_like(a)),
    "where": lambda a: np.where(a > 0, a, np.float32(0)),
    "clip": lambda a: (a.clip(-1, 1), np.clip(a, 0, None)),
    "cast": lambda a: (a.astype(np.float64), a.astype("float32"), (a > 0).astype(int)),
    "copy": lambda a: (a.copy(), np.array(a), np.asarray(a), a.squeeze()),
    "made": lambda a: a + np.arange(4) * np.eye(3, 4) + np.zeros((3, 1), dtype=np.float32),
    "scalars": lambda a: (a[0, 2] * 2.5, a[0, 2] + np.float64(1), a.sum() / a.size, -a[0, 0]),
    "class": lambda a: (isinstance(a, np.ndarray), isinstance(a[0, 0], np.float32), type(a)),
    "norm": lambda a: np.linalg.norm(a[0]),
    "dot": lambda a: (a.dot(a[0]), a @ a.T, np.matmul(a, a.T), np.dot(a[0], a[1])),
    "compare": lambda a: ((a > 0) & (a < 2), ~(a == a), a <= a, abs(a)),
}  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("name", SHAPES)
def test_arrays(name, backend):
    x = torch.arange(12.0).view(3, 4) / 4 - 1
    want = eager(lambda x: SHAPES[name](x.numpy()), x)
    same(compiled(lambda x: SHAPES[name](x.numpy()), x, backend=backend), want)


def test_memory_is_shared():
    def f(x):
        a = x.numpy()
        a += 1
        a[0] = 7
        a[1:, 1] *= 2
        b = a.T
        b[3, 2] = -1
        scalar = a[0, 0]
        scalar += 5
        return x * 2, torch.from_numpy(a), a, scalar, torch.tensor(a) + 1

    x, y = torch.zeros(3, 4), torch.zeros(3, 4)
    want, got = f(x), torch.compile(f, fullgraph=True)(y)
    same(got, want)
    assert y.equal(x) and got[2].base is not None
    got[2][0, 0] = 99
    assert y[0, 0] == 99 and got[1][0, 0] == 99


def test_arrays_that_are_made_are_new_in_each_call():
    def f(x):
        a = np.zeros(3)
        a += x.numpy()
        return a

    g = torch.compile(f, fullgraph=True)
    for _ in range(3):
        same(g(torch.ones(3)), np.ones(3))


def test_a_break_leaves_arrays():
    def f(x):
        a = np.exp(x.numpy())
        total = a.sum
        torch._dynamo.graph_break()
        return np.percentile(a, 50), total(axis=0), a.argsort(), a[::-1], a.nbytes

    x = torch.randn(5)
    same(torch.compile(f)(x), f(x))


def test_numbers_of_arrays():
    def f(x):
        a = x.numpy()
        return x * float(a.sum()) + a[0].item() + len(a.tolist())

    x = torch.arange(3.0)
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        same(torch.compile(f, fullgraph=True)(x), f(x))


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (lambda x: np.percentile(x.numpy(), 50), "percentile"),
        (lambda x: x.numpy()[::-1], "negative step"),
        (lambda x: x.numpy().argsort(), "attribute argsort"),
        (lambda x: np.sin(x.numpy(), out=None), "sin"),
        (lambda x: x + x.numpy(), "array|Array"),
        (lambda x: x.numpy().astype(int), "fractions to whole"),
        (lambda x: (x > 0).numpy().sum(dtype=np.int8), "dtype"),
    ],
)
def test_what_is_not_followed_is_named(f, said):
    with pytest.raises(Exception, match=said):
        compiled(f, torch.ones(3))


def test_what_numpy_takes_or_refuses_is_its_own_answer():
    def f(x):
        a = x.numpy()
        try:
            a.reshape(2, 2)
        except ValueError:
            a = a + 1
        try:
            a + np.ones(5)
        except ValueError:
            a = a * 2
        return a.sum(dtype=np.int16), a.sum(0, np.float64), a.mean(axis=0, where=a > 1)

    x = torch.arange(3.0)
    torch._dynamo.reset()
    same(torch.compile(f)(x), f(x))


def test_refusals_are_those_of_eager():
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.compile(lambda x: x.numpy())(x)
    with pytest.raises(Exception, match="numpy"):
        compiled(lambda x: x.numpy(), torch.ones(3, dtype=torch.bfloat16))
    with pytest.raises(Unsupported):
        compiled(lambda x: 1 if x.numpy().sum() > 0 else 2, torch.ones(3))
