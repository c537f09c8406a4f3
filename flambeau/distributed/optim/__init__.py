"""Optimisers whose work or state is spread over the processes of a group."""

from typing import Any, NoReturn

from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]


def _apply_optimizer_in_backward(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: optimisers take their steps behind the backward pass."""
    raise NotImplementedError(
        "_apply_optimizer_in_backward: steps inside of the backward pass are not built yet; call "
        "the optimiser's step() after backward()"
    )
