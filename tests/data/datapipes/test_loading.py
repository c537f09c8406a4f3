"""Pipes in a DataLoader: PyTorch's order for a seed, shares of workers and ranks."""

import sys

import pytest

import flambeau as fb
from flambeau import distributed
from flambeau.utils.data import DataLoader, IterableDataset, get_worker_info
from flambeau.utils.data.datapipes.iter import IterableWrapper, Zipper
from flambeau.utils.data.datapipes.map import SequenceWrapper


def add_one(x):
    return x + 1


def graph(n=12):
    pipe = IterableWrapper(range(n)).shuffle(buffer_size=5)
    return pipe.sharding_filter().map(add_one)


def batches(loader):
    return [batch.tolist() for batch in loader]


# What PyTorch 2.13 gives: two passes, and the numbers that the global generator draws afterwards.
WITHOUT = [
    [[5, 1, 6], [8, 3, 4], [7, 2, 9], [11, 12, 10]],
    [[4, 6, 1], [3, 9, 8], [11, 2, 10], [5, 7, 12]],
]
WITH = [
    [[5, 6, 3], [1, 8, 4], [7, 9, 12], [2, 11, 10]],
    [[1, 5, 7], [2, 4, 9], [3, 11, 8], [6, 12, 10]],
]


@pytest.mark.parametrize(
    ("options", "passes", "after"),
    [
        ({}, WITHOUT, [497, 683]),
        ({"num_workers": 2}, WITH, [756, 399]),
        ({"num_workers": 2, "persistent_workers": True}, WITH, [497, 683]),
        ({"num_workers": 2, "multiprocessing_context": "spawn"}, WITH, [756, 399]),
    ],
)
def test_the_order_of_a_seed_is_pytorchs(options, passes, after):
    fb.manual_seed(0)
    loader = DataLoader(graph(), batch_size=3, shuffle=True, **options)
    assert [batches(loader), batches(loader)] == passes
    assert fb.randint(0, 1000, (2,)).tolist() == after


def test_orders_of_pipes_alone():
    fb.manual_seed(0)
    shuffled = IterableWrapper(range(12)).shuffle(buffer_size=4)
    assert list(shuffled) == [1, 2, 0, 6, 5, 7, 3, 9, 8, 10, 4, 11]
    assert list(SequenceWrapper(range(8)).shuffle()) == [0, 4, 6, 5, 2, 7, 1, 3]


def test_each_shuffler_gets_a_seed_of_the_loaders_generator():
    fb.manual_seed(0)
    a = IterableWrapper(range(5)).shuffle()
    b = IterableWrapper(range(5)).shuffle(buffer_size=2)
    generator = fb.Generator().manual_seed(1)
    loader = DataLoader(a.zip(b), batch_size=None, generator=generator)
    assert list(loader) == [[4, 0], [1, 2], [0, 1], [3, 4], [2, 3]]
    assert fb.randint(0, 1000, (2,)).tolist() == [44, 239]


def test_shuffle_is_turned_off_and_on():
    pipe = graph()
    assert batches(DataLoader(pipe, batch_size=12, shuffle=False)) == [list(range(1, 13))]
    [on] = batches(DataLoader(pipe, batch_size=12, shuffle=True))
    assert on != sorted(on) == list(range(1, 13))


def test_a_shuffler_that_is_missing_is_really_added():
    with pytest.warns(UserWarning, match="does not contain a `Shuffler`. Adding one at the end"):
        loader = DataLoader(IterableWrapper(range(50)), batch_size=50, shuffle=True)
    [batch] = batches(loader)
    assert batch != sorted(batch) == list(range(50))


def test_other_streams_refuse_shuffle_as_before():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(3))

    with pytest.raises(ValueError, match="expected unspecified shuffle option"):
        DataLoader(Stream(), shuffle=True)


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_share_the_elements(workers):
    loader = DataLoader(graph(20), batch_size=4, num_workers=workers, shuffle=False)
    assert sorted(x for batch in loader for x in batch.tolist()) == list(range(1, 21))


def test_the_initialiser_of_a_user_sees_the_shares():
    pipe = IterableWrapper(range(6)).sharding_filter()
    loader = DataLoader(pipe, batch_size=None, num_workers=2, worker_init_fn=_mark)
    assert sorted(loader) == [[0, 0], [0, 2], [0, 4], [1, 1], [1, 3], [1, 5]]


def _mark(worker):
    info = get_worker_info()
    pipe = info.dataset
    assert (pipe.num_of_instances, pipe.instance_id) == (2, worker)
    pipe.source_datapipe = Zipper(
        IterableWrapper([worker] * 6, deepcopy=False), pipe.source_datapipe
    )


@pytest.mark.parametrize("workers", [0, 2])
def test_ranks_share_the_elements(workers, monkeypatch):
    """Each rank's share is dealt to its workers; no two get one element."""
    monkeypatch.setitem(sys.modules, "flambeau.distributed", _World)
    seen = []
    for rank in range(3):
        _World.rank = rank
        fb.manual_seed(5)
        loader = DataLoader(graph(30), batch_size=None, num_workers=workers, shuffle=True)
        share = list(loader)
        assert len(share) == 10
        seen += share
    assert sorted(seen) == list(range(1, 31))
    assert _World.broadcasts > 0


class _World:
    """Three ranks, of which one is looked at, with a seed that all got."""

    rank, broadcasts = 0, 0
    is_available = is_initialized = staticmethod(lambda: True)
    get_world_size = staticmethod(lambda: 3)
    get_rank = staticmethod(lambda: _World.rank)
    new_group = staticmethod(lambda backend: "group")

    @staticmethod
    def broadcast(tensor, src, group):
        assert src == 0 and group == "group"
        _World.broadcasts += 1


def test_a_world_of_one(tmp_path):
    distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/world", rank=0, world_size=1
    )
    try:
        assert len(list(DataLoader(graph(), batch_size=None))) == 12
    finally:
        distributed.destroy_process_group()


def test_map_style_pipes():
    pipe = SequenceWrapper(range(5)).map(add_one)
    assert batches(DataLoader(pipe, batch_size=2)) == [[1, 2], [3, 4], [5]]
    assert batches(DataLoader(pipe, batch_size=2, num_workers=2)) == [[1, 2], [3, 4], [5]]


def test_the_length_of_a_loader():
    pipe = IterableWrapper(range(10)).map(add_one)
    assert len(DataLoader(pipe, batch_size=4)) == 3


def test_an_error_in_a_worker_names_the_pipe():
    pipe = IterableWrapper([1, 0]).map(_inverse)
    with pytest.raises(ZeroDivisionError, match=r"IterableWrapper -> \[Mapper\]"):
        list(DataLoader(pipe, batch_size=1, num_workers=1))


def _inverse(x):
    return 1 / x
