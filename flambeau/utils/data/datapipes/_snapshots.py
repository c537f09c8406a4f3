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


def state_of(pipe: Any) -> dict[str, Any]:
    """What `IterDataPipe.state_dict` returns."""
    waiting: dict[str, Any] | None = pipe.__dict__.get("_resume")
    if waiting is not None:
        return waiting
    this = pipe.__dict__.get("_pass")
    since = time.monotonic_ns() if this is None else this.started
    pipes = all_pipes(pipe)
    drawn = {str(i): each._drawn_since(since) for i, each in enumerate(pipes) if _draws(each)}
    return {
        "pipes": [short_name(each) for each in pipes],
        "yielded": 0 if this is None else this.count,
        "drawn": drawn,
    }


def put_back(pipe: Any, state: dict[str, Any]) -> None:
    """What `IterDataPipe.load_state_dict` does."""
    pipes = all_pipes(pipe)
    names = [short_name(each) for each in pipes]
    if names != state["pipes"]:
        raise RuntimeError(
            f"load_state_dict: expected a state of the pipes {' <- '.join(names)}, got one of "
            f"{' <- '.join(state['pipes'])}"
        )
    for i, each in enumerate(pipes):
        if _draws(each):
            each._draw_again(state["drawn"][str(i)])
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
