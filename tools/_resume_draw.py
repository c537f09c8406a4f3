"""Draws what a trial of `resumed_data` stops: a chain of pipes or nodes, or a loader over data.

Owns the drawing. Invariant: the same seed makes the same object in any process, so that a state can
be put back where nothing but the seed is known. It knows nothing of stops.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator
from typing import Any

import flambeau as fb
from flambeau.utils import data
from flambeau.utils.data import get_worker_info, nodes
from flambeau.utils.data.datapipes.iter import IterableWrapper, SampleMultiplexer
from flambeau.utils.data.datapipes.map import SequenceWrapper
from flambeau.utils.data.stateful_dataloader import StatefulDataLoader

Rng = random.Random


def drawn(i: Any) -> Any:
    """A sample with random numbers of whoever loads it."""
    info = get_worker_info()
    if info is None or info.worker_method == "multiprocessing":
        return i, random.randrange(1000), int(fb.randint(0, 1000, ()).item())
    rng = info.rng
    assert rng is not None
    drawn = fb.randint(0, 1000, (), generator=rng.torch_generator)
    return i, rng.random_generator.randrange(1000), int(drawn.item())


class Keys(data.Dataset[Any]):
    """Samples by key."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        return drawn(i)


class Stream(data.IterableDataset[Any]):
    """Each worker's share in an order that it draws; the shares differ in length."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        mine = list(range(info.id, self.n, info.num_workers) if info else range(self.n))
        if info and info.id:
            mine = mine[: len(mine) // 2 + 1]
        random.Random(drawn(0)[1]).shuffle(mine)
        yield from map(drawn, mine)


class Knowing(data.IterableDataset[Any]):
    """A stream that knows its state, which changes from pass to pass."""

    def __init__(self, n: int) -> None:
        self.n, self.at, self.passes = n, 0, 0

    def __iter__(self) -> Iterator[Any]:
        while self.at < self.n:
            self.at += 1
            info = get_worker_info()
            if not info or self.at % info.num_workers == info.id:
                yield self.passes, *drawn(self.at)
        self.at, self.passes = 0, self.passes + 1

    def state_dict(self) -> dict[str, Any]:
        """Where it stands."""
        return {"at": self.at, "passes": self.passes}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on there."""
        self.at, self.passes = state["at"], state["passes"]


class _Walk:
    def __init__(self, n: int) -> None:
        self.n, self.at = n, 0

    def __iter__(self) -> _Walk:
        return self

    def __next__(self) -> Any:
        if self.at == self.n:
            raise StopIteration
        self.at += 1
        info = get_worker_info()
        return info.id if info else -1, *drawn(self.at)

    def state_dict(self) -> dict[str, Any]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.at = state["at"]


