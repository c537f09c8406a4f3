"""The flight recorder: the last collectives and messages of a group, for when one of them fails.

Owns what is kept of a call and the file that is written. Invariant: a call costs a microsecond
or two, and keeps no tensor alive; words are made when they are asked for. Must not know how ranks
talk, nor decide when a call has failed.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterable, Sequence
from sys import _getframe
from time import time as now
from typing import Any

import flambeau
from flambeau import Tensor

_SIZE, _FILE = "FLAMBEAU_DIST_TRACE_SIZE", "FLAMBEAU_DIST_TRACE_FILE"
_DEFAULT_SIZE = 2000
_PACKAGE = os.path.dirname(flambeau.__file__) + os.sep
_LENGTH = len(_PACKAGE)
_MESSAGES = ("send", "recv")
_SHOWN = 3  # calls in an error's note


def size_from_environment() -> int:
    """How many calls of each group are kept.

    Raises:
        ValueError: the environment does not say a number.
    """
    text = os.environ.get(_SIZE, str(_DEFAULT_SIZE))
    if not text.isdecimal():
        raise ValueError(f"{_SIZE}: expected a number of calls, 0 for none, got {text!r}")
    return int(text)


class Recorder:
    """The last calls of a group. Each has a number among all of them, which `begin` gives out.

    A call is kept as one tuple, made when it begins: that is quickest. What becomes of it is kept
    beside it, by its number: that it has ended, its work where it is asynchronous, its error.
    """

    def __init__(self, size: int) -> None:
        self._calls: deque[tuple[Any, ...]] = deque(maxlen=size)
        self._size = size
        self._last = self._messages = 0  # numbers given out; how many of them to messages
        self.ended = 0  # the last call that was waited for and went well
        self._works: dict[int, Any] = {}
        self._errors: dict[int, str] = {}

    def begin(
        self,
        name: str,
        out: Sequence[Tensor],
        given: Sequence[Tensor],
        root: int,
        how: int | None,
        time_limit: int,
    ) -> int:
        """A call begins; its number, or 0 where none is kept."""
        if not self._size:
            return 0
        frame = _getframe(3)
        while frame.f_code.co_filename[:_LENGTH] == _PACKAGE and frame.f_back is not None:
            frame = frame.f_back
        number = self._last = self._last + 1
        sizes: tuple[Any, ...] = ()
        dtype = None
        if given:
            first = given[0]
            dtype = first.dtype
            sizes = (first.shape,) if len(given) == 1 else tuple([x.shape for x in given])
        self._calls.append((
            number, self._messages, name, tuple([x.shape for x in out]) if out else (), sizes,
            dtype, root, how, time_limit, frame.f_code, frame.f_lasti, now(),
        ))  # fmt: skip
        return number

    def begin_message(self, sends: bool, value: Tensor, peer: int, time_limit: int) -> int:
        """A message begins; its number, as above."""
        self._messages += 1
        return self.begin("send" if sends else "recv", (), (value,), peer, None, time_limit)

    def waits(self, number: int, work: Any) -> None:
        """A call goes on while the program does."""
        if number:
            _keep(self._works, number, work, self._size)

    def refused(self, number: int) -> None:
        """It was wrong in itself, and has not reached the others."""
        if self._calls and self._calls[-1][0] == number == self._last:
            name = self._calls.pop()[2]
            self._last -= 1
            self._messages -= name in _MESSAGES

    def failed(self, number: int, error: BaseException) -> bool:
        """It ended with an error; whether that is news: the call before it did not."""
        known = number in self._errors
        _keep(self._errors, number, str(error) or type(error).__name__, self._size)
        return not known and number - 1 not in self._errors

    def _outcome(self, number: int) -> tuple[bool, str | None]:
        """Whether a call has ended, and its error."""
        if number in self._errors:
            return True, self._errors[number]
        work = self._works.get(number)
        if work is None:
            return number <= self.ended, None
        fault = work.fault() if work.done() else None
        return work.done(), None if fault is None else str(fault)

    def entries(self, operators: Sequence[str]) -> Iterable[dict[str, Any]]:
        """What is kept, oldest first, as a dump has it."""
        under_way = False
        for call in list(self._calls):
            number, messages, name, out, given, dtype, root, how, limit, *_, began = call
            message = name in _MESSAGES
            done, error = self._outcome(number)
            # Collectives run one after another: the first that has not ended is under way.
            open_ = "scheduled" if under_way and not message else "started"
            under_way = under_way or not (done or message)
            kind = [] if dtype is None else [str(dtype).removeprefix("torch.")]
            if name == "recv":
                out, given = given, ()
            yield {
                "p2p_seq_id" if message else "collective_seq_id": _number(call),
                "profiling_name": name,
                "state": "failed" if error is not None else "completed" if done else open_,
                "input_sizes": [list(size) for size in given],
                "input_dtypes": kind * len(given),
                "output_sizes": [list(size) for size in out],
                "output_dtypes": kind * len(out),
                "reduce_op": None if how is None else operators[how],
                "root": None if root < 0 else root,
                "is_p2p": message,
                "is_async": number in self._works,
                "timeout_ms": limit,
                "time_created": began,
                "error": error,
                "frames": [_frame(call)],
            }

    def last(self) -> str:
        """The last calls, for an error."""
        return "; ".join(_told(call) for call in list(self._calls)[-_SHOWN:])


def _keep(kept: dict[int, Any], number: int, value: Any, most: int) -> None:
    kept[number] = value
    if len(kept) > most:
        del kept[next(iter(kept))]


def _number(call: tuple[Any, ...]) -> int:
    """Among the group's collectives, or its messages."""
    return call[1] if call[2] in _MESSAGES else call[0] - call[1]


