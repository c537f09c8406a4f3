"""Writes pickles that PyTorch's ``weights_only`` reader understands, without recursion.

Owns the opcodes of protocol 2, the memo and how objects reduce. Invariant: an object met twice is
written once, cycles included; depth is limited by memory alone. What is special (tensors, storages)
is asked of the hook handed in. It knows no files.
"""

from __future__ import annotations

import _compat_pickle
import codecs
import copyreg
import pickle
import struct
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

_BATCH = 1000
_TUPLES = (pickle.EMPTY_TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)


class Global:
    """Stands for a name that the file shall hold, whether or not it exists here."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name


class Persistent:
    """Stands for a persistent id."""

    def __init__(self, pid: tuple[Any, ...]) -> None:
        self.pid = pid


class Reduced:
    """Stands for a call, ``function(*args)``, and the state that its result is given."""

    def __init__(self, function: Any, args: tuple[Any, ...], state: Any = None) -> None:
        self.function, self.args, self.state = function, args, state


class Direct:
    """Stands for an object whose parts are written at once, which is quicker.

    Args:
        write: writes them by the methods of the writer (`name`, `atom`, `add`).
    """

    def __init__(self, write: Callable[[_Writer], None]) -> None:
        self.write = write


def write(root: Any, special: Callable[[Any], Any], protocol: int = 2) -> bytes:
    """The pickle of an object.

    Args:
        root: the object.
        special: gives a `Global`, `Persistent`, `Reduced` or `Direct` for an object, or None.
        protocol: what the pickle states: 2 to 5.

    Raises:
        TypeError: something inside cannot be saved; the text says where.
    """
    return _Writer(special, protocol).run(root)


class _Writer:
    def __init__(self, special: Callable[[Any], Any], protocol: int) -> None:
        self._special, self._protocol = special, protocol
        self._out = bytearray(pickle.PROTO + bytes([protocol]))
        self._memo: dict[Any, tuple[int, Any]] = {}  # holding objects keeps their ids unique

    def run(self, root: Any) -> bytes:
        path: list[tuple[Any, Iterator[Any]]] = []
        try:
            self._start(root, path)
            while path:
                child = next(path[-1][1], path)  # path itself: nothing is left
                if child is path:
                    path.pop()
                else:
                    self._start(child, path)
        except (TypeError, AttributeError, pickle.PicklingError, NotImplementedError) as error:
            raise TypeError(f"save: expected data{_where(path)}; {error}") from error
        return bytes(self._out + pickle.STOP)

    def add(self, codes: bytes) -> None:
        """Writes opcodes that take what stands before them."""
        self._out += codes

    def integers(self, values: tuple[int, ...]) -> None:
        """Writes a tuple of whole numbers."""
        count = len(values)
        self._out += (pickle.MARK if count > 3 else b"") + b"".join(map(_int, values))
        self._out += _TUPLES[count] if count <= 3 else pickle.TUPLE

    def _start(self, obj: Any, path: list[tuple[Any, Iterator[Any]]]) -> None:
        if self.atom(obj):
            return
        known = self._memo.get(id(obj))
        if known is not None:
            self._get(known[0])
            return
        path.append((obj, iter(())))
        path[-1] = (obj, self._parts(obj))

    def _get(self, index: int) -> None:
        code = (
            pickle.BINGET + bytes([index])
            if index < 256
            else pickle.LONG_BINGET + struct.pack("<I", index)
        )
        self._out += code

    def _put(self, key: Any, obj: Any) -> None:
        index = len(self._memo)
        self._memo[key] = index, obj
        self._out += (
            pickle.BINPUT + bytes([index])
            if index < 256
            else pickle.LONG_BINPUT + struct.pack("<I", index)
        )

    def atom(self, obj: Any) -> bool:
        """Writes a text or a number; False: it is neither."""
        kind = type(obj)
        if kind is str:
            known = self._memo.get(obj)
            if known is not None:
                self._get(known[0])
            else:
                raw = obj.encode("utf-8", "surrogatepass")
                self._out += pickle.BINUNICODE + struct.pack("<I", len(raw)) + raw
                self._put(obj, obj)
        elif obj is None or kind is bool:
            self._out += {None: pickle.NONE, True: pickle.NEWTRUE, False: pickle.NEWFALSE}[obj]
        elif kind is int:
            self._out += _int(obj)
        elif kind is float:
            self._out += pickle.BINFLOAT + struct.pack(">d", obj)
        else:
            return False
        return True

    # -- each yields the parts to write before it goes on

    def _parts(self, obj: Any) -> Iterator[Any]:
        kind = type(obj)
        special = obj if kind in (Global, Persistent, Reduced) else self._special(obj)
        if isinstance(special, Direct):
            special.write(self)
            self._put(id(obj), obj)
        elif isinstance(special, Global):
            self.name(special.module, special.name)
        elif isinstance(special, Persistent):
            yield special.pid
            self._out += pickle.BINPERSID
        elif isinstance(special, Reduced):
            yield from self._reduced(obj, (special.function, special.args, special.state))
        elif kind is list:
            self._out += pickle.EMPTY_LIST
            self._put(id(obj), obj)
            yield from self._items(obj)
        elif kind is dict:
            self._out += pickle.EMPTY_DICT
            self._put(id(obj), obj)
            yield from self._pairs(obj.items())
        elif kind is tuple:
            yield from self._tuple(obj)
        elif kind in (set, frozenset):
            yield from self._reduced(obj, (kind, (list(obj),)))
        elif kind is bytes:
            text = obj.decode("latin-1")
            yield from self._reduced(obj, (codecs.encode, (text, "latin1")))
        elif kind is bytearray:
            yield from self._reduced(obj, (bytearray, (obj.decode("latin-1"), "latin-1")))
        elif isinstance(obj, type) or kind in _FUNCTIONS:
            yield from self._global(obj)
        else:
            reduce = copyreg.dispatch_table.get(kind)
            value = reduce(obj) if reduce is not None else obj.__reduce_ex__(2)
            if isinstance(value, str):
                self.name(obj.__module__, value)
            else:
                yield from self._reduced(obj, value)

    def _items(self, items: Any) -> Iterator[Any]:
        items = list(items)
        for at in range(0, len(items), _BATCH):
            self._out += pickle.MARK
            yield from items[at : at + _BATCH]
            self._out += pickle.APPENDS

    def _pairs(self, pairs: Any) -> Iterator[Any]:
        pairs = list(pairs)
        for at in range(0, len(pairs), _BATCH):
            self._out += pickle.MARK
            for key, value in pairs[at : at + _BATCH]:
                yield key
                yield value
            self._out += pickle.SETITEMS

    def _tuple(self, obj: tuple[Any, ...]) -> Iterator[Any]:
        count = len(obj)
        if not count:
            self._out += pickle.EMPTY_TUPLE
            return
        if count > 3:
            self._out += pickle.MARK
        yield from obj
        known = self._memo.get(id(obj))
        if known is not None:  # it contains itself and was written meanwhile
            self._out += pickle.POP * count if count <= 3 else pickle.POP_MARK
            self._get(known[0])
            return
        self._out += _TUPLES[count] if count <= 3 else pickle.TUPLE
        self._put(id(obj), obj)

    def _reduced(self, obj: Any, value: tuple[Any, ...]) -> Iterator[Any]:
        function, args, state, items, pairs, *setter = value + (None,) * (5 - len(value))
        if setter and setter[0] is not None:
            raise TypeError(f"{type(obj).__name__} sets its state by a function of its own")
        name = getattr(function, "__name__", "")
        if name == "__newobj_ex__" and not args[2]:
            name, args = "__newobj__", (args[0], *args[1])
        if name == "__newobj__":
            yield args[0]
            yield tuple(args[1:])
            self._out += pickle.NEWOBJ
        else:
            yield function
            yield args
            self._out += pickle.REDUCE
        known = self._memo.get(id(obj))
        if known is not None:
            self._out += pickle.POP
            self._get(known[0])
            return
        self._put(id(obj), obj)
        if items is not None:
            yield from self._items(items)
        if pairs is not None:
            yield from self._pairs(pairs)
        if state is not None:
            yield state
            self._out += pickle.BUILD

    def _global(self, obj: Any) -> Iterator[Any]:
        if obj is type(None):
            yield from self._reduced(obj, (type, (None,)))
            return
        module, name = obj.__module__ or "builtins", obj.__qualname__
        found = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not obj:
            raise pickle.PicklingError(f"{module}.{name} is not found there when it is loaded")
        if "." in name:
            owner, _, last = name.rpartition(".")
            parent: Any = sys.modules[module]
            for part in owner.split("."):
                parent = getattr(parent, part)
            yield from self._reduced(obj, (getattr, (parent, last)))
        else:
            self.name(_public_home(module, name, obj), name)

    def name(self, module: str, name: str) -> None:
        """Writes the name of something in a module."""
        if module.partition(".")[0] == "flambeau":
            module = "torch" + module.removeprefix("flambeau")
        if self._protocol < 3:
            renamed = _compat_pickle.REVERSE_NAME_MAPPING.get((module, name))
            if renamed is not None:
                module, name = renamed
            else:
                module = _compat_pickle.REVERSE_IMPORT_MAPPING.get(module, module)
        key = (Global, module, name)
        if key in self._memo:
            self._get(self._memo[key][0])
        else:
            self._out += pickle.GLOBAL + f"{module}\n{name}\n".encode()
            self._put(key, None)


def _public_home(module: str, name: str, obj: Any) -> str:
    """The module by which PyTorch's users know a class or function of ours, whose home is private.

    That is a public module beside the private part that lists the name, or else the package around.
    """
    parts = module.split(".")
    private = [i for i, part in enumerate(parts) if part[:1] == "_"]
    if parts[0] not in ("flambeau", "torch") or not private:
        return module
    package = ".".join(parts[: private[0]])
    inside = [m for m in sorted(sys.modules) if m.startswith(f"{package}.") and "._" not in m]
    has = [m for m in (package, *inside) if vars(sys.modules[m]).get(name) is obj]
    lists = [m for m in has if m != package and name in getattr(sys.modules[m], "__all__", ())]
    return next(iter(lists or has), module)


def _int(value: int) -> bytes:
    if 0 <= value < 256:
        return pickle.BININT1 + bytes([value])
    if 0 <= value < 65536:
        return pickle.BININT2 + struct.pack("<H", value)
    if -(1 << 31) <= value < 1 << 31:
        return pickle.BININT + struct.pack("<i", value)
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    if len(raw) < 256:
        return pickle.LONG1 + bytes([len(raw)]) + raw
    return pickle.LONG4 + struct.pack("<i", len(raw)) + raw


def _where(path: list[tuple[Any, Iterator[Any]]]) -> str:
    """What could not be written, and by which keys and indices one gets there."""
    if not path:
        return ""
    text = ""
    for (parent, _), (child, _) in zip(path, path[1:], strict=False):
        if isinstance(parent, dict):
            found = [f"[{k!r}]" for k, v in parent.items() if v is child]
            text += found[0] if found else (" (a key)" if child in parent else "")
        elif isinstance(parent, (list, tuple)):
            text += "".join([f"[{i}]" for i, v in enumerate(parent) if v is child][:1])
    kind = type(path[-1][0])
    return f", got {kind.__module__}.{kind.__qualname__} at object{text}"
