"""Worker threads: what worker processes do, in the memory of the program."""
# ruff: noqa: NPY002 (NumPy's global generator must stay as it is)

import gc
import random
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import flambeau as fb
from flambeau.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    IterDataPipe,
    TensorDataset,
    get_worker_info,
)
from flambeau.utils.data.datapipes.iter import IterableWrapper


def threads(dataset, workers=2, **options):
    return DataLoader(dataset, num_workers=workers, worker_backend="thread", **options)


def lists(loader):
    return [batch.tolist() for batch in loader]


class Stream(IterableDataset):
    def __init__(self, n):
        self.n, self.first, self.step = n, 0, 1

    def __iter__(self):
        return iter(range(self.first, self.n, self.step))


def share():
    """Sets attributes of the copy, as programs do."""
    info = get_worker_info()
    info.dataset.first, info.dataset.step = info.id, info.num_workers


class Slow(Dataset):
    """Batches whose workers take different times."""

    def __len__(self):
        return 12

    def __getitem__(self, i):
        time.sleep(0.02 if i % 2 == 0 else 0.0)
        return i


def test_batches_are_those_of_processes():
    data = TensorDataset(fb.arange(30).reshape(10, 3), fb.arange(10))
    for options in ({}, {"shuffle": True}, {"batch_size": 4, "drop_last": True}):
        orders = []
        for backend in ("process", "thread"):
            fb.manual_seed(5)
            loader = DataLoader(data, num_workers=2, worker_backend=backend, **options)
            orders.append([[x.tolist(), y.tolist()] for _ in range(2) for x, y in loader])
            orders[-1].append(fb.rand(1).item())
        assert orders[0] == orders[1]


def test_samples_are_not_copied():
    rows = [fb.zeros(3) for _ in range(4)]
    loaded = list(threads(rows, batch_size=None))
    assert all(got is row for got, row in zip(loaded, rows, strict=True))


@pytest.mark.filterwarnings("ignore:This DataLoader will create 3")
def test_order_of_slow_and_quick_workers():
    assert lists(threads(Slow(), workers=3)) == [[i] for i in range(12)]

    class Late(Slow):
        """The first is done when the fourth, which is the other worker's second, is begun."""

        begun = threading.Event()

        def __getitem__(self, i):
            if i == 3:
                self.begun.set()
            assert i != 0 or self.begun.wait(30)
            return i

    got = sum(lists(threads(Late(), in_order=False)), [])
    assert sorted(got) == list(range(12)) and got.index(1) < got.index(0)


@pytest.mark.filterwarnings("ignore:This DataLoader will create 3")
def test_streams_have_a_copy_each():
    stream = Stream(11)
    loader = threads(stream, workers=3, batch_size=2, worker_init_fn=lambda _: share())
    assert lists(loader) == [[0, 3], [1, 4], [2, 5], [6, 9], [7, 10], [8]]
    assert (stream.first, stream.step) == (0, 1)


class Pairs(IterDataPipe):
    """A pipe with a buffer of its own."""

    def __init__(self, source):
        self.source, self.buffer = source, []

    def __iter__(self):
        for element in self.source:
            self.buffer.append(element)
            if len(self.buffer) == 2:
                yield tuple(self.buffer)
                self.buffer.clear()
                time.sleep(0.001)


def test_pipes_are_shared_out_and_keep_their_buffers_apart():
    source = list(range(40))
    pipe = Pairs(IterableWrapper(source).sharding_filter())
    loader = threads(pipe, batch_size=None, collate_fn=tuple)
    assert sorted(loader) == sorted((i, i + 2) for i in range(38) if i % 4 in (0, 1))
    shuffled = IterableWrapper(range(12)).shuffle(buffer_size=5).sharding_filter()
    orders = []
    for backend in ("process", "thread"):
        fb.manual_seed(0)
        loader = DataLoader(shuffled, 3, shuffle=True, num_workers=2, worker_backend=backend)
        orders.append([lists(loader), lists(loader)])
    assert orders[0] == orders[1]