def _frame(call: tuple[Any, ...]) -> dict[str, Any]:
    """Who called."""
    code, at = call[9:11]
    lines = (line for start, end, line in code.co_lines() if start <= at < end and line)
    line = next(lines, code.co_firstlineno)
    return {"filename": code.co_filename, "line": line, "name": code.co_name}


def _told(call: tuple[Any, ...]) -> str:
    sizes = ", ".join(str(list(size)) for size in call[4] or call[3])
    at = "{filename}:{line} in {name}".format(**_frame(call))
    return f"{call[2]} {_number(call)}{' of ' * bool(sizes)}{sizes} ({at})"


def trace(rank: int, groups: Iterable[Any], reason: str | None) -> dict[str, Any]:
    """All that is kept of a process's groups.

    Args:
        rank: the process.
        groups: those with a recorder.
        reason: the error for which it is asked.
    """
    config, entries = {}, []
    for group in groups:
        ranks = list(group._ranks)
        config[group.group_name] = {"desc": group.group_desc, "ranks": ranks}
        for entry in group._recorder.entries(group._operators):
            entries.append({"process_group": [group.group_name, group.group_desc], **entry})
    entries.sort(key=lambda e: e["time_created"])
    return {
        "version": "1.0",
        "rank": rank,
        "pid": os.getpid(),
        "time": now(),
        "reason": reason,
        "pg_config": config,
        "entries": entries,
    }


def explain(group: Any, rank: int, groups: Iterable[Any], error: BaseException) -> None:
    """Write the dump where the environment says, and note in the error what this rank has done."""
    note = f"Last calls of rank {rank} in group '{group.group_name}': {group._recorder.last()}."
    prefix = os.environ.get(_FILE)
    if not prefix:
        note += f" With {_FILE}=PREFIX each rank writes all of them to PREFIX<rank>.json."
    else:
        path = f"{prefix}{rank}.json"
        part = f"{path}.{os.getpid()}"
        try:
            with open(part, "w", encoding="utf-8") as file:
                json.dump(trace(rank, groups, str(error)), file, indent=1)
            os.replace(part, path)
            note += f" All of them are in {path}."
        except OSError as refused:
            note += f" They could not be written: {refused}."
    error.add_note(note)
