"""A few random programs, compiled and held against eager; `make truth` runs thousands."""

from __future__ import annotations

import pytest

from tools._program_check import check, optimised
from tools._program_draw import Program, Step, generate, shrunk

pytestmark = pytest.mark.usefixtures("cache")


@pytest.mark.parametrize("dynamic", [False, True])
def test_programs_agree_with_eager(dynamic):
    programs = [generate(seed, 10) for seed in range(20 * dynamic, 20 * dynamic + 8)]
    with optimised("-O1"):
        trials = check(programs, (dynamic,))
    failed = [t for t in trials if t.failure]
    assert not failed, "\n".join(f"{t.failure}\n{t.program.text()}" for t in failed)


def test_programs_are_the_same_every_time():
    assert generate(7).text() == generate(7).text()


def test_shrinking_leaves_what_fails():
    program = generate(3, 10)
    last = Step(f"t{program.returns[-1]} * 17", 1000, (program.returns[-1],))
    program = Program(3, program.inputs, [*program.steps, last], (*program.returns, 1000))
    smaller = shrunk(program, lambda p: any("* 17" in s.text for s in p.steps))
    assert len(smaller.steps) < len(program.steps) and "* 17" in smaller.text()
