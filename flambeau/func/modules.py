"""Modules as functions of their parameters: ``functional_call`` and ``stack_module_state``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import flambeau as fb

if TYPE_CHECKING:
    from flambeau import Tensor
    from flambeau.nn import Module

__all__ = ["functional_call", "stack_module_state"]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with the given tensors in the place of its parameters and buffers.

    Args:
        module: what is called; unchanged afterwards.
        parameter_and_buffer_dicts: tensors by dotted name, in one dictionary or several.
        args: positional argument, or a tuple of them.
        kwargs: keyword arguments.
        tie_weights: a tensor given for one name of a shared parameter stands for all its names.
        strict: every parameter and buffer must be given, and nothing else.

    >>> layer = torch.nn.Linear(2, 1)
    >>> given = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
    >>> torch.func.functional_call(layer, given, torch.ones(3, 2))
    tensor([[2.],
            [2.],
            [2.]])
    """
    from flambeau.nn.utils import stateless

    given = parameter_and_buffer_dicts
    if not isinstance(given, dict):
        if not isinstance(given, Sequence) or not all(isinstance(d, dict) for d in given):
            raise ValueError(
                "functional_call: expected parameter_and_buffer_dicts to be a dictionary or a "
                f"sequence of dictionaries, got {type(given)}"
            )
        names = [name for d in given for name in d]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(
                f"functional_call: {repeated} appeared in multiple dictionaries; behavior of "
                "functional call is ambiguous"
            )
        given = {name: tensor for d in given for name, tensor in d.items()}
    return stateless._functional_call(
        module, given, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def stack_module_state(
    models: Sequence[Module],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Parameters and buffers of modules of one kind, stacked: an ensemble for ``vmap``.

    Args:
        models: of the same class, all in training or all in evaluation.

    Returns:
        parameters (new leaves that require gradients where those do) and buffers.

    >>> models = [torch.nn.Linear(2, 3) for _ in range(4)]
    >>> params, buffers = torch.func.stack_module_state(models)
    >>> params["weight"].shape
    torch.Size([4, 3, 2])
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    params = {
        name: _stacked([dict(m.named_parameters())[name] for m in models])
        for name, _ in models[0].named_parameters()
    }
    buffers = {
        name: _stacked([dict(m.named_buffers())[name] for m in models])
        for name, _ in models[0].named_buffers()
    }
    return params, buffers


def _stacked(tensors: list[Tensor]) -> Tensor:
    wanted = {x.requires_grad for x in tensors}
    if len(wanted) > 1:
        raise RuntimeError(
            "stack_module_state: Expected each parameter to have the same requires_grad across "
            "models."
        )
    return fb.stack([x.detach() for x in tensors]).requires_grad_(wanted.pop())
