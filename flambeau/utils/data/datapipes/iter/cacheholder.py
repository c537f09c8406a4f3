"""Caches in memory and on disk.

Owns the files that say that somebody is at work on an entry (`NAME.promise.ID`), and those that
list the files made of an entry (`NAME.torchdata_list`). Invariant: a file of the cache is whole; an
entry is made by one process at a time, and the others wait for it.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from .._connections import connected_pipes
from .._decorator import functional_datapipe
from .._late import Late
from ..datapipe import IterDataPipe
from ..utils.common import _check_unpickable_fn
from .saving import check_hash_type, write_whole

__all__ = [
    "EndOnDiskCacheHolderIterDataPipe",
    "InMemoryCacheHolderIterDataPipe",
    "OnDiskCacheHolderIterDataPipe",
]

_POLL_SECONDS = 0.01
hashlib: Any = Late("hashlib")


@functional_datapipe("in_memory_cache")
class InMemoryCacheHolderIterDataPipe(IterDataPipe[Any]):
    """Keeps the elements of the first whole pass for later ones (functional name:
    `in_memory_cache`).

    Args:
        source_dp: source.
        size: megabytes that are kept, by `sys.getsizeof`; what is more is read again.

    Example:
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> seen = []
        >>> pipe = IterableWrapper(range(3)).map(lambda x: seen.append(x) or x).in_memory_cache()
        >>> list(pipe), list(pipe), seen
        ([0, 1, 2], [0, 1, 2], [0, 1, 2])
    """

    def __init__(self, source_dp: Any, size: int | None = None) -> None:
        self.source_dp = source_dp
        self.size = None if size is None else size * 1024 * 1024
        self.cache: deque[Any] | None = None
        self.idx = 0

    #: when the pass began whose elements are all kept: what the sources drew then is of each pass
    _filled_at: int | None = None

    def __iter__(self) -> Iterator[Any]:
        if self.cache:
            if self.idx:
                for i, data in enumerate(self.source_dp):
                    if i == self.idx:
                        break
                    yield data
            yield from self.cache
            return
        cache: deque[Any] = deque()
        held, dropped, began = 0, 0, time.monotonic_ns()
        for data in self.source_dp:
            cache.append(data)
            if self.size is not None:
                held += sys.getsizeof(data)
                while held > self.size and cache:
                    held -= sys.getsizeof(cache.popleft())
                    dropped += 1
            yield data
        self.cache, self.idx = cache, dropped
        self._filled_at = None if dropped else began

    def __len__(self) -> int:
        try:
            return len(self.source_dp)
        except TypeError:
            if self.cache is None:
                raise TypeError(
                    f"{type(self).__name__} instance doesn't have valid length until the cache is "
                    "loaded."
                ) from None
            return self.idx + len(self.cache)


def _list_name(path: str) -> str:
    return path + ".torchdata_list"


def _has_hash(path: str, hash_dict: dict[str, str], hash_type: str) -> bool:
    if path not in hash_dict:
        return False
    with open(path, "rb") as file:
        found: str = hashlib.file_digest(file, hash_type).hexdigest()
    return found == hash_dict[path]


class _CacheRun:
    """A pass over a cache.

    Attributes:
        cached: entries that are there, or are being made by another process.
        promised: entries that this pass has promised to make.
        current: the entry that the pipes between are at work on.
    """

    def __init__(self) -> None:
        self.cached: list[str] = []
        self.promised: set[str] = set()
        self.current = ""


@functional_datapipe("on_disk_cache")
class OnDiskCacheHolderIterDataPipe(IterDataPipe[Any]):
    """Begins a part of a graph whose results are kept in files (functional name:
    `on_disk_cache`).

    What is between it and `end_caching` runs for entries without a file alone, and ends in (path,
    content). What belongs to one element must come before the next is asked for: no batches,
    shuffles or prefetching. An entry may become several files.

    Args:
        source_datapipe: source.
        filepath_fn: function of an element: the path of its file; the element itself by default.
        hash_dict: path → hash; a file with another is made again, and what is made is checked.
        hash_type: "sha256" or "md5".
        extra_check_fn: function of a path: whether the file is good.

    Raises:
        ValueError: another `hash_type`.
        RuntimeError: it is iterated without `end_caching`.

    Example:
        >>> import os, tempfile
        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> made = []
        >>> def content(name):
        ...     made.append(name)
        ...     return name, [name.encode()]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pipe = IterableWrapper(["a", "b"]).on_disk_cache(lambda x: os.path.join(folder, x))
        ...     pipe = pipe.map(content).end_caching(same_filepath_fn=True)
        ...     names = [os.path.basename(path) for path in pipe]
        ...     names == [os.path.basename(path) for path in pipe], names, made
        (True, ['a', 'b'], ['a', 'b'])
    """

    _run: _CacheRun

    def __init__(
        self,
        source_datapipe: Any,
        filepath_fn: Callable[[Any], str] | None = None,
        hash_dict: dict[str, str] | None = None,
        hash_type: str = "sha256",
        extra_check_fn: Callable[[str], bool] | None = None,
    ) -> None:
        for function in (filepath_fn, extra_check_fn):
            if function is not None:
                _check_unpickable_fn(function)
        if hash_dict is not None:
            check_hash_type(hash_type)
        self.source_datapipe = source_datapipe
        self.filepath_fn = filepath_fn
        self.hash_dict = hash_dict
        self.hash_type = hash_type
        self.extra_check_fn = extra_check_fn
        self._uuid = os.urandom(16).hex()
        self._end_caching_flag = False

    def __iter__(self) -> Iterator[Any]:
        if not self._end_caching_flag:
            raise RuntimeError("Please call `end_caching()` before iteration.")
        run = self._run = _CacheRun()
        for data in self.source_datapipe:
            path = data if self.filepath_fn is None else self.filepath_fn(data)
            if not isinstance(path, str):
                raise TypeError(
                    f"on_disk_cache: expected filepath_fn to return one path, got {path!r}"
                )
            if self._is_there(path) or not self._promise(path):
                run.cached.append(path)
            elif self._is_there(path):  # another process has just made it
                self._release(path)
                run.cached.append(path)
            else:
                run.promised.add(path)
                run.current = path
                yield data

    def __add__(self, other: Any) -> Any:
        raise RuntimeError("`OnDiskCacheHolder` doesn't support add operation")

    def _is_there(self, path: str) -> bool:
        if os.path.exists(_list_name(path)):
            return True
        if not os.path.exists(path):
            return False
        if self.hash_dict is not None and not _has_hash(path, self.hash_dict, self.hash_type):
            return False
        return self.extra_check_fn is None or bool(self.extra_check_fn(path))

    def _promise_name(self, path: str) -> str:
        return f"{path}.promise.{self._uuid}"

    def _promise(self, path: str) -> bool:
        """Say that this process makes an entry; False if another has said so."""
        name = self._promise_name(path)
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        try:
            os.close(os.open(name, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def _release(self, path: str) -> None:
        if os.path.exists(self._promise_name(path)):
            os.unlink(self._promise_name(path))


class _CachedFiles(IterDataPipe[str]):
    """The paths of a cache in the order of the source; what another process makes comes last."""

    def __init__(self, todo: Any, holder: OnDiskCacheHolderIterDataPipe, timeout: float) -> None:
        self.todo = todo
        self.holder = holder
        self.timeout = timeout

    def set_timeout(self, timeout: float) -> None:
        """Seconds to wait for an entry that another process makes."""
        self.timeout = timeout

    def __iter__(self) -> Iterator[str]:
        holder = self.holder
        made: list[str] = []
        entry = ""
        try:
            for path in self.todo:
                current = holder._run.current
                if current != entry:
                    self._finish(entry, made)
                    entry, made = current, []
                    yield from self._ready()
                made.append(path)
                yield path
            self._finish(entry, made)
        finally:
            for promised in tuple(holder._run.promised):
                holder._release(promised)
            holder._run.promised.clear()
        for path in holder._run.cached:
            self._wait(path)
            yield from _files_of(path)

    def _ready(self) -> Iterator[str]:
        """The files of entries before the present one, but of those that others are making: to wait
        for them with a promise of one's own could be to wait for ever."""
        holder = self.holder
        seen, holder._run.cached = holder._run.cached, []
        for path in seen:
            if os.path.exists(holder._promise_name(path)):
                holder._run.cached.append(path)
            else:
                yield from _files_of(path)

    def _finish(self, entry: str, made: list[str]) -> None:
        """All files of an entry are there: note which, and let the others go on."""
        if not entry:
            return
        if entry in made and len(made) > 1:
            raise RuntimeError(
                f"end_caching: expected one file of {entry}, or several of other names, got {made}"
            )
        if made != [entry]:
            write_whole(_list_name(entry), "".join(f"{path}\n" for path in made), "w")
        self.holder._release(entry)
        self.holder._run.promised.discard(entry)

    def _wait(self, path: str) -> None:
        promise = self.holder._promise_name(path)
        deadline = time.monotonic() + self.timeout
        while os.path.exists(promise):
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"OnDiskCache Exception: {path} expected to be written by different process, "
                    f"but file is not ready in {self.timeout} seconds."
                )
            time.sleep(_POLL_SECONDS)


