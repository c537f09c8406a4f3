"""``swap_in_optimizer_params_and_state``: let an optimiser work on other tensors for a block.

Invariant: on leaving, parameters, groups and state are the very objects they were. Must not know
any update rule.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flambeau import Tensor

    from .optimizer import Optimizer


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer,
    swapin_parameters: dict[str, Tensor],
    swapin_optim_state: dict[str, Any],
) -> Iterator[None]:
    """A block in which ``optimizer`` holds the given parameters, state and hyperparameters.

    Args:
        optimizer: has stepped before, so that its state exists.
        swapin_parameters: tensors by name, in the order of the optimiser's own.
        swapin_optim_state: of the form of ``optimizer.state_dict()``. Tensors in it are used as
            they are, so in-place updates show in it; anything assigned anew is lost.

    Raises:
        ValueError: the number of parameters or groups differs.
    """
    tensors = list(swapin_parameters.values())
    count = sum(len(group["params"]) for group in optimizer.param_groups)
    packed = swapin_optim_state["param_groups"]
    if len(tensors) != count:
        raise ValueError(
            f"swap_in_optimizer_params_and_state: expected {count} parameters, got {len(tensors)}"
        )
    if [len(g["params"]) for g in packed] != [len(g["params"]) for g in optimizer.param_groups]:
        raise ValueError(
            "swap_in_optimizer_params_and_state: the parameter groups of swapin_optim_state do "
            "not match those of the optimizer"
        )
    of_position = dict(zip((i for g in packed for i in g["params"]), tensors, strict=True))
    before = optimizer.param_groups, optimizer.state
    optimizer.param_groups = [
        {**group, "params": [of_position[i] for i in group["params"]]} for group in packed
    ]
    optimizer.state = defaultdict(dict)
    for key, value in swapin_optim_state["state"].items():
        optimizer.state[of_position.get(key, key)] = dict(value)
    try:
        yield
    finally:
        optimizer.param_groups, optimizer.state = before
