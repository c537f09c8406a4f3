"""Damaged files load, or end in an error that says so: a small count of `tools.file_mutations`."""

from __future__ import annotations

import random
import warnings

import pytest

from tools.file_mutations import judged, one, sources


@pytest.mark.parametrize("kind", ["zip", "legacy", "flambeau", "safetensors"])
def test_damaged_files(kind):
    files = [f for f in sources() if f[0] == kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(400):
            drawn, data = one(files, random.Random(f"test {kind} {k}"))
            assert judged(drawn, data) == "", (k, drawn)
