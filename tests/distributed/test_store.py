"""Stores: each kind means the same; the server outlives nonsense, slow peers and wrong secrets."""

import hashlib
import hmac
import os
import random
import socket
import threading
import time
from datetime import timedelta

import pytest

import flambeau as torch
from tools import store_load

dist = torch.distributed
SOON = timedelta(milliseconds=30)


class Plain(dist.Store):
    """A store in Python, with the least that a subclass defines."""

    def __init__(self):
        self.keys = {}

    def set(self, key, value):
        self.keys[key] = value.encode() if isinstance(value, str) else bytes(value)

    def get(self, key):
        self.wait([key], SOON)
        return self.keys[key]

    def add(self, key, amount):
        self.set(key, str(int(self.keys.get(key, 0)) + amount))
        return int(self.keys[key])

    def check(self, keys):
        return all(k in self.keys for k in keys)

    def wait(self, keys, timeout=SOON):
        if not self.check(keys):
            raise dist.DistStoreError("not here")

    def compare_set(self, key, expected, desired):
        old = self.keys.get(key, b"")
        if old == expected.encode():
            self.set(key, desired)
        return self.keys.get(key, expected.encode())

    def delete_key(self, key):
        return self.keys.pop(key, None) is not None

    def num_keys(self):
        return len(self.keys)


def server(**options):
    return dist.TCPStore("localhost", 0, is_master=True, **options)


def make(kind, folder):
    if kind == "tcp":
        return server()
    if kind == "client":
        made = server()
        client = dist.TCPStore("localhost", made.port)
        client.server = made
        return client
    if kind == "file":
        return dist.FileStore(str(folder / "store"), 1)
    return {"hash": dist.HashStore, "plain": Plain}[kind]()


KINDS = ["hash", "file", "tcp", "client", "plain"]


@pytest.fixture(params=[*KINDS, *(f"prefix {k}" for k in KINDS)])
def store(request, tmp_path):
    kind = request.param.split()[-1]
    made = make(kind, tmp_path)
    if request.param != kind:
        made = dist.PrefixStore("a", dist.PrefixStore("b", made))
    made.set_timeout(SOON)
    return made


def test_keys_and_values(store):
    store.set("k", "text")
    store.set("bytes", b"\0\xff")
    store.set("", "")
    assert (store.get("k"), store.get("bytes"), store.get("")) == (b"text", b"\0\xff", b"")
    store.set("k", "other")
    assert store.get("k") == b"other"
    assert store.check(["k", "bytes"]) and not store.check(["k", "none"]) and store.check([])
    assert store.num_keys() == 3
    assert store.delete_key("k") and not store.delete_key("k")
    assert store.num_keys() == 2 and not store.check(["k"])
    store.multi_set(["x", "y"], ["1", b"2"])
    assert store.multi_get(["y", "x"]) == [b"2", b"1"]
    with pytest.raises(dist.DistStoreError, match="must be of same size"):
        store.multi_set(["x"], [])


def test_numbers(store):
    assert [store.add("n", i) for i in (5, 0, -7)] == [5, 5, -2]
    assert store.get("n") == b"-2"
    store.set("n", "40")
    assert store.add("n", 2) == 42


def test_compare_set(store):
    assert store.compare_set("k", "no", "new") == b"no"
    assert not store.check(["k"])
    assert store.compare_set("k", "", "first") == b"first"
    assert store.compare_set("k", "other", "second") == b"first"
    assert store.compare_set("k", "first", "second") == b"second" == store.get("k")


def test_what_is_not_there_is_waited_for(store):
    for ask in (
        lambda: store.get("none"),
        lambda: store.wait(["none"]),
        lambda: store.wait(["none"], SOON),
    ):
        before = time.monotonic()
        with pytest.raises(dist.DistStoreError):
            ask()
        assert time.monotonic() - before < 5
    store.set("k", "1")
    store.wait(["k"])
    with pytest.raises(dist.DistError):
        store.wait(["k", "none"], SOON)


