"""A few hundred random programs over Python state, compiled and held against plain Python; `make
truth` runs thousands."""

from __future__ import annotations

import ast

import pytest

from tools._state_check import failure
from tools._state_draw import Node, generate, nodes
from tools.state_programs import judged, script, shrunk


@pytest.mark.parametrize("part", range(4))
def test_programs_agree_with_plain_python(part):
    programs = [(k, generate(k)) for k in range(60 * part, 60 * (part + 1)) if k % 50 != 49]
    failed = [script(p, k, why) for k, p in programs if (why := judged(p, k))]
    assert not failed, "\n".join(failed)


def test_programs_are_the_same_every_time():
    assert generate(7).text() == generate(7).text()
    ast.parse(generate(7).text())


def test_a_difference_is_found_and_made_smaller():
    """A program that asks whether it is compiled differs by intent."""
    program = generate(3)
    program.body.insert(2, Node("GL.append(torch.compiler.is_compiling())"))
    assert failure(program.text())
    smaller = shrunk(program, lambda p: bool(failure(p.text())))
    assert len(list(nodes(smaller))) < len(list(nodes(program)))
    assert "is_compiling" in smaller.text()
