"""Bytecode of CPython 3.11 and 3.12 as a list of instructions. All knowledge of how code objects
are encoded (caches, extended arguments, directions of jumps, exception tables) is here; what the
instructions mean is in `ops_*`.

Note [Common form]
Instructions are read into one form for all versions and written from it. A module per version,
`opcodes_3xx`, tells what that version writes differently; nothing else knows of versions. In the
common form LOAD_ATTR and LOAD_METHOD (which leaves NULL and the attribute) take the index of a
name, COMPARE_OP that of a comparison, POP_JUMP_IF_* lead anywhere, and a jump that ends an
iteration leads behind what clears up after it: FOR_ITER has popped the iterator then, SEND has put
the result in its place. CALL does the work of PRECALL.
"""

from __future__ import annotations

import dis
import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any

if sys.version_info >= (3, 12):
    from . import opcodes_312 as version
else:
    from . import opcodes_311 as version

_EXTENDED = dis.opmap["EXTENDED_ARG"]
_CACHES: list[int] = dis._inline_cache_entries  # type: ignore[attr-defined]
_BACKWARD = frozenset(op for name, op in dis.opmap.items() if "JUMP_BACKWARD" in name)
_RELATIVE = frozenset(dis.hasjrel)
# They prepare the CALL that follows and leave the stack alone: a group with it.
_BEFORE_CALL = frozenset(dis.opmap[n] for n in ("KW_NAMES", "PRECALL") if n in dis.opmap)


class Instruction:
    """One instruction in the common form, with what CPython wrote (`op`, `oparg`). `start` is where
    its group begins (prefixes, KW_NAMES)."""

    __slots__ = ("arg", "end", "line", "name", "offset", "op", "oparg", "run", "start", "target")

    def __init__(self, op: int, oparg: int, start: int, offset: int, line: int) -> None:
        self.op, self.oparg, self.start, self.offset, self.line = op, oparg, start, offset, line
        self.name, self.arg = version.common(dis.opname[op], oparg)
        self.end = offset + 2 + 2 * _CACHES[op]
        self.target = -1  # index of the instruction that it may jump to
        self.run: Any = None  # its handler, filled in by the interpreter


@dataclass(frozen=True)
class Handler:
    """A row of the exception table, offsets in bytes."""

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


#: instructions that make an error with its message
_LONGEST_MESSAGE = 200


class Decoded:
    """A code object, decoded."""

    def __init__(self, code: CodeType) -> None:
        self.instructions = list(_decode(code))
        self.index = {i.offset: n for n, i in enumerate(self.instructions)}
        for n, i in enumerate(self.instructions):  # a jump may lead to a prefix
            for at in range(i.offset - 2, -1, -2):
                if at in self.index or code.co_code[at] != _EXTENDED:
                    break
                self.index[at] = n
        for i in self.instructions:
            if i.op in _RELATIVE:
                i.target = self._target(i)
        self.handlers = list(parse_exception_table(code.co_exceptiontable))
        self.names = local_names(code)
        self._raising: dict[int, bool] = {}

    def _target(self, i: Instruction) -> int:
        units = -i.oparg if i.op in _BACKWARD else i.oparg
        found = self.index[i.end + 2 * units]
        return found + (self.instructions[found].name == version.CLEARED.get(i.name))

    def handler(self, offset: int) -> Handler | None:
        """The row that covers an instruction."""
        for h in self.handlers:
            if h.start <= offset < h.end:
                return h
        return None

    def rows(self, start: int, end: int) -> list[Handler]:
        """What the exception table says of a range of offsets."""
        inside = (replace(h, start=max(h.start, start), end=min(h.end, end)) for h in self.handlers)
        return [h for h in inside if h.start < h.end]

    def only_raises(self, n: int) -> bool:
        """Whether every way from instruction n on ends by raising an error, and soon."""
        found = self._raising.get(n)
        if found is None:
            found = self._raising[n] = self._only_raises(n)
        return found

    def expected(self, n: int) -> bool | None:
        """What instruction n, a jump, finds true or not where the program does not raise: one of
        its ways alone goes on. None: it is no such instruction."""
        i = self.instructions[n] if n < len(self.instructions) else None
        if i is None or i.name not in ("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE"):
            return None
        jumps, falls = self.only_raises(i.target), self.only_raises(n + 1)
        return None if jumps == falls else falls == (i.name == "POP_JUMP_IF_TRUE")

    def _only_raises(self, n: int) -> bool:
        seen: set[int] = set()
        todo = [n]
        while todo:
            at = todo.pop()
            if at in seen:
                continue
            seen.add(at)
            i = self.instructions[at]
            leaves = i.name.startswith(("RETURN", "YIELD", "SEND", "RERAISE", "STORE", "DELETE"))
            if leaves or i.op in _BACKWARD or len(seen) > _LONGEST_MESSAGE:
                return False
            if i.target >= 0:
                todo.append(i.target)
            if i.name not in ("RAISE_VARARGS", "JUMP_FORWARD"):
                todo.append(at + 1)
        return True

    def in_loop(self, n: int) -> bool:
        """Whether instruction n may run again after it ran."""
        return any(
            i.op in _BACKWARD and m >= n >= i.target for m, i in enumerate(self.instructions)
        )


