"""What runs in several threads below Python, built with sanitizers: with DIST=all (`make dist`).

Building takes minutes of a core, so the ordinary tests do the same without sanitizers
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


def build(program, kind, sources, *options):
    compiler = shutil.which("g++") or shutil.which("c++")
    command = [compiler, "-std=c++20", "-O1", "-g", f"-fsanitize={kind}", "-pthread", "-fopenmp"]
    command += ["-fno-sanitize-recover=all", f"-I{CORE}", "-o", str(program), *options]
    subprocess.run([*command, *map(str, sources)], check=True)


def store(folder, kind):
    """The server under 100,000 damaged messages, while 50 clients go on."""
    program = folder / "store_fuzz"
    parts = (CORE / f"distributed/{part}.cpp" for part in STORE)
    build(program, kind, [HERE / "store_fuzz.cpp", *parts])
    command = [str(program), "100000", "50", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert "100000 damaged messages, 50 clients" in done.stdout and " 0 wrong" in done.stdout


def groups(folder, kind):
    """Collectives, messages and waits of three ranks, each in threads of its own."""
    loops, program = folder / "loops.o", folder / "group_threads"
    here = "-DFB_HAVE_ISA_portable=1"
    named = ("-c", "-DFB_ISA=portable", "-DFB_ISA_portable=1")
    build(loops, kind, [CORE / "distributed/reduce.isa.cpp"], here, *named)
    parts = [*CORE.glob("core/*.cpp"), *CORE.glob("distributed/*.cpp")]
    parts += [CORE / "kernels/isa.cpp", CORE / "dispatch/modes.cpp"]
    sources = [HERE / "group_threads.cpp", loops, *(p for p in parts if ".isa." not in p.name)]
    build(program, kind, sources, here)
    for joined in ("memory", "mesh"):
        command = [program, "3", "60", joined]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr[-3000:]
        assert "3 ranks, 60 rounds" in done.stdout and " 0 wrong" in done.stdout


if os.environ.get("DIST") == "all":

    @pytest.mark.parametrize("kind", KINDS)
    def test_stores(tmp_path, kind):
        store(tmp_path, kind)

    @pytest.mark.parametrize("kind", KINDS)
    def test_groups(tmp_path, kind):
        groups(tmp_path, kind)
