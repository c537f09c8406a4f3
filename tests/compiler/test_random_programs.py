"""A few random programs, compiled and held against eager; `make truth` runs thousands."""

from __future__ import annotations

import pytest

from tools._program_check import check, optimised
from tools._program_draw import Input, Program, Step, generate, shrunk

pytestmark = pytest.mark.usefixtures("cache")


@pytest.mark.parametrize("dynamic", [False, True])
def test_programs_agree_with_eager(dynamic):
    programs = [generate(seed, 10) for seed in range(20 * dynamic, 20 * dynamic + 8)]
    with optimised("-O1"):
        trials = check(programs, (dynamic,))
    failed = [t for t in trials if t.failure]
    assert not failed, "\n".join(f"{t.failure}\n{t.program.text()}" for t in failed)


FALLING = Program(
    115000000177,
    [
        Input(shapes=((6, 2), (9, 3)), dtype="float64", form="dense", grad="none"),
        Input(shapes=((6, 2), (9, 3)), dtype="float64", form="swapped", grad="formed"),
    ],
    [
        Step(text="(t1 * 0.5).abs().log1p()", out=4, reads=(1,), computes=True),
        Step(text="t4.narrow(1, 0, (t4.shape[1] + 1) // 2).add_(0.25)", out=None, reads=(4,)),
        Step(text="(t4.abs() + 0.3).rsqrt().flip(0)", out=8, reads=(4,), computes=True),
        Step(text="t8[..., ::2].mul_(0.5)", out=None, reads=(8,), computes=True),
    ],
    (0, 1, 8),
    0.05,
    ((3, 0.75), (5, 0.5)),
)  # fmt: skip


@pytest.mark.parametrize("level", ["-O1", "-O2", "-O3"])
def test_loops_with_a_falling_index_store_what_they_compute(level):
    """GCC 12 left the stores of this one out, where it may take signed numbers not to overflow."""
    with optimised(level):
        assert [t.failure for t in check([FALLING], (True,))] == [""]


def test_programs_are_the_same_every_time():
    assert generate(7).text() == generate(7).text()


def test_shrinking_leaves_what_fails():
    program = generate(3, 10)
    last = Step(f"t{program.returns[-1]} * 17", 1000, (program.returns[-1],))
    program = Program(3, program.inputs, [*program.steps, last], (*program.returns, 1000))
    smaller = shrunk(program, lambda p: any("* 17" in s.text for s in p.steps))
    assert len(smaller.steps) < len(program.steps) and "* 17" in smaller.text()
