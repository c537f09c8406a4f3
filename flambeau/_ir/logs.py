"""Logging of the compiler, switched by the environment variable FLAMBEAU_LOGS.

It is a comma-separated list of what to print to standard error: `graph_breaks`, `recompiles`,
`guards`, `graph_code` (captured graphs), `bytecode` (the code that runs in place of a frame),
`output_code` (generated kernels), or `all`. `+` before a name changes nothing.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache

TOPICS = ("graph_breaks", "recompiles", "guards", "graph_code", "bytecode", "output_code")


@lru_cache(maxsize=16)
def _named(wanted: str) -> frozenset[str]:
    names = frozenset(name.strip().lstrip("+") for name in wanted.split(",")) - {""}
    unknown = sorted(names - {*TOPICS, "all"})
    if unknown:
        raise ValueError(
            f"FLAMBEAU_LOGS: expected names out of {', '.join(TOPICS)}, all; got "
            f"{', '.join(unknown)}"
        )
    return names


def enabled(topic: str) -> bool:
    """Whether a topic is to be printed.

    Raises:
        ValueError: FLAMBEAU_LOGS names something else.
    """
    names = _named(os.environ.get("FLAMBEAU_LOGS", ""))
    chosen = (names, _local.topics, *_by_switch.values())
    return "all" in names or any(topic in topics for topics in chosen)


#: topics of the process, by the switch that turned them on
_by_switch: dict[str, frozenset[str]] = {}


def add(switch: str, topics: Iterable[str]) -> None:
    """From now on these topics are printed as well, in place of what the switch chose before."""
    _by_switch[switch] = frozenset(topics)


class _Local(threading.local):
    topics: frozenset[str] = frozenset()


_local = _Local()


@contextmanager
def printing(*topics: str) -> Iterator[None]:
    """Inside, on this thread, these topics are printed too."""
    before, _local.topics = _local.topics, _local.topics | {*topics}
    try:
        yield
    finally:
        _local.topics = before


def log(topic: str, message: str | Callable[[], str]) -> None:
    """Prints a message of a topic that is enabled."""
    if enabled(topic):
        text = message() if callable(message) else message
        print(f"[{topic}] {text}", file=sys.stderr)
