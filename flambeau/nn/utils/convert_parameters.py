"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import flambeau as fb
from flambeau import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _check_one_device(parameters: list[Tensor]) -> None:
    if len({str(p.device) for p in parameters}) > 1:
        raise TypeError(
            "Found two parameters on different devices, this is currently not supported."
        )


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters, flattened and joined."""
    parameters = list(parameters)
    _check_one_device(parameters)
    return fb.cat([p.view(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Let the parameters be slices of `vec`, in order."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    parameters = list(parameters)
    _check_one_device(parameters)
    start = 0
    for param in parameters:
        stop = start + param.numel()
        param.data = vec[start:stop].view_as(param).data
        start = stop
