"""Every optimiser follows its NumPy reference, in every form of execution."""

import math

import numpy as np
import numpy_rules as rules
import pytest

import flambeau as fb
from flambeau import optim

CASES = [
    ("SGD", rules.sgd, {"lr": 0.05}),
    ("SGD", rules.sgd, {"lr": 0.05, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", rules.sgd, {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("Adam", rules.adam, {}),
    ("Adam", rules.adam, {"lr": 0.1, "betas": (0.7, 0.8), "weight_decay": 0.2, "amsgrad": True}),
    ("AdamW", rules.adamw, {"lr": 0.1}),
    ("AdamW", rules.adamw, {"lr": 0.1, "weight_decay": 0.3, "amsgrad": True}),
    ("NAdam", rules.nadam, {"lr": 0.1, "weight_decay": 0.1}),
    ("RAdam", rules.radam, {"lr": 0.1, "betas": (0.9, 0.9), "weight_decay": 0.1}),
    ("Adamax", rules.adamax, {"lr": 0.1, "weight_decay": 0.1}),
    ("Adadelta", rules.adadelta, {"lr": 0.5, "weight_decay": 0.1}),
    ("Adagrad", rules.adagrad, {"lr": 0.1, "lr_decay": 0.2, "initial_accumulator_value": 0.5}),
    ("Adagrad", rules.adagrad, {"lr": 0.1, "weight_decay": 0.1}),
    ("RMSprop", rules.rmsprop, {"weight_decay": 0.1}),
    ("RMSprop", rules.rmsprop, {"momentum": 0.9, "centered": True, "alpha": 0.8}),
    ("Rprop", rules.rprop, {"lr": 0.1}),
    ("Rprop", rules.rprop, {"lr": 0.1, "etas": (0.3, 1.6), "step_sizes": (0.05, 0.2)}),
    ("ASGD", rules.asgd, {"lr": 0.05, "t0": 3, "weight_decay": 0.1, "lambd": 0.01}),
    ("Adafactor", rules.adafactor, {"lr": 0.2}),
    ("Adafactor", rules.adafactor, {"lr": 0.2, "d": 1.5, "eps": (1e-3, 0.1), "weight_decay": 0.1}),
]
SHAPES = [(4, 3), (3,), (2, 3, 2)]
STEPS = 8


def start():
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s) for s in SHAPES], [rng.standard_normal(s) for s in SHAPES]


def reference(rule, kwargs, sign=1.0):
    """Minimise a bounded-slope loss: gradients change sign and size, nothing diverges."""
    params, targets = start()
    states = [{} for _ in params]
    path = []
    for t in range(1, STEPS + 1):
        params = [
            rule(p, sign * gradient(p, y), s, t, **kwargs)
            for p, y, s in zip(params, targets, states, strict=False)
        ]
        path.append(params)
    return path


def gradient(p, y):
    return 4 * (p - y) / (1 + (p - y) ** 2) + 0.3 * p


def leaves(arrays):
    return [fb.tensor(a.tolist(), dtype=fb.float64).requires_grad_() for a in arrays]


def train(cls, kwargs, groups=False):
    params, targets = start()
    params, targets = leaves(params), [fb.tensor(y.tolist(), dtype=fb.float64) for y in targets]
    given = [{"params": [p]} for p in params] if groups else params
    opt = getattr(optim, cls)(given, **kwargs)
    path = []
    for _ in range(STEPS):
        opt.zero_grad()
        for p, y in zip(params, targets, strict=False):
            p.grad = gradient(p.detach(), y)
        opt.step()
        path.append([np.array(p.detach().tolist()) for p in params])
    return path


def assert_same(got, want, rtol=1e-9):
    for step, (a, b) in enumerate(zip(got, want, strict=False)):
        for x, y in zip(a, b, strict=False):
            np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-12, err_msg=f"step {step + 1}")


@pytest.mark.parametrize("foreach", [None, True, False])
@pytest.mark.parametrize(("cls", "rule", "kwargs"), CASES)
def test_follows_the_reference(cls, rule, kwargs, foreach):
    got = train(cls, {**kwargs, "foreach": foreach})
    # Counters and momentum products are float32 unless the default dtype says otherwise.
    assert_same(got, reference(rule, kwargs), rtol=1e-5 if cls in ("NAdam", "ASGD") else 1e-9)


