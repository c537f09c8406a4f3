"""What every graph must be, and what each stage allows. Every pass is held to `verify`.

table       bodies of entries: blocks, values of every type of the language, all intrinsics
script      the same without the intrinsics that make or alias memory (`BODIES`)
captured    straight-line; tensors of known type; any entry, in-place forms too
functional  no node changes anything
primitive   besides, only entries of the kinds pointwise, view and structured
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, TypeVar

import flambeau

from .graph import (
    CUSTOM,
    ENDS,
    Block,
    Function,
    Graph,
    Node,
    TensorType,
    Value,
    show_node,
    show_type,
    values_of,
)
from .intrinsics import BODIES, LANGUAGE, signatures
from .symbols import ShapeEnv
from .symexpr import Expr
from .symscalar import FloatExpr
from .targets import Entry, resolve, updated
from .types import BOOL, Type

LEVELS = ("table", "script", "captured", "functional", "primitive")


B = TypeVar("B", bound=Block)
Variables = dict[str, Value]


class GraphError(AssertionError):
    """A pass made a graph that is none."""


def verify(graph: B, level: str = "captured") -> B:
    """The graph or function, when it is one of this level.

    Raises:
        GraphError: what is wrong, with the node as text.
    """
    if level not in LEVELS:
        raise ValueError(f"verify: expected a level of {', '.join(LEVELS)}, got {level!r}")
    env = graph.env if isinstance(graph, Graph) else ShapeEnv()
    if isinstance(graph, Graph) and len(graph.attached) > len(graph.inputs):
        raise GraphError("graph: more tensors attached than there are inputs")
    _Verifier(level, env, graph).block(graph, set(), {}, (), "inputs")
    return graph


def checked(graph: B, level: str) -> B:
    """The graph or function, verified where FLAMBEAU_VERIFY asks for it, as the tests do: what the
    passes make is right by construction, and verifying costs about as much as making it."""
    return verify(graph, level) if os.environ.get("FLAMBEAU_VERIFY") else graph


class _Verifier:
    """One check of one graph."""

    def __init__(self, level: str, env: ShapeEnv, graph: Block) -> None:
        self.level, self.env = level, env
        self.ids: set[int] = set()
        self.nested = level in ("table", "script")
        self.returns = graph.returns if isinstance(graph, Function) else None
        self.operands = {v for n in graph.walk() for v in n.outs if not v.name and self.nested}

    def block(
        self, block: Block, seen: set[Value], current: Variables, loop: tuple[Any, ...], text: str
    ) -> None:
        """A block that sees some values; `loop` is what leaves the loop around it."""
        seen, current = seen - self.operands, dict(current)
        self.define(block.inputs, seen, current, text)
        for node in block.nodes:
            text = show_node(node)
            self.reads(node.args, seen, current, text)
            if node.target in ENDS:
                self.end(node, loop, text)
                if node is not block.nodes[-1] or block.outputs:
                    raise GraphError(f"graph: something after the end of a block: {text}")
            elif node.target in ("if", "loop", "collect"):
                self.control(node, seen, current, loop, text)
            else:
                self.call(node, text)
            self.define(node.outs, seen, current, text)
        self.reads(block.outputs, seen, current, "return" if loop == () else text)

    def define(
        self, values: Iterable[Value], seen: set[Value], current: Variables, text: str
    ) -> None:
        for v in values:
            _define(v, seen, self.ids, self.env, text)
            if not self.nested and isinstance(v.type, Type) and not v.type.is_numeric:
                raise GraphError(f"graph: {v} has the unknown type {v.type}")
            if v.name:
                current[v.name] = v

    def reads(self, args: Any, seen: set[Value], current: Variables, text: str) -> None:
        _seen(args, seen, text)
        for v in values_of(args):
            if v.name and current.get(v.name) is not v:  # see Note [Variables]
                raise GraphError(f"graph: {v} is no longer the variable {v.name!r}: {text}")
            if v in self.operands:
                seen.discard(v)

    def call(self, node: Node, text: str) -> None:
        if node.target == CUSTOM:
            return self.custom(node, text)
        if node.is_region:
            return self.region(node, text)
        if node.target.startswith("core."):
            return self.core(node, text)
        op = _target(node, self.level, text)
        _arguments(op, node, self.env, text)
        if not self.nested:
            changed = updated(op, node.args) if node.target.endswith(".new") else []
            return _results(op, node, changed, text)
        given = op.returns if resolve(node.target).form == "" else op.outputs[0]
        if [v.type for v in node.outs] != ([] if given.base == "None" else [given.plain()]):
            raise GraphError(f"graph: {op.uid} gives {given}: {text}")
        return None

    def region(self, node: Node, text: str) -> None:
        """See Note [Regions]."""
        if self.level != "captured":
            raise GraphError(f"graph: no {node.target} at level {self.level}: {text}")
        free = node.args[2]
        for block in node.blocks:
            own = len(block.inputs) - len(free)
            if own < 0 or [v.type for v in block.inputs[own:]] != [v.type for v in free]:
                raise GraphError(f"graph: a block takes other values than the node: {text}")
            inner = _Verifier("captured", self.env, block)
            inner.ids = self.ids
            inner.block(block, set(), {}, (), text)

    def custom(self, node: Node, text: str) -> None:
        """See Note [Derivatives of their own]."""
        rule = node.blocks[0] if node.blocks else None
        if rule is None:
            raise GraphError(f"graph: a derivative of its own without a rule: {text}")
        made, wanted, given = node.args
        if [v.type for v in made] != [v.type for v in node.outs]:
            raise GraphError(f"graph: the results are copies of other tensors: {text}")
        if len(rule.inputs) != len(given) + len(made) or len(rule.outputs) != len(wanted):
            raise GraphError(f"graph: the rule is one of other values: {text}")
        inner = _Verifier("captured", self.env, rule)
        inner.ids = self.ids
        inner.block(rule, set(), {}, (), text)

    def core(self, node: Node, text: str) -> None:
        """An intrinsic: its name, and its types where it has a signature."""
        name = node.target.removeprefix("core.")
        found = signatures(name)
        if not self.nested or not (found or name in LANGUAGE):
            raise GraphError(f"graph: no intrinsic {name} at level {self.level}: {text}")
        if self.level == "script" and name in BODIES:
            raise GraphError(f"graph: {name} is for bodies of entries: {text}")
        if name not in LANGUAGE and not any(
            len(s.params) == len(node.args)
            and all(_fits(p.type, a) for p, a in zip(s.params, node.args, strict=True))
            and [v.type for v in node.outs] == ([s.returns.plain()] if node.outs else [])
            for s in found
        ):
            raise GraphError(f"graph: {name} takes and gives other types: {text}")

    def end(self, node: Node, loop: tuple[Any, ...], text: str) -> None:
        fits = True
        if node.target == "return":
            want = self.returns
            if want is None:
                raise GraphError(f"graph: a return outside of functions: {text}")
            wanted = [] if want.base == "None" else [want]
            fits = _all_fit(wanted, node.args)
        elif node.target == "raise":
            fits = len(node.args) == 2 and all(_fits(Type("str"), a) for a in node.args)
        elif not loop:
            raise GraphError(f"graph: {node.target} outside of a loop: {text}")
        else:
            fits = _all_fit(loop[node.target == "continue"], node.args)
        if not fits:
            raise GraphError(f"graph: {node.target} takes other values: {text}")

    def control(
        self, node: Node, seen: set[Value], current: Variables, loop: tuple[Any, ...], text: str
    ) -> None:
        """A node with blocks, and the blocks."""
        if not self.nested:
            raise GraphError(f"graph: blocks at level {self.level}: {text}")
        outs: list[Any] = [v.type for v in node.outs]
        if node.target == "if":
            shape = len(node.blocks) == 2 and len(node.args) == 1 and _fits(BOOL, node.args[0])
            wanted, given = [outs, outs], [(), ()]
        else:
            init = node.args[2] if len(node.args) > 2 else ()
            given = [init] * len(node.blocks)
            inputs = node.blocks[-1].inputs
            into: list[Any] = [v.type for v in inputs[len(inputs) - len(init) :]]
            wanted = [[BOOL], into][-len(node.blocks) :]
            if node.target == "collect":
                wanted[-1] = [t.element for t in outs if isinstance(t, Type)]
            shape = 1 <= len(node.blocks) <= 2
            loop = outs, into
        if not shape:
            raise GraphError(f"graph: {node.target} has other blocks: {text}")
        changed: set[str] = set()
        for b in node.blocks:
            changed |= _changed(b, node.target != "if")
        if node.target != "if":
            current = {n: v for n, v in current.items() if n not in changed}
        for b, want, init in zip(node.blocks, wanted, given, strict=True):
            self.block(b, seen, current, loop, text)
            if node.target == "if" and b.inputs or not b.ended and not _all_fit(want, b.outputs):
                raise GraphError(f"graph: a block takes or gives other values: {text}")
            if init and not _all_fit([v.type for v in b.inputs[len(b.inputs) - len(init) :]], init):
                raise GraphError(f"graph: the loop carries other values: {text}")
        for n in changed:
            current.pop(n, None)


def _changed(block: Block, loop: bool) -> set[str]:
    """Variables that have another version where control leaves a block for what follows it."""
    if block.ended in ("return", "raise") or block.ended and not loop:
        return set()
    out: set[str] = set()
    for n in block.nodes:
        out.update(v.name for v in n.outs if v.name)
        for b in n.blocks:
            out |= _changed(b, loop or n.target == "loop")
    return out


def _all_fit(types: Iterable[Any], args: tuple[Any, ...]) -> bool:
    types = list(types)
    return len(types) == len(args) and all(
        _fits(t, a) if isinstance(t, Type) else getattr(a, "type", None) == t
        for t, a in zip(types, args, strict=True)
    )


def _define(v: Value, defined: set[Value], ids: set[int], env: ShapeEnv, text: str) -> None:
    if v in defined or v.id in ids:
        raise GraphError(f"graph: {v} is defined twice: {text}")
    defined.add(v)
    ids.add(v.id)
    if isinstance(v.type, Type):
        return
    if len(v.type.shape) != len(v.type.strides):
        raise GraphError(f"graph: {v}: as many strides as dims, got {show_type(v.type)}: {text}")
    for d in (*v.type.shape, *v.type.strides):
        _known(d, env, text)


def _known(d: object, env: ShapeEnv, text: str) -> None:
    if isinstance(d, (Expr, FloatExpr)):
        unknown = d.symbols - env.symbols.keys()
        if unknown:
            raise GraphError(f"graph: no symbol {', '.join(sorted(unknown))}: {text}")
        if isinstance(d, Expr) and d.constant is not None:
            raise GraphError(f"graph: the constant {d} is written as an expression: {text}")
    elif not isinstance(d, int) or isinstance(d, bool):
        raise GraphError(f"graph: a dim is an int or an expression, got {d!r}: {text}")


def _seen(args: tuple[Any, ...], defined: set[Value], text: str) -> None:
    for v in values_of(args):
        if v not in defined:
            raise GraphError(f"graph: {v} is used before it is defined: {text}")


def _target(node: Node, level: str, text: str) -> Entry:
    try:
        target = resolve(node.target)
    except KeyError:
        raise GraphError(f"graph: the table has no entry {node.target}: {text}") from None
    op: Entry = target.op
    if len(node.args) != len(op.params):
        raise GraphError(
            f"graph: {op.uid} has {len(op.params)} parameters, got {len(node.args)}: {text}"
        )
    changes = target.mutates or (target.form != "new" and updated(op, node.args))
    if level in ("functional", "primitive") and changes:
        raise GraphError(f"graph: {node.target} changes its argument: {text}")
    if level == "primitive" and op.kind == "composite":
        raise GraphError(f"graph: {node.target} is composed of others: {text}")
    return op


def _arguments(op: Entry, node: Node, env: ShapeEnv, text: str) -> None:
    for p, a in zip(op.params, node.args, strict=True):
        if not _fits(p.type, a):
            raise GraphError(f"graph: {op.uid}: {p.name!r} is {p.type}, got {a!r}: {text}")
        for part in a if isinstance(a, tuple) else (a,):
            if isinstance(part, (Expr, FloatExpr)):
                _known(part, env, text)


_SCALARS = ("int", "float", "bool")


def _is_tensor(a: object) -> bool:
    return isinstance(a, Value) and isinstance(a.type, TensorType)


def _is_scalar(a: object, *names: str) -> bool:
    return isinstance(a, Value) and isinstance(a.type, Type) and a.type.base in names


def _is_int(a: object) -> bool:
    plain = isinstance(a, (int, Expr)) and not isinstance(a, bool)
    return plain or _is_scalar(a, "int")


def _is_number(a: object) -> bool:
    if isinstance(a, (int, float, complex, Expr, FloatExpr)):
        return True
    return _is_scalar(a, "int", "float", "bool")


def _is_a(have: Type, want: Type) -> bool:
    if have.base == want.base == "Tuple" and len(have.items) == len(want.items):
        return all(map(_is_a, have.items, want.items))
    return have == want or (want.optional and have == want.required())


def _fits(t: Type, a: object) -> bool:
    if a is None:
        return t.optional or t.base == "None"
    if isinstance(a, Value) and isinstance(a.type, Type) and not _is_scalar(a, *_SCALARS):
        return _is_a(a.type.plain(), t.plain())
    if t.is_list:
        return isinstance(a, tuple) and all(_fits(t.element, x) for x in a)
    match t.base:
        case "Tensor":  # a number stands for the 0-d tensor that it is wrapped in
            return _is_tensor(a) or _is_number(a)
        case "int":
            return _is_int(a)
        case "float":
            return _is_number(a) and not isinstance(a, complex)
        case "bool":
            return isinstance(a, bool) or _is_scalar(a, "bool")
        case "str":
            return isinstance(a, str)
        case "Number":
            return _is_number(a)
        case "DType":
            return isinstance(a, flambeau.dtype)
        case "Device":
            return isinstance(a, flambeau.device)
        case "Layout":
            return isinstance(a, flambeau.layout)
        case "MemoryFormat":
            return isinstance(a, flambeau.memory_format)
    return False


def _results(op: Entry, node: Node, changed: list[int], text: str) -> None:
    of_type = {"int": Type, "float": Type, "bool": Type, "Number": Type}
    outputs = op.outputs
    if len(outputs) == 1 and outputs[0].is_list:
        wanted = [TensorType] * len(node.outs)
    elif op.returns.base == "None":
        wanted = []
    else:
        wanted = [of_type.get(t.base, TensorType) for t in outputs]  # type: ignore[misc]
    wanted += [TensorType] * len(changed)  # the new values follow the results
    if [type(v.type) for v in node.outs] != wanted:
        raise GraphError(f"graph: {op.uid} gives {op.returns}: {text}")
