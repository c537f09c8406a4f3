"""Nodes: what they hand out, and the same rest from every state."""

import io
import os
import random
import re
import threading
import time

import pytest

import flambeau as fb
from flambeau.utils.data import DataLoader, DistributedSampler, RandomSampler, nodes
from flambeau.utils.data.datapipes import iter as pipes
from flambeau.utils.data.nodes import (
    BaseNode,
    Batcher,
    CSVReader,
    Cycler,
    Filter,
    Header,
    IterableWrapper,
    Loader,
    Mapper,
    MapStyleWrapper,
    MultiNodeWeightedSampler,
    ParallelMapper,
    PinMemory,
    Prefetcher,
    SamplerWrapper,
    Stateful,
    StopCriteria,
    Unbatcher,
)


def numbers(n=10):
    return IterableWrapper(range(n))


def square(n):
    return n * n


def slow_square(n):
    time.sleep(0.002 if n % 3 else 0.0)
    return n * n


class Knowing:
    """An iterable with a state that keeps changing under whoever holds it."""

    def __init__(self):
        self.seen = []

    def __iter__(self):
        while len(self.seen) < 9:
            self.seen.append(len(self.seen))
            yield self.seen[-1]
        self.seen.clear()

    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state):
        self.seen = list(state["seen"])


def weighted(criterion=StopCriteria.CYCLE_UNTIL_ALL_DATASETS_EXHAUSTED, **options):
    sources = {"a": IterableWrapper("abcdef"), "n": numbers(4), "x": IterableWrapper("xy")}
    weights = {"a": 0.5, "n": 0.3, "x": 0.2}
    return MultiNodeWeightedSampler(sources, weights, criterion, seed=3, **options)


def pinned(node):
    if fb.cuda.is_available():
        return PinMemory(node)
    with pytest.warns(UserWarning, match="no accelerator is found"):
        return PinMemory(node)


NODES = {
    "numbers": numbers,
    "knowing": lambda: IterableWrapper(Knowing()),
    "pipe": lambda: IterableWrapper(pipes.IterableWrapper(range(9)).shuffle().batch(2)),
    "loader": lambda: Mapper(
        IterableWrapper(DataLoader(range(9), 2, shuffle=True)), fb.Tensor.tolist
    ),
    "shuffled": lambda: SamplerWrapper(RandomSampler(range(9))),
    "shuffled by one": lambda: SamplerWrapper(RandomSampler(range(9), generator=fb.Generator())),
    "distributed": lambda: SamplerWrapper(DistributedSampler(range(9), 2, 1)),
    "samples": lambda: MapStyleWrapper("abcdefghi", RandomSampler(range(9))),
    "batches": lambda: Batcher(numbers(), 3),
    "all batches": lambda: Batcher(numbers(), 3, drop_last=False),
    "elements": lambda: Unbatcher(IterableWrapper(["ab", "", "cde", "f", ""])),
    "again": lambda: Unbatcher(Batcher(IterableWrapper(Knowing()), 2, drop_last=False)),
    "mapped": lambda: Mapper(numbers(), square),
    "filtered": lambda: Filter(numbers(), lambda n: n % 3),
    "first": lambda: Header(numbers(), 4),
    "cycled": lambda: Cycler(numbers(3), 3),
    "for ever": lambda: Header(Cycler(IterableWrapper(Knowing())), 20),
    "weighted": weighted,
    "weighted, first": lambda: weighted(StopCriteria.FIRST_DATASET_EXHAUSTED),
    "weighted, all": lambda: weighted(StopCriteria.ALL_DATASETS_EXHAUSTED),
    "weighted, ever": lambda: Header(weighted(StopCriteria.CYCLE_FOREVER), 30),
    "prefetched": lambda: Prefetcher(IterableWrapper(Knowing()), 3),
    "prefetched, rare": lambda: Prefetcher(numbers(), 3, snapshot_frequency=4),
    "threads": lambda: ParallelMapper(numbers(), slow_square, 2),
    "threads, rare": lambda: ParallelMapper(numbers(), slow_square, 2, snapshot_frequency=4),
    "threads, batches": lambda: ParallelMapper(numbers(), square, 2, prebatch=3),
    "none": lambda: ParallelMapper(numbers(), square, 0),
    "processes": lambda: ParallelMapper(numbers(6), square, 2, method="process"),
    "pinned": lambda: pinned(Prefetcher(Batcher(numbers(), 2), 2)),
    "many": lambda: Prefetcher(
        Batcher(
            ParallelMapper(
                Filter(SamplerWrapper(RandomSampler(range(12))), lambda n: n != 5), slow_square, 2
            ),
            2,
            drop_last=False,
        ),
        2,
    ),
}


