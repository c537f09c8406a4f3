"""Anomaly mode names the forward call of a failing backward."""

import warnings

import pytest

import flambeau as torch


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Anomaly Detection has been enabled")
        yield


def make_nan(x):
    return (x - 1).sqrt()  # the line that the report must show


def test_nan_is_an_error_that_shows_the_forward_line():
    x = torch.ones(1, requires_grad=True)
    with torch.autograd.detect_anomaly():
        y = make_nan(x)
        with pytest.warns(UserWarning, match="(?s)Error detected in .*the report must show"):
            with pytest.raises(RuntimeError, match="returned nan values in its 0th output"):
                (y * 0).sum().backward()


def test_nan_check_can_be_off():
    x = torch.ones(1, requires_grad=True)
    with torch.autograd.detect_anomaly(check_nan=False):
        (make_nan(x) * 0).sum().backward()
    assert x.grad.isnan().all()


def test_errors_of_backward_are_reported_too():
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise ValueError("mine")

    x = torch.ones(1, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        y = Fails.apply(x)
        with pytest.warns(UserWarning, match="Error detected in FailsBackward"):
            with pytest.raises(ValueError, match="mine"):
                y.backward()
    assert not torch.is_anomaly_enabled()


def test_without_forward_information():
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise ValueError("mine")

    y = Fails.apply(torch.ones(1, requires_grad=True))
    with torch.autograd.detect_anomaly():
        with pytest.warns(UserWarning, match="No forward pass information"):
            with pytest.raises(ValueError):
                y.backward()


def test_double_backward_shows_both_places():
    x = torch.zeros(1, requires_grad=True)
    with torch.autograd.detect_anomaly():
        y = x.sqrt() * 0
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            with pytest.raises(RuntimeError, match="nan values"):
                torch.autograd.grad(y.sum(), x, create_graph=True)


def test_switch():
    torch.autograd.set_detect_anomaly(True, check_nan=False)
    assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
    torch.autograd.set_detect_anomaly(False)
    assert not torch.is_anomaly_enabled()
