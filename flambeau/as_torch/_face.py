"""The module objects that are `torch` and not `flambeau`: the top, `torch.version`, `torch.ops`.

All other modules are one object under both names (`_install`). A face holds the names of the
module behind it in its own dictionary, so that reading costs a look-up; what is written to a face
is written behind it too, so that our own code sees a patched function.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import types
from typing import Any

from . import _missing

#: names of a module that are its own and not shared
_OWN = frozenset(
    ("__name__", "__spec__", "__loader__", "__package__", "__path__", "__file__", "__cached__",
     "__getattr__", "__dir__", "__builtins__")
)  # fmt: skip


class Face(types.ModuleType):
    """A module that shows another one under a different name, but for some names of its own."""

    def __init__(self, name: str, behind: types.ModuleType, own: dict[str, Any]) -> None:
        super().__init__(name, behind.__doc__)
        mine = {"_behind": behind, "_differs": frozenset(own)}
        shown = {k: v for k, v in vars(behind).items() if k not in _OWN and k not in own}
        vars(self).update(shown | own | mine)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._differs and name not in _OWN:
            setattr(self._behind, name, value)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        if name not in self._differs and name in vars(self._behind):
            delattr(self._behind, name)


class Packet:
    """`torch.ops.aten.add`: a function of ours, whose overloads are one."""

    def __init__(self, name: str, function: Any) -> None:
        self.__name__ = self.__qualname__ = name
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"'OpOverloadPacket' {self.__name__!r} has no attribute {name!r}")
        overload = Overload(f"{self.__name__}.{name}", self._function)
        overload.overloadpacket = self
        setattr(self, name, overload)
        return overload

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self.__name__}')>"


class Overload:
    """`torch.ops.aten.add.Tensor`: called like the function it names."""

    overloadpacket: Packet

    def __init__(self, name: str, function: Any) -> None:
        self.__name__ = self.__qualname__ = name
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.__name__}')>"


class Namespace(types.ModuleType):
    """`torch.ops.NAME`: operations of one library."""

    def __init__(self, name: str, behind: types.ModuleType | None) -> None:
        super().__init__(f"torch.ops.{name}")
        self.name, self._behind = name, behind

    def _of_core(self, name: str) -> Any:
        """Our function or method of the name, or what refuses to be called."""
        if self._behind is None:
            return None
        functional = importlib.import_module("flambeau.nn.functional")
        for place in (self._behind, self._behind.Tensor, sys.modules["flambeau"], functional):
            found = getattr(place, name, None)
            if callable(found) and not isinstance(found, type):
                return found
        try:
            return _missing.lookup(self.__name__, name)
        except AttributeError:
            return None

    def __getattr__(self, name: str) -> Any:
        function = None
        if not name.startswith("__"):
            library = sys.modules.get("flambeau.library")
            operators = {} if library is None else library._operators
            function = operators.get(f"{self.name}::{name}") or self._of_core(name)
        if function is None:
            raise AttributeError(f"'_OpNamespace' {self.name!r} object has no attribute {name!r}")
        packet = Packet(f"{self.name}.{name}", function)
        setattr(self, name, packet)
        return packet


class Ops(types.ModuleType):
    """`torch.ops`: a namespace for each library, of which `aten` is ours."""

    def __init__(self, core: types.ModuleType) -> None:
        super().__init__("torch.ops", "Operations by the name of their library.")
        self.__path__: list[str] = []
        self.__spec__ = importlib.machinery.ModuleSpec("torch.ops", None, is_package=True)
        self._core = core
        self.loaded_libraries: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module 'torch.ops' has no attribute {name!r}")
        namespace = Namespace(name, self._core if name == "aten" else None)
        setattr(self, name, namespace)
        return namespace

    def load_library(self, path: Any) -> None:
        """Refuse: a library built for PyTorch needs PyTorch's own binary interface."""
        raise OSError(f"torch.ops.load_library: {path} is built for PyTorch, not for Flambeau")

    def load_module(self, module: str) -> None:
        """Load a library of operations given by a Python module; none is known."""
        raise OSError(f"torch.ops.load_module: {module!r} is built for PyTorch, not for Flambeau")
