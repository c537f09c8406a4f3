"""Files of PyTorch and of Flambeau, each read by the other: written, compared, stored for tests.

Owns which of `tests/serialization/cases` is written in which format, and the archive in which
PyTorch's files are stored, beside the few single files of `pytorch_cases`. Run with either library;
each part says which:

    python tools/pytorch_files.py write FOLDER      # either: one file per case and format
    python tools/pytorch_files.py compare FOLDER    # either: reads what the other wrote
    python tools/pytorch_files.py store             # PyTorch: the archive and files for the tests

`--flambeau` takes Flambeau for the library; otherwise it is what `import torch` gives. Reading is
by `weights_only=True` wherever PyTorch's own reader allows what a case holds.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import io
import pathlib
import sys
import tarfile
import warnings
from collections.abc import Iterator
from typing import Any

TESTS = pathlib.Path(__file__).resolve().parents[1] / "tests" / "serialization"
STORED = TESTS / "pytorch_files" / "cases.tar.gz"


def names(cases: Any, theirs: bool) -> Iterator[tuple[str, str, bool]]:
    """File name, case and format (True: before 1.6) of every file.

    Args:
        cases: the table of cases.
        theirs: leave out what PyTorch cannot save.
    """
    for name, case in cases.items():
        if case.theirs or not theirs:
            yield f"{name}.pt", name, False
            if case.legacy:
                yield f"{name}.legacy.pt", name, True


def written(torch: Any, case: Any, legacy: bool) -> bytes:
    """The bytes of a case's file."""
    stream = io.BytesIO()
    torch.save(case.make(torch), stream, _use_new_zipfile_serialization=not legacy)
    return stream.getvalue()


def write(torch: Any, cases: Any, folder: pathlib.Path, theirs: bool) -> int:
    """Write all files to a folder; how many."""
    folder.mkdir(parents=True, exist_ok=True)
    files = list(names(cases, theirs))
    for file, name, legacy in files:
        (folder / file).write_bytes(written(torch, cases[name], legacy))
    print(f"{len(files)} files")
    return 0


def compare(torch: Any, cases: Any, folder: pathlib.Path, ours: bool) -> int:
    """Read a folder that the other library wrote, and say what differs; 1 if anything does."""
    from cases.compare import differences

    count = bad = 0
    for file, name, _ in names(cases, False):
        path = folder / file
        if not path.exists():
            continue
        count += 1
        case = cases[name]
        try:
            safe = case.run is None and (ours or case.safe)
            found, want = torch.load(path, weights_only=safe), case.make(torch)
            lines = differences(torch, found, want, case.close)
            if case.run is not None:
                lines += differences(torch, case.run(torch, found), case.run(torch, want), True)
        except Exception as error:  # noqa: BLE001
            lines = [f"{type(error).__name__}: {str(error)[:300]}"]
        bad += bool(lines)
        for line in lines:
            print(f"{file}: {line}")
    print(f"{count} files, {bad} of them differ")
    return int(bad > 0)


def store_single(torch: Any) -> None:
    """Write the files of `pytorch_cases`, and those of kinds that are refused or need a class."""
    singles, folder = importlib.import_module("pytorch_cases"), STORED.parent
    for name, case in singles.CASES.items():
        torch.save(case(torch), folder / f"{name}.pt")
    for name in singles.LEGACY:
        file = folder / f"{name}_legacy.pt"
        torch.save(singles.CASES[name](torch), file, _use_new_zipfile_serialization=False)
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), torch.nn.ReLU())
    torch.nn.init.ones_(module[0].weight)
    torch.nn.init.zeros_(module[0].bias)
    others = {
        "module": module,
        "sparse": torch.ones(2).to_sparse(),
        "float8": torch.ones(2).to(torch.float8_e4m3fn),
        "quantised": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
    }
    for name, value in others.items():
        torch.save(value, folder / f"{name}.pt")


def store(torch: Any, cases: Any) -> int:
    """Write PyTorch's files into the archive that the tests read, and the single ones."""
    store_single(torch)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for file, name, legacy in names(cases, True):
            data = written(torch, cases[name], legacy)
            entry = tarfile.TarInfo(file)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    STORED.write_bytes(gzip.compress(stream.getvalue(), 9, mtime=0))
    print(f"{STORED.name}: {STORED.stat().st_size} bytes")
    return 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=("write", "compare", "store"))
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--flambeau", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch = importlib.import_module("flambeau" if options.flambeau else "torch")
    sys.path.insert(0, str(TESTS))
    cases = importlib.import_module("cases").CASES
    if options.what == "store":
        return store(torch, cases)
    if options.folder is None:
        parser.error("expected a folder")
    if options.what == "write":
        return write(torch, cases, options.folder, not options.flambeau)
    return compare(torch, cases, options.folder, options.flambeau)


if __name__ == "__main__":
    raise SystemExit(main())
