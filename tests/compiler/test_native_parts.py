"""What was split and put together again, and layouts of what is written out."""

from __future__ import annotations

import pytest
from test_native import agree, program_of, uniform

import flambeau as torch
from flambeau._compiler.nest import Nest

pytestmark = pytest.mark.usefixtures("cache")


def heads(x):
    a, b, c = (x * 2).split(4, dim=1)
    return a.sin() * b + c.cos()


def overlapping(x):
    y = x * 1
    return y[:, 2:5].sin() + y[:, 4:7] * 2 + y[:, 9:12]


CASES = {
    "split": heads,
    "a slice": lambda x: (x * 1)[:, 2:5].sin(),
    "slices that overlap": overlapping,
    "rows": lambda x: torch.cat([(x * 1)[:3], (x * 2)[1:]], 0).sum(),
    "unbind": lambda x: sum(t.exp() for t in (x * 1).unbind(1)),
    "parts with a gap": lambda x: (x * 1)[:, 1:3].sin() * (x * 1)[:, 3:5] * (x * 2)[:, 7:9],
    "some chunks": lambda x: sum(t.exp() for t in (x * 1).chunk(3, 1)[1:]),
}


@pytest.mark.parametrize("dynamic", [False, {0: {0}}, True], ids=["fixed", "rows", "all"])
@pytest.mark.parametrize("name", CASES)
def test_gradients_of_parts(name, dynamic):
    agree(CASES[name], [uniform(6, 12)], dynamic=dynamic)


def test_the_gradient_of_a_split_is_written_once():
    program = program_of(
        """graph(%0: f32[4, 6], %1: f32[4, 6]):
  %2: f32[4, 6] = mul(%0, 2)
  %3: f32[4, 12] = zeros((4, 12), None, None)
  %4: f32[4, 6]{12, 1} = slice(%3, 1, 6, 12, 1)
  %5: f32[4, 6]{12, 1} = slice(%3, 1, 0, 6, 1)
  %6: f32[4, 12] = cat((%2, %4), 1)
  %7: f32[4, 12] = cat((%5, %1), 1)
  %8: f32[4, 12] = add(%6, %7, 1)
  return %8
"""
    )
    assert all(isinstance(s, Nest) for s in program.steps)
    assert [s.writes for s in program.steps] == [{program.outputs[0].buffer}] * 2


def test_what_is_written_out_keeps_the_layout_of_its_kernel():
    def f(x):
        y = x.transpose(0, 2).chunk(2, 1)[0].to(torch.float64)
        return y, y.softmax(1), torch.nn.functional.layer_norm(y, (2,)) * 1

    x = uniform(2, 4, 4)
    g = agree(f, [x])
    for a, b in zip(g(x), f(x), strict=True):
        assert a.stride() == b.stride()


def test_a_copy_through_another_shape_is_one_nest():
    """Heads put side by side, then taken as rows: the rows are split as the heads are."""
    program = program_of(
        """graph(%0: f32[2, 3, 4, 5], %1: f32[2, 4, 15]):
  %2: f32[2, 4, 3, 5]{60, 5, 20, 1} = permute(%0, (0, 2, 1, 3))
  %3: f32[2, 4, 3, 5] = _to_copy(%2, None, contiguous_format, None)
  %4: f32[2, 4, 15] = view(%3, (2, 4, 15))
  %5: f32[2, 4, 15] = mul(%4, %1)
  return %5
"""
    )
    (nest,) = program.steps
    assert nest.domain == (2, 4, 3, 5)
    x, y = uniform(2, 3, 4, 5), uniform(2, 4, 15)
    agree(lambda x, y: x.permute(0, 2, 1, 3).reshape(2, 4, 15) * y, [x, y])
