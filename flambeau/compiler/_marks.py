"""What a program may ask or say of its own compilation; capture gives the functions their sense."""

from __future__ import annotations

import sys


def is_compiling() -> bool:
    """Whether the calling code is being captured.

    >>> torch.compiler.is_compiling()
    False
    """
    return False


def is_dynamo_compiling() -> bool:
    """Whether the calling code is being captured; another name of `is_compiling`.

    >>> torch.compiler.is_dynamo_compiling()
    False
    """
    return False


def records_trace() -> bool:
    """Whether `jit.trace` records what this thread does, see `jit.is_tracing`."""
    runtime = sys.modules.get("flambeau._script.runtime")
    return bool(runtime is not None and runtime.tracer() is not None)


def reaches_others(call: str) -> None:
    """A collective or message begins: other processes take part, so no graph can hold it."""


def is_exporting() -> bool:
    """Whether the calling code is being exported, which `compile` never does.

    >>> torch.compiler.is_exporting()
    False
    """
    return False


def cudagraph_mark_step_begin() -> None:
    """Says that a new step begins, for back ends that reuse memory between steps: none of ours."""


def errors_on_break(on: bool) -> bool:
    """Sets whether an end of the graph raises in what follows, where it is captured; gives what was
    so before."""
    return on
