"""The base of pipes: chaining, one iterator at a time, names, pickling, graphs, errors."""

import copy
import functools
import pickle
import threading
import traceback
import weakref

import pytest

import flambeau as fb
from flambeau.utils.data import (
    DataChunk,
    DFIterDataPipe,
    IterDataPipe,
    MapDataPipe,
    argument_validation,
    functional_datapipe,
    graph,
    graph_settings,
    guaranteed_datapipes_determinism,
    non_deterministic,
    runtime_validation,
    runtime_validation_disabled,
)
from flambeau.utils.data.datapipes import map as mapped
from flambeau.utils.data.datapipes._typing import matches
from flambeau.utils.data.datapipes.iter import IterableWrapper, Mapper
from flambeau.utils.data.datapipes.utils import snapshot
from flambeau.utils.data.datapipes.utils._drawing import edges


def add_one(x):
    return x + 1


class Generating(IterDataPipe):
    """A pipe whose `__iter__` is a generator, which counts resets."""

    def __init__(self, n):
        self.n = n
        self.resets = 0

    def __iter__(self):
        yield from range(self.n)

    def reset(self):
        self.resets += 1


class Returning(Generating):
    def __iter__(self):
        return iter(range(self.n))


class ItsOwn(Generating):
    """A pipe that is its own iterator."""

    def __iter__(self):
        return self

    def reset(self):
        super().reset()
        self.at = -1

    def __next__(self):
        self.at += 1
        if self.at >= self.n:
            raise StopIteration
        return self.at


class Inheriting(ItsOwn):
    __iter__ = IterDataPipe.__iter__


KINDS = [Generating, Returning, ItsOwn, lambda n: IterableWrapper(range(n)).map(add_one).map(_less)]


def _less(x):
    return x - 1


@pytest.mark.parametrize("make", KINDS)
def test_a_pipe_is_lazy_and_can_be_read_again(make):
    pipe = make(4)
    for _ in range(3):
        assert list(pipe) == [0, 1, 2, 3]
    if isinstance(pipe, Generating):
        assert pipe.resets == 3


@pytest.mark.parametrize("make", [*KINDS, Inheriting])
def test_a_second_iterator_invalidates_the_first(make):
    pipe = make(5)
    first = iter(pipe)
    assert next(first) == 0
    second = iter(pipe)
    assert next(second) == 0
    with pytest.raises(RuntimeError, match="This iterator has been invalidated because another"):
        next(first)
    assert list(second) == [1, 2, 3, 4]


def test_an_iterator_of_a_generator_begins_with_its_first_element():
    pipe = Generating(3)
    first, second = iter(pipe), iter(pipe)
    assert pipe.resets == 0
    assert next(first) == 0 and pipe.resets == 1
    assert list(second) == [0, 1, 2]
    with pytest.raises(RuntimeError, match="invalidated"):
        next(first)


def test_a_loop_that_was_left_is_no_obstacle():
    pipe = IterableWrapper(range(5)).map(add_one)
    for x in pipe:
        if x == 2:
            break
    assert list(pipe) == [1, 2, 3, 4, 5]


def test_iter_of_the_base_class_is_part_of_the_pass():
    class Twice(Mapper):
        def __iter__(self):
            for x in super().__iter__():
                yield x, x

    assert list(Twice(IterableWrapper(range(2)), add_one)) == [(1, 1), (2, 2)]


def test_attributes_of_a_users_iterator_are_reachable():
    class Counted:
        def __init__(self):
            self.seen = 0

        def __next__(self):
            self.seen += 1
            return self.seen

    class Own(IterDataPipe):
        def __iter__(self):
            return Counted()

    iterator = iter(Own())
    assert next(iterator) == 1 and iterator.seen == 1


@pytest.mark.parametrize("make", [Generating, Returning, ItsOwn])
def test_the_number_of_elements_is_counted(make):
    pipe = make(5)
    assert pipe._number_of_samples_yielded == 0
    iterator = iter(pipe)
    next(iterator), next(iterator)
    assert pipe._number_of_samples_yielded == 2
    list(pipe)
    assert pipe._number_of_samples_yielded == 5


