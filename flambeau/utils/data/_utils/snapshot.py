"""States of generators and datasets, as plain data that can be saved.

Owns which generators there are (the global ones, a worker's own, a sampler's) and the protocol of
datasets that know their own state: `state_dict` and `load_state_dict`, on the dataset or on its
iterator. It knows neither loaders nor how a worker gets its orders.
"""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import flambeau as fb

from .. import _pipes


def read_generator(generator: Any) -> Any:
    """The state of a generator of any library, or None for what is none."""
    if isinstance(generator, fb.Generator):
        return generator.get_state()
    if isinstance(generator, random.Random):
        return generator.getstate()
    numpy = sys.modules.get("numpy.random")
    if numpy is not None and isinstance(generator, numpy.Generator):
        return _plain(generator.bit_generator.state)
    if numpy is not None and isinstance(generator, numpy.RandomState):
        return _plain(generator.get_state(legacy=False))
    return None


def write_generator(generator: Any, state: Any) -> None:
    """Puts a generator back to what `read_generator` returned."""
    if isinstance(generator, fb.Generator):
        generator.set_state(state)
    elif isinstance(generator, random.Random):
        generator.setstate(_tuples(state))
    elif hasattr(generator, "bit_generator"):
        generator.bit_generator.state = state
    else:
        generator.set_state(state)


def _plain(value: Any) -> Any:
    """A state of NumPy without its arrays and scalars."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value


def _tuples(value: Any) -> Any:
    """What Python's generator wants; JSON makes lists of tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def read_global() -> dict[str, Any]:
    """The states of the global generators that are in use."""
    states = {"torch": fb.get_rng_state(), "python": random.getstate()}
    if "numpy.random" in sys.modules:
        import numpy as np

        states["numpy"] = _plain(np.random.get_state(legacy=False))  # noqa: NPY002
    return states


def write_global(states: dict[str, Any]) -> None:
    """Puts the global generators back."""
    fb.set_rng_state(states["torch"])
    random.setstate(_tuples(states["python"]))
    if "numpy" in states:
        import numpy as np

        np.random.set_state(states["numpy"])  # noqa: NPY002


def mark_global() -> tuple[Any, ...]:
    """What stays as it is while nothing draws from the global generators; quicker than a state.

    NumPy takes a tenth of a millisecond to hand out its state, so the words are read where they
    are: 624 of four bytes, and the place among them.
    """
    numbers: Any = None
    if "numpy.random" in sys.modules:
        import ctypes

        import numpy as np

        bits: Any = np.random.get_bit_generator()  # type: ignore[attr-defined]
        known = type(bits).__name__ == "MT19937"
        numbers = ctypes.string_at(bits.ctypes.state_address, 2500) if known else bits.state
    return fb.get_rng_state(), random.getstate(), numbers


def has_drawn(mark: tuple[Any, ...]) -> bool:
    """Whether anything was drawn since a mark."""
    now = mark_global()
    return now[1:] != mark[1:] or not fb.equal(now[0], mark[0])


@contextmanager
def global_as(states: dict[str, Any] | None) -> Iterator[None]:
    """Inside, the global generators start from ``states``; after it they are as before."""
    if states is None:
        yield
        return
    before = read_global()
    write_global(states)
    try:
        yield
    finally:
        write_global(before)


def generators_of(sampler: Any, dataset: Any) -> dict[str, Any]:
    """Generators that a sampler holds, and those of samplers in it, by the path of attributes.

    What the dataset holds is the dataset's.
    """
    found: dict[str, Any] = {}
    _collect(sampler, "", found, {id(dataset)})
    return found


def _collect(value: Any, path: str, found: dict[str, Any], seen: set[int]) -> None:
    if id(value) in seen or value is fb.default_generator:
        return
    seen.add(id(value))
    if isinstance(value, fb.Generator | random.Random) or (
        type(value).__module__.startswith("numpy.random") and read_generator(value) is not None
    ):
        found[path] = value
    elif _is_sampler(value):
        for name, each in list(vars(value).items()):
            _collect(each, f"{path}.{name}" if path else name, found, seen)


def _is_sampler(value: Any) -> bool:
    """Whether to look into an object: one of a class that a program or we wrote for an order."""
    return hasattr(value, "__dict__") and hasattr(type(value), "__iter__")


