"""Stores: keys and bytes that the processes of a job share, under PyTorch's names.

Owns signatures, defaults and times; what a store does is csrc/distributed's. Invariant: a store
written in Python, a subclass of `Store`, can stand wherever one of these can. Must not know of
tensors and process groups.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from flambeau._C import _distributed as _core

DistError = _core.DistError
DistBackendError = _core.DistBackendError
DistNetworkError = _core.DistNetworkError
DistStoreError = _core.DistStoreError
QueueEmptyError = _core.QueueEmptyError

__all__ = [
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "HashStore",
    "PrefixStore",
    "QueueEmptyError",
    "Store",
    "TCPStore",
]

_DEFAULT_TIMEOUT = timedelta(seconds=300)
#: the environment variable whose value the processes of a job share, and nobody else knows
SECRET = "FLAMBEAU_STORE_SECRET"  # noqa: S105


def milliseconds(op: str, timeout: Any) -> int:
    """A time as the core takes it, rounded up.

    Raises:
        TypeError: it is no timedelta.
    """
    if not isinstance(timeout, timedelta):
        raise TypeError(
            f"{op}: expected timeout to be a datetime.timedelta, got {type(timeout).__name__}"
        )
    return -(-timeout // timedelta(milliseconds=1))


class Store:
    """What processes share: keys, each with bytes. The base of all stores.

    A subclass in Python defines `set`, `get`, `add`, `check`, `wait`, `compare_set`, `delete_key`
    and `num_keys`; the others follow. Times are `datetime.timedelta`.

    Raises:
        DistStoreError: keys were not there in time (`get`, `wait`, `multi_get`), or the value of a
            key is no number (`add`).
        DistNetworkError: the server is gone.
    """

    _timeout = _DEFAULT_TIMEOUT

    def _of_kind(self, op: str) -> Any:
        """The store in C++ that does the work."""
        core = getattr(self, "_core", None)
        if core is None:
            raise NotImplementedError(f"Store.{op}: {type(self).__name__} does not define it")
        return core

    def set(self, key: str, value: str | bytes) -> None:
        """Give the key a value."""
        self._of_kind("set").set(key, value)

    def get(self, key: str) -> bytes:
        """The key's value; wait for the key."""
        found: bytes = self._of_kind("get").get(key)
        return found

    def add(self, key: str, amount: int) -> int:
        """Add to the number under the key, 0 at first, and return the sum."""
        return int(self._of_kind("add").add(key, amount))

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all the keys are there."""
        return bool(self._of_kind("check").check(keys))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait for all the keys, at most `timeout` or the store's own time."""
        core = self._of_kind("wait")
        core.wait(keys, core.timeout if timeout is None else milliseconds("wait", timeout))

    def compare_set(
        self, key: str, expected_value: str | bytes, desired_value: str | bytes
    ) -> bytes:
        """Set the key where its value is the expected one; "" also expects that it is missing.

        Returns:
            The value that the key has now; the expected one where it is missing.
        """
        found: bytes = self._of_kind("compare_set").compare_set(key, expected_value, desired_value)
        return found

    def delete_key(self, key: str) -> bool:
        """Remove the key; whether it was there."""
        return bool(self._of_kind("delete_key").delete_key(key))

    def num_keys(self) -> int:
        """Number of keys; a TCPStore with a `world_size` counts its workers under one of them."""
        return int(self._of_kind("num_keys").num_keys())

    def list_keys(self) -> list[str]:
        """The keys, in no order."""
        return list(self._of_kind("list_keys").list_keys())

    def append(self, key: str, value: str | bytes) -> None:
        """Put bytes behind the key's value."""
        self._of_kind("append").append(key, value)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The keys' values; wait for all."""
        if getattr(self, "_core", None) is None:
            return [self.get(key) for key in keys]
        return list(self._of_kind("multi_get").multi_get(keys))

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Give each key its value."""
        if getattr(self, "_core", None) is not None:
            self._of_kind("multi_set").multi_set(keys, values)
            return
        if len(keys) != len(values):
            raise DistStoreError("multiSet keys and values vectors must be of same size")
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Put a value at the end of the key's queue."""
        self._of_kind("queue_push").queue_push(key, value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value of the key's queue; wait for one, or raise QueueEmptyError."""
        found: bytes = self._of_kind("queue_pop").queue_pop(key, block)
        return found

    def queue_len(self, key: str) -> int:
        """Number of values in the key's queue."""
        return int(self._of_kind("queue_len").queue_len(key))

    def set_timeout(self, timeout: timedelta) -> None:
        """Choose how long `get` and `wait` wait."""
        time = milliseconds("set_timeout", timeout)
        core = getattr(self, "_core", None)
        if core is None:
            self._timeout = timeout
        else:
            core.set_timeout(time)

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait."""
        core = getattr(self, "_core", None)
        return self._timeout if core is None else timedelta(milliseconds=core.timeout)

    def has_extended_api(self) -> bool:
        """Whether `append`, `multi_get` and `multi_set` are the store's own."""
        return getattr(self, "_core", None) is not None

    def clone(self) -> Store:
        """Another store of the same keys, for another thread: a TCPStore connects once more."""
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__)
        if getattr(self, "_core", None) is not None:
            copy._core = self._core.clone()  # type: ignore[attr-defined]
        return copy

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Wait until `world_size` processes have come here with this key."""
        if self.add(f"{key}/count", 1) == world_size:
            self.set(f"{key}/all", "")
        self.wait([f"{key}/all"], self.timeout if timeout is None else timeout)


class HashStore(Store):
    """A store of one process, which its threads share.

    >>> store = torch.distributed.HashStore()
    >>> store.set("first", "one")
    >>> store.get("first"), store.add("count", 2), store.check(["second"])
    (b'one', 2, False)
    >>> store.wait(["second"], datetime.timedelta(milliseconds=5))
    Traceback (most recent call last):
    torch.distributed.DistStoreError: wait timeout after 5ms, keys: second
    """

    def __init__(self) -> None:
        self._core = _core.hash_store(milliseconds("HashStore", _DEFAULT_TIMEOUT))


class FileStore(Store):
    """A store in a file that all processes can open.

    Args:
        file_name: a file that does not exist yet, in a folder that does. What an earlier job left
            there would be taken for this one's.
        world_size: how many processes open it: the last to close it removes it. -1 leaves it.
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self.path = os.fspath(file_name)
        time = milliseconds("FileStore", _DEFAULT_TIMEOUT)
        self._core = _core.file_store(self.path, world_size, time)


