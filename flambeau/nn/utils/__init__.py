"""Helpers around modules and parameters.

Owns the public names of `nn.utils`, each in a file of its own, loaded when first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "clip_grad_norm": "clip_grad",
    "clip_grad_norm_": "clip_grad",
    "clip_grad_value_": "clip_grad",
    "clip_grads_with_norm_": "clip_grad",
    "get_total_norm": "clip_grad",
    "parameters_to_vector": "convert_parameters",
    "vector_to_parameters": "convert_parameters",
    "fuse_conv_bn_eval": "fusion",
    "fuse_conv_bn_weights": "fusion",
    "fuse_linear_bn_eval": "fusion",
    "fuse_linear_bn_weights": "fusion",
    "skip_init": "init",
    "convert_conv2d_weight_memory_format": "memory_format",
    "convert_conv3d_weight_memory_format": "memory_format",
    "spectral_norm": "spectral_norm",
    "remove_spectral_norm": "spectral_norm",
    "weight_norm": "weight_norm",
    "remove_weight_norm": "weight_norm",
}
_MODULES = ("parametrizations", "parametrize", "rnn", "stateless", *set(_HOME.values()))

__all__ = [*_HOME, "parametrizations", "parametrize", "rnn", "stateless"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value  # the function hides a module of the same name, as in PyTorch
        return value
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
