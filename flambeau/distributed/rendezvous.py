"""How the processes of a job find each other: from an address to a store, a rank and a number.

Owns the schemes env://, tcp:// and file://, and those that users register. Invariant: each handler
yields (store, rank, world_size). Must not know of process groups.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlparse

from ._store import FileStore, PrefixStore, Store, TCPStore
from .constants import default_pg_timeout

__all__ = ["register_rendezvous_handler", "rendezvous"]

_Found = tuple[Store, int, int]


def _missing(scheme: str, what: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {scheme} rendezvous: {what}")


def _query(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlparse(url).query))


def _number(scheme: str, given: dict[str, str], name: str) -> int:
    if name not in given:
        raise _missing(scheme, f"{name.replace('_', ' ')} parameter missing")
    return int(given[name])


def _file(url: str, timeout: timedelta) -> Iterator[_Found]:
    path = urlparse(url).path
    if not path:
        raise _missing("file://", "path missing")
    given = _query(url)
    rank = _number("file://", given, "rank")
    world_size = _number("file://", given, "world_size")
    store = FileStore(path, world_size)
    store.set_timeout(timeout)
    yield store, rank, world_size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _tcp(url: str, timeout: timedelta) -> Iterator[_Found]:
    parts, given = urlparse(url), _query(url)
    if parts.port is None:
        raise _missing("tcp://", "port number missing")
    if not parts.hostname:
        raise _missing("tcp://", "host name missing")
    rank = _number("tcp://", given, "rank")
    world_size = _number("tcp://", given, "world_size")
    store = TCPStore(parts.hostname, parts.port, world_size, rank == 0, timeout)
    yield store, rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using tcp:// method")


def _env(url: str, timeout: timedelta) -> Iterator[_Found]:
    given = _query(url)

    def value(name: str) -> str:
        if name not in os.environ:
            raise _missing("env://", f"environment variable {name} expected, but not set")
        return os.environ[name]

    rank = int(given["rank"]) if "rank" in given else int(value("RANK"))
    world_size = int(given["world_size"]) if "world_size" in given else int(value("WORLD_SIZE"))
    host, port = value("MASTER_ADDR"), int(value("MASTER_PORT"))
    # A launcher that serves the store itself says so: a rank that dies then silences nobody.
    elsewhere = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    serves = rank == 0 and not elsewhere
    store: Store = TCPStore(host, port, world_size, serves, timeout, multi_tenant=True)
    if elsewhere:  # one store for all attempts
        store = PrefixStore(f"attempt/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    yield store, rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


_Handler = Callable[..., Iterator[Any]]
_HANDLERS: dict[str, _Handler] = {"file": _file, "tcp": _tcp, "env": _env}


def register_rendezvous_handler(scheme: str, handler: _Handler) -> None:
    """Let `rendezvous` and `init_process_group` know addresses of another scheme.

    Args:
        scheme: what stands before "://".
        handler: given the address, and `timeout=`, it yields (store, rank, world_size).

    Raises:
        RuntimeError: the scheme has a handler.
    """
    if scheme in _HANDLERS:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _HANDLERS[scheme] = handler


def rendezvous(
    url: str, rank: int = -1, world_size: int = -1, *, timeout: timedelta = default_pg_timeout
) -> Iterator[_Found]:
    """Meet the other processes of the job at an address.

    Args:
        url: env://, tcp://host:port, file:///path or a registered scheme.
        rank, world_size: this process's number and the number of all; -1 where the address or the
            environment tells.
        timeout: how long to wait for the others.

    Returns:
        An iterator over (store, rank, world_size).

    Raises:
        ValueError: the address lacks something.
        RuntimeError: the scheme is not known.
    """
    if not isinstance(url, (str, bytes)):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    text = url.decode() if isinstance(url, bytes) else url
    added = {"rank": rank, "world_size": world_size}
    pairs = [f"{name}={value}" for name, value in added.items() if value >= 0]
    if pairs:
        text += ("&" if urlparse(text).query else "?") + "&".join(pairs)
    scheme = urlparse(text).scheme
    if scheme not in _HANDLERS:
        raise RuntimeError(f"No rendezvous handler for {scheme}://")
    return _HANDLERS[scheme](text, timeout=timeout)
