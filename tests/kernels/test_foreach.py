"""Operations on lists of tensors and fused optimiser steps against NumPy."""

import numpy as np
import pytest

import flambeau as fb

rng = np.random.default_rng(1)
SHAPES = [(3, 4), (), (7,), (0,), (2, 40, 1)]
UNARY = {
    "abs": np.abs, "ceil": np.ceil, "cos": np.cos, "exp": np.exp, "expm1": np.expm1,
    "floor": np.floor, "log": np.log, "log1p": np.log1p, "neg": np.negative,
    "reciprocal": np.reciprocal, "round": np.round, "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "sign": np.sign, "sin": np.sin, "sqrt": np.sqrt,
    "tanh": np.tanh, "trunc": np.trunc,
}  # fmt: skip
BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "clamp_min": np.maximum, "clamp_max": np.minimum, "maximum": np.maximum,
    "minimum": np.minimum, "pow": np.power,
}  # fmt: skip


def arrays(low=0.5, high=2.0, dtype=np.float64):
    return [np.asarray(rng.uniform(low, high, s), dtype) for s in SHAPES]


def tensors(xs):
    """Alike ones (one loop), and strided ones (the ordinary operation)."""
    yield [fb.tensor(x) for x in xs]
    yield [fb.tensor(np.stack([x, x], -1))[..., 0] for x in xs]


def check(got, want, rtol=1e-12):
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape
        np.testing.assert_allclose(g.numpy(), w, rtol=rtol, atol=1e-14)  # terms of size 1 cancel


def both_forms(name, want, lists, *args, **kwargs):
    check(getattr(fb, f"_foreach_{name}")(*lists, *args, **kwargs), want)
    versions = [x._version for x in lists[0]]
    assert getattr(fb, f"_foreach_{name}_")(*lists, *args, **kwargs) is None
    check(lists[0], want)
    assert all(x._version == v + 1 for x, v in zip(lists[0], versions, strict=True))


@pytest.mark.parametrize("name", UNARY)
def test_one_operand(name):
    xs = arrays()
    for ts in tensors(xs):
        both_forms(name, [UNARY[name](x) for x in xs], [ts])


@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name):
    f, xs, ys = BINARY[name], arrays(), arrays()
    numbers = [0.5, 2, 1.25, 3, 0.75]
    for left, right in zip(tensors(xs), tensors(ys), strict=True):
        both_forms(name, [f(x, y) for x, y in zip(xs, ys, strict=True)], [left, right])
    for ts in tensors(xs):
        both_forms(name, [f(x, c) for x, c in zip(xs, numbers, strict=True)], [ts], numbers)
    for ts in tensors(xs):
        both_forms(name, [f(x, 1.25) for x in xs], [ts], 1.25)


def test_factor_and_single_tensor():
    xs, ys = arrays(), arrays()
    for left, right in zip(tensors(xs), tensors(ys), strict=True):
        want = [x - 0.5 * y for x, y in zip(xs, ys, strict=True)]
        both_forms("add", want, [left, right], alpha=-0.5)
    for name in ("add", "mul", "div"):
        for ts in tensors(xs):
            both_forms(name, [BINARY[name](x, 2.5) for x in xs], [ts], fb.tensor(2.5))
    check(fb._foreach_pow(2.0, [fb.tensor(x) for x in xs]), [2.0**x for x in xs])


@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
def test_three_operands(name):
    xs, ys, zs = arrays(), arrays(), arrays()
    part = [y * z if name == "addcmul" else y / z for y, z in zip(ys, zs, strict=True)]
    factors = [0.5, 2.0, -1.0, 3.0, 0.25]
    for value, cs in ((0.5, [0.5] * 5), (factors, factors), (fb.tensor(factors), factors)):
        want = [x + c * q for x, c, q in zip(xs, cs, part, strict=True)]
        for lists in zip(tensors(xs), tensors(ys), tensors(zs), strict=True):
            both_forms(name, want, list(lists), value)
    lists = [next(tensors(a)) for a in (xs, ys, zs)]
    getattr(fb, f"_foreach_{name}_")(*lists, scalars=factors)
    check(lists[0], [x + c * q for x, c, q in zip(xs, factors, part, strict=True)])


