"""Sources of functions: what is read quickly is what `inspect` finds."""

from __future__ import annotations

import argparse
import ast
import inspect
import textwrap
import types
import typing

import pytest

import flambeau
from flambeau._script import sources
from flambeau.nn.modules import rnn


def functions(module):
    for x in vars(module).values():
        if isinstance(x, type):
            yield from (f for f in vars(x).values() if isinstance(f, types.FunctionType))
        elif isinstance(x, types.FunctionType):
            yield x


@pytest.mark.parametrize("module", [rnn, flambeau.nn.functional, argparse, typing, textwrap])
def test_functions_end_where_inspect_sees_their_end(module):
    whole = {
        min([node.lineno, *(d.lineno for d in node.decorator_list)]): node
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.FunctionDef)
    }
    count = 0
    for f in map(inspect.unwrap, functions(module)):
        if f.__code__.co_filename.startswith("<"):  # made from a text
            continue
        found = sources._quick(f)
        if found is None:
            continue
        lines, first, tree = found
        assert (lines, first) == inspect.getsourcelines(f)
        if inspect.getmodule(f) is module:
            wanted = ast.dump(whole[first], include_attributes=True)
            assert ast.dump(tree, include_attributes=True) == wanted
        count += 1
    assert count > 10


def cut_early(x):
    return """
what stands at the margin"""  # and what follows


def documented():
    """A function without code,

 whose text is hardly indented."""


# A comment that nobody wants.
def several(
    x: int,
) -> int:  # of two lines

    if x:

        # inside
        return (
            x
)

    return 2
    # behind


@pytest.mark.parametrize("f", [cut_early, documented, several])
def test_texts_that_are_not_indented(f):
    tree = sources.source_of(f).tree
    lines, first = inspect.getsourcelines(f)
    wanted = ast.increment_lineno(ast.parse("".join(lines)).body[0], first - 1)
    assert ast.dump(tree, include_attributes=True) == ast.dump(wanted, include_attributes=True)