@pytest.mark.parametrize("kind", ["hash", "file", "tcp", "client"])
def test_our_own(kind, tmp_path):
    store = make(kind, tmp_path)
    store.set_timeout(timedelta(milliseconds=20))
    assert store.timeout == timedelta(milliseconds=20)
    store.append("log", "ab")
    store.append("log", b"cd")
    assert store.get("log") == b"abcd"
    with pytest.raises(dist.DistStoreError, match=r"wait timeout after 20ms, keys: \S*p, \S*q$"):
        store.wait(["p", "log", "q"])
    with pytest.raises(dist.DistStoreError, match="expected a number under key 'log', got 4 bytes"):
        store.add("log", 1)
    store.set("big", str(2**63 - 1))
    with pytest.raises(dist.DistStoreError, match="too large"):
        store.add("big", 1)
    for value in ("1", b"2"):
        store.queue_push("queue", value)
    assert store.queue_len("queue") == 2
    assert [store.queue_pop("queue"), store.queue_pop("queue", False)] == [b"1", b"2"]
    with pytest.raises(dist.QueueEmptyError, match="queue 'queue' is empty"):
        store.queue_pop("queue", False)
    with pytest.raises(dist.DistStoreError, match="timeout"):
        store.queue_pop("queue")
    assert sorted(store.list_keys()) == ["big", "log"]
    for wrong in (lambda: store.set("k", 3), lambda: store.set(3, "k"), lambda: store.check("k")):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError, match="expected timeout to be a datetime.timedelta, got int"):
        store.wait(["k"], 3)
    assert store.has_extended_api() and type(store.clone()) is type(store)
    assert store.clone().get("log") == b"abcd"


@pytest.mark.parametrize("kind", ["hash", "file", "client"])
def test_a_key_that_comes_ends_the_wait(kind, tmp_path):
    store = make(kind, tmp_path)
    found = []
    mine = [store.clone() for _ in range(4)]
    waiting = [
        threading.Thread(target=lambda s=s: (s.wait(["a", "b"]), found.append(s.get("b"))))
        for s in mine
    ]
    waiting.append(threading.Thread(target=lambda: found.append(store.clone().queue_pop("q"))))
    for t in waiting:
        t.start()
    for key in ("b", "a"):
        time.sleep(0.02)
        store.set(key, "1")
    store.queue_push("q", "1")
    for t in waiting:
        t.join(20)
    assert found == [b"1"] * 5


def test_many_count_together():
    store = server()
    clients = [dist.TCPStore("localhost", store.port) for _ in range(20)]

    def count(client):
        for _ in range(50):
            client.add("n", 1)
        client.barrier("end", 20)

    threads = [threading.Thread(target=count, args=(c,)) for c in clients]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
    assert store.add("n", 0) == 1000


def test_the_last_process_removes_the_file(tmp_path):
    path = tmp_path / "store"
    first, second = dist.FileStore(str(path), 2), dist.FileStore(str(path), 2)
    first.set("k", "1")
    assert second.get("k") == b"1" and second.num_keys() == 1
    del first
    assert path.exists()
    del second
    assert not path.exists()
    with pytest.raises(dist.DistStoreError, match="cannot open file '/no/folder/store'"):
        dist.FileStore("/no/folder/store")
    path.write_bytes(b"x" + bytes(8))
    with pytest.raises(dist.DistStoreError, match="is not of a store"):
        dist.FileStore(str(path))
    path.write_bytes(b"s\x01\0\0\0")  # a process died in the middle of a record
    assert dist.FileStore(str(path), 1).num_keys() == 0


def test_a_forked_child_has_a_connection_of_its_own():
    store = server()
    store.set("k", "1")
    child = os.fork()
    if child == 0:
        store.set("child", store.get("k"))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert store.get("child") == b"1"


def test_workers_are_waited_for():
    with pytest.raises(
        dist.DistStoreError, match=r"Timed out after 2 s waiting for clients. 1/2 clients joined"
    ):
        server(world_size=2, timeout=timedelta(seconds=2))
    store = server(world_size=2, wait_for_workers=False)
    assert store.num_keys() == 1
    dist.TCPStore("localhost", store.port, 2)
    assert store.get("init/") == b"2"


def test_one_server_for_several_tenants():
    store = server(multi_tenant=True)
    other = dist.TCPStore("localhost", store.port, is_master=True, multi_tenant=True)
    store.set("k", "1")
    assert other.get("k") == b"1"
    with pytest.raises(dist.DistNetworkError, match="failed to listen on port"):
        dist.TCPStore("localhost", store.port, is_master=True)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port, fd = listening.getsockname()[1], listening.detach()
    store = dist.TCPStore("localhost", port, is_master=True, master_listen_fd=fd)
    assert store.port == port


def test_nobody_answers():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with pytest.raises(dist.DistNetworkError, match=rf"connect to \(localhost, {port}\): Conn"):
        dist.TCPStore("localhost", port, timeout=SOON)
    with socket.create_server(("127.0.0.1", 0)) as s, pytest.raises(dist.DistNetworkError):
        dist.TCPStore("localhost", s.getsockname()[1], timeout=SOON)
    with pytest.raises(ValueError, match="expected a port of 0 to 65535, got 70000"):
        dist.TCPStore("localhost", 70000)
    store = server()
    client = dist.TCPStore("localhost", store.port)
    del store
    with pytest.raises(dist.DistNetworkError):
        client.get("k")


