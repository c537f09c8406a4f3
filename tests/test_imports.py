"""Every module of the package can be imported alone, in a fresh process, and does nothing else.

It loads no heavy package, starts no thread, opens no file and gives no warning.
"""

import pathlib
import subprocess
import sys

import pytest

import flambeau

PACKAGE = pathlib.Path(flambeau.__path__[-1])

# Run as `python -c PROBE module`. Prints nothing unless something is wrong.
PROBE = """
import importlib, os, sys, threading, warnings
name = sys.argv[1]
warnings.simplefilter("error")
before = threading.active_count(), set(os.listdir("/proc/self/fd"))
importlib.import_module(name)
heavy = {"matplotlib", "scipy", "sklearn", "tqdm", "pytest"} & set(sys.modules)
assert not heavy, f"importing {name} loads {sorted(heavy)}"
assert threading.active_count() == before[0], f"importing {name} starts threads"
assert set(os.listdir("/proc/self/fd")) == before[1], f"importing {name} leaves files open"
"""


def modules():
    """Dotted names of all modules, in the order of the file system."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[-1] == "__main__":
            continue
        if parts[-1] == "__init__":
            parts = parts[:-1]
        yield ".".join(("flambeau", *parts))


@pytest.mark.parametrize("name", list(modules()))
def test_module_imports_alone(name):
    run = subprocess.run(
        [sys.executable, "-c", PROBE, name], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr[-2000:]


def test_version_tells_what_the_build_has():
    assert flambeau.version.__version__ == flambeau.__version__
    assert flambeau.version.cuda is flambeau.version.hip is None


def test_unknown_names_are_attribute_errors():
    """`hasattr` is False for what is not there, submodules that nobody wrote included."""
    code = """
import importlib, pkgutil, flambeau
for info in pkgutil.walk_packages(flambeau.__path__, "flambeau."):
    if info.ispkg and "._" not in info.name and info.name != "flambeau.ops":  # a name is a library's
        package = importlib.import_module(info.name)
        assert not hasattr(package, "no_such_name"), info.name
        assert not hasattr(package, "_no_such_name"), info.name
for name in ("profiler", "functional", "gradcheck"):
    getattr(flambeau.autograd, name, None)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
