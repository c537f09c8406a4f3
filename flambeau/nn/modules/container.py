"""Modules that hold others: Sequential, ModuleList, ModuleDict (and their parameter kin).

Owns the list and dictionary protocols over `_modules`. Invariant: the keys of a list-like
container are "0", "1", ... in order. Knows nothing of what it holds. The containers of parameters
have a file of their own.
"""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ._parameter_containers import ParameterDict, ParameterList
from .module import Module, _addindent
from .utils import _key_value_pairs

__all__ = ["Container", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"]


class Container(Module):
    """An old base class; `Module` does all it does."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        warnings.warn(
            "nn.Container is deprecated. nn.Module does all it did; subclass that instead.",
            FutureWarning,
            stacklevel=2,
        )
        for name, module in kwargs.items():
            self.add_module(name, module)


class _ListOfModules(Module):
    """What `Sequential` and `ModuleList` have in common: a list kept in `_modules`."""

    _modules: dict[str, Module]

    def __getitem__(self, index: int | slice) -> Any:
        raise NotImplementedError

    def _key(self, index: Any) -> str:
        """The key of a possibly negative position."""
        position = operator.index(index)
        size = len(self)
        if not -size <= position < size:
            raise IndexError(f"index {position} is out of range")
        return str(position % size)

    def _keep(self, modules: Iterable[Module]) -> None:
        """Store `modules` and nothing else, numbered from 0."""
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: int | slice) -> None:
        if isinstance(index, slice):
            for key in list(self._modules)[index]:
                delattr(self, key)
        else:
            delattr(self, self._key(index))
        self._keep(list(self._modules.values()))

    def __dir__(self) -> list[str]:
        return [key for key in super().__dir__() if not key.isdigit()]

    def append(self, module: Module) -> Any:
        """Add a module at the end; returns self."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: int | slice) -> Module:
        """Take out the module at a position and return it."""
        taken = self[key]
        del self[key]
        return taken


class Sequential(_ListOfModules):
    """Modules called one after the other, each on what the one before gave.

    Args:
        *args: the modules, or one ordered dictionary that names them.

    Example:
        >>> import flambeau as fb
        >>> fb.nn.Sequential(fb.nn.Identity(), fb.nn.Identity())
        Sequential(
          (0): Identity()
          (1): Identity()
        )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            named: Iterable[tuple[str, Module]] = args[0].items()
        else:
            named = ((str(i), module) for i, module in enumerate(args))
        for name, module in named:
            self.add_module(name, module)

    def _key(self, index: Any) -> str:
        # Members may have names of their own, so the position is looked up.
        return list(self._modules)[int(super()._key(index))]

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, "
                f"but {type(other)} is given."
            )
        joined = Sequential()
        for module in (*self, *other):
            joined.append(module)
        return joined

    def __iadd__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, "
                f"but {type(other)} is given."
            )
        return self.extend(other)

    def __mul__(self, other: int) -> Sequential:
        self._check_times(other)
        return Sequential(*(module for _ in range(other) for module in self))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Sequential:
        self._check_times(other)
        members = list(self)
        for _ in range(other - 1):
            self.extend(members)
        return self

    def _check_times(self, times: Any) -> None:
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")

    def forward(self, input: Any) -> Any:
        """Call every module in turn."""
        for module in self._modules.values():
            input = module(input)
        return input

    def extend(self, sequential: Iterable[Module]) -> Sequential:
        """Add modules at the end; returns self."""
        for module in list(sequential):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Sequential:
        """Put a module before position `index`; returns self."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        size = len(self)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        members = list(self)
        members.insert(index, module)
        self._keep(members)
        return self


class ModuleList(_ListOfModules):
    """A list of modules that registers them.

    Args:
        modules: what to start with.
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._key(index)]

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        joined = ModuleList()
        for i, module in enumerate((*self, *other)):
            joined.add_module(str(i), module)
        return joined

    def __repr__(self) -> str:
        """As a list, equal neighbours taken together."""
        if len(self) == 0:
            return self._get_name() + "()"
        runs: list[list[Any]] = []  # [first, last, text]
        for i, text in enumerate(repr(module) for module in self):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = []
        for first, last, text in runs:
            if first == last:
                label = f"({first}): "
            else:
                label = f"({first}-{last}): {last - first + 1} x "
            lines.append(_addindent(label + text, 2))
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"

    def insert(self, index: int, module: Module) -> None:
        """Put a module before position `index`, counted as for a list."""
        members = list(self)
        members.insert(index, module)
        self._keep(members)

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Add modules at the end; returns self."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, "
                f"but got {type(modules).__name__}"
            )
        start = len(self)
        for i, module in enumerate(list(modules)):
            self.add_module(str(start + i), module)
        return self


class ModuleDict(Module):
    """A dictionary of modules that registers them.

    Args:
        modules: a mapping or pairs (name, module) to start with.
    """

    _modules: dict[str, Module]

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take everything out."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Take out a module and return it."""
        taken = self[key]
        del self[key]
        return taken

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Pairs (name, module)."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add or replace, from a mapping or from pairs (name, module)."""
        for key, module in _key_value_pairs(modules, "ModuleDict"):
            self[key] = module
