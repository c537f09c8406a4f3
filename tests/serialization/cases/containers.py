"""Containers and plain data, with tensors among them."""

import argparse
import datetime
import pathlib
from collections import Counter, OrderedDict, defaultdict

import numpy as np

from .case import Case


def nested(torch):
    x = torch.ones(2)
    return {"a": [x, (x, {"b": (x,)})], 1: {2.5: None, True: "one"}, ("t", 1): [[], [[]]]}


def ordered(torch):
    state = OrderedDict((n, torch.full((1,), i)) for i, n in enumerate("zyxab"))
    state._metadata = OrderedDict({"": {"version": 1}, "z": {"version": 2, "note": "x"}})
    return state


def counters(torch):
    return [Counter("abcab"), defaultdict(int, a=1), defaultdict(None), defaultdict(dict, {1: {}})]


def sets(torch):
    return [{1, 2, 3}, {"a"}, set(), frozenset({1, (2, 3)}), {frozenset({1})}]


def cycles(torch):
    items, table = [torch.ones(1)], {}
    items.append(items)
    table["self"], table["items"] = table, items
    inner = ([],)
    inner[0].append(inner)
    return [items, table, inner]


def same_objects(torch):
    one, text = [1], "shared text"
    return [one, one, {"a": one}, text, text, (one, one)]


def numbers(torch):
    return [
        0, -1, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, -(2**31), 2**31, 2**63, -(2**63),
        2**200, -(2**200), 0.0, -0.0, 1e308, 5e-324, float("inf"), 1 + 2j, True, False, None,
    ]  # fmt: skip


def texts(torch):
    return ["", "a", "ü", "\n\t\0", "日本", "😀", "x" * 300, "\\N{dash} 'q' \"r\""]


def raw_bytes(torch):
    return [b"", b"\0\xff", bytes(range(256)), bytearray(b"ab"), b"x" * 300]


def library_values(torch):
    return {
        "dtypes": [torch.float32, torch.int64, torch.bool, torch.complex128, torch.bfloat16],
        "device": [torch.device("cpu"), torch.device("cuda", 1), torch.device("meta")],
        "size": torch.Size([2, 3]), "none": torch.Size([]),
    }  # fmt: skip


def plain_classes(torch):
    return {
        "slice": [slice(1), slice(None, None, 2), slice(1, 2)], "range": range(0, 10, 3),
        "complex": 1j, "namespace": argparse.Namespace(lr=0.1, sub=argparse.Namespace(x=[1])),
        "path": [pathlib.PurePosixPath("/a/b"), pathlib.PurePosixPath("rel")],
    }  # fmt: skip


def times(torch):
    zone = datetime.timezone(datetime.timedelta(hours=2), "CEST")
    return [
        datetime.datetime(2024, 2, 29, 1, 2, 3, 4, zone), datetime.datetime(1, 1, 1),
        datetime.date(9999, 12, 31), datetime.time(23, 59, 59, 999999),
        datetime.timedelta(-1, 5, 6), datetime.UTC,
    ]  # fmt: skip


def _arrays(dtype):
    def make(torch):
        x = np.arange(12).reshape(3, 4)
        x = (x % 2 if dtype == "bool" else x).astype(dtype)
        return [x, x.T, x[::2, 1:], np.asfortranarray(x), x[0, 0], x[:0], x.reshape(2, 6)[1:]]

    return make


def other_arrays(torch):
    return {
        "text": np.array(["ab", "c"]), "bytes": np.array([b"x", b"yz"]), "zero": np.array(3.5),
        "big": np.arange(40, dtype=">i4"), "scalars": [np.float32(1.5), np.int64(-2), np.bool_(1)],
    }  # fmt: skip


def random_states(torch):
    made = {"state": np.random.RandomState(5).get_state()}
    for name in ("PCG64", "MT19937", "Philox", "SFC64", "PCG64DXSM"):
        made[name] = getattr(np.random, name)(5).state
    return made


def random_generators(torch):
    old = np.random.RandomState(5)
    old.normal()  # half of a pair is kept
    made = {"RandomState": old, "default": np.random.default_rng(5)}
    for name in ("PCG64", "MT19937", "Philox", "SFC64", "PCG64DXSM"):
        made[name] = np.random.Generator(getattr(np.random, name)(7))
        made[name].integers(5, dtype=np.int32)
    return made


_ARRAYS = "bool uint8 int16 int32 int64 uint64 float16 float32 float64 complex64".split()

CASES = {
    f.__name__: Case(f) for f in (nested, ordered, same_objects, numbers, texts, library_values)
}
CASES |= {
    f.__name__: Case(f, safe=False)
    for f in (
        counters,
        sets,
        cycles,
        raw_bytes,
        plain_classes,
        times,
        other_arrays,
        random_states,
        random_generators,
    )
}
CASES |= {f"array_{d}": Case(_arrays(d), safe=False) for d in _ARRAYS}
