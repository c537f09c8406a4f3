"""Putting a graph of pipes back where it was by running it there."""

from __future__ import annotations

from typing import Any

from ...graph_settings import apply_random_seed
from .._hook_iterator import _SnapshotState, reset


def _simple_graph_snapshot_restoration(datapipe: Any, n_iterations: int, rng: Any = None) -> None:
    """Move a pipe past its first elements: the next `iter` goes on from there.

    Args:
        datapipe: the last pipe of a graph.
        n_iterations: elements to pass over, as `datapipe._number_of_samples_yielded` counts them.
        rng: generator in the state it had at the start of the pass.

    Raises:
        RuntimeError: the pipe has been restored and not iterated since; it has fewer elements.
    """
    if datapipe._snapshot_state is _SnapshotState.Restored:
        raise RuntimeError(
            "Snapshot restoration cannot be applied. You can only restore simple snapshot to the "
            "graph if your graph has not been restored."
        )
    reset(datapipe)
    apply_random_seed(datapipe, rng)
    iterator = iter(datapipe)
    for _ in range(n_iterations):
        try:
            next(iterator)
        except StopIteration:
            raise RuntimeError(
                f"Fast-forward {datapipe} by {n_iterations} iterations exceeds the number of "
                "samples available."
            ) from None
    datapipe._fast_forward_iterator = iterator
    datapipe._snapshot_state = _SnapshotState.Restored
