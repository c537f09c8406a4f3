"""Long lists that worker processes share: equal to what they stand for, and no growth."""

import bisect
import os
import pickle
import random

import pytest

import flambeau as fb
from flambeau.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset
from flambeau.utils.data._utils import shared_list
from flambeau.utils.data._utils.shared_list import SharedLists

N = shared_list.MIN_LENGTH + 11
KINDS = {
    "rows": lambda i: (f"file{i}.jpg", i, i / 3, None),
    "text": lambda i: "ä€𐍈" * (i % 3) + str(i),
    "odd text": lambda i: "\ud800" + str(i),
    "numbers": lambda i: i - 7 if i % 2 else float(i),
    "large numbers": lambda i: (1 << 70) + i,
    "truths": lambda i: (i % 2 == 0, None, 1j * i),
    "bytes": lambda i: bytes([i % 256]) * (i % 5),
    "mixed": lambda i: (i, "x") if i % 2 else "y",
    "empty": lambda i: (),
}


def items(kind="rows", n=N):
    return list(map(KINDS[kind], range(n)))


def packed(values):
    (found,) = SharedLists().of(values)
    return found[2]


@pytest.mark.parametrize("kind", KINDS)
def test_elements_and_their_types_are_the_same(kind):
    values = items(kind)
    shared = packed(values)
    assert list(shared) == values and len(shared) == len(values)
    assert [type(v) for v in shared] == [type(v) for v in values]


def test_it_reads_as_a_list():
    values = items("numbers")
    shared = packed(values)
    for i in (0, 1, -1, N - 1, -N, 4711):
        assert shared[i] == values[i]
    for i in (N, -N - 1):
        with pytest.raises(IndexError, match="list index out of range"):
            shared[i]
    with pytest.raises(TypeError):
        shared["0"]
    for part in (slice(3, 9), slice(None, None, 9000), slice(-3, None), slice(9, 3, -1)):
        assert shared[part] == values[part]
    assert isinstance(shared, list) and bool(shared)
    assert list(reversed(shared))[:3] == values[:-4:-1]
    assert 40.0 in shared and "x" not in shared
    assert shared.index(values[99], 50) == values.index(values[99], 50)
    assert shared.count(40.0) == values.count(40.0) == 2
    with pytest.raises(ValueError, match="is not in list"):
        shared.index("x")
    assert sum(shared) == sum(values) and max(shared) == max(values)
    assert sorted(shared) == sorted(values) and tuple(shared) == tuple(values)
    assert shared.copy() == values and type(shared.copy()) is list
    assert fb.tensor(list(shared)).sum().item() == pytest.approx(sum(values))
    ordered = packed(items("large numbers"))
    assert bisect.bisect_left(ordered, (1 << 70) + 500) == 500
    assert random.Random(1).choice(shared) == random.Random(1).choice(values)
    assert pickle.loads(pickle.dumps(values)) == values


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.append(5),
        lambda v: v.extend([1, 2]),
        lambda v: v.insert(3, "new"),
        lambda v: v.__setitem__(7, "new"),
        lambda v: v.__setitem__(slice(2, 5), [0]),
        lambda v: v.__delitem__(0),
        lambda v: v.pop(),
        lambda v: v.remove(40.0),
        lambda v: v.reverse(),
        lambda v: v.sort(),
        lambda v: random.Random(3).shuffle(v),
        lambda v: v.clear(),
        lambda v: v.__iadd__([3]),
        lambda v: v.__imul__(2),
    ],
)
def test_a_change_is_the_change_of_a_list(change):
    values = items("numbers")
    shared = packed(values)
    change(values)
    change(shared)
    assert len(shared) == len(values) and shared == values and list(shared) == values
    assert values == shared and not shared != values
    assert shared[:3] == values[:3] and shared.copy() == values


def test_operations_of_lists():
    values = items("numbers")
    assert packed(values) + [1] == values + [1] and packed(values) * 2 == values * 2
    assert packed(values) == values and packed(values) != values[:-1]
    assert repr(packed(values)) == repr(values)


@pytest.mark.parametrize(
    "values",
    [
        [1] * (shared_list.MIN_LENGTH - 1),
        [[1]] * N,
        [{"a": 1}] * N,
        [([],)] * N,
        [*items(n=N), object()],
        [fb.tensor(1)] * N,
        tuple(range(N)),
        {i: i for i in range(N)},
    ],
)
def test_what_is_not_packed(values):
    class Data:
        pass

    data = Data()
    data.rows = values
    assert SharedLists().of(data) == []


class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return type(self.rows).__name__, self.rows[i]


class Lines(IterableDataset):
    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        return iter([(type(self.rows).__name__, row) for row in self.rows[-3:]])


def loaded(dataset, **options):
    batches = DataLoader(dataset, None, num_workers=1, collate_fn=tuple, **options)
    return list(batches)


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_workers_read_the_packed_list(context):
    rows = items()
    options = {"multiprocessing_context": context}
    keys = [0, N - 1, 99]
    expected = [("SharedList", rows[i]) for i in keys]
    data = Rows(rows)
    assert loaded(data, sampler=keys, **options) == expected and data.rows is rows
    assert loaded(Lines(rows), **options) == [("SharedList", row) for row in rows[-3:]]
    plain = DataLoader(rows, None, num_workers=1, sampler=keys, collate_fn=tuple, **options)
    assert list(plain) == [rows[i] for i in keys]


def test_datasets_in_datasets():
    rows = items()
    data = ConcatDataset([Subset(Rows(rows), range(4)), Rows(rows)])
    assert loaded(data, sampler=[1, 5]) == [("SharedList", rows[1]), ("SharedList", rows[1])]


def test_a_list_that_was_changed_between_passes_is_packed_again():
    rows = items("numbers")
    loader = DataLoader(Rows(rows), None, num_workers=1, sampler=[5], collate_fn=tuple)
    for value in (rows[5], -1, -2, "text"):  # hashes of -1 and -2 are the same
        rows[5] = value
        assert list(loader) == [("SharedList", value)]
    before = loader._shared_lists._packed[id(rows)][1]
    list(loader)
    assert loader._shared_lists._packed[id(rows)][1] is before
    rows[5] = []
    assert list(loader) == [("list", [])]


def test_a_worker_changes_a_list_of_its_own():
    class Growing(Rows):
        def __getitem__(self, i):
            self.rows.append(i)
            return len(self.rows)

    rows = items("numbers")
    loader = DataLoader(Growing(rows), None, num_workers=1, sampler=[0, 1])
    assert list(loader) == [N + 1, N + 2] and len(rows) == N


def test_descriptors_go_with_the_loader():
    rows = items()
    list(DataLoader(Rows(rows), None, num_workers=1, sampler=[0], collate_fn=tuple))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        list(DataLoader(Rows(rows), None, num_workers=1, sampler=[0], collate_fn=tuple))
    assert len(os.listdir("/proc/self/fd")) <= before


def private_memory(pid):
    """Kilobytes that a process has for itself."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        lines = [line.split() for line in file]
    return sum(int(line[1]) for line in lines if line[0] in ("Private_Dirty:", "Private_Clean:"))


def test_workers_do_not_grow_by_reading():
    data = Rows(items(n=300_000))
    loader = DataLoader(data, 1000, num_workers=1, collate_fn=len)
    batches = iter(loader)
    next(batches)
    pid = batches._workers[0].pid
    before = private_memory(pid)
    for _ in range(290):
        next(batches)
    # The packed rows are 12 MB, which this process alone reads; the objects are 70 MB.
    assert private_memory(pid) - before < 22_000
