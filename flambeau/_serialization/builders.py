"""What a pickle may build: the allow-list of one load.

Owns the decision which names are known, which calls are made and what a state may do. Invariant: a
name that is in none of the tables (PyTorch's, plain data, NumPy's, the user's) ends the load; no
module is imported. It does not know the opcodes, nor where storages lie.
"""

from __future__ import annotations

import argparse
import enum
import pickle
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

from . import plain_data, torch_names

_BLOCKED = ("os", "posix", "nt", "sys", "subprocess", "builtins.eval", "builtins.exec")
_DICTS = (dict, OrderedDict, Counter, defaultdict)


def full_name(item: Any) -> tuple[str, Any]:
    """What a file calls an item of `add_safe_globals`, and the item."""
    if isinstance(item, tuple):
        value, name = item
        return name, value
    return f"{item.__module__}.{item.__qualname__}", item


class SafeBuilder:
    """Builds what the allow-list knows, for one load with ``weights_only=True``.

    Args:
        user: what the user allowed.
        persistent_load: gives the storage of a persistent id.
        flat_of: see `torch_names.TensorNames`.
        budget: how much the file may make us copy beyond its own bytes.
    """

    def __init__(
        self,
        user: list[Any],
        persistent_load: Callable[[Any], Any],
        flat_of: Callable[[Any], Any],
        budget: int,
    ) -> None:
        self.persistent_load = persistent_load
        self._user = dict(map(full_name, user))
        for name, value in list(self._user.items()):
            if name.startswith("flambeau."):
                self._user["torch." + name.removeprefix("flambeau.")] = value
        self._user_ids = {id(value) for value in self._user.values()}
        self._plain = plain_data.PlainData(budget)
        self._plain.factories.extend(self._user.values())
        self._tensors = torch_names.TensorNames(flat_of, self._is_users)
        self._names = self._plain.names | self._tensors.names
        self._calls = self._plain.calls | self._tensors.calls
        self._states: dict[type, Callable[[Any, Any], None]] = {
            OrderedDict: _set_attributes,
            argparse.Namespace: _set_attributes,
        }
        self._numpy = False

    def _is_users(self, value: Any) -> bool:
        return id(value) in self._user_ids

    def _load_numpy(self) -> None:
        import numpy as np

        from . import numpy_data, numpy_random

        self._numpy = True
        names, calls = numpy_data.names(self._plain.charge)
        self._names |= names
        self._calls |= calls
        names, calls, states = numpy_random.names()
        self._names |= names
        self._calls |= calls
        self._states |= states
        self._states[np.ndarray] = numpy_data.set_array_state
        for value in {type(np.dtype(code)) for code in "?bhilqBHILQefdgFDGSUV"}:
            self._states[value] = numpy_data.set_dtype_state

    def find_global(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        if full in _BLOCKED or module.partition(".")[0] in _BLOCKED:
            raise pickle.UnpicklingError(
                f"load: Weights only load failed: the file names {full}, which can act on the "
                "system and is never allowed"
            )
        if full in self._user:
            return self._user[full]
        if module.partition(".")[0] == "numpy" and not self._numpy:
            self._load_numpy()
        if full in self._names:
            return self._names[full]
        if full == "builtins.getattr":
            self._calls[id(getattr)] = self._member
            return getattr
        if full == "copyreg._reconstructor":
            self._calls[id(_reconstructor)] = lambda cls, base, state: self.new(cls, (), {})
            return _reconstructor
        raise pickle.UnpicklingError(self._tensors.refused(full) or _unknown(full))

    def reduce(self, function: Any, args: tuple[Any, ...]) -> Any:
        call = self._calls.get(id(function))
        if call is not None:
            return call(*args)
        if self._is_users(function):
            return function(*args)
        raise TypeError(f"a call of {str(function)[:80]}")

    def new(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._is_users(cls) and isinstance(cls, type):
            return cls.__new__(cls, *args, **kwargs)
        return self.reduce(cls, args)

    def build(self, obj: Any, state: Any) -> None:
        kind = type(obj)
        if self._is_users(kind):
            _set_user_state(obj, state)
        elif kind in self._states:
            self._states[kind](obj, state)
        else:
            raise TypeError(f"a state for a {kind.__name__}")

    def extend(self, obj: Any, items: list[Any]) -> None:
        if not self._is_users(type(obj)):
            raise TypeError(f"items are appended to a {type(obj).__name__}")
        obj.extend(items)

    def set_items(self, obj: Any, pairs: list[tuple[Any, Any]]) -> None:
        if type(obj) not in _DICTS and not self._is_users(type(obj)):
            raise TypeError(f"items are set in a {type(obj).__name__}")
        for key, value in pairs:
            obj[key] = value

    def _member(self, owner: Any, name: Any) -> Any:
        """`getattr`, by which pickles spell members of enums and nested classes."""
        if type(name) is not str or not self._is_users(owner):
            raise TypeError("an attribute of something that was not allowed")
        if isinstance(owner, enum.EnumMeta):
            return owner[name]
        return self.find_global(owner.__module__, f"{owner.__qualname__}.{name}")


class Recorder:
    """Builds nothing and notes the names and persistent ids that a pickle holds."""

    def __init__(self) -> None:
        self.names: dict[tuple[str, str], None] = {}
        self.pids: list[Any] = []

    def find_global(self, module: str, name: str) -> Any:
        self.names.setdefault((module, name))
        return Named(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        self.pids.append(pid)
        return Named("")

    def reduce(self, function: Any, args: Any) -> Any:
        return Named("")

    def new(self, cls: Any, args: Any, kwargs: Any) -> Any:
        return Named("")

    def build(self, obj: Any, state: Any) -> None:
        pass

    def extend(self, obj: Any, items: Any) -> None:
        pass

    def set_items(self, obj: Any, pairs: Any) -> None:
        pass


class Named:
    """Stands for an object that a `Recorder` does not build."""

    def __init__(self, name: str) -> None:
        self.name = name


def unknown_names(user: list[Any], recorder: Recorder) -> list[str]:
    """The names among those recorded that are not allowed."""
    builder = SafeBuilder(user, lambda pid: None, lambda storage: None, 0)
    found = []
    for module, name in recorder.names:
        try:
            builder.find_global(module, name)
        except pickle.UnpicklingError:
            found.append(f"{module}.{name}")
    return found


def _reconstructor() -> None:
    """Stands for `copyreg._reconstructor`, by which protocols 0 and 1 spell a new object."""


def _set_attributes(obj: Any, state: Any) -> None:
    if not isinstance(state, dict) or any(type(key) is not str for key in state):
        raise TypeError("a state that is not a dict of names")
    vars(obj).update(state)


def _set_user_state(obj: Any, state: Any) -> None:
    if hasattr(obj, "__setstate__"):
        obj.__setstate__(state)
        return
    attributes, slots = state if type(state) is tuple and len(state) == 2 else (state, None)
    if attributes:
        _set_attributes(obj, attributes)
    for name, value in (slots or {}).items():
        object.__setattr__(obj, name, value)


def _unknown(full: str) -> str:
    return (
        f"load: Weights only load failed: the file names {full}, which was not an allowed global "
        "by default. If you trust it, allow it before loading: "
        f"torch.serialization.add_safe_globals([{full}]). Or, only if you trust the whole file, "
        "load with weights_only=False, by which a file can run any code"
    )
