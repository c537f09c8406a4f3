"""A loader that is saved anywhere and put back gives the same rest, and the same next pass."""
# ruff: noqa: NPY002 (NumPy's global generator is part of a worker's state)

import io
import random

import numpy as np
import pytest

import flambeau as fb
from flambeau.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    get_worker_info,
)
from flambeau.utils.data._utils.snapshot import read_global, write_global
from flambeau.utils.data.datapipes.iter import IterableWrapper
from flambeau.utils.data.stateful_dataloader import StatefulDataLoader

N = 11
MODES = {
    "calling": {},
    "process": {"num_workers": 2},
    "thread": {"num_workers": 2, "worker_backend": "thread"},
}
KEPT = {
    "process, kept": {**MODES["process"], "persistent_workers": True},
    "thread, kept": {**MODES["thread"], "persistent_workers": True},
}


def draw():
    """Random numbers that a sample may use: of the worker where the global ones are shared."""
    info = get_worker_info()
    if info is None or info.worker_method == "multiprocessing":
        return random.randrange(1000), fb.randint(0, 1000, ()).item(), np.random.randint(1000)
    rng = info.rng
    return (
        rng.random_generator.randrange(1000),
        fb.randint(0, 1000, (), generator=rng.torch_generator).item(),
        int(rng.numpy_generator.integers(1000)),
    )


class Map(Dataset):
    def __len__(self):
        return N

    def __getitem__(self, i):
        return i, *draw()


def share(n):
    info = get_worker_info()
    return range(info.id, n, info.num_workers) if info else range(n)


class Stream(IterableDataset):
    """Workers end at different times, and draw a permutation at their start."""

    def __iter__(self):
        mine = [i for i in share(N + 4) if i < N or i % 2]
        order = list(range(len(mine)))
        random.Random(draw()[0]).shuffle(order)
        for i in order:
            yield mine[i], *draw()


class Knowing(IterableDataset):
    """A stream with a state of its own, which reads nothing again."""

    def __init__(self):
        self.at, self.passes, self.read = 0, 0, []

    def __iter__(self):
        while self.at < N:
            self.at += 1
            info = get_worker_info()
            if not info or self.at % info.num_workers == info.id:
                yield self.at, self.passes, *draw()
        self.at, self.passes = 0, self.passes + 1

    def state_dict(self):
        return {"at": self.at, "passes": self.passes}

    def load_state_dict(self, state):
        self.at, self.passes = state["at"], state["passes"]


class Walk:
    def __init__(self):
        self.at = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.at == N:
            raise StopIteration
        self.at += 1
        info = get_worker_info()
        return self.at, info.id if info else -1, *draw()

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class Walked(IterableDataset):
    """A stream whose iterator has the state."""

    def __iter__(self):
        return Walk()


def pipe():
    numbers = IterableWrapper(range(17)).shuffle(buffer_size=6).sharding_filter()
    return numbers.map(lambda i: (i, *draw()))


class Own(RandomSampler):
    """A sampler that knows its state: the permutation and where it is in it."""

    def __init__(self, data):
        super().__init__(data)
        self.order, self.at = [], 0

    def __iter__(self):
        if not self.order:
            self.order = fb.randperm(N).tolist()
        while self.at < N:
            self.at += 1
            yield self.order[self.at - 1]
        self.order, self.at = [], 0

    def state_dict(self):
        return {"order": self.order, "at": self.at}

    def load_state_dict(self, state):
        self.order, self.at = state["order"], state["at"]


def saved(state):
    """The state after a file, which is what a program keeps."""
    file = io.BytesIO()
    fb.save(state, file)
    file.seek(0)
    return fb.load(file, weights_only=True)


def plain(batches):
    return [b.tolist() if isinstance(b, fb.Tensor) else b for b in batches]


def reference(loader, passes):
    """Batches of some passes, and at each stop (where, state, global generators)."""
    batches, stops = [], [(0, loader.state_dict(), read_global())]
    for _ in range(passes):
        iterator = iter(loader)
        stops.append((len(batches), loader.state_dict(), read_global()))
        for batch in iterator:
            batches += plain([batch])
            stops.append((len(batches), loader.state_dict(), read_global()))
        stops.append((len(batches), loader.state_dict(), read_global()))
    return batches, stops


def check(make, passes=2, every=1, alike=list):
    fb.manual_seed(4)
    random.seed(4)
    np.random.seed(4)
    expected, stops = reference(make(), passes)
    for number, (where, state, states) in enumerate(stops):
        if number % every:
            continue
        write_global(states)
        loader = make()
        loader.load_state_dict(saved(state))
        write_global(states)
        got = []
        while len(got) < len(expected) - where:
            got += plain(loader)
        rest = expected[where:]
        assert alike(got[: len(rest)]) == alike(rest), (number, state["position"])


def samples(batch_size=2, **options):
    return {"batch_size": batch_size, "collate_fn": list, **options}


@pytest.mark.parametrize("mode", MODES | KEPT)
@pytest.mark.parametrize("data", [Map, Stream, Knowing, Walked, pipe])
def test_every_dataset_stopped_at_every_batch(mode, data):
    options = samples(**(MODES | KEPT)[mode])
    shuffle = {"shuffle": True} if data in (Map, pipe) else {}
    check(lambda: DataLoader(data(), **options, **shuffle), every=1 if mode == "calling" else 3)


