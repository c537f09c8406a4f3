"""Attention written out in plain operations becomes the fused entry, before derivatives are taken.

    softmax(q @ k^T * scale, causal mask) @ v    ->    _attention(q, k, v, None, causal, scale)

so that backward is the fused one, and the matrix of probabilities is neither made nor saved. Only
where nobody else sees that matrix or the scores, and only in float32 and float64: half formats
round what lies between. A mask must be known to be causal: in a row that a mask forbids altogether
the softmax of the plain formula is NaN, where the fused entry gives zeros. What the body of an
entry `as_written` made stays: there the program asked for the formula.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import flambeau

from .._ir.graph import Graph, Node, TensorType, Value, values_of
from .._ir.symexpr import product
from .._table.entries import record
from .._trace.fake import Fake, of_type, symbolic
from .._trace.functional import PrimitiveRecorder
from .passes import eliminate_dead

#: entries that may fold or unfold the dims before the matrices, which are the last two
_FOLDS = ("view", "expand", "_to_copy")
_COMPARISONS = ("eq", "ne", "gt", "ge", "lt", "le")


@dataclass(frozen=True)
class Attention:
    """Operands of both products, and what happens to the scores between them."""

    query: Value  # (B, L, E) or (N, H, L, E)
    key_t: Value  # (B, E, S) or (N, H, E, S)
    value: Value  # (B, S, Ev) or (N, H, S, Ev)
    scale: float
    causal: bool


def fuse_attention(recorder: PrimitiveRecorder) -> None:
    """Rewrites the recorder's graph, which is functional and has no derivatives yet."""
    graph = recorder.graph
    finder = _Finder(graph)
    locate, grad = recorder.env.locate, recorder.grad
    products = [n for n in graph.nodes if n.target == "bmm" and n.out not in recorder.as_written]
    found = [(n, finder.attention(n)) for n in products]
    for node, attention in found:
        if attention is not None:
            _replace(recorder, node, finder.unfolded(attention))
    recorder.env.locate, recorder.grad = locate, grad
    if any(attention is not None for _, attention in found):
        graph.nodes = eliminate_dead(graph).nodes


class _Finder:
    """Looks back from the second product."""

    def __init__(self, graph: Graph) -> None:
        self.made = {v: n for n in graph.nodes for v in n.outs}
        self.uses: dict[Value, int] = {}
        for v in [v for n in graph.nodes for v in n.inputs] + list(values_of(graph.outputs)):
            self.uses[v] = self.uses.get(v, 0) + 1

    def attention(self, product: Node) -> Attention | None:
        """What a product is the last step of, if it is attention."""
        weights, value = product.args
        if value.dtype not in (flambeau.float32, flambeau.float64):
            return None
        softmax = self.maker(self.refolded(weights, product), product)
        if softmax is None or not _over_rows(softmax):
            return None
        scores, causal = self.unmasked(self.refolded(softmax.args[0], product), product)
        scores, scale = self.unscaled(self.refolded(scores, product), product)
        first = self.maker(self.refolded(scores, product), product)
        if first is None or first.target != "bmm" or _without_elements(first, product):
            return None
        query, key_t = first.args
        return Attention(query, key_t, value, scale, causal)

    def maker(self, x: Value, product: Node) -> Node | None:
        """The node that makes x, if x has one use and gradients flow as they do at the product."""
        node = self.made.get(x)
        if node is None or self.uses[x] != 1 or node.grad != product.grad:
            return None
        return node

    def refolded(self, x: Value, product: Node) -> Value:
        """The same matrices before the dims of the batch were folded or unfolded."""
        node = self.maker(x, product)
        while node is not None and _folds(node):
            x = node.args[0]
            node = self.maker(x, product)
        return x

    def unscaled(self, x: Value, product: Node) -> tuple[Value, float]:
        """The value before it was multiplied by a number, and the number."""
        node = self.maker(x, product)
        match node and (node.target, *node.args):
            case ("mul", Value() as below, int() | float() as n):
                return below, float(n)
            case ("mul", int() | float() as n, Value() as below):
                return below, float(n)
            case ("div", Value() as below, int() | float() as n) if n != 0:
                return below, 1.0 / n
        return x, 1.0

    def unmasked(self, x: Value, product: Node) -> tuple[Value, bool]:
        """The value before what lies above the diagonal became -inf; whether it did."""
        node = self.maker(x, product)
        wanted: tuple[Any, Any]
        match node and (node.target, *node.args):
            case ("_masked_fill", below, Value() as mask, float(fill)) if fill == -math.inf:
                wanted = (False, True)
            case ("where", mask, Value() as below, float(fill)) if fill == -math.inf:
                wanted = (True, False)
            case ("where", mask, float(fill), Value() as below) if fill == -math.inf:
                wanted = (False, True)
            case ("add", Value() as below, Value() as mask, 1):
                wanted = (0, -math.inf)
            case _:
                return x, False
        whole = mask.shape[-2:] == x.shape[-2:] and below.shape == x.shape
        return (below, True) if whole and self.triangles(mask) == wanted else (x, False)

    def triangles(self, x: Value) -> tuple[Any, Any] | None:
        """What all elements of x up to the diagonal are, and all above; None: not known."""
        node = self.made.get(x)
        if node is None or node.rule is not None:
            return None
        match node.target, *node.args[1:]:
            case "full", (bool() | int() | float()) as fill, *_:
                return _converted(fill, fill, x)
            case "zeros", *_:
                return _converted(0, 0, x)
        below = self.triangles(node.args[0]) if isinstance(node.args[0], Value) else None
        if below is None:
            return None
        low, high = below
        match node.target, *node.args[1:]:
            case "tril", 0:
                return low, _converted(0, 0, x)[1]
            case "triu", 1:
                return _converted(0, 0, x)[0], high
            case ("logical_not" | "bitwise_not",) if x.dtype is flambeau.bool:
                return not low, not high
            case name, (int() | float()) as n if name in _COMPARISONS:
                compare: Callable[[Any, Any], bool] = getattr(operator, name)
                return compare(low, n), compare(high, n)
            case "_masked_fill", Value() as mask, (int() | float()) as fill:
                chosen = self.triangles(mask) if mask.shape[-2:] == x.shape[-2:] else None
                if chosen is None:
                    return None
                return _converted(fill if chosen[0] else low, fill if chosen[1] else high, x)
        return _converted(low, high, x) if _folds(node, converts=True) else None

    def unfolded(self, found: Attention) -> Attention:
        """With batch and heads apart where they are: what was copied only to be folded is not.

        Else they stay folded into one dim: then no copy of the result is needed.
        """
        folded = (found.query, found.key_t, found.value)
        origins = [self.origin(x) for x in folded]
        (q, _), (kt, _), (v, _) = origins
        batch = q.shape[:-2]
        fits = len(batch) == 2 and kt.shape[:-2] == batch and v.shape[:-2] == batch
        if not fits or not any(copied for _, copied in origins):
            return found
        return replace(found, query=q, key_t=kt, value=v)

    def origin(self, x: Value) -> tuple[Value, bool]:
        """The same matrices before all copies and folding, and whether there were copies."""
        copied = False
        node = self.made.get(x)
        while node is not None and _folds(node):
            copied |= node.target == "_to_copy"
            x = node.args[0]
            node = self.made.get(x)
        return x, copied


