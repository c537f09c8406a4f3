"""Packages of torchdata, which are ours in `utils.data`: pipes, nodes, the stateful loader.

Owns what is found under those names: always ours, for a real torchdata reaches into PyTorch's own
loader; the package above them only where no real one is installed, whose other parts stay as they
are.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import types
from typing import Any, cast

NAME = "torchdata"
_PARTS = ("datapipes", "nodes", "stateful_dataloader")
_OURS = "flambeau.utils.data"


def find_spec(fullname: str, real: Any) -> importlib.machinery.ModuleSpec | None:
    """The spec of a module of torchdata.

    Args:
        fullname: its name.
        real: the spec of an installed torchdata, or None; asked for the package itself alone.
    """
    if fullname == NAME:
        if real is not None:
            return None
        return importlib.machinery.ModuleSpec(fullname, cast(Any, _Package()), is_package=True)
    if fullname.split(".")[1] not in _PARTS:
        return None
    ours = _OURS + fullname[len(NAME) :]
    try:
        found = importlib.util.find_spec(ours)
    except ModuleNotFoundError:
        found = None
    if found is None:
        return None
    spec = importlib.machinery.ModuleSpec(fullname, cast(Any, Ours(ours)), origin=found.origin)
    spec.submodule_search_locations = found.submodule_search_locations
    return spec


class _Package:
    """Makes the package where none is installed: its pipes come when they are asked for."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return types.ModuleType(spec.name, "Pipes, nodes and loaders, answered for by Flambeau.")

    def exec_module(self, module: types.ModuleType) -> None:
        def read(name: str) -> Any:
            if name == "janitor":
                return importlib.import_module(f"{NAME}.datapipes.utils").janitor
            try:
                return importlib.import_module(f"{NAME}.{name}")
            except ModuleNotFoundError:
                raise AttributeError(f"module {NAME!r} has no attribute {name!r}") from None

        vars(module).update(__getattr__=read, __all__=[*_PARTS, "janitor"])


class Ours:
    """Loads a module of ours under another name: one object, with two names."""

    def __init__(self, ours: str) -> None:
        self._ours = ours

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = importlib.import_module(self._ours)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self._spec
