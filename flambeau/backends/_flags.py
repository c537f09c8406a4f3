"""A module of switches that can be set, read, and changed for a block.

The namespaces are modules, so that ``import flambeau.backends.cudnn`` works. Invariant: only the
declared switches exist; a misspelt one raises. Must not know any library.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, ClassVar


class Backend(ModuleType):
    """Base of the namespaces; ``_switches`` declares names and initial values."""

    _switches: ClassVar[dict[str, Any]] = {}

    def __init__(self, name: str) -> None:
        super().__init__(f"flambeau.backends.{name}", type(self).__doc__)
        self.__dict__["_values"] = dict(self._switches)

    def is_available(self) -> bool:
        """Whether this build has the library."""
        return False

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(f"{self.__name__} has no attribute '{name}'") from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):  # what the import system keeps on a module
            super().__setattr__(name, value)
            return
        if name not in self._values:
            raise AttributeError(f"{self.__name__} has no switch '{name}' to set")
        self._values[name] = value

    def set_flags(self, **switches: Any) -> tuple[Any, ...]:
        """Set some switches; return the values of all before, in the order of declaration."""
        before = tuple(self._values.values())
        for name, value in switches.items():
            if value is not None:
                setattr(self, name, value)
        return before

    @contextmanager
    def flags(self, **switches: Any) -> Iterator[None]:
        """Set some switches for a block."""
        before = dict(self._values)
        self.set_flags(**switches)
        try:
            yield
        finally:
            self._values.update(before)


class MatmulFlags(Backend):
    """Switches of matrix products on a GPU."""

    _switches: ClassVar[dict[str, Any]] = {
        "allow_tf32": False,
        "allow_fp16_reduced_precision_reduction": True,
        "allow_bf16_reduced_precision_reduction": True,
        "allow_fp16_accumulation": False,
        "fp32_precision": "none",
    }