def test_codes_are_those_of_the_standard():
    for key in (b"", b"k", b"k" * 64, b"k" * 65):
        for n in (0, 1, 55, 56, 63, 64, 119, 1000):
            data = random.Random(n).randbytes(n)
            ours = torch._C._distributed.hmac_sha256(key, data)
            assert ours == hmac.new(key, data, hashlib.sha256).digest()


def test_a_secret(monkeypatch):
    store, plain = server(secret="swordfish"), server()
    with pytest.raises(dist.DistNetworkError, match="the secrets differ"):
        dist.TCPStore("localhost", store.port, secret="other")
    with pytest.raises(dist.DistNetworkError, match="it asks for a secret, and none is given"):
        dist.TCPStore("localhost", store.port)
    with pytest.raises(dist.DistNetworkError, match="a secret is given, and it does not know any"):
        dist.TCPStore("localhost", plain.port, secret="swordfish")
    monkeypatch.setenv("FLAMBEAU_STORE_SECRET", "swordfish")
    dist.TCPStore("localhost", store.port).set("k", "1")
    assert store.get("k") == b"1"


def replies(port, hello):
    """What the server says to a peer whose greeting is `hello`, after its own."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
        first = s.recv(41, socket.MSG_WAITALL)
        s.sendall(hello(first))
        s.settimeout(0.5)
        try:
            return s.recv(32, socket.MSG_WAITALL)
        except TimeoutError:
            return b""


def test_a_recorded_greeting_opens_nothing():
    store = server(secret="swordfish")
    heard = []

    def right(first):
        nonce = bytes(32)
        proof = hmac.new(b"swordfish", b"client" + first[9:] + nonce, hashlib.sha256).digest()
        heard.append(first[:8] + nonce + proof)
        return heard[-1]

    assert len(replies(store.port, right)) == 32
    assert replies(store.port, lambda first: heard[0]) == b""


def listening_at(port):
    """Addresses at which something listens on the port, as Linux lists them."""
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in list(table)[1:]]
    return {
        r[1].split(":")[0] for r in rows if r[3] == "0A" and int(r[1].split(":")[1], 16) == port
    }


def test_without_a_secret_only_this_machine_can_connect():
    plain, secret = server(), server(secret="s")
    assert listening_at(plain.port) == {"0100007F"}
    assert listening_at(secret.port) == {"00000000"}


def test_nonsense_and_slow_peers_disturb_nobody():
    store = server(timeout=timedelta(seconds=20))
    client = dist.TCPStore("localhost", store.port)
    half_open = [socket.create_connection(("127.0.0.1", store.port)) for _ in range(20)]
    half_open[0].sendall(b"FBSTORE1")
    draw = random.Random(0)
    hello = b"FBSTORE1" + bytes(64)

    def message(body):
        return len(body).to_bytes(4, "little") + body

    for i in range(300):
        with socket.create_connection(("127.0.0.1", store.port)) as s:
            begun = hello if i % 3 else b""
            bodies = [
                draw.randbytes(draw.randrange(60)),
                message(draw.randbytes(draw.randrange(40))),
                message(bytes([draw.randrange(20)]) + bytes(8) + b"\1\0\0\0\1\0\0\0k\0\0\0\0"),
                message(bytes([draw.randrange(20)]) + bytes(8) + b"\xff" * 8),
                b"\xff\xff\xff\x3f" + bytes(100),
            ]
            s.sendall(begun + draw.choice(bodies) + draw.choice(bodies))
        if i % 10 == 0:
            assert client.add("n", 1) == i // 10 + 1
    for s in half_open:
        s.close()
    assert client.get("n") == b"30"


def test_large_values():
    store = server()
    value = os.urandom(5_000_000)
    dist.TCPStore("localhost", store.port).set("k", value)
    assert store.get("k") == value


def test_damaged_messages_while_clients_go_on_and_many_clients():
    assert store_load.main(messages=3000, clients=8, many=300, seed=3) == 0


def test_a_peer_that_asks_without_end_lets_others_in():
    """Its requests are read and answered a part at a time."""
    store = server(timeout=timedelta(seconds=60))
    client = dist.TCPStore("localhost", store.port)
    requests = store_load.message(3, 0, [b"k"], []) * 300_000
    with socket.create_connection(("127.0.0.1", store.port)) as s:
        s.sendall(b"FBSTORE1" + bytes(64))
        assert len(s.recv(41 + 32, socket.MSG_WAITALL)) == 41 + 32

        def read():
            while s.recv(1 << 20):
                pass

        threads = [threading.Thread(target=work) for work in (lambda: s.sendall(requests), read)]
        for thread in threads:
            thread.start()
        longest = 0.0
        while threads[0].is_alive():
            before = time.monotonic()
            client.add("n", 1)
            longest = max(longest, time.monotonic() - before)
        s.shutdown(socket.SHUT_WR)  # the server ends the connection
        threads[1].join()
    assert longest < 2
