"""The table read piece by piece is the table read whole."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import flambeau
from flambeau._ir import targets
from flambeau._table import entries, outline, reader
from flambeau._table.reader import TableError

ROOT = Path(flambeau.__path__[-1]).parent


@pytest.mark.parametrize("file", outline.entry_files(ROOT))
def test_pieces_and_what_is_between_them_are_the_file(file):
    text = outline.text_of(ROOT, file)
    pieces, rest = outline.cut(text)
    whole = ast.parse(text).body
    parts = sorted([p.node for p in pieces] + ast.parse(rest).body, key=lambda n: n.lineno)
    assert [ast.dump(n, include_attributes=True) for n in parts] == [
        ast.dump(n, include_attributes=True) for n in whole
    ]
    for piece in pieces:
        (decorator,) = piece.node.decorator_list
        assert ast.dump(piece.call) == ast.dump(decorator)
        assert piece.name == piece.node.name


def test_an_entry_alone_is_the_entry_of_the_whole_table():
    for op in reader.load(ROOT):
        alone = entries.record(op.uid)
        assert (alone.name, alone.kind, alone.options) == (op.name, op.kind, op.options)
        assert ast.dump(alone.node) == ast.dump(op.node)
        assert {k: ast.dump(r.node) for k, r in alone.rules.items()} == {
            k: ast.dump(r.node) for k, r in op.rules.items()
        }
    assert list(entries.entries()) == [op.uid for op in reader.load(ROOT)]


def test_a_file_is_found_by_every_name_of_its_entries():
    for file in outline.entry_files(ROOT):
        text = outline.text_of(ROOT, file)
        possible = outline.possible_names(text)
        for draft in reader.drafts_of(text, file):
            names = {draft.name, draft.op.python_name}
            names |= {str(a).rpartition(".")[2] for a in draft.op.option("aliases", ())}
            assert names <= possible
            assert draft.uid in [op.uid for op in entries.overloads(draft.name)]


def test_derived_forms_are_found_by_their_names():
    assert targets.resolve("add_") == targets.Target(entries.record("add"), "inplace")
    for op in entries.entries().values():
        if op.has_inplace and not entries.known(op.inplace_uid):
            assert targets.resolve(op.inplace_uid) == targets.Target(op, "inplace")
    for name in ("nothing", "softmax_", "add__7", "add.new"):
        with pytest.raises(KeyError):
            targets.resolve(name)


FILE = '''"""A table.

@not_an_entry
"""

from ._lang import *

LIMIT = 3


@composite(
    each=("a", "b"),
)
def twice_NAME(
    input: Tensor,
) -> Tensor:
    """NAME, twice."""

    # a comment

    return NAME(NAME(input))
# a comment that nothing follows


@twice_a.vjp
def _(input, g):
    return g
'''


def read(tmp_path, text):
    folder = tmp_path / "flambeau" / "ops"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "some.py").write_text(text)
    return reader.load(tmp_path)


def test_names_are_written_out_and_rules_attached(tmp_path):
    first, second = read(tmp_path, FILE)
    assert (first.name, second.name, first.doc) == ("twice_a", "twice_b", "a, twice.")
    assert list(first.rules) == ["vjp"] and not second.rules
    assert ast.unparse(second.node.body[-1]) == "return b(b(input))"
    assert first.node.lineno == 14 and first.rules["vjp"].node.lineno == 26
    assert list(reader.constants(tmp_path, "flambeau/ops/some.py")) == ["LIMIT"]


@pytest.mark.parametrize(
    "text, message",
    [
        ("def f(x: Tensor) -> Tensor:\n    return x\n", "only entries, rules"),
        ("@composite\n@composite\ndef f(x: Tensor) -> Tensor:\n    return x\n", "one decorator"),
        ("@thing\ndef f(x: Tensor) -> Tensor:\n    return x\n", "unknown decorator"),
        ("@f.vjp\ndef _(x, g):\n    return g\n", "no entry 'f' above"),
        ("for x in y:\n    pass\n", "only entries, rules"),
    ],
)
def test_what_may_not_stand_in_a_file_is_refused(tmp_path, text, message):
    with pytest.raises(TableError, match=message):
        read(tmp_path, text)


def test_a_docstring_that_looks_like_an_entry_is_an_error_not_a_loss(tmp_path):
    with pytest.raises(SyntaxError):
        read(tmp_path, '"""Docs.\n\n@composite\ndef f(x: Tensor) -> Tensor:\n    return x\n"""\n')
