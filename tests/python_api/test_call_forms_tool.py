"""tools.call_forms without PyTorch: what it makes of outcomes."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from tools import call_forms


def seen(x):
    return call_forms.seen(torch, x)


@pytest.mark.parametrize(
    ("here", "there", "why"),
    [
        (torch.ones(2), torch.ones(2), ""),
        (torch.ones(2), torch.ones(2, dtype=torch.float64), "dtype float64 there, float32 here"),
        (torch.ones(2), torch.ones(2, 1), "shape (2, 1) there"),
        (torch.ones(2), torch.zeros(2), "values [0. 0.] there"),
        (torch.ones(2, 3), torch.ones(3, 2).t(), "strides [1, 2] there, [3, 1] here"),
        (torch.ones(1, 3), torch.ones(3, 1).t(), ""),
        ([torch.ones(2), 3], [torch.ones(2), 3.0], "3.0 there, 3 here"),
        ((1, 2), (1, 2, 3), "there"),
        (float("nan"), float("nan"), ""),
    ],
)
def test_differences(here, there, why):
    assert why in call_forms.difference(seen(here), seen(there))
    assert bool(why) == bool(call_forms.difference(seen(here), seen(there)))


def test_calls_get_fresh_tensors():
    for _ in range(2):
        fine, got = call_forms.outcome(torch, "x.add_(x_)")
        assert fine and got[0] == "float32" and np.array_equal(got[3], [[0.5, 1], [1.5, 2]])
    assert call_forms.outcome(torch, "x.add_('a')")[1].startswith("TypeError")


def test_findings_are_one_for_each_form():
    theirs = {"x.f()": (True, 1), "n.f()": (True, 1), "x.g()": (True, 1), "x.h()": (False, "E: no")}
    ours = {
        "x.f()": (True, 2), "n.f()": (True, 2), "x.h()": (True, 1),
        "x.g()": (False, "AttributeError: 'Tensor' object has no attribute 'g'"),
    }  # fmt: skip
    assert list(call_forms.findings(theirs, ours, False)) == ["x.f(): 1 there, 2 here"]
    assert len(list(call_forms.findings(theirs, ours, True))) == 2
