"""The objects that a followed program sees.

Values on the interpreter's stack are Python objects. What comes from outside is *wrapped* when it
is first read: the read becomes a guard on its source; a tensor becomes a fake; a list, dict, set or
tuple becomes a copy with wrapped elements (a shadow), so that C code may read and change it without
touching the original; other objects stand for themselves, and what is stored in them is kept
beside them (`state`). Invariants: following a program changes no object that existed before, and
each has one shadow, see Note [One shadow]. `entry` puts back what differs at the end.
"""

from __future__ import annotations

import collections
import enum
import functools
import threading
import types
from typing import Any

import numpy as np

import flambeau
from flambeau._ir.enumerations import Access, CheckKind
from flambeau._trace.run_numbers import RunNumber

from . import kinds
from .errors import Break
from .kinds import DELETED, UNSET
from .sources import Source, Sources, short
from .state import Entries, Slots, exact_dict

_LAZY: Any = object()
_NUMPY_NUMBERS = frozenset(
    getattr(np, n) for n in "int8 int16 int32 int64 uint8 float16 float32 float64".split()
)
_LARGEST = 2000  # elements of a container that are guarded one by one


class Shadow:
    """A copy of an outside container: the original, its source, and how the copy began."""

    __slots__ = ("before", "copy", "original", "source")

    def __init__(self, original: Any, copy: Any, source: Source) -> None:
        self.original, self.copy, self.source = original, copy, source
        self.before = contents(copy)

    def changed(self) -> bool:
        now = contents(self.copy)
        return len(now) != len(self.before) or any(
            a is not b for a, b in zip(now, self.before, strict=True)
        )


def contents(value: Any) -> list[Any]:
    """The elements of a container; keys and values of a mapping, in order."""
    if isinstance(value, collections.OrderedDict):
        return [x for pair in collections.OrderedDict.items(value) for x in pair]
    if isinstance(value, dict):
        return [x for pair in dict.items(value) for x in pair]
    return [*base_of(type(value)).__iter__(value)]  # type: ignore[arg-type]


@functools.lru_cache(maxsize=4096)
def base_of(cls: Any) -> Any:
    """The class of C that lays out the memory of a container's class."""
    return next(b for b in cls.__mro__ if not kinds.by_statement(b))


class OutsideCell:
    """A closure's variable of a function from outside."""

    __slots__ = ("before", "cell", "original", "source")

    def __init__(self, original: Any, cell: Any, source: Source) -> None:
        self.original, self.cell, self.source, self.before = original, cell, source, _LAZY

    @property
    def was_read(self) -> bool:
        return self.before is not _LAZY

    def changed(self) -> bool:
        """Whether the program put something else there."""
        return self.was_read and _held(self.cell) is not self.before


