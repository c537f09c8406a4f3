"""The table of small programs: results and gradients of plain Python, and the number of graphs."""

from __future__ import annotations

import pytest

import flambeau as torch

from . import programs_breadth, programs_classes, programs_library  # noqa: F401
from .programs_table import PROGRAMS
from .test_interpreter import captured
from .test_tensors import _scalar, same


def run(f, x):
    torch.manual_seed(1)
    return f(x)


@pytest.mark.parametrize("grad", [False, True], ids=["", "grad"])
@pytest.mark.parametrize(("f", "graphs"), PROGRAMS, ids=lambda v: getattr(v, "__name__", ""))
def test_program(f, graphs, grad):
    torch.manual_seed(0)
    x = torch.randn(3, 4, requires_grad=grad)
    compiled = captured(f)
    for _ in range(2):
        same(run(compiled, x), run(f, x))
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    parts = compiled._flambeau_config.parts
    if graphs is not None:
        assert sum(bool(p.nodes) for p in parts) == graphs, parts
        assert graphs > 1 or [p.reason for p in parts] == [None], parts
    if grad:
        _check_gradients(f, compiled, x)


def _check_gradients(f, compiled, x):
    wanted, found = (_scalar(run(g, x)) for g in (f, compiled))
    if isinstance(wanted, torch.Tensor):
        a, b = (torch.autograd.grad(total, x)[0] for total in (wanted, found))
        assert torch.allclose(a, b)
    else:
        assert not isinstance(found, torch.Tensor)
