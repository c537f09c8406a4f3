"""From C++ text to a loaded library, by way of a cache on disk.

A library's name is the digest of all that went into it: text, headers, compiler, flags, processor.
It is written under another name and renamed when complete, so that a killed writer leaves no half a
library, and two writers of one library do no harm. The oldest go when the cache passes its bound.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from .. import _C

_HERE = Path(__file__).resolve().parent
_SOURCES = _HERE.parents[1] / "csrc"
BOUND = 1 << 30  # bytes that the cache may take
_HEADERS = (
    "scalar_math.h",
    "scalar_exp.h",
    "scalar_complex.h",
    "special.h",
    "isa_types.h",
    "isa.h",
    "vector_math.h",
)


class CompilerError(RuntimeError):
    """The C++ compiler is missing, or refused generated code."""


def cache_folder() -> Path:
    """FLAMBEAU_CACHE, else ~/.cache/flambeau."""
    given = os.environ.get("FLAMBEAU_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "flambeau"


@cache
def compiler() -> str:
    """Path of the C++ compiler."""
    for name in (os.environ.get("CXX"), "g++", "clang++", "c++"):
        found = name and shutil.which(name)
        if found:
            return found
    raise CompilerError(
        "compile: expected a C++ compiler, found neither g++ nor clang++; install one (Debian: "
        "apt-get install g++), or use backend='aot_eager', which needs none"
    )


@cache
def flags() -> tuple[str, ...]:
    """All flags but the files."""
    return (
        "-std=c++20", "-O3", "-march=native", "-mprefer-vector-width=512", "-fno-math-errno",
        "-fno-trapping-math", "-ffp-contract=fast", "-fopenmp", "-shared", "-fPIC",
        "-fvisibility=hidden", "-nostdinc++", "-w", f"-I{_HERE / 'include'}", f"-I{_SOURCES}",
        "-DFB_ISA=native", "-DFB_HAVE_ISA_portable=1",
    )  # fmt: skip


@cache
def _fixed_digest() -> bytes:
    """What does not depend on the text: compiler, flags, headers, processor."""
    h = hashlib.sha256()
    version = subprocess.run([compiler(), "--version"], capture_output=True, check=True).stdout
    h.update(version + "\0".join(flags()).encode())
    for name in _HEADERS:
        h.update((_SOURCES / "kernels" / name).read_bytes())
    for path in sorted((_HERE / "include").iterdir()):
        h.update(path.read_bytes())
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    h.update(next((x for x in lines if x.startswith("flags")), "").encode())
    return h.digest()


def load(text: str) -> ctypes.CDLL:
    """The library of a translation unit; compiled unless the cache has it.

    Raises:
        CompilerError: no compiler, or it fails.
    """
    name = hashlib.sha256(_fixed_digest() + text.encode()).hexdigest()[:40]
    folder = cache_folder()
    path = folder / f"{name}.so"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _compile(text, path)
        _trim(folder)
    os.utime(path)
    _core()
    return ctypes.CDLL(str(path))


@cache
def _core() -> ctypes.CDLL:
    """The extension, its vector functions made visible to the libraries that call them."""
    return ctypes.CDLL(_C.__file__, mode=os.RTLD_GLOBAL | os.RTLD_NOLOAD)


def _compile(text: str, path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="making-") as work:
        source, made = Path(work) / "kernels.cpp", Path(work) / "kernels.so"
        source.write_text(text)
        command = [compiler(), *flags(), str(source), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompilerError(f"compile: {compiler()} failed:\n{done.stderr[-4000:]}\n{text}")
        os.replace(made, path)


def _trim(folder: Path) -> None:
    """Removes the libraries that were used longest ago until the cache is within its bound."""
    files = []
    for p in folder.glob("*.so"):
        try:
            files.append((p.stat().st_mtime, p.stat().st_size, p))
        except FileNotFoundError:
            continue
    total = sum(size for _, size, _ in files)
    for _, size, p in sorted(files):
        if total <= BOUND:
            return
        p.unlink(missing_ok=True)
        total -= size