def _held(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return UNSET


def _is_unset(cell: Any) -> bool:
    return _held(cell) is UNSET


class ShadowState:
    """Everything read and changed while one frame is followed."""

    def __init__(self, sources: Sources, tensors: Any) -> None:
        self.sources, self.tensors = sources, tensors
        self.memo: dict[
            int, tuple[Any, Any, Source]
        ] = {}  # original -> (original, wrapped, source)
        self.origin: dict[int, Source] = {}  # id of a wrapped value -> its source
        self.shadows: dict[int, Shadow] = {}  # by id of the copy
        self.created: dict[int, Any] = {}  # objects made by the program
        self.dicts: dict[int, Entries] = {}  # by id of the original
        self.by_key: dict[int, Entries] = {}  # those that are large, which have no copy
        self.slots: dict[int, Slots] = {}  # by id of the object
        self.replaced: dict[int, tuple[Any, dict[str, Any]]] = {}  # objects with another __dict__
        self.holders: dict[int, Any] = {}  # created objects whose __dict__ was read, by its id
        self.cells: dict[int, OutsideCell] = {}  # by id of the shadow cell
        self._cell_of: dict[int, OutsideCell] = {}  # by id of the original
        self.home: dict[str, Any] | None = None  # globals of the frame itself
        self.context: dict[Any, Any] = {}  # context variables that were set
        self._keep: list[Any] = []

    # -- reading -----------------------------------------------------------------------------------

    def wrap(self, value: Any, source: Source) -> Any:
        """The value as the program sees it; what is read here becomes a guard."""
        cls = type(value)
        if cls in kinds.CONSTANT_TYPES:
            if cls is int:
                return self.tensors.integer(value, source)
            if cls is float:
                return self._float(value, source)
            source.equals(value)
            return value
        known = self.memo.get(id(value))
        if known is not None:
            if known[2] is not source:
                self.sources.are_one(source, known[2])
            return known[1]
        wrapped = self._wrap(value, cls, source)
        self.memo[id(value)] = (value, wrapped, source)
        self.origin.setdefault(id(wrapped), source)
        return wrapped

    def _float(self, value: Any, source: Source) -> Any:
        made = self.tensors.floating(value, source)
        if type(made) is RunNumber:
            self.origin[id(made)] = source
        return made

    def _wrap(self, value: Any, cls: type, source: Source) -> Any:
        if kinds.is_tensor(value):
            return self.tensors.input(value, source)
        if cls in _NUMPY_NUMBERS:
            return self._float(value, source)
        if isinstance(value, (np.generic, np.dtype)):
            source.check(CheckKind.Equal, value, f"{source.name} == {value!r}")
            return value
        if cls is types.FunctionType:
            self._wrap_function(value, source)
            return value
        if cls is types.MethodType:
            source.type_is(cls)
            function = self.wrap(value.__func__, source.attribute("__func__"))
            return types.MethodType(
                function, self.wrap(value.__self__, source.attribute("__self__"))
            )
        if cls is types.CellType:
            return self.outside_cell(value, source)
        if cls is types.BuiltinFunctionType and not isinstance(
            value.__self__, (types.ModuleType, type, type(None))
        ):
            source.type_is(cls)
            return getattr(self.wrap(value.__self__, source.attribute("__self__")), value.__name__)
        if isinstance(value, (type, types.ModuleType, enum.Enum)) or cls in (
            types.BuiltinFunctionType,
            *kinds.METHOD_WRAPPERS,
            property,
        ):
            source.is_object(value)
            return value
        source.type_is(cls)
        if cls is slice:
            return slice(*(self.wrap(getattr(value, n), source.attribute(n)) for n in _SLICE))
        if isinstance(value, (*kinds.SEQUENCES, dict)):
            return self._wrap_container(value, cls, source)
        return value

    def _wrap_function(self, value: types.FunctionType, source: Source) -> None:
        if source.access in _LONG_LIVED:
            source.is_object(value)
        else:  # made anew at each call, often: what counts is its code and what it closes over
            source.type_is(types.FunctionType)
            source.attribute("__code__").is_object(value.__code__)

    def _wrap_container(self, value: Any, cls: Any, source: Source) -> Any:
        copy = self._wrap_elements(value, cls, source)
        if copy is value or not cls.__dictoffset__:
            return copy
        store = exact_dict(kinds.instance_dict(value), source.name)
        if store or cls not in kinds.MAPPINGS:  # a subclass with attributes of its own
            object.__setattr__(copy, "__dict__", self.wrap(store, source.instance()))
        return copy

    def _wrap_elements(self, value: Any, cls: Any, source: Source) -> Any:
        base = base_of(cls)
        if base not in _COPIED:
            raise Break(f"{source.name} is an object of type {cls.__qualname__}")
        size = base.__len__(value)
        if size > _LARGEST and cls is dict:
            self.by_key[id(value)] = self.entries(value, source)
            return value
        if size > _LARGEST:
            raise too_large(source, size)
        if isinstance(value, dict):
            return self._wrap_dict(value, cls, source)
        if isinstance(value, tuple):
            source.check(CheckKind.Length, size, f"len({source.name}) == {size}")
            items = [self.wrap(v, source.item(i)) for i, v in enumerate(tuple.__iter__(value))]
            if all(a is b for a, b in zip(items, tuple.__iter__(value), strict=True)):
                return value
            if base is flambeau.Size:
                return self.tensors.shape(items)
            return tuple.__new__(cls, items)
        if isinstance(value, (set, frozenset)):
            elements = tuple(base.__iter__(value))
            if not all(map(is_key, elements)):
                raise Break(f"{source.name} is a set of objects that say themselves what is equal")
            frozen = frozenset(map(_identity, elements))
            source.check(
                CheckKind.Truth,
                lambda s: frozenset(map(_identity, base.__iter__(s))) == frozen,
                f"{source.name} == {short(elements)}",
            )
            for v in elements:
                self._key(v)
            if base is frozenset:
                return value
            copy = set.__new__(cls)
            set.update(copy, elements)
        else:
            source.check(CheckKind.Length, size, f"len({source.name}) == {size}")
            copy = list.__new__(cls)
            self.memo[id(value)] = (value, copy, source)  # a list may hold itself
            items = [self.wrap(v, source.item(i)) for i, v in enumerate(list.__iter__(value))]
            list.extend(copy, items)
        self.shadows[id(copy)] = Shadow(value, copy, source)
        return copy

    def _wrap_dict(self, value: Any, cls: Any, source: Source) -> Any:
        base = base_of(cls)
        keys = tuple(base.__iter__(value))
        if not all(is_key(k) or (base is dict and kinds.is_tensor(k)) for k in keys):
            raise Break(f"keys of {source.name} are objects that say themselves what is equal")
        entries = self.dicts.get(id(value)) if cls is dict else None
        if entries is not None and entries.source is not source:
            self.sources.are_one(source, entries.source)
            source = entries.source
        if base is collections.OrderedDict:
            if len(keys) != dict.__len__(value):
                raise Break(
                    f"methods of dict changed {source.name}, whose order knows nothing of it"
                )
            words = f"keys of {source.name} are {short(keys)}"
            source.check(CheckKind.Truth, _TheseKeys(keys, base), words)
        elif all(type(k) in kinds.CONSTANT_TYPES or _by_identity(k) for k in keys):
            source.check(CheckKind.Keys, keys, f"keys of {source.name} are {keys}")
        else:
            words = f"keys of {source.name} are {short(keys)}"
            source.check(CheckKind.Truth, _TheseKeys(keys, base), words)
        copy: Any = base.__new__(cls)
        self.memo[id(value)] = (value, copy, source)
        if base is not dict:
            base.__init__(copy)
        if base is collections.defaultdict:
            factory = self.wrap(value.default_factory, source.attribute("default_factory"))
            _FACTORY.__set__(copy, factory)
        store = _store_of(base)
        for k in keys:
            item = self.wrap(dict.__getitem__(value, k), source.entry(k))
            store(copy, self._key(k), item)
        self.shadows[id(copy)] = Shadow(value, copy, source)
        if entries is not None:
            entries.hand_over(copy)
        return copy

    def _key(self, key: Any) -> Any:
        """A key of a dict, which is guarded: a tensor is found by what stands for it."""
        if type(key) in kinds.CONSTANT_TYPES or _by_identity(key):
            return key
        if isinstance(key, (tuple, frozenset)):
            for part in key:
                self._key(part)
            return key
        words = "a tensor that is a key" if kinds.is_tensor(key) else "an object that is a key"
        return self.wrap(key, self.sources.constant(key, words))

    def source_of(self, value: Any) -> Source:
        """Where an object is found; one that nothing led to is kept as a constant."""
        source = self.origin.get(id(value))
        if source is None:
            source = self.sources.constant(value, _name_of(value))
            self.origin[id(value)] = source
            self._keep.append(value)
        return source

    def in_classes(self, cls: type, name: str, owner: type | None) -> None:
        """A name is found in `owner`; classes that the program made need no guard."""
        if id(cls) not in self.created:
            self.sources.in_classes(cls, name, owner)

    def is_created(self, value: Any) -> bool:
        return id(value) in self.created

    def create(self, value: Any) -> Any:
        """Notes an object made by the program."""
        self.created[id(value)] = value
        return value

    def clear(self) -> None:
        """Lets go of the program's objects."""
        self.context.clear()
        for table in (self.memo, self.created, self.shadows, self.dicts, self.slots, self.replaced):
            table.clear()
        self.holders.clear()
        self.by_key.clear()

    def changes(self) -> Any:
        """What the program changed outside so far, to compare with later."""
        shadows = [
            (k, [id(x) for x in contents(s.copy)]) for k, s in self.shadows.items() if s.changed()
        ]
        written = [
            [(k, n, id(v)) for k, e in table.items() for n, v in e.written.items()]
            for table in (self.dicts, self.slots)
        ]
        cells = [id(_held(c.cell)) for c in self.cells.values() if c.changed()]
        context = [(id(k), id(v)) for k, v in self.context.items()]
        return shadows, written, cells, list(self.replaced), context

    def large(self, value: Any) -> Entries | None:
        """The entries of a dict that is asked by key alone; None for other values."""
        return self.by_key.get(id(value)) if self.by_key else None

    def refuse_large(self, value: Any) -> None:
        """Raises Break for a dict that is asked by key alone."""
        entries = self.large(value)
        if entries is not None:
            raise too_large(entries.source, len(value))

    # -- closures and globals ----------------------------------------------------------------------

    def outside_cell(self, cell: Any, source: Source) -> Any:
        """The shadow of a closure's cell; its contents are wrapped when they are read."""
        if id(cell) in self.cells or self.is_created(cell):
            return cell
        known = self._cell_of.get(id(cell))
        if known is None:
            known = OutsideCell(cell, types.CellType(_LAZY), source)
            self._cell_of[id(cell)] = known
            self.cells[id(known.cell)] = known
        elif known.source is not source:
            self.sources.are_one(source, known.source)
        return known.cell

    def read_cell(self, cell: Any) -> Any:
        """Contents of a cell; UNSET for an empty one."""
        value = _held(cell)
        if value is not _LAZY:
            return value
        outside = self.cells[id(cell)]
        real = _held(outside.original)
        if real is UNSET:
            outside.source.check(CheckKind.Truth, _is_unset, f"{outside.source.name} is not set")
            outside.before = UNSET
            del cell.cell_contents
            return UNSET
        value = outside.before = self.wrap(real, outside.source.contents())
        cell.cell_contents = value
        return value

    def write_cell(self, cell: Any, value: Any) -> None:
        if id(cell) in self.cells:
            self.read_cell(cell)  # what was there is compared with at the end
        cell.cell_contents = value

    def global_place(self, namespace: dict[str, Any]) -> Source:
        if namespace is self.home:
            return self.sources.globals()
        name = namespace.get("__name__", "?")
        return self.sources.constant(namespace, f"globals of {name}")

    def namespace(self, names: dict[str, Any]) -> Entries:
        """The globals of a function or the names of a module."""
        found = self.dicts.get(id(names))
        return found if found is not None else self.entries(names, self.global_place(names))

    def read_global(self, namespace: dict[str, Any], name: str, builtins: dict[str, Any]) -> Any:
        """A global of a function; UNSET when there is none."""
        entries = self.namespace(namespace)
        if name in namespace and entries.peek(name) is UNSET:
            value = namespace[name]
            if kinds.library_module(namespace.get("__name__")) and _unchanging(value):
                self.sources.in_namespace(namespace, name, value)
                return value
        value = entries.get(name, name)
        if value is not UNSET:
            return value
        value = builtins.get(name, UNSET)
        if value is not UNSET:
            self.sources.in_namespace(builtins, name, value)
        return value

    def write_global(self, namespace: dict[str, Any], name: str, value: Any) -> None:
        entries = self.namespace(namespace)
        if value is DELETED:
            entries.delete(name)
        else:
            entries.set(name, value)

    # -- attributes of outside objects -------------------------------------------------------------

    def entries(self, original: dict[Any, Any], source: Source) -> Entries:
        """The shadow of a dict from outside, to be asked by key."""
        found = self.dicts.get(id(original))
        if found is None:
            found = Entries(self, original, source)
            self.dicts[id(original)] = found
            known = self.memo.get(id(original))
            if known is not None:
                found.copy, found.source = known[1], known[2]
        if found.source is not source:
            self.sources.are_one(source, found.source)
        return found

    def store(self, value: Any) -> Entries | None:
        """What is stored in an object by name; None where it has no dictionary."""
        if isinstance(value, threading.local) and not self.is_created(value):
            # the dictionary of the thread that asks; guards and entries ask again
            return self.entries(value.__dict__, self.source_of(value).of_thread())
        if not type(value).__dictoffset__:
            return None
        if self.holds_itself(value):
            shadow = self.shadows.get(id(value))
            own = kinds.instance_dict(value)
            if shadow is not None and id(own) not in self.shadows:
                original = kinds.instance_dict(shadow.original)
                own = self.wrap(original, shadow.source.instance())
                object.__setattr__(value, "__dict__", own)
            return Entries(self, None, None, own)
        other = self.replaced.get(id(value))
        if other is not None:
            return Entries(self, None, None, other[1])
        original = kinds.instance_dict(value)
        if original is None:
            return None
        original = exact_dict(original, kinds.describe(value))
        return self.entries(original, self.source_of(value).instance())

    def holds_itself(self, value: Any) -> bool:
        """Whether the attributes of an object are its own: it was made here, or is a copy."""
        if id(value) in self.created or id(value) in self.shadows:
            return True
        if isinstance(value, tuple):  # a copy with other elements
            source = self.origin.get(id(value))
            known = self.memo.get(id(value))
            return source is not None and (known is None or known[1] is not value)
        made_by_c = isinstance(value, BaseException) or type(value) in kinds.PLAIN_TYPES
        return made_by_c and id(value) not in self.origin

    def slots_of(self, value: Any) -> Slots:
        """What the program stored in slots of an outside object."""
        found = self.slots.get(id(value))
        if found is None:
            found = self.slots[id(value)] = Slots(value)
        return found

    def original(self, value: Any) -> Any:
        """The object from outside that a copy stands for; other values as they are."""
        shadow = self.shadows.get(id(value))
        return value if shadow is None else shadow.original


_SLICE = ("start", "stop", "step")
_LONG_LIVED = (Access.Constant, Access.Dict)  # in a namespace or a class, or a constant
#: classes of C whose objects are copied
_COPIED = (
    list, tuple, flambeau.Size, set, frozenset, dict, collections.OrderedDict,
    collections.defaultdict,
)  # fmt: skip
_FACTORY: Any = collections.defaultdict.__dict__["default_factory"]


def _store_of(base: Any) -> Any:
    return base.__setitem__ if base is collections.OrderedDict else dict.__setitem__


def too_large(source: Source, size: int) -> Break:
    """Why a container ends the graph whose elements would be guarded one by one."""
    return Break(f"{source.name} has {size} elements; too many to guard")


def is_key(value: Any) -> bool:
    """Whether equality with another value is known without a method of the program: constants,
    objects that are equal to themselves alone, tuples and frozensets of such."""
    kind = type(value)
    if kind in kinds.CONSTANT_TYPES or _by_identity(value):
        return True
    if kind is tuple or kind is frozenset:
        return all(map(is_key, value))
    if kind.__module__ == "typing":  # `Union`, `List[int]`
        return True
    return kind.__eq__ is object.__eq__ and kind.__hash__ is object.__hash__


def _identity(key: Any) -> Any:
    """What is equal for keys that are equal and of the same types: 1 is not True."""
    kind = type(key)
    if kind in kinds.CONSTANT_TYPES:
        return kind, key
    if kind is tuple or kind is frozenset:
        return kind, kind(map(_identity, key))
    return kind, id(key)


class _TheseKeys:
    """A check of keys and their order; objects among them are compared by identity. The order of an
    OrderedDict is its own, and methods of dict may have added something behind it."""

    def __init__(self, keys: tuple[Any, ...], base: Any) -> None:
        self.wanted, self.iterate = list(map(_identity, keys)), base.__iter__

    def __call__(self, mapping: Any) -> bool:
        if dict.__len__(mapping) != len(self.wanted):
            return False
        return list(map(_identity, self.iterate(mapping))) == self.wanted


def _by_identity(key: Any) -> bool:
    return isinstance(key, (type, types.FunctionType, enum.Enum, types.ModuleType))


def _unchanging(value: Any) -> bool:
    """Values of library modules that are used as they are, as long as nobody replaces them."""
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
    return kinds.name_of(value) or type(value).__qualname__
