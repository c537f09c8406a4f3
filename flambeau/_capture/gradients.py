"""Gradients that a program takes of what it has computed, in whole graphs.

`torch.autograd.grad` is a node without blocks, see Note [Regions]: such a graph runs node by node,
so that the engine finds the calls before it recorded. Which gradients there are is known from the
nodes; all else is said by the run, in eager's words.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from flambeau import autograd
from flambeau._ir.graph import Node, TensorType, Value, values_of
from flambeau._ir.targets import resolve
from flambeau._trace.record import is_inexact

from . import kinds
from .errors import Break
from .interpreter import Frame
from .regions import add, calls_of, like


@calls_of(autograd.grad)
def _grad(f: Frame, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    if given["is_grads_batched"]:
        raise Break("autograd.grad(is_grads_batched=True); torch.vmap over vjp does it in a graph")
    outputs, inputs = _listed(given["outputs"]), _listed(given["inputs"])
    seeds = [None] * len(outputs)
    if given["grad_outputs"] is not None:
        seeds = _listed(given["grad_outputs"])
    if len(seeds) != len(outputs):
        raise Break(f"autograd.grad: {len(seeds)} grad_outputs for {len(outputs)} outputs")
    if not all(map(kinds.is_tensor, (*outputs, *inputs, *(s for s in seeds if s is not None)))):
        raise Break("autograd.grad of what are no tensors")
    create, zeros = bool(given["create_graph"]), bool(given["materialize_grads"])
    keep = create if given["retain_graph"] is None else bool(given["retain_graph"])
    unused = zeros or bool(given["allow_unused"])
    tensors = f.interpreter.tensors
    there = [True] * len(inputs)
    if unused and not zeros:
        read = tensors.recorder.read
        ends = {read(tensors.session.fake(x)) for x in outputs}
        there = [_leads(tensors.graph.nodes, read(tensors.session.fake(x)), ends) for x in inputs]
    wanted = [x for x, on in zip(inputs, there, strict=True) if on]
    if not wanted:
        return (None,) * len(inputs)
    seeded = tuple(s is not None for s in seeds)
    options = (len(outputs), len(wanted), seeded, keep, create, unused, zeros)
    own = [*outputs, *wanted, *(s for s in seeds if s is not None)]
    made = iter(add(f, "autograd_grad", options, own, [], [like(x) for x in wanted], create))
    return tuple(next(made) if on else None for on in there)


def _listed(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (list, tuple)) else [x]


def _leads(nodes: Iterable[Node], start: Value, ends: set[Value]) -> bool:
    """Whether gradients of one of `ends` flow to a value."""
    reached = {start}
    for n in nodes:
        if not n.grad or reached.isdisjoint(n.inputs):
            continue
        reached.update(
            v for v in n.outs if isinstance(v.type, TensorType) and is_inexact(v.type.dtype)
        )
        if not n.is_region and n.rule is None and resolve(n.target).mutates:
            reached.update(list(values_of(n.args))[:1])
    return not reached.isdisjoint(ends)
