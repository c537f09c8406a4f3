"""One operation, one place: no entry has hand-written sites in more than two files."""

from __future__ import annotations

import pytest

from tools import where


def test_no_operation_is_written_in_more_than_two_files() -> None:
    assert where.crowded() == {}


def test_sites_of_a_structured_operation(capsys: pytest.CaptureFixture[str]) -> None:
    assert where.main(["index_select"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "index_select:"
    assert shown[1].startswith("  flambeau/ops/indexing_along.py:")
    assert shown[2].startswith("  csrc/kernels/indexing.cpp:")


def test_unknown_operation(capsys: pytest.CaptureFixture[str]) -> None:
    assert where.main(["no_such_operation"]) == 1
    assert "no entry named no_such_operation" in capsys.readouterr().err
