"""`replace_pattern`: every place of a graph that looks like one graph becomes another.

A pattern's placeholders stand for any value, its other nodes for calls of the same target with
matching arguments. Invariants: matches do not overlap; what a match computes inside is used by
nobody outside, but for its outputs; the graph stays in topological order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from flambeau.nn import Module

from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """A place that was replaced.

    Attributes:
        anchor: the node that matched the pattern's (first) output.
        nodes_map: nodes of the pattern to what they matched.
    """

    anchor: Node
    nodes_map: dict[Node, Any]


@dataclass
class ReplacedPatterns:
    """A place that was replaced, and by which nodes.

    Attributes:
        anchor: the node that matched the pattern's (first) output.
        nodes_map: nodes of the pattern to what they matched.
        replacements: the nodes that stand there now.
    """

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node]


def _graph_of(what: Any) -> Graph:
    if isinstance(what, GraphModule):
        return what.graph
    return what if isinstance(what, Graph) else symbolic_trace(what).graph


def _results(graph: Graph) -> list[Node]:
    """What a graph returns."""
    value = graph.output_node().args[0]
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    if not values or not all(isinstance(v, Node) for v in values):
        raise ValueError(f"replace_pattern: expected a graph that returns nodes, got {value!r}")
    return values


class _Matcher:
    """The places of a pattern in a graph."""

    def __init__(self, pattern: Graph, ignore_literals: bool) -> None:
        self._results = _results(pattern)
        self._inner = [n for n in pattern.nodes if n.op not in ("placeholder", "output")]
        self._ignore_literals = ignore_literals
        if any(r.op == "placeholder" for r in self._results):
            raise ValueError("replace_pattern: expected a pattern that computes what it returns")

    def find(self, graph: Graph) -> list[dict[Node, Any]]:
        """Maps of the pattern's nodes, in the order of the graph; they do not overlap."""
        found: list[dict[Node, Any]] = []
        taken: set[Node] = set()
        for anchor in graph.nodes:
            for made in self._from(anchor, graph):
                nodes = [made[n] for n in self._inner if n in made]
                if len(nodes) == len(self._inner) and taken.isdisjoint(nodes):
                    taken.update(nodes)
                    found.append(made)
                    break
        return found

    def _from(self, anchor: Node, graph: Graph) -> list[dict[Node, Any]]:
        """Matches whose first output is `anchor`; further outputs may be any node."""
        first: dict[Node, Any] = {}
        partial = [first] if self._same(self._results[0], anchor, first) else []
        for result in self._results[1:]:
            grown = []
            for made in partial:
                if result in made:
                    grown.append(made)
                    continue
                for node in graph.nodes:
                    more = dict(made)
                    if self._same(result, node, more):
                        grown.append(more)
            partial = grown
        return [made for made in partial if self._closed(made)]

    def _closed(self, made: dict[Node, Any]) -> bool:
        """Whether nobody outside uses what is computed inside."""
        inside = {made[n] for n in self._inner if n in made}
        hidden = [made[n] for n in self._inner if n in made and n not in self._results]
        return all(user in inside for node in hidden for user in node.users)

    def _same(self, p: Any, t: Any, made: dict[Node, Any]) -> bool:
        if isinstance(p, Node):
            if p in made:
                return made[p] is t or (not isinstance(t, Node) and bool(made[p] == t))
            if p.op == "placeholder":
                made[p] = t
                return True
            if not isinstance(t, Node) or t.op != p.op or t.target != p.target:
                return False
            if any(t is other for other in made.values()):
                return False
            if len(p.args) != len(t.args) or p.kwargs.keys() != t.kwargs.keys():
                return False
            made[p] = t
            pairs = [
                *zip(p.args, t.args, strict=True),
                *((p.kwargs[k], t.kwargs[k]) for k in p.kwargs),
            ]
            return all(self._same(a, b, made) for a, b in pairs)
        if isinstance(p, (list, tuple)):
            alike = isinstance(t, (list, tuple)) and len(p) == len(t)
            return alike and all(self._same(a, b, made) for a, b in zip(p, t, strict=True))
        if isinstance(p, dict):
            alike = isinstance(t, dict) and p.keys() == t.keys()
            return alike and all(self._same(p[k], t[k], made) for k in p)
        if isinstance(p, slice):
            return isinstance(t, slice) and all(
                self._same(getattr(p, k), getattr(t, k), made) for k in ("start", "stop", "step")
            )
        if isinstance(t, Node):
            return False
        return self._ignore_literals or (type(p) is type(t) and bool(p == t))


