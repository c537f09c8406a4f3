"""Classes of C++ (``torch::class_``) by the name of their library: ``torch.classes.SPACE.NAME``.

A class is there once the library that defines it is loaded. Its objects have the methods and
properties that the C++ says, are made by calling the class, and can be arguments of scripts and of
operators. Each method is an operator, ``SPACE::NAME.METHOD``. (PyTorch's tutorial on custom classes
has the C++ side; docs/cpp.md here.)
"""

from __future__ import annotations

import os
from typing import Any

from flambeau import _C

from ._library.operators import load_library as _load
from ._library.operators import overload_of

_PREFIX = "__torch__.torch.classes."

#: paths that were given to `load_library`
loaded_libraries: set[str] = set()

_made: dict[str, type] = {}


def load_library(path: Any) -> None:
    """Load a library of C++ for the classes and operators that it defines.

    Args:
        path: of a shared library; it is loaded once.

    Raises:
        OSError: it cannot be loaded.
        RuntimeError: a class or an operator could not be added.
    """
    name = os.fspath(path)
    if name not in loaded_libraries:
        _load(name)
        loaded_libraries.add(name)


def is_native(name: str) -> bool:
    """Whether a type of schemas is a class of C++."""
    return name.startswith(_PREFIX)


def class_named(full_name: str) -> type:
    """The class of Python for a class of C++, by its name in schemas.

    Raises:
        RuntimeError: no library that is loaded has such a class.
    """
    found = _made.get(full_name)
    if found is not None:
        return found
    described = _C._custom_class(full_name)
    if described is None:
        shown = full_name.removeprefix(_PREFIX)
        known = ", ".join(n.removeprefix(_PREFIX) for n in _C._custom_classes()) or "none"
        raise RuntimeError(
            f"torch.classes: there is no class {shown!r}; load the library that defines it by "
            f"torch::class_ first (torch.classes.load_library). Known: {known}"
        )
    space, name, doc, methods, properties = described
    members: dict[str, Any] = {
        "__doc__": doc or None, "__slots__": ("__weakref__",), "__qualname__": name,
        "__module__": f"torch.classes.{space}", "__reduce__": _reduce, "_script_name": full_name,
        "_script_methods": {n: uid for n, _, uid, _ in methods},
        "_script_properties": {n: (get, set_) for n, _, get, set_ in properties},
    }  # fmt: skip
    for method, text, uid, of_class in methods:
        if method == "__new__":
            members[method] = _constructor(uid, text)
        elif of_class:
            members[method] = staticmethod(overload_of(uid))
        else:
            members[method] = _method(uid, method, text)
    restore = members.pop("__setstate__", None)
    members["_restore"] = restore
    for n, text, get, set_ in properties:
        members[n] = property(
            _method(get, n, text),
            None if set_ is None else _method(set_, n, ""),
            None,
            text or None,
        )
    made = _made[full_name] = type(name, (_C.ScriptObject,), members)
    return made


def _method(uid: str, name: str, doc: str) -> Any:
    operator = overload_of(uid)

    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return operator(self, *args, **kwargs)

    method.__name__, method.__qualname__, method.__doc__ = name, uid.partition("::")[2], doc or None
    return method


def _constructor(uid: str, doc: str) -> Any:
    operator = overload_of(uid)

    def __new__(cls: type, /, *args: Any, **kwargs: Any) -> Any:
        return operator(*args, **kwargs)

    __new__.__doc__ = doc or None
    return staticmethod(__new__)


def _reduce(self: Any) -> Any:
    cls = type(self)
    if cls._restore is None:
        shown = cls._script_name.removeprefix(_PREFIX)
        raise TypeError(
            f"objects of {shown} cannot be saved or copied: their C++ says no def_pickle"
        )
    return _restored, (cls._script_name, self.__getstate__())


def _restored(full_name: str, state: Any) -> Any:
    cls: Any = class_named(full_name)
    return cls._restore(state)


class _Space:
    """`torch.classes.SPACE`: the classes of a library."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(f"torch.classes.{self.__name__} has no attribute {name!r}")
        made = class_named(f"{_PREFIX}{self.__name__}.{name}")
        setattr(self, name, made)
        return made

    def __dir__(self) -> list[str]:
        start = f"{_PREFIX}{self.__name__}."
        return [n.removeprefix(start) for n in _C._custom_classes() if n.startswith(start)]

    def __repr__(self) -> str:
        return f"<torch.classes.{self.__name__}>"


def __getattr__(name: str) -> _Space:
    if name.startswith("__"):
        raise AttributeError(f"module 'torch.classes' has no attribute {name!r}")
    space = globals()[name] = _Space(name)
    return space
