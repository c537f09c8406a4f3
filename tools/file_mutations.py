"""Damaged files of every kind: `python -m tools.file_mutations --count 100000 --seed 1`.

Stored files of PyTorch (zip and legacy, and their pickles inside of sound archives), safetensors
and files of our own are damaged: bytes changed, cut, doubled, spliced with those of another,
numbers set to large ones. Each must load, or end in an error that says so, without importing,
calling or allocating by the file's word. With `--sanitized` they go to the readers of csrc/files
alone, compiled with the address and undefined-behaviour sanitizers into `read_damaged.cpp`, in a
minute; the whole package is run under them by `scripts/asan.sh python -m tools.file_mutations`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import pickle
import random
import resource
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
import zipfile
from pathlib import Path
from typing import Any

import flambeau as fb
from flambeau import safetensors
from flambeau._serialization import archive

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "tests/serialization/pytorch_files/cases.tar.gz"
ALLOWED = (RuntimeError, ValueError, pickle.UnpicklingError)
LARGE = (0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)
SLACK = 100 << 20


def sources() -> list[tuple[str, bytes]]:
    """Names and bytes of sound files: "zip", "legacy", "pickle" (inside an archive), "flambeau",
    "safetensors"."""
    found = []
    with tarfile.open(STORED) as stored:
        for entry in stored:
            file = stored.extractfile(entry)
            data = file.read() if file is not None else b""
            found.append(("zip" if data[:2] == b"PK" else "legacy", data))
    tensors = {f"t{k}": fb.arange(k + 1, dtype=d) for k, d in enumerate((fb.int8, fb.float32))}
    for kind, value in (("a", tensors), ("b", [1, "x", (2.0, None), {"k": fb.ones(2, 3).t()}])):
        stream = io.BytesIO()
        fb.save(value, stream, format="flambeau")
        found.append(("flambeau", stream.getvalue()))
        if kind == "a":
            found.append(("safetensors", safetensors.save(tensors)))
    return found


def damaged(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Another file like this one."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if not out:
            break
        at, way = rng.randrange(len(out)), rng.randrange(8)
        size = rng.choice((1, 2, 4, 16, 100))
        if way <= 2:
            out[at] = rng.randrange(256)
        elif way == 3:
            out[at] ^= 1 << rng.randrange(8)
        elif way == 4:
            number = struct.pack("<Q", rng.choice(LARGE))[: rng.choice((1, 2, 4, 8))]
            out[at : at + len(number)] = number
        elif way == 5:
            del out[at : at + size]
        elif way == 6:
            out[at:at] = out[at : at + size]
        else:
            start = rng.randrange(max(len(other), 1))
            out[at : at + size] = other[start : start + size]
    return bytes(out if rng.random() > 0.05 else out[: rng.randrange(len(out) + 1)])


def with_pickle(data: bytes, changed: bytes) -> bytes:
    """The archive with another pickle, sound in all else."""
    stream = io.BytesIO()
    writer = archive.ArchiveWriter(stream)
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        for name in file.namelist():
            writer.add(name, changed if name.endswith("/data.pkl") else file.read(name))
    writer.close()
    return stream.getvalue()


def pickle_of(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return file.read(next(n for n in file.namelist() if n.endswith("/data.pkl")))


def one(files: list[tuple[str, bytes]], rng: random.Random) -> tuple[str, bytes]:
    """A damaged file and its kind."""
    kinds = sorted({kind for kind, _ in files})
    kind = rng.choice([*kinds, *(["zip", "legacy"] if len(kinds) > 1 else [])])
    data = rng.choice([d for k, d in files if k == kind])
    if kind == "zip" and rng.random() < 0.6:
        other = rng.choice([d for k, d in files if k == "zip"])
        return "pickle", with_pickle(data, damaged(pickle_of(data), pickle_of(other), rng))
    return kind, damaged(data, rng.choice(files)[1], rng)


def judged(kind: str, data: bytes) -> str:
    """What is wrong, "" when nothing is."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.monotonic()
    try:
        value: Any = safetensors.load(data) if kind == "safetensors" else fb.load(io.BytesIO(data))
    except ALLOWED as error:
        text = str(error)
        if not text.startswith(("load: ", "safetensors")):
            return f"an error without its place: {type(error).__name__}: {text[:200]}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    else:
        del value
    if (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 > 2 * len(data) + SLACK:
        return "it takes more memory than twice the file"
    return "it takes more than 10 s" if time.monotonic() - begun > 10 else ""


def sanitized(files: list[tuple[str, bytes]], count: int, seed: int) -> int:
    """Give damaged files to the readers of csrc/files under the sanitizers."""
    with tempfile.TemporaryDirectory() as folder:
        program, lib = f"{folder}/read_damaged", Path(fb.__file__).with_name("lib")
        built = [
            "g++", "-std=c++20", "-O1", "-g1", "-fopenmp", "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all", f"-I{ROOT}/csrc", f"-I{ROOT}/build/release",
            f"{ROOT}/tools/read_damaged.cpp", *map(str, (ROOT / "csrc/files").glob("*.cpp")),
            "-o", program, f"-L{lib}", "-lflambeau", f"-Wl,-rpath,{lib}",
        ]  # fmt: skip
        subprocess.run(built, check=True)
        limits = "allocator_may_return_null=1:max_allocation_size_mb=1024"
        env = {**os.environ, "ASAN_OPTIONS": limits, "UBSAN_OPTIONS": "print_stacktrace=1"}
        with subprocess.Popen([program], stdin=subprocess.PIPE, env=env) as reader:
            assert reader.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # it has found something, and ended
                for k in range(count):
                    kind, data = one(files, random.Random(f"{seed} {k}"))
                    mark = b"s" if kind == "safetensors" else b"z"
                    reader.stdin.write(struct.pack("<Qc", len(data), mark) + data)
                reader.stdin.close()
    print(f"{count} damaged files, seed {seed}: exit status {reader.returncode}")
    return int(reader.returncode != 0)


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--count", type=int, default=100_000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", help="a kind of file")
    p.add_argument("--sanitized", action="store_true", help="the readers in C++, instrumented")
    args = p.parse_args()
    warnings.simplefilter("ignore")
    files = [f for f in sources() if args.only in (None, f[0])]
    if args.sanitized:
        return sanitized(files, args.count, args.seed)
    failed, begun, kinds = 0, time.monotonic(), dict.fromkeys(("zip", "pickle", "legacy"), 0)
    for k in range(args.count):
        rng = random.Random(f"{args.seed} {k}")
        kind, data = one(files, rng)
        kinds[kind] = kinds.get(kind, 0) + 1
        why = judged(kind, data)
        if why:
            failed += 1
            print(f"file {k} of seed {args.seed} ({kind}, {len(data)} bytes): {why}", flush=True)
    took = time.monotonic() - begun
    told = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
    print(f"{args.count} damaged files in {took:.0f} s ({told}): {failed} mistakes")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
