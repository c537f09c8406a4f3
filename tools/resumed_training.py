"""Training that begins with one library and goes on with the other: are the losses one run's?

Owns the checkpoints and losses stored for the tests, which are PyTorch's; the runs are those of
`tests/serialization/cases/resumed.py`. Run with either library:

    python tools/resumed_training.py begin FOLDER    # 20 steps of each run, and a checkpoint
    python tools/resumed_training.py go_on FOLDER    # 20 more; all 40 against 40 of its own
    python tools/resumed_training.py store           # PyTorch: checkpoints and 40 losses

`--flambeau` takes Flambeau for the library; otherwise it is what `import torch` gives.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import io
import json
import pathlib
import sys
import tarfile
import warnings
from typing import Any

TESTS = pathlib.Path(__file__).resolve().parents[1] / "tests" / "serialization"
STORED = TESTS / "pytorch_files" / "resumed.tar.gz"
LARGEST = 1e-6  # relative difference of two losses


def half(torch: Any, runs: Any, name: str) -> tuple[bytes, list[float]]:
    """A checkpoint in the middle, and the losses up to there."""
    run = runs.Run(torch, name)
    losses = run.steps(runs.STEPS)
    stream = io.BytesIO()
    torch.save(run.state(), stream)
    return stream.getvalue(), losses


def begin(torch: Any, runs: Any, folder: pathlib.Path) -> int:
    """Write a checkpoint and the losses of each run to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in runs.RUNS:
        data, losses = half(torch, runs, name)
        (folder / f"{name}.pt").write_bytes(data)
        (folder / f"{name}.json").write_text(json.dumps(losses))
    return 0


def go_on(torch: Any, runs: Any, folder: pathlib.Path) -> int:
    """Go on from a folder's checkpoints; 1 if the losses differ from those of one run."""
    worst = 0.0
    for name in runs.RUNS:
        run = runs.Run(torch, name)
        run.go_on(torch.load(folder / f"{name}.pt", weights_only=True))
        losses = json.loads((folder / f"{name}.json").read_text()) + run.steps(runs.STEPS)
        whole = runs.Run(torch, name).steps(2 * runs.STEPS)
        found = max(abs(a - b) / abs(b) for a, b in zip(losses, whole, strict=True))
        print(f"{name}: {len(losses)} losses, largest relative difference {found:.1e}")
        worst = max(worst, found)
    return int(worst > LARGEST)


def store(torch: Any, runs: Any) -> int:
    """Write the archive that the tests read."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:

        def add(name: str, data: bytes) -> None:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))

        losses = {}
        for name in runs.RUNS:
            add(f"{name}.pt", half(torch, runs, name)[0])
            losses[name] = runs.Run(torch, name).steps(2 * runs.STEPS)
        add("losses.json", json.dumps(losses).encode())
    STORED.write_bytes(gzip.compress(stream.getvalue(), 9, mtime=0))
    print(f"{STORED.name}: {STORED.stat().st_size} bytes")
    return 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=("begin", "go_on", "store"))
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--flambeau", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch = importlib.import_module("flambeau" if options.flambeau else "torch")
    sys.path.insert(0, str(TESTS))
    runs = importlib.import_module("cases.resumed")
    if options.what == "store":
        return store(torch, runs)
    if options.folder is None:
        parser.error("expected a folder")
    return {"begin": begin, "go_on": go_on}[options.what](torch, runs, options.folder)


if __name__ == "__main__":
    raise SystemExit(main())
