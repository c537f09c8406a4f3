"""The examples of loading data learn what they should; training goes on where it stopped."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_data_pipelines(tmp_path):
    for package in ("PIL", "tqdm"):
        pytest.importorskip(package)
    paths = (os.environ.get("PYTHONPATH"), str(ROOT))
    run = subprocess.run(
        [sys.executable, ROOT / "examples/data_pipelines.py", "--out", tmp_path],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)},
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    told = dict(line.split(": ", 1) for line in run.stdout.splitlines() if ": " in line)
    assert int(told["reviews told apart"].rstrip("%")) >= 95
    assert int(told["images told apart"].rstrip("%")) >= 90
    assert run.stdout.splitlines()[-1].endswith("the same is True")
    line = re.search(r"line at one go \[(.*?), (.*?)\]", run.stdout)
    slope, intercept = float(line[1]), float(line[2])
    assert abs(slope - 3) < 0.05 and abs(intercept - 1) < 0.05
    table = run.stdout.splitlines()
    assert any(line.startswith("CSVParser") and " 400 " in line for line in table)
