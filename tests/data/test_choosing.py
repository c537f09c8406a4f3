"""Loaders that choose their workers and how far they read ahead, and say why."""

import time

import pytest

import flambeau as fb
from flambeau.utils.data import DataLoader, Dataset, IterableDataset
from flambeau.utils.data._utils import tuning
from flambeau.utils.data._utils.tuning import Tuned, WorkerChoice
from flambeau.utils.data.stateful_dataloader import StatefulDataLoader


def chosen(making, use, most=8, batches=None):
    choice = WorkerChoice(most)
    for _ in range(choice.needed):
        assert not choice.ready
        choice.note(making, use)
    assert choice.ready
    return choice.choose(batches), str(choice)


def test_the_rule():
    assert chosen(0.010, 0.004) == (
        3,
        "chose num_workers=3: a batch takes 10 ms to make and 4 ms to use; 8 processors",
    )
    assert chosen(0.010, 0.0)[0] == 8 and chosen(0.010, 0.0001)[0] == 8
    assert chosen(0.010, 0.050)[0] == 1 and chosen(0.010, 0.004, most=2)[0] == 2
    assert chosen(0.0002, 0.010) == (
        0,
        "chose num_workers=0: a batch takes 0.2 ms to make and 10 ms to use; workers would save "
        "nothing",
    )
    assert chosen(0.010, 0.010, batches=3) == (
        0,
        "chose num_workers=0: a batch takes 10 ms to make and 10 ms to use; a pass of 3 batches "
        "is too short for workers",
    )
    assert chosen(0.010, 0.010, batches=300)[0] == 1


def test_one_slow_batch_decides_nothing():
    choice = WorkerChoice(8)
    for making in (0.0001, 0.0001, 0.5, 0.0001, 0.0001, 0.0001, 0.5, 0.0001):
        choice.note(making, 0.01)
    assert choice.choose(None) == 0


class Slow(Dataset):
    def __init__(self, n=120, seconds=0.004):
        self.n, self.seconds = n, seconds

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        time.sleep(self.seconds)
        return i


class SlowStream(IterableDataset):
    def __iter__(self):
        for i in range(20):
            time.sleep(0.004)
            yield i


@pytest.fixture(autouse=True)
def two_processors(monkeypatch):
    monkeypatch.setattr("flambeau.utils.data.dataloader.processors", lambda: 2)


OPTIONS = [
    {"worker_backend": "thread"},
    {"worker_backend": "process", "persistent_workers": True, "timeout": 60},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_workers_come_in_the_middle_of_a_pass(options):
    """The order is that of the seed, whatever was chosen."""

    def passes(**more):
        fb.manual_seed(3)
        loader = DataLoader(Slow(), 2, shuffle=True, **more)
        return loader, [[batch.tolist() for batch in loader] for _ in range(2)]

    _, expected = passes(num_workers=2, **options)
    loader, found = passes(num_workers="auto", **options)
    assert found == expected and loader.num_workers in (1, 2)
    assert loader.choice().startswith(f"chose num_workers={loader.num_workers}: a batch takes ")
    assert loader.choice().endswith(" to use; 2 processors; prefetch_factor=2 was given")


def test_none_where_they_save_nothing():
    loader = DataLoader(Slow(20, 0.0), num_workers="auto", timeout=5, prefetch_factor=3)
    for _ in range(2):
        for _ in loader:
            time.sleep(0.002)
    assert loader.num_workers == 0
    assert loader.choice().startswith("chose num_workers=0: a batch takes ")


@pytest.mark.parametrize(
    ("data", "options"),
    [(SlowStream(), {}), (Slow(20), {"in_order": False})],
)
def test_what_is_dealt_by_their_number_has_them_from_the_next_pass(data, options, monkeypatch):
    monkeypatch.setattr(WorkerChoice, "start", 0.0)
    loader = DataLoader(data, num_workers="auto", worker_backend="thread", **options)
    assert len(list(loader)) == 20 and loader.num_workers == 0
    assert "chose num_workers=2" in loader.choice()
    list(loader)
    assert loader.num_workers == 2


@pytest.mark.parametrize("taken", [3, 30])
def test_a_state_before_and_after_the_choice(taken):
    def make():
        return StatefulDataLoader(
            Slow(), 2, shuffle=True, num_workers="auto", worker_backend="thread"
        )

    loader = make()
    batches = iter(loader)
    for _ in range(taken):
        next(batches)
    state = loader.state_dict()
    assert state["num_workers"] == (0 if taken == 3 else loader.num_workers)
    rest = [batch.tolist() for batch in batches]
    other = make()
    other.load_state_dict(state)
    assert [batch.tolist() for batch in other] == rest
    if taken == 30:
        assert "so many had the loader whose state was put back" in other.choice()


def test_before_anything_is_known_and_what_was_given():
    loader = DataLoader(range(3), num_workers="auto", prefetch_factor="auto")
    assert loader.choice() == (
        "num_workers=0 until 8 batches have been measured; chose prefetch_factor=2 to begin with"
    )
    assert DataLoader(range(3)).choice() == "num_workers=0 was given"
    loader = DataLoader(range(3), num_workers=1, prefetch_factor=4)
    assert loader.choice() == "num_workers=1 was given; prefetch_factor=4 was given"


def test_options_are_checked():
    with pytest.raises(ValueError, match="num_workers option should be a number or 'auto', but go"):
        DataLoader(range(3), num_workers="many")
    with pytest.raises(ValueError, match="prefetch_factor option should be a number or 'auto', b"):
        DataLoader(range(3), num_workers=1, prefetch_factor="far")
    with pytest.raises(ValueError, match="prefetch_factor option could only be specified in multi"):
        DataLoader(range(3), prefetch_factor="auto")
    with pytest.raises(ValueError, match="timeout option should be non-negative"):
        DataLoader(range(3), num_workers="auto", timeout=-1)


class Bursts(Dataset):
    """Quick as a whole, and late with every 16th."""

    def __len__(self):
        return 160

    def __getitem__(self, i):
        if i % 16 == 15:
            time.sleep(0.03)
        return i


@pytest.mark.parametrize("backend", ["thread", "process"])
def test_how_far_is_read_ahead(backend):
    options = {"num_workers": 1, "worker_backend": backend, "prefetch_factor": "auto"}
    loader = DataLoader(Bursts(), None, **options)
    found = []
    for i in loader:
        time.sleep(0.003)
        found.append(i)
    assert found == list(range(160))
    text = loader.choice().partition("; ")[2]
    assert loader._chooses_prefetch.size >= 4
    assert text.endswith(" of 160 batches were waited for, and it was full at other times")


def test_sizes_stop_growing():
    tuned = Tuned("prefetch_factor", most=4)
    grown = [tuned.took(waiting, 6) for waiting in (6, 0, 5, 0, 6, 0)]
    assert grown == [False, True, False, False, False, False] and tuned.size == 4


def test_processors_that_may_be_used(monkeypatch):
    assert tuning.processors() >= 1
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert tuning.processors() == 1
