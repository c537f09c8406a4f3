"""Automatic differentiation.

Owns ``backward`` and ``grad``, the two ways to run the graph, and the names of the package; tools
for checking and for higher-order functions are loaded on first use.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flambeau import _C
from flambeau.autograd import anomaly_mode, forward_ad, function, grad_mode, graph, variable
from flambeau.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from flambeau.autograd.function import Function
from flambeau.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from flambeau.autograd.variable import Variable

if TYPE_CHECKING:
    from flambeau import Tensor
    from flambeau.autograd.graph import GradientEdge

__all__ = [
    "Function",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]


def _tuple(items: Any) -> tuple[Any, ...]:
    if isinstance(items, _C.Tensor) or isinstance(items, graph.GradientEdge):
        return (items,)
    return tuple(items)


def _cotangents(grads: Any, count: int) -> tuple[Any, ...]:
    if grads is None:
        return (None,) * count
    found = _tuple(grads)
    if len(found) < count:
        raise RuntimeError(f"got {count} tensors and {len(found)} gradients")
    return found


def backward(
    tensors: Tensor | Sequence[Tensor] | GradientEdge | Sequence[GradientEdge],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Adds the gradients of `tensors` with respect to the leaves to their `grad`.

    Args:
        tensors: roots of the graph.
        grad_tensors: gradient with respect to each root; None for a root of one element means 1.
        retain_graph: whether the graph can be run again; by default `create_graph`.
        create_graph: whether this run is itself recorded, for higher derivatives.
        grad_variables: deprecated name of `grad_tensors`.
        inputs: leaves whose `grad` alone is to be added to.

    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> torch.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    if grad_variables is not None:
        import warnings

        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, 2
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "`backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    wanted: tuple[Any, ...] = ()
    if inputs is not None:
        wanted = _tuple(inputs)
        if not wanted:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    roots = _tuple(tensors)
    keep = create_graph if retain_graph is None else retain_graph
    cotangents = _cotangents(grad_tensors, len(roots))
    _C._run_backward(roots, cotangents, keep, create_graph, wanted, True, True)


def grad(
    outputs: Tensor | Sequence[Tensor] | GradientEdge | Sequence[GradientEdge],
    inputs: Tensor | Sequence[Tensor] | GradientEdge | Sequence[GradientEdge],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Gradients of `outputs` with respect to `inputs`, leaving `grad` of all tensors alone.

    Args:
        outputs: roots of the graph.
        inputs: tensors whose gradients are returned, one each.
        grad_outputs: gradient with respect to each output; None for one element means 1.
        retain_graph: whether the graph can be run again; by default `create_graph`.
        create_graph: whether this run is itself recorded, for higher derivatives.
        only_inputs: must be True.
        allow_unused: whether an input that the outputs do not depend on gives None, not an error.
        is_grads_batched: whether `grad_outputs` have a batch of gradients in their first dim.
        materialize_grads: whether an unused input gives zeros.

    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> torch.autograd.grad(x**2, x)
    (tensor(6.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    if not only_inputs:
        import warnings

        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            2,
        )
    roots, wanted = _tuple(outputs), _tuple(inputs)
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    keep = create_graph if retain_graph is None else retain_graph
    unused = bool(allow_unused or materialize_grads)
    cotangents = _cotangents(grad_outputs, len(roots))
    if is_grads_batched:
        results = _batched(roots, cotangents, keep, create_graph, wanted, unused)
    else:
        results = _C._run_backward(roots, cotangents, keep, create_graph, wanted, unused, False)
    if materialize_grads:
        results = tuple(_zeros(x, r) for x, r in zip(wanted, results, strict=True))
    return results


def _zeros(tensor: Any, gradient: Any) -> Any:
    if gradient is not None:
        return gradient
    if not isinstance(tensor, _C.Tensor):
        raise RuntimeError(
            "materialize_grads cannot be used when the given input is a GradientEdge"
        )
    return _C.zeros_like(tensor)


def _batched(
    roots: tuple[Any, ...], cotangents: tuple[Any, ...], keep: bool, create: bool,
    wanted: tuple[Any, ...], unused: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """One run for all gradients of the batch, as ``vmap`` has it."""
    sizes = {c.shape[0] for c in cotangents if c is not None}
    if len(sizes) != 1:
        raise ValueError(
            f"is_grads_batched=True: expected grad_outputs with one batch size, got {sorted(sizes)}"
        )
    from flambeau.func import vmap

    given = [c for c in cotangents if c is not None]
    found: list[int] = []  # places of the gradients that there are

    def gradients(*rows: Any) -> tuple[Any, ...]:
        each = iter(rows)
        seeds = tuple(None if c is None else next(each) for c in cotangents)
        results = _C._run_backward(roots, seeds, keep, create, wanted, unused, False)
        found[:] = [i for i, g in enumerate(results) if g is not None]
        return tuple(results[i] for i in found)

    batched = iter(vmap(gradients)(*given))
    return tuple(next(batched) if i in found else None for i in range(len(wanted)))


def _is_checkpoint_valid() -> bool:
    """Whether the running backward goes to all leaves, as reentrant checkpointing needs."""
    return not _C._backward_is_restricted()


def _profiler_enabled() -> bool:
    """Whether a profile is open."""
    return _C._profiler_enabled()


#: Names of profiles, which PyTorch has here as well.
_OF_PROFILES = {
    "DeviceType": "flambeau.autograd.profiler_util",
    "ProfilerActivity": "flambeau.profiler",
    "_disable_profiler": "flambeau.autograd.profiler",
}


def __getattr__(name: str) -> Any:
    if name in ("gradcheck", "gradgradcheck"):
        module = sys.modules.get(f"{__name__}.gradcheck")
        module = module or importlib.import_module(f"{__name__}.gradcheck")
        globals().update(gradcheck=module.gradcheck, gradgradcheck=module.gradgradcheck)
        return globals()[name]
    if name in _OF_PROFILES:
        return getattr(importlib.import_module(_OF_PROFILES[name]), name)
    if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Package(types.ModuleType):
    """The package, in which `gradcheck` is the function and not the file that defines it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "gradcheck" and isinstance(value, types.ModuleType):
            value = value.gradcheck
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
