"""Clipping of gradients, by norm or by value.

Invariant: gradients change in place; the total norm is that of all gradients as one vector.
A list of gradients is one call into the core.
"""

from __future__ import annotations

import math
import types
import warnings
from collections.abc import Iterable
from typing import Any, TypeAlias

import flambeau as fb
from flambeau import Tensor

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]

Tensors: TypeAlias = Tensor | Iterable[Tensor]


def _as_list(tensors: Any) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _grads(parameters: list[Tensor]) -> list[Tensor]:
    return [p.grad for p in parameters if p.grad is not None]


def _by_place(tensors: list[Tensor]) -> list[list[Tensor]]:
    """Groups of one device and dtype each, which a multi-tensor call takes."""
    groups: dict[Any, list[Tensor]] = {}
    for t in tensors:
        groups.setdefault((str(t.device), t.dtype), []).append(t)
    return list(groups.values())


def get_total_norm(
    tensors: Tensors,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Norm of all tensors taken together as one vector.

    Args:
        tensors: one tensor or several.
        norm_type: the power of the norm; infinity too.
        error_if_nonfinite: raise if the result is infinite or not a number.
        foreach: False forbids one call for many tensors.
    """
    tensors = _as_list(tensors)
    norm_type = float(norm_type)
    if norm_type == math.inf:
        tensors = [t for t in tensors if t.numel()]  # what is empty has no largest entry
    if not tensors:
        return fb.tensor(0.0)
    norms: list[Tensor] = []
    with fb.no_grad():
        for group in _by_place(tensors):
            if foreach is False:
                norms += [fb.linalg.vector_norm(t, norm_type) for t in group]
            else:
                norms += fb._foreach_norm(group, norm_type)
        device = tensors[0].device
        stacked = fb.stack([norm.to(device) for norm in norms])
        total = fb.linalg.vector_norm(stacked, norm_type)
        if error_if_nonfinite and not bool(total.isfinite()):
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` is "
                "non-finite, so it cannot be clipped. To disable this error and scale the "
                "gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
            )
    return total


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients by max_norm / total_norm, if that is below one.

    Args:
        parameters: whose gradients are scaled.
        max_norm: largest norm wanted.
        total_norm: the norm they have; see `get_total_norm`.
        foreach: False forbids one call for many tensors.
    """
    grads = _grads(_as_list(parameters))
    if not grads:
        return
    with fb.no_grad():
        # Clamping instead of branching: a comparison would wait for the device.
        factor = fb.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
        for group in _by_place(grads):
            here = factor.to(group[0].device)
            if foreach is False:
                for grad in group:
                    grad.mul_(here)
            else:
                fb._foreach_mul_(group, here)


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients so that their total norm is at most `max_norm`.

    Args:
        parameters: whose gradients are scaled.
        max_norm: largest norm wanted.
        norm_type: the power of the norm; infinity too.
        error_if_nonfinite: raise if the norm is infinite or not a number.
        foreach: False forbids one call for many tensors.

    Returns:
        The norm before scaling.
    """
    if isinstance(parameters, types.GeneratorType):
        parameters = list(parameters)
        if not parameters:
            warnings.warn(
                "`parameters` is an empty generator, no gradient clipping will occur.",
                stacklevel=2,
            )
    params = _as_list(parameters)
    max_norm, norm_type = float(max_norm), float(norm_type)
    total = get_total_norm(_grads(params), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(params, max_norm, total, foreach)
    return total


def clip_grad_norm(*args: Any, **kwargs: Any) -> Tensor:
    """Deprecated: use `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(*args, **kwargs)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Confine every element of the gradients to [-clip_value, clip_value].

    Args:
        parameters: whose gradients are clipped.
        clip_value: the bound.
        foreach: False forbids one call for many tensors.
    """
    bound = float(clip_value)
    with fb.no_grad():
        for group in _by_place(_grads(_as_list(parameters))):
            if foreach is False:
                for grad in group:
                    grad.clamp_(min=-bound, max=bound)
            else:
                fb._foreach_clamp_min_(group, -bound)
                fb._foreach_clamp_max_(group, bound)
