"""A node that draws its elements from several sources by weight.

Owns the draws, which are torchdata's for a seed, a rank and an epoch.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import flambeau as fb

from ... import _pipes
from ..base_node import BaseNode, T
from .stop_criteria import StopCriteria

__all__ = ["MultiNodeWeightedSampler"]

_DRAWS = 1000  # of one call, part of the order for a seed
_CRITERIA = tuple(name for name in vars(StopCriteria) if name.isupper())


class MultiNodeWeightedSampler(BaseNode[T]):
    """Elements of several sources, each drawn by its weight.

    Args:
        source_nodes: by name.
        weights: by the same names, positive; they need not add up to one.
        stop_criteria: one of `StopCriteria`.
        rank: draws of each rank differ; by default that of the job.
        world_size: how many ranks there are; by default those of the job.
        seed: of the draws, which differ from epoch to epoch.

    Raises:
        ValueError: another criterion; other names in `weights`; a weight that is not a positive
            float; a rank beyond the world size.

    Example:
        >>> from flambeau.utils.data.nodes import IterableWrapper, MultiNodeWeightedSampler
        >>> sources = {"a": IterableWrapper("aaa"), "b": IterableWrapper("bb")}
        >>> drawn = list(MultiNodeWeightedSampler(sources, {"a": 0.7, "b": 0.3}))
        >>> drawn.count("a") >= 3, drawn.count("b") >= 2
        (True, True)
    """

    DATASET_NODE_STATES_KEY = "dataset_node_states"
    DATASETS_EXHAUSTED_KEY = "datasets_exhausted"
    EPOCH_KEY = "epoch"
    NUM_YIELDED_KEY = "num_yielded"
    WEIGHTED_SAMPLER_STATE_KEY = "weighted_sampler_state"

    def __init__(
        self,
        source_nodes: Mapping[str, BaseNode[T]],
        weights: Mapping[str, float],
        stop_criteria: str = StopCriteria.CYCLE_UNTIL_ALL_DATASETS_EXHAUSTED,
        rank: int | None = None,
        world_size: int | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        _check(source_nodes, weights, stop_criteria)
        if rank is None or world_size is None:
            rank, world_size = _rank_and_world_size()
        if not 0 <= rank < world_size:
            raise ValueError(
                f"MultiNodeWeightedSampler: expected a rank in the interval [0, {world_size - 1}], "
                f"got {rank}"
            )
        self.source_nodes, self.weights = source_nodes, weights
        self.stop_criteria = stop_criteria
        self.dataset_names = list(source_nodes)
        self.rank, self.world_size, self.seed = rank, world_size, seed
        self._num_yielded = self._epoch = 0
        self._started = False
        self._exhausted: dict[str, bool] = {}

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        super().reset(initial_state)
        if initial_state is None:
            self._epoch += self._started
            self._num_yielded, self._started = 0, False
            self._exhausted = dict.fromkeys(self.weights, False)
            self._draws = _Draws(self)
            for node in self.source_nodes.values():
                node.reset(None)
            return
        self._epoch = initial_state[self.EPOCH_KEY]
        self._num_yielded = initial_state[self.NUM_YIELDED_KEY]
        self._started = initial_state.get("started", self._num_yielded > 0)
        self._exhausted = dict(initial_state[self.DATASETS_EXHAUSTED_KEY])
        self._draws = _Draws(self, initial_state[self.WEIGHTED_SAMPLER_STATE_KEY])
        for name, node in self.source_nodes.items():
            node.reset(initial_state[self.DATASET_NODE_STATES_KEY][name])

    def _at_end(self) -> bool:
        if self.stop_criteria == StopCriteria.CYCLE_FOREVER:
            return False
        ended = self._exhausted.values()
        first = self.stop_criteria == StopCriteria.FIRST_DATASET_EXHAUSTED
        return any(ended) if first else all(ended)

    def next(self) -> T:
        self._started = True
        without = self.stop_criteria == StopCriteria.ALL_DATASETS_EXHAUSTED
        while not self._at_end():
            name = self._draws.draw()
            if self._exhausted[name] and without:
                continue
            node = self.source_nodes[name]
            try:
                item = next(node)
            except StopIteration:
                self._exhausted[name] = True
                if without or self._at_end():
                    continue
                node.reset(None)
                item = next(node)
            self._num_yielded += 1
            return item
        raise StopIteration

    def get_state(self) -> dict[str, Any]:
        return {
            self.DATASETS_EXHAUSTED_KEY: dict(self._exhausted),
            self.DATASET_NODE_STATES_KEY: {
                name: node.state_dict() for name, node in self.source_nodes.items()
            },
            self.EPOCH_KEY: self._epoch,
            self.NUM_YIELDED_KEY: self._num_yielded,
            self.WEIGHTED_SAMPLER_STATE_KEY: self._draws.state(),
            "started": self._started,
        }


class _Draws:
    """Names drawn by weight, some at once."""

    def __init__(self, of: MultiNodeWeightedSampler[Any], state: Any = None) -> None:
        self._names = list(of.weights)
        self._weights = fb.tensor(list(of.weights.values()), dtype=fb.float64)
        ranks = fb.Generator().manual_seed(of.seed * of.world_size + of.rank)
        seeds = fb.randint(0, 2**32 - 1, (of._epoch + 1,), generator=ranks)
        self._generator = fb.Generator().manual_seed(int(seeds[-1].item()))
        self._offset = 0
        if state is not None:
            self._generator.set_state(state["g_state"])
            self._offset = state["offset"]
        self._fill()

    def _fill(self) -> None:
        self._before = self._generator.get_state()
        self._drawn = fb.multinomial(
            self._weights, _DRAWS, replacement=True, generator=self._generator
        ).tolist()

    def draw(self) -> str:
        if self._offset == _DRAWS:
            self._offset = 0
            self._fill()
        self._offset += 1
        return self._names[self._drawn[self._offset - 1]]

    def state(self) -> dict[str, Any]:
        return {"g_state": self._before, "offset": self._offset}


def _check(sources: Mapping[str, Any], weights: Mapping[str, float], criterion: str) -> None:
    if criterion not in _CRITERIA:
        raise ValueError(
            f"MultiNodeWeightedSampler: expected stop_criteria to be one of {', '.join(_CRITERIA)},"
            f" got {criterion!r}"
        )
    if set(sources) != set(weights):
        raise ValueError(
            "MultiNodeWeightedSampler: expected weights with the names of source_nodes "
            f"{sorted(sources)}, got {sorted(weights)}"
        )
    for name, weight in weights.items():
        if not isinstance(weight, float) or not weight > 0:
            raise ValueError(
                f"MultiNodeWeightedSampler: expected weights to be positive floats, got {weight!r} "
                f"for {name!r}"
            )


def _rank_and_world_size() -> tuple[int, int]:
    world_size, rank = _pipes.ranks()
    if world_size > 1:
        return rank, world_size
    try:
        return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    except ValueError:
        return 0, 1