def test_lerp():
    xs, ys, ws = arrays(), arrays(), arrays(0, 1)
    weights = [0.1, 0.9, 0.5, 0.3, 1.0]
    for left, right in zip(tensors(xs), tensors(ys), strict=True):
        want = [x + 0.2 * (y - x) for x, y in zip(xs, ys, strict=True)]
        both_forms("lerp", want, [left, right], 0.2)
    for left, right in zip(tensors(xs), tensors(ys), strict=True):
        want = [x + w * (y - x) for x, y, w in zip(xs, ys, weights, strict=True)]
        both_forms("lerp", want, [left, right], weights)
    lists = [next(tensors(a)) for a in (xs, ys, ws)]
    both_forms("lerp", [x + w * (y - x) for x, y, w in zip(xs, ys, ws, strict=True)], lists)


def test_norm_max_zero_copy_clone():
    xs = [rng.normal(size=s) for s in ((3, 4), (), (7,))]
    ts = [fb.tensor(x) for x in xs]
    check(fb._foreach_norm(ts), [np.linalg.norm(x.ravel()) for x in xs])
    check(fb._foreach_norm(ts, 1), [np.abs(x).sum() for x in xs])
    check(fb._foreach_norm(ts, float("inf")), [np.abs(x).max() for x in xs])
    assert fb._foreach_norm([t.float() for t in ts], dtype=fb.float64)[0].dtype == fb.float64
    check(fb._foreach_max(ts), [x.max() for x in xs])
    copies = fb._foreach_clone(ts)
    fb._foreach_zero_(ts)
    check(ts, [0 * x for x in xs])
    fb._foreach_copy_(ts, copies)
    check(ts, xs)


def test_integers_keep_their_type():
    ts = [fb.tensor([1, 2]), fb.tensor([3])]
    assert [t.tolist() for t in fb._foreach_mul(ts, [2, 3])] == [[2, 4], [9]]
    fb._foreach_add_(ts, 1)
    assert [t.tolist() for t in ts] == [[2, 3], [4]]
    assert fb._foreach_add(ts, 0.5)[0].dtype == fb.get_default_dtype()
    with pytest.raises(RuntimeError, match="can't be cast"):
        fb._foreach_add_(ts, 0.5)


@pytest.mark.parametrize("dtype", [fb.float16, fb.bfloat16, fb.float32], ids=str)
def test_low_precision_rounds_once(dtype):
    x, y = fb.tensor([1.0, 3.0], dtype=dtype), fb.tensor([0.3, -0.7], dtype=dtype)
    want = (x.double() + 0.1 * y.double()).to(dtype)
    fb._foreach_add_([x], [y], alpha=0.1)
    assert (x.double() - want.double()).abs().max().item() <= 2**-7 * 3


def test_big_lists_and_repeated_tensors():
    xs = [rng.normal(size=50_000) for _ in range(4)]
    ts = [fb.tensor(x) for x in xs]
    fb._foreach_mul_(ts, [1.0, 2.0, 3.0, 4.0])
    check(ts, [x * (i + 1) for i, x in enumerate(xs)])
    fb._foreach_add_([ts[0], ts[0]], [1.0, 1.0])
    check(ts[:1], [xs[0] + 2])


def test_gradients():
    x = fb.tensor([2.0, 3.0], requires_grad=True)
    (y,) = fb._foreach_mul([x], [x.detach()])
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 3.0]
    z = x * 1
    fb._foreach_mul_([z], 3.0)
    z.sum().backward()
    assert x.grad.tolist() == [5.0, 6.0]
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        fb._foreach_mul_([x], 3.0)


def test_refusals():
    one = [fb.ones(2)]
    with pytest.raises(RuntimeError, match="must have at least one tensor"):
        fb._foreach_neg([])
    with pytest.raises(RuntimeError, match="same number of tensors, got 1 and 2"):
        fb._foreach_add(one, one * 2)
    with pytest.raises(RuntimeError, match="same number of elements as scalar list"):
        fb._foreach_mul_(one, [1.0, 2.0])
    with pytest.raises(RuntimeError, match="expected to be 0 dim but it has 1 dimensions"):
        fb._foreach_add(one, fb.ones(2))
    with pytest.raises(RuntimeError, match="must match the size"):
        fb._foreach_add_(one, [fb.ones(3)])


# Fused steps ------------------------------------------------------------------------------------


def laid_out(xs, kind):
    """Dense ones, columns of wider ones, transposed ones."""
    if kind == "dense":
        return [fb.tensor(x) for x in xs]
    if kind == "strided":
        return [fb.tensor(np.stack([x, x], -1))[..., 0] for x in xs]
    return [fb.tensor(x.T.copy()).t() for x in xs]


