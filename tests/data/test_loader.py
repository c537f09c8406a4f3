"""DataLoader in one process and with workers: batches, order, options, failures."""

import gc
import multiprocessing
import os

import pytest

import flambeau as fb
from flambeau.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    TensorDataset,
    get_worker_info,
)

WORKERS = pytest.mark.parametrize("workers", [0, 2])


class Stream(IterableDataset):
    """0 .. n-1, split among workers."""

    def __init__(self, n, promised=None):
        self.n, self.promised = n, promised

    def __iter__(self):
        info = get_worker_info()
        start, step = (info.id, info.num_workers) if info else (0, 1)
        return iter(range(start, self.n, step))

    def __len__(self):
        return self.promised


class Fragile(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        if i == 3:
            raise KeyError("no third\nsample")
        return i


def rows(n=7):
    return TensorDataset(fb.arange(3 * n).reshape(n, 3), fb.arange(n))


@WORKERS
def test_batches_in_order(workers):
    loader = DataLoader(rows(), batch_size=3, num_workers=workers)
    xs, ys = zip(*loader, strict=True)
    assert [tuple(x.shape) for x in xs] == [(3, 3), (3, 3), (1, 3)] and len(loader) == 3
    assert fb.cat(ys).tolist() == list(range(7))
    assert fb.cat(xs).flatten().tolist() == list(range(21))
    dropped = DataLoader(rows(), batch_size=3, drop_last=True, num_workers=workers)
    assert len(list(dropped)) == len(dropped) == 2


@WORKERS
def test_without_batching(workers):
    assert list(DataLoader(range(3), batch_size=None, num_workers=workers)) == [0, 1, 2]


@WORKERS
def test_custom_collate_and_batch_sampler(workers):
    loader = DataLoader(
        range(5), batch_sampler=[[4, 0], [2]], collate_fn=tuple, num_workers=workers
    )
    assert list(loader) == [(4, 0), (2,)] and loader.batch_size is None


@WORKERS
def test_iterable(workers):
    got = [b.tolist() for b in DataLoader(Stream(10), batch_size=3, num_workers=workers)]
    assert sorted(sum(got, [])) == list(range(10))
    if not workers:
        assert got == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
        assert [b.tolist() for b in DataLoader(Stream(4), batch_size=3, drop_last=True)] == [
            [0, 1, 2]
        ]


def test_rows_taken_at_once_equal_rows_taken_singly():
    class Plain(TensorDataset):
        """A subclass, for which no shortcut is taken."""

    x = fb.rand(9, 2, 3).transpose(1, 2)
    for kw in ({}, {"shuffle": True}):
        fb.manual_seed(3)
        fast = [b[0].tolist() for b in DataLoader(TensorDataset(x), batch_size=4, **kw)]
        fb.manual_seed(3)
        slow = [b[0].tolist() for b in DataLoader(Plain(x), batch_size=4, **kw)]
        assert fast == slow
    negative = DataLoader(TensorDataset(x), batch_sampler=[[-1, 0]])
    assert fb.equal(next(iter(negative))[0], fb.stack([x[-1], x[0]]))


def test_workers_do_not_change_the_shuffle():
    orders = []
    for workers in (0, 2):
        fb.manual_seed(11)
        loader = DataLoader(range(20), shuffle=True, batch_size=4, num_workers=workers)
        orders.append([[b.tolist() for b in loader] for _ in range(2)] + [fb.rand(1).item()])
    assert orders[0] == orders[1]


def test_worker_facts_and_seeds():
    class Info(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            info = get_worker_info()
            assert info.dataset is self and info.num_workers == 2
            return info.id, info.seed - info.id, fb.initial_seed() - info.seed

    started = multiprocessing.get_context().Queue()
    loader = DataLoader(Info(), num_workers=2, worker_init_fn=started.put)
    ids, bases, differences = zip(*[[v.item() for v in row] for row in loader], strict=True)
    assert ids == (0, 1, 0, 1) and len(set(bases)) == 1 and set(differences) == {0}
    assert sorted([started.get(timeout=10), started.get(timeout=10)]) == [0, 1]


def test_persistent_workers_start_over_after_a_broken_off_pass():
    loader = DataLoader(range(9), batch_size=2, num_workers=2, persistent_workers=True)
    first = iter(loader)
    pids = {p.pid for p in first._workers}
    next(first)
    assert [b.tolist() for b in loader] == [[0, 1], [2, 3], [4, 5], [6, 7], [8]]
    assert [b.tolist() for b in loader] == [[0, 1], [2, 3], [4, 5], [6, 7], [8]]
    assert {p.pid for p in loader._iterator._workers} == pids


def test_out_of_order_gives_every_batch_once():
    loader = DataLoader(range(9), batch_size=2, num_workers=2, in_order=False)
    assert sorted(sum((b.tolist() for b in loader), [])) == list(range(9))


def test_failure_in_a_worker_keeps_its_class_and_traceback():
    loader = DataLoader(Fragile(), batch_size=2, num_workers=2)
    it = iter(loader)
    assert next(it).tolist() == [0, 1]
    with pytest.raises(KeyError, match="DataLoader worker process 1") as caught:
        next(it)
    assert "no third" in str(caught.value) and "__getitem__" in str(caught.value)


def test_dead_worker_and_timeout():
    class Dies(Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, i):
            import os
            import time

            if i == 0:
                time.sleep(60)
            os._exit(3)

    with pytest.raises(RuntimeError, match="timed out after 0.2 seconds"):
        next(iter(DataLoader(Dies(), num_workers=1, timeout=0.2)))
    loader = DataLoader(Dies(), sampler=[1], num_workers=1, timeout=5)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        next(iter(loader))


def test_workers_end_with_their_iterator():
    it = iter(DataLoader(range(100), num_workers=2))
    next(it)
    workers = list(it._workers)
    assert all(p.is_alive() for p in workers)
    del it
    assert not any(p.is_alive() for p in workers)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"timeout": -1}, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, "prefetch_factor option could only be specified"),
        ({"prefetch_factor": -2, "num_workers": 1}, "prefetch_factor option should be non-neg"),
        ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
        ({"sampler": [0], "shuffle": True}, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[0]], "batch_size": 2}, "batch_sampler option is mutually exclusive"),
        ({"batch_sampler": [[0]], "drop_last": True}, "batch_sampler option is mutually exclusi"),
        ({"batch_size": None, "drop_last": True}, "disables auto-batching"),
        ({"batch_size": 0}, "batch_size should be a positive integer"),
        ({"multiprocessing_context": "fork"}, "can only be used with multi-process loading"),
        ({"multiprocessing_context": "x", "num_workers": 1}, "a valid start method"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        DataLoader(range(4), **options)


@pytest.mark.parametrize("options", [{"shuffle": True}, {"sampler": [0]}, {"batch_sampler": [[0]]}])
def test_streams_refuse_an_order(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"expected unspecified {name} option"):
        DataLoader(Stream(3), **options)


def test_wrong_context_type():
    with pytest.raises(TypeError, match="valid context object"):
        DataLoader(range(3), num_workers=1, multiprocessing_context=object())


def test_fixed_attributes():
    loader = DataLoader(range(3))
    with pytest.raises(ValueError, match="batch_size attribute should not be set after DataLoad"):
        loader.batch_size = 3
    loader.collate_fn = list
    assert list(loader) == [[0], [1], [2]]


def test_length_of_streams():
    assert len(DataLoader(Stream(9, promised=9), batch_size=4)) == 3
    assert len(DataLoader(Stream(9, promised=9), batch_size=4, drop_last=True)) == 2
    loader = DataLoader(Stream(3, promised=2), batch_size=None)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="reported to be 2 .* but 3 samples"):
        assert list(loader) == [0, 1, 2]


def test_warnings_about_workers_and_pinning():
    with pytest.warns(UserWarning, match="will create 4000 worker processes"):
        DataLoader(range(3), num_workers=4000)
    if not fb.cuda.is_available():
        with pytest.warns(UserWarning, match="no accelerator is found"):
            assert len(list(DataLoader(range(3), pin_memory=True))) == 3


def test_iterators_are_not_pickled():
    import pickle

    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        pickle.dumps(iter(DataLoader(range(3))))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("persistent", [False, True])
def test_a_fork_leaves_the_workers_of_its_parent_alone(persistent):
    loader = DataLoader(rows(40), batch_size=2, num_workers=2, persistent_workers=persistent)
    batches = iter(loader)
    first = next(batches)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            try:
                list(batches)
            except RuntimeError as error:
                status = 0 if "belongs to the process" in str(error) else 2
            if len(list(loader)) != 20:
                status = 3
            batches._finalizer()
            del batches, loader
            gc.collect()
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    rest = list(batches)
    assert fb.equal(fb.cat([first[0], *(b[0] for b in rest)]), rows(40)[:][0])
