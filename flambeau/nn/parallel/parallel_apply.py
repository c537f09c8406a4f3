"""`parallel_apply`: several modules, each on an input of its own.

Without GPUs nothing runs beside anything else: the modules are called in turn, each with all
threads of the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau as fb
from flambeau.nn.modules.module import Module

__all__ = ["parallel_apply"]


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """Results of the modules on their inputs.

    Args:
        modules: the modules.
        inputs: for each a tuple of positional arguments, or one argument.
        kwargs_tup: for each its keyword arguments.
        devices: for each its device: None or the CPU.

    Raises:
        ValueError: the lists have different lengths.
        RuntimeError: a device that is not there.

    >>> torch.nn.parallel.parallel_apply([torch.nn.Identity()], [torch.ones(1)])
    [tensor([1.])]
    """
    keywords = [{}] * len(modules) if kwargs_tup is None else kwargs_tup
    places = [None] * len(modules) if devices is None else devices
    for name, given in (("inputs", inputs), ("kwargs_tup", keywords), ("devices", places)):
        if len(given) != len(modules):
            raise ValueError(
                f"parallel_apply: expected {name} of the length of modules, {len(modules)}, got "
                f"{len(given)}"
            )
    for place in places:
        if place is not None and fb.device(place).type != "cpu":
            raise RuntimeError(f"parallel_apply: expected devices of the CPU, got {place}: no GPU")
    return [
        module(*(given if isinstance(given, (list, tuple)) else (given,)), **keyword)
        for module, given, keyword in zip(modules, inputs, keywords, strict=True)
    ]
