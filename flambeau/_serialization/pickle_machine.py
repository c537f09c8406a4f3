"""A pickle machine of our own: protocols 0 to 5, read as data.

Owns the opcodes, the stack, the memo and their checks. Invariant: it imports nothing and calls
nothing by the file's word. Whatever is not a plain Python value is asked of the `Builder` handed
in: names, persistent ids, calls, states. Work and memory are bounded by the bytes at hand, and bad
input ends in `pickle.UnpicklingError`. It knows neither tensors nor files.
"""

from __future__ import annotations

import _compat_pickle
import codecs
import pickle
import struct
from collections.abc import Callable
from typing import Any, Protocol

_HASH_PRIME = (1 << 61) - 1  # Python's hash of whole numbers is the remainder by it
_MAX_ODD_KEYS = 10_000  # keys whose hashes a file can choose: equal ones cost quadratic time
_MAX_KEY_PARTS = 10_000  # hashing a tuple visits every part, shared ones once per occurrence
_MAX_MEMO = (1 << 32) - 1

# What malformed input provokes in the machine and in builders; anything else passes unchanged.
_MALFORMED = (
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    EOFError,
    RecursionError,
    MemoryError,
    struct.error,
)


class Builder(Protocol):
    """What the machine asks of its user. Each method may raise `pickle.UnpicklingError`."""

    def find_global(self, module: str, name: str) -> Any:
        """The value that stands for a name of the file."""

    def persistent_load(self, pid: Any) -> Any:
        """The object of a persistent id."""

    def reduce(self, function: Any, args: tuple[Any, ...]) -> Any:
        """The result of a call."""

    def new(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A new, empty instance of a class."""

    def build(self, obj: Any, state: Any) -> None:
        """Gives an object its state."""

    def extend(self, obj: Any, items: list[Any]) -> None:
        """Appends to an object that is not a plain list."""

    def set_items(self, obj: Any, pairs: list[tuple[Any, Any]]) -> None:
        """Sets items of an object that is not a plain dict."""


def read(data: Any, start: int, builder: Builder, encoding: str = "utf-8") -> tuple[Any, int]:
    """Reads one pickle.

    Args:
        data: bytes, or an `mmap.mmap`.
        start: where the pickle begins.
        builder: gives everything that is not a plain value.
        encoding: of texts that Python 2 wrote; "bytes" leaves them as bytes.

    Returns:
        The object, and the position after the pickle.

    Raises:
        pickle.UnpicklingError: the pickle is malformed, or the builder refused something.
    """
    machine = _Machine(data, start, builder, encoding)
    try:
        return machine.run(), machine.at
    except pickle.UnpicklingError:
        raise
    except _MALFORMED as error:
        if str(error).startswith("load: "):
            raise pickle.UnpicklingError(str(error)) from error
        raise pickle.UnpicklingError(
            f"load: malformed pickle at byte {machine.at} ({type(error).__name__}: "
            f"{str(error)[:200]})"
        ) from error


class KeyGuard:
    """Refuses keys whose hash takes long, or many whose hashes a file can make equal."""

    def __init__(self) -> None:
        self._odd = 0

    def check(self, key: Any) -> None:
        """Raises ValueError for a key that must not be hashed."""
        kind = type(key)
        if kind is str or kind is bytes or key is None or kind is bool:
            return
        if kind is int and -_HASH_PRIME < key < _HASH_PRIME:
            return
        if kind is tuple:
            parts, work = 0, [key]
            while work:
                item = work.pop()
                if isinstance(item, tuple):
                    parts += 1 + len(item)
                    if parts > _MAX_KEY_PARTS:
                        raise ValueError(f"a key with more than {_MAX_KEY_PARTS} parts")
                    work.extend(item)
        elif kind is int or kind is complex:
            self._odd += 1
            if self._odd > _MAX_ODD_KEYS:
                raise ValueError(f"more than {_MAX_ODD_KEYS} huge or complex numbers as keys")


class _Stop(Exception):
    """Ends the loop of the machine."""


class _Machine:
    def __init__(self, data: Any, start: int, builder: Builder, encoding: str) -> None:
        self.data, self.at, self.end = data, start, len(data)
        self.builder, self.encoding = builder, encoding
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.protocol = 0
        self.keys = KeyGuard()

    def run(self) -> Any:
        data, table = self.data, _OPCODES
        try:
            while True:
                code = data[self.at]
                self.at += 1
                operation = table[code]
                if operation is None:
                    raise pickle.UnpicklingError(
                        f"load: unknown opcode {code:#04x} at byte {self.at - 1} of the pickle"
                    )
                operation(self)
        except _Stop:
            return self.stack.pop()

    # -- the bytes

    def take(self, count: int) -> bytes:
        at, stop = self.at, self.at + count
        if count < 0 or stop > self.end:
            raise EOFError(f"{count} bytes are wanted, {self.end - at} are left")
        self.at = stop
        return bytes(self.data[at:stop])

    def number(self, code: struct.Struct) -> Any:
        return code.unpack(self.take(code.size))[0]

    def line(self) -> bytes:
        stop = self.data.find(b"\n", self.at)
        if stop < 0:
            raise EOFError("a line does not end")
        line = bytes(self.data[self.at : stop])
        self.at = stop + 1
        return line

    def old_text(self, raw: bytes) -> Any:
        return raw if self.encoding == "bytes" else raw.decode(self.encoding)

    # -- the stack

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop_mark(self) -> list[Any]:
        items = self.stack
        self.stack = self.marks.pop()
        return items

    def pairs(self, items: list[Any]) -> list[tuple[Any, Any]]:
        if len(items) % 2:
            raise ValueError("a key without a value")
        for key in items[::2]:
            self.keys.check(key)
        return list(zip(items[::2], items[1::2], strict=True))

    def remember(self, index: int) -> None:
        if not 0 <= index <= _MAX_MEMO:
            raise ValueError(f"memo index {index}")
        self.memo[index] = self.stack[-1]

    def find(self, module: Any, name: Any) -> None:
        if type(module) is not str or type(name) is not str:
            raise TypeError("a global is named by two texts")
        if self.protocol < 3:  # Python 3 writes the names of Python 2 up to protocol 2
            renamed = _compat_pickle.NAME_MAPPING.get((module, name))
            if renamed is not None:
                module, name = renamed
            else:
                module = _compat_pickle.IMPORT_MAPPING.get(module, module)
        self.push(self.builder.find_global(module, name))

    def call(self, function: Any, args: Any) -> None:
        if type(args) is not tuple:
            raise TypeError(f"the arguments of a call are a {type(args).__name__}")
        self.push(self.builder.reduce(function, args))


_OPCODES: list[Callable[[_Machine], None] | None] = [None] * 256
_U1, _U2, _U4 = struct.Struct("<B"), struct.Struct("<H"), struct.Struct("<I")
_I4, _U8, _F8 = struct.Struct("<i"), struct.Struct("<Q"), struct.Struct(">d")


def _opcode(code: bytes) -> Callable[[Callable[[_Machine], None]], Callable[[_Machine], None]]:
    def register(function: Callable[[_Machine], None]) -> Callable[[_Machine], None]:
        _OPCODES[code[0]] = function
        return function

    return register


# -- frame of a pickle


@_opcode(pickle.PROTO)
def _proto(m: _Machine) -> None:
    m.protocol = m.number(_U1)
    if m.protocol > 5:
        raise ValueError(f"pickle protocol {m.protocol}, only 0 to 5 are known")


@_opcode(pickle.FRAME)
def _frame(m: _Machine) -> None:
    size = m.number(_U8)
    if size > m.end - m.at:
        raise EOFError(f"a frame of {size} bytes, {m.end - m.at} are left")


@_opcode(pickle.STOP)
def _stop(m: _Machine) -> None:
    if m.marks or len(m.stack) != 1:
        raise ValueError("the pickle ends with an unfinished object")
    raise _Stop


# -- stack and memo


@_opcode(pickle.MARK)
def _mark(m: _Machine) -> None:
    m.marks.append(m.stack)
    m.stack = []


@_opcode(pickle.POP)
def _pop(m: _Machine) -> None:
    if m.stack:
        m.stack.pop()
    else:
        m.pop_mark()


@_opcode(pickle.POP_MARK)
def _pop_mark(m: _Machine) -> None:
    m.pop_mark()


@_opcode(pickle.DUP)
def _dup(m: _Machine) -> None:
    m.push(m.stack[-1])


def _get_opcode(code: bytes, index: Callable[[_Machine], int]) -> None:
    _OPCODES[code[0]] = lambda m: m.push(m.memo[index(m)])


def _put_opcode(code: bytes, index: Callable[[_Machine], int]) -> None:
    _OPCODES[code[0]] = lambda m: m.remember(index(m))


for _define, _codes in (
    (_get_opcode, (pickle.GET, pickle.BINGET, pickle.LONG_BINGET)),
    (_put_opcode, (pickle.PUT, pickle.BINPUT, pickle.LONG_BINPUT)),
):
    _define(_codes[0], lambda m: int(m.line()))
    _define(_codes[1], lambda m: m.number(_U1))
    _define(_codes[2], lambda m: m.number(_U4))
_put_opcode(pickle.MEMOIZE, lambda m: len(m.memo))


# -- plain values


def _value_opcode(code: bytes, value: Callable[[_Machine], Any]) -> None:
    # push looks up the stack after value, which may have changed it
    _OPCODES[code[0]] = lambda m: m.push(value(m))


def _decimal(m: _Machine) -> Any:
    line = m.line()
    return line == b"01" if line in (b"00", b"01") else int(line)


def _quoted(m: _Machine) -> Any:
    line = m.line()
    if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in b"\"'":
        raise ValueError("a text without quotes")
    return m.old_text(codecs.escape_decode(line[1:-1])[0])


def _text(m: _Machine, size: int) -> str:
    return m.take(size).decode("utf-8", "surrogatepass")


_value_opcode(pickle.NONE, lambda m: None)
_value_opcode(pickle.NEWTRUE, lambda m: True)
_value_opcode(pickle.NEWFALSE, lambda m: False)
_value_opcode(pickle.INT, _decimal)
_value_opcode(pickle.BININT, lambda m: m.number(_I4))
_value_opcode(pickle.BININT1, lambda m: m.number(_U1))
_value_opcode(pickle.BININT2, lambda m: m.number(_U2))
_value_opcode(pickle.LONG, lambda m: int(m.line().removesuffix(b"L")))
_value_opcode(pickle.LONG1, lambda m: int.from_bytes(m.take(m.number(_U1)), "little", signed=True))
_value_opcode(pickle.LONG4, lambda m: int.from_bytes(m.take(m.number(_I4)), "little", signed=True))
_value_opcode(pickle.FLOAT, lambda m: float(m.line()))
_value_opcode(pickle.BINFLOAT, lambda m: m.number(_F8))
_value_opcode(pickle.STRING, _quoted)
_value_opcode(pickle.BINSTRING, lambda m: m.old_text(m.take(m.number(_I4))))
_value_opcode(pickle.SHORT_BINSTRING, lambda m: m.old_text(m.take(m.number(_U1))))
_value_opcode(pickle.UNICODE, lambda m: m.line().decode("raw-unicode-escape"))
_value_opcode(pickle.BINUNICODE, lambda m: _text(m, m.number(_U4)))
_value_opcode(pickle.SHORT_BINUNICODE, lambda m: _text(m, m.number(_U1)))
_value_opcode(pickle.BINUNICODE8, lambda m: _text(m, m.number(_U8)))
_value_opcode(pickle.BINBYTES, lambda m: m.take(m.number(_U4)))
_value_opcode(pickle.SHORT_BINBYTES, lambda m: m.take(m.number(_U1)))
_value_opcode(pickle.BINBYTES8, lambda m: m.take(m.number(_U8)))
_value_opcode(pickle.BYTEARRAY8, lambda m: bytearray(m.take(m.number(_U8))))


# -- containers

_value_opcode(pickle.EMPTY_TUPLE, lambda m: ())
_value_opcode(pickle.EMPTY_LIST, lambda m: [])
_value_opcode(pickle.EMPTY_DICT, lambda m: {})
_value_opcode(pickle.EMPTY_SET, lambda m: set())
_value_opcode(pickle.TUPLE, lambda m: tuple(m.pop_mark()))
_value_opcode(pickle.LIST, lambda m: m.pop_mark())
_value_opcode(pickle.DICT, lambda m: dict(m.pairs(m.pop_mark())))


def _tuple_opcode(code: bytes, count: int) -> None:
    def operation(m: _Machine) -> None:
        if len(m.stack) < count:
            raise IndexError("the stack is empty")
        m.stack[-count:] = [tuple(m.stack[-count:])]

    _OPCODES[code[0]] = operation


for _count, _code in enumerate((pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3), 1):
    _tuple_opcode(_code, _count)


@_opcode(pickle.FROZENSET)
def _frozenset(m: _Machine) -> None:
    items = m.pop_mark()
    for item in items:
        m.keys.check(item)
    m.push(frozenset(items))


@_opcode(pickle.ADDITEMS)
def _add_items(m: _Machine) -> None:
    items = m.pop_mark()
    for item in items:
        m.keys.check(item)
    target = m.stack[-1]
    if type(target) is not set:
        raise TypeError(f"items are added to a {type(target).__name__}")
    target.update(items)


def _extend(m: _Machine, items: list[Any]) -> None:
    target = m.stack[-1]
    if type(target) is list:
        target.extend(items)
    else:
        m.builder.extend(target, items)


def _set_items(m: _Machine, items: list[Any]) -> None:
    target, pairs = m.stack[-1], m.pairs(items)
    if type(target) is dict:
        target.update(pairs)
    else:
        m.builder.set_items(target, pairs)


@_opcode(pickle.APPEND)
def _append(m: _Machine) -> None:
    _extend(m, [m.stack.pop()])


@_opcode(pickle.SETITEM)
def _set_item(m: _Machine) -> None:
    value, key = m.stack.pop(), m.stack.pop()
    _set_items(m, [key, value])


_OPCODES[pickle.APPENDS[0]] = lambda m: _extend(m, m.pop_mark())
_OPCODES[pickle.SETITEMS[0]] = lambda m: _set_items(m, m.pop_mark())


# -- what the builder decides


@_opcode(pickle.PERSID)
def _persistent_line(m: _Machine) -> None:
    m.push(m.builder.persistent_load(m.line().decode("ascii")))


@_opcode(pickle.BINPERSID)
def _persistent(m: _Machine) -> None:
    m.push(m.builder.persistent_load(m.stack.pop()))


@_opcode(pickle.GLOBAL)
def _global(m: _Machine) -> None:
    module, name = m.line().decode("utf-8"), m.line().decode("utf-8")
    m.find(module, name)


@_opcode(pickle.STACK_GLOBAL)
def _stack_global(m: _Machine) -> None:
    name, module = m.stack.pop(), m.stack.pop()
    m.find(module, name)


@_opcode(pickle.INST)
def _inst(m: _Machine) -> None:
    args = tuple(m.pop_mark())
    _global(m)
    m.call(m.stack.pop(), args)


@_opcode(pickle.OBJ)
def _obj(m: _Machine) -> None:
    function, *args = m.pop_mark()
    m.call(function, tuple(args))


@_opcode(pickle.REDUCE)
def _reduce(m: _Machine) -> None:
    args, function = m.stack.pop(), m.stack.pop()
    m.call(function, args)


@_opcode(pickle.NEWOBJ)
def _new(m: _Machine) -> None:
    args, cls = m.stack.pop(), m.stack.pop()
    if type(args) is not tuple:
        raise TypeError("the arguments of a new object are not a tuple")
    m.push(m.builder.new(cls, args, {}))


@_opcode(pickle.NEWOBJ_EX)
def _new_ex(m: _Machine) -> None:
    kwargs, args, cls = m.stack.pop(), m.stack.pop(), m.stack.pop()
    if type(args) is not tuple or type(kwargs) is not dict:
        raise TypeError("the arguments of a new object are not a tuple and a dict")
    m.push(m.builder.new(cls, args, kwargs))


@_opcode(pickle.BUILD)
def _build(m: _Machine) -> None:
    state = m.stack.pop()
    m.builder.build(m.stack[-1], state)


@_opcode(pickle.EXT1)
@_opcode(pickle.EXT2)
@_opcode(pickle.EXT4)
@_opcode(pickle.NEXT_BUFFER)
@_opcode(pickle.READONLY_BUFFER)
def _outside(m: _Machine) -> None:
    raise pickle.UnpicklingError(
        f"load: the pickle refers to something outside the file (opcode {m.data[m.at - 1]:#04x}: "
        "an extension code or a buffer sent apart), which files of save never do"
    )