def test_nothing_keeps_an_iterator_alive():
    pipe = IterableWrapper(range(3)).map(add_one)
    iterator = iter(pipe)
    next(iterator)
    gone = weakref.ref(iterator)
    del iterator
    assert gone() is None


def test_functional_names(monkeypatch):
    for kind in (IterDataPipe, MapDataPipe):
        monkeypatch.setattr(kind, "functions", dict(kind.functions))

    @functional_datapipe("tripled")
    class Tripled(IterDataPipe):
        """Three times."""

        def __init__(self, source, times=3):
            self.source, self.times = source, times

        def __iter__(self):
            for x in self.source:
                yield x * self.times

    pipe = IterableWrapper([1, 2])
    assert list(pipe.tripled()) == [3, 6] and list(pipe.tripled(times=4)) == [4, 8]
    assert pipe.tripled.__doc__ == "Three times."
    assert "tripled" in dir(pipe) and "tripled" in IterDataPipe.functions
    with pytest.raises(AttributeError, match="'IterableWrapperIterDataPipe' object has no attr"):
        pipe.never_registered  # noqa: B018
    assert not hasattr(mapped.SequenceWrapper("a"), "tripled")

    class Other(IterDataPipe):
        pass

    with pytest.raises(Exception, match="Unable to add DataPipe function name tripled"):
        functional_datapipe("tripled")(Other)
    functional_datapipe("tripled")(type("Tripled", (Other,), {"__init__": lambda s, x: None}))
    assert not isinstance(pipe.tripled(), Tripled), "a cell that is run again"
    with pytest.raises(TypeError, match="can only decorate IterDataPipe"):
        functional_datapipe("tripled")(int)
    with pytest.raises(NotImplementedError, match="data frames are not supported"):
        functional_datapipe("framed", enable_df_api_tracing=True)(Other)
    IterDataPipe.register_function("total", lambda pipe: sum(pipe))
    assert pipe.total() == 3


def test_data_frames_are_refused():
    assert issubclass(DFIterDataPipe, IterDataPipe)
    with pytest.raises(NotImplementedError, match="data frames are not supported"):
        DFIterDataPipe()


def test_data_chunk():
    chunk = DataChunk(iter([1, 2]))
    assert chunk == [1, 2] and chunk.items == [1, 2] and list(chunk.raw_iterator()) == [1, 2]
    assert pickle.loads(pickle.dumps(chunk)) == chunk


def test_printing():
    pipe = IterableWrapper([1]).map(add_one)
    assert str(pipe) == repr(pipe) == "MapperIterDataPipe"


# pickling --------------------------------------------------------------------------------------


@pytest.mark.parametrize("copied", [lambda p: pickle.loads(pickle.dumps(p)), copy.deepcopy])
def test_pipes_are_pickled_in_the_middle_of_a_pass(copied):
    pipe = Generating(5).map(add_one).shuffle().batch(2)
    list(pipe)
    next(iter(pipe))
    other = copied(pipe)
    assert sorted(x for batch in other for x in batch) == [1, 2, 3, 4, 5]
    a, b = Generating(3).fork(2)
    first = iter(a)
    next(first)
    other = copied(b.zip(a))
    assert list(other) == [(0, 0), (1, 1), (2, 2)]


def test_a_pipe_that_pickles_itself_as_the_documentation_says():
    restored = pickle.loads(pickle.dumps(WithState(3)))
    assert list(restored) == [0, 1, 2] and restored._number_of_samples_yielded == 3


class WithState(Generating):
    def __getstate__(self):
        state = (self.n, self.resets, self._valid_iterator_id, self._number_of_samples_yielded)
        if IterDataPipe.getstate_hook is not None:
            return IterDataPipe.getstate_hook(state)
        return state

    def __setstate__(self, state):
        self.n, self.resets, self._valid_iterator_id, self._number_of_samples_yielded = state


