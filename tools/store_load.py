"""Load on a TCPStore: damaged messages while clients go on, and very many clients.

    python -m tools.store_load --messages 100000 --clients 50 --many 2000 --seed 1

The server runs in this process. Every client counts, keeps keys and a queue of its own, and checks
what it is told, while others send messages that are cut off, too long or of random bytes. Then many
clients wait for one key at once: each must be answered when it comes. Under the address and thread
sanitizers the same is done by tests/distributed/store_fuzz.cpp (`make dist`).
"""

from __future__ import annotations

import argparse
import random
import resource
import socket
import struct
import sys
import threading
import time
from datetime import timedelta
from typing import Any

import flambeau.distributed as dist

_HELLO = b"FBSTORE1" + bytes(64)
_SERVER_HELLO, _PROOF = 41, 32
_ADD, _WAIT = 2, 4  # codes of csrc/distributed/wire.h
_CODES = 19
_TIME = timedelta(seconds=120)


def message(code: int, number: int, keys: list[bytes], values: list[bytes]) -> bytes:
    """A request as the wire has it."""
    body = struct.pack("<Bq", code, number)
    for texts in (keys, values):
        body += struct.pack("<I", len(texts))
        for text in texts:
            body += struct.pack("<I", len(text)) + text
    return struct.pack("<I", len(body)) + body


def damaged(rng: random.Random) -> bytes:
    """A request that in most cases is none."""
    keys = [b"fuzz %d" % rng.randrange(9) for _ in range(rng.randrange(4))]
    values = [rng.randbytes(rng.randrange(40)) for _ in range(rng.randrange(4))]
    number = rng.choice([0, 1, -1, 50, 2**63 - 1, -(2**63)])
    out = bytearray(message(rng.randrange(_CODES), number, keys, values))
    how = rng.randrange(6)
    if how == 0:
        del out[rng.randrange(len(out)) :]
    elif how == 1:
        out += rng.randbytes(30)
    elif how == 2:
        out[:4] = rng.randbytes(4)
    elif how == 3:
        for _ in range(rng.randrange(1, 5)):
            out[rng.randrange(4, len(out))] = rng.randrange(256)
    return bytes(out)


def _connected(port: int, hello: bytes = _HELLO) -> socket.socket:
    s = socket.create_connection(("127.0.0.1", port), timeout=60)
    s.sendall(hello)
    if hello == _HELLO:  # nothing may be sent before the greeting is over
        _receive(s, _SERVER_HELLO + _PROOF)
    return s


def _send_damaged(port: int, messages: int, rng: random.Random) -> None:
    open_: list[socket.socket] = []
    sent = 0
    while sent < messages:
        if len(open_) < 16:
            hello = _HELLO[: rng.randrange(72)] if rng.random() < 0.1 else _HELLO
            open_.append(_connected(port, hello))
            open_[-1].setblocking(False)
        at = rng.randrange(len(open_))
        try:
            for _ in range(rng.randrange(1, 6)):
                sent += 1
                open_[at].send(damaged(rng))
            if rng.random() < 0.5 and not open_[at].recv(4096):
                raise ConnectionError
        except BlockingIOError:
            pass
        except OSError:
            open_.pop(at).close()
    for s in open_:
        s.close()


class _Client:
    """One that goes on meanwhile, in a thread of its own."""

    def __init__(self, port: int, name: str, ended: threading.Event) -> None:
        self.port, self.name, self.ended = port, name, ended
        self.rounds, self.wrong = 0, ""
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            store = dist.TCPStore("localhost", self.port, timeout=_TIME)
            while not self.ended.is_set() or self.rounds < 3:
                text = str(self.rounds)
                self.rounds += 1
                store.add("clients count", 1)
                store.set(self.name, text)
                store.queue_push(self.name, text)
                found = store.get(self.name), store.queue_pop(self.name)
                if found != (text.encode(),) * 2:
                    raise AssertionError(f"{self.name}: expected {text}, got {found}")
                time.sleep(0.002)
        except Exception as error:
            self.wrong = f"{self.name}: {type(error).__name__}: {error}"


def while_clients_go_on(messages: int, clients: int, seed: int) -> list[str]:
    """Send damaged messages; what is wrong with what clients were told."""
    store = dist.TCPStore("localhost", 0, is_master=True, timeout=_TIME)
    ended = threading.Event()
    going = [_Client(store.port, f"client {i}", ended) for i in range(clients)]
    try:
        _send_damaged(store.port, messages, random.Random(seed))
    finally:
        ended.set()
        for client in going:
            client.thread.join()
    rounds = sum(client.rounds for client in going)
    wrong = [client.wrong for client in going if client.wrong]
    if not wrong and store.add("clients count", 0) != rounds:
        wrong.append(f"the count is {store.add('clients count', 0)} after {rounds} rounds")
    print(f"{messages} damaged messages, {clients} clients with {rounds} rounds")
    return wrong


def _receive(s: socket.socket, count: int) -> bytes:
    got = b""
    while len(got) < count:
        more = s.recv(count - len(got))
        if not more:
            raise ConnectionError("the server has closed the connection")
        got += more
    return got


def _reply(s: socket.socket) -> tuple[int, int]:
    """The code and number of a reply without texts."""
    (length,) = struct.unpack("<I", _receive(s, 4))
    code, number = struct.unpack("<Bq", _receive(s, length)[:9])
    return code, number


def many_at_once(count: int) -> list[str]:
    """So many connections count, then wait for one key; what is wrong with their answers."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * count + 200  # both ends are here
    if soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(needed, hard), hard))
    store = dist.TCPStore("localhost", 0, is_master=True, timeout=_TIME)
    began = time.monotonic()
    sockets: list[Any] = []
    try:
        for _ in range(count):
            sockets.append(_connected(store.port))
        for s in sockets:
            s.sendall(message(_ADD, 1, [b"n"], []))
        numbers = sorted(_reply(s)[1] for s in sockets)
        for s in sockets:
            s.sendall(message(_WAIT, 60_000, [b"go"], []))
        opened = time.monotonic()
        store.set("go", "1")
        codes = {_reply(s)[0] for s in sockets}
        took = time.monotonic() - opened
    finally:
        for s in sockets:
            s.close()
    print(f"{count} connections in {opened - began:.2f} s; all were woken in {took:.2f} s")
    wrong = [] if numbers == list(range(1, count + 1)) else ["not all were counted, each once"]
    return wrong if codes == {15} else [*wrong, f"replies to the wait: {codes}"]


def main(messages: int, clients: int, many: int, seed: int) -> int:
    """Both; returns how much went wrong, each of which is printed."""
    wrong = while_clients_go_on(messages, clients, seed) + many_at_once(many)
    for text in wrong:
        print(text)
    return len(wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--many", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    sys.exit(1 if main(given.messages, given.clients, given.many, given.seed) else 0)
