"""Events of Python from a profile that was read.

Owns what is worked out of the rows: parents and children, sums of memory, shapes, stacks, FLOPs,
which thread recorded a node.
"""

from __future__ import annotations

from typing import Any

from flambeau.autograd._profiler_flops import flops
from flambeau.autograd._profiler_record import (
    EVALUATION,
    NODE,
    OPERATION,
    OUT,
    PROGRAM,
    RANGE,
    STEP,
    Record,
    Thread,
    concrete,
    is_tensor,
    part_of,
    type_text,
)
from flambeau.autograd.profiler_util import EventList, FunctionEvent

# As PyTorch numbers them: functions, backward functions, the user's ranges.
_SCOPES = {OPERATION: 0, NODE: 1, EVALUATION: 1, RANGE: 7, PROGRAM: 0, STEP: 0}


def _for_flops(x: Any) -> Any:
    return list(x[1]) if is_tensor(x) else x


def events_of(record: Record) -> EventList:
    """All events, in the order of their beginnings."""
    forward = {
        row.sequence: thread.ordinal
        for thread in record.threads
        for row in thread.events
        if row.kind == OPERATION and row.sequence >= 0
    }
    made: list[FunctionEvent] = []
    for thread in record.threads:
        own: list[FunctionEvent] = []
        counted: list[bool] = []  # FLOPs are counted there, or around
        for row in thread.events:
            inputs = row.inputs or []
            around = row.parent >= 0 and counted[row.parent]
            work = 0
            if record.asked.get("with_flops") and inputs and not around:
                work = flops(row.name, [_for_flops(x) for x in inputs])
            counted.append(around or work > 0)
            event = FunctionEvent(
                0,
                row.name,
                thread.ordinal,
                (row.begin - record.begin) / 1e3,
                (row.end - record.begin) / 1e3,
                overload_name="out" if row.form == OUT else "",
                fwd_thread=forward.get(row.sequence, 0) if _SCOPES[row.kind] == 1 else 0,
                input_shapes=[part_of(x, 1) for x in inputs],
                input_strides=[part_of(x, 2) for x in inputs],
                input_dtypes=[type_text(x) for x in inputs],
                concrete_inputs=[concrete(x) for x in inputs],
                stack=record.stack(row.stack),
                scope=_SCOPES[row.kind],
                self_cpu_memory_usage=row.bytes,
                sequence_nr=row.sequence,
                flops=work,
                thread_id=thread.id,
                args=row.args,
            )
            own.append(event)
            if row.parent >= 0:
                own[row.parent].append_cpu_child(event)
        for event in reversed(own):  # children come after their parents
            if event.cpu_parent is not None:
                event.cpu_parent.cpu_memory_usage += event.cpu_memory_usage
        made += own
        made += _outside(record, thread)
    made.sort(key=lambda e: (e.time_range.start, -e.time_range.end))
    for number, event in enumerate(made):
        event.id = number
    return EventList(
        made,
        profile_memory=record.asked.get("profile_memory", False),
        with_flops=record.asked.get("with_flops", False),
        record=record,
    )


def _outside(record: Record, thread: Thread) -> list[FunctionEvent]:
    """Memory that was taken or given back in no event: an event of no length each."""
    found = []
    for at, size, _, _, event in thread.memory:
        if event < 0:
            when = (at - record.begin) / 1e3
            found.append(
                FunctionEvent(0, "[memory]", thread.ordinal, when, when,
                              self_cpu_memory_usage=size, thread_id=thread.id)
            )  # fmt: skip
    return found
