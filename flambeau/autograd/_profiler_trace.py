"""Profiles as files for viewers: the trace event format of Chrome, which Perfetto reads as well.

Owns the layout of the file. An event is a complete one (ph X) on its thread, with what is known of
it as args; arrows lead from calls to the nodes that they recorded; memory is an instant with the
total.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from typing import Any

from flambeau.autograd._profiler_record import (
    NODE,
    OPERATION,
    RANGE,
    Record,
    Row,
    Thread,
    concrete,
    part_of,
    type_text,
)

_CATEGORIES = {RANGE: "user_annotation"}


def write(record: Record, path: str | os.PathLike[str]) -> None:
    """Write the trace; a path that ends in .gz gets a compressed one."""
    name = os.fspath(path)
    zipped = name.endswith(".gz")
    with gzip.open(name, "wt") if zipped else open(name, "w", encoding="utf-8") as file:
        head = {
            "schemaVersion": 1,
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": record.wall,
            "traceName": name,
            **{key: int(on) for key, on in record.asked.items()},
        }
        text = json.dumps(head)[:-1]
        for key, value in record.metadata.items():
            text += f", {json.dumps(key)}: {value}"
        file.write(text + ', "traceEvents": [\n')
        first = True
        for event in _events(record):
            file.write(("" if first else ",\n") + json.dumps(event))
            first = False
        file.write("\n]}\n")


def _events(record: Record) -> Iterator[dict[str, Any]]:
    pid = os.getpid()
    yield _named("process_name", pid, 0, name="python")
    yield _named("process_labels", pid, 0, labels="CPU")
    for thread in record.threads:
        name = f"thread {thread.id} ({thread.name})"
        yield _named("thread_name", pid, thread.id, name=name)
        yield _named("thread_sort_index", pid, thread.id, sort_index=thread.ordinal)
    calls = _calls(record)
    for thread in record.threads:
        for row in thread.events:
            yield _complete(record, thread, row, pid)
            if row.kind == NODE and row.sequence in calls:
                yield from _arrow(record, pid, *calls[row.sequence], thread, row)
        for at, size, total, address, _ in thread.memory:
            yield {
                "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": pid,
                "tid": thread.id, "ts": (at - record.begin) / 1e3,
                "args": {
                    "Total Allocated": total, "Bytes": size, "Addr": address, "Device Type": 0,
                    "Device Id": -1,
                },
            }  # fmt: skip
    yield {
        "ph": "X", "cat": "Trace", "name": "Flambeau profiler", "pid": "Spans", "tid": "profiler",
        "ts": 0.0, "dur": (record.end - record.begin) / 1e3, "args": {},
    }  # fmt: skip


def _named(what: str, pid: int, tid: int, **args: Any) -> dict[str, Any]:
    return {"ph": "M", "name": what, "ts": 0.0, "pid": pid, "tid": tid, "args": args}


def _complete(record: Record, thread: Thread, row: Row, pid: int) -> dict[str, Any]:
    args: dict[str, Any] = {}
    if row.sequence >= 0:
        args["Sequence number"] = row.sequence
    if row.inputs is not None:
        args["Input Dims"] = [part_of(x, 1) for x in row.inputs]
        args["Input Strides"] = [part_of(x, 2) for x in row.inputs]
        args["Input type"] = [type_text(x) for x in row.inputs]
        numbers = [concrete(x) for x in row.inputs]
        args["Concrete Inputs"] = ["" if x is None else str(x) for x in numbers]
    if row.stack:
        args["Call stack"] = ";".join(record.stack(row.stack))
    if row.bytes:
        args["Bytes"] = row.bytes
    if row.args is not None:
        args["Args"] = row.args
    return {
        "ph": "X", "cat": _CATEGORIES.get(row.kind, "cpu_op"), "name": row.name, "pid": pid,
        "tid": thread.id, "ts": (row.begin - record.begin) / 1e3,
        "dur": (row.end - row.begin) / 1e3, "args": args,
    }  # fmt: skip


def _calls(record: Record) -> dict[int, tuple[Thread, Row]]:
    """For each node the call that recorded it: the innermost of those with its number."""
    found: dict[int, tuple[Thread, Row]] = {}
    for thread in record.threads:
        for row in thread.events:
            if row.kind == OPERATION and row.sequence >= 0:
                found[row.sequence] = (thread, row)
    return found


def _arrow(
    record: Record, pid: int, caller: Thread, call: Row, thread: Thread, node: Row
) -> Iterator[dict[str, Any]]:
    if call.begin > node.begin:  # a number that the next node has not yet
        return
    common = {"cat": "fwdbwd", "name": "fwdbwd", "id": node.sequence, "pid": pid}
    yield {**common, "ph": "s", "tid": caller.id, "ts": (call.begin - record.begin) / 1e3}
    yield {
        **common, "ph": "f", "bp": "e", "tid": thread.id, "ts": (node.begin - record.begin) / 1e3,
    }  # fmt: skip
