"""From C++ text to a loaded library, by way of the cache on disk (`cache`).

A library's name is the digest of all that went into it: text, headers, compiler, flags, processor.
Owns how the compiler is found and called, and which headers generated code sees.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any

from .. import _C
from . import cache as disk

_HERE = Path(__file__).resolve().parent
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_PLACE = re.compile(r"^// (.+):(\d+) in .*\n", re.MULTILINE)
ENTRY = "kernels/scalar_math.h"  # the header that generated code includes


class CompilerError(RuntimeError):
    """The C++ compiler is missing, or refused generated code."""


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
def sources() -> Path:
    """The folder of the kernels' headers: in a checkout csrc, else part of the package.

    Raises:
        CompilerError: neither has them.
    """
    places = (_HERE.parents[1] / "csrc", _HERE / "csrc")
    for place in places:
        if (place / ENTRY).is_file():
            return place
    raise CompilerError(
        f"compile: expected the header {ENTRY} in {' or '.join(map(str, places))}, found it in "
        "neither; the installation is not complete"
    )


def headers() -> list[Path]:
    """All headers of ours that generated code sees, found by following what they include."""
    found: dict[str, Path] = {}
    todo = [ENTRY]
    while todo:
        name = todo.pop()
        path = sources() / name
        if name not in found and path.is_file():
            found[name] = path
            todo += _INCLUDE.findall(path.read_text())
    own = [p for p in (_HERE / "include").iterdir() if p.is_file()]
    return sorted([*found.values(), *own])


@cache
def flags() -> tuple[str, ...]:
    """All flags but the files."""
    warnings: tuple[str, ...] = ()
    if os.environ.get("FLAMBEAU_VERIFY"):  # functions of nests have one signature, used or not
        warnings = ("-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror")
    # Without -fwrapv GCC 12 stores nothing in some loops with a falling index, at -O1 and -O2.
    return (
        "-std=c++20", "-O3", f"-march={_level()}", "-mprefer-vector-width=512", "-fno-math-errno",
        "-fno-trapping-math", "-fwrapv", "-ffp-contract=fast", "-fopenmp", "-shared", "-fPIC",
        "-fvisibility=hidden", "-nostdinc++", *warnings, f"-I{_HERE / 'include'}",
        f"-I{sources()}", "-DFB_ISA=native", "-DFB_HAVE_ISA_portable=1",
    )  # fmt: skip


def _level() -> str:
    """What code is made for: this processor, or the level that the kernels are asked to keep to.

    Compiled code then rounds as eager does, which has fused multiply-adds and vector functions of
    its own at each level.
    """
    isa = str(_C._build_info()["isa"]) if os.environ.get("FLAMBEAU_ISA") else "portable"
    return "native" if isa == "portable" else f"x86-64-{isa}"


@cache
def _fixed_digest() -> bytes:
    """What does not depend on the text: compiler, flags, headers, processor."""
    h = hashlib.sha256()
    h.update(_identity(compiler()) + "\0".join(flags()).encode())
    for path in headers():
        h.update(path.read_bytes())
    h.update(processor().encode())
    return h.digest()


@cache
def processor() -> str:
    """Tells processors apart that code may be made for."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    keys = ("flags", "model name")
    return "\n".join(next((x for x in lines if x.startswith(k)), "") for k in keys)


def _identity(path: str) -> bytes:
    """Tells one compiler from another without running it: the file that the name leads to."""
    real = os.path.realpath(path)
    found = os.stat(real)
    return f"{real}\0{found.st_size}\0{found.st_mtime_ns}\0".encode()


def load(text: str) -> _C._Library:
    """The library of a translation unit; compiled unless the cache has it.

    Raises:
        CompilerError: no compiler, or it fails.
    """
    _core()
    name = _file(code_of(text))
    try:
        made = disk.fetch(name, lambda work: _compile(text, work), _C._Library)
    except OSError as error:
        raise CompilerError(f"compile: no library could be written and loaded: {error}") from error
    assert isinstance(made, _C._Library)
    return made


def code_of(text: str) -> str:
    """The digest of a translation unit; where it comes from in the user's files does not matter."""
    return hashlib.sha256(_PLACE.sub("", text).encode()).hexdigest()


def _file(code: str) -> str:
    """The name of the library of a text whose digest that is."""
    return hashlib.sha256(_fixed_digest() + code.encode()).hexdigest()[:40] + ".so"


def find(code: str) -> _C._Library | None:
    """The library of a text whose digest that is, if the cache has it."""
    _core()
    return disk.find(_file(code), _C._Library)


def read(code: str) -> bytes:
    """The bytes of a library of the cache.

    Raises:
        OSError: the cache has it no more.
    """
    found = disk.read(_file(code))
    if found is None:
        raise FileNotFoundError("compile: the library is gone from the cache")
    return found


def opened(library: Any) -> _C._Library:
    """A library of which there are the bytes alone.

    Raises:
        OSError: it cannot be loaded here.
    """
    _core()
    return _C._Library.of(library)


class Pending:
    """A library that is being made by a thread of its own, which mostly waits for the compiler."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._made: _C._Library | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="flambeau compiler", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._made = load(self._text)
        except BaseException as error:
            self._error = error

    def result(self) -> _C._Library:
        """The library, when it is there; raises what `load` raises."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._made is not None
        return self._made


def begin(text: str) -> Pending:
    """`load` in the background."""
    return Pending(text)


def library() -> Path:
    """The core, which the extension is linked to and lies beside."""
    return Path(_C.__file__).parent / "lib" / "libflambeau.so"


@cache
def _core() -> ctypes.CDLL:
    """The core, its vector functions made visible to the libraries that call them."""
    return ctypes.CDLL(str(library()), mode=os.RTLD_GLOBAL | os.RTLD_NOLOAD)


def _compile(text: str, work: Path) -> Path:
    """The library, made in a folder, which holds what the compiler leaves while it runs."""
    source, made = work / "kernels.cpp", work / "kernels.so"
    source.write_text(text)
    command = [compiler(), *flags(), str(source), "-o", str(made)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "TMPDIR": str(work)}
        )
    except OSError as error:
        raise CompilerError(f"compile: {compiler()} cannot be run: {error.strerror}") from error
    if done.returncode:
        if os.strerror(errno.ENOSPC) in done.stderr:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise CompilerError(
            f"compile: {compiler()} failed with status {done.returncode}{_kept(text)}:\n"
            f"{done.stderr[-4000:]}"
        )
    return made


def _kept(text: str) -> str:
    """Says where the text that the compiler refused can be read."""
    try:
        with tempfile.NamedTemporaryFile("w", prefix="flambeau-", suffix=".cpp", delete=False) as f:
            f.write(text)
    except OSError:
        return ""
    return f" on {f.name}"
