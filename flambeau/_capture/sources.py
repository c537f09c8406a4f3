"""Where a value came from: local 0, its item 2, the attribute of that. A source carries the checks
on what was found there and, when the compiled code needs the value itself, a slot.

The tree of sources is what the native guards walk on each call (csrc/python/guards.cpp).
"""

from __future__ import annotations

import types
from typing import Any

from flambeau._ir.enumerations import Access, CheckKind
from flambeau._ir.own import own_module

from . import kinds
from .kinds import UNSET

_IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE


class Source:
    """A node of the tree; `name` is how a user would write it."""

    __slots__ = ("access", "checks", "children", "key", "name", "slot", "tree")

    def __init__(self, tree: Sources, access: int, key: Any, name: str) -> None:
        self.tree, self.access, self.key, self.name = tree, access, key, name
        self.slot = -1
        self.checks: dict[Any, tuple[int, Any, str]] = {}
        self.children: dict[Any, Source] = {}

    def child(self, access: int, key: Any, name: str) -> Source:
        at = (access, key if access != Access.Constant and _plain(key) else id(key), type(key))
        found = self.children.get(at)
        if found is None:
            found = self.children[at] = Source(self.tree, access, key, name)
        return found

    def attribute(self, name: str) -> Source:
        return self.child(Access.Attribute, name, f"{self.name}.{name}")

    def instance(self) -> Source:
        return self.child(Access.Instance, None, self.name)

    def of_thread(self) -> Source:
        """The dictionary that a `threading.local` has for the thread that asks."""
        return self.child(Access.Instance, "__dict__", self.name)

    def in_instance(self, name: str) -> Source:
        """An entry of the instance dictionary."""
        return self.instance().child(Access.Dict, name, f"{self.name}.{name}")

    def entry(self, key: Any) -> Source:
        """An entry of a dictionary."""
        return self.child(Access.Dict, key, f"{self.name}[{short(key)}]")

    def item(self, index: int) -> Source:
        return self.child(Access.Item, index, f"{self.name}[{index}]")

    def contents(self) -> Source:
        return self.child(Access.Contents, None, self.name)

    def check(self, kind: int, value: Any, words: str) -> None:
        key: Any = (kind, value) if kind in (CheckKind.Absent, CheckKind.Length) else kind
        key = (kind, words) if kind == CheckKind.Truth else key
        self.checks.setdefault(key, (kind, value, words))

    def type_is(self, cls: type) -> None:
        self.check(CheckKind.Type, cls, f"type({self.name}) is {cls.__qualname__}")

    def is_object(self, value: Any) -> None:
        self.check(CheckKind.Identity, value, f"{self.name} is {short(value)}")

    def is_identified(self) -> bool:
        """Whether a check says which object this is."""
        return CheckKind.Identity in self.checks

    def equals(self, value: Any) -> None:
        if value is None or value is True or value is False or value is ...:
            self.is_object(value)
        else:
            self.check(CheckKind.Constant, value, f"{self.name} == {short(value)}")

    def absent(self, key: str) -> None:
        """An instance dictionary or a namespace lacks a name."""
        self.check(CheckKind.Absent, key, f"{key!r} is not set in {self.name}")

    def has(self, key: str, value: Any, words: str) -> None:
        """A namespace holds this object under a name, or none (UNSET). One check for all names: for
        namespaces that hardly ever change."""
        names = self.checks.setdefault(
            CheckKind.Names, (CheckKind.Names, {}, f"names of {self.name}")
        )[1]
        if key not in names:
            is_what = "is not set" if value is UNSET else f"is {short(value)}"
            found = () if value is UNSET else (value,)
            names[key] = (key, f"{words}.{key} {is_what}", *found)

    def take(self) -> int:
        """Its slot: the compiled code is given what is found here."""
        if self.slot < 0:
            self.slot = len(self.tree.slots)
            self.tree.slots.append(self)
        return self.slot

    def spec(self) -> tuple[Any, ...]:
        return (
            self.access,
            self.key,
            self.slot,
            f"{self.name} exists",
            tuple(
                (kind, tuple(value.values()) if kind == CheckKind.Names else value, words)
                for kind, value, words in self.checks.values()
            ),
            tuple(c.spec() for c in self.children.values()),
        )

    def clear(self) -> None:
        """Releases the checks and the sources below."""
        for c in self.children.values():
            c.clear()
        self.checks, self.children = {}, {}

    def texts(self) -> list[str]:
        """The checks here and below, in words."""
        out = [words for kind, _, words in self.checks.values() if kind != CheckKind.Names]
        for c in self.children.values():
            out += c.texts()
        return out


class Sources:
    """All sources of one captured frame, and the relations between them."""

    def __init__(self) -> None:
        self.root = Source(self, -1, None, "")
        self.slots: list[Source] = []
        self.same: dict[tuple[Source, Source], None] = {}
        self.distinct: list[Source] = []

    def local(self, index: int, name: str) -> Source:
        return self.root.child(Access.Local, index, name)

    def closure(self, index: int, name: str) -> Source:
        return self.root.child(Access.Closure, index, name)

    def globals(self) -> Source:
        return self.root.child(Access.Globals, None, "globals()")

    def constant(self, value: Any, name: str) -> Source:
        return self.root.child(Access.Constant, value, name)

    def in_namespace(self, namespace: dict[str, Any], name: str, value: Any) -> None:
        """A module of a library has the name."""
        words = str(namespace.get("__name__", "?"))
        self.constant(namespace, words).has(name, value, words)

    def in_classes(self, cls: type, name: str, owner: type | None) -> None:
        """A name is found in `owner` (None: nowhere), and not in a class that comes before it."""
        for base in cls.__mro__:
            found = base.__dict__.get(name, UNSET)
            if base.__flags__ & _IMMUTABLE == 0:
                place = self.constant(base, base.__qualname__).instance()
                place.has(name, found, base.__qualname__)
            if base is owner:
                return

    def are_one(self, a: Source, b: Source) -> None:
        """One object is found at both sources."""
        self.same[a, b] = None

    def spec(
        self, symbols: tuple[Any, ...] = (), relations: tuple[Any, ...] = ()
    ) -> tuple[Any, ...]:
        """What `_C._Guards` takes."""
        same = tuple((a.take(), b.take()) for a, b in self.same)
        distinct = tuple(dict.fromkeys(p.take() for p in self.distinct))
        roots = tuple(c.spec() for c in self.root.children.values())
        return (roots, len(self.slots), same, distinct, symbols, relations)

    def clear(self) -> None:
        """Lets go of what was found: examples of tensors are among the facts to check."""
        self.root.clear()
        self.slots, self.same, self.distinct = [], {}, []

    def texts(self) -> list[str]:
        out = self.root.texts()
        out += [f"{a.name} is {b.name}" for a, b in self.same]
        return out


def _plain(key: Any) -> bool:
    return key is None or type(key) in (str, int)


def short(value: Any) -> str:
    """A value in a few words, which run no code of the program."""
    if isinstance(value, types.CodeType):
        return f"code of {value.co_qualname}"
    if (name := kinds.name_of(value)) is not None:
        return name
    module = type(value).__module__
    builtin = module == "builtins" or own_module(module) == ""
    if type(value) in (tuple, frozenset):
        text = f"({', '.join(map(short, value))})"
    else:
        text = repr(value) if builtin else object.__repr__(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
