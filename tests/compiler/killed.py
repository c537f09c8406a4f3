"""Writers of a cache of compiled libraries, killed at random moments.

Used by test_cache.py and by tools/compile_kills.py.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

# Compiles programs, each of which gives its number, into the cache: as many as asked, or without
# end; tells when it begins.
WRITER = """
import ctypes, itertools, sys
from flambeau._compiler import toolchain
print("ready", flush=True)
for k in itertools.islice(itertools.count(), int(sys.argv[1]) if sys.argv[1:] else None):
    made = toolchain.load(
        'extern "C" __attribute__((visibility("default"))) int answer() { return %d; }' % k
    )
    if ctypes.CDLL(None, handle=made.handle).answer() != k:
        sys.exit("wrong answer of program %d" % k)
print("done", flush=True)
"""


def start(cache: Path) -> subprocess.Popen[str]:
    """A writer of programs without end, once it has begun."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env=_environment(cache),
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def _environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "FLAMBEAU_CACHE": str(cache)}


def kill_writers(cache: Path, kills: int, seed: int, span: float = 0.5) -> int:
    """Two writers at a time over one cache, killed at work, with what they started, after up to
    `span` seconds. How many folders of unfinished work that left.

    Raises:
        AssertionError: a writer got a wrong answer, or ended by itself.
    """
    draw = random.Random(seed)
    for _ in range(0, kills, 2):
        pair = [start(cache) for _ in range(2)]
        for process in pair:
            time.sleep(draw.uniform(0, span))
            os.killpg(process.pid, signal.SIGKILL)
        for process in pair:
            _, errors = process.communicate()
            assert process.returncode == -signal.SIGKILL, errors
        for path in cache.glob("*.so"):
            if draw.random() < 0.5:
                path.unlink()  # so that the next ones have something to write
    return len(list(cache.glob("making-*")))


def run_to_the_end(cache: Path, programs: int = 4) -> None:
    """A run over what the killed ones left gives right answers.

    Raises:
        AssertionError: it does not.
    """
    command = [sys.executable, "-c", WRITER, str(programs)]
    run = subprocess.run(command, capture_output=True, text=True, env=_environment(cache))
    assert run.returncode == 0 and run.stdout == "ready\ndone\n", run
