"""FLAMBEAU_LOGS: names are checked."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._ir import logs


@pytest.mark.parametrize(
    "wanted, on",
    [("", ()), ("guards", ("guards",)), ("+guards, bytecode,", ("guards", "bytecode"))],
)
def test_topics_are_those_that_are_named(monkeypatch, wanted, on):
    monkeypatch.setenv("FLAMBEAU_LOGS", wanted)
    assert tuple(t for t in logs.TOPICS if logs.enabled(t)) == tuple(
        sorted(on, key=logs.TOPICS.index)
    )
    monkeypatch.setenv("FLAMBEAU_LOGS", "all")
    assert all(map(logs.enabled, logs.TOPICS))


def test_an_unknown_topic_is_refused_before_anything_runs(monkeypatch):
    monkeypatch.setenv("FLAMBEAU_LOGS", "guards,outptu_code")
    with pytest.raises(ValueError) as caught:
        torch.compile(lambda x: x, backend="eager")
    assert str(caught.value) == (
        "FLAMBEAU_LOGS: expected names out of graph_breaks, recompiles, guards, graph_code, "
        "bytecode, output_code, all; got outptu_code"
    )
