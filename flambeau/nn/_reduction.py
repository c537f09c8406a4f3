"""How a loss is reduced: its names, numbers, and the two flags that named it in early versions."""

from __future__ import annotations

import warnings

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number that kernels know a reduction by: none 0, mean 1, sum 2."""
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
            stacklevel=2,
        )
    return _NUMBERS[reduction]


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """The name of the reduction that two old flags ask for (None counts as True)."""
    if reduce is False:
        name = "none"
    else:
        name = "sum" if size_average is False else "mean"
    if emit_warning:
        warnings.warn(
            "size_average and reduce args will be deprecated, "
            f"please use reduction='{name}' instead.",
            stacklevel=2,
        )
    return name


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """The number of the reduction that two old flags ask for."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
