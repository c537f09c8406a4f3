"""Where a loader's pass stands: the record that its iterator writes, and the state made of it.

Owns the format of `DataLoader.state_dict`. The record outlives the iterator, so that a pass that
was broken off can be saved. A pass is put back by starting it once more with its generators as they
were and passing over the keys that were used: only streams without a state of their own are read
again. How workers get there is `_utils.snapshot`'s.
"""

# Note [State of a loader]
# ------------------------
# Between passes ("start", "end") a state holds the generators as they are, and what pipes take from
# pass to pass: the next pass is the one that would have followed. In a pass ("middle") it holds
#   start      generators and pipes at the start of the pass; the sampler draws from them once more
#   first      generators before its first batch, if others
#   taken      batches handed out, of all and of each worker
#   turn       the worker whose batch is next
#   workers    of each, the last snapshot before its last batch, and after which batch that was
#   open, sent with in_order=False: requests that were not answered yet
# The global generators of the loading process are the program's: they are as before after the
# sampler has drawn, and the program saves and restores them itself.

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import _pipes
from ._utils import snapshot as _snapshot

VERSION = 1


class WorkerRecord:
    """What is known of one worker: batches of it that were handed out, and its last snapshot."""

    def __init__(self) -> None:
        self.taken = 0
        self.snapshot: bytes | None = None
        self.at = 0  # batches before the snapshot
        self.ended: int | None = None  # how many it gave in all

    def begin(self, snapshot: bytes | None) -> None:
        self.taken = self.at = 0
        self.ended = None
        if snapshot is not None:
            self.snapshot = snapshot

    def take(self, snapshot: bytes | bool) -> None:
        """Note that a batch was handed out, and what came with it."""
        self.taken += 1
        if snapshot:
            self.at = self.taken
        if isinstance(snapshot, bytes):
            self.snapshot = snapshot

    def state(self) -> dict[str, Any]:
        return {
            "taken": self.taken,
            "at": self.at,
            "snapshot": None if self.snapshot is None else pickle.loads(self.snapshot),
            "ended": self.ended is not None and self.taken >= self.ended,
        }

    @classmethod
    def of(cls, state: dict[str, Any]) -> WorkerRecord:
        self = cls()
        self.taken, self.at = state["taken"], state["at"]
        if state["snapshot"] is not None:
            self.snapshot = pickle.dumps(state["snapshot"])
        self.ended = self.taken if state["ended"] else None
        return self


class PassRecord:
    """One pass, as its iterator writes it.

    Attributes:
        again: whether kept workers began it, which draws less from the generators.
        start: generators at its start.
        first: the global ones before its first batch, where the program has drawn since the start
            and the batch is made when it is asked for.
        taken: batches handed out.
        sent: keys drawn from the sampler.
        offset: batches handed out before these workers: the first of worker w is number offset + w.
        turn: the worker whose batch is next.
        open: requests that were not answered, where any may be the next.
        sampler: the state of a sampler that knows it, after the last batch, pickled.
        drawn_out: whether that sampler was used up by the last batch.
        iterator: over the dataset, in the calling thread, if it knows its state.
        ended: whether that was used up by the last batch.
    """

    def __init__(self, loader: Any, again: bool = False) -> None:
        self.again = again
        self.start = {
            "global": _snapshot.read_global(),
            "generators": _read_generators(loader),
            "pipes": _pipes.between_passes(loader.dataset),
        }
        self.first: dict[str, Any] | None = None
        self.base_seed: int | None = None
        self.shared_seed: int | None = None
        self.taken = self.turn = self.sent = self.offset = 0
        self.finished = False
        self.sampler: bytes | None = None
        self.drawn_out = False
        self.iterator: Any = None
        self.ended = False
        self.workers = [WorkerRecord() for _ in range(loader.num_workers)]
        self.open: dict[int, tuple[int, Any]] = {}

    def state(self) -> dict[str, Any]:
        """The part of a state that is about a pass which has begun."""
        return {
            "again": self.again,
            "start": copy.deepcopy(self.start),
            "first": copy.deepcopy(self.first),
            "base_seed": self.base_seed,
            "shared_seed": self.shared_seed,
            "taken": self.taken,
            "turn": self.turn,
            "sent": self.sent,
            "offset": self.offset,
            "drawn_out": self.drawn_out,
            "open": [(worker, index) for worker, index in self.open.values()],
            "workers": [worker.state() for worker in self.workers],
        }

    @classmethod
    def of(cls, loader: Any, state: dict[str, Any]) -> PassRecord:
        self = cls(loader, state["again"])
        self.start = copy.deepcopy(state["start"])
        self.first = copy.deepcopy(state.get("first"))
        self.base_seed, self.shared_seed = state["base_seed"], state["shared_seed"]
        self.taken, self.sent = state["taken"], state["sent"]
        self.drawn_out = state["drawn_out"]
        if len(state["workers"]) == loader.num_workers:
            self.turn, self.offset = state["turn"], state["offset"]
            self.workers = [WorkerRecord.of(each) for each in state["workers"]]
        else:
            self.offset = self.taken
        return self