class TCPStore(Store):
    """A store that one process serves and the others connect to.

    Without a secret the server can be reached from its own machine alone. Where the environment
    variable FLAMBEAU_STORE_SECRET is set, or `secret` is given, it listens to other machines too,
    and both sides prove that they know it; what they say then is not encrypted.

    Args:
        host_name: name or address of the server.
        port: its port; 0 lets the server find one.
        world_size: number of processes, where it is known.
        is_master: whether this process serves.
        timeout: how long to wait for the server, for workers and for keys.
        wait_for_workers: the server waits until `world_size` processes have connected.
        multi_tenant: a server that is there already is used.
        master_listen_fd: descriptor of a socket that listens, for the server.
        use_libuv: accepted and without effect in PyTorch's face: there is one kind of server.
        secret: what the processes share; None takes the environment's.

    Raises:
        DistNetworkError: the server cannot be reached or made, or the secrets differ.

    >>> server = torch.distributed.TCPStore("localhost", 0, is_master=True)
    >>> client = torch.distributed.TCPStore("localhost", server.port)
    >>> client.set("key", "value")
    >>> server.get("key")
    b'value'
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = _DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
        *,
        secret: str | bytes | None = None,
    ) -> None:
        self.host = host_name
        self._core = _core.tcp_store(
            host_name,
            port,
            -1 if world_size is None else world_size,
            is_master,
            wait_for_workers,
            milliseconds("TCPStore", timeout),
            multi_tenant,
            -1 if master_listen_fd is None else master_listen_fd,
            os.environ.get(SECRET, "") if secret is None else secret,
        )

    @property
    def port(self) -> int:
        """Port of the server."""
        return int(self._core.port or 0)

    def __repr__(self) -> str:
        serves = ", server" if self._core.has_server else ""
        return f"TCPStore({self.host}:{self.port}{serves})"


class PrefixStore(Store):
    """A store whose keys lie in another one, behind a prefix.

    Args:
        prefix: put before each key, with "/" between.
        store: where the keys are.

    >>> store = torch.distributed.HashStore()
    >>> torch.distributed.PrefixStore("model", store).set("step", "3")
    >>> store.get("model/step")
    b'3'
    """

    def __init__(self, prefix: str, store: Store) -> None:
        if not isinstance(store, Store):
            raise TypeError(f"PrefixStore: expected a Store, got {type(store).__name__}")
        self.prefix, self.underlying_store = prefix, store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        store = self.underlying_store
        while isinstance(store, PrefixStore):
            store = store.underlying_store
        return store

    def _key(self, key: str) -> str:
        return f"{self.prefix}/{key}"

    def _keys(self, keys: Sequence[str]) -> list[str]:
        return [self._key(key) for key in keys]

    def set(self, key: str, value: str | bytes) -> None:
        self.underlying_store.set(self._key(key), value)

    def get(self, key: str) -> bytes:
        return self.underlying_store.get(self._key(key))

    def add(self, key: str, amount: int) -> int:
        return self.underlying_store.add(self._key(key), amount)

    def check(self, keys: Sequence[str]) -> bool:
        return self.underlying_store.check(self._keys(keys))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        if timeout is None:
            self.underlying_store.wait(self._keys(keys))
        else:
            self.underlying_store.wait(self._keys(keys), timeout)

    def compare_set(
        self, key: str, expected_value: str | bytes, desired_value: str | bytes
    ) -> bytes:
        return self.underlying_store.compare_set(self._key(key), expected_value, desired_value)

    def delete_key(self, key: str) -> bool:
        return self.underlying_store.delete_key(self._key(key))

    def num_keys(self) -> int:
        """Number of keys of the store below, those of other prefixes too."""
        return self.underlying_store.num_keys()

    def list_keys(self) -> list[str]:
        own = self._key("")
        return [k[len(own) :] for k in self.underlying_store.list_keys() if k.startswith(own)]

    def append(self, key: str, value: str | bytes) -> None:
        self.underlying_store.append(self._key(key), value)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return self.underlying_store.multi_get(self._keys(keys))

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        self.underlying_store.multi_set(self._keys(keys), values)

    def queue_push(self, key: str, value: str | bytes) -> None:
        self.underlying_store.queue_push(self._key(key), value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self.underlying_store.queue_pop(self._key(key), block)

    def queue_len(self, key: str) -> int:
        return self.underlying_store.queue_len(self._key(key))

    def set_timeout(self, timeout: timedelta) -> None:
        self.underlying_store.set_timeout(timeout)

    @property
    def timeout(self) -> timedelta:
        return self.underlying_store.timeout

    def has_extended_api(self) -> bool:
        return self.underlying_store.has_extended_api()

    def clone(self) -> Store:
        return PrefixStore(self.prefix, self.underlying_store.clone())