def test_facts_and_seeds():
    class Info(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            info = get_worker_info()
            assert info.dataset is self and info.worker_method == "thread"
            return info.id, info.num_workers, info.seed - info.id

    data = Info()
    before = fb.initial_seed()
    ids, counts, bases = zip(*[[v.item() for v in row] for row in threads(data)], strict=True)
    assert ids == (0, 1, 0, 1) and set(counts) == {2} and len(set(bases)) == 1
    assert fb.initial_seed() == before and get_worker_info() is None


class Draws(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        rng = get_worker_info().rng
        return (
            rng.random_generator.random(),
            fb.rand(1, generator=rng.torch_generator).item(),
            rng.numpy_generator.random(),
        )


def test_own_generators_give_the_same_in_threads_and_processes():
    drawn = []
    for backend in ("thread", "process"):
        fb.manual_seed(3)
        global_ones = random.getstate(), np.random.get_state()[1].tolist()
        drawn.append(
            list(DataLoader(Draws(), None, num_workers=2, worker_backend=backend, collate_fn=tuple))
        )
        assert (random.getstate(), np.random.get_state()[1].tolist()) == global_ones
    assert drawn[0] == drawn[1] and len(set(drawn[0])) == 6


def test_a_failure_keeps_class_traceback_and_the_rest():
    class Fragile(Slow):
        def __getitem__(self, i):
            if i == 3:
                raise KeyError("no third")
            if i == 4:
                sys.exit("enough")
            return i

    batches = iter(threads(Fragile()))
    assert [next(batches).item() for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyError, match="DataLoader worker thread 1") as caught:
        next(batches)
    assert "no third" in str(caught.value) and "__getitem__" in str(caught.value)
    with pytest.raises(RuntimeError, match="Caught SystemExit in DataLoader worker thread 0"):
        next(batches)
    assert [b.item() for b in batches] == [5, 6, 7, 8, 9, 10, 11]

    def fail(worker_id):
        raise ValueError("no start")

    with pytest.raises(ValueError, match="no start"):
        next(iter(threads(Slow(), worker_init_fn=fail)))


def test_persistent_threads_start_over_after_a_broken_off_pass():
    loader = threads(range(9), batch_size=2, persistent_workers=True)
    first = iter(loader)
    started = list(first._workers)
    next(first)
    assert lists(loader) == lists(loader) == [[0, 1], [2, 3], [4, 5], [6, 7], [8]]
    assert loader._iterator._workers == started


def test_threads_end_with_their_iterator():
    batches = iter(threads(range(100)))
    next(batches)
    started = list(batches._workers)
    assert all(t.is_alive() for t in started)
    del batches
    gc.collect()
    assert not any(t.is_alive() for t in started)
    batches = iter(threads(range(3)))
    assert len(list(batches)) == 3 and not any(t.is_alive() for t in batches._workers)


def test_time_limit():
    release = threading.Event()

    class Hangs(Slow):
        def __getitem__(self, i):
            release.wait(60)
            return i

    batches = iter(threads(Hangs(), timeout=0.2))
    with pytest.raises(RuntimeError, match="timed out after 0.2 seconds"):
        next(batches)
    release.set()


@pytest.mark.parametrize("held", ["batches", "other"])
def test_the_program_ends_in_the_middle_of_a_pass(held):
    program = f"""
import time
from flambeau.utils.data import DataLoader
class Data:
    def __len__(self): return 1000
    def __getitem__(self, i):
        if i == 3:
            time.sleep(600)
        return i
loader = DataLoader(Data(), num_workers=2, worker_backend="thread", persistent_workers=True)
{held} = iter(loader)
print(next({held}).item(), flush=True)
"""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=50)
    assert done.returncode == 0 and done.stdout == b"0\n" and done.stderr == b""
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"worker_backend": "fiber", "num_workers": 1}, "should be one of .*, but got .*'fiber'"),
        ({"worker_backend": "thread"}, "worker_backend='thread' needs num_workers > 0"),
        (
            {"worker_backend": "thread", "num_workers": 1, "multiprocessing_context": "fork"},
            "multiprocessing_context is an option of worker processes",
        ),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        DataLoader(range(4), **options)


def test_the_kind_of_workers_is_fixed():
    loader = threads(range(3))
    with pytest.raises(ValueError, match="worker_backend attribute should not be set after"):
        loader.worker_backend = "process"
    with pytest.warns(UserWarning, match="will create 4000 worker threads"):
        DataLoader(range(3), num_workers=4000, worker_backend="thread")
