"""Runs programs under the alias in processes of their own."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*arguments, text=None, cwd=ROOT, env=None, check=True):
    """What `python -m flambeau.as_torch ARGUMENTS` prints."""
    return python("-m", "flambeau.as_torch", *arguments, text=text, cwd=cwd, env=env, check=check)


def python(*arguments, text=None, cwd=ROOT, env=None, check=True, executable=sys.executable):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    done = subprocess.run(
        [executable, *map(str, arguments)],
        input=text,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
        timeout=240,
    )
    if check:
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout
    return done


@pytest.fixture(name="run")
def _run():
    return run


@pytest.fixture(name="python")
def _python():
    return python
