"""Values that follow from numbers which a traced program wrote down: `torch.arange(3)[1].item()`.

Owns the question what a value of a captured graph is in every run. It is computed when somebody
asks, by running the nodes that lead to it; a graph keeps its nodes all the same. What depends on an
input, a symbol, a generator or on memory that was written to is not known, and the answer is None.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import flambeau

from .._ir.graph import Graph, Node, TensorType, Value, values_of
from .._ir.graph_run import run
from .._ir.symexpr import Expr
from .._ir.symscalar import FloatExpr
from .._ir.targets import resolve, updated

_LARGEST = 2**20  # elements of a value


def constant_of(graph: Graph, known: dict[Value, Any], value: Value | None) -> Any:
    """The tensor that a value of the graph equals in every run; None where there is none.

    Args:
        graph: what was recorded so far.
        known: values that are copies of tensors which nobody changes.
        value: what is asked for.
    """
    made = {v: n for n in graph.nodes for v in n.outs}
    nodes: dict[Node, None] = {}
    leads: set[Value] = set()
    todo = [value]
    while todo:
        v = todo.pop()
        if v is None or v in leads:
            continue
        leads.add(v)
        if v in known:
            continue
        node = made.get(v)
        if node is None or not _is_determined(node):
            return None
        nodes[node] = None
        todo += node.inputs
    if value is None or not leads.isdisjoint(_written(graph.nodes, made)):
        return None
    given = tuple(v for v in leads if v in known)
    order = [n for n in graph.nodes if n in nodes]
    part = Graph(given, order, (value,), graph.env)
    with flambeau.no_grad(), flambeau.autocast("cpu", enabled=False):
        return run(part, [known[v] for v in given])[0]


def _is_determined(node: Node) -> bool:
    """Whether the results are the same in every run for the same arguments."""
    if node.blocks:
        return False
    target = resolve(node.target)
    if target.mutates or any(p.type.base == "Generator" for p in target.op.params):
        return False
    if target.op.option("kernel") == "nothing" or _varies(node.args):
        return False
    return all(_is_small(v.type) for v in node.outs)


def _is_small(t: Any) -> bool:
    if not isinstance(t, TensorType) or t.device.type != "cpu":
        return False
    count = 1
    for n in t.shape:
        if not isinstance(n, int):
            return False
        count *= n
    return count <= _LARGEST


def _varies(arg: Any) -> bool:
    if isinstance(arg, tuple):
        return any(map(_varies, arg))
    return isinstance(arg, (Expr, FloatExpr))


def _written(nodes: Iterable[Node], made: dict[Value, Node]) -> set[Value]:
    """Values that were changed, and those whose memory they may lie in."""
    todo: list[Value] = []
    for n in nodes:
        target = None if n.blocks else resolve(n.target)
        if target is not None and target.form != "new":
            first = n.args[:1] if target.mutates else ()
            todo += values_of((first, *(n.args[i] for i in updated(target.op, n.args))))
    found: set[Value] = set()
    while todo:
        v = todo.pop()
        if v not in found:
            found.add(v)
            node = made.get(v)
            if node is not None and (node.blocks or not _is_fresh(node)):
                todo += node.inputs
    return found


def _is_fresh(node: Node) -> bool:
    """Whether the results have memory of their own."""
    target = resolve(node.target)
    return target.op.kind in ("pointwise", "structured") and not target.mutates
