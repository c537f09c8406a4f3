"""Names of PyTorch's private core (`torch._C`) that programs read and that have an answer here.

Owns those answers: each is a fact of our core under PyTorch's name. What has none is not here but
in `missing.toml`, or is an AttributeError.
"""

from __future__ import annotations

import importlib
from typing import Any

import flambeau


def _log_api_usage_once(name: str) -> None:
    """Counts uses of interfaces where a program has set a logger for it; none can be set here."""


def _are_functorch_transforms_active() -> bool:
    """Whether code runs inside of `vmap`, `grad` or another transform of functions."""
    return flambeau._C._func_inside()


def _get_tracing_state() -> None:
    """The trace that is being recorded: none, since functions are not traced by example."""
    return


def _get_default_device() -> str:
    """The kind of device on which tensors are made."""
    return str(flambeau.get_default_device().type)


def _get_privateuse1_backend_name() -> str:
    """The name of the device that a program may add: it keeps the name that it begins with."""
    return "privateuseone"


def _get_accelerator() -> flambeau.device:
    """The device beside which the CPU is the host; the CPU itself, since there is none."""
    return flambeau.device("cpu")


class _AutoDispatchBelowAutograd:
    """A context in which calls of added operators go past their autograd kernels."""

    def __init__(self) -> None:
        self._guard: Any = flambeau._C._below_autograd()

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        self._guard = None


_BY_NAME: dict[str, Any] = {
    function.__name__: function
    for function in (
        _log_api_usage_once,
        _are_functorch_transforms_active,
        _get_tracing_state,
        _get_default_device,
        _get_privateuse1_backend_name,
        _get_accelerator,
        _AutoDispatchBelowAutograd,
    )
}
#: names that modules of ours have, and those
_ELSEWHERE = {
    "FunctionSchema": ("flambeau._library.schemas", "FunctionSchema"),
    "parse_schema": ("flambeau._library.schemas", "parse"),
}
NAMES = (*_BY_NAME, *_ELSEWHERE)


def find(name: str) -> Any:
    """What `torch._C.NAME` is, for a name of `NAMES`."""
    if name in _ELSEWHERE:
        module, attribute = _ELSEWHERE[name]
        return getattr(importlib.import_module(module), attribute)
    return _BY_NAME[name]