@pytest.mark.parametrize(("cls", "rule", "kwargs"), CASES)
def test_maximize_negates_the_gradient(cls, rule, kwargs):
    got = train(cls, {**kwargs, "maximize": True})
    want = reference(rule, kwargs, sign=-1.0)
    assert_same(got[:3], want[:3], rtol=1e-5 if cls in ("NAdam", "ASGD") else 1e-9)


@pytest.mark.parametrize(("cls", "rule", "kwargs"), CASES)
def test_one_group_per_parameter_changes_nothing(cls, rule, kwargs):
    assert_same(train(cls, kwargs, groups=True), train(cls, kwargs), rtol=1e-12)


@pytest.mark.parametrize("cls", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "RAdam", "NAdam"])
def test_tensor_rate_equals_number(cls):
    rate = fb.tensor(0.05, dtype=fb.float64)
    assert_same(train(cls, {"lr": rate}), train(cls, {"lr": 0.05}), rtol=1e-12)


@pytest.mark.parametrize(
    "cls",
    ["SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adadelta", "Adagrad", "RMSprop", "ASGD"],
)
def test_complex_parameters_are_pairs_of_reals(cls):
    rng = np.random.default_rng(1)
    values, grads = rng.standard_normal((5, 2)), rng.standard_normal((3, 5, 2))
    pairs = fb.tensor(values.tolist(), dtype=fb.float64).requires_grad_()
    number = fb.view_as_complex(fb.tensor(values.tolist(), dtype=fb.float64)).requires_grad_()
    kwargs = {"weight_decay": 0.1}
    a, b = getattr(optim, cls)([pairs], **kwargs), getattr(optim, cls)([number], **kwargs)
    for g in grads:
        pairs.grad = fb.tensor(g.tolist(), dtype=fb.float64)
        number.grad = fb.view_as_complex(fb.tensor(g.tolist(), dtype=fb.float64))
        a.step()
        b.step()
    got = fb.view_as_real(number.detach())
    np.testing.assert_allclose(got.tolist(), pairs.detach().tolist(), rtol=1e-12)
    assert all(v.is_complex() for k, v in b.state[number].items() if v is not None and v.dim())


def test_parameters_that_join_later_start_their_own_momentum():
    p, q = leaves([np.ones(2), np.ones(2)])
    opt = optim.SGD([p, q], lr=0.1, momentum=0.5)
    one = fb.ones(2, dtype=fb.float64)
    p.grad = one
    opt.step()
    q.grad = one
    opt.step()
    np.testing.assert_allclose(p.detach().tolist(), [1 - 0.1 - 0.15] * 2)
    np.testing.assert_allclose(q.detach().tolist(), [0.9] * 2)


def test_mixed_dtypes_in_one_group():
    a = fb.ones(3, dtype=fb.float32).requires_grad_()
    b = fb.ones(3, dtype=fb.float64).requires_grad_()
    opt = optim.Adam([a, b], lr=0.1)
    a.grad, b.grad = fb.ones(3), fb.ones(3, dtype=fb.float64)
    opt.step()
    np.testing.assert_allclose(a.detach().tolist(), [0.9] * 3, rtol=1e-6)
    np.testing.assert_allclose(b.detach().tolist(), [0.9] * 3, rtol=1e-6)
    assert opt.state[a]["exp_avg"].dtype == fb.float32
    assert opt.state[b]["exp_avg"].dtype == fb.float64


def test_dtype_change_between_steps_is_seen():
    p = fb.ones(2).requires_grad_()
    opt = optim.SGD([p], lr=0.1)
    p.grad = fb.ones(2)
    opt.step()
    p.grad = None
    p.data = p.data.double()
    p.grad = fb.ones(2, dtype=fb.float64)
    opt.step()
    assert p.dtype == fb.float64
    np.testing.assert_allclose(p.detach().tolist(), [0.8, 0.8], rtol=1e-6)


def test_replaced_state_is_seen():
    (p,) = leaves([np.zeros(1)])
    opt = optim.SGD([p], lr=1.0, momentum=0.5)
    p.grad = fb.ones(1, dtype=fb.float64)
    opt.step()
    opt.state.clear()
    opt.step()
    np.testing.assert_allclose(p.detach().tolist(), [-2.0])


