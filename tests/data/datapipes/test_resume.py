"""A graph that is stopped at every element and put back gives the same rest."""

import json
import pickle

import pytest

import flambeau as fb
from flambeau.utils.data import IterDataPipe
from flambeau.utils.data.datapipes.iter import IterableWrapper, SampleMultiplexer
from flambeau.utils.data.datapipes.map import SequenceWrapper


def n(count=9):
    return IterableWrapper(range(count))


class OwnIterator(IterDataPipe):
    def __init__(self, source):
        self.source = source

    def __iter__(self):
        return iter([x * 2 for x in self.source])


def demuxed():
    even, odd = n().shuffle().demux(2, lambda x: x % 2)
    return even.zip_longest(odd)


def forked():
    a, b = n().shuffle(buffer_size=3).fork(2)
    return a.zip(b.shuffle(buffer_size=2))


GRAPHS = {
    "source": n,
    "shuffle": lambda: n().shuffle(),
    "small buffer": lambda: n().shuffle(buffer_size=3).map(lambda x: x + 1),
    "two shuffles": lambda: n().shuffle().batch(2).shuffle(buffer_size=2).unbatch(),
    "zip of shuffles": lambda: n().shuffle().zip(n().shuffle(buffer_size=4)),
    "rounds": lambda: n(3).shuffle().cycle(3).enumerate(),
    "rounds of all": lambda: n(3).shuffle().batch(2).in_batch_shuffle().cycle(2).repeat(2),
    "by weight": lambda: SampleMultiplexer({n(4).shuffle(): 1, n(5): 2}, seed=3),
    "by weight, in rounds": lambda: _again(SampleMultiplexer({n(2): 1, n(3): 2})),
    "shuffled_flatmap": lambda: n(4).shuffled_flatmap(lambda x: [x] * x, buffer_size=2),
    "bucketbatch": lambda: n().bucketbatch(2, batch_num=2, bucket_num=2, sort_key=sorted),
    "groupby": lambda: n().shuffle().groupby(lambda x: x % 3, group_size=2),
    "demux": demuxed,
    "fork": forked,
    "map style": lambda: SequenceWrapper(range(9)).shuffle().filter(lambda x: x % 4 != 0),
    "iterator of a user": lambda: OwnIterator(n(5).shuffle()),
    "mux": lambda: n().shuffle().mux_longest(n(4).shuffle()),
    "threads": lambda: n().shuffle().threadpool_map(lambda x: x + 1, max_workers=2).prefetch(2),
    "random split": lambda: n().shuffle().random_split({0: 5, 1: 4}, seed=1, target=0),
    "cached": lambda: n().in_memory_cache().shuffle(),
    "sharded": lambda: _shared(n().shuffle().sharding_filter()),
}


def _again(pipe):
    return pipe.cycle(2)


def _shared(pipe):
    pipe.apply_sharding(2, 1)
    return pipe


def through_json(state):
    return json.loads(json.dumps(state))


@pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS)
def test_stopped_at_every_element(make):
    fb.manual_seed(11)
    total = len(list(make()))
    for stop in range(total + 1):
        pipe = make()
        list(pipe)  # an earlier pass leaves no trace
        elements = iter(pipe)
        passed = [next(elements) for _ in range(stop)]
        if not stop:
            begun = pipe.state_dict()
            assert begun["yielded"] in (0, total)
            continue
        state, generator = through_json(pipe.state_dict()), fb.get_rng_state()
        assert state["yielded"] == stop
        rest = list(elements)
        other = make()
        other.load_state_dict(state)
        fb.set_rng_state(generator)
        assert list(other) == rest, f"after {passed}"
        assert len(list(other)) == total, "the next pass is whole"


def test_a_state_of_a_state():
    fb.manual_seed(0)
    make = GRAPHS["two shuffles"]
    pipe = make()
    whole = iter(pipe)
    next(whole)
    before = pipe.state_dict()
    for _ in range(8):
        expected = next(whole)
        state = pipe.state_dict()
        other = make()
        other.load_state_dict(before)
        assert other.state_dict() == before
        assert next(iter(pickle.loads(pickle.dumps(other)))) == expected
        elements = iter(other)
        assert next(elements) == expected
        assert other.state_dict() == state
        before = state


def test_the_seeds_of_the_pass_do_not_matter_to_others():
    """Whatever was drawn since, and wherever the graph is put back."""
    pipe = n(50).shuffle().batch(3)
    elements = iter(pipe)
    next(elements)
    other = n(50).shuffle().batch(3)
    other.load_state_dict(pipe.state_dict())
    fb.manual_seed(1)
    assert list(other) == list(elements)


def test_a_seed_that_is_set_is_kept():
    pipe = n().shuffle().set_seed(4)
    other = n().shuffle()
    other.load_state_dict(pipe.state_dict())
    assert list(other) == list(pipe)


def test_errors():
    state = n().shuffle().state_dict()
    with pytest.raises(RuntimeError, match="expected a state of the pipes Batcher <- IterableWra"):
        n().batch(2).load_state_dict(state)
    pipe = n(5)
    elements = iter(pipe)
    for _ in range(5):
        next(elements)
    short = n(3)
    short.load_state_dict(pipe.state_dict())
    with pytest.raises(RuntimeError, match="expected at least 5 elements, got 3"):
        list(short)
    many = n(1).shuffle().cycle(5000)
    elements = iter(many)
    for _ in range(4500):
        next(elements)
    with pytest.raises(RuntimeError, match="more than 4096 passes"):
        many.state_dict()