LAYOUTS = [("dense", "dense"), ("strided", "dense"), ("turned", "dense"), ("turned", "turned")]


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("maximize", [False, True])
def test_sgd(layouts, momentum, nesterov, maximize):
    shapes = [(3, 4), (1, 5), (200, 400)]
    ps, gs = ([rng.normal(size=s) for s in shapes] for _ in range(2))
    params, grads = laid_out(ps, layouts[0]), laid_out(gs, layouts[1])
    buffers = [fb.zeros_like(p) for p in params] if momentum else []
    bs = [np.zeros(s) for s in shapes]
    damp = 0.0 if nesterov else 0.3
    for step in range(3):
        fb._fused_sgd_(
            params, grads, buffers, lr=0.1, momentum=momentum, dampening=damp, weight_decay=0.01,
            nesterov=nesterov, maximize=maximize, first_step=step == 0,
        )  # fmt: skip
        for i, g in enumerate(gs):
            d = (-g if maximize else g) + 0.01 * ps[i]
            if momentum:
                bs[i] = d if step == 0 else momentum * bs[i] + (1 - damp) * d
                d = d + momentum * bs[i] if nesterov else bs[i]
            ps[i] = ps[i] - 0.1 * d
    check(params, ps)
    check(buffers, bs[: len(buffers)])


@pytest.mark.parametrize("layouts", LAYOUTS)
@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("decoupled", [False, True])
def test_adam(layouts, amsgrad, decoupled):
    shapes = [(3, 4), (1, 5), (200, 400)]
    ps = [rng.normal(size=s) for s in shapes]
    params = laid_out(ps, layouts[0])
    state = [[fb.zeros_like(p) for p in params] for _ in range(3 if amsgrad else 2)]
    steps = [fb.tensor(0.0), fb.tensor(0.0), fb.tensor(5.0)]
    m, v, top = ([np.zeros(s) for s in shapes] for _ in range(3))
    for turn in range(3):
        gs = [rng.normal(size=s) * (3 - turn) for s in shapes]
        fb._fused_adam_(
            params, laid_out(gs, layouts[1]), state[0], state[1], state[2] if amsgrad else [],
            steps, lr=0.1, beta1=0.8, beta2=0.95, eps=1e-8, weight_decay=0.05, amsgrad=amsgrad,
            maximize=False, decoupled=decoupled,
        )  # fmt: skip
        for i, g in enumerate(gs):
            t = turn + 1 + (5 if i == 2 else 0)
            if decoupled:
                ps[i] = ps[i] * (1 - 0.1 * 0.05)
            else:
                g = g + 0.05 * ps[i]
            m[i] = 0.8 * m[i] + 0.2 * g
            v[i] = 0.95 * v[i] + 0.05 * g * g
            top[i] = np.maximum(top[i], v[i])
            second = (top if amsgrad else v)[i] / (1 - 0.95**t)
            ps[i] = ps[i] - 0.1 * (m[i] / (1 - 0.8**t)) / (np.sqrt(second) + 1e-8)
    check(params, ps, 1e-9)
    check(state[0], m, 1e-9)
    check(state[1], v, 1e-9)
    assert [s.item() for s in steps] == [3.0, 3.0, 8.0]
    assert steps[0]._version == 3


@pytest.mark.parametrize("dtype", [fb.float16, fb.bfloat16, fb.float32], ids=str)
def test_fused_types(dtype):
    p, g = fb.ones(33, dtype=dtype), fb.full([33], 0.5, dtype=dtype)
    fb._fused_sgd_(
        [p], [g], [], lr=0.5, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False,
        maximize=False, first_step=False,
    )  # fmt: skip
    assert p.tolist() == [0.75] * 33


def test_fused_refusals():
    hyper = {
        "lr": 0.1, "momentum": 0.0, "dampening": 0.0, "weight_decay": 0.0, "nesterov": False,
        "maximize": False, "first_step": False,
    }  # fmt: skip
    with pytest.raises(RuntimeError, match="expected 1 grads, got 0"):
        fb._fused_sgd_([fb.ones(2)], [], [], **hyper)
    with pytest.raises(RuntimeError, match="expected grads of shape"):
        fb._fused_sgd_([fb.ones(2)], [fb.ones(3)], [], **hyper)
    with pytest.raises(RuntimeError, match="of floating point type"):
        fb._fused_sgd_([fb.ones(2).int()], [fb.ones(2).int()], [], **hyper)
    with pytest.raises(RuntimeError, match="expected 1 momentum_buffers, got 0"):
        fb._fused_sgd_([fb.ones(2)], [fb.ones(2)], [], **{**hyper, "momentum": 0.9})
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        fb._fused_sgd_([fb.ones(2, requires_grad=True)], [fb.ones(2)], [], **hyper)
