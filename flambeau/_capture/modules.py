"""Attributes of `nn.Module`, which it keeps in three registries: parameters, buffers, children.

What `Module.__getattr__` and `__setattr__` do in the ordinary cases, entry by entry, so that a
read guards one entry and not the whole module. In all other cases their code is followed.
Invariant: the registries are read and written through their shadows, see Note [One shadow].
"""

from __future__ import annotations

from typing import Any

from flambeau import _C
from flambeau._ir.enumerations import CheckKind
from flambeau.nn import Module
from flambeau.nn.modules import _convert, _hooks

from . import calls, kinds, objects
from .builtin_calls import means
from .errors import Break, Raised
from .interpreter import Frame
from .kinds import UNSET
from .state import Entries

_REGISTRIES = ("_parameters", "_buffers", "_modules")
_MADE_ON_DEMAND = _hooks.CALL_HOOKS | _hooks.STATE_HOOKS | {"_non_persistent_buffers_set"}
_getattr: Any = Module.__dict__["__getattr__"]
_setattr: Any = Module.__dict__["__setattr__"]


def registry(f: Frame, module: Any, name: str) -> Entries | None:
    """A registry of a module, by entry; None where the module has none of the ordinary sort."""
    shadow_state = f.shadow_state
    store = shadow_state.store(module)
    if store is None:
        return None
    stored = store.peek(name)
    if stored is UNSET and store.copy is None:
        found = store.original.get(name)
        if type(found) is not dict:
            return None
        return shadow_state.entries(found, shadow_state.source_of(module).in_instance(name))
    if type(stored) is not dict:
        return None
    return Entries(shadow_state, None, None, stored)


@means(_getattr)
def module_getattr(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Parameters, buffers, children."""
    module, name = args
    if f.shadow_state.is_created(module) or name in _MADE_ON_DEMAND:
        return calls.follow(f, _getattr, args, kwargs)
    shown = f"{f.shadow_state.source_of(module).name}.{name}"
    for kind in _REGISTRIES:
        entries = registry(f, module, kind)
        if entries is None:
            return calls.follow(f, _getattr, args, kwargs)
        found = entries.get(name, shown)
        if found is not UNSET:
            return found
    words = f"'{type(module).__name__}' object has no attribute '{name}'"
    raise Raised(AttributeError(words))


@means(_convert._converted)
def converted(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A parameter that `Module.to` and its kin leave as it is."""
    param, fn = args
    if f.call(fn, [param], {}) is not param:
        raise Break("parameters of a module are converted")
    return param


@means(_setattr)
def module_setattr(f: Frame, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A buffer, or an attribute that is neither a parameter nor a module."""
    module, name, value = args
    if not _is_ordinary(f, module, name, value):
        return calls.follow(f, _setattr, args, kwargs)
    parameters, buffers, children = (registry(f, module, kind) for kind in _REGISTRIES)
    if parameters is None or buffers is None or children is None:
        return calls.follow(f, _setattr, args, kwargs)
    if parameters.has(name) or children.has(name):
        return calls.follow(f, _setattr, args, kwargs)
    if not buffers.has(name):
        objects.generic_store(f, module, type(module), name, value)
    elif not (value is None or kinds.is_tensor(value)):
        return calls.follow(f, _setattr, args, kwargs)
    elif hooks := _hooks._global_buffer_registration_hooks:
        return calls.follow(f, _setattr, args, kwargs)
    else:
        source = f.shadow_state.sources.constant(hooks, "hooks of buffers")
        source.check(CheckKind.Length, 0, "no hook of buffers is registered")
        buffers.set(name, value)
    return None


def _is_ordinary(f: Frame, module: Any, name: str, value: Any) -> bool:
    if f.shadow_state.is_created(module) or isinstance(value, Module) or name in _hooks.CALL_HOOKS:
        return False
    return not kinds.is_tensor(value) or f.interpreter.tensors.real_class(value) is _C.Tensor
