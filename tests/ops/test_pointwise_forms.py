"""What every pointwise entry derives: strided, broadcast, empty, 0-d, in-place, out=, half types,
first and second derivatives. The contiguous double-precision form is the reference for the others,
and finite differences for derivatives; values against NumPy stand in tests/kernels.
"""

import numpy as np
import pytest
from table_cases import allowed, array, pointwise_tensor_ops, public, required_tensors, resolve

import flambeau as torch

OPS = {op.uid: op for op in pointwise_tensor_ops()}
FLOATS = [uid for uid, op in OPS.items() if "f" in allowed(op)]


def inputs(op, shape, dtype="float64"):
    return [torch.from_numpy(array(op, shape, dtype, i)) for i in range(required_tensors(op))]


def call(op, *args, **kw):
    out = resolve(public(op))(*args, **kw)
    return out if isinstance(out, tuple) else (out,)


def same(a, b, **tol):
    for x, y in zip(a, b, strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), **tol)


@pytest.mark.parametrize("uid", FLOATS)
def test_layouts_agree(uid):
    op = OPS[uid]
    xs = inputs(op, (5, 6))
    want = call(op, *xs)
    for change in (
        lambda x: x.t().contiguous().t(),
        lambda x: torch.stack([x, x], 2)[:, :, 1],
        lambda x: torch.cat([x, x], 1)[:, 6:],
    ):
        same(call(op, *map(change, xs)), want, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("uid", FLOATS)
def test_large_equals_small(uid):
    """Threads and blocks do not show: a long input gives what its pieces give."""
    op = OPS[uid]
    xs = inputs(op, (70001,))
    want = [torch.cat(parts) for parts in zip(
        *(call(op, *(x[i : i + 997] for x in xs)) for i in range(0, 70001, 997)), strict=True
    )]  # fmt: skip
    same(call(op, *xs), want, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("uid", FLOATS)
def test_empty_and_zero_dim(uid):
    op = OPS[uid]
    assert call(op, *inputs(op, (0, 3)))[0].shape == (0, 3)
    xs = inputs(op, ())
    out = call(op, *xs)
    assert out[0].shape == ()
    same([x.reshape(1) for x in out], call(op, *(x.reshape(1) for x in xs)), rtol=1e-14)


@pytest.mark.parametrize("uid", FLOATS)
def test_out_and_inplace(uid):
    op = OPS[uid]
    xs = inputs(op, (4, 5))
    want = call(op, *xs)
    if op.has_out and len(want) == 1:
        out = torch.empty(4, 5, dtype=want[0].dtype)
        assert resolve(public(op))(*xs, out=out) is out
        same([out], want, rtol=0)
        strided = torch.empty(5, 4, dtype=want[0].dtype).t()
        resolve(public(op))(*xs, out=strided)
        same([strided], want, rtol=1e-14)
    method = getattr(xs[0], op.name + "_", None) if op.has_inplace and op.is_method else None
    if method is not None and want[0].dtype == xs[0].dtype:
        first = xs[0].clone()
        version = first._version
        assert getattr(first, op.name + "_")(*xs[1:]) is first
        assert first._version > version
        same([first], want, rtol=1e-14)


def as_floats(x, dtype):
    return x.to(dtype) if x.is_floating_point() else x  # truths stay what they are


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("uid", FLOATS)
def test_half_types_round_once(uid, dtype):
    op = OPS[uid]
    xs = [as_floats(x, getattr(torch, dtype)) for x in inputs(op, (33,))]
    try:
        got = call(op, *xs)
    except (RuntimeError, NotImplementedError) as e:
        refused = ("not implemented", "Expected both inputs to be Half", "numbers of two halves")
        assert any(text in str(e) for text in refused)
        return
    want = call(op, *(as_floats(x, torch.float32) for x in xs))
    for g, w in zip(got, want, strict=True):
        assert g.is_complex() == w.is_complex()
        w = w.to(g.dtype)
        g, w = (x if x.is_complex() else x.float() for x in (g, w))
        np.testing.assert_array_equal(g.numpy(), w.numpy())


def refuses(op, xs, k) -> bool:
    """Is the derivative by input k unknown? Asking for it must then be an error that says so."""
    xs = [x.detach().requires_grad_(i == k) for i, x in enumerate(xs)]
    out = [o for o in call(op, *xs) if o.requires_grad]
    try:
        if out:
            ones = [torch.ones_like(o) for o in out]
            torch.autograd.grad(out, xs[k], ones, allow_unused=True)
    except NotImplementedError as e:
        assert str(e) == f"the derivative for '{op.name}' is not implemented"
        return True
    return False


def as_leaves(op, xs):
    """Inputs of which those whose derivative is known want it."""
    xs = [x.detach().requires_grad_(x.is_floating_point()) for x in xs]
    if not any(o.requires_grad for o in call(op, *xs)):
        return xs
    return [
        x.requires_grad_(x.is_floating_point() and not refuses(op, xs, i)) for i, x in enumerate(xs)
    ]


@pytest.mark.parametrize("uid", FLOATS)
def test_derivatives(uid):
    op = OPS[uid]
    xs = as_leaves(op, inputs(op, (3, 2)))
    out = call(op, *xs)
    if not any(o.requires_grad for o in out):
        return
    assert torch.autograd.gradcheck(resolve(public(op)), xs)
    assert torch.autograd.gradgradcheck(resolve(public(op)), xs)


@pytest.mark.parametrize("uid", [u for u in FLOATS if required_tensors(OPS[u]) == 2])
def test_broadcast_gradients(uid):
    op = OPS[uid]
    a, b = inputs(op, (3, 4))
    a, b = as_leaves(op, (a[:, :1].clone(), b[0].clone()))
    out = call(op, a, b)[0]
    assert out.shape == (3, 4)
    if out.requires_grad:
        assert torch.autograd.gradcheck(resolve(public(op)), (a, b))