class Walked(data.IterableDataset[Any]):
    """A stream whose iterator knows its state."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __iter__(self) -> Iterator[Any]:
        return _Walk(self.n)


# pipes: each stage makes numbers of numbers ---------------------------------------------------


def _plus(by: int, n: Any) -> Any:
    return n + by


def _rest(by: int, n: Any) -> Any:
    return n % by


def _some(n: Any) -> bool:
    return bool(n % 5)


def _copies(n: Any) -> list[Any]:
    return [n] * (n % 3)


def _pair(n: Any) -> tuple[Any, Any]:
    return n, n + 100


def _row(n: Any) -> dict[str, Any]:
    return {"n": n}


def _of_row(row: Any) -> Any:
    return 1000 * row["i"] + row["n"]


def _first(pair: Any) -> Any:
    return pair[0]


def _second(pair: Any) -> Any:
    return pair[1]


def _sum(numbers: Any) -> Any:
    return sum(n for n in numbers if n is not None)


def _sizes(numbers: Any) -> Any:
    return 1 + numbers % 3


def _keep_first(a: Any, b: Any) -> Any:
    return a


def _tenfold(numbers: Any) -> Any:
    return [10 * n for n in numbers]


def _parts(pipes: Any, join: str) -> Any:
    return getattr(pipes[0], join)(*pipes[1:])


def _weighted(pipe: Any, rng: Rng) -> Any:
    other = IterableWrapper(range(200, 208)).shuffle()
    return SampleMultiplexer({pipe: 1, other: 2}, seed=rng.randrange(99))


Stage = Callable[[Any, Rng], Any]

STAGES: dict[str, Stage] = {
    "map": lambda p, r: p.map(functools.partial(_plus, r.randrange(9))),
    "filter": lambda p, r: p.filter(_some),
    "flatmap": lambda p, r: p.flatmap(_copies),
    "shuffled_flatmap": lambda p, r: p.shuffled_flatmap(_copies, buffer_size=r.randrange(1, 9)),
    "shuffle": lambda p, r: p.shuffle(buffer_size=r.choice([2, 5, 1000])),
    "batch": lambda p, r: p.batch(r.randrange(1, 5), drop_last=r.random() < 0.3).unbatch(),
    "sums": lambda p, r: p.batch(r.randrange(1, 4)).map(_sum),
    "in_batch_shuffle": lambda p, r: p.batch(r.randrange(2, 6)).in_batch_shuffle().unbatch(),
    "bucketbatch": lambda p, r: p.bucketbatch(2, batch_num=3, bucket_num=2).unbatch(),
    "max_token": lambda p, r: p.max_token_bucketize(6, len_fn=_sizes, buffer_size=5).unbatch(),
    "groupby": lambda p, r: p.groupby(functools.partial(_rest, 3), group_size=2).unbatch(),
    "enumerate": lambda p, r: p.enumerate(1).map(_sum),
    "add_index": lambda p, r: p.map(_row).add_index("i").map(_of_row),
    "header": lambda p, r: p.header(r.randrange(8, 30)),
    "repeat": lambda p, r: p.repeat(2),
    "cycle": lambda p, r: p.cycle(2),
    "concat": lambda p, r: p.concat(IterableWrapper(range(70, 75)).shuffle()),
    "mux": lambda p, r: p.mux_longest(IterableWrapper(range(70, 75)).shuffle()),
    "zip": lambda p, r: p.zip_longest(IterableWrapper(range(70, 77)).shuffle()).map(_sum),
    "by weight": _weighted,
    "fork": lambda p, r: _parts(p.fork(2, buffer_size=-1), r.choice(["concat", "mux"])),
    "fork shuffled": lambda p, r: _forked(p),
    "demux": lambda p, r: _parts(p.demux(3, functools.partial(_rest, 3), buffer_size=-1), "concat"),
    "round_robin": lambda p, r: _parts(p.round_robin_demux(2, buffer_size=-1), "mux_longest"),
    "unzip": lambda p, r: _parts(p.map(_pair).unzip(2, buffer_size=-1), "mux"),
    "split": lambda p, r: p.random_split(
        {"a": 0.6, "b": 0.4}, seed=3, total_length=5000, target="a"
    ),
    "cache": lambda p, r: p.in_memory_cache(),
    "join": lambda p, r: (
        p.enumerate()
        .zip_with_iter(IterableWrapper(range(999)), _first, _itself, merge_fn=_keep_first)
        .map(_second)
    ),
    "map_batches": lambda p, r: p.map_batches(_tenfold, r.randrange(1, 5)),
    "threads": lambda p, r: p.threadpool_map(functools.partial(_plus, 1), max_workers=2),
    "prefetch": lambda p, r: p.prefetch(r.choice([1, 3, "auto"])),
    "columns": lambda p, r: p.map(_row).batch(2).rows2columnar(["n"]).map(_column).unbatch(),
}


def _itself(n: Any) -> Any:
    return n


def _column(batch: Any) -> Any:
    return batch["n"]


def _forked(pipe: Any) -> Any:
    one, other = pipe.fork(2, buffer_size=-1)
    return one.zip(other.shuffle(buffer_size=3)).map(_sum)


def pipe(rng: Rng, shared: bool = False) -> tuple[Any, str]:
    """A chain of pipes over some numbers, and what it is made of.

    Args:
        rng: what to draw from.
        shared: with a `sharding_filter`, for a loader with workers.
    """
    n = rng.randrange(6, 30)
    chain: Any = IterableWrapper(range(n))
    words = [f"range({n})"]
    if rng.random() < 0.2:
        chain, words = SequenceWrapper(range(n)).shuffle(), [f"map style({n})"]
    place = rng.randrange(4) if shared else -1
    later = False  # seeds are drawn in the middle of a pass: not in a thread beside the program
    for number in range(rng.randrange(1, 6)):
        if number == place:
            chain = chain.sharding_filter()
            words.append("sharding_filter")
        word = rng.choice(list(STAGES))
        later |= word in ("cycle", "concat")
        if later and word in ("threads", "prefetch"):
            continue
        chain = STAGES[word](chain, rng)
        words.append(word)
    return chain.header(60), " ".join(words)


# nodes ----------------------------------------------------------------------------------------


def _square(n: Any) -> Any:
    return n * n % 1009


NODE_STAGES: dict[str, Stage] = {
    "map": lambda s, r: nodes.Mapper(s, _square),
    "threads": lambda s, r: nodes.ParallelMapper(
        s,
        _square,
        r.randrange(1, 3),
        method="thread",
        snapshot_frequency=r.randrange(1, 5),
        prebatch=r.choice([None, 2]),
    ),
    "process": lambda s, r: nodes.ParallelMapper(
        s, _square, 1, method="process", snapshot_frequency=r.randrange(1, 5)
    ),
    "prefetch": lambda s, r: nodes.Prefetcher(
        s, r.randrange(1, 5), snapshot_frequency=r.randrange(1, 5)
    ),
    "batch": lambda s, r: nodes.Unbatcher(
        nodes.Batcher(s, r.randrange(1, 5), drop_last=r.random() < 0.5)
    ),
    "filter": lambda s, r: nodes.Filter(s, _some),
    "header": lambda s, r: nodes.Header(s, r.randrange(5, 20)),
    "cycle": lambda s, r: nodes.Cycler(s, 2),
    "by weight": lambda s, r: nodes.MultiNodeWeightedSampler(
        {"s": s, "t": nodes.IterableWrapper(range(300, 307))},
        {"s": 0.7, "t": 0.3},
        r.choice(
            [
                nodes.StopCriteria.ALL_DATASETS_EXHAUSTED,
                nodes.StopCriteria.FIRST_DATASET_EXHAUSTED,
                nodes.StopCriteria.CYCLE_UNTIL_ALL_DATASETS_EXHAUSTED,
            ]
        ),
        seed=r.randrange(9),
    ),
}


def _node_source(rng: Rng) -> tuple[Any, str]:
    n = rng.randrange(6, 25)
    which = rng.choice(["range", "sampler", "own", "samples", "pipe", "loader", "distributed"])
    words = f"{which}({n})"
    if which == "range":
        return nodes.IterableWrapper(range(n)), words
    if which == "sampler":
        return nodes.SamplerWrapper(data.RandomSampler(range(n))), words
    if which == "own":  # nothing may break its passes off: how far threads have read would count
        sampler = data.RandomSampler(range(n), generator=fb.Generator())
        return nodes.SamplerWrapper(sampler), words
    if which == "distributed":
        return nodes.SamplerWrapper(data.DistributedSampler(range(n), 2, 1)), words
    if which == "samples":
        return nodes.MapStyleWrapper(range(100, 100 + n), data.RandomSampler(range(n))), words
    if which == "loader":
        keys: Any = range(n)
        loader: Any = data.DataLoader(keys, 2, shuffle=True, collate_fn=_sum)
        return nodes.IterableWrapper(loader), words
    chain = IterableWrapper(range(n)).shuffle().batch(2).unbatch()
    return nodes.IterableWrapper(chain), words


def node(rng: Rng) -> tuple[Any, str]:
    """A loader over a chain of nodes, and what it is made of."""
    chain, words = _node_source(rng)
    draws = words.startswith(("sampler", "samples", "pipe", "loader"))
    begins_again = False
    for _ in range(rng.randrange(1, 5)):
        word = rng.choice(["map", "filter", "header"] if begins_again else list(NODE_STAGES))
        # What is drawn of the program's generators later in a pass is drawn once more where
        # elements are read again: docs/nodes.md.
        begins_again |= draws and word in ("cycle", "by weight")
        if words.startswith("own") and word in ("header", "by weight"):
            continue
        if word == "process" and rng.random() < 0.7:  # they take long to start
            word = "threads"
        chain = NODE_STAGES[word](chain, rng)
        words += " " + word
    return nodes.Loader(nodes.Header(chain, 60)), words


# loaders --------------------------------------------------------------------------------------


def _order(rng: Rng, n: int) -> dict[str, Any]:
    """Options that say in which order keys come."""
    which = rng.choice(["none", "shuffle", "own", "replacement", "share", "batches"])
    keys = range(n)
    if which == "shuffle":
        return {"shuffle": True}
    if which == "own":
        return {"shuffle": True, "generator": fb.Generator().manual_seed(rng.randrange(99))}
    if which == "replacement":
        return {"sampler": data.RandomSampler(keys, True, rng.randrange(5, 30))}
    if which == "share":
        return {"sampler": data.DistributedSampler(keys, 2, rng.randrange(2), seed=3)}
    if which == "batches":
        return {"batch_sampler": data.BatchSampler(data.RandomSampler(keys), 3, False)}
    return {}


def loader(rng: Rng) -> tuple[Any, str]:
    """A loader over one of the datasets above, and how it was made."""
    n = rng.randrange(5, 26)
    kinds: list[Any] = [Keys, Keys, Stream, Knowing, Walked, "pipe", "pipe", "tensors"]
    kind = rng.choice(kinds)
    workers = rng.choice([0, 1, 2, 2])
    options: dict[str, Any] = {"batch_size": rng.choice([None, 1, 2, 5])}
    draws_later = False  # of the global generators, which worker threads share with the program
    words = f"{getattr(kind, '__name__', kind)}({n})"
    if kind == "pipe":
        chain, made = pipe(rng, shared=True)
        source: Any = chain.map(drawn)
        words = f"pipe[{made}]"
        options["shuffle"] = rng.choice([None, True, False])
        draws_later = "cycle" in made
    elif kind == "tensors":
        source = data.TensorDataset(fb.arange(n), fb.arange(n) * 3)
        options |= _order(rng, n)
    else:
        source = kind(n)
        options |= _order(rng, n) if kind is Keys else {}
    if "batch_sampler" in options:
        options["batch_size"] = 1
    elif options["batch_size"] is not None:
        options["drop_last"] = rng.random() < 0.3
    if kind != "tensors":
        options["collate_fn"] = list
    if workers:
        options |= {
            "num_workers": workers,
            "worker_backend": "process" if draws_later else rng.choice(["process", "thread"]),
            "prefetch_factor": rng.choice([1, 2, 4]),
            "persistent_workers": rng.random() < 0.4,
            "in_order": rng.random() < 0.8,
        }
    if rng.random() < 0.4:
        options["snapshot_every_n_steps"] = rng.choice([1, 2, 5])
        made_loader: Any = StatefulDataLoader(source, **options)
    else:
        made_loader = data.DataLoader(source, **options)
    return made_loader, f"{words} {options}"


KINDS: dict[str, Callable[[Rng], tuple[Any, str]]] = {
    "pipe": pipe,
    "node": node,
    "loader": loader,
}


def subject(seed: int) -> tuple[Any, str]:
    """The object of a trial, and what it is made of.

    Args:
        seed: what it is drawn from.
    """
    rng = random.Random(seed)
    kind = rng.choice(["pipe", "node", "loader", "loader"])
    made, words = KINDS[kind](rng)
    return made, f"{kind}: {words}"