def _take_modules(gm: GraphModule, replacement: Any) -> None:
    """Gives the graph module what the replacement's nodes name."""
    if not isinstance(replacement, Module):
        return
    for node in _graph_of(replacement).nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        owner: Any = gm
        source: Any = replacement
        *path, last = str(node.target).split(".")
        for part in path:
            source = getattr(source, part)
            if not hasattr(owner, part):
                setattr(owner, part, Module())
            owner = getattr(owner, part)
        if not hasattr(owner, last):
            setattr(owner, last, getattr(source, last))


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Callable[..., Any] | Graph | GraphModule,
    replacement: Callable[..., Any] | Graph | GraphModule,
    match_filters: list[Callable[[Match, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
) -> list[ReplacedPatterns]:
    """`replace_pattern` where every filter says yes.

    Args:
        gm: the module whose graph is changed.
        pattern: what is looked for.
        replacement: what comes there; it has the pattern's parameters, in order.
        match_filters: called with (match, the graph, the pattern's graph).
        ignore_literals: numbers and texts in the pattern match any others.
    """
    pattern_graph, new_graph = _graph_of(pattern), _graph_of(replacement)
    inputs = [n for n in pattern_graph.nodes if n.op == "placeholder"]
    new_inputs = [n for n in new_graph.nodes if n.op == "placeholder"]
    results, new_results = _results(pattern_graph), _results(new_graph)
    if len(inputs) != len(new_inputs) or len(results) != len(new_results):
        raise ValueError(
            f"replace_pattern: expected a replacement with {len(inputs)} parameters and "
            f"{len(results)} results, as the pattern, got {len(new_inputs)} and {len(new_results)}"
        )
    inner = [n for n in pattern_graph.nodes if n.op not in ("placeholder", "output")]
    done: list[ReplacedPatterns] = []
    replaced: dict[Node, Any] = {}
    order = {node: i for i, node in enumerate(gm.graph.nodes)}
    for made in _Matcher(pattern_graph, ignore_literals).find(gm.graph):
        match = Match(made[results[0]], made)
        if not all(f(match, gm.graph, pattern_graph) for f in match_filters or []):
            continue
        values = {
            new: replaced.get(made[old], made[old])
            if isinstance(made.get(old), Node)
            else made.get(old)
            for old, new in zip(inputs, new_inputs, strict=True)
        }
        last = max((made[r] for r in results), key=lambda n: order[n])
        fresh: list[Node] = []
        with gm.graph.inserting_before(last.next):
            for node in new_graph.nodes:
                if node.op not in ("placeholder", "output"):
                    fresh.append(gm.graph.node_copy(node, values.__getitem__))
                    values[node] = fresh[-1]
        for old, new in zip(results, new_results, strict=True):
            made[old].replace_all_uses_with(values[new])
            replaced[made[old]] = values[new]
        for node in reversed(inner):
            gm.graph.erase_node(made[node])
        done.append(ReplacedPatterns(match.anchor, match.nodes_map, fresh))
    _take_modules(gm, replacement)
    gm.graph.lint()
    gm.recompile()
    return done


def replace_pattern(
    gm: GraphModule,
    pattern: Callable[..., Any] | Graph | GraphModule,
    replacement: Callable[..., Any] | Graph | GraphModule,
) -> list[Match]:
    """Put one graph in the place of another, everywhere.

    Args:
        gm: the module whose graph is changed.
        pattern: what is looked for: a function, or a graph of it.
        replacement: what comes there; it has the pattern's parameters, in order.

    Returns:
        The places that were replaced.

    Raises:
        ValueError: the two do not have as many parameters and results.

    >>> gm = torch.fx.symbolic_trace(lambda x: torch.neg(torch.relu(x)) + 1)
    >>> old, new = (lambda x: torch.neg(torch.relu(x))), (lambda x: torch.sigmoid(x))
    >>> len(torch.fx.replace_pattern(gm, old, new)), gm(torch.zeros(1))
    (1, tensor([1.5000]))
    """
    return [
        Match(done.anchor, done.nodes_map)
        for done in replace_pattern_with_filters(gm, pattern, replacement)
    ]
