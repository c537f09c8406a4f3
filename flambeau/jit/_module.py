"""The base of modules that are, or are written to be, scripts.

Owns what the two have in common; how scripts are made is `_script`'s.
"""

from __future__ import annotations

import importlib
from typing import Any

from flambeau.nn.modules.module import Module

from ._marks import AttributeValue


class ScriptModule(Module):
    """A module written to be scripted, or one that `jit.script` has made.

    A class of the program's runs as Python, and has the script of its `forward` and of its
    `script_method`s in `graph`, `code` and `save`.
    """

    def __init__(self, arg: Any = None) -> None:
        super().__init__()

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, AttributeValue):
            self.__dict__.setdefault("_script_types", {})[name] = value.type
            value = value.value
        super().__setattr__(name, value)

    def _as_script(self) -> Any:
        return importlib.import_module("flambeau._script.objects").script_module(self)

    @property
    def graph(self) -> Any:
        """`forward` as typed values and calls."""
        return self._as_script().graph

    @property
    def code(self) -> str:
        """`forward` as Python-like text."""
        return str(self._as_script().code)

    def save(self, f: Any, _extra_files: Any = None) -> None:
        """Write the script to a file that `jit.load` reads."""
        self._as_script().save(f, _extra_files)
