"""Lists of dictionaries, arrays and other objects that processes read without copying them.

Owns the packed form: each element as bytes, in memory that forks and spawned processes share. A
process that reads an ordinary list writes a reference count to each object, so that its page is
copied. Invariant: an element that is read is a new object, so that no reader can change what
another one sees. Lists of text and numbers are packed by the loader itself: `shared_list`.
"""

from __future__ import annotations

import mmap
import operator
import os
import pickle
import sys
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing import context, reduction
from typing import Any, Generic, TypeVar, overload

__all__ = ["PackedList"]

_T = TypeVar("_T")
_BLOCK = 1 << 20  # bytes that are written at a time


class _Objects:
    """Any objects, as pickles."""

    def dump(self, item: Any) -> bytes:
        return pickle.dumps(item, pickle.HIGHEST_PROTOCOL)

    def load(self, data: bytes) -> Any:
        return pickle.loads(data)


class _Arrays:
    """Arrays of NumPy of one dtype and number of axes: the shape, and the data behind it."""

    def __init__(self, like: Any) -> None:
        self._dtype, self._axes = like.dtype, like.ndim

    def fits(self, item: Any) -> bool:
        return item.dtype == self._dtype and item.ndim == self._axes

    def dump(self, item: Any) -> bytes:
        return array("q", item.shape).tobytes() + item.tobytes()

    def load(self, data: bytes) -> Any:
        import numpy as np

        shape = array("q", data[: 8 * self._axes])
        flat = np.frombuffer(data, self._dtype, offset=8 * self._axes)
        return flat.reshape(tuple(shape)).copy()  # `data` is not to be written to


def _form_of(items: Sequence[Any]) -> _Objects | _Arrays:
    numpy = sys.modules.get("numpy")
    if numpy is not None and items and type(items[0]) is numpy.ndarray:
        arrays = _Arrays(items[0])
        if not items[0].dtype.hasobject and all(
            type(each) is numpy.ndarray and arrays.fits(each) for each in items
        ):
            return arrays
    return _Objects()


def _memory() -> int:
    """A descriptor of memory, or where there is none of a file without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("flambeau-packed", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class PackedList(Sequence[_T], Generic[_T]):
    """A list that worker processes share, for a dataset to hold: read only, and packed once.

    Reading an ordinary list of a million dictionaries makes each forked worker copy them all, page
    by page. Of this one nothing is copied, and spawned workers are sent a descriptor. What is read
    is a new object each time: a change to it does not change the list.

    Args:
        items: what to pack: anything that can be pickled. Arrays of one dtype and number of axes
            are kept as their data.

    Raises:
        TypeError: on an attempt to change it.
        Exception: what `pickle` raises for an element that cannot be pickled.

    Example:
        >>> from flambeau.utils.data import PackedList
        >>> rows = PackedList({"id": i, "boxes": [[i, i + 1]]} for i in range(1000))
        >>> len(rows), rows[-1]
        (1000, {'id': 999, 'boxes': [[999, 1000]]})
        >>> rows[0]["id"] = 5
        >>> rows[0]["id"], rows[1:3]
        (0, [{'id': 1, 'boxes': [[1, 2]]}, {'id': 2, 'boxes': [[2, 3]]}])
    """

    def __init__(self, items: Iterable[_T]) -> None:
        if not isinstance(items, list | tuple):
            items = list(items)
        form = _form_of(items)
        offsets = array("Q", [0])
        descriptor = _memory()
        try:
            with open(descriptor, "wb", _BLOCK, closefd=False) as file:
                for item in items:
                    data = form.dump(item)
                    offsets.append(offsets[-1] + len(data))
                    file.write(data)
            self._open(descriptor, form, offsets)
        except BaseException:
            os.close(descriptor)
            raise

    def _open(self, descriptor: int, form: Any, offsets: array[int]) -> None:
        # An empty file cannot be mapped.
        size = offsets[-1]
        self._bytes = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) if size else b""
        self._descriptor, self._form, self._offsets = descriptor, form, offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, index: int) -> _T: ...

    @overload
    def __getitem__(self, index: slice) -> list[_T]: ...

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._at(i) for i in range(*index.indices(len(self)))]
        i = operator.index(index)
        if i < 0:
            i += len(self)
        if not 0 <= i < len(self):
            raise IndexError(f"PackedList: index {index} is out of range of {len(self)} elements")
        return self._at(i)

    def _at(self, i: int) -> Any:
        return self._form.load(self._bytes[self._offsets[i] : self._offsets[i + 1]])

    def __iter__(self) -> Iterator[_T]:
        return map(self._at, range(len(self)))

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("PackedList: cannot be changed; pack a list that has the change")

    def __delitem__(self, index: Any) -> None:
        raise TypeError("PackedList: cannot be changed; pack a list that lacks the element")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PackedList({len(self)} elements, {len(self._bytes)} bytes)"

    def __copy__(self) -> PackedList[_T]:
        return self

    def __deepcopy__(self, memo: Any) -> PackedList[_T]:
        return self  # nothing in it can change

    def __reduce__(self) -> Any:
        if context.get_spawning_popen() is None:  # for a file, or another machine
            return PackedList, (list(self),)
        return _received, (reduction.DupFd(self._descriptor), self._form, self._offsets)

    def __del__(self) -> None:
        descriptor = self.__dict__.pop("_descriptor", None)
        if descriptor is not None:
            os.close(descriptor)


def _received(carried: Any, form: Any, offsets: array[int]) -> PackedList[Any]:
    made: PackedList[Any] = PackedList.__new__(PackedList)
    made._open(carried.detach(), form, offsets)
    return made