def _files_of(path: str) -> list[str]:
    """The files of an entry that is in the cache."""
    if not os.path.exists(_list_name(path)):
        return [path]
    with open(_list_name(path), encoding="utf-8") as file:
        return file.read().splitlines()


def _whole(stream: Any, empty: Any) -> Any:
    """The content of a stream, which is closed; content itself stays."""
    if isinstance(stream, str | bytes | bytearray):
        return stream
    content = empty.join(stream)
    close = getattr(stream, "close", None)
    if close is not None:
        close()
    return content


def _read_bytes(stream: Any) -> Any:
    return _whole(stream, b"")


def _read_str(stream: Any) -> Any:
    return _whole(stream, "")


def _nearest_holder(pipe: Any) -> Any:
    """The cache that a graph is in: the first found going back from its end."""
    level, seen = [pipe], {id(pipe)}
    while level:
        for each in level:
            if isinstance(each, OnDiskCacheHolderIterDataPipe):
                return each
        level = [f for each in level for f in connected_pipes(each) if id(f) not in seen]
        seen.update(map(id, level))
    return None


@functional_datapipe("end_caching")
class EndOnDiskCacheHolderIterDataPipe(IterDataPipe[Any]):
    """Ends a part of a graph whose results are kept in files (functional name: `end_caching`).

    Args:
        datapipe: source of (path, stream or content).
        mode: "wb" for bytes, "wt" or "t" for text.
        filepath_fn: function of the first column: the path to write.
        same_filepath_fn: use that of `on_disk_cache`.
        skip_read: the content is no stream.
        timeout: seconds to wait for an entry that another process makes.

    Returns:
        A pipe of paths in the order of the source; what another process makes comes last.

    Raises:
        ValueError: two functions of paths.
        RuntimeError: there is no `on_disk_cache` before it, or it has been ended.

    Example:
        See `on_disk_cache`.

        >>> from flambeau.utils.data.datapipes.iter import IterableWrapper
        >>> IterableWrapper([]).end_caching()
        Traceback (most recent call last):
        ...
        RuntimeError: Expected `OnDiskCacheHolder` existing in pipeline when `end_caching` is...
    """

    def __new__(
        cls,
        datapipe: Any,
        mode: str = "wb",
        filepath_fn: Callable[[Any], str] | None = None,
        *,
        same_filepath_fn: bool = False,
        skip_read: bool = False,
        timeout: float = 300,
    ) -> Any:
        if filepath_fn is not None and same_filepath_fn:
            raise ValueError("`filepath_fn` is mutually exclusive with `same_filepath_fn`")
        holder = _nearest_holder(datapipe)
        if holder is None:
            raise RuntimeError(
                "Expected `OnDiskCacheHolder` existing in pipeline when `end_caching` is invoked"
            )
        if holder._end_caching_flag:
            raise RuntimeError("`end_caching` can only be invoked once per `OnDiskCacheHolder`")
        holder._end_caching_flag = True
        if same_filepath_fn:
            filepath_fn = holder.filepath_fn
        todo = datapipe
        if not skip_read:
            todo = todo.map(_read_str if "t" in mode else _read_bytes, input_col=1)
        if filepath_fn is not None:
            todo = todo.map(filepath_fn, input_col=0)
        if holder.hash_dict is not None:
            todo = todo.check_hash(holder.hash_dict, holder.hash_type)
        return _CachedFiles(todo.save_to_disk(mode=mode), holder, timeout)
