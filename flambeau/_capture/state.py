"""The one shadow of each piece of state that existed before: entries of dicts, slots of objects.

Invariant: see Note [One shadow]. `Entries` stands for a dict whose entries the program reaches by
name (an instance dictionary, a registry of a module, a namespace) and, once the program holds the
dict itself, for the copy that it works on. Knows nothing of frames, tensors or of how attributes
are looked up.

Note [One shadow]
An object or mapping that existed before a program was followed has exactly one shadow, found by
the identity of what is shadowed, never by the way that led to it:

- a container: the copy in `World.shadows`;
- a dict whose entries are also reached by name: its `Entries`, by the identity of the dict, so
  that objects which share an instance dictionary share its shadow. Each entry is guarded when it is
  read, and a write is kept beside the original. When the program gets hold of the dict
  (`o.__dict__`, `vars(o)`, an alias somewhere), the copy is made, what was written goes into it,
  and from then on it is the shadow: names read and write the copy;
- slots of an object: `Slots`, by the identity of the object;
- a closure's cell: its `OutsideCell`.

An object that the program made is its own shadow. What was changed is put back at the end of a
graph by the most basic operation of the type (`dict.__setitem__`, `list.__setitem__`, a slot's
descriptor), so that no code of the program's classes runs. Two shadows are of two things: when one
was written, guards see to it that what might be the same thing in a later call is not.
"""

from __future__ import annotations

from typing import Any

from flambeau._ir.enumerations import Access

from .errors import Break
from .kinds import DELETED, UNSET
from .sources import Source


class Entries:
    """What a program sees of a dict, entry by entry; `copy` is set once it sees the whole."""

    __slots__ = ("copy", "moved", "original", "shadow_state", "source", "touched", "written")

    def __init__(self, shadow_state: Any, original: Any, source: Any, copy: Any = None) -> None:
        self.shadow_state, self.original, self.source, self.copy = (
            shadow_state,
            original,
            source,
            copy,
        )
        self.written: dict[Any, Any] = {}  # a value, or DELETED
        self.moved: set[Any] = set()  # deleted and written again: they are last now
        self.touched: set[Any] = set()

    def get(self, key: Any, shown: str = "") -> Any:
        """The value of a key, guarded; UNSET where there is none."""
        if self.copy is not None:
            return self.copy.get(key, UNSET)
        self.touched.add(key)
        value = self.written.get(key, UNSET)
        if value is not UNSET:
            return UNSET if value is DELETED else value
        if key in self.original:
            return self.shadow_state.wrap(self.original[key], self._place(key, shown))
        self.source.absent(key)
        return UNSET

    def has(self, key: Any) -> bool:
        """Whether a key is set, guarded."""
        if self.copy is not None:
            return key in self.copy
        self.touched.add(key)
        value = self.written.get(key, UNSET)
        if value is not UNSET:
            return value is not DELETED
        if key in self.original:
            self._place(key, "")
            return True
        self.source.absent(key)
        return False

    def peek(self, key: Any) -> Any:
        """What the program stored or would be given unchanged; UNSET: nothing of that kind."""
        if self.copy is not None:
            return self.copy.get(key, UNSET)
        return self.written.get(key, UNSET)

    def shows(self, key: Any) -> bool:
        """Whether a key was stored here, or was there before; without a guard."""
        if self.copy is not None:
            return key in self.copy
        return key in self.written or key in self.original

    def set(self, key: Any, value: Any) -> None:
        if self.copy is not None:
            self.copy[key] = value
            return
        self.touched.add(key)
        if self.written.get(key, UNSET) is DELETED:
            del self.written[key]
            self.moved.add(key)
        self.written[key] = value

    def delete(self, key: Any) -> bool:
        """Whether there was such a key."""
        if not self.has(key):
            return False
        if self.copy is not None:
            del self.copy[key]
        elif key in self.original:
            self._place(key, "")
            self.moved.discard(key)
            self.written[key] = DELETED
        else:
            self.source.absent(key)
            del self.written[key]
        return True

    def all(self) -> dict[Any, Any]:
        """The dict itself, as the program may hold it."""
        if self.copy is None:
            self.shadow_state.wrap(self.original, self.source)
            self.shadow_state.refuse_large(self.original)
        assert self.copy is not None
        return self.copy

    def hand_over(self, copy: dict[Any, Any]) -> None:
        """From now on a copy of the original is the shadow."""
        for key, value in self.written.items():
            if value is DELETED or key in self.moved:
                copy.pop(key, None)
            if value is not DELETED:
                copy[key] = value
        self.copy = copy
        self.written = {}

    def _place(self, key: Any, shown: str) -> Source:
        if type(key) is not str:
            return self.source.entry(key)
        words = shown or f"{self.source.name}.{key}"
        return self.source.child(Access.Dict, key, words)


