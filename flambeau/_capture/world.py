"""The objects that a followed program sees.

Values on the interpreter's stack are Python objects. What comes from outside is *wrapped* when it
is first read: the read becomes a guard on its place; a tensor becomes a fake; a list, dict, set or
tuple becomes a copy with wrapped elements (a shadow), so that C code may read and change it without
touching the original; other objects stand for themselves, and what is stored in them goes to an
overlay. Invariant: following a program changes no object that existed before. `effects` compares
shadows and overlays with what was and says what has to be put back.
"""

from __future__ import annotations

import collections
import enum
import functools
import types
from typing import Any

import numpy as np

from . import kinds
from .errors import Break
from .kinds import DELETED, UNSET
from .places import EQUAL, KEYS, LENGTH, TRUTH, Place, Places

_LAZY: Any = object()
_LARGEST = 2000  # elements of a container that are guarded one by one


class Shadow:
    """A copy of an outside container: the original, its place, and how the copy began."""

    __slots__ = ("before", "copy", "original", "place")

    def __init__(self, original: Any, copy: Any, place: Place) -> None:
        self.original, self.copy, self.place = original, copy, place
        self.before = contents(copy)

    def changed(self) -> bool:
        now = contents(self.copy)
        return len(now) != len(self.before) or any(
            a is not b for a, b in zip(now, self.before, strict=True)
        )


def contents(value: Any) -> list[Any]:
    """The elements of a container; keys and values of a mapping, in order."""
    if isinstance(value, dict):
        return [x for pair in dict.items(value) for x in pair]
    return list(value) if not isinstance(value, list) else list.copy(value)


class OutsideCell:
    """A closure's variable of a function from outside."""

    __slots__ = ("before", "cell", "original", "place")

    def __init__(self, original: Any, cell: Any, place: Place) -> None:
        self.original, self.cell, self.place, self.before = original, cell, place, _LAZY


