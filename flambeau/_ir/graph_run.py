"""Runs a graph over tensors with data, node by node, by calls of the table.

`prepare` does once what does not depend on the inputs; `run` is for one use. Symbols take their
values from the inputs. Records for backward as the calls themselves would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flambeau
from flambeau import _C

from .graph import Block, Graph, Node, TensorType, Value, values_of
from .graph_custom import custom_caller
from .graph_regions import region_caller
from .symbols import ShapeEnv
from .symexpr import Expr
from .symscalar import FloatExpr
from .targets import Target, resolve, updated

Values = dict[Value, Any]


def bindings(env: ShapeEnv, inputs: Sequence[Any]) -> dict[str, int]:
    """Values of the symbols for these inputs."""
    out: dict[str, int] = {}
    for s in env.symbols.values():
        origin = s.origin
        if origin is None:
            continue
        x = inputs[origin.input]
        match origin.kind:
            case "size":
                out[s.name] = x.shape[origin.dim]
            case "stride":
                out[s.name] = x.stride(origin.dim)
            case "offset":
                out[s.name] = x.storage_offset()
            case "value":
                out[s.name] = x
    return out


def _fetch(arg: Any, values: Values, sizes: Mapping[str, int]) -> Any:
    if isinstance(arg, Value):
        return values[arg]
    if isinstance(arg, tuple):
        return tuple(_fetch(a, values, sizes) for a in arg)
    if isinstance(arg, (Expr, FloatExpr)):
        return arg.evaluate(sizes)
    return arg


def _caller(node: Node, fresh: bool) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """What runs a node; `fresh`: the first argument is nobody else's."""
    target: Target = resolve(node.target)
    uid = target.op.uid
    if target.form == "inplace":
        return lambda args: (call_in_place(target, args),)
    if uid == "alias" and not node.grad:  # x.detach(); a view that no_grad makes is no such thing
        return lambda args: (args[0].detach(),)
    if target.form == "new" and target.op.updates:
        places = updated(target.op, node.args)
        return lambda args: _updating(uid, args, places)
    if target.form == "new" and not fresh:
        return lambda args: _C._call_entry(uid, (_copied(args[0]), *args[1:]))
    spread = len(target.op.outputs) == 1 and target.op.outputs[0].is_list
    if spread:
        return lambda args: _C._call_entry(uid, args)[0]
    return lambda args: _C._call_entry(uid, args)


def _updating(uid: str, args: tuple[Any, ...], places: list[int]) -> tuple[Any, ...]:
    """Results, then the new values of what the entry would have changed."""
    given = list(args)
    for i in places:
        given[i] = _copied(args[i])
    return (*_C._call_entry(uid, tuple(given)), *(given[i] for i in places))


def _copied(x: Any) -> Any:
    if not isinstance(x, flambeau.Tensor):
        return flambeau.tensor(x, device="cpu")
    made = flambeau.empty_strided(tuple(x.shape), x.stride(), dtype=x.dtype, device=x.device)
    if 0 in made.stride():  # of what repeats, one of each
        one = tuple(slice(0, 1) if s == 0 else slice(None) for s in made.stride())
        made[one].copy_(x[one])
        return made
    return made.copy_(x)


def call_in_place(target: Target, args: tuple[Any, ...]) -> Any:
    """The derived in-place form: its method, which is the public one, where there is one."""
    op = target.op
    named = {p.name: a for p, a in zip(op.params[1:], args[1:], strict=True) if p.kwonly}
    plain = [a for p, a in zip(op.params[1:], args[1:], strict=True) if not p.kwonly]
    method = getattr(flambeau.Tensor, f"{op.name}_", None)
    if method is None:
        return _C._call_entry(op.inplace_uid, args)[0]
    return method(args[0], *plain, **named)


def _last_uses(graph: Block) -> list[list[Value]]:
    """For each node, the values that nothing needs after it."""
    seen = set(values_of(graph.outputs))
    out: list[list[Value]] = []
    for node in reversed(graph.nodes):
        last = [v for v in dict.fromkeys([*node.inputs, *node.outs]) if v not in seen]
        seen.update(last)
        out.append(last)
    return out[::-1]


