"""Long lists of text and numbers that worker processes read without copying them.

Owns the packed form: elements in memory that processes share, made once, read only. A process that
is forked shares a Python list only until it reads it: each read writes a reference count, and the
page is copied. Invariant: a packed list gives equal elements; a worker that changes it changes a
list of its own from then on, as it would have changed its copy.
"""

from __future__ import annotations

import hashlib
import marshal
import mmap
import operator
import os
from array import array
from collections.abc import Iterator
from itertools import chain
from multiprocessing import reduction
from typing import Any, SupportsIndex

#: lists that are shorter are not worth the time it takes to pack them
MIN_LENGTH = 1 << 16
_ATOMS = frozenset((str, bytes, int, float, complex, bool, type(None)))
_CHUNK = 8  # elements that are packed, and read, together
_VERSION = 4  # of marshal, whose short forms save a fifth


def can_be_packed(value: list[Any]) -> bool:
    """Whether a list holds text, numbers and tuples of them alone, none of which can change."""
    types = set(map(type, value))
    if tuple in types:
        inner = value if types == {tuple} else (each for each in value if type(each) is tuple)
        types = (types - {tuple}) | set(map(type, chain.from_iterable(inner)))
    return types <= _ATOMS


class _Storage:
    """The packed elements of a list.

    Args:
        descriptor: memory without a name.
        size: bytes in it.
        offsets: where each chunk begins, and the end.
        length: elements.
    """

    def __init__(self, descriptor: int, size: int, offsets: array[int], length: int) -> None:
        self._descriptor, self._size = descriptor, size
        self.offsets, self.length = offsets, length
        self.memory = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)

    @classmethod
    def of(cls, items: list[Any]) -> _Storage:
        offsets = array("Q", [0])
        descriptor = os.memfd_create("flambeau-list", os.MFD_CLOEXEC)
        try:
            with open(descriptor, "wb", closefd=False) as file:
                for start in range(0, len(items), _CHUNK):
                    data = marshal.dumps(items[start : start + _CHUNK], _VERSION)
                    offsets.append(offsets[-1] + len(data))
                    file.write(data)
            return cls(descriptor, offsets[-1], offsets, len(items))
        except BaseException:
            os.close(descriptor)
            raise

    def chunk(self, number: int) -> list[Any]:
        return marshal.loads(self.memory[self.offsets[number] : self.offsets[number + 1]])

    def __reduce__(self) -> Any:
        carried = reduction.DupFd(self._descriptor)
        return _unpacked, (carried, self._size, self.offsets, self.length)

    def __del__(self) -> None:
        os.close(self._descriptor)


def _unpacked(carried: Any, *rest: Any) -> _Storage:
    return _Storage(carried.detach(), *rest)


class SharedList(list[Any]):
    """A list whose elements lie packed in shared memory until it is changed.

    The base class's own elements are empty until then: what reads a list by Python's protocols sees
    all, and all of the library's does.
    """

    __slots__ = ("_at", "_near", "_storage")
    __hash__ = None

    def __init__(self, storage: _Storage) -> None:
        self._storage: _Storage | None = storage
        self._at, self._near = -1, list[Any]()  # the chunk that was read last

    def __len__(self) -> int:
        return super().__len__() if self._storage is None else self._storage.length

    def __getitem__(self, index: Any) -> Any:
        storage = self._storage
        if storage is None:
            return super().__getitem__(index)
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(storage.length))]
        i = operator.index(index)
        if i < 0:
            i += storage.length
        if not 0 <= i < storage.length:
            raise IndexError("list index out of range")
        number = i // _CHUNK
        if number != self._at:
            self._near, self._at = storage.chunk(number), number
        return self._near[i % _CHUNK]

    def __iter__(self) -> Iterator[Any]:
        storage = self._storage
        if storage is None:
            return super().__iter__()
        return chain.from_iterable(map(storage.chunk, range(len(storage.offsets) - 1)))

    def __reversed__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self) - 1, -1, -1))

    def __contains__(self, value: object) -> bool:
        return any(each is value or each == value for each in self)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if self._storage is None:
            return list, (list(self),)
        return SharedList, (self._storage,)

    def copy(self) -> list[Any]:
        return list(self)

    def count(self, value: Any) -> int:
        return sum(each is value or each == value for each in self)

    def index(self, value: Any, start: SupportsIndex = 0, stop: SupportsIndex = 1 << 62) -> int:
        for i in range(*slice(start, stop).indices(len(self))):
            if self[i] == value:
                return i
        raise ValueError(f"{value!r} is not in list")

    def _unpack(self) -> None:
        """Become a list of this process's own, which can be changed."""
        storage, self._storage = self._storage, None
        if storage is not None:
            for number in range(len(storage.offsets) - 1):
                super().extend(storage.chunk(number))


