"""Messages between a loading process and its worker processes, over one socket for each.

Owns framing, and what is known of a worker's end. Invariant: the loading side never blocks on one
worker, whatever state that is in (dead, stopped, in the middle of a message), and a worker sees its
socket end when the loading process is gone. No locks are shared, so a worker that is killed harms
nobody; sockets and the files here have no names, so nothing is left behind. The messages themselves
are Note [Protocol of loader workers].
"""

from __future__ import annotations

import array
import faulthandler
import os
import pickle
import select
import signal
import socket
import struct
import time
import traceback
from collections import deque
from typing import Any

from . import MP_STATUS_CHECK_INTERVAL

_HEADER = struct.Struct("<Q")
_CHUNK = 1 << 18
_FDS = socket.CMSG_SPACE(4 * array.array("i").itemsize)
_TRACE_SIGNAL = signal.SIGUSR2
_TRACE_SECONDS = 0.5
_READY = b"\n"  # in the trace file: the worker answers the signal


def _framed(message: Any) -> bytes:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _HEADER.pack(len(data)) + data


class WorkerEnd:
    """A worker's side: it waits, and sends whole messages.

    Args:
        sock: the worker's end of the pair.
        trace: descriptor that tracebacks are written to, or None.
    """

    def __init__(self, sock: socket.socket, trace: int | None) -> None:
        self._sock, self._parent = sock, os.getppid()
        sock.setblocking(True)
        self._trace = trace
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)

    def take_signals(self) -> None:
        """What a worker does with signals: the loading process is the one that is interrupted."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        if self._trace is not None:
            faulthandler.enable(self._trace)
            faulthandler.register(_TRACE_SIGNAL, self._trace, all_threads=False)
            os.write(self._trace, _READY)

    def note(self, error: BaseException) -> None:
        """Keep the traceback of what ends this process."""
        if self._trace is not None:
            os.write(self._trace, "".join(traceback.format_exception(error)).encode())

    def _read(self, size: int) -> bytes:
        parts = []
        while size:
            while not self._poll.poll(MP_STATUS_CHECK_INTERVAL * 1000):
                if os.getppid() != self._parent:
                    raise EOFError
            part = self._sock.recv(min(size, _CHUNK))
            if not part:
                raise EOFError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def receive(self) -> Any:
        """The next message; None when the loading process has ended the worker, or is gone."""
        try:
            (size,) = _HEADER.unpack(self._read(_HEADER.size))
            return pickle.loads(self._read(size))
        except (EOFError, ConnectionError):
            return None

    def send(self, message: Any, descriptors: list[int] = []) -> None:  # noqa: B006 (read only)
        """Send a message, and descriptors along with it.

        Raises:
            ConnectionError: nobody reads any more.
        """
        data = _framed(message)
        sent = 0
        if descriptors:
            rights = array.array("i", descriptors)
            sent = self._sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        if sent < len(data):
            self._sock.sendall(data[sent:] if sent else data)


class LoaderEnd:
    """The loading side of one worker: it never waits.

    Attributes:
        process: the worker.
        ended: the worker has closed its end, which only its death does.
        descriptors: those that came, in their order.
    """

    def __init__(self, worker_id: int) -> None:
        self.worker_id = worker_id
        self.sock, self.theirs = socket.socketpair()
        self.sock.setblocking(False)
        self.trace = os.memfd_create("flambeau-trace") if hasattr(os, "memfd_create") else None
        self.process: Any = None
        self.ended = False
        self.descriptors: deque[int] = deque()
        self._out: deque[memoryview] = deque()
        self._in = bytearray()

    def send(self, message: Any) -> None:
        """Send a message as far as the socket takes it; `flush` sends the rest."""
        self._out.append(memoryview(_framed(message)))
        self.flush()

    def flush(self) -> bool:
        """Send what waits; whether all is sent."""
        while self._out:
            try:
                sent = self.sock.send(self._out[0])
            except BlockingIOError:
                return False
            except OSError:
                self._out.clear()  # nobody will read it, as reading here shows
                return True
            if sent == len(self._out[0]):
                self._out.popleft()
            else:
                self._out[0] = self._out[0][sent:]
        return True

    def read(self) -> list[Any]:
        """All messages that have come whole."""
        while not self.ended:
            try:
                data, rights, *_ = self.sock.recvmsg(_CHUNK, _FDS)
            except BlockingIOError:
                break
            except OSError:
                data, rights = b"", []
            for *_, payload in rights:
                self.descriptors.extend(array.array("i", payload))
            self._in += data
            self.ended = not data
        messages, at = [], 0
        while len(self._in) - at >= _HEADER.size:
            (size,) = _HEADER.unpack_from(self._in, at)
            if len(self._in) - at - _HEADER.size < size:
                break
            at += _HEADER.size + size
            messages.append(pickle.loads(memoryview(self._in)[at - size : at]))
        del self._in[:at]
        return messages

    def close(self) -> None:
        """Close this side, which ends the worker once it is through with its work."""
        self.sock.close()
        self.theirs.close()
        for each in (*self.descriptors, self.trace):
            if each is not None:
                os.close(each)
        self.descriptors.clear()
        self.trace = None

    def is_dead(self) -> bool:
        """Whether the process has ended. Its messages that came whole were read before."""
        if self.ended:
            self.process.join(1.0)
        return not self.process.is_alive()

    def cause_of_death(self) -> str:
        """What the process ended of, with its traceback where it could leave one."""
        code = self.process.exitcode
        if code is not None and code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"signal {-code}"
            cause = f"killed by {name}"
            if -code == signal.SIGKILL:
                cause += ", as the kernel does where memory runs out"
        else:
            cause = f"exit code {code}"
        return f"worker {self.worker_id} (pid {self.process.pid}): {cause}{self._traceback()}"

    def is_stopped(self) -> bool:
        """Whether a signal has stopped the process; it hears no other than SIGKILL then."""
        return _state_of(self.process.pid) == "T"

    def what_it_does(self) -> str:
        """What the process does now: stopped, or where it is in the program."""
        pid = self.process.pid
        head = f"worker {self.worker_id} (pid {pid}): "
        if self.is_stopped():
            return head + "stopped by a signal"
        before = self._traceback()
        if self.trace is not None and os.pread(self.trace, 1, 0) == _READY:
            os.kill(pid, _TRACE_SIGNAL)
            deadline = time.monotonic() + _TRACE_SECONDS
            while (now := self._traceback()) == before and time.monotonic() < deadline:
                time.sleep(0.01)
            if now != before:
                return head + "at work" + now[len(before) :]
        return head + "at work"

    def _traceback(self) -> str:
        if self.trace is None:
            return ""
        size = os.fstat(self.trace).st_size
        text = os.pread(self.trace, size, 0).decode(errors="replace").strip()
        return f"\n{text}" if text else ""


def _state_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""