@pytest.mark.parametrize("mode", MODES | KEPT)
@pytest.mark.parametrize(
    "order",
    [
        lambda: {"shuffle": True, "generator": fb.Generator()},
        lambda: {"sampler": RandomSampler(range(N), True, 40, fb.Generator())},
        lambda: {"sampler": RandomSampler(range(N), num_samples=2 * N + 3)},
        lambda: {"sampler": DistributedSampler(range(N), 2, 1, seed=3)},
        lambda: {"sampler": Own(range(N))},
        lambda: {"batch_sampler": BatchSampler(Own(range(N)), 3, True), "batch_size": 1},
    ],
)
def test_every_order_stopped_at_every_batch(mode, order):
    options = (MODES | KEPT)[mode]
    check(
        lambda: DataLoader(Map(), **{**samples(), **options, **order()}),
        every=1 if mode == "calling" else 3,
    )


@pytest.mark.parametrize("every", [1, 3, 40])
@pytest.mark.parametrize("data", [Map, Knowing, Walked])
def test_snapshots_far_apart(every, data):
    options = samples(1, num_workers=2, persistent_workers=True)
    check(
        lambda: StatefulDataLoader(data(), **options, snapshot_every_n_steps=every),
        every=4,
    )


@pytest.mark.parametrize("mode", ["process", "thread, kept"])
def test_in_any_order_each_batch_once_more(mode):
    options = samples(1, **(MODES | KEPT)[mode], in_order=False, shuffle=True)
    check(lambda: DataLoader(Map(), **options), passes=1, every=2, alike=sorted)
    check(
        lambda: DataLoader(pipe(), **options | {"shuffle": True}), passes=1, every=4, alike=sorted
    )


def test_a_pass_that_was_broken_off_is_saved():
    for options in MODES.values():
        loader = DataLoader(range(8), batch_size=2, **options)
        for batch in loader:
            if batch[0] == 2:
                break
        other = DataLoader(range(8), batch_size=2, **options)
        other.load_state_dict(loader.state_dict())
        again = other.state_dict()
        assert plain(other) == [[4, 5], [6, 7]]
        loader.load_state_dict(again)
        assert plain(loader) == [[4, 5], [6, 7]] and len(plain(loader)) == 4


def test_keys_are_passed_over_without_loading():
    loaded = []

    class Noted(Map):
        def __getitem__(self, i):
            loaded.append(i)
            return i

    loader = DataLoader(Noted())
    batches = iter(loader)
    for _ in range(6):
        next(batches)
    other = DataLoader(Noted())
    other.load_state_dict(loader.state_dict())
    loaded.clear()
    assert len(list(other)) == 5 and loaded == list(range(6, 11))


def test_a_failed_batch_is_past():
    class Fragile(Map):
        def __getitem__(self, i):
            if i == 1:
                raise ValueError("first")
            return i

    for options in MODES.values():
        loader = DataLoader(Fragile(), batch_size=None, **options)
        batches = iter(loader)
        assert next(batches) == 0
        with pytest.raises(ValueError, match="first"):
            next(batches)
        other = DataLoader(Fragile(), batch_size=None, **options)
        other.load_state_dict(loader.state_dict())
        assert list(other) == list(range(2, N))


@pytest.mark.filterwarnings("ignore:This DataLoader will create 3")
def test_another_number_of_workers_for_a_dataset_with_keys():
    counts = [0, 3, 2, 1, 0]
    generator = fb.Generator().manual_seed(3)
    expected = plain(DataLoader(range(N), 2, True, generator=generator))
    state, got = None, []
    for workers in counts:
        loader = DataLoader(range(N), 2, True, num_workers=workers, generator=fb.Generator())
        if state is None:
            loader.generator.manual_seed(3)
        else:
            loader.load_state_dict(state)
        got.append(next(iter(loader)).tolist())
        state = loader.state_dict()
    assert got == expected[: len(counts)]


def test_states_that_do_not_fit():
    loader = DataLoader(range(9), 2)
    next(iter(loader))
    state = loader.state_dict()
    with pytest.raises(TypeError, match="expected a state that DataLoader.state_dict returned, g"):
        loader.load_state_dict({"epoch": 1})
    with pytest.raises(RuntimeError, match="batch_size=3 as in this loader, got batch_size=2"):
        DataLoader(range(9), 3).load_state_dict(state)
    with pytest.raises(RuntimeError, match="over a iterable dataset, got one over a dataset of"):
        DataLoader(Stream()).load_state_dict(state)
    stream = DataLoader(Stream(), collate_fn=list)
    next(iter(stream))
    with pytest.raises(RuntimeError, match="expected a state with num_workers=1 as in this"):
        DataLoader(Stream(), num_workers=1).load_state_dict(stream.state_dict())
    with pytest.raises(ValueError, match="snapshot_every_n_steps option should be a positive"):
        StatefulDataLoader(range(3), snapshot_every_n_steps=0)


def test_a_state_is_not_changed_by_going_on():
    loader = DataLoader(Knowing(), 1, collate_fn=list)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    expected = repr(state)
    other = DataLoader(Knowing(), 1, collate_fn=list)
    other.load_state_dict(state)
    list(other)
    list(batches)
    assert repr(state) == expected
