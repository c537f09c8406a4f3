"""Code objects that continue a frame in the middle.

When a graph ends before an instruction, the compiled code hands the frame's state to a *step*: code
that puts the stack back, runs that one instruction as CPython does, and passes the state on to a
*rest*: the original bytecode behind a prologue that puts the stack back and jumps. The rest is an
ordinary function, captured in its turn. All slots of the original frame (cells too) keep their
numbers, so the bytecode is used as it is.
"""

from __future__ import annotations

import types
import weakref
from dataclasses import dataclass, replace
from typing import Any

from flambeau import _C

from .errors import Skip, unset_variable
from .inlined import Inlined, comprehension, sets_others
from .opcodes import (
    Decoded,
    Handler,
    Instruction,
    decoded,
    encode,
    landing,
    stack_effect,
    write_exception_table,
)


@dataclass(frozen=True)
class State:
    """A frame between two instructions: which slots are not set, where the stack holds NULL."""

    depth: int
    nulls: frozenset[int]
    unset: frozenset[int]


def _varint(v: int) -> bytes:
    out = b""
    while v >= 64:
        out += bytes((v & 63 | 64,))
        v >>= 6
    return out + bytes((v,))


def _lines(units: int, delta: int) -> bytes:
    """Rows of a line table: `units` code units, `delta` lines on; no columns."""
    out = b""
    while units:
        n = min(units, 8)
        out += bytes((0x80 | 13 << 3 | n - 1,))
        out += _varint(-delta << 1 | 1 if delta < 0 else delta << 1)
        units -= n
        delta = 0
    return out


class _Names:
    """Slots of new code: those of the original frame, then the stack."""

    def __init__(self, code: types.CodeType, depth: int) -> None:
        self.slots = decoded(code).names
        prefix = "_stack"
        while any(n.startswith(prefix) for n in self.slots):
            prefix = "_" + prefix
        self.stack = tuple(f"{prefix}{k}" for k in range(depth))
        self.n = len(self.slots)


def _restore(names: _Names, state: State) -> bytes:
    """A prologue: unset what is not set, put the stack back."""
    out = encode("RESUME", 0)
    for slot in sorted(state.unset):
        out += encode("DELETE_FAST", slot)
    for k in range(state.depth):
        out += encode("PUSH_NULL") if k in state.nulls else encode("LOAD_FAST", names.n + k)
    return out


def _replace(
    code: types.CodeType, names: _Names, raw: bytes, prologue: int, line: int, body: bool,
    handlers: list[Handler], consts: tuple[Any, ...], args: int,
) -> types.CodeType:  # fmt: skip
    units = prologue // 2
    first = code.co_firstlineno
    table = _lines(units - 1, line - first) + _lines(1, first - line)
    if body:
        table += code.co_linetable
    else:
        table = _lines(units, line - first)
    flags = code.co_flags & ~(0x04 | 0x08)
    return code.replace(
        co_code=raw,
        co_argcount=args,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_varnames=(*names.slots, *names.stack),
        co_nlocals=names.n + len(names.stack),
        co_cellvars=(),
        co_freevars=(),
        co_flags=flags,
        co_consts=consts,
        co_linetable=table,
        co_exceptiontable=write_exception_table(handlers),
        co_stacksize=max(code.co_stacksize, len(names.stack)) + names.n + 8,
    )


def _shifted(handlers: list[Handler], by: int) -> list[Handler]:
    return [Handler(h.start + by, h.end + by, h.target + by, h.depth, h.lasti) for h in handlers]


class Rests:
    """Steps and rests of one code object, made once: what was compiled for them stays."""

    def __init__(self) -> None:
        self.rests: dict[tuple[int, State], types.FunctionType] = {}
        self.steps: dict[tuple[int, State], types.FunctionType] = {}
        self.calls: dict[tuple[int, State], types.FunctionType] = {}