class Slots:
    """What a program stored in the slots of an object that existed before."""

    __slots__ = ("owner", "touched", "written")

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.touched: set[Any] = set()
        self.written: dict[Any, Any] = {}  # by descriptor: a value, or DELETED


def written_together(shadow_state: Any) -> list[Source]:
    """Places whose objects must stay apart, since one of them was changed: see Note [One shadow].

    Lazily shadowed dicts count when they were asked for a key that was written in another.
    """
    shadows = list(shadow_state.shadows.values())
    changed = {type(s.original) for s in shadows if s.changed()}
    found = {id(s.original): s.source for s in shadows if type(s.original) in changed}
    lazy = [e for e in shadow_state.dicts.values() if e.copy is None]
    keys = {k for e in lazy for k in e.written}
    if keys:
        found.update((id(s.original), s.source) for s in shadows if type(s.original) is dict)
    for e in lazy:
        if dict in changed or not keys.isdisjoint(e.touched):
            found[id(e.original)] = e.source
    slots = shadow_state.slots.values()
    keys = {d for s in slots for d in s.written}
    for s in slots:
        if not keys.isdisjoint(s.touched):
            found[id(s.owner)] = shadow_state.source_of(s.owner)
    cells = [c for c in shadow_state.cells.values() if c.was_read]
    if any(c.changed() for c in cells):
        found.update((id(c.original), c.source) for c in cells)
    return [p for p in found.values() if p.access not in (Access.Constant, Access.Globals)]


def mapping_changes(before: list[Any], after: list[Any]) -> tuple[list[Any], list[Any]]:
    """What makes one mapping of another: keys to delete, then pairs to set, in order.

    An iterator over the mapping may be alive: no more is changed than what differs.
    """
    old = dict(zip(before[::2], before[1::2], strict=True))
    pairs = list(zip(after[::2], after[1::2], strict=True))
    order = iter(old)
    kept = 0
    for key, _ in pairs:  # those that keep their place
        if key not in old or not any(_are_one(k, key) for k in order):
            break
        kept += 1
    staying = {k for k, _ in pairs[:kept]}
    gone = [k for k in old if k not in staying]
    return gone, [(k, v) for n, (k, v) in enumerate(pairs) if n >= kept or v is not old[k]]


def _are_one(a: Any, b: Any) -> bool:
    """Whether two keys are one for a dict, which asks for equality where hashes are equal."""
    return a is b or (hash(a) == hash(b) and bool(a == b))


def exact_dict(store: Any, name: str) -> dict[Any, Any]:
    """An instance dictionary; of another type it has methods that lookups must not run."""
    if type(store) is not dict:
        raise Break(f"__dict__ of {name} is no dict")
    return store


class LacksSlot:
    """A check that a slot holds nothing."""

    def __init__(self, descriptor: Any) -> None:
        self.descriptor = descriptor

    def __call__(self, value: Any) -> bool:
        try:
            self.descriptor.__get__(value, type(value))
        except AttributeError:
            return True
        return False
