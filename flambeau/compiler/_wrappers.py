"""The functions that `compile` and `disable` give back, and how to tell them from others.

Such a function is known by its code, and what it stands for is read from its closure: attributes
are copied by `functools.wraps`, and a wrapper would be taken for the function that it wraps.
Knows nothing of capture.
"""

from __future__ import annotations

import functools
import types
from typing import Any

from flambeau import _C

from ._stance import _Force


def compiled(config: Any, model: Any) -> Any:
    """A function that calls the model under capture."""

    @functools.wraps(model, updated=())
    def compiled(*args: Any, **kwargs: Any) -> Any:
        return _Force.call(config, model, args, kwargs)

    return compiled


def disabled(fn: Any, recursive: bool, reason: str) -> Any:
    """A function that is not captured, nor what it calls if `recursive`; `reason` is told."""

    @functools.wraps(fn)
    def disabled(*args: Any, **kwargs: Any) -> Any:
        if recursive:
            return _C._call_captured(None, fn, args, kwargs)
        _ = reason  # which the closure keeps
        return fn(*args, **kwargs)

    return disabled


def _code_made_by(maker: Any) -> types.CodeType:
    """The code of the function that `maker` gives back, which all of them share."""
    code: types.CodeType
    (code,) = (c for c in maker.__code__.co_consts if isinstance(c, types.CodeType))
    _C._skip_code(code)
    return code


_COMPILED, _DISABLED = _code_made_by(compiled), _code_made_by(disabled)


def _held(function: types.FunctionType, name: str) -> Any:
    """A variable of the closure."""
    assert function.__closure__ is not None
    return function.__closure__[function.__code__.co_freevars.index(name)].cell_contents


def compiled_model(model: Any) -> Any:
    """What a compiled function or method stands for; anything else itself."""
    if isinstance(model, types.MethodType):
        inner = compiled_model(model.__func__)
        return model if inner is model.__func__ else types.MethodType(inner, model.__self__)
    if isinstance(model, types.FunctionType) and model.__code__ is _COMPILED:
        return _held(model, "model")
    return model


def reason_of_disabled(function: types.FunctionType) -> str | None:
    """Why a function is not captured; None for those that may be."""
    return str(_held(function, "reason")) if function.__code__ is _DISABLED else None