def is_stateful(value: Any) -> bool:
    """Whether a dataset, sampler or iterator knows its own state.

    Pipes are made again from their seeds, for what they draw on the way counts too.
    """
    return (
        callable(getattr(value, "state_dict", None))
        and callable(getattr(value, "load_state_dict", None))
        and not _pipes.is_pipe(value)
    )


def read_dataset(dataset: Any, iterator: Any = None, ended: bool = False) -> dict[str, Any] | None:
    """The state of a dataset and of the iterator over it; None if neither knows its own.

    Whether the last batch was cut short by the end belongs to it: the dataset may be at the start
    of its next pass then.
    """
    states: dict[str, Any] = {}
    for name, each in (("dataset", dataset), ("iterator", iterator)):
        if is_stateful(each) and not (name == "iterator" and iterator is dataset):
            states[name] = each.state_dict()
    return {**states, "ended": ended} if states else None


def fetcher_at(state: dict[str, Any] | None, dataset: Any, make_fetcher: Any) -> Any:
    """A fetcher over a dataset that was put back to what `read_dataset` returned."""
    if state is not None and "pipes" in state:
        _pipes.put_between_passes(dataset, state["pipes"])
        return make_fetcher(dataset)
    if state is not None and "dataset" in state:
        dataset.load_state_dict(state["dataset"])
    fetcher = make_fetcher(dataset)
    if state is not None and "iterator" in state:
        fetcher.dataset_iter.load_state_dict(state["iterator"])
    if state is not None and state["ended"]:
        fetcher.ended = True
    return fetcher


def fetch_again(fetcher: Any, index: Any) -> bool:
    """Make a batch that was handed out before, for what it leaves behind; False at the end."""
    try:
        fetcher.fetch(index)
    except StopIteration:
        return False
    except Exception:
        pass  # it was handed out as this error
    return True


@dataclass
class Start:
    """Where a worker starts in the middle of a pass.

    Attributes:
        snapshot: what `Snapshots.take` returned, pickled; None for the state after seeding.
        replay: requests to serve again, unseen: those between the snapshot and the stop.
    """

    snapshot: bytes | None = None
    replay: list[Any] = field(default_factory=list)


class Snapshots:
    """Takes the state of a worker after every n-th batch.

    A stream that does not know its state has one at its start alone: it is read again from there.

    Args:
        every: n.
        iterable: the dataset is a stream.
        own: the global generators are this worker's own, as those of a process are.
        rng: the worker's other generators.
    """

    def __init__(self, every: int, iterable: bool, own: bool, rng: Any) -> None:
        self._every, self._iterable, self._own, self._rng = every, iterable, own, rng
        self._last, self._count = b"", 0

    def _take(self, dataset: dict[str, Any] | None) -> bytes:
        """The state now, pickled at once, for a dataset may go on changing what it returned."""
        rng = {n: read_generator(g) for n, g in vars(self._rng).items() if not n.startswith("_")}
        own = read_global() if self._own else None
        return pickle.dumps({"own": own, "rng": rng, "dataset": dataset})

    def begin(self, dataset: Any) -> bytes:
        """The state at the start of a pass over a dataset."""
        self._count = 0
        pipes = _pipes.between_passes(dataset)
        self._last = self._take(read_dataset(dataset) if pipes is None else {"pipes": pipes})
        return self._last

    def after_batch(self, fetcher: Any) -> bytes | bool:
        """The state if it is time for one, True where it is the same as the last, else False."""
        self._count += 1
        if self._count % self._every:
            return False
        if self._iterable:
            known = read_dataset(fetcher.dataset, fetcher.dataset_iter, fetcher.ended)
        else:
            known = read_dataset(fetcher.dataset)
        if self._iterable and known is None:
            return False
        state = self._take(known)
        if state == self._last:
            return True
        self._last = state
        return state

    def fetcher_at(self, start: Start, dataset: Any, make_fetcher: Any) -> Any:
        """The fetcher of a worker that starts in the middle of a pass."""
        state = None if start.snapshot is None else pickle.loads(start.snapshot)
        if state is not None:
            if self._own and state["own"] is not None:
                write_global(state["own"])
            for name, each in state["rng"].items():
                write_generator(getattr(self._rng, name), each)
        known = None if state is None else state["dataset"]
        fetcher = fetcher_at(known, dataset, make_fetcher)
        for index in start.replay:
            if not fetch_again(fetcher, index):
                break
        self._last, self._count = b"", 0
        return fetcher