@pytest.mark.parametrize("cls", ["SGD", "Adam", "RMSprop", "Adagrad", "RAdam", "Adamax"])
def test_differentiable_step_against_finite_differences(cls):
    """The derivative of the parameter after three steps with respect to the learning rate."""
    kwargs = {"momentum": 0.9} if cls in ("SGD", "RMSprop") else {}

    def final(lr):
        p = fb.tensor([0.3, -0.7], dtype=fb.float64).requires_grad_().clone()
        opt = getattr(optim, cls)([p], lr=lr, differentiable=True, **kwargs)
        for scale in (1.0, -0.5, 2.0):
            p.grad = fb.tensor([0.2 * scale, 1.1], dtype=fb.float64)
            opt.step()
        return (p * p).sum()

    lr = fb.tensor(0.1, dtype=fb.float64, requires_grad=True)
    (slope,) = fb.autograd.grad(final(lr), lr)
    h = 1e-6
    want = (final(0.1 + h) - final(0.1 - h)).item() / (2 * h)
    assert math.isclose(slope.item(), want, rel_tol=1e-6)


def test_muon_moves_along_an_orthogonal_direction():
    rng = np.random.default_rng(2)
    (p,) = leaves([np.zeros((6, 4))])
    opt = optim.Muon(
        [p],
        lr=1.0,
        weight_decay=0.0,
        momentum=0.0,
        nesterov=False,
        ns_steps=12,
        ns_coefficients=(1.875, -1.25, 0.375),
    )
    p.grad = fb.tensor(rng.standard_normal((6, 4)).tolist(), dtype=fb.float64)
    u, _, vt = np.linalg.svd(np.array(p.grad.tolist()), full_matrices=False)
    opt.step()
    want = -(u @ vt) * math.sqrt(6 / 4)
    np.testing.assert_allclose(p.detach().tolist(), want, atol=0.05)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_finds_the_least_squares_solution(search):
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((12, 5)), rng.standard_normal(12)
    at, bt = (fb.tensor(x.tolist(), dtype=fb.float64) for x in (a, b))
    x = fb.zeros(5, dtype=fb.float64).requires_grad_()
    opt = optim.LBFGS([x], max_iter=60, line_search_fn=search, lr=1 if search else 0.2)

    def closure():
        opt.zero_grad()
        loss = ((at @ x - bt) ** 2).sum()
        loss.backward()
        return loss

    for _ in range(4):
        opt.step(closure)
    np.testing.assert_allclose(x.detach().tolist(), np.linalg.lstsq(a, b, rcond=None)[0], atol=1e-5)


def test_lbfgs_solves_rosenbrock():
    x = fb.tensor([-1.2, 1.0], dtype=fb.float64, requires_grad=True)
    opt = optim.LBFGS([x], max_iter=100, tolerance_change=1e-16, line_search_fn="strong_wolfe")

    def closure():
        opt.zero_grad()
        loss = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
        loss.backward()
        return loss

    opt.step(closure)
    np.testing.assert_allclose(x.detach().tolist(), [1.0, 1.0], atol=1e-6)


def sparse(indices, values, size):
    return fb.sparse_coo_tensor([indices], values, (size,), dtype=fb.float64)


needs_sparse = pytest.mark.skipif(
    not hasattr(fb, "sparse_coo_tensor"), reason="the build has no sparse tensors"
)


@needs_sparse
@pytest.mark.filterwarnings("ignore:Sparse")
def test_sparse_adam_touches_stored_entries_only():
    p = fb.zeros(4, dtype=fb.float64).requires_grad_()
    opt = optim.SparseAdam([p], lr=0.1)
    s, want = {}, np.zeros(1)
    for t, g in enumerate((1.0, -3.0), 1):
        p.grad = sparse([2, 2], [g / 2, g / 2], 4)
        opt.step()
        want = rules.adam(want, np.array([g]), s, t, lr=0.1, eps=0)
    np.testing.assert_allclose(p.detach().tolist(), [0, 0, want[0], 0], rtol=1e-6)


@needs_sparse
@pytest.mark.filterwarnings("ignore:Sparse")
def test_sparse_gradients_of_sgd_and_adagrad_equal_dense_ones():
    for cls in ("SGD", "Adagrad"):
        p, q = leaves([np.zeros(4), np.zeros(4)])
        a, b = getattr(optim, cls)([p], lr=0.1), getattr(optim, cls)([q], lr=0.1)
        for _ in range(2):
            p.grad = sparse([1, 3, 1], [1.0, 2.0, 3.0], 4)
            q.grad = fb.tensor([0.0, 4.0, 0.0, 2.0], dtype=fb.float64)
            a.step()
            b.step()
        np.testing.assert_allclose(p.detach().tolist(), q.detach().tolist(), rtol=1e-9)
