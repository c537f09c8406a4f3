"""A picture of a graph of pipes, drawn by graphviz or as text.

Owns which pipes become boxes: children of `fork` and `demux` stand for their container unless
asked otherwise.
"""

from __future__ import annotations

from typing import Any

from .._connections import connected_pipes
from .._notes import short_name


def edges(dp: Any, *, debug: bool = False) -> tuple[dict[int, Any], list[tuple[int, int]]]:
    """The pipes of a graph by id, and pairs of ids: what is read from, what reads."""
    nodes: dict[int, Any] = {}
    pairs: dict[tuple[int, int], None] = {}

    def shown(pipe: Any) -> Any:
        return (
            pipe.main_datapipe if not debug and hasattr(type(pipe), "_is_child_datapipe") else pipe
        )

    def visit(pipe: Any) -> None:
        pipe = shown(pipe)
        if id(pipe) in nodes:
            return
        nodes[id(pipe)] = pipe
        for source in connected_pipes(pipe):
            visit(source)
            pairs[id(shown(source)), id(pipe)] = None

    visit(dp)
    return nodes, list(pairs)


def text(dp: Any) -> str:
    """See `flambeau.utils.data.datapipes.utils.to_text`."""
    nodes, pairs = edges(dp)
    sources: dict[int, list[int]] = {key: [] for key in nodes}
    readers: dict[int, int] = dict.fromkeys(nodes, 0)
    for source, target in pairs:
        sources[target].append(source)
        readers[source] += 1
    shared = [key for key in nodes if readers[key] > 1]
    numbers = {key: f" #{i}" for i, key in enumerate(shared, 1)}
    lines: list[str] = []
    drawn: set[int] = set()

    def draw(key: int, first: str, rest: str) -> None:
        lines.append(first + short_name(nodes[key]).lstrip("_") + numbers.get(key, ""))
        if key in drawn:
            return
        drawn.add(key)
        for source in sources[key]:
            last = source == sources[key][-1]
            inner = rest + ("   " if last else "│  ")
            draw(source, rest + ("└─ " if last else "├─ "), inner)

    draw(next(iter(nodes)), "", "")
    return "\n".join(lines)


def digraph(dp: Any, *, debug: bool) -> Any:
    """See `flambeau.utils.data.datapipes.utils.to_graph`."""
    try:
        import graphviz
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "to_graph: the package graphviz is required; install it with `pip install graphviz`"
        ) from None
    nodes, pairs = edges(dp, debug=debug)
    read = {source for source, _ in pairs}
    reading = {target for _, target in pairs}
    graph = graphviz.Digraph(
        node_attr={"style": "filled", "shape": "box", "fontsize": "10", "fontname": "monospace"}
    )
    for key, pipe in nodes.items():
        colour = "lightblue" if key not in reading else "darkolivegreen1"
        fill = {"fillcolor": colour} if key not in reading or key not in read else {}
        graph.node(str(key), short_name(pipe).lstrip("_"), **fill)
    for source, target in pairs:
        graph.edge(str(source), str(target))
    return graph
