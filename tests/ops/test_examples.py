"""Every entry's docstring example runs and prints what it says."""

import doctest

import pytest
from table_cases import TABLE

import flambeau as torch

ENTRIES = {op.uid: op for op in TABLE if ">>>" in op.doc}
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("uid", list(ENTRIES))
def test_example(uid):
    op = ENTRIES[uid]
    names = {"torch": torch, "F": torch.nn.functional}
    test = doctest.DocTestParser().get_doctest(op.doc, names, uid, op.file, op.node.lineno)
    said: list[str] = []
    failed = (
        doctest.DocTestRunner(verbose=False, optionflags=FLAGS).run(test, out=said.append).failed
    )
    assert not failed, "".join(said)


def test_every_public_entry_has_an_example():
    public = [op for op in TABLE if not op.name.startswith("_") and (op.namespaces or op.is_method)]
    assert [op.uid for op in public if op.uid not in ENTRIES] == []
