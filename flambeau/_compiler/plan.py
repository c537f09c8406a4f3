"""When memory of a program's buffers is taken, handed on and given back.

A buffer has memory from its first write to its last use. Memory of a temporary whose last use has
passed goes to the next buffer of exactly its size; when the next memory that is asked for is of
another size, or an operation is called that takes memory of its own, it is given back first. So a
program never holds more than eager does, which frees a result with its last reference.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._ir.symexpr import Expr, expr
from .nest import Buffer, Nest, Program, Step, views_of


@dataclass(frozen=True)
class Allocate:
    """Memory for a buffer."""

    buffer: str


@dataclass(frozen=True)
class Take:
    """The memory of another buffer, which is not needed any more."""

    buffer: str
    other: str


@dataclass(frozen=True)
class Free:
    """Gives back the memory of a buffer, or lets go of an input."""

    buffer: str


@dataclass(frozen=True)
class Change:
    """Tells that the next step, a nest, changes a buffer that is an input."""

    buffer: str


@dataclass(frozen=True)
class Run:
    """Step k of the program."""

    step: int


Instruction = Allocate | Take | Free | Change | Run


def extent(b: Buffer) -> Expr:
    """Bytes from the first element to the last."""
    if any(n == 0 for n in b.shape):
        return expr(0)
    reach = expr(1)
    for n, stride in zip(b.shape, b.strides, strict=True):
        reach = reach + (expr(n) - 1) * stride
    return reach * b.dtype.itemsize


def plan(program: Program) -> list[Instruction]:
    """The steps of a program, with what happens to memory between them."""
    last = last_uses(program)
    kept = {v.buffer for v in views_of(tuple(program.outputs))}
    called = {name for s in program.steps if not isinstance(s, Nest) for name in s.writes}
    inputs = {name for name in program.inputs if name is not None}
    out: list[Instruction] = [Free(b) for b in sorted(inputs - set(last) - kept)]
    live = inputs | called
    dead: list[str] = []
    for k, step in enumerate(program.steps):
        writes = sorted(step.writes & program.buffers.keys(), key=_number)
        fresh = [name for name in writes if name not in live]
        out += _memory(program, step, fresh, dead)
        live.update(fresh)
        if isinstance(step, Nest):
            out += [Change(name) for name in writes if name in inputs]
        out.append(Run(k))
        used = (step.reads | step.writes) & program.buffers.keys()
        for name in sorted(used, key=_number):
            if last[name] == k and name not in kept:
                if name in inputs or name in called:
                    out.append(Free(name))
                else:
                    dead.append(name)
    return out


def _memory(program: Program, step: Step, fresh: list[str], dead: list[str]) -> list[Instruction]:
    """Memory for what a step writes first; `dead` is what may be taken, and is used up."""
    out: list[Instruction] = []
    missing = []
    for name in fresh:
        size = extent(program.buffers[name])
        other = next((d for d in dead if extent(program.buffers[d]) == size), None)
        if other is None:
            missing.append(name)
        else:
            dead.remove(other)
            out.append(Take(name, other))
    if missing or not isinstance(step, Nest):
        out += [Free(d) for d in dead]
        dead.clear()
    return out + [Allocate(name) for name in missing]


def last_uses(program: Program) -> dict[str, int]:
    """The last step that reads or writes each buffer."""
    return {name: k for k, s in enumerate(program.steps) for name in s.reads | s.writes}


def _number(name: str) -> int:
    return int(name[1:])
