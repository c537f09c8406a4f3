"""Matrix products over sizes that are multiples of eight: operands are filled up with zeros, and
the result is cut back. Asked for by `shape_padding`, which times both forms.

Works on the recorder's graph before derivatives are taken, so that those of the products are padded
too. Invariant: what is added to a sum is a zero. Must not know which form is faster.
"""

from __future__ import annotations

from math import prod
from typing import Any

from .._ir import settings
from .._ir.graph import Node, TensorType
from .._table.entries import record
from .._trace.fake import of_type
from .._trace.functional import PrimitiveRecorder

_MULTIPLE, _WORTH = 8, 1 << 15  # smaller products cost less than their padding


def pad_products(recorder: PrimitiveRecorder) -> None:
    """Rewrites the products of the recorder's graph that would gain, if the settings say so."""
    if not settings.current().padding:
        return
    locate, grad = recorder.env.locate, recorder.grad
    for node in [n for n in recorder.graph.nodes if n.target in ("mm", "bmm")]:
        if node.out not in recorder.as_written and (missing := _missing(node)):
            _replace(recorder, node, missing)
    recorder.env.locate, recorder.grad = locate, grad


def _missing(node: Node) -> tuple[int, int, int] | None:
    """How many rows, inner elements and columns fill up a product; None where none is to be."""
    a, b = (v.type for v in node.inputs[:2])
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return None
    sizes = [n for n in (*a.shape, b.shape[-1]) if isinstance(n, int)]
    if len(sizes) <= len(a.shape) or not a.dtype.is_floating_point or prod(sizes) < _WORTH:
        return None
    rows, inner, columns = (-n % _MULTIPLE for n in sizes[-3:])
    return (rows, inner, columns) if rows or inner or columns else None


def _replace(recorder: PrimitiveRecorder, node: Node, missing: tuple[int, int, int]) -> None:
    """Puts the padded product in the place of one; its result stands for the other's."""
    graph, call, where = recorder.graph, recorder.call, node.where
    recorder.env.locate, recorder.grad = lambda: where, node.grad
    at, end = graph.nodes.index(node), len(graph.nodes)
    rows, inner, columns = missing
    operands = []
    for v, added in zip(node.inputs[:2], ((rows, inner), (inner, columns)), strict=True):
        assert isinstance(v.type, TensorType)
        x: Any = of_type(v.type, recorder.env)
        x.value = v
        if any(added):
            x = call(record("constant_pad_nd"), False, [x, [0, added[1], 0, added[0]], 0])
        operands.append(x)
    out = call(record(node.target), False, operands)
    shape = node.out.shape
    for dim in (-2, -1):
        if missing[0 if dim == -2 else 2]:
            out = call(record("slice"), False, [out, dim, 0, shape[dim], 1])
    call(record("_to_copy"), False, [out, None, None, None])  # laid out as the product's result
    new = graph.nodes[end:]
    new[-1].outs = node.outs
    graph.nodes[at:] = [*new, *graph.nodes[at + 1 : end]]
