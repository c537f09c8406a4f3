"""Ways of working that may become the default: how modules replace their parameters.

Owns the switches. Modules here always replace a parameter's data in place where they can.
"""

from __future__ import annotations


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Let conversions of a module make new parameters, which is not built."""
    if value:
        raise NotImplementedError("set_overwrite_module_params_on_conversion: expected False")


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether conversions of a module make new parameters: no."""
    return False


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Let conversions of a module swap tensors, which is not built."""
    if value:
        raise NotImplementedError("set_swap_module_params_on_conversion: expected False")


def get_swap_module_params_on_conversion() -> bool:
    """Whether conversions of a module swap tensors: no."""
    return False
