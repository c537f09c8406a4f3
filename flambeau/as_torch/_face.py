"""The module objects that are `torch` and not `flambeau`: the top and `torch.version`.

All other modules are one object under both names (`_install`). A face holds the names of the
module behind it in its own dictionary, so that reading costs a look-up; what is written to a face
is written behind it too, so that our own code sees a patched function.
"""

from __future__ import annotations

import types
from typing import Any

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
