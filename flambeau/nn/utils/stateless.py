"""Calling a module with other tensors in the place of its parameters and buffers.

Owns the exchange and its undoing. Invariant: after the call, also a failed one, the module
holds what it held before.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from flambeau import Tensor
from flambeau.nn.modules.module import Module

__all__ = ["functional_call"]

_MISSING = object()


def _registry_of(owner: Module, name: str) -> dict[str, Any]:
    """The dictionary of `owner` in which `name` lives, or will."""
    for registry in (owner._parameters, owner._buffers):
        if name in registry:
            return registry
    return owner.__dict__


def _exchange(module: Module, path: str, value: Any) -> Any:
    """Put `value` at a dotted path and return what was there."""
    prefix, _, name = path.rpartition(".")
    registry = _registry_of(module.get_submodule(prefix), name)
    before = registry.get(name, _MISSING)
    if value is _MISSING:
        registry.pop(name, None)
    else:
        registry[name] = value
    return before


def _names_by_tensor(module: Module) -> dict[int, list[str]]:
    names: dict[int, list[str]] = {}
    for named in (module.named_parameters, module.named_buffers):
        for name, tensor in named(remove_duplicate=False):
            names.setdefault(id(tensor), []).append(name)
    return names


def _with_tied_names(module: Module, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """`given`, and the same tensors under every other name of what they replace."""
    spread = dict(given)
    for names in _names_by_tensor(module).values():
        values = [given[name] for name in names if name in given]
        if not values:
            continue
        if any(value is not values[0] for value in values):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names)}, which are tied. "
                "Consider using tie_weights=False"
            )
        spread.update(dict.fromkeys(names, values[0]))
    return spread


def _check_keys(module: Module, given: dict[str, Tensor]) -> None:
    known = {name for names in _names_by_tensor(module).values() for name in names}
    problems = []
    for label, keys in (("Unexpected", given.keys() - known), ("Missing", known - given.keys())):
        if keys:
            problems.append(f"{label} key(s): {', '.join(map(repr, sorted(keys)))}.")
    if problems:
        raise RuntimeError(
            f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(problems)
        )


@contextlib.contextmanager
def _reparametrize_module(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    tie_weights: bool = False,
    strict: bool = False,
) -> Iterator[None]:
    """Inside, `module` has the given tensors. What it replaces them by goes into the dictionary."""
    given = parameters_and_buffers
    if tie_weights:
        given = _with_tied_names(module, given)
    if strict:
        _check_keys(module, given)
    before: dict[str, Any] = {}
    try:
        for path, tensor in given.items():
            before[path] = _exchange(module, path, tensor)
        yield
    finally:
        for path in reversed(list(before)):
            after = _exchange(module, path, before[path])
            if path in parameters_and_buffers and after is not _MISSING:
                parameters_and_buffers[path] = after


def _functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Deprecated place of `func.functional_call`.

    Args:
        module: what is called.
        parameters_and_buffers: tensors by dotted name; other names keep their own.
        args: positional argument, or a tuple of them.
        kwargs: keyword arguments.
        tie_weights: a tensor given for one name of a shared parameter stands for all its names.
        strict: every parameter and buffer must be given, and nothing else.
    """
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated. Please use "
        "`torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )
