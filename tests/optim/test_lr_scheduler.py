"""Schedules against closed forms; composition; state dicts; errors."""

import copy
import math
import warnings

import pytest

import flambeau as fb
from flambeau import optim
from flambeau.optim import lr_scheduler as sched
from flambeau.optim.swa_utils import SWALR

BASE = 0.8


def make(lr=BASE, cls=optim.SGD, **kw):
    opt = cls([fb.zeros(1).requires_grad_()], lr=lr, **kw)
    opt.step()
    return opt


def rates(schedule, n=12):
    """The rate at construction and after each step."""
    out = [schedule.optimizer.param_groups[0]["lr"]]
    for _ in range(n):
        schedule.optimizer.step()
        schedule.step()
        out.append(schedule.get_last_lr()[0])
        assert out[-1] == schedule.optimizer.param_groups[0]["lr"]
    return out


def cosine(t, period, low):
    return low + (BASE - low) * (1 + math.cos(math.pi * t / period)) / 2


def triangle(t, up, down):
    t %= up + down
    return t / up if t <= up else (up + down - t) / down


CLOSED = {
    "lambda": (lambda o: sched.LambdaLR(o, lambda t: 0.9**t), lambda t: BASE * 0.9**t),
    "multiplicative": (lambda o: sched.MultiplicativeLR(o, lambda t: 0.9), lambda t: BASE * 0.9**t),
    "step": (lambda o: sched.StepLR(o, 3, 0.5), lambda t: BASE * 0.5 ** (t // 3)),
    "multistep": (
        lambda o: sched.MultiStepLR(o, [2, 5, 5], 0.5),
        lambda t: BASE * 0.5 ** ((t >= 2) + 2 * (t >= 5)),
    ),
    "constant": (
        lambda o: sched.ConstantLR(o, 0.5, 4),
        lambda t: BASE * (0.5 if t < 4 else 1),
    ),
    "linear": (
        lambda o: sched.LinearLR(o, 0.25, 0.75, 5),
        lambda t: BASE * (0.25 + 0.5 * min(t, 5) / 5),
    ),
    "exponential": (lambda o: sched.ExponentialLR(o, 0.7), lambda t: BASE * 0.7**t),
    "polynomial": (
        lambda o: sched.PolynomialLR(o, 6, 2.0),
        lambda t: BASE * (1 - min(t, 6) / 6) ** 2,
    ),
    "cosine": (lambda o: sched.CosineAnnealingLR(o, 5, 0.1), lambda t: cosine(t, 5, 0.1)),
    "restarts": (
        lambda o: sched.CosineAnnealingWarmRestarts(o, 3, 2, 0.1),
        lambda t: (
            cosine(t, 3, 0.1)
            if t < 3
            else cosine(t - 3, 6, 0.1)
            if t < 9
            else cosine(t - 9, 12, 0.1)
        ),
    ),
    "cyclic": (
        lambda o: sched.CyclicLR(o, 0.1, 0.5, 3, 2, cycle_momentum=False),
        lambda t: 0.1 + 0.4 * triangle(t, 3, 2),
    ),
    "swa": (
        lambda o: SWALR(o, 0.1, 4, "linear"),
        lambda t: BASE + (0.1 - BASE) * min(t, 4) / 4,
    ),
}


@pytest.mark.parametrize("name", CLOSED)
def test_closed_form(name):
    build, want = CLOSED[name]
    assert rates(build(make())) == pytest.approx([want(t) for t in range(13)], abs=1e-12)


@pytest.mark.parametrize("name", CLOSED)
def test_state_dict_round_trip(name):
    build, _ = CLOSED[name]
    a = build(make())
    rates(a, 5)
    opt, saved = copy.deepcopy(a.optimizer), copy.deepcopy(a.state_dict())
    assert "optimizer" not in saved
    b = build(make())
    b.optimizer.load_state_dict(opt.state_dict())
    b.load_state_dict(saved)
    assert rates(a, 6) == rates(b, 6)


@pytest.mark.parametrize("name", ["step", "linear", "exponential", "cosine", "polynomial"])
def test_jump_uses_the_closed_form(name):
    build, want = CLOSED[name]
    schedule = build(make())
    schedule.optimizer.step()
    with pytest.warns(UserWarning, match="epoch argument"):
        schedule.step(4)
    assert schedule.get_last_lr()[0] == pytest.approx(want(4))


def test_tensor_rates_are_filled_in_place():
    lr = fb.tensor(BASE, dtype=fb.float64)
    opt = make(lr=lr)
    schedule = sched.ExponentialLR(opt, 0.5)
    opt.step()
    schedule.step()
    assert opt.param_groups[0]["lr"] is lr and lr.item() == pytest.approx(BASE / 2)
    assert schedule.base_lrs[0].item() == BASE


def test_one_cycle_moves_rate_and_momentum_oppositely():
    opt = make(cls=optim.Adam)
    schedule = sched.OneCycleLR(opt, 1.0, 11, pct_start=0.5, anneal_strategy="linear")
    got, betas = [schedule.get_last_lr()[0]], [opt.param_groups[0]["betas"][0]]
    for _ in range(10):
        opt.step()
        schedule.step()
        got.append(schedule.get_last_lr()[0])
        betas.append(opt.param_groups[0]["betas"][0])
    assert got[0] == pytest.approx(1 / 25) and got[-1] == pytest.approx(1 / 25 / 1e4)
    peak, low = 0.5 * 11 - 1, 1 / 25
    assert got[3] == pytest.approx(low + (1 - low) * 3 / peak)
    assert betas[0] == pytest.approx(0.95) and min(betas) == betas[got.index(max(got))]
    opt.step()
    schedule.step()
    with pytest.raises(ValueError, match="Tried to step 12 times"):
        schedule.step()


def test_sequential_starts_each_part_anew():
    opt = make()
    parts = [sched.ConstantLR(opt, 0.5, 10), sched.ExponentialLR(opt, 0.5)]
    got = rates(sched.SequentialLR(opt, parts, [3]), 6)
    assert got == pytest.approx([0.4, 0.4, 0.4, 0.8, 0.4, 0.2, 0.1])


def test_sequential_skips_parts_that_end_at_once():
    opt = make()
    parts = [sched.ConstantLR(opt, 0.1, 10), sched.ConstantLR(opt, 0.5, 10)]
    assert rates(sched.SequentialLR(opt, parts, [0]), 3) == pytest.approx([0.4] * 4)
    opt = make()
    parts = [sched.ConstantLR(opt, f, 10) for f in (0.1, 0.2, 0.5)]
    assert rates(sched.SequentialLR(opt, parts, [0, 0]), 1) == pytest.approx([0.4] * 2)


@pytest.mark.parametrize("done", range(7))
def test_sequential_resumes_where_it_was(done):
    def build(last_epoch=-1):
        opt = make()
        parts = [sched.ConstantLR(opt, 0.5, 10), sched.ExponentialLR(opt, 0.5)]
        return sched.SequentialLR(opt, parts, [3], last_epoch=last_epoch)

    assert rates(build(done - 1), 8 - done) == pytest.approx(rates(build(), 8)[done:])


def test_chained_multiplies():
    opt = make()
    parts = [sched.ConstantLR(opt, 0.5, 2), sched.ExponentialLR(opt, 0.5)]
    assert rates(sched.ChainedScheduler(parts), 3) == pytest.approx([0.4, 0.2, 0.2, 0.1])


def test_composed_state_dict():
    def build(opt):
        parts = [sched.LinearLR(opt, 0.5, 1.0, 4), sched.StepLR(opt, 2, 0.5)]
        return sched.SequentialLR(opt, parts, [4])

    a, b = build(make()), build(make())
    rates(a, 5)
    b.load_state_dict(copy.deepcopy(a.state_dict()))
    b.optimizer.load_state_dict(a.optimizer.state_dict())
    assert rates(a, 4) == rates(b, 4)


def test_plateau():
    opt = make(lr=1.0)
    schedule = sched.ReduceLROnPlateau(opt, factor=0.5, patience=1, cooldown=1, min_lr=0.3)
    got = []
    for loss in [1.0, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9]:
        schedule.step(loss)
        got.append(schedule.get_last_lr()[0])
    assert got == pytest.approx([1, 1, 1, 0.5, 0.5, 0.5, 0.3, 0.3, 0.3])
    assert schedule.best == 0.9


def test_plateau_absolute_maximum():
    schedule = sched.ReduceLROnPlateau(
        make(lr=1.0), "max", patience=0, threshold=0.1, threshold_mode="abs"
    )
    for score in (0.5, 0.55):
        schedule.step(fb.tensor(score))
    assert schedule.get_last_lr() == pytest.approx([0.1])


def test_order_of_calls_warns():
    opt = optim.SGD([fb.zeros(1).requires_grad_()], lr=1.0)
    schedule = sched.StepLR(opt, 2)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedule.step()
    opt = optim.SGD([fb.zeros(1).requires_grad_()], lr=1.0)
    schedule = sched.StepLR(opt, 2)
    opt.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()
    with pytest.warns(UserWarning, match="get_last_lr"):
        schedule.get_lr()


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda o: sched.StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (lambda o: sched.StepLR(o, 1, last_epoch=4), KeyError, "initial_lr"),
        (lambda o: sched.LambdaLR(o, [abs, abs]), ValueError, "Expected 1 lr_lambdas, but got 2"),
        (lambda o: sched.ConstantLR(o, 2), ValueError, "between 0 and 1"),
        (lambda o: sched.LinearLR(o, 0), ValueError, "Starting multiplicative factor"),
        (lambda o: sched.SequentialLR(o, [], []), ValueError, "at least one scheduler"),
        (lambda o: sched.ChainedScheduler([]), ValueError, "at least one scheduler"),
        (
            lambda o: sched.SequentialLR(o, [sched.StepLR(o, 1)], [1]),
            ValueError,
            "one more than",
        ),
        (
            lambda o: sched.ChainedScheduler([sched.ReduceLROnPlateau(o)]),
            ValueError,
            "does not support `ReduceLROnPlateau`",
        ),
        (lambda o: sched.ReduceLROnPlateau(o, factor=1.0), ValueError, "Factor should be < 1.0"),
        (lambda o: sched.ReduceLROnPlateau(o, "up"), ValueError, "mode up is unknown"),
        (lambda o: sched.CyclicLR(o, 0.1, 1, mode="x"), ValueError, "mode is invalid"),
        (lambda o: sched.CyclicLR(o, [0.1, 0.2], 1), ValueError, "base_lr has 2 values"),
        (lambda o: sched.OneCycleLR(o, 1), ValueError, "total_steps OR"),
        (lambda o: sched.OneCycleLR(o, 1, 5, pct_start=2), ValueError, "pct_start, but got 2"),
        (lambda o: sched.CosineAnnealingWarmRestarts(o, 0), ValueError, "integer T_0, but got 0"),
        (lambda o: SWALR(o, 0.1, -1), ValueError, "anneal_epochs"),
    ],
)
def test_wrong_arguments(build, error, message):
    with pytest.raises(error, match=message):
        build(make(momentum=0.9))


def test_schedules_keep_no_tensor_of_the_caller():
    peak, top, bottom = fb.tensor(0.5), fb.tensor(0.9), fb.tensor(0.7)
    for make in (
        lambda o: sched.OneCycleLR(o, peak, total_steps=10, max_momentum=top, base_momentum=bottom),
        lambda o: sched.CyclicLR(o, fb.tensor(0.1), peak, max_momentum=top, base_momentum=bottom),
    ):
        p = fb.nn.Parameter(fb.zeros(2))
        optimizer = optim.SGD([p], lr=fb.tensor(0.1), momentum=0.9)
        schedule = make(optimizer)
        rates = []
        for step in range(8):
            if step == 3:
                for mine in (peak, top, bottom):
                    mine.fill_(99)
            optimizer.step()
            schedule.step()
            rates.append(float(optimizer.param_groups[0]["lr"]))
        assert max(rates) <= 0.5 + 1e-6
        peak.fill_(0.5), top.fill_(0.9), bottom.fill_(0.7)
