"""What runs in several threads below Python, built with sanitizers: with DIST=all (`make dist`).

Building takes half a minute of a core, so the ordinary tests do the same without sanitizers
(tools/store_load.py).
"""

import os
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent
CORE = HERE.parents[1] / "csrc"
STORE = ("fault", "hmac", "socket", "store", "store_server", "tcp_store", "wire")
KINDS = ("address,undefined", "thread")


def build(program, kind, sources):
    compiler = shutil.which("g++") or shutil.which("c++")
    command = [compiler, "-std=c++20", "-O1", "-g", f"-fsanitize={kind}", "-pthread"]
    command += ["-fno-sanitize-recover=all", f"-I{CORE}", "-o", str(program), *map(str, sources)]
    subprocess.run(command, check=True)


def store(folder, kind):
    """The server under 100,000 damaged messages, while 50 clients go on."""
    program = folder / "store_fuzz"
    parts = (CORE / f"distributed/{part}.cpp" for part in STORE)
    build(program, kind, [HERE / "store_fuzz.cpp", *parts])
    command = [str(program), "100000", "50", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert "100000 damaged messages, 50 clients" in done.stdout and " 0 wrong" in done.stdout


if os.environ.get("DIST") == "all":

    @pytest.mark.parametrize("kind", KINDS)
    def test_stores(tmp_path, kind):
        store(tmp_path, kind)
