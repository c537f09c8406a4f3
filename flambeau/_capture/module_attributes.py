"""Attributes of modules: what their dictionaries say, and what is loaded when first asked for.

Of modules of Python's own class and of subclasses. Owns which attribute is read in which way; those
that a class of modules computes by a method or descriptor are read as of any object (`objects`).
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

from . import kinds
from .errors import Again, Break, Raised
from .interpreter import Frame
from .kinds import UNSET, mro_lookup


def are_plain(module: types.ModuleType, cls: type, name: str) -> bool:
    """Whether the attribute is what the module's dictionary says, as it is where no subclass of
    modules has a say in it."""
    if cls is types.ModuleType:
        return True
    if mro_lookup(cls, name)[1] not in (None, types.ModuleType, object):
        return False
    lazily = mro_lookup(cls, "__getattr__")[0] is not UNSET
    return _finds_as_modules_do(cls) and (
        name in module.__dict__ or not lazily or _of_library(module)
    )


def are_written(cls: type, name: str) -> bool:
    """Whether setting the attribute changes the module's dictionary alone."""
    owner, found = mro_lookup(cls, "__setattr__")[1], mro_lookup(cls, name)[0]
    return owner is types.ModuleType and (found is UNSET or not kinds.is_data_descriptor(found))


def are_loaded(cls: type, name: str) -> bool:
    """Whether a class of modules says by `__getattr__` alone what its modules lack."""
    return _finds_as_modules_do(cls) and mro_lookup(cls, name)[0] is UNSET


def is_method(f: Frame, module: types.ModuleType, cls: type, name: str) -> bool:
    """Whether the attribute is a function of a subclass of modules."""
    if type(mro_lookup(cls, name)[0]) is not types.FunctionType:
        return False
    return _finds_as_modules_do(cls) and not f.shadow_state.namespace(module.__dict__).has(name)


def _finds_as_modules_do(cls: type) -> bool:
    return mro_lookup(cls, "__getattribute__")[1] is types.ModuleType


def _of_library(module: types.ModuleType) -> bool:
    """Whether its class is one of ours, which says what it has: `torch.ops`."""
    return type(module) is not types.ModuleType and kinds.library_class(type(module))


def read(f: Frame, module: types.ModuleType, name: str) -> Any:
    """An attribute that the module's dictionary, or its function `__getattr__`, says."""
    namespace = module.__dict__
    if name != "__dict__" and (
        name in namespace or f.shadow_state.namespace(namespace).peek(name) is not UNSET
    ):
        found = f.shadow_state.read_global(namespace, name, {})
        if found is not UNSET:
            return found
    if name == "__dict__":
        raise Break(f"__dict__ of the module {module.__name__} is read")
    ours = kinds.library_module(module.__name__) or _of_library(module)
    if ours or module.__name__ == "flambeau":
        found = f.interpreter.direct(getattr, module, name)  # may import a submodule
        f.shadow_state.sources.in_namespace(namespace, name, namespace.get(name, UNSET))
        return found
    getter = f.shadow_state.read_global(namespace, "__getattr__", {})
    if getter is not UNSET:
        return load(f, module, getter, name)
    raise Raised(AttributeError(f"module {module.__name__!r} has no attribute {name!r}"))


def load(f: Frame, module: types.ModuleType, getter: Any, name: str) -> Any:
    """What `getter(name)` says of a name that may be missing. It is followed, or, where it cannot
    be because it imports, runs and must have stored what it found in the module."""
    if f.shadow_state.namespace(module.__dict__).has(name):
        return read(f, module, name)
    before = f.shadow_state.changes()
    try:
        return f.call(getter, [name], {})
    except Break:
        if f.shadow_state.changes() != before:
            raise
    try:
        f.interpreter.tensors.session.outside(getattr, module, name)
    except AttributeError as error:
        raise Raised(error) from None
    if name not in module.__dict__:
        raise Break(f"{module.__name__}.{name} is computed each time it is read")
    raise Again()  # what was guarded so far says that it is not there


def imported(name: str) -> Any:
    """A module by its full name: one that is there already, or one of ours."""
    if name not in sys.modules and not kinds.library_module(name):
        raise Break(f"the module {name} is imported")
    return importlib.import_module(name)