def _first_unpacked(name: str) -> Any:
    ordinary = getattr(list, name)

    def method(self: SharedList, *args: Any, **kwargs: Any) -> Any:
        self._unpack()
        return ordinary(self, *args, **kwargs)

    method.__name__, method.__doc__ = name, ordinary.__doc__
    return method


for _name in (
    "__add__ __mul__ __rmul__ __iadd__ __imul__ __setitem__ __delitem__ __eq__ __ne__ __lt__ __le__"
    " __gt__ __ge__ __repr__ append clear extend insert pop remove reverse sort"
).split():
    setattr(SharedList, _name, _first_unpacked(_name))


class SharedLists:
    """The packed lists of one loader, kept from pass to pass as long as they hold the same."""

    def __init__(self) -> None:
        self._packed: dict[int, tuple[_Mark, _Storage]] = {}

    def of(self, dataset: Any) -> list[tuple[Any, str, SharedList]]:
        """For each long list of a dataset: whose attribute it is, its name, and it packed.

        A dataset that is such a list itself comes with an empty name.
        """
        if not hasattr(os, "memfd_create"):
            return []
        packed: dict[int, tuple[_Mark, _Storage]] = {}
        shared = []
        for owner, name, items in _long_lists(dataset, set()):
            known = packed.get(id(items)) or self._packed.get(id(items))
            if known is None or not known[0].is_of(items):
                if not can_be_packed(items):
                    continue
                known = _Mark(items), _Storage.of(items)
            packed[id(items)] = known
            shared.append((owner, name, SharedList(known[1])))
        self._packed = packed
        return shared


class _Mark:
    """Tells whether a list still holds the same elements, none of which can change.

    It refers to the list alone: what refers to the elements would write to all of them when it
    goes, in the midst of a pass.
    """

    def __init__(self, items: list[Any]) -> None:
        self._items = items
        self._ids, self._hash = _digest_of_ids(items), hash(tuple(items))

    def is_of(self, items: list[Any]) -> bool:
        # An element that was freed may have left its place to another one of the same hash only.
        return (
            items is self._items
            and _digest_of_ids(items) == self._ids
            and hash(tuple(items)) == self._hash
        )


def _digest_of_ids(items: list[Any]) -> bytes:
    return hashlib.blake2b(array("Q", map(id, items)), digest_size=16).digest()


def _is_long(value: Any) -> bool:
    return type(value) is list and len(value) >= MIN_LENGTH


def _long_lists(dataset: Any, seen: set[int]) -> Iterator[tuple[Any, str, list[Any]]]:
    """Long lists that a dataset is or holds, or those that it is made of."""
    if _is_long(dataset) and not seen:
        yield dataset, "", dataset
    if id(dataset) in seen:
        return
    seen.add(id(dataset))
    for name, each in list(getattr(dataset, "__dict__", {}).items()):
        if _is_long(each):
            yield dataset, name, each
        elif name == "dataset":
            yield from _long_lists(each, seen)
        elif name == "datasets" and isinstance(each, list | tuple):
            for inner in each:
                yield from _long_lists(inner, seen)
