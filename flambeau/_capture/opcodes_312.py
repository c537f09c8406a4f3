"""What CPython 3.12 writes differently from the common form of instructions, see `opcodes`.

Comprehensions in line (PEP 709) need nothing: they are a loop that saves what its variable held.
"""

from __future__ import annotations

#: instructions at the end of a jump that only clear up after it, by the instruction that jumps
CLEARED = {"FOR_ITER": "END_FOR", "SEND": "END_SEND"}

#: functions of the interpreter that were instructions of their own, or might be
_INTRINSICS = {3: "STOPITERATION_ERROR", 5: "UNARY_POSITIVE", 6: "LIST_TO_TUPLE"}


def common(name: str, arg: int) -> tuple[str, int]:
    """The common form of an instruction: one name for one meaning, arguments without flags."""
    match name:
        case "LOAD_ATTR":
            return "LOAD_METHOD" if arg & 1 else name, arg >> 1
        case "COMPARE_OP":  # the low bits are for CPython's own use
            return name, arg >> 4
        case "LOAD_FAST_CHECK":  # every load is checked while it is followed
            return "LOAD_FAST", arg
        case "CALL_INTRINSIC_1":
            return _INTRINSICS.get(arg, f"{name} {arg}"), 0
    return name, arg


def native(name: str, arg: int) -> list[tuple[str, int]]:
    """What 3.12 writes for an instruction of the common form; jumps lead forward."""
    if name == "LOAD_ATTR":
        return [(name, arg << 1)]
    return [(name, arg)]
