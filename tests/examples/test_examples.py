"""The demo, much shortened: it trains, restores its checkpoints, writes what it says."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("compiler", [True, False])
def test_demo_in_short(tmp_path, compiler):
    for package in ("sklearn", "matplotlib", "tqdm"):
        pytest.importorskip(package)
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(
        p for p in (environment.get("PYTHONPATH"), str(ROOT)) if p
    )
    if not compiler:
        environment["PATH"] = str(tmp_path)
        environment.pop("CXX", None)
    run = subprocess.run(
        [sys.executable, ROOT / "examples/demo.py"]
        + ["--out", tmp_path, "--gpt-steps", "3", "--epochs", "1", "--pairs", "2"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert "gave the same validation result" in run.stdout
    names = {p.name for p in tmp_path.iterdir()}
    expected = {"losses.png", "digits.pt", "gpt.pt", "gpt_sample.txt"}
    assert names == (expected | {"speeds.png"} if compiler else expected)
    told = "times as fast as eager" if compiler else "Nothing was compiled, see above"
    assert told in run.stdout
    assert (tmp_path / "losses.png").read_bytes()[:4] == b"\x89PNG"
    for name in names:
        assert str(tmp_path / name) in run.stdout
