"""Memory format of convolution weights alone."""

from __future__ import annotations

from typing import Any

from flambeau.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from flambeau.nn.modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Module, classes: tuple[type[Module], ...], memory_format: Any) -> Module:
    for part in module.modules():
        if isinstance(part, classes):
            weight = part.get_parameter("weight")
            weight.data = weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Lay out the weights of all 2-d convolutions in `module` in `memory_format`."""
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Lay out the weights of all 3-d convolutions in `module` in `memory_format`."""
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)
