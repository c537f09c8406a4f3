"""Compiling and forgetting leaves no more memory than its libraries (tools/compile_memory.py)."""

from __future__ import annotations

from tools._program_check import optimised
from tools.compile_memory import BOUND, growth


def test_what_is_forgotten_is_freed(monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMBEAU_CACHE", str(tmp_path))
    with optimised("-O1"):
        left = growth(8, warm=4)
    assert left <= 2 * BOUND  # few compilations: pools of memory still grow