def saved(state):
    file = io.BytesIO()
    fb.save(state, file)
    file.seek(0)
    return fb.load(file, weights_only=True)


def stops(loader, passes):
    elements, found = [], [(0, loader.state_dict(), fb.get_rng_state())]
    for _ in range(passes):
        for element in loader:
            elements.append(element)
            found.append((len(elements), loader.state_dict(), fb.get_rng_state()))
        found.append((len(elements), loader.state_dict(), fb.get_rng_state()))
    return elements, found


@pytest.mark.parametrize("name", NODES)
def test_the_same_rest_from_every_state(name):
    fb.manual_seed(1)
    expected, found = stops(Loader(NODES[name]()), 2)
    assert len(expected) >= 6
    for where, state, generator in found:
        fb.manual_seed(99)
        loader = Loader(NODES[name]())
        loader.load_state_dict(saved(state))
        fb.set_rng_state(generator)
        got = []
        while len(got) < len(expected) - where:
            got += list(loader)
        assert got[: len(expected) - where] == expected[where:], where


def test_every_node_has_a_state_test_an_error_test_and_an_example():
    """Whatever is added to the package is in the table above, and in that of options or below."""
    public = {name: getattr(nodes, name) for name in nodes.__all__}
    kinds = {
        n for n, each in public.items() if isinstance(each, type) and issubclass(each, BaseNode)
    }
    kinds -= {"BaseNode", "CSVReader"}  # the base; test_rows_of_a_file
    made = {name for make in NODES.values() for name in _named(make.__code__)}
    made |= _named(weighted.__code__) | _named(pinned.__code__) | _named(numbers.__code__)
    assert kinds | {"MapStyleWrapper"} <= made
    with open(__file__) as file:
        text = file.read()
    failing = "".join(re.findall(r"pytest.raises|parametrize\([\s\S]*?\n\)", text))
    assert all(f"{name}(" in failing for name in kinds)
    assert all(">>> " in public[name].__doc__ for name in kinds | {"Loader", "MapStyleWrapper"})


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Unbatcher(numbers(3)), TypeError, "object of type 'int' has no len"),
        (lambda: IterableWrapper(5), TypeError, "'int' object is not iterable"),
        (lambda: SamplerWrapper(5), TypeError, "'int' object is not iterable"),
        (lambda: Mapper(numbers(3), lambda n: 1 // n), ZeroDivisionError, "division"),
        (lambda: Filter(numbers(3), lambda n: 1 // n), ZeroDivisionError, "division"),
        (lambda: MapStyleWrapper("ab", [5]), IndexError, "out of range"),
    ],
)
def test_errors_of_elements(make, error, message):
    with pytest.raises(error, match=message):
        next(make())


def _named(code):
    """Names in a function and in those that it has inside."""
    inner = [each for each in code.co_consts if hasattr(each, "co_names")]
    return set(code.co_names).union(*map(_named, inner))


def test_values():
    assert list(Filter(numbers(5), lambda n: n % 2)) == [1, 3]
    assert list(Batcher(numbers(5), 2)) == [[0, 1], [2, 3]]
    assert list(Unbatcher(IterableWrapper(["ab", "", "c"]))) == ["a", "b", "c"]
    assert list(Cycler(IterableWrapper([]))) == []
    for node in (
        Prefetcher(Mapper(numbers(), square), 4),
        ParallelMapper(numbers(), slow_square, 2),
        ParallelMapper(numbers(), slow_square, 2, max_concurrent=1),
        ParallelMapper(numbers(), square, 2, method="process", prebatch=4),
        ParallelMapper(numbers(), square, 2, method="process", multiprocessing_context="fork"),
    ):
        for _ in range(2):
            assert list(node) == [n * n for n in range(10)]
            node.reset()
    assert isinstance(Loader(numbers()), Stateful)


def test_a_function_of_a_closure_goes_to_processes():
    shift = 7
    node = ParallelMapper(numbers(), lambda n: n + shift, 2, method="process")
    assert list(node) == list(range(7, 17))


@pytest.mark.parametrize("method", ["thread", "process"])
def test_in_any_order_each_once_from_every_state(method):
    def make(snapshot_frequency=3):
        return ParallelMapper(
            numbers(), slow_square, 2, False, method, snapshot_frequency=snapshot_frequency
        )

    node = make()
    handed, states = [], [node.state_dict()]
    for element in node:
        handed.append(element)
        states.append(node.state_dict())
    assert sorted(handed) == [n * n for n in range(10)]
    for where, state in enumerate(states):
        other = make()
        other.reset(saved(state))
        one = next(other, None)
        again = make(2)
        again.reset(saved(other.state_dict()))
        rest = [] if one is None else [one, *again]
        assert sorted(handed[:where] + rest) == sorted(handed)


@pytest.mark.parametrize(
    ("criterion", "passes"),
    [
        (
            StopCriteria.CYCLE_UNTIL_ALL_DATASETS_EXHAUSTED,
            ["a0bcxyxdefy1x2abcyxyxde3y", "01abxcd2e30f1abc2defya"],
        ),
        (StopCriteria.ALL_DATASETS_EXHAUSTED, ["a0bcxydef123", "01abxcd2e3fy"]),
        (StopCriteria.FIRST_DATASET_EXHAUSTED, ["a0bcxy", "01abxcd2e3"]),
    ],
)
def test_draws_by_weight_are_those_of_torchdata(criterion, passes):
    loader = Loader(weighted(criterion))
    assert ["".join(map(str, loader)) for _ in range(2)] == passes


def test_draws_of_a_rank():
    loader = Loader(weighted(rank=1, world_size=2))
    first, second = ("".join(map(str, loader)) for _ in range(2))
    assert (first, second) == ("a0bc1defxa2b30123cde01yf2a3", "a0bc123defxa0b12ycde")


def test_the_end_of_a_pass_that_was_put_back():
    loader = Loader(numbers(3))
    list(loader)
    state = loader.state_dict()
    for restart, expected in ((True, [0, 1, 2]), (False, [])):
        other = Loader(numbers(3), restart_on_stop_iteration=restart)
        other.load_state_dict(state)
        assert list(other) == expected
    loader = Loader(IterableWrapper([None, 1]))
    loader.load_state_dict(loader.state_dict())
    iterator = iter(loader)
    before = loader.state_dict()
    assert next(iterator) is None
    loader.load_state_dict(before)
    assert list(loader) == [None, 1]


def test_errors_keep_their_class_and_the_rest_goes_on():
    def fragile(n):
        if n == 2:
            raise KeyError("two")
        return n

    for method in ("thread", "process"):
        node = ParallelMapper(numbers(5), fragile, 2, method=method)
        got = [next(node), next(node)]
        with pytest.raises(KeyError, match="two") as caught:
            next(node)
        assert method == "thread" or "fragile" in caught.value.__notes__[0]
        assert got + list(node) == [0, 1, 3, 4]

    def ends():
        yield 1
        raise OSError("the source")

    for node in (
        Prefetcher(IterableWrapper(ends()), 2),
        ParallelMapper(IterableWrapper(ends()), square, 1),
    ):
        assert next(node) == 1
        with pytest.raises(OSError, match="the source"):
            next(node)
        assert list(node) == []


def test_a_process_that_dies_is_an_error():
    node = ParallelMapper(numbers(5), lambda n: os._exit(3) if n == 1 else n, 1, method="process")
    assert next(node) == 0
    with pytest.raises(RuntimeError, match="worker process .*exit code 3.* exited unexpectedly"):
        next(node)


def test_threads_end_with_the_node():
    before = set(threading.enumerate())  # others' may end meanwhile
    node = Prefetcher(ParallelMapper(Cycler(numbers()), square, 2), 2)
    next(node)
    threads = set(threading.enumerate()) - before
    assert len(threads) == 4
    del node
    for thread in threads:
        thread.join(5)
    assert not any(thread.is_alive() for thread in threads)


def test_rows_of_a_file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('name;text\na;"two\nlines"\nb;one\n\nc;\n')

    def reader(**options):
        return CSVReader(str(path), delimiter=";", **options)

    rows = [["a", "two\nlines"], ["b", "one"], ["c", ""]]
    assert list(reader(has_header=True)) == rows
    assert list(reader()) == [["name", "text"], *rows]
    node = reader(has_header=True, return_dict=True)
    assert next(node) == {"name": "a", "text": "two\nlines"}
    state = node.state_dict()
    assert [row["name"] for row in node] == ["b", "c"] and node._file is None
    node.reset(state)
    assert next(node) == {"name": "b", "text": "one"}
    with pytest.raises(ValueError, match="expected a state without a header"):
        reader().reset(state)
    with pytest.raises(ValueError, match="return_dict=True requires has_header=True"):
        reader(return_dict=True)
    node.close()


def test_a_node_of_ones_own_says_what_it_forgot():
    class NoInit(BaseNode):
        def __init__(self):
            pass

    class NoReset(BaseNode):
        def reset(self, initial_state=None):
            pass

    with pytest.raises(NotImplementedError, match=r"expected super\(\).__init__\(\) to be called"):
        next(NoInit())
    with pytest.raises(NotImplementedError, match=r"expected super\(\).reset\(initial_state\) to"):
        NoReset().state_dict()
    with pytest.raises(NotImplementedError):
        next(BaseNode())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Batcher(numbers(), 0), "expected a positive batch_size, got 0"),
        (lambda: Header(numbers(), -1), "expected n >= 0"),
        (lambda: Cycler(numbers(), 0), "expected max_cycles >= 1"),
        (lambda: Prefetcher(numbers(), 0), "expected a positive prefetch_factor"),
        (lambda: Prefetcher(numbers(), 1, 0), "expected a positive snapshot_frequency"),
        (lambda: PinMemory(numbers(), "tpu"), "expected pin_memory_device '' or 'cuda'"),
        (lambda: ParallelMapper(numbers(), square, 1, method="fiber"), "expected method 'thread'"),
        (lambda: ParallelMapper(numbers(), square, -1), "expected num_workers >= 0"),
        (lambda: ParallelMapper(numbers(), square, 2, max_concurrent=3), "max_concurrent from 1 t"),
        (lambda: ParallelMapper(numbers(), square, 2, prebatch=0), "expected a positive prebatch"),
        (lambda: weighted("NEVER"), "expected stop_criteria to be one of CYCLE_UNTIL"),
        (lambda: weighted(rank=2, world_size=2), r"rank in the interval \[0, 1\], got 2"),
        (lambda: MultiNodeWeightedSampler({"a": numbers()}, {"b": 1.0}), "with the names of sour"),
        (lambda: MultiNodeWeightedSampler({"a": numbers()}, {"a": 0.0}), "to be positive floats"),
    ],
)
def test_options_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_state_of_a_longer_source():
    node = IterableWrapper(range(5))
    list(node)
    with pytest.raises(RuntimeError, match="expected at least 5 elements, which the state has han"):
        IterableWrapper(range(2)).reset(node.state_dict())


def test_a_source_that_draws_is_drawn_again():
    class Shuffled:
        def __iter__(self):
            order = list(range(8))
            random.shuffle(order)
            return iter(order)

    node = IterableWrapper(Shuffled())
    random.seed(5)
    got = [next(node) for _ in range(3)]
    state = node.state_dict()
    rest = list(node)
    random.seed(77)
    expected = random.random()
    random.seed(77)
    other = IterableWrapper(Shuffled())
    other.reset(state)
    assert list(other) == rest and sorted(got + rest) == list(range(8))
    assert random.random() == expected
