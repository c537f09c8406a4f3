"""Which engine joins the ranks of a group, and how they find each other.

Owns the choice: ranks that can share memory do, others are joined over TCP. Invariant: all
ranks of a group see the same texts on the store, and so choose the same. Must not know what is
exchanged.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from datetime import timedelta
from typing import Any

from flambeau._C import _distributed as _core

from ._store import SECRET, PrefixStore, milliseconds

#: the environment variable that chooses for all groups: "tcp" (or "gloo", the same) or "shm"
CHOICE = "FLAMBEAU_DISTRIBUTED_ENGINE"
INTERFACE = "GLOO_SOCKET_IFNAME"
_MOST_RANKS = 256
_ASK_ADDRESS = 0x8915  # SIOCGIFADDR


def _wanted(backend: str) -> str:
    """What this process insists on: "tcp", "shm", or nothing."""
    chosen = os.environ.get(CHOICE, "").lower()
    if chosen not in ("", "tcp", "gloo", "shm"):
        raise ValueError(f"{CHOICE}: expected 'tcp' or 'shm', got {os.environ[CHOICE]!r}")
    if chosen == "gloo":
        chosen = "tcp"
    return "shm" if "shm" in backend else chosen


def address_of_interface(name: str) -> str:
    """The IPv4 address of a network interface of this machine.

    Raises:
        ValueError: there is no such interface, or it has no address.
    """
    known = [each for _, each in socket.if_nameindex()]
    if name not in known:
        raise ValueError(f"{INTERFACE}: expected one of {', '.join(known)}, got {name!r}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            found = fcntl.ioctl(asked.fileno(), _ASK_ADDRESS, struct.pack("256s", name.encode()))
        except OSError as error:
            raise ValueError(f"{INTERFACE}: interface {name!r} has no IPv4 address") from error
    return socket.inet_ntoa(found[20:24])


def _own_address(store: Any) -> str:
    """The address by which other machines reach this one.

    That of the chosen interface; else the one from which the store's server is reached.
    """
    if name := os.environ.get(INTERFACE):
        return address_of_interface(name)
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    server = getattr(store, "host", None) or os.environ.get("MASTER_ADDR") or socket.gethostname()
    try:
        for family, kind, _, _, there in socket.getaddrinfo(server, 1, type=socket.SOCK_DGRAM):
            with socket.socket(family, kind) as asked:  # connecting sends nothing
                asked.connect(there)
                return str(asked.getsockname()[0])
    except OSError:
        pass
    return "127.0.0.1"


def _texts(store: Any, key: str, size: int, group: str, timeout: timedelta) -> list[str]:
    """What all ranks have put under the key.

    Raises:
        DistBackendError: names the ranks that did not come in time.
    """
    keys = [f"{key} {rank}" for rank in range(size)]
    try:
        store.wait(keys, timeout)
    except _core.DistStoreError as error:
        missing = [r for r, each in enumerate(keys) if not store.check([each])]
        text = "; ".join(f"rank {r} did not come: it has not joined the group" for r in missing)
        raise _core.DistBackendError(f"making group '{group}': {text or error}: {error}") from None
    return [bytes(value).decode() for value in store.multi_get(keys)]


def join(
    backend: str, rank: int, size: int, name: str, store: Any, timeout: timedelta
) -> tuple[Any, str]:
    """Join a group, together with its other ranks.

    Args:
        backend: name that the user gave: "shm" is shared memory alone.
        rank, size: this process's number in the group, and of how many.
        name: of the group.
        store: of the group alone.
        timeout: how long to wait for the others.

    Returns:
        The group in C++, and the name of its engine.

    Raises:
        ValueError: too many ranks, or the environment asks for what there is not.
        DistBackendError: the others did not come, or cannot be joined.
    """
    time = milliseconds("process group", timeout)
    wanted = _wanted(backend)
    if size == 1:
        core = _core.make_group(0, 1, name, "")
        core.begin([], time)
        return core, "shm"
    if size > _MOST_RANKS:
        raise ValueError(f"process group: expected at most {_MOST_RANKS} ranks, got {size}")
    store.set(f"machine {rank}", f"{wanted} {_core.machine()}")
    texts = [text.split(" ", 1) for text in _texts(store, "machine", size, name, timeout)]
    if _decide(texts, name) == "tcp":
        return _over_tcp(rank, size, name, store, timeout), "tcp"
    address = ""
    if rank:
        address = store.get("shared memory").decode()
    core = _core.make_group(rank, size, name, address)
    if not rank:
        store.set("shared memory", core.address)
    core.begin([], time)
    return core, "shm"


def _decide(texts: list[list[str]], name: str) -> str:
    """The engine, by what each rank wants and on which machine it is; the same on all ranks."""
    wanted = {want for want, _ in texts} - {""}
    other = next((r for r, text in enumerate(texts) if text[1] != texts[0][1]), None)
    if len(wanted) > 1:
        by_rank = ", ".join(f"rank {r} {want!r}" for r, (want, _) in enumerate(texts))
        raise ValueError(f"group '{name}': expected one engine on all ranks, got {by_rank}")
    if "shm" in wanted and other is not None:
        raise _core.DistBackendError(
            f"group '{name}': rank {other} and rank 0 are on different machines, in different "
            "containers or of different users; the engine 'shm' joins those of one machine alone"
        )
    return "tcp" if "tcp" in wanted or other is not None else "shm"


def _over_tcp(rank: int, size: int, name: str, store: Any, timeout: timedelta) -> Any:
    secret = os.environ.get(SECRET, "")
    core = _core.make_tcp_group(rank, size, name, _own_address(store), secret)
    store.set(f"address {rank}", core.address)
    addresses = _texts(store, "address", size, name, timeout)
    core.begin(addresses, milliseconds("process group", timeout))
    return core