def _over_rows(node: Node) -> bool:
    """It is a softmax over the last dim in the dtype of its operand."""
    if node.target != "softmax":
        return False
    x, dim, dtype = node.args
    return len(x.shape) > 1 and dim in (-1, len(x.shape) - 1) and dtype in (None, x.dtype)


def _folds(node: Node, converts: bool = False) -> bool:
    """Its result has the same matrices, in the same order; `converts`: maybe in another dtype."""
    if node.target not in _FOLDS:
        return False
    x, y = node.args[0], node.out
    if len(x.shape) < 2 or x.shape[-2:] != y.shape[-2:] or product(x.shape) != product(y.shape):
        return False
    return converts or x.dtype is y.dtype


def _converted(low: Any, high: Any, x: Value) -> tuple[Any, Any]:
    """Two numbers as elements of x."""
    kind = bool if x.dtype is flambeau.bool else float if x.dtype.is_floating_point else int
    return kind(low), kind(high)


def _without_elements(*nodes: Node) -> bool:
    return any(n == 0 for node in nodes for v in node.inputs for n in v.shape)


def _replace(recorder: PrimitiveRecorder, product: Node, found: Attention) -> None:
    """Puts the fused entry in the place of a product; its result stands for the product's."""
    graph, call, where = recorder.graph, recorder.call, product.where
    recorder.env.locate, recorder.grad = lambda: where, product.grad
    at, end = graph.nodes.index(product), len(graph.nodes)
    query, key_t, value = (_fake(recorder, x) for x in (found.query, found.key_t, found.value))
    operands = [query, call(record("transpose"), False, [key_t, -2, -1]), value]
    if folded := query.ndim == 3:
        operands = [call(record("unsqueeze"), False, [x, 1]) for x in operands]
    out, _ = call(record("_attention"), False, [*operands, None, found.causal, found.scale])
    if not out.is_contiguous():  # it lies as its queries do, the product in rows
        out = call(record("_to_copy"), False, [out, None, flambeau.contiguous_format, None])
    shape = [symbolic(n, recorder.env) for n in product.out.shape]
    call(record("view"), False, [out, shape])
    new = graph.nodes[end:]
    new[-1].outs = product.outs
    graph.nodes[at:] = [*new, *graph.nodes[at + 1 : end]]


def _fake(recorder: PrimitiveRecorder, x: Value) -> Fake:
    assert isinstance(x.type, TensorType)
    made = of_type(x.type, recorder.env)
    made.value = x
    return made
