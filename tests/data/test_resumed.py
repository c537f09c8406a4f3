"""Random stops of pipes, nodes and loaders: some trials of the tool, and what it has found."""

import random

import pytest

import flambeau as fb
from flambeau.utils.data import DataLoader, IterableDataset, RandomSampler
from flambeau.utils.data._utils.snapshot import read_global, write_global
from flambeau.utils.data.datapipes.iter import IterableWrapper, SampleMultiplexer
from flambeau.utils.data.nodes import Batcher, Header, Loader, Prefetcher, SamplerWrapper, Unbatcher
from flambeau.utils.data.nodes import IterableWrapper as Source
from tools import _resume_draw, resumed_data


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(4))
def test_random_stops(part, capfd):
    wrong = resumed_data.main(count=15, seed=7, first=15 * part)
    assert wrong == 0, capfd.readouterr().out


@pytest.mark.filterwarnings("ignore")
def test_in_a_fresh_process():
    """One trial that goes on where nothing is known but the seed."""
    seed = 5
    expected = resumed_data.whole(seed)
    stop = resumed_data.Stop(full=0, taken=2, ended=False, fresh=True, hop=None)
    before, saved = resumed_data.stopped(seed, stop)
    most = sum(map(len, expected)) - 2
    after = resumed_data._elsewhere(seed, saved, None, most)
    assert [before[0] + after[0], *after[1:]][:3] == expected


def test_the_tool_notices_a_difference(monkeypatch):
    """Elements that are lost are told of."""
    monkeypatch.setattr(_resume_draw, "KINDS", dict.fromkeys(_resume_draw.KINDS, _lossy))
    assert any("expected" in resumed_data.run(seed) for seed in range(8))


class _Lossy:
    """Forgets where it was."""

    def __iter__(self):
        return iter(range(6))

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


def _lossy(rng):
    return _Lossy(), "lossy"


@pytest.mark.filterwarnings("ignore")
def test_the_same_seed_draws_the_same():
    words = {_resume_draw.subject(seed)[1].partition(":")[0] for seed in range(20)}
    assert words == {"pipe", "node", "loader"}
    for seed in range(6):
        fb.manual_seed(1)
        random.seed(1)
        first = resumed_data.whole(seed)
        assert resumed_data.whole(seed) == first


# what it found -----------------------------------------------------------------------------------


def shuffled():
    return IterableWrapper(range(12)).shuffle()


def test_a_state_after_the_end_of_a_pass_of_pipes_is_of_the_next():
    fb.manual_seed(1)
    pipe = shuffled()
    list(pipe)
    state, states = pipe.state_dict(), read_global()
    expected = list(pipe)
    other = shuffled()
    other.load_state_dict(state)
    write_global(states)
    assert list(other) == expected != []
    elements = iter(pipe)  # all are taken, and the end is not seen
    for _ in range(12):
        next(elements)
    other.load_state_dict(pipe.state_dict())
    assert list(other) == [] and len(list(other)) == 12


def weighted():
    return SampleMultiplexer(
        {IterableWrapper(range(9)): 1, IterableWrapper("abcdefghi"): 2}, seed=1
    )


def cached():
    return shuffled().in_memory_cache().map(str)


@pytest.mark.parametrize("make", [weighted, cached])
@pytest.mark.parametrize(
    "options",
    [None, {}, {"num_workers": 1, "worker_backend": "thread", "persistent_workers": True}],
)
@pytest.mark.parametrize("taken", [0, 5])
def test_what_pipes_take_from_pass_to_pass(make, options, taken):
    def subject():
        return make() if options is None else DataLoader(make(), batch_size=None, **options)

    fb.manual_seed(2)
    one = subject()
    list(one)
    elements = iter(one)
    for _ in range(taken):
        next(elements)
    state, states = one.state_dict(), read_global()
    rest, following = list(elements), list(one)
    other = subject()
    other.load_state_dict(state)
    write_global(states)
    assert [list(other), list(other)] == [rest, following]