def test_hooks_of_pickling():
    seen = []

    def stub(pipe):
        if isinstance(pipe, Mapper):
            raise NotImplementedError
        seen.append(type(pipe))
        return str, ()

    pipe = IterableWrapper([1]).map(add_one)
    IterDataPipe.set_reduce_ex_hook(stub)
    try:
        pickle.dumps(pipe)
        with pytest.raises(RuntimeError, match="override existing reduce_ex_hook"):
            IterDataPipe.set_reduce_ex_hook(stub)
    finally:
        IterDataPipe.set_reduce_ex_hook(None)
    assert seen == [IterableWrapper]
    IterDataPipe.set_getstate_hook(lambda state: seen.append(state) or {})
    try:
        pickle.dumps(WithState(2))
        with pytest.raises(RuntimeError, match="override existing getstate_hook"):
            IterDataPipe.set_getstate_hook(len)
    finally:
        IterDataPipe.set_getstate_hook(None)
    assert seen[-1][0] == 2


# graphs ----------------------------------------------------------------------------------------


def names(pipes):
    return [str(pipe).replace("IterDataPipe", "").replace("MapDataPipe", "") for pipe in pipes]


def test_traverse():
    source = IterableWrapper(range(4))
    a, b = source.fork(2)
    end = a.map(lambda x: x).zip(b.shuffle())
    found = graph.traverse_dps(end)
    assert list(found) == [id(end)]
    pipes = graph_settings.get_all_graph_pipes(found)
    expected = ["Zipper", "Mapper", "_ChildDataPipe", "_Forker", "IterableWrapper", "Shuffler"]
    assert names(pipes) == [*expected, "_ChildDataPipe"]
    assert pipes[4] is source
    with pytest.raises(RuntimeError, match="Expected `IterDataPipe` or `MapDataPipe`, but"):
        graph.traverse_dps([source])
    with pytest.warns(FutureWarning, match="Please use `traverse_dps`"):
        assert graph.traverse(end, only_datapipe=True) == found


class Holding(IterDataPipe):
    def __init__(self, held):
        self.held = held


class Box:
    def __init__(self, inside):
        self.inside = inside


def test_where_pipes_are_looked_for():
    x, y = IterableWrapper([1]), IterableWrapper([2])

    def sources(held):
        [(_, below)] = graph.traverse_dps(Holding(held)).values()
        return [pipe for pipe, _ in below.values()]

    assert sources([x, (y, {"k": x})]) == [x, y]
    assert sources({x: 1, "y": [y]}) == [x, y]
    assert sources([Box([x])]) == [x]
    assert sources([functools.partial(add_one, y)]) == [y]
    assert sources(Box(x)) == [] and sources(list(range(10))) == []
    with pytest.warns(FutureWarning):
        [(_, below)] = graph.traverse(Holding(Box(x))).values()
    assert [pipe for pipe, _ in below.values()] == [x]
    loop = Holding(None)
    loop.held = [loop, x]
    assert sources([loop]) == [loop]


def test_a_deep_graph_of_diamonds_is_walked_once():
    pipe = IterableWrapper(range(2))
    for _ in range(40):
        a, b = pipe.fork(2)
        pipe = a.zip(b)
    assert len(graph_settings.get_all_graph_pipes(graph.traverse_dps(pipe))) == 40 * 4 + 1
    graph_settings.apply_sharding(pipe, 2, 0)
    nodes, pairs = edges(pipe)
    assert len(nodes) == 40 * 2 + 1 and len(pairs) == 40 * 2


def test_settings_of_a_graph():
    pipe = IterableWrapper(range(10)).sharding_filter().shuffle()
    graph_settings.apply_sharding(pipe, 3, 1)
    graph_settings.apply_shuffle_settings(pipe, shuffle=False)
    assert list(pipe) == [1, 4, 7]
    assert graph_settings.apply_shuffle_settings(pipe) is pipe
    with pytest.raises(RuntimeError, match="Sharding twice on a single pipeline"):
        graph_settings.apply_sharding(pipe.sharding_filter(), 2, 0)
    both = (
        IterableWrapper(range(4)).sharding_filter().zip(IterableWrapper(range(4)).sharding_filter())
    )
    assert list(graph_settings.apply_sharding(both, 2, 1)) == [(1, 1), (3, 3)]
    with pytest.warns(UserWarning, match="does not contain a `Shuffler`"):
        shuffled = graph_settings.apply_shuffle_settings(Generating(5), shuffle=True)
    assert names([shuffled]) == ["Shuffler"] and sorted(shuffled) == [0, 1, 2, 3, 4]
    with pytest.warns(FutureWarning, match="apply_random_seed"):
        graph_settings.apply_shuffle_seed(shuffled, fb.Generator().manual_seed(0))


