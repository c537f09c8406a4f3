"""A graph in the middle of a pass as plain data, and going on from it.

Owns what has to be kept: how many elements the last pipe has handed out, and what the random pipes
drew for this pass. A graph that is put back draws the same and passes over those elements: the rest
is the same as long as functions and sources give the same again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ._connections import all_pipes
from ._notes import short_name


def state_of(pipe: Any, next_pass: bool = False) -> dict[str, Any]:
    """What `IterDataPipe.state_dict` returns; with `next_pass`, of the pass after this one."""
    waiting: dict[str, Any] | None = pipe.__dict__.get("_resume")
    if waiting is not None:
        return waiting
    this = pipe.__dict__.get("_pass")
    if next_pass or (this is not None and this.ended):
        this = None  # the next pass is a new one
    pipes = all_pipes(pipe)
    return {
        "pipes": [short_name(each) for each in pipes],
        "yielded": 0 if this is None else this.count,
        "drawn": _drawn(pipes, None if this is None else this.started),
    }


def _drawn(pipes: list[Any], start: int | None) -> dict[str, Any]:
    """What the random pipes of a graph have drawn since a pass began; None: for the next one.

    Pipes in front of a cache that holds all of a pass drew in that pass for all that follow.
    """
    since = time.monotonic_ns() if start is None else start
    starts = dict.fromkeys(map(id, pipes), since)
    for each in pipes:
        filled = getattr(each, "_filled_at", None)
        if filled is not None:
            starts.update((id(source), min(filled, since)) for source in all_pipes(each)[1:])
    return {
        str(i): each._drawn_since(starts[id(each)]) for i, each in enumerate(pipes) if _draws(each)
    }


def between_passes(pipe: Any) -> dict[str, Any]:
    """What a graph takes from one pass to the next, whatever seeds that one is given."""
    return _drawn(all_pipes(pipe), None)


def put_between_passes(pipe: Any, drawn: dict[str, Any]) -> None:
    """Let the next pass follow on what `between_passes` returned."""
    for i, each in enumerate(all_pipes(pipe)):
        if str(i) in drawn and _draws(each):
            each._draw_again(drawn[str(i)])


def put_back(pipe: Any, state: dict[str, Any]) -> None:
    """What `IterDataPipe.load_state_dict` does."""
    pipes = all_pipes(pipe)
    names = [short_name(each) for each in pipes]
    if names != state["pipes"]:
        raise RuntimeError(
            f"load_state_dict: expected a state of the pipes {' <- '.join(names)}, got one of "
            f"{' <- '.join(state['pipes'])}"
        )
    put_between_passes(pipe, state["drawn"])
    pipe.__dict__["_resume"] = state


def passed_over(pipe: Any, elements: Iterator[Any], this: Any) -> None:
    """Move an iterator to where the state that was loaded had been taken."""
    state = pipe.__dict__.pop("_resume")
    for _ in islice(elements, state["yielded"]):
        this.count += 1
    if this.count < state["yielded"]:
        raise RuntimeError(
            f"load_state_dict: expected at least {state['yielded']} elements, got {this.count}"
        )


def _draws(pipe: Any) -> bool:
    return hasattr(type(pipe), "_drawn_since")
