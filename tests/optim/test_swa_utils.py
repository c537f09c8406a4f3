"""Averaged models against averages computed by hand."""

import pytest

import flambeau as fb
from flambeau import nn
from flambeau.optim import swa_utils


def fill(model, value):
    with fb.no_grad():
        for p in model.parameters():
            p.fill_(value)


def value(model):
    return next(model.parameters()).flatten()[0].item()


def run(averaged, model, values=(1.0, 2.0, 6.0)):
    for v in values:
        fill(model, v)
        averaged.update_parameters(model)
    return value(averaged)


@pytest.mark.parametrize(
    ("kwargs", "want"),
    [
        ({}, 3.0),
        ({"avg_fn": swa_utils.get_swa_avg_fn()}, 3.0),
        ({"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()}, 3.0),
        ({"avg_fn": swa_utils.get_ema_avg_fn(0.5)}, 3.75),
        ({"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.5)}, 3.75),
        ({"avg_fn": lambda a, p, n: a + p * float(n)}, 1 + 2 + 12),
    ],
)
def test_averages(kwargs, want):
    model = nn.Linear(2, 2)
    averaged = swa_utils.AveragedModel(model, **kwargs)
    assert run(averaged, model) == pytest.approx(want)
    assert averaged.n_averaged.item() == 3
    x = fb.ones(1, 2)
    assert averaged(x).shape == (1, 2)


def test_state_dict_round_trip():
    model = nn.Linear(2, 2)
    a, b = swa_utils.AveragedModel(model), swa_utils.AveragedModel(model)
    run(a, model)
    b.load_state_dict(a.state_dict())
    assert value(b) == pytest.approx(3.0) and b.n_averaged.item() == 3


def test_buffers_are_copied_or_averaged():
    model = nn.BatchNorm1d(1)
    copied = swa_utils.AveragedModel(model)
    averaged = swa_utils.AveragedModel(model, use_buffers=True)
    for v in (2.0, 4.0):
        model.running_mean.fill_(v)
        copied.update_parameters(model)
        averaged.update_parameters(model)
    assert copied.module.running_mean.item() == 4.0
    assert averaged.module.running_mean.item() == 3.0


def test_update_bn_sees_all_batches_equally():
    model = nn.Sequential(nn.BatchNorm1d(1))
    model.eval()
    batches = [(fb.full((4, 1), v), None) for v in (1.0, 2.0, 6.0)]
    swa_utils.update_bn(batches, model)
    assert model[0].running_mean.item() == pytest.approx(3.0)
    assert model[0].momentum == 0.1 and not model.training


def test_wrong_arguments():
    with pytest.raises(ValueError, match="Invalid decay value 2"):
        swa_utils.get_ema_avg_fn(2)
    with pytest.raises(AssertionError, match="Only one of"):
        swa_utils.AveragedModel(nn.Linear(1, 1), avg_fn=max, multi_avg_fn=max)
