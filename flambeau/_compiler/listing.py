"""Generated code for people: before the C++ of a graph, the graph with the user's lines."""

from __future__ import annotations

import linecache
from collections.abc import Iterator

from .._ir.graph import Graph, Node, show_node, show_type


def listing(graph: Graph, text: str) -> str:
    """The graph as comments, each line of the program before what it became; then the code."""
    return "\n".join([*_comments(graph), text.rstrip() or "// no loops: calls alone", ""])


def _comments(graph: Graph) -> Iterator[str]:
    inputs = ", ".join(f"{v}: {show_type(v.type)}" for v in graph.inputs)
    yield f"// graph of primitives ({inputs})"
    place = None
    for node in graph.nodes:
        if node.where is not None and node.where != place:
            place = node.where
            yield f"// {place}"
            yield f"//     {linecache.getline(place.file, place.line).strip()}"
        yield f"//   {_call(node)}"
    yield f"// gives {', '.join(map(str, graph.outputs))}"


def _call(node: Node) -> str:
    return show_node(node).partition("  # ")[0]
