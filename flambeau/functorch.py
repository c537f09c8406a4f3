"""Transforms under the name of the package that they first had: `functorch` under the alias.

Owns the functions that turn a module into a pure function, which `torch.func.functional_call` and
`stack_module_state` have replaced; all else is `flambeau.func`'s.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from flambeau import Tensor
from flambeau.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)
from flambeau.func.vmap import batch_size, flat_in_dims
from flambeau.nn import Module

__all__ = [
    "chunk_vmap",
    "combine_state_for_ensemble",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "make_functional",
    "make_functional_with_buffers",
    "vjp",
    "vmap",
]

Tensors = tuple[Tensor, ...]


class FunctionalModule:
    """A module as a function of its parameters, its buffers if asked for, and its inputs."""

    def __init__(self, model: Module, buffers: bool) -> None:
        self.stateless_model = copy.deepcopy(model).to("meta")
        self.param_names = [name for name, _ in model.named_parameters()]
        self.buffer_names = [name for name, _ in model.named_buffers()] if buffers else None
        self._kept = {} if buffers else dict(model.named_buffers())

    def __call__(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        state = dict(self._kept)
        state.update(_named("parameters", self.param_names, params))
        if self.buffer_names is not None:
            if not args:
                raise TypeError("a functional module: expected (params, buffers, *inputs)")
            state.update(_named("buffers", self.buffer_names, args[0]))
            args = args[1:]
        return functional_call(self.stateless_model, state, args, kwargs)

    def __repr__(self) -> str:
        return f"FunctionalModule({type(self.stateless_model).__name__})"


def _named(what: str, names: list[str], values: Sequence[Tensor]) -> dict[str, Tensor]:
    if len(names) != len(values):
        raise ValueError(f"a functional module: expected {len(names)} {what}, got {len(values)}")
    return dict(zip(names, values, strict=True))


def _taken(tensors: Any, detached: bool) -> Tensors:
    return tuple(x.detach() if detached else x for x in tensors)


def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, Tensors]:
    """A module without buffers as a function of its parameters, and these.

    Args:
        model: the module; it is not changed.
        disable_autograd_tracking: give the parameters without gradients.

    Returns:
        (f, params) with `f(params, *inputs)` what `model(*inputs)` is.

    Raises:
        RuntimeError: the module has buffers.

    >>> f, params = torch.functorch.make_functional(torch.nn.Linear(2, 1))
    >>> loss = lambda params, x: f(params, x).square().mean()
    >>> [g.shape for g in torch.func.grad(loss)(params, torch.ones(3, 2))]
    [torch.Size([1, 2]), torch.Size([1])]
    """
    buffers = [name for name, _ in model.named_buffers()]
    if buffers:
        raise RuntimeError(
            f"make_functional(model): expected a model without buffers, got one with {buffers}; "
            "use make_functional_with_buffers(model)"
        )
    return FunctionalModule(model, False), _taken(model.parameters(), disable_autograd_tracking)


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, Tensors, Tensors]:
    """A module as a function of its parameters and buffers, and these.

    Args:
        model: the module; it is not changed.
        disable_autograd_tracking: give the parameters without gradients.

    Returns:
        (f, params, buffers) with `f(params, buffers, *inputs)` what `model(*inputs)` is.

    >>> f, params, buffers = torch.functorch.make_functional_with_buffers(torch.nn.BatchNorm1d(2))
    >>> len(params), len(buffers), f(params, buffers, torch.ones(3, 2)).shape
    (2, 3, torch.Size([3, 2]))
    """
    params = _taken(model.parameters(), disable_autograd_tracking)
    return FunctionalModule(model, True), params, tuple(model.buffers())


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModule, Tensors, Tensors]:
    """Modules of one class as one function, and their parameters and buffers, stacked for `vmap`.

    Args:
        models: of one class, all in training or all in evaluation.

    Raises:
        RuntimeError: no models, or models that differ in class or mode.

    >>> models = [torch.nn.Linear(2, 3) for _ in range(4)]
    >>> f, params, buffers = torch.functorch.combine_state_for_ensemble(models)
    >>> torch.vmap(f, in_dims=(0, 0, None))(params, buffers, torch.ones(5, 2)).shape
    torch.Size([4, 5, 3])
    """
    params, buffers = stack_module_state(models)
    return FunctionalModule(models[0], True), tuple(params.values()), tuple(buffers.values())


def chunk_vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    chunks: int = 2,
) -> Callable[..., Any]:
    """`vmap` in so many parts, one after another, which takes less memory.

    Args:
        func, in_dims, out_dims, randomness: as in `vmap`.
        chunks: how many parts.

    >>> torch.functorch.chunk_vmap(torch.sum, chunks=3)(torch.ones(5, 2))
    tensor([2., 2., 2., 2., 2.])
    """
    if chunks < 1:
        raise ValueError(f"chunk_vmap: expected at least one chunk, got {chunks}")

    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, _, dims = flat_in_dims(in_dims, args, func)
        size = -(-batch_size(leaves, dims) // chunks)
        whole = vmap(func, in_dims, out_dims, randomness, chunk_size=max(size, 1))
        return whole(*args, **kwargs)

    return mapped