def test_a_users_own_sharding_with_two_arguments():
    class Own(Generating):
        def apply_sharding(self, instances, instance):
            self.given = instances, instance

    pipe = Own(3)
    graph_settings.apply_sharding(pipe.map(add_one), 4, 2)
    assert pipe.given == (4, 2)


def test_a_graph_is_put_back():
    pipe = IterableWrapper(range(10)).shuffle()
    whole = list(graph_settings.apply_random_seed(pipe, fb.Generator().manual_seed(3)))
    restore = snapshot._simple_graph_snapshot_restoration
    restore(pipe, 4, fb.Generator().manual_seed(3))
    with pytest.raises(RuntimeError, match="only restore simple snapshot"):
        restore(pipe, 4)
    assert list(pipe) == whole[4:]
    assert sorted(pipe) == list(range(10))
    with pytest.raises(RuntimeError, match="exceeds the number of samples available"):
        restore(pipe, 11)


# splitting -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "split",
    [
        lambda pipe: pipe.fork(2, buffer_size=4),
        lambda pipe: pipe.demux(2, lambda x: 0 if x >= 5 else 1, buffer_size=4),
        lambda pipe: pipe.round_robin_demux(2, buffer_size=4),
        lambda pipe: pipe.map(lambda x: (x, x)).unzip(2, buffer_size=4),
    ],
)
def test_an_overflow_is_one_of_all_children(split):
    a, b = split(IterableWrapper(range(20)))
    for pipe in (a, b):
        with pytest.raises(BufferError, match="buffer overflow, buffer size 4 is insufficient"):
            list(pipe)
    with pytest.warns(UserWarning, match="not exhausted"):
        assert next(iter(b)) in (0, 1), "a new generation begins from the start"


def test_unlimited_buffers_are_warned_of():
    with pytest.warns(UserWarning, match="Unlimited buffer size is set for `demux`"):
        a, b = IterableWrapper(range(3000)).demux(2, lambda x: x % 2, buffer_size=-1)
    assert len(list(a)) == len(list(b)) == 1500
    with pytest.warns(UserWarning, match="Unlimited buffer size is set for `fork`"):
        a, b = IterableWrapper(range(3000)).fork(2, buffer_size=-1)
    assert list(a) == list(b)


def test_generations_of_children():
    a, b = IterableWrapper(range(10)).fork(2)
    assert list(a) == list(b) == list(range(10))
    assert list(a) == list(b) == list(range(10)), "no warning: all had been read"
    list(a)
    with pytest.warns(UserWarning, match="Some child DataPipes are not exhausted"):
        assert list(a) == list(range(10))
    assert list(b) == list(range(10))
    of_a, of_b = iter(a), iter(b)
    next(of_a), next(of_b)
    with pytest.warns(UserWarning, match="not exhausted"):
        again = iter(a)
    for old in (of_a, of_b):
        with pytest.raises(RuntimeError, match="created from one of the ChildDataPipes of _Forker"):
            next(old)
    assert list(iter(b)) == list(again)


def test_a_child_that_is_left_holds_nothing():
    a, b = IterableWrapper(range(5000)).fork(2)
    elements = iter(a)
    other = iter(b)
    next(elements), next(other)
    del elements
    assert len(list(other)) == 4999


# checks ----------------------------------------------------------------------------------------


