"""The interpreter does what CPython does: results, what is changed, what is raised."""

from __future__ import annotations

import copy
import types
from typing import Any

import pytest

from flambeau._capture.back_ends import run_eagerly
from flambeau.compiler._compile import compiled_form

from .programs_objects import PROGRAMS


def captured(f: Any, **options: Any) -> Any:
    """The function captured; errors of capture itself are raised."""
    return compiled_form(f, run_eagerly, strict=True, **options)


def shown(value: Any) -> Any:
    """A value with functions and objects turned into what can be compared."""
    if isinstance(value, types.FunctionType):
        return ("function", value.__name__, value(1))
    if isinstance(value, (list, tuple, set)) and type(value) in (list, tuple, set):
        return type(value)(map(shown, value))
    if isinstance(value, dict):
        return [(k, shown(v)) for k, v in value.items()]
    if hasattr(value, "__dict__") and not isinstance(value, type):
        return (type(value), [(k, shown(v)) for k, v in vars(value).items()])
    return (type(value), value)


@pytest.mark.parametrize(("f", "args"), PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_program(f, args):
    compiled = captured(f)
    for _ in range(3):
        plain_args, captured_args = copy.deepcopy(args), copy.deepcopy(args)
        expected = f(*plain_args)
        result = compiled(*captured_args)
        assert shown(result) == shown(expected)
        assert shown(captured_args) == shown(plain_args)
    parts = compiled._flambeau_config.parts
    assert [p.reason for p in parts] == [None] * len(parts)
    assert parts, "it was followed"
