"""Small tables of operations, compiled from text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from flambeau._build import compiler
from flambeau._build.compiler import Unit

#: what the rules of the tests call
BASE = '''
@structured(kernel="mul")
def mul(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Product."""
    return empty(input.shape, dtype=input.dtype, like=input)


@structured(kernel="sum")
def sum(input: Tensor, dim: Ints | None = None, keepdim: bool = False) -> Tensor:
    """Sum."""
    return empty(input.shape, dtype=input.dtype, like=input)
'''

MakeUnit = Callable[..., Unit]


@pytest.fixture
def make_unit(tmp_path: Path) -> MakeUnit:
    """Compiles the text of one entry file, with `mul` and `sum` beside it."""

    def make(source: str, base: str = BASE) -> Unit:
        folder = tmp_path / "flambeau" / "ops"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "base.py").write_text(base)
        (folder / "family.py").write_text(textwrap.dedent(source))
        return compiler.load(tmp_path)

    return make
