"""What was compiled, on disk, shared by processes that may be killed at any moment.

A file is written in a folder of its writer's (`making-...`), which the writer holds locked, and
renamed when it is complete; a digest of its name and contents stands at its end and is checked
before the file is loaded. So neither half a file nor one of another name is ever loaded, and two
writers of one file do no harm. A folder or a file that another user may write to is not trusted:
what is loaded runs as this user. The files used longest ago go when the cache passes its bound.
Must not know what the files hold.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import IO, TypeVar

T = TypeVar("T")
BOUND = 1 << 30  # bytes that the cache may take, unless FLAMBEAU_CACHE_SIZE says otherwise
_MAGIC = b"flambeau library, sha256 "
_DIGEST = 32  # bytes of it
_YOUNG = 60.0  # seconds in which a writer has locked its folder
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class NotTrusted(OSError):
    """Another user may write to the place."""


def wanted_folder() -> Path:
    """FLAMBEAU_CACHE, else flambeau in TORCHINDUCTOR_CACHE_DIR or the user's folder of caches."""
    given = os.environ.get("FLAMBEAU_CACHE")
    if given:
        return Path(given)
    caches = os.environ.get("TORCHINDUCTOR_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "flambeau"


def bound() -> int:
    """How many bytes the cache may take.

    Raises:
        ValueError: FLAMBEAU_CACHE_SIZE is no size.
    """
    given = os.environ.get("FLAMBEAU_CACHE_SIZE", "").strip().upper()
    if not given:
        return BOUND
    number, unit = (given, "") if given[-1:].isdigit() else (given[:-1], given[-1])
    if not number.isdecimal() or unit not in _UNITS:
        raise ValueError(
            "FLAMBEAU_CACHE_SIZE: expected a number of bytes, or one with K, M or G, got "
            f"{os.environ['FLAMBEAU_CACHE_SIZE']!r}"
        )
    return int(number) * _UNITS[unit]


def folder() -> Path:
    """The cache folder; one of this process's own, with a warning, where it cannot be used."""
    wanted: Path | None = None
    try:
        wanted = wanted_folder()
        wanted.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check(os.stat(wanted), wanted)
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        return _private(str(wanted or "~/.cache/flambeau"), _reason(error))
    return wanted


def _check(found: os.stat_result, path: Path) -> None:
    if found.st_uid not in (os.getuid(), 0):
        raise NotTrusted(f"{path} belongs to user {found.st_uid}, not to {os.getuid()}")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise NotTrusted(f"other users may write to {path}; chmod go-w lets it be used")


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


@cache
def _private(instead_of: str, reason: str) -> Path:
    """A folder that goes with the process."""
    warnings.warn(
        f"compile: the cache {instead_of} cannot be used ({reason}); a temporary folder holds what "
        "this process compiles; FLAMBEAU_CACHE names another cache",
        RuntimeWarning,
        stacklevel=2,
    )
    made = Path(tempfile.mkdtemp(prefix="flambeau-"))
    atexit.register(_remove, made, os.getpid())
    return made


def _remove(made: Path, owner: int) -> None:
    if os.getpid() == owner:  # not a child that was forked
        shutil.rmtree(made, ignore_errors=True)


def fetch(name: str, make: Callable[[Path], Path], use: Callable[[Path], T]) -> T:
    """What `use` gives for the file of that name, which `make` writes where the cache has it not.

    Args:
        name: of the file; it stands for all that the contents depend on.
        make: writes the contents in a folder, and gives the path of it.
        use: opens a file that is right.
    """
    home = folder()
    for _ in range(3):  # another process may drop the file before it is opened
        path = home / name
        if _valid(path):
            _touch(path)
        else:
            path = _make(home, name, make)
        try:
            return use(path)
        except OSError:
            if path.exists():
                raise
    raise OSError(f"compile: {home / name} is removed again and again while it is being loaded")


def find(name: str, use: Callable[[Path], T]) -> T | None:
    """What `use` gives for the file of that name; None where the cache has it not."""
    path = folder() / name
    if not _valid(path):
        return None
    _touch(path)
    try:
        return use(path)
    except OSError:
        return None


def read(name: str) -> bytes | None:
    """The contents of the file of that name; None where the cache has it not."""
    return find(name, lambda path: path.read_bytes()[: -len(_MAGIC) - _DIGEST])


def write(name: str, data: bytes) -> None:
    """Puts a file of that name into the cache."""

    def make(work: Path) -> Path:
        path = work / "data"
        path.write_bytes(data)
        return path

    _make(folder(), name, make)


def _valid(path: Path) -> bool:
    """The file is there, this user's, and as it was written under that name."""
    try:
        # What is no file is not waited for: nobody may ever write to a pipe that stands there.
        with open(path, "rb", opener=lambda p, how: os.open(p, how | os.O_NONBLOCK)) as f:
            found = os.fstat(f.fileno())
            _check(found, path)
            size = found.st_size - len(_MAGIC) - _DIGEST
            if not stat.S_ISREG(found.st_mode) or size <= 0:
                return False
            f.seek(size)
            seal = f.read()
            f.seek(0)
            return seal.startswith(_MAGIC) and seal.endswith(_digest(path.name, f, size))
    except OSError:
        return False


def _digest(name: str, f: IO[bytes], size: int) -> bytes:
    """Of a name and of the next bytes of a file, which is not held in memory as a whole."""
    h = hashlib.sha256(name.encode() + b"\0")
    while size > 0 and (part := f.read(min(size, 1 << 20))):
        h.update(part)
        size -= len(part)
    return h.digest()


def _touch(path: Path) -> None:
    try:
        os.utime(path)
    except OSError:
        pass  # of a cache that can only be read; the time only says what may go first


def _make(home: Path, name: str, make: Callable[[Path], Path]) -> Path:
    try:
        path = _write(home, name, make)
    except OSError as error:  # no permission, a full disk
        home = _private(str(home), _reason(error))
        path = _write(home, name, make)
    _keep_small(home, path)
    return path


def _write(home: Path, name: str, make: Callable[[Path], Path]) -> Path:
    work = Path(tempfile.mkdtemp(dir=home, prefix="making-"))
    lock = os.open(work, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = make(work)
        with open(made, "r+b") as f:
            digest = _digest(name, f, made.stat().st_size)
            f.seek(0, os.SEEK_END)
            f.write(_MAGIC + digest)
        os.chmod(made, 0o700)
        os.replace(made, home / name)
    finally:
        os.close(lock)
        shutil.rmtree(work, ignore_errors=True)
    return home / name


#: by folder and bound, how many bytes this process may write before it looks at the folder again
_room: dict[tuple[Path, int], int] = {}
_SHARE = 16  # of the bound: what others may have written meanwhile


def _keep_small(home: Path, path: Path) -> None:
    """Holds the cache to its bound. The folder may have tens of thousands of files: it is looked at
    when this process first writes, and after it wrote what there was room for."""
    limit = bound()
    room = _room.get((home, limit), 0) - path.stat().st_size
    if room < 0:
        _sweep(home)
        room = min(limit - _trim(home, path, limit), limit // _SHARE)
    _room[home, limit] = room


def _sweep(home: Path) -> None:
    """Removes what killed writers left; a writer that lives holds the lock of its folder."""
    for work in home.glob("making-*"):
        try:
            if time.time() - work.stat().st_mtime < _YOUNG:
                continue
            lock = os.open(work, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(work, ignore_errors=True)
        except OSError:
            pass
        finally:
            os.close(lock)


def _trim(home: Path, keep: Path, limit: int) -> int:
    """The bytes of the cache, after the files used longest ago went where it was above its bound;
    then there is room for as much as is written until the next look."""
    files = []
    for p in (*home.glob("*.so"), *home.glob("*.plan")):
        try:
            found = p.stat()
        except OSError:
            continue
        files.append((found.st_mtime, found.st_size, p))
    total = sum(size for _, size, _ in files)
    if total <= limit:
        return total
    for _, size, p in sorted(files):
        if total <= limit - limit // _SHARE:
            break
        if p != keep:
            p.unlink(missing_ok=True)
            total -= size
    return total
