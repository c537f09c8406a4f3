"""The examples in the docstrings of pipes give what they show."""

import doctest
import importlib
import pathlib
import pkgutil
import re
import subprocess
import sys

import pytest

import flambeau
from flambeau.utils.data import datapipes

MODULES = [
    "flambeau.utils.data.graph",
    "flambeau.utils.data.graph_settings",
    *(
        info.name
        for info in pkgutil.walk_packages(datapipes.__path__, "flambeau.utils.data.datapipes.")
    ),
]
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.fixture(autouse=True)
def names_stay_as_they_were(monkeypatch):
    """Examples register names of their own."""
    for kind in (flambeau.utils.data.IterDataPipe, flambeau.utils.data.MapDataPipe):
        monkeypatch.setattr(kind, "functions", dict(kind.functions))


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    outcome = doctest.testmod(
        importlib.import_module(name), optionflags=OPTIONS, extraglobs={"torch": flambeau}
    )
    assert outcome.failed == 0


@pytest.mark.parametrize("package", ["iter", "map"])
def test_every_public_pipe_has_an_example(package):
    module = importlib.import_module(f"flambeau.utils.data.datapipes.{package}")
    assert module.__all__ == sorted(module.__all__)
    for name in module.__all__:
        assert ">>> " in getattr(module, name).__doc__, name


def test_the_page_lists_all_pipes():
    page = (pathlib.Path(__file__).parents[3] / "docs" / "datapipes.md").read_text()
    named = set(re.findall(r"`(\w+)`", page))
    kinds = (flambeau.utils.data.IterDataPipe, flambeau.utils.data.MapDataPipe)
    functional = {name for kind in kinds for name in kind.functions}
    refused = {name for name in functional if re.search("_by_(s3|ais|iopath)$|_rar$", name)}
    classes = {*datapipes.iter.__all__, *datapipes.map.__all__}
    classes -= {name for name in classes if name.startswith("IoPath") or name == "IterDataPipe"}
    assert functional - refused | classes <= named


def test_loading_pipes_loads_little():
    """A spawned worker of a loader pays for it."""
    program = (
        "import sys, flambeau.utils.data as data; data.DataLoader([1]); "
        "assert not any('datapipes' in m for m in sys.modules); data.IterDataPipe; "
        "print({'asyncio', 'ssl', 'http.client', 'zipfile', 'lzma'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr
