"""Saves that are killed at random moments: `python -m tools.save_kills --count 1000`.

A process saves two different checkpoints by turns to one file, and is killed with SIGKILL after a
random time. What is at the path must then be one of the two, whole, and no later save may be
disturbed by what a killed one left.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import flambeau as fb

SIZES = (3, 1000, 300_000)
SAVER = """
import sys, flambeau as fb
from tools.save_kills import checkpoint
path, old = sys.argv[1], sys.argv[2] == "old"
turn = 0
while True:
    fb.save(checkpoint(turn % 2), path, _use_new_zipfile_serialization=not old)
    turn += 1
    if turn == 1:
        print("ready", flush=True)
"""


def checkpoint(turn: int) -> dict[str, object]:
    return {"turn": turn, **{f"w{n}": fb.full((n,), float(turn)) for n in SIZES}}


def is_whole(found: object) -> bool:
    """Whether this is one of the two checkpoints."""
    if not isinstance(found, dict) or found.get("turn") not in (0, 1):
        return False
    want = checkpoint(found["turn"])
    return found.keys() == want.keys() and all(
        fb.equal(found[k], v) for k, v in want.items() if isinstance(v, fb.Tensor)
    )


def kill_one(folder: Path, rng: random.Random, old: bool) -> str:
    """What is wrong after one kill, "" when nothing is."""
    path = folder / "checkpoint.pt"
    command = [sys.executable, "-c", SAVER, str(path), "old" if old else "new"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(rng.uniform(0, 0.1))
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    try:
        found = fb.load(path)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "" if is_whole(found) else "the file holds neither checkpoint"


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()
    rng, failed, begun = random.Random(args.seed), 0, time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fb.save(checkpoint(0), folder / "checkpoint.pt")
        for k in range(args.count):
            why = kill_one(folder, rng, old=rng.random() < 0.3)
            if why:
                failed += 1
                print(f"kill {k}: {why}", flush=True)
        fb.save(checkpoint(1), folder / "checkpoint.pt")
        left = [n for n in os.listdir(folder) if n != "checkpoint.pt"]
    took = time.monotonic() - begun
    print(
        f"{args.count} saves killed in {took:.0f} s: {failed} left something else, "
        f"{len(left)} parts of files stay behind"
    )
    return 1 if failed or left else 0


if __name__ == "__main__":
    sys.exit(main())