def _only_run(e: Any) -> bool:
    """Whether a size depends on a symbol that only the run tells, see Note [Names of symbols]."""
    return isinstance(e, Expr) and any(s.startswith("n") for s in e.symbols)


def _shows_sizes(graph: Block) -> set[Node]:
    """Nodes whose results have, or depend on, sizes that only the run tells."""
    depend: set[Value] = set()
    out: set[Node] = set()
    for node in graph.nodes:
        types = [v.type for v in node.outs if isinstance(v.type, TensorType)]
        if any(map(_only_run, (n for t in types for n in t.shape))) or any(
            v in depend for v in node.inputs
        ):
            depend.update(node.outs)
            out.add(node)
    return out


def _learn_sizes(node: Node, results: Any, sizes: dict[str, int]) -> None:
    """Values of symbols that results show; what else their types say must be so."""
    for v, x in zip(node.outs, results, strict=True):
        if not isinstance(v.type, TensorType):
            continue
        same = x.dim() == len(v.type.shape)
        for n, size in zip(v.type.shape, x.shape, strict=False):
            name = str(n)
            if _only_run(n) and isinstance(n, Expr) and n.symbols == {name} and name not in sizes:
                sizes[name] = size
                continue
            same = same and (n.evaluate(sizes) if isinstance(n, Expr) else n) == size
        if not same:
            held = ", ".join(map(str, v.type.shape))
            raise RuntimeError(
                f"compile: {node.target} gives the shape {list(x.shape)}, where the graph holds "
                f"[{held}]: sizes that depend on data were taken for equal where shapes meet, and "
                f"for other than 0 and 1; compile without fullgraph=True\n  at {node.where}"
            )


def prepare(graph: Block) -> Callable[..., tuple[Any, ...]]:
    """A function of the graph's inputs (but for attached ones) that gives its outputs.

    It also takes the values of symbols, for graphs whose inputs do not tell them.
    """
    uses = graph.uses()
    empties = {
        n.out for n in graph.nodes if n.target in ("empty", "empty_like", "empty_strided")
    } - set(values_of(graph.outputs))
    steps = []
    for node, dead in zip(graph.nodes, _last_uses(graph), strict=True):
        if node.rule is not None:
            steps.append((node, custom_caller(node, prepare), dead))
            continue
        if node.is_region:
            steps.append((node, region_caller(node, prepare), dead))
            continue
        first = node.args[0] if node.args else None
        fresh = isinstance(first, Value) and first in empties and len(uses[first]) == 1
        steps.append((node, _caller(node, fresh), dead))
    shown = _shows_sizes(graph)

    env = graph.env if isinstance(graph, Graph) else ShapeEnv()
    attached = graph.attached if isinstance(graph, Graph) else ()

    def call(*inputs: Any, sizes: Mapping[str, int] | None = None) -> tuple[Any, ...]:
        given = (*inputs, *attached)
        if len(given) != len(graph.inputs):
            raise TypeError(
                f"graph: expected {len(graph.inputs) - len(attached)} inputs, got {len(inputs)}"
            )
        values: Values = dict(zip(graph.inputs, given, strict=True))
        if not sizes:
            sizes = bindings(env, given) if env.symbols else {}
        known = dict(sizes)  # and what results show of sizes that only the run tells
        for node, function, dead in steps:
            args = _fetch(node.args, values, known)
            if node.rule is not None:
                results = function(args, known)
            elif node.is_region:
                with flambeau.set_grad_enabled(node.grad):
                    results = function(args, known)
            elif node.grad:
                results = function(args)
            else:
                with flambeau.no_grad():
                    results = function(args)
            values.update(zip(node.outs, results, strict=True))
            if node in shown:
                _learn_sizes(node, results, known)
            for v in dead:
                del values[v]
        return tuple(_fetch(graph.outputs, values, known))

    return call


def run(graph: Graph, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Outputs of the graph for inputs of the shapes that its guards allow."""
    return prepare(graph)(*inputs)
