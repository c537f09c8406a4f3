"""Handles of registered hooks.

Owns ``RemovableHandle``: whatever registers a callable in an ordered dict hands one back. Handle
ids grow monotonically over the process, so hooks run in the order of registration whoever owns
the dict. Knows nothing of modules, tensors or optimisers; holds the dict weakly, so a handle
keeps nothing alive.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, MutableMapping
from typing import Any, Self

__all__ = ["RemovableHandle"]


class RemovableHandle:
    """Removes a hook from the dict it was registered in.

    Args:
        hooks_dict: ordered dict of hooks, keyed by handle id.
        extra_dict: one more dict (or a list of them) that has an entry under the same id.

    As a context manager it removes the hook on exit.
    """

    id: int
    next_id: int = 0

    def __init__(
        self,
        hooks_dict: MutableMapping[int, Any],
        *,
        extra_dict: MutableMapping[int, Any] | Iterable[MutableMapping[int, Any]] | None = None,
    ) -> None:
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        if extra_dict is None:
            extra_dict = ()
        elif isinstance(extra_dict, MutableMapping):
            extra_dict = (extra_dict,)
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra_dict)

    def remove(self) -> None:
        """Take the hook out; doing so twice is harmless."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        extra = tuple(ref() for ref in self.extra_dict_ref)
        return (self.hooks_dict_ref(), self.id, extra)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        from collections import OrderedDict

        def revive(hooks: MutableMapping[int, Any] | None) -> weakref.ref[Any]:
            return weakref.ref(OrderedDict() if hooks is None else hooks)

        self.hooks_dict_ref = revive(state[0])
        self.id = state[1]
        self.extra_dict_ref = tuple(revive(d) for d in (state[2] if len(state) > 2 else ()) or ())
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()