SOURCES = {
    "pipe": lambda: Source(shuffled()),
    "loader": lambda: Source(DataLoader(range(12), None, True)),
    "sampler": lambda: SamplerWrapper(RandomSampler(range(12))),
    "lazily drawn": lambda: Source(Lazily()),
}


@pytest.mark.parametrize("options", [{"shuffle": True}, {}])
def test_what_is_drawn_between_the_start_and_the_first_batch(options):
    """Samplers and streams draw when they are first asked."""

    def make():
        data = range(12) if options else Stream()
        return DataLoader(data, 2, collate_fn=list, **options)

    loader = make()
    batches = iter(loader)
    fb.rand(3)
    random.random()
    next(batches)
    state, rest = loader.state_dict(), list(batches)
    other = make()
    other.load_state_dict(state)
    assert list(other) == rest


class Stream(IterableDataset):
    def __iter__(self):
        yield from Lazily()


class Lazily:
    """Draws when its first element is asked for, not when its iterator is made."""

    def __iter__(self):
        yield from fb.randperm(12).tolist()


AROUND = {
    "batches": lambda source: Unbatcher(Batcher(source, 4)),
    "ahead": lambda source: Prefetcher(source, 3, snapshot_frequency=5),
    "cut off": lambda source: Header(Unbatcher(Batcher(source, 4)), 7),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("taken", [0, 2, 6])
def test_elements_that_are_read_again_are_drawn_again(source, around, taken):
    def make():
        return Loader(AROUND[around](SOURCES[source]()))

    fb.manual_seed(3)
    random.seed(3)
    loader = make()
    first = list(loader)
    elements = iter(loader)
    passed = [next(elements) for _ in range(taken)]
    state, states = loader.state_dict(), read_global()
    rest = list(elements)
    assert passed + rest != first
    other = make()
    other.load_state_dict(state)
    write_global(states)
    assert list(other) == rest


def test_a_source_is_drawn_where_its_pass_begins():
    """Not in a thread, beside which the program draws as well."""
    orders = []
    for _ in range(2):
        fb.manual_seed(4)
        loader = iter(Loader(Prefetcher(Source(shuffled()), 2)))
        drawn = fb.randint(0, 10**9, ()).item()
        orders.append((drawn, list(loader)))
    assert orders[0] == orders[1]


def test_the_end_of_a_sampler_with_a_generator_of_its_own():
    """It draws a last permutation there, of which it takes nothing."""

    def make():
        return Loader(SamplerWrapper(RandomSampler(range(9), generator=fb.Generator())))

    loader = make()
    list(loader)
    state, expected = loader.state_dict(), list(loader)
    other = make()
    other.load_state_dict(state)
    assert list(other) == expected


def test_a_pass_that_was_put_back_and_never_read_is_over_with_the_next():
    fb.manual_seed(6)
    loader = Loader(Header(SOURCES["pipe"](), 7))
    list(loader)
    state, states = loader.state_dict(), read_global()
    expected = list(loader)
    other = Loader(Header(SOURCES["pipe"](), 7))
    other.load_state_dict(state)
    write_global(states)
    assert list(other) == expected


def test_an_ended_source_does_not_begin_again():
    """Not even one whose own state is by then of the next pass."""
    for make in (SOURCES["pipe"], SOURCES["loader"]):
        node = make()
        list(node)
        other = make()
        other.reset(node.state_dict())
        before = read_global()["torch"]
        assert list(other) == []
        assert fb.equal(read_global()["torch"], before)


def test_an_error_of_the_first_element_is_raised_when_it_is_asked_for():
    def fails():
        raise OSError("no such file")
        yield

    node = Source(Failing(fails))
    node.reset()
    with pytest.raises(OSError, match="no such file"):
        next(node)


class Failing:
    def __init__(self, make):
        self.make = make

    def __iter__(self):
        return self.make()
