"""What CPython 3.11 writes differently from the common form of instructions, see `opcodes`."""

from __future__ import annotations

#: instructions at the end of a jump that only clear up after it, by the instruction that jumps
CLEARED: dict[str, str] = {}


def common(name: str, arg: int) -> tuple[str, int]:
    """The common form of an instruction: conditional jumps tell no direction by their name."""
    if name.startswith("POP_JUMP_"):
        return name.replace("FORWARD_", "").replace("BACKWARD_", ""), arg
    return name, arg


def native(name: str, arg: int) -> list[tuple[str, int]]:
    """What 3.11 writes for an instruction of the common form; jumps lead forward."""
    if name == "CALL":
        return [("PRECALL", arg), (name, arg)]
    if name.startswith("POP_JUMP_"):
        return [(name.replace("JUMP_", "JUMP_FORWARD_"), arg)]
    return [(name, arg)]
