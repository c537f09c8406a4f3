"""Time and queues of the stages of a graph, its picture as text, buffers that choose their size."""

import copy
import re
import time

import pytest

from flambeau.utils.data import DataLoader, IterDataPipe
from flambeau.utils.data._utils.tuning import Tuned
from flambeau.utils.data.datapipes.iter import IterableWrapper
from flambeau.utils.data.datapipes.utils import _watching, to_text, watch


def slow(n):
    time.sleep(0.004)
    return n


class Clock:
    """A clock that pipes move on."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(_watching.time, "perf_counter", lambda: self.now)

    def passes(self, seconds, value=None):
        self.now += seconds
        return value


class Own(IterDataPipe):
    """A pipe that is its own iterator, which takes time itself."""

    def __init__(self, source, clock):
        self.source, self.clock = source, clock

    def __iter__(self):
        self.it = iter(self.source)
        return self

    def __next__(self):
        return self.clock.passes(2.0, next(self.it))


def test_time_is_that_of_the_stage_without_its_sources(monkeypatch):
    clock = Clock(monkeypatch)
    pipe = IterableWrapper(range(20)).map(lambda n: clock.passes(3.0, n))
    pipe = Own(pipe, clock).batch(5, wrapper_class=lambda batch: clock.passes(1.0, batch))
    with watch(pipe) as times:
        assert len(list(pipe)) == 4
    found = [(stage.name, stage.elements, stage.seconds) for stage in times.stages]
    assert found == [
        ("Batcher", 4, 4.0), ("Own", 20, 40.0), ("Mapper", 20, 60.0), ("IterableWrapper", 20, 0.0)
    ]  # fmt: skip
    rows = [row.split() for row in str(times).splitlines()]
    assert rows == [
        ["stage", "elements", "seconds", "share", "us/element", "queue", "longest"],
        ["IterableWrapper", "20", "0.000", "0", "%", "0.0"],
        ["Mapper", "20", "60.000", "58", "%", "3000000.0"],
        ["Own", "20", "40.000", "38", "%", "2000000.0"],
        ["Batcher", "4", "4.000", "4", "%", "1000000.0"],
    ]


def test_two_passes_add_up_and_nothing_is_watched_afterwards():
    pipe = IterableWrapper(range(6)).filter(lambda n: n % 2 == 1)
    with watch(pipe) as times:
        assert list(pipe) == list(pipe) == [1, 3, 5]
    assert [stage.elements for stage in times.stages] == [6, 12]
    assert list(pipe) == [1, 3, 5]
    assert [stage.elements for stage in times.stages] == [6, 12]


def test_an_error_passes_through_and_is_still_named():
    pipe = IterableWrapper([2, 0]).map(lambda n: 1 / n).batch(2)
    with watch(pipe) as times, pytest.raises(ZeroDivisionError) as caught:
        list(pipe)
    assert "[Mapper]" in caught.value.__notes__[0] and times.stages[1].elements == 1
    with watch(pipe), pytest.raises(ZeroDivisionError):
        list(pipe)


def test_the_rule_of_one_iterator_holds():
    pipe = IterableWrapper(range(4)).map(abs)
    with watch(pipe):
        first = iter(pipe)
        assert next(first) == 0 and next(iter(pipe)) == 0
        with pytest.raises(RuntimeError, match="has been invalidated"):
            next(first)


def test_a_state_is_the_same_whether_watched_or_not():
    pipe = IterableWrapper(range(8)).shuffle().batch(3)
    with watch(pipe):
        elements = iter(pipe)
        next(elements)
        state = pipe.state_dict()
        rest = list(elements)
    other = IterableWrapper(range(8)).shuffle().batch(3)
    other.load_state_dict(state)
    with watch(other):
        assert list(other) == rest


def test_queues():
    pipe = IterableWrapper(range(40)).prefetch(4).map(slow)
    with watch(pipe) as times:
        assert list(pipe) == list(range(40))
    prefetcher = times.stages[1]
    assert prefetcher.name == "Prefetcher" and prefetcher.longest <= 4
    assert prefetcher.queue > 0 and times.stages[0].queue is None


def test_a_graph_as_text():
    left, middle, right = IterableWrapper(range(3)).shuffle().fork(3)
    pipe = left.map(str).zip(middle, right.concat(IterableWrapper("ab"))).batch(2)
    assert to_text(pipe) == (
        "Batcher\n"
        "└─ Zipper\n"
        "   ├─ Mapper\n"
        "   │  └─ Forker #1\n"
        "   │     └─ Shuffler\n"
        "   │        └─ IterableWrapper\n"
        "   ├─ Forker #1\n"
        "   └─ Concater\n"
        "      ├─ Forker #1\n"
        "      └─ IterableWrapper"
    )


def bursts(n):
    """Quick as a whole, and late with every 16th."""
    for i in range(n):
        if i % 16 == 15:
            time.sleep(0.02)
        yield i


def test_a_buffer_that_was_chosen_is_in_the_table():
    def read(i):
        time.sleep(0.003)
        return i

    pipe = IterableWrapper(bursts(160), deepcopy=False).prefetch("auto")
    for i in pipe:
        read(i)
    size = re.match(r"chose buffer_size=(\d+): \d+ of 1[56]\d elements were waited", pipe.choice())[
        1
    ]
    assert int(size) >= 4 and pipe.choice().endswith(", and it was full at other times")
    with watch(pipe) as times:
        pass
    assert str(times).splitlines()[-1] == f"Prefetcher: {pipe.choice()}"


def test_the_rule_of_choosing():
    tuned = Tuned("buffer_size")
    for waiting in (0, 0, 1, 0):  # never full: nothing would change
        tuned.took(waiting)
    assert tuned.size == 2
    for waiting in (2, 0, 0, 4, 1, 0):  # full, then empty: twice
        tuned.took(waiting)
    assert tuned.size == 8 and str(tuned) == (
        "chose buffer_size=8: 5 of 10 elements were waited for, and it was full at other times"
    )
    for _ in range(30):
        tuned.took(tuned.size)
        tuned.took(0)
    assert tuned.size == 1024


def test_what_is_said_of_a_slow_source_and_of_a_slow_reader():
    tuned = Tuned("buffer_size")
    for _ in range(12):
        tuned.took(0)
    assert str(tuned) == (
        "chose buffer_size=2: 11 of 12 elements were waited for; the source is slower than what "
        "reads it, whatever the buffer"
    )
    tuned = Tuned("buffer_size")
    for waiting in (0, 2, 2, 1, 2, 2):
        tuned.took(waiting)
    assert str(tuned) == "chose buffer_size=2: 0 of 6 elements were waited for"
    pipe = IterableWrapper(range(12)).map(slow).prefetch("auto")
    assert list(pipe) == list(range(12)) and pipe.choice().startswith("chose buffer_size=")


def test_sizes_are_checked():
    assert IterableWrapper([]).prefetch(3).choice() == "buffer_size=3 was given"
    for size in (0, "never"):
        with pytest.raises(ValueError, match="to be a positive integer, or 'auto'"):
            IterableWrapper([]).prefetch(size)


@pytest.mark.parametrize("backend", ["process", "thread"])
def test_workers_have_graphs_of_their_own(backend):
    pipe = IterableWrapper(range(6)).sharding_filter().map(abs)
    with watch(pipe) as times:
        loader = DataLoader(pipe, num_workers=2, worker_backend=backend, collate_fn=list)
        assert sorted(sum(loader, [])) == list(range(6))
        copy.deepcopy(pipe)
    assert [stage.elements for stage in times.stages] == [0, 0, 0]