def local_names(code: CodeType) -> tuple[str, ...]:
    """Names of the frame's slots: arguments and locals, then cells that are neither, then free."""
    extra = [c for c in code.co_cellvars if c not in code.co_varnames]
    return (*code.co_varnames, *extra, *code.co_freevars)


def stack_effect(i: Instruction, jumps: bool) -> int:
    """By how much an instruction makes the stack higher when it jumps, or does not."""
    if i.name == "CALL":
        return -i.arg - 1
    if jumps and i.name in ("FOR_ITER", "SEND"):
        return -1
    return dis.stack_effect(i.op, i.oparg if i.op >= dis.HAVE_ARGUMENT else None, jump=jumps)


def encode(name: str, arg: int = 0) -> bytes:
    """The bytecode of an instruction of the common form; a jump leads forward."""
    out = b""
    for native, oparg in version.native(name, arg):
        for shift in (24, 16, 8):
            if oparg >> shift:
                out += bytes((_EXTENDED, oparg >> shift & 255))
        op = dis.opmap[native]
        out += bytes((op, oparg & 255)) + bytes(2 * _CACHES[op])
    return out


def landing(name: str) -> bytes:
    """What has to stand where a jump leads, in front of what the common form goes on with."""
    cleared = version.CLEARED.get(name)
    return b"" if cleared is None else encode(cleared)


def _decode(code: CodeType) -> Iterator[Instruction]:
    raw = code.co_code
    lines: dict[int, int] = {}
    for first, end, line in code.co_lines():
        for at in range(first, end, 2):
            lines[at] = line or 0
    at, arg = 0, 0
    start: int | None = None
    group: int | None = None
    while at < len(raw):
        op = raw[at]
        start = at if start is None else start
        arg |= raw[at + 1]
        if op == _EXTENDED:
            arg <<= 8
            at += 2
            continue
        if op in _BEFORE_CALL and group is None:
            group = start
        yield Instruction(op, arg, start if group is None else group, at, lines.get(at, 0))
        if op not in _BEFORE_CALL:
            group = None
        at += 2 + 2 * _CACHES[op]
        arg, start = 0, None


def _varints(table: bytes) -> Iterator[int]:
    value = 0
    for byte in table:
        value = value << 6 | byte & 63
        if not byte & 64:
            yield value
            value = 0


def parse_exception_table(table: bytes) -> Iterator[Handler]:
    numbers = _varints(table)
    for start in numbers:
        length, target, flags = next(numbers), next(numbers), next(numbers)
        yield Handler(2 * start, 2 * (start + length), 2 * target, flags >> 1, bool(flags & 1))


def _varint(value: int, first: bool) -> bytes:
    digits = [value & 63]
    while value := value >> 6:
        digits.append(value & 63)
    digits.reverse()
    out = [d | 64 for d in digits[:-1]] + [digits[-1]]
    if first:
        out[0] |= 128
    return bytes(out)


def write_exception_table(handlers: list[Handler]) -> bytes:
    out = b""
    for h in sorted(handlers, key=lambda h: h.start):
        flags = h.depth << 1 | h.lasti
        numbers = (h.start // 2, (h.end - h.start) // 2, h.target // 2, flags)
        out += b"".join(_varint(v, n == 0) for n, v in enumerate(numbers))
    return out


_known: weakref.WeakKeyDictionary[CodeType, Decoded] = weakref.WeakKeyDictionary()


def decoded(code: CodeType) -> Decoded:
    """The instructions of a code object, decoded once."""
    found = _known.get(code)
    if found is None:
        found = _known[code] = Decoded(code)
    return found