def _samplers(loader: Any) -> Any:
    return loader.batch_sampler if loader.batch_sampler is not None else loader.sampler


def _generators(loader: Any) -> dict[str, Any]:
    found = _snapshot.generators_of(_samplers(loader), loader.dataset)
    if loader.generator is not None and loader.generator not in found.values():
        found["loader"] = loader.generator
    return found


def _read_generators(loader: Any) -> dict[str, Any]:
    return {path: _snapshot.read_generator(g) for path, g in _generators(loader).items()}


def _write_generators(loader: Any, states: dict[str, Any]) -> None:
    for path, generator in _generators(loader).items():
        if path in states:
            _snapshot.write_generator(generator, states[path])


def stateful_sampler(loader: Any) -> Any:
    """The sampler that knows its own state, or None. Those that group others have none."""
    sampler = _samplers(loader)
    while sampler is not None and not _snapshot.is_stateful(sampler):
        sampler = getattr(sampler, "sampler", None)
    return sampler


def _epoch(loader: Any) -> int | None:
    """The epoch of a `DistributedSampler`, or of one like it."""
    sampler = _samplers(loader)
    while sampler is not None and not hasattr(sampler, "set_epoch"):
        sampler = getattr(sampler, "sampler", None)
    return getattr(sampler, "epoch", None)


def _set_epoch(loader: Any, epoch: int | None) -> None:
    sampler = _samplers(loader)
    while sampler is not None and not hasattr(sampler, "set_epoch"):
        sampler = getattr(sampler, "sampler", None)
    if sampler is not None and epoch is not None:
        sampler.set_epoch(epoch)


def state_of(loader: Any) -> dict[str, Any]:
    """What `DataLoader.state_dict` returns: see Note [State of a loader]."""
    if loader._resume is not None:
        return copy.deepcopy(loader._resume)
    record: PassRecord | None = loader._pass
    position = "start" if record is None else "end" if record.finished else "middle"
    sampler, dataset = stateful_sampler(loader), None
    state: dict[str, Any] = {
        "version": VERSION,
        "kind": "iterable" if loader._dataset_kind else "map",
        "num_workers": loader.num_workers,
        "backend": loader.worker_backend,
        "batch_size": loader.batch_size,
        "in_order": loader.in_order,
        "position": position,
        "epoch": _epoch(loader),
        "generators": _read_generators(loader),
        "pipes": _pipes.between_passes(loader.dataset),
        "sampler": None,
    }
    if loader.num_workers == 0:
        iterator = None if record is None else record.iterator
        ended = position == "middle" and record is not None and record.ended
        dataset = _snapshot.read_dataset(loader.dataset, iterator, ended)
    if sampler is not None:
        waiting = None if record is None else record.sampler
        state["sampler"] = sampler.state_dict() if waiting is None else pickle.loads(waiting)
    return copy.deepcopy(
        state | {"dataset": dataset, "pass": None if record is None else record.state()}
    )


def checked(loader: Any, state: dict[str, Any]) -> dict[str, Any]:
    """A state that the loader can go on from.

    Raises:
        TypeError: it is no state of a loader.
        RuntimeError: it is of a loader with other options.
    """
    if not isinstance(state, dict) or state.get("version") != VERSION:
        raise TypeError(
            "load_state_dict: expected a state that DataLoader.state_dict returned, got "
            f"{sorted(state) if isinstance(state, dict) else type(state).__name__}"
        )
    kind = "iterable" if loader._dataset_kind else "map"
    if state["kind"] != kind:
        raise RuntimeError(
            f"load_state_dict: expected a state of a loader over a {kind} dataset, got one over "
            f"a dataset of kind {state['kind']}"
        )
    if state["position"] == "middle":
        fixed = {"batch_size": loader.batch_size, "in_order": loader.in_order}
        if kind == "iterable" or not loader.in_order:
            fixed["num_workers"] = loader.num_workers
        for name, ours in fixed.items():
            if state[name] != ours:
                raise RuntimeError(
                    f"load_state_dict: expected a state with {name}={ours} as in this loader, got "
                    f"{name}={state[name]} in the middle of a pass"
                )
    return copy.deepcopy(state)


def in_pass(loader: Any, state: dict[str, Any] | None) -> bool:
    """Whether to go on in the pass of a state; kept workers go through one that has ended."""
    if state is None or state["position"] == "start":
        return False
    kept = loader.persistent_workers and len(state["pass"]["workers"]) == loader.num_workers
    return state["position"] == "middle" or kept


@contextmanager
def put_back(loader: Any, state: dict[str, Any] | None) -> Iterator[None]:
    """Inside, a pass begins as the one in the state did."""
    if state is None:
        yield
        return
    _set_epoch(loader, state["epoch"])
    start = state["pass"]["start"] if in_pass(loader, state) else {"global": None, **state}
    _write_generators(loader, start["generators"])
    _pipes.put_between_passes(loader.dataset, start.get("pipes"))
    sampler = stateful_sampler(loader)
    if sampler is not None and state["sampler"] is not None:
        sampler.load_state_dict(state["sampler"])
    with _snapshot.global_as(start["global"]):
        yield
