"""Damaged files of scripts: `python -m tools.script_mutations --count 20000`.

Takes the scripts of tests/jit, changes lines of their programs or bytes of their files, and loads
what comes out. Each is refused with a RuntimeError, or loads: any other exception is a mistake, and
so is a death of the process.
"""

from __future__ import annotations

import argparse
import io
import random
import traceback
import types
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import flambeau as torch
from flambeau._serialization.archive import ArchiveWriter
from tests.jit import programs

WORDS = (
    "Tensor int core.add fn.x %1 'a' ( return lib.einsum core.getattr None 1.5 yield core.new with "
    "loop range -> : , ) torch.os __class__ 99999999999999999999 [] {}"
).split()


def originals() -> list[bytes]:
    """Files to damage."""
    out = []
    for case in programs.CASES:
        made = case if isinstance(case, types.FunctionType) else case()
        out.append(torch.jit.script(made).save_to_buffer())
    return out


def changed_text(text: str, rng: random.Random) -> str:
    """The text with up to three of its lines changed."""
    lines = text.split("\n")
    for _ in range(rng.randint(1, 3)):
        k = rng.randrange(len(lines))
        line = lines[k]
        at = rng.randrange(len(line) + 1)
        match rng.randrange(5):
            case 0:
                lines.pop(k)
            case 1:
                lines.insert(k, rng.choice(lines))
            case 2:
                lines[k] = line[:at] + rng.choice(WORDS) + line[at + rng.randint(0, 4) :]
            case 3:
                lines[k] = line[:at] + line[at + 1 :]
            case _:
                lines[k] = line[:at] + chr(rng.randrange(32, 127)) + line[at + 1 :]
        lines = lines or [""]
    return "\n".join(lines)


def replaced(file: bytes, entry: str, change: Callable[[bytes], bytes]) -> bytes:
    """The file with another content of an entry."""
    entries = zipfile.ZipFile(io.BytesIO(file))
    out = io.BytesIO()
    writer = ArchiveWriter(out)
    for name in entries.namelist():
        data = entries.read(name)
        writer.add(name, change(data) if name == entry else data)
    writer.close()
    return out.getvalue()


def with_text(file: bytes, rng: random.Random) -> bytes:
    """The file with another program."""
    return replaced(file, "code.txt", lambda data: changed_text(data.decode(), rng).encode())


def with_bytes(file: bytes, rng: random.Random) -> bytes:
    """The file with a few bytes changed, or cut off."""
    data = bytearray(file)
    if rng.random() < 0.2:
        return bytes(data[: rng.randrange(len(data))])
    for _ in range(rng.randint(1, 8)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def run(count: int, seed: int) -> tuple[int, int, list[str]]:
    """Files that loaded, files that were refused, and the mistakes."""
    rng = random.Random(seed)
    files = originals()
    loaded = refused = 0
    mistakes: list[str] = []
    for number in range(count):
        change: Any = with_text if rng.random() < 0.7 else with_bytes
        damaged = change(rng.choice(files), rng)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.jit.load(io.BytesIO(damaged))
            loaded += 1
        except RuntimeError:
            refused += 1
        except BaseException:
            mistakes.append(f"file {number} of seed {seed}:\n{traceback.format_exc()}")
    return loaded, refused, mistakes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    loaded, refused, mistakes = run(given.count, given.seed)
    for text in mistakes[:20]:
        print(text)
    print(f"{given.count} files: {refused} refused, {loaded} loaded, {len(mistakes)} mistakes")
    raise SystemExit(bool(mistakes))


if __name__ == "__main__":
    main()
