"""Launchers of one run on several machines: who they are, and what becomes of an attempt.

Owns the agreement, which they keep on the store that one of them serves: the number of each, how
many processes each starts, and word of the first failure. Invariant: all of them begin the same
attempts, and none goes before all have ended. Must not know processes.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from flambeau._C import _distributed as _core

from ._store import SECRET, PrefixStore, TCPStore

_GLANCE = 0.1  # seconds between looks at the store
_BEAT = 1.0  # between signs of life
_SILENCE = 30.0  # without one of them
_PARTING = 10.0  # for others to take note of the end
_HURRY = 2.0  # the same where the run has not begun


class OtherNodeFailed(Exception):
    """Another machine's launcher has failed, or was stopped."""


@dataclass
class Meeting:
    """Where launchers meet.

    Attributes:
        count: how many there are.
        rank: this one's number; None where they are numbered as they come.
        host, port: of the store.
        serves: whether this one serves it; None where the first on that machine does.
        timeout: how long to wait for the others.
    """

    count: int
    rank: int | None
    host: str
    port: int
    serves: bool | None
    timeout: timedelta = timedelta(seconds=600)


def _of_this_machine(host: str) -> bool:
    for family, kind, proto, _, address in socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM):
        with socket.socket(family, kind, proto) as tried:
            try:
                tried.bind(address)
                return True
            except OSError:
                continue
    return False


def _is_loopback(host: str) -> bool:
    found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    return all(str(a[4][0]).startswith("127.") or a[4][0] == "::1" for a in found)


class Nodes:
    """This launcher among all.

    Args:
        meeting: where and of how many.
        run_id: name of the run; several may meet on one store.
        processes: how many this one starts.
        max_restarts: how often it starts them again; all give the same.

    Raises:
        ValueError: numbers are taken twice, or launchers were told different things.
        DistNetworkError: the store cannot be reached or served.
        OtherNodeFailed: not all came in time.
    """

    def __init__(self, meeting: Meeting, run_id: str, processes: int, max_restarts: int) -> None:
        self.count, self.host = meeting.count, meeting.host
        self._timeout = meeting.timeout
        self._held = self._open(meeting)
        self.port = self._held.port
        self._store = PrefixStore(f"launch/{run_id}", self._held)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.rank = -1
        try:
            self.rank = self._number(meeting)
            self._store.set(f"size {self.rank}", f"{processes} {max_restarts}")
            self.sizes = self._all_sizes(max_restarts)
        except (ValueError, OtherNodeFailed):
            self.leave(_HURRY)  # so that others find out too, if the store is here
            raise

    def _open(self, meeting: Meeting) -> TCPStore:
        host, port = meeting.host, meeting.port
        local = _of_this_machine(host)
        serves = local if meeting.serves is None else meeting.serves
        if serves and not os.environ.get(SECRET) and not _is_loopback(host):
            raise ValueError(
                f"--nnodes: launchers on several machines prove to each other that they belong to "
                f"the run: set {SECRET} to the same text in the environment of each"
            )
        if serves:
            try:
                return TCPStore(host, port, None, True, self._timeout, wait_for_workers=False)
            except _core.DistNetworkError:
                if meeting.serves:
                    raise  # else another launcher of this machine was first
        return TCPStore(host, port, None, False, self._timeout)

    def _number(self, meeting: Meeting) -> int:
        rank = meeting.rank
        if rank is None:
            rank = self._store.add("came", 1) - 1
            if rank >= self.count:
                raise ValueError(f"--nnodes: the run has its {self.count} machines already")
        mine = uuid.uuid4().bytes.hex()
        if self._store.compare_set(f"node {rank}", "", mine).decode() != mine:
            raise ValueError(f"--node-rank: {rank} is the number of another machine of the run")
        return rank

    def _all_sizes(self, max_restarts: int) -> list[int]:
        self._wait([f"size {r}" for r in range(self.count)], "did not come")
        read = [self._store.get(f"size {r}").decode().split() for r in range(self.count)]
        for r, (_, restarts) in enumerate(read):
            if int(restarts) != max_restarts:
                raise ValueError(
                    f"--max-restarts: expected the same on all machines, got {max_restarts} on "
                    f"node {self.rank} and {restarts} on node {r}"
                )
        return [int(size) for size, _ in read]

    def _wait(self, keys: list[str], what: str) -> None:
        try:
            self._store.wait(keys, self._timeout)
        except _core.DistStoreError:
            missing = ", ".join(str(r) for r, k in enumerate(keys) if not self._store.check([k]))
            raise OtherNodeFailed(
                f"node {missing} {what} in {self._timeout.total_seconds():g} s"
            ) from None

    @property
    def first(self) -> int:
        """Rank of this node's first process."""
        return sum(self.sizes[: self.rank])

    def begin(self, attempt: int, failed: Callable[[str], None]) -> None:
        """All begin the attempt; `failed` is called, in a thread, when another node fails."""
        self._store.set(f"{attempt} begun {self.rank}", "")
        self._wait([f"{attempt} begun {r}" for r in range(self.count)], "did not begin again")
        self._stop.clear()
        self._thread = threading.Thread(target=self._watch, args=(attempt, failed), daemon=True)
        self._thread.start()

    def _watch(self, attempt: int, failed: Callable[[str], None]) -> None:
        try:
            store = PrefixStore(
                self._store.prefix, TCPStore(self.host, self.port, timeout=self._timeout)
            )
            seen = {r: (0, time.monotonic()) for r in range(self.count) if r != self.rank}
            beaten = 0.0
            while not self._stop.wait(_GLANCE):
                if store.check([f"{attempt} failed"]):
                    return failed(store.get(f"{attempt} failed").decode())
                now = time.monotonic()
                if now - beaten < _BEAT:
                    continue
                beaten = now
                store.add(f"beat {self.rank}", 1)
                for r, (count, since) in seen.items():
                    beats = store.add(f"beat {r}", 0)
                    if beats != count:
                        seen[r] = (beats, now)
                    elif now - since > _SILENCE and not store.check([f"{attempt} ended {r}"]):
                        return failed(f"node {r} has not answered for {_SILENCE:g} s")
        except _core.DistError as error:
            if not self._stop.is_set():
                failed(f"the store of the run, at {self.host}:{self.port}, is gone: {error}")

    def fail(self, attempt: int, why: str, again: bool = True) -> None:
        """Tell the others that this node's part of the attempt has failed."""
        word = ("again " if again else "never ") + f"node {self.rank} {why}"
        try:
            self._store.compare_set(f"{attempt} failed", "", word)
        except _core.DistError as error:
            sys.stderr.write(f"torchrun: the other machines cannot be told: {error}\n")

    def end(self, attempt: int) -> None:
        """This node's part of the attempt has ended well."""
        self._store.set(f"{attempt} ended {self.rank}", "")

    def all_ended(self, attempt: int) -> bool:
        """Whether everyone's part has."""
        return self._store.check([f"{attempt} ended {r}" for r in range(self.count)])

    def rest(self) -> None:
        """Watch no more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5)
            self._thread = None

    def leave(self, patience: float = _PARTING) -> None:
        """Go; the one that serves the store waits until all others have."""
        self.rest()
        try:
            self._store.set(f"left {self.rank}", "")
            if self._held._core.has_server:
                keys = [f"left {r}" for r in range(self.count)]
                self._store.wait(keys, timedelta(seconds=patience))
        except _core.DistError:
            pass


def restarts(word: str) -> tuple[bool, str]:
    """Whether all may start again after what another node has said, and what it said."""
    first, _, text = word.partition(" ")
    return (first != "never", text) if first in ("again", "never") else (False, word)
