"""Packed lists: equal elements that nobody can change, and workers that do not grow by reading."""

import copy
import os
import pickle

import numpy as np
import pytest

import flambeau as fb
from flambeau.utils.data import DataLoader, Dataset, PackedList

KINDS = {
    "rows": lambda i: {"id": i, "name": f"ä{i}", "boxes": [[i, i / 2]], "none": None},
    "lists": lambda i: [i] * (i % 4),
    "mixed": lambda i: (i, {"x": i}) if i % 2 else "text",
    "arrays in rows": lambda i: {"x": np.arange(i % 5), "y": np.float32(i)},
    "tensors": lambda i: fb.arange(i % 3),
    "sets": lambda i: {i, i + 1},
}
ARRAYS = {
    "alike": lambda i: np.arange(6, dtype=np.float32).reshape(2, 3) + i,
    "of other lengths": lambda i: np.arange(i % 4, dtype=np.int64),
    "scalars": lambda i: np.array(i),
    "complex": lambda i: np.full((1, 2), 1j * i),
    "big-endian": lambda i: np.arange(3, dtype=">i4") * i,
    "not contiguous": lambda i: np.arange(12).reshape(3, 4)[:, ::2] + i,
    "of objects": lambda i: np.array([None, {"x": i}], dtype=object),
    "of other dtypes": lambda i: np.zeros(2, [np.int8, np.float64][i % 2]),
    "times": lambda i: np.array(["2026-11-25"], dtype="datetime64[D]") + i,
}


@pytest.mark.parametrize("kind", KINDS)
def test_elements_are_equal(kind):
    values = list(map(KINDS[kind], range(50)))
    packed = PackedList(values)
    assert len(packed) == 50 and repr(list(packed)) == repr(values)
    assert [type(each) for each in packed] == [type(each) for each in values]
    assert repr(packed[7]) == repr(values[7]) and repr(packed[-1]) == repr(values[-1])


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays(kind):
    values = list(map(ARRAYS[kind], range(50)))
    for value, found in zip(values, PackedList(values), strict=True):
        assert found.dtype == value.dtype and found.shape == value.shape
        assert type(found) is np.ndarray and np.array_equal(found, value)
        assert found.flags.writeable


def test_it_reads_as_a_sequence():
    values = list(map(KINDS["rows"], range(20)))
    packed = PackedList(iter(values))
    assert packed[3:9:2] == values[3:9:2] and packed[::-1] == values[::-1]
    assert values[4] in packed and packed.index(values[4]) == 4 and packed.count(values[4]) == 1
    assert packed == values and packed != values[1:] and packed == PackedList(values)
    assert list(reversed(packed)) == values[::-1]
    assert packed[np.int64(2)] == values[2]
    for i in (20, -21):
        with pytest.raises(IndexError, match=f"PackedList: index {i} is out of range of 20 elem"):
            packed[i]
    assert repr(PackedList([])) == "PackedList(0 elements, 0 bytes)" and list(PackedList([])) == []


def test_nobody_changes_it():
    packed = PackedList(map(KINDS["rows"], range(5)))
    packed[1]["boxes"][0][0] = 77
    assert packed[1] == KINDS["rows"](1)
    arrays = PackedList([np.zeros(3), np.ones(3)])
    arrays[0][1] = 9.0
    assert arrays[0].tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(TypeError, match="PackedList: cannot be changed; pack a list that has"):
        packed[0] = 1
    with pytest.raises(TypeError, match="cannot be changed"):
        del packed[0]
    with pytest.raises(TypeError, match="unhashable"):
        hash(packed)


def test_what_cannot_be_pickled_leaves_nothing_open():
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        PackedList([{"f": lambda: 1}])
    assert len(os.listdir("/proc/self/fd")) == before
    packed = PackedList([{"x": 1}])
    assert len(os.listdir("/proc/self/fd")) > before
    del packed
    assert len(os.listdir("/proc/self/fd")) == before


def test_copies_and_files():
    packed = PackedList(map(KINDS["rows"], range(5)))
    assert copy.copy(packed) is packed and copy.deepcopy({"p": packed})["p"] is packed
    again = pickle.loads(pickle.dumps(packed))
    assert type(again) is PackedList and again == packed


class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        return row["id"] if isinstance(row, dict) else int(row.sum())


def rows(n):
    return PackedList({"id": i, "name": f"file{i}", "box": [i, i + 1, i + 2]} for i in range(n))


@pytest.mark.parametrize("method", ["fork", "spawn", "thread"])
@pytest.mark.parametrize("make", [rows, lambda n: PackedList([np.array([i]) for i in range(n)])])
def test_workers_read_it(method, make):
    how = (
        {"multiprocessing_context": method} if method != "thread" else {"worker_backend": "thread"}
    )
    loader = DataLoader(Rows(make(40)), 8, num_workers=1, **how)
    assert fb.cat(list(loader)).tolist() == list(range(40))


def private_memory(pid):
    """Kilobytes that a process has for itself."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        lines = [line.split() for line in file]
    return sum(int(line[1]) for line in lines if line[0] in ("Private_Dirty:", "Private_Clean:"))


def growth(data):
    loader = DataLoader(data, 1000, num_workers=1, collate_fn=len)
    batches = iter(loader)
    next(batches)
    pid = batches._workers[0].pid
    before = private_memory(pid)
    for _ in range(90):
        next(batches)
    return private_memory(pid) - before


def test_workers_do_not_grow_by_reading():
    packed = rows(100_000)
    # 9 MB of packed rows, which this process alone maps; 45 MB of objects.
    assert 3 * growth(Rows(packed)) < growth(Rows(list(packed)))


def test_it_takes_less_than_the_list():
    n = 2000
    packed = PackedList([np.array([i, i + 1]) for i in range(n)])
    assert len(packed._bytes) == n * (8 + 16)
