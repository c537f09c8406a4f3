"""Copies that stand for views: `x[i]` where `i` is a traced tensor of one whole number.

Note [Views at traced places]
Eager's `x[i]` is a view. Where it lies depends on data, so a graph has a copy, in the strides of
the view: a *stand-in*. Nobody can tell while nothing below it changes; what is written to a
stand-in is written to the tensor below as well. Whoever would see the difference (one who reads a
stand-in after the tensor below was changed, gets it as a result beside that tensor, or asks where
it lies) is refused, and `recorder.stand_ins_seen` is set: capture then starts again and ends the
graph at `x[i]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._table.entries import record
from . import geometry
from .fake import Fake, Memory, repeats
from .meanings import DataDependent

if TYPE_CHECKING:
    from .record import Recorder
    from .session import Session


@dataclass(eq=False)
class StandIn:
    """What a memory is a copy of."""

    below: Fake
    indices: list[Fake | None]
    grad: bool  # the view was recorded
    versions: list[int]  # of all that it depends on, when it was last the same

    def now(self, recorder: Recorder) -> list[int]:
        """Versions of the tensor below and of the indices; what is outside may share memory."""
        shared = recorder.outside_writes if _root(self.below.memory).outside else 0
        return [shared, *(x.memory.version for x in (self.below, *self.indices) if x is not None)]


def stand_in(session: Session, below: Fake, indices: list[Fake | None]) -> Fake:
    """`below[indices]` for indices that are tensors of one whole number each."""
    recorder = session.recorder
    if not recorder.may_stand_in:
        raise DataDependent(
            "x[i] with a traced i is a view whose place depends on data, and here it is returned, "
            "shares changes or repeats elements; x.index_select gives a copy"
        )
    made: Fake = session.op("index", below, indices)
    given = [*indices, *[None] * (below.ndim - len(indices))]
    strides = tuple(s for s, i in zip(below.strides, given, strict=True) if i is None)
    if not geometry.same(strides, made.strides):
        place = session.op("empty_strided", list(made.shape), list(strides), made.dtype)
        if repeats(place):
            _refuse(recorder, "elements of the view share memory")
        made = session.op("copy_", place, made, False)
    copied = StandIn(below, indices, recorder.grad, [])
    copied.versions = copied.now(recorder)
    made.memory.stands_for = copied
    return made


def _is_stale(recorder: Recorder, memory: Memory) -> bool:
    copied = memory.stands_for
    if copied is None:
        return False
    return copied.now(recorder) != copied.versions or _is_stale(recorder, copied.below.memory)


def _refuse(recorder: Recorder, why: str) -> None:
    recorder.stand_ins_seen = True
    raise DataDependent(f"x[i] with a traced i is a copy in a graph, and {why}")


def check_read(recorder: Recorder, x: Fake) -> None:
    """Refuses a stand-in that has not the values that eager's view has."""
    if x.memory.stands_for is not None and _is_stale(recorder, x.memory):
        _refuse(recorder, "it is read after x or i was changed")


def write_below(recorder: Recorder, x: Fake) -> None:
    """After `x` was written to: what it stands for is, too."""
    copied = x.memory.stands_for
    if copied is None:
        return
    if recorder.grad and not copied.grad:
        _refuse(recorder, "it was made without gradients and is changed with them")
    if repeats(copied.below):  # eager changes the view alone, whose elements may be apart
        _refuse(recorder, "it is changed, and elements of x share memory")
    args = [copied.below, copied.indices, x.memory.base, False]
    recorder.call(record("index_put_"), False, args)
    copied.versions = copied.now(recorder)


def refuse_place(recorder: Recorder, x: Fake) -> None:
    """Refuses to say where in its storage a stand-in lies."""
    if x.memory.stands_for is not None:
        _refuse(recorder, "its place in the storage is asked for")


def check_results(recorder: Recorder, results: Sequence[Fake]) -> None:
    """Refuses stand-ins among results, but for the only result that lies in a temporary."""
    roots = [_root(x.memory) for x in results]
    for x, root in zip(results, roots, strict=True):
        if x.memory.stands_for is None:
            continue
        check_read(recorder, x)
        others = [y for y, r in zip(results, roots, strict=True) if r is root and y is not x]
        if root.outside or others:
            _refuse(recorder, "it is a result, as is the memory of x")


def _root(memory: Memory) -> Memory:
    while memory.stands_for is not None:
        memory = memory.stands_for.below.memory
    return memory
