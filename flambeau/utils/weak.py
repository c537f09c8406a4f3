"""Dictionaries that do not keep their keys alive, told apart by identity: tensors compare by value.

Owns the weak references; an entry goes with its key.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref):  # type: ignore[type-arg]
    """A weak reference that equals another one to the same object, alive or not."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        a, b = self(), other() if isinstance(other, WeakIdRef) else None
        return a is b if a is not None and b is not None else self is other

    def __ne__(self, other: object) -> bool:
        return not self == other


class TensorWeakRef:
    """A weak reference to a tensor; called, it gives the tensor or None.

    >>> x = torch.ones(2)
    >>> torch.utils.weak.TensorWeakRef(x)() is x
    True
    """

    def __init__(self, tensor: Any) -> None:
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Any:
        return self.ref()


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dict by the identity of its keys, which it does not keep alive.

    >>> x, seen = torch.ones(2), torch.utils.weak.WeakIdKeyDictionary()
    >>> seen[x] = "ones"
    >>> seen[x], torch.ones(2) in seen, len(seen)
    ('ones', False, 1)
    >>> del x
    >>> len(seen)
    0
    """

    def __init__(self, dict: Any = None) -> None:
        self.data: dict[WeakIdRef, Any] = {}
        if dict is not None:
            self.update(dict)

    def _forget(self, ref: WeakIdRef) -> None:
        self.data.pop(ref, None)

    def __getitem__(self, key: Any) -> Any:
        try:
            return self.data[WeakIdRef(key)]
        except KeyError:
            raise KeyError(key) from None

    def __setitem__(self, key: Any, value: Any) -> None:
        data = weakref.ref(self)

        def gone(ref: WeakIdRef) -> None:
            owner = data()
            if owner is not None:
                owner._forget(ref)

        self.data.setdefault(WeakIdRef(key, gone), value)
        self.data[WeakIdRef(key)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[WeakIdRef(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return WeakIdRef(key) in self.data
        except TypeError:
            return False

    def __iter__(self) -> Iterator[Any]:
        for ref in list(self.data):
            key = ref()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return sum(ref() is not None for ref in list(self.data))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"


WeakTensorKeyDictionary = WeakIdKeyDictionary
