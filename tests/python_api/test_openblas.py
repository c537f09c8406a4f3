"""Where LAPACK is found at run time, and what a checkout without its extension says."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import flambeau
from flambeau import _openblas

ROOT = pathlib.Path(flambeau.__file__).parents[1]
INSTALLED = importlib.util.find_spec("scipy_openblas32") is not None
SOLVE = "import flambeau as t; t.linalg.inv(t.eye(3)); print(t._C._lapack_library())"


def run(code, wanted=None, folder=ROOT):
    env = {k: v for k, v in os.environ.items() if k != "FLAMBEAU_OPENBLAS"}
    if wanted is not None:
        env["FLAMBEAU_OPENBLAS"] = wanted
    env["PYTHONPATH"] = str(folder)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=folder
    )


@pytest.mark.skipif(not INSTALLED, reason="scipy-openblas32 is not installed")
def test_the_installed_package_is_found():
    path = _openblas.path()
    assert os.path.isfile(path)
    assert os.path.samefile(run(SOLVE).stdout.strip(), path)


def test_a_package_that_is_not_there_is_not_found(monkeypatch):
    monkeypatch.setattr(_openblas, "_PACKAGE", "no_such_package")
    assert _openblas.path() == ""


def test_importing_does_not_look():
    code = (
        "import sys, flambeau; flambeau.ones(3) + 1;"
        "assert not {'scipy_openblas32', 'flambeau._openblas'} & {*sys.modules}"
    )
    out = run(code)
    assert out.returncode == 0, out.stderr


def test_the_plain_routines_can_be_asked_for():
    assert run(SOLVE, "off").stdout.strip() == "None"
    shown = run("import flambeau; print(flambeau.__config__.show())", "off").stdout
    assert "LAPACK: plain routines" in shown


@pytest.mark.skipif(not INSTALLED, reason="scipy-openblas32 is not installed")
def test_a_library_can_be_named():
    path = _openblas.path()
    assert os.path.samefile(run(SOLVE, path).stdout.strip(), path)
    assert path in run("import flambeau; print(flambeau.__config__.show())", path).stdout


def test_a_library_that_cannot_be_opened_is_an_error():
    out = run(SOLVE, "/nowhere/libopenblas.so")
    assert out.returncode == 1
    assert out.stderr.strip().splitlines()[-1] == (
        "RuntimeError: linalg: expected FLAMBEAU_OPENBLAS to be 'off' or a library with LAPACK, "
        "got /nowhere/libopenblas.so, which cannot be opened or lacks its routines"
    )


def test_the_first_call_may_come_from_anywhere():
    # Many small matrices are shared out over threads, gradients are worked out without Python's
    # lock, and three threads look at once: none waits for another for ever.
    code = """
import threading
import flambeau as t
def work():
    x = (t.eye(4) * 2).expand(5000, 4, 4).clone().requires_grad_()
    t.linalg.inv(x).sum().backward()
    done.append(float(x.grad[0, 0, 0]))
done = []
threads = [threading.Thread(target=work) for _ in range(3)]
[x.start() for x in threads]
[x.join() for x in threads]
print(done)
"""
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=120
    )
    assert out.stdout.strip() == "[-0.25, -0.25, -0.25]", out.stderr


def test_a_checkout_without_its_extension_says_so(tmp_path):
    shutil.copytree(
        ROOT / "flambeau",
        tmp_path / "flambeau",
        ignore=shutil.ignore_patterns("*.so", "__pycache__", "_libs"),
    )
    out = run("import flambeau", folder=tmp_path)
    assert out.returncode == 1
    last = out.stderr.strip().splitlines()[-1]
    assert last == (
        f"ImportError: flambeau: expected the compiled extension _C in {tmp_path / 'flambeau'}, "
        "found none for this Python; build it with `make build`, or install the package with "
        "`pip install .`"
    )


def test_parallel_info_counts_threads():
    text = flambeau.__config__.parallel_info()
    assert f"threads of one operation: {flambeau.get_num_threads()}" in text
