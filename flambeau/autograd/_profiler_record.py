"""A profile as it was read: rows of events of each thread, before anything is worked out.

Owns the layout of the extension's rows (csrc/python/profiler.cpp) and what arguments look like in
them: a tensor is (dtype, sizes, strides), a list of tensors a list, numbers themselves, a list of
numbers a tuple, `...` what has another type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: kinds of events, as csrc/profiler/events.h numbers them
OPERATION, NODE, EVALUATION, RANGE, PROGRAM, STEP = range(6)
OUT = 2  # the form of a call with out=


@dataclass
class Row:
    """An event as it was read; times in nanoseconds of the clock."""

    name: str
    kind: int
    form: int
    begin: int
    end: int
    parent: int
    sequence: int
    bytes: int
    inputs: list[Any] | None
    stack: int
    args: str | None


@dataclass
class Thread:
    """The events of one thread, in the order of their beginnings."""

    ordinal: int
    id: int
    name: str
    events: list[Row]
    memory: list[tuple[int, int, int, int, int]]  # time, bytes, total, address, event


@dataclass
class Record:
    """A profile as it was read."""

    begin: int
    end: int
    wall: int  # nanoseconds since 1970 at `begin`
    threads: list[Thread]
    stacks: list[list[str]]
    asked: dict[str, bool]
    metadata: dict[str, str]

    def stack(self, number: int) -> list[str]:
        """Lines of the program, innermost first."""
        return self.stacks[number - 1] if number else []


#: frames of these files are the profiler's own
_OWN = ("flambeau/autograd/profiler.py", "flambeau/profiler/profiler.py")


def read(raw: tuple[Any, ...], asked: dict[str, bool], metadata: dict[str, str]) -> Record:
    """The record of what `_C._profiler_stop` gave."""
    begin, end, wall, threads, stacks = raw
    return Record(
        begin,
        end,
        wall,
        [
            Thread(ordinal, id, name, [Row(*row) for row in events], memory)
            for ordinal, id, name, events, memory in threads
        ],
        [
            [f"{file}({line}): {f}" for file, line, f in frames if not file.endswith(_OWN)]
            for frames in stacks
        ],
        asked,
        metadata,
    )


def part_of(x: Any, at: int) -> Any:
    """Sizes (1), strides (2) of a tensor, of each of a list; [] for what is no tensor."""
    if isinstance(x, tuple) and len(x) == 3 and isinstance(x[1], tuple):
        return list(x[at])
    if isinstance(x, list):
        return [part_of(item, at) for item in x]
    return []


def is_tensor(x: Any) -> bool:
    return isinstance(x, tuple) and len(x) == 3 and isinstance(x[1], tuple)


def type_text(x: Any) -> str:
    """What an argument is: the dtype of a tensor, TensorList, Scalar."""
    if is_tensor(x):
        return str(x[0]).removeprefix("torch.")
    if isinstance(x, list):
        return "TensorList"
    if isinstance(x, tuple):
        return "ScalarList"
    return "" if x is None or x is Ellipsis else "Scalar"


def concrete(x: Any) -> Any:
    """A number, or a list of them; None for tensors and what else there is."""
    if is_tensor(x) or isinstance(x, list) or x is None or x is Ellipsis:
        return None
    return list(x) if isinstance(x, tuple) else x
