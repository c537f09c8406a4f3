"""Batch normalisation written out and fused: results, gradients and running statistics."""

from __future__ import annotations

import copy

import pytest

import flambeau as torch
from flambeau import nn
from flambeau._compiler.decompose import decompose
from flambeau._compiler.nest import Nest
from flambeau._compiler.schedule import schedule
from flambeau._ir.graph_parse import parse

pytestmark = pytest.mark.usefixtures("cache")


def batch_norm(shape, dtype, affine, track):
    kind = nn.BatchNorm2d if len(shape) == 4 else nn.BatchNorm1d
    made = kind(shape[1], affine=affine, track_running_stats=track).to(dtype)
    with torch.no_grad():
        for x in (*made.parameters(), *made.buffers()):
            if x.dtype.is_floating_point:
                x.uniform_(0.5, 1.5)
    return made


def near(x, y, tolerance):
    assert x.dtype is y.dtype and x.stride() == y.stride()
    x, y = x.detach().double(), y.detach().double()
    assert (x - y).abs().max().item() <= tolerance * (1 + y.abs().max().item())


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize(
    ("shape", "dtype", "affine", "track", "last"),
    [
        ((4, 8, 6, 6), "float32", True, True, False),
        ((4, 8, 6, 6), "float32", True, True, True),
        ((16, 5), "float32", False, True, False),
        ((3, 8, 7), "float64", True, False, False),
        ((2, 3, 40, 40), "float32", True, True, False),
        ((4, 8, 6, 6), "bfloat16", True, True, False),
    ],
)
def test_batch_norm_and_its_neighbours(train, shape, dtype, affine, track, last):
    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    ours = batch_norm(shape, kind, affine, track).train(train)
    theirs = copy.deepcopy(ours)
    layout = torch.channels_last if last else torch.contiguous_format
    x, other, weight = (torch.randn(shape).to(kind).contiguous(memory_format=layout) for _ in "abc")
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    compiled = torch.compile(lambda x: torch.tanh(ours(x) + other), fullgraph=True)
    for _ in range(2):
        got, expected = compiled(a), torch.tanh(theirs(b) + other)
    (got * weight).sum().backward()
    (expected * weight).sum().backward()
    tolerance = {"float32": 1e-5, "float64": 1e-12, "bfloat16": 0.05}[dtype]
    near(got, expected, tolerance)
    near(a.grad, b.grad, tolerance)
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        near(p.grad, q.grad, tolerance)
    for p, q in zip(ours.buffers(), theirs.buffers(), strict=True):
        near(p, q, tolerance)


def test_batch_norm_of_a_residual_is_one_nest():
    graph = parse(
        """graph(%0: f32[4, 8, 6, 6], %1: f32[8], %2: f32[8], %3: f32[4, 8, 6, 6]):
  %4: f32[4, 8, 6, 6], %5: f32[8], %6: f32[8] = native_batch_norm(%0, %1, %2, None, None, True, 0.1, 1e-05)
  %7: f32[4, 8, 6, 6] = add(%4, %3, 1)
  %8: f32[4, 8, 6, 6] = relu(%7)
  return %8, %5, %6
"""  # noqa: E501
    )
    (nest,) = schedule(decompose(graph)).steps
    assert isinstance(nest, Nest) and nest.reduced