_known: weakref.WeakKeyDictionary[types.CodeType, dict[int, Rests]]
_known = weakref.WeakKeyDictionary()


def rests_of(code: types.CodeType, namespace: dict[str, Any]) -> Rests:
    return _known.setdefault(code, {}).setdefault(id(namespace), Rests())


def forget() -> None:
    """Drops all steps and rests."""
    _known.clear()


def rest(
    code: types.CodeType, namespace: dict[str, Any], at: int, state: State
) -> types.FunctionType:
    """A function that goes on before instruction `at`; all stack positions are arguments."""
    known = rests_of(code, namespace).rests
    found = known.get((at, state))
    if found is None:
        names = _Names(code, state.depth)
        target = decoded(code).instructions[at]
        prologue = _restore(names, state)
        jump = encode("JUMP_FORWARD", target.start // 2 + 1)  # over the NOP below
        prologue += jump + encode("NOP")
        raw = prologue + code.co_code
        handlers = _shifted(decoded(code).handlers, len(prologue))
        new = _replace(
            code, names, raw, len(prologue), target.line, True, handlers, code.co_consts,
            names.n + state.depth,
        )  # fmt: skip
        found = known[at, state] = types.FunctionType(new, namespace, code.co_name)
    return found


def _after(i: Instruction, state: State, jumps: bool) -> State:
    """The frame after an instruction that does not raise."""
    depth = state.depth + stack_effect(i, jumps)
    nulls, unset = set(state.nulls), set(state.unset)
    top = state.depth - 1
    if i.name in ("CALL", "CALL_FUNCTION_EX"):
        nulls.discard(depth - 1)
    elif i.name in ("LOAD_METHOD", "LOAD_GLOBAL", "LOAD_SUPER_ATTR") and _leaves_null(i):
        nulls.add(depth - 2)
    elif i.name == "SWAP":
        other = {top: top + 1 - i.arg, top + 1 - i.arg: top}
        nulls = {other.get(k, k) for k in nulls}
    elif i.name == "LOAD_FAST_AND_CLEAR":
        if i.arg in unset:
            nulls.add(depth - 1)
        unset.add(i.arg)
    elif i.name == "DELETE_FAST":
        unset.add(i.arg)
    elif i.name == "MAKE_CELL":
        unset.discard(i.arg)
    elif i.name == "STORE_FAST":
        (unset.add if top in nulls else unset.discard)(i.arg)
    return State(depth, frozenset(k for k in nulls if k < depth), frozenset(unset))


def _leaves_null(i: Instruction) -> bool:
    """Whether an instruction leaves what it found above NULL, to be called."""
    return i.name == "LOAD_METHOD" or bool(i.arg & 1)


def _copied(code: types.CodeType, d: Decoded, at: int, jump: int) -> bytes:
    """The instruction with what belongs to it; a jump leads `jump` units on."""
    i = d.instructions[at]
    # Whether a method or NULL lies below would be unknown: NULL, always.
    if i.name == "LOAD_METHOD":
        return encode("PUSH_NULL") + encode("SWAP", 2) + encode("LOAD_ATTR", i.arg)
    if i.name == "LOAD_SUPER_ATTR" and _leaves_null(i):
        return encode(i.name, i.arg & ~1) + encode("PUSH_NULL") + encode("SWAP", 2)
    if i.target >= 0:
        return encode(i.name, jump)
    return code.co_code[i.start : i.end]


def _check_set(cell: types.CellType, name: str) -> None:
    """Raises what CPython raises of a variable of an enclosing function that is not set. In a step
    its cell is an argument, and CPython would call the variable a local one."""
    if cell == _EMPTY:
        raise unset_variable(name, True)


_EMPTY = types.CellType()


def _checked(code: types.CodeType, i: Instruction, consts: list[Any]) -> bytes:
    """What goes before an instruction that reads a variable of an enclosing function."""
    own = len(decoded(code).names) - len(code.co_freevars)
    if i.name not in ("LOAD_DEREF", "DELETE_DEREF") or i.arg < own:
        return b""
    const = len(consts)
    consts.extend((_check_set, decoded(code).names[i.arg]))
    call = encode("PUSH_NULL") + encode("LOAD_CONST", const) + encode("LOAD_FAST", i.arg)
    return call + encode("LOAD_CONST", const + 1) + encode("CALL", 2) + encode("POP_TOP")


def _run_whole(d: Decoded, at: int, state: State) -> Inlined | None:
    """The comprehension in line that begins at an instruction, where it can be run as one."""
    found = comprehension(d, at)
    if found is None or found.first != at or sets_others(d, found, state.unset):
        return None
    return found


def _after_whole(d: Decoded, c: Inlined, state: State) -> State:
    """The frame after a comprehension: as if its loop had ended at once."""
    for i in d.instructions[c.first : c.loop]:
        state = _after(i, state, False)
    state = _after(d.instructions[c.loop], state, True)
    for i in d.instructions[c.landing : c.end]:
        state = _after(i, state, False)
    return state


def _pass_on(names: _Names, state: State, const: int) -> bytes:
    """The end of a step: the state as arguments of a rest."""
    out = b"".join(encode("STORE_FAST", names.n + k) for k in reversed(range(state.depth)))
    out += encode("PUSH_NULL") + encode("LOAD_CONST", const)
    none = const + 1
    for slot in range(names.n):
        unset = slot in state.unset
        out += encode("LOAD_CONST", none) if unset else encode("LOAD_FAST", slot)
    for k in range(state.depth):
        null = k in state.nulls
        out += encode("LOAD_CONST", none) if null else encode("LOAD_FAST", names.n + k)
    return out + encode("CALL", names.n + state.depth) + encode("RETURN_VALUE")


def step_over(
    code: types.CodeType, namespace: dict[str, Any], at: int, state: State
) -> types.FunctionType:
    """A function that makes the call that instruction `at` is, of what lies on the stack in the
    place of the callable and its arguments, and goes on with the rest."""
    known = rests_of(code, namespace).calls
    found = known.get((at, state))
    if found is None:
        i, depth = decoded(code).instructions[at], state.depth - 1
        nulls = frozenset(k for k in state.nulls if k < depth - 1)
        after = rest(code, namespace, at + 1, State(depth, nulls, state.unset))
        names = _Names(code, state.depth)
        fall = _pass_on(names, State(depth, nulls, state.unset), len(code.co_consts))
        consts = [*code.co_consts, after, None]
        copied = encode("CALL")
        rows = _rows(decoded(code), i, copied)
        found = _stepping(code, namespace, i.line, state, names, copied, rows, fall, consts)
        known[at, state] = found
    return found


def step(
    code: types.CodeType, namespace: dict[str, Any], at: int, state: State
) -> types.FunctionType:
    """A function that runs instruction `at` (or the comprehension in line that begins there)
    plainly and goes on with the rest."""
    known = rests_of(code, namespace).steps
    found = known.get((at, state))
    if found is not None:
        return found
    d = decoded(code)
    i = d.instructions[at]
    if i.name in ("SEND", "YIELD_VALUE", "RETURN_GENERATOR", "BEFORE_ASYNC_WITH"):
        raise Skip(f"a graph cannot end before {i.name}")
    returns = i.name in ("RETURN_VALUE", "RERAISE", "RAISE_VARARGS", "RETURN_CONST")
    whole = _run_whole(d, at, state)
    end = at + 1 if whole is None else whole.end
    through = _after(i, state, False) if whole is None else _after_whole(d, whole, state)
    jumped = _after(i, state, True)
    names = _Names(code, max(state.depth, through.depth, jumped.depth))
    consts: list[Any] = list(code.co_consts)

    def exit_to(index: int, after: State) -> bytes:
        const = len(consts)
        consts.extend((rest(code, namespace, index, after), None))
        return _pass_on(names, after, const)

    fall = b"" if returns else exit_to(end, through)
    taken = b"" if i.target < 0 else landing(i.name) + exit_to(i.target, jumped)
    if whole is None:
        copied = _checked(code, i, consts) + _copied(code, d, at, len(fall) // 2)
        rows = _rows(d, i, copied)
    else:
        first, last = i.start, d.instructions[end - 1].end
        copied = code.co_code[first:last]
        rows = [replace(h, start=h.start - first, end=h.end - first) for h in d.rows(first, last)]
    found = _stepping(code, namespace, i.line, state, names, copied, rows, fall + taken, consts)
    known[at, state] = found
    return found


def _rows(d: Decoded, i: Instruction, copied: bytes) -> list[Handler]:
    """What the exception table says of an instruction, of what stands for it."""
    return [replace(h, start=0, end=len(copied)) for h in d.rows(i.offset, i.end)]


def _stepping(
    code: types.CodeType, namespace: dict[str, Any], line: int, state: State, names: _Names,
    copied: bytes, rows: list[Handler], exits: bytes, consts: list[Any],
) -> types.FunctionType:  # fmt: skip
    """The function of a step: it puts the stack back, runs what was copied, takes an exit."""
    d, prologue = decoded(code), _restore(names, state)
    raw = prologue + copied + exits + encode("NOP")
    handlers: list[Handler] = []
    length = len(raw)
    if rows:  # their handlers run plainly, to the end of the frame
        raw += code.co_code
        handlers = _shifted(d.handlers, length)
        start = len(prologue)
        handlers += [
            replace(h, start=h.start + start, end=h.end + start, target=h.target + length)
            for h in rows
        ]
    new = _replace(
        code, names, raw, length, line, bool(rows), handlers, tuple(consts),
        names.n + state.depth,
    )  # fmt: skip
    _C._skip_code(new)
    return types.FunctionType(new, namespace, code.co_name)


_NEVER_FALLS_THROUGH = (
    "RETURN_VALUE",
    "RETURN_CONST",
    "RERAISE",
    "RAISE_VARARGS",
    "JUMP_FORWARD",
    "JUMP_BACKWARD",
    "JUMP_BACKWARD_NO_INTERRUPT",
)


def reachable(code: types.CodeType, at: int) -> set[int]:
    """Instructions that may run after instruction `at`, itself included."""
    d = decoded(code)
    seen: set[int] = set()
    todo = [at]
    while todo:
        n = todo.pop()
        if n in seen or n >= len(d.instructions):
            continue
        seen.add(n)
        i = d.instructions[n]
        if i.target >= 0:
            todo.append(i.target)
        handler = d.handler(i.offset)
        if handler is not None:
            todo.append(d.index[handler.target])
        if i.name not in _NEVER_FALLS_THROUGH:
            todo.append(n + 1)
    return seen


_READS = ("LOAD_FAST", "LOAD_FAST_AND_CLEAR", "DELETE_FAST", "LOAD_CLOSURE",
          "LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_CLASSDEREF")  # fmt: skip


def live_slots(code: types.CodeType, at: int) -> set[int]:
    """Slots that may be read from instruction `at` on."""
    d = decoded(code)
    names = code.co_names
    if any(n in names for n in ("locals", "vars", "eval", "exec", "dir")):
        return set(range(len(d.names)))
    after = (d.instructions[n] for n in reachable(code, at))
    return {i.arg for i in after if i.name in _READS}


def uses_super(code: types.CodeType, at: int) -> bool:
    """Whether what follows may call `super()` without arguments."""
    if "__class__" not in decoded(code).names:
        return False
    names = (decoded(code).instructions[n] for n in reachable(code, at))
    return any(
        (i.name == "LOAD_GLOBAL" and code.co_names[i.arg >> 1] == "super")
        or i.name == "LOAD_SUPER_ATTR"
        for i in names
    )
