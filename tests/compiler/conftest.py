"""Puts this folder on the path, for programs; has every stage of compilation verified; `cache`."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

os.environ["FLAMBEAU_VERIFY"] = "1"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """An empty cache of compiled code, for the tests of a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLAMBEAU_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