class World:
    """Everything read and changed while one frame is followed."""

    def __init__(self, places: Places, tensors: Any) -> None:
        self.places, self.tensors = places, tensors
        self.memo: dict[int, tuple[Any, Any, Place]] = {}  # original -> (original, wrapped, place)
        self.origin: dict[int, Place] = {}  # id of a wrapped value -> its place
        self.shadows: dict[int, Shadow] = {}  # by id of the copy
        self.created: dict[int, Any] = {}  # objects made by the program
        self.attributes: dict[int, tuple[Any, dict[str, Any]]] = {}  # overlay of outside objects
        self.cells: dict[int, OutsideCell] = {}  # by id of the shadow cell
        self._cell_of: dict[int, OutsideCell] = {}  # by id of the original
        self.names: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}  # overlay of globals
        self.home: dict[str, Any] | None = None  # globals of the frame itself
        self._keep: list[Any] = []

    # -- reading -----------------------------------------------------------------------------------

    def wrap(self, value: Any, place: Place) -> Any:
        """The value as the program sees it; what is read here becomes a guard."""
        cls = type(value)
        if cls in kinds.CONSTANT_TYPES:
            if cls is int:
                return self.tensors.integer(value, place)
            place.equals(value)
            return value
        known = self.memo.get(id(value))
        if known is not None:
            if known[2] is not place:
                self.places.same.append((place, known[2]))
            return known[1]
        wrapped = self._wrap(value, cls, place)
        self.memo[id(value)] = (value, wrapped, place)
        self.origin.setdefault(id(wrapped), place)
        return wrapped

    def _wrap(self, value: Any, cls: type, place: Place) -> Any:
        if kinds.is_tensor(value):
            return self.tensors.input(value, place)
        if isinstance(value, np.generic):
            place.check(EQUAL, value, f"{place.name} == {value!r}")
            return value
        if cls is types.FunctionType:
            self._wrap_function(value, place)
            return value
        if cls is types.MethodType:
            place.type_is(cls)
            function = self.wrap(value.__func__, place.attribute("__func__"))
            return types.MethodType(
                function, self.wrap(value.__self__, place.attribute("__self__"))
            )
        if cls is types.CellType:
            return self.outside_cell(value, place)
        if cls is types.BuiltinFunctionType and not isinstance(
            value.__self__, (types.ModuleType, type, type(None))
        ):
            place.type_is(cls)
            return getattr(self.wrap(value.__self__, place.attribute("__self__")), value.__name__)
        if isinstance(value, (type, types.ModuleType, enum.Enum)) or cls in (
            types.BuiltinFunctionType,
            *kinds.METHOD_WRAPPERS,
            property,
        ):
            place.is_object(value)
            return value
        place.type_is(cls)
        if cls is slice:
            return slice(*(self.wrap(getattr(value, n), place.attribute(n)) for n in _SLICE))
        if isinstance(value, (*kinds.SEQUENCES, dict)):
            return self._wrap_container(value, cls, place)
        return value

    def _wrap_function(self, value: types.FunctionType, place: Place) -> None:
        if place.access in _LONG_LIVED:
            place.is_object(value)
        else:  # made anew at each call, often: what counts is its code and what it closes over
            place.type_is(types.FunctionType)
            place.attribute("__code__").is_object(value.__code__)

    def _wrap_container(self, value: Any, cls: Any, place: Place) -> Any:
        copy = self._wrap_elements(value, cls, place)
        store = getattr(value, "__dict__", None)
        if store and copy is not value:  # a subclass with attributes of its own
            place.instance().check(KEYS, tuple(store), f"attributes of {place.name}")
            for name, v in store.items():
                copy.__dict__[name] = self.wrap(v, place.in_instance(name))
        return copy

    def _wrap_elements(self, value: Any, cls: Any, place: Place) -> Any:
        if len(value) > _LARGEST:
            raise Break(f"{place.name} has {len(value)} elements; too many to guard")
        if isinstance(value, dict):
            return self._wrap_dict(value, cls, place)
        if isinstance(value, tuple):
            place.check(LENGTH, len(value), f"len({place.name}) == {len(value)}")
            items = [self.wrap(v, place.item(i)) for i, v in enumerate(value)]
            if cls in (tuple, type(value)) and all(
                a is b for a, b in zip(items, value, strict=True)
            ):
                return value
            return tuple.__new__(cls, items)
        if isinstance(value, (set, frozenset)):
            if not all(type(v) is type or type(v) in kinds.CONSTANT_TYPES for v in value):
                raise Break(f"{place.name} is a set of objects")
            frozen = frozenset(value)
            place.check(TRUTH, lambda s: frozenset(s) == frozen, f"{place.name} == {frozen}")
            copy = cls(value)
        elif isinstance(value, collections.deque):
            raise Break(f"{place.name} is a deque")
        else:
            place.check(LENGTH, len(value), f"len({place.name}) == {len(value)}")
            copy = cls.__new__(cls)
            self.memo[id(value)] = (value, copy, place)  # a list may hold itself
            list.extend(copy, [self.wrap(v, place.item(i)) for i, v in enumerate(value)])
        self.shadows[id(copy)] = Shadow(value, copy, place)
        return copy

    def _wrap_dict(self, value: Any, cls: Any, place: Place) -> Any:
        keys = tuple(value)
        if not all(type(k) in kinds.CONSTANT_TYPES or _by_identity(k) for k in keys):
            raise Break(f"keys of {place.name} are neither constants nor classes or functions")
        if isinstance(value, collections.OrderedDict):
            place.check(TRUTH, lambda d: tuple(d) == keys, f"keys of {place.name} are {keys}")
        else:
            place.check(KEYS, keys, f"keys of {place.name} are {keys}")
        if cls is collections.defaultdict:
            factory = self.wrap(value.default_factory, place.attribute("default_factory"))
            copy: Any = collections.defaultdict(factory)
        else:
            copy = cls.__new__(cls)
            if isinstance(value, collections.OrderedDict):
                collections.OrderedDict.__init__(copy)
        self.memo[id(value)] = (value, copy, place)
        store = type(copy).__setitem__ if cls in kinds.MAPPINGS else dict.__setitem__
        for k in keys:
            store(copy, k, self.wrap(dict.__getitem__(value, k), place.entry(k)))
        self.shadows[id(copy)] = Shadow(value, copy, place)
        return copy

    def place_of(self, value: Any) -> Place:
        """Where an object is found; one that nothing led to is kept as a constant."""
        place = self.origin.get(id(value))
        if place is None:
            place = self.places.constant(value, _name_of(value))
            self.origin[id(value)] = place
            self._keep.append(value)
        return place

    def is_created(self, value: Any) -> bool:
        return id(value) in self.created

    def create(self, value: Any) -> Any:
        """Notes an object made by the program."""
        self.created[id(value)] = value
        return value

    def changes(self) -> Any:
        """What the program changed outside so far, to compare with later."""
        shadows = [
            (k, [id(x) for x in contents(s.copy)]) for k, s in self.shadows.items() if s.changed()
        ]
        written = [
            [(k, n, id(v)) for k, (_, names) in table.items() for n, v in names.items()]
            for table in (self.attributes, self.names)
        ]
        cells = [
            id(c.cell.cell_contents)
            for c in self.cells.values()
            if c.before is not _LAZY and c.cell.cell_contents is not c.before
        ]
        return shadows, written, cells

    # -- closures and globals ----------------------------------------------------------------------

    def outside_cell(self, cell: Any, place: Place) -> Any:
        """The shadow of a closure's cell; its contents are wrapped when they are read."""
        if id(cell) in self.cells or self.is_created(cell):
            return cell
        known = self._cell_of.get(id(cell))
        if known is None:
            known = OutsideCell(cell, types.CellType(_LAZY), place)
            self._cell_of[id(cell)] = known
            self.cells[id(known.cell)] = known
        return known.cell

    def read_cell(self, cell: Any) -> Any:
        """Contents of a cell; UNSET for an empty one."""
        try:
            value = cell.cell_contents
        except ValueError:
            return UNSET
        if value is not _LAZY:
            return value
        outside = self.cells[id(cell)]
        try:
            real = outside.original.cell_contents
        except ValueError:
            raise Break(f"{outside.place.name} is not set yet") from None
        value = outside.before = self.wrap(real, outside.place.contents())
        cell.cell_contents = value
        return value

    def global_place(self, namespace: dict[str, Any]) -> Place:
        if namespace is self.home:
            return self.places.globals()
        name = namespace.get("__name__", "?")
        return self.places.constant(namespace, f"globals of {name}")

    def read_global(self, namespace: dict[str, Any], name: str, builtins: dict[str, Any]) -> Any:
        """A global of a function; UNSET when there is none."""
        written = self.names.get(id(namespace))
        if written is not None and name in written[1]:
            value = written[1][name]
            if value is not DELETED:
                return value
        elif name in namespace:
            value = namespace[name]
            if kinds.library_module(namespace.get("__name__")) and _unchanging(value):
                return value
            place = self.global_place(namespace)
            return self.wrap(value, place.child(5, name, name))
        if name not in builtins:
            return UNSET
        self.global_place(namespace).absent(name)
        return builtins[name]

    def write_global(self, namespace: dict[str, Any], name: str, value: Any) -> None:
        self.names.setdefault(id(namespace), (namespace, {}))[1][name] = value

    # -- attributes of outside objects -------------------------------------------------------------

    def written(self, value: Any, name: str) -> Any:
        """What the program stored in an outside object: a value, DELETED, or UNSET."""
        found = self.attributes.get(id(value))
        return UNSET if found is None else found[1].get(name, UNSET)

    def write(self, value: Any, name: str, stored: Any) -> None:
        self.attributes.setdefault(id(value), (value, {}))[1][name] = stored


_SLICE = ("start", "stop", "step")
_LONG_LIVED = (4, 5)  # in a namespace or a class, or a constant


def _by_identity(key: Any) -> bool:
    return isinstance(key, (type, types.FunctionType, enum.Enum, types.ModuleType))


def _unchanging(value: Any) -> bool:
    """Values of library modules that are taken as they are."""
    return isinstance(
        value,
        (
            type,
            types.FunctionType,
            types.ModuleType,
            types.BuiltinFunctionType,
            functools.partial,
            *kinds.METHOD_WRAPPERS,
        ),
    ) or type(value) in (str, *kinds._OWN_CONSTANTS)


def _name_of(value: Any) -> str:
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    return name if isinstance(name, str) else type(value).__qualname__