def test_determinism():
    @non_deterministic
    class Varying(Generating):
        pass

    @non_deterministic(lambda n: n > 1)
    class Sometimes(Generating):
        pass

    assert list(Varying(2)) == [0, 1] and isinstance(Varying(2), Varying)
    with guaranteed_datapipes_determinism():
        with pytest.raises(TypeError, match="Varying is non-deterministic, but you set"):
            Varying(2)
        with pytest.raises(TypeError, match="Sometimes is non-deterministic with the inputs"):
            Sometimes(2)
        assert list(Sometimes(1)) == [0]
        others = []
        thread = threading.Thread(target=lambda: others.append(Varying(1)))
        thread.start()
        thread.join()
        assert others, "another thread promises nothing"
    assert list(Sometimes(2)) == [0, 1]
    for wrong in (int, MapDataPipe):
        with pytest.raises(TypeError, match="Only `IterDataPipe` can be decorated"):
            non_deterministic(wrong)
    with pytest.raises(TypeError, match="can not be decorated"):
        non_deterministic(3)
    with pytest.raises(TypeError, match="Only `IterDataPipe` can be decorated"):
        non_deterministic(lambda: True)(int)
    with pytest.raises(TypeError, match="required to return a boolean"):
        non_deterministic(lambda n: n)(type("Wrong", (Generating,), {}))(1)


class Words(IterDataPipe[str]):
    def __iter__(self):
        yield "a"


def test_arguments_are_checked():
    class Takes(IterDataPipe):
        @argument_validation
        def __init__(self, source: IterDataPipe[int], name: str = "", *rest: int):
            self.source = source

    Takes(Generating(1), 3)  # of an unknown type, and not a pipe's argument
    with pytest.raises(TypeError, match="Expected argument 'source' as a IterDataPipe"):
        Takes([1])
    with pytest.raises(TypeError, match="as a subtype of hint int, but found str"):
        Takes(Words())


def test_elements_are_checked():
    from collections.abc import Iterator

    class Pairs(IterDataPipe[tuple[int, str]]):
        def __init__(self, elements):
            self.elements = elements

        @runtime_validation
        def __iter__(self) -> Iterator[tuple[int, str]]:
            yield from self.elements

    assert list(Pairs([(1, "a")])) == [(1, "a")]
    for wrong in ([(1, 2)], [(1, "a"), (1,)], [[1, "a"]]):
        with pytest.raises(RuntimeError, match="Expected an instance as subtype of"):
            list(Pairs(wrong))
        with runtime_validation_disabled():
            assert list(Pairs(wrong)) == wrong
    with pytest.raises(TypeError, match="Can not decorate function add_one"):
        runtime_validation(add_one)


@pytest.mark.parametrize(
    ("value", "hint", "fits"),
    [
        (1, int | str, True),
        (1.5, int | str, False),
        (1, float, True),
        ([1, "a"], list[int], False),
        ({"a": [1]}, dict[str, list[int]], True),
        ({"a": ["b"]}, dict[str, list[int]], False),
        ((1, 2, 3), tuple[int, ...], True),
        ((), tuple[()], True),
        (None, None, True),
        (2, None, False),
    ],
)
def test_hints(value, hint, fits):
    assert matches(value, hint) is fits


# errors ----------------------------------------------------------------------------------------


def divide(x):
    return 6 // x


def test_an_error_names_the_pipe_its_place_and_the_line():
    pipe = IterableWrapper([3, 0]).map(divide).batch(2).map(len)
    line = traceback.extract_stack()[-1].lineno - 1
    with pytest.raises(ZeroDivisionError) as caught:
        list(pipe)
    assert type(caught.value) is ZeroDivisionError
    assert str(caught.value) == "integer division or modulo by zero"
    [note] = caught.value.__notes__
    assert note.startswith("This exception is thrown by __iter__ of MapperIterDataPipe(")
    assert "fn=divide" in note
    assert "pipe 2 of 4: IterableWrapper -> [Mapper] -> Batcher -> Mapper" in note
    assert f"made at {__file__}:{line}" in note


def test_stop_iteration_of_a_function_is_an_error():
    def stops(x):
        raise StopIteration

    for pipe in (IterableWrapper([1]).map(stops), IterableWrapper([1]).filter(stops)):
        with pytest.raises(RuntimeError, match="generator raised StopIteration"):
            list(pipe)


def test_an_error_that_is_raised_again_elsewhere_gets_a_note_of_its_own():
    error = ValueError("one")

    def fails(x):
        raise error

    for _ in range(2):
        with pytest.raises(ValueError):
            list(IterableWrapper([1]).map(fails).batch(1))
    assert all("pipe 2 of 3" in note for note in error.__notes__)
