"""`trace`: a Python function run under a recorder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flambeau

from .._ir.graph import Graph
from .functional import PrimitiveRecorder
from .record import CapturedRecorder, fake_input
from .session import Session
from .stand_ins import check_results


def trace(
    f: Callable[..., Any],
    example_inputs: Sequence[Any],
    level: str = "captured",
    dynamic: Any = False,
) -> Graph:
    """The graph of what `f` does with inputs like these.

    Tensors that `f` reaches by itself (parameters of a module, globals) become further inputs of
    the graph, to which they are attached.

    Args:
        f: a function or module of tensors and plain values.
        example_inputs: its arguments; tensors vary, everything else is a constant, lists too.
        level: "captured", or "primitive" for a functional graph of primitives, in which changes
            of the inputs are not seen (`flambeau._aot` keeps them).
        dynamic: True makes all sizes of the inputs symbols; a dict maps the number of an argument
            to its dims that vary.

    Returns:
        The graph; its outputs are the results of `f`, nested as tuples.

    Raises:
        DataDependent: `f` asks for the values of a tensor.
    """
    if level not in ("captured", "primitive"):
        raise ValueError(f"trace: expected level 'captured' or 'primitive', got {level!r}")
    recorder = CapturedRecorder() if level == "captured" else PrimitiveRecorder()
    session = Session(recorder)
    args = []
    for i, x in enumerate(example_inputs):
        if isinstance(x, flambeau.Tensor):
            varying = dynamic.get(i) if isinstance(dynamic, dict) else dynamic
            x = session.input(fake_input(x, recorder.env, len(recorder.graph.inputs), varying))
        args.append(x)
    result = session.run(f, args)
    outputs = session.outputs(result)
    check_results(recorder, session.results)
    recorder.graph.outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    recorder.graph.attached = tuple(session.attached)
    return recorder.graph
