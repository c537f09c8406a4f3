"""Backwards through which gradients flow, made when somebody asks for gradients of gradients.

The passes run again over the captured graph, as they ran when it was compiled: so nothing is spent
where nobody asks. What they make (`again`) goes to the back end that the whole graph went to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from .._ir.formula import Numbers
from .._ir.graph import Graph
from .._ir.graph_parse import parse
from .._ir.native import PARTS, Recorded
from .partial_backward import partial_backward
from .pipeline import aot_again
from .runtime import kept_inputs, text_of

BackEnd = Callable[[Graph, Sequence[Any]], Callable[..., Any]]


def recorded(
    graph: Graph, requires_grad: list[bool], back_end: BackEnd
) -> Callable[[str], Recorded]:
    """What makes them, see `native.Makers`.

    Args:
        graph: as captured, with what was known of its sizes when it was compiled.
        requires_grad: of each input, whether gradients flow to it.
        back_end: makes a function through which gradients flow of a graph and its first inputs.
    """
    again, meta, saves = aot_again(graph, requires_grad)
    numbers, kept = Numbers(graph.env).names, kept_inputs(graph, meta)
    taken = (*again.saved, *(saves + kept.index(i) for i in again.inputs))
    all_cotangents = len(again.graph.inputs) - len(taken) - len(again.sizes)
    whole = text_of(again.graph)  # each one is made of a graph of its own

    @cache
    def made(there: str) -> Recorded:
        there, slash, wanted = there.partition("/")
        there = there.ljust(all_cotangents, "0")
        backward, saved, grads = parse(whole), taken, tuple(meta.grads)
        cotangents = tuple(range(len(there)))
        if not meta.linear:  # what a derivative of the user's own makes of zeros it shall make
            there = "1" * len(there)
        if "0" in there or wanted:
            part = partial_backward(backward, there + slash + wanted, len(again.sizes))
            backward, cotangents = part.graph, part.cotangents
            saved, grads = tuple(saved[k] for k in part.saved), tuple(grads[k] for k in part.grads)
        text = text_of(backward)

        def compiled(given: Sequence[Any]) -> Any:
            graph = parse(text)
            known = len(graph.env.guards)
            run = back_end(graph, given)
            return run, graph.env, graph.env.guards[known:]

        sizes = tuple(numbers[n] for n in again.sizes)
        return Recorded(saved, sizes, cotangents, grads, again.values, compiled)

    met: set[str] = set()

    def limited(there: str) -> Recorded:
        """So many sets of gradients have a graph each; then it is that of all of them."""
        if there not in met and len(met) >= PARTS:
            there = there.partition("/")[0]
        met.add(there)
        return made(there)

    return limited
