"""Functions of a unit with what they call written out, and what is known of their arguments put in.

Owns copying: names of variables stay apart, literals take the place of what they are given to,
conditions that are literals choose their branch. A call whose function returns from inside of a
branch stays a call, of a function made for what is known there. `Known` says what modules are;
`Inliner` alone knows nothing of them. Passes on what comes out are `freezing`'s.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from .._ir.errors import CompileError
from .._ir.graph import ENDS, Arg, Block, Function, Node, Value, map_values, renumbered
from .._ir.types import Param, Type
from .unit import Unit

_LITERALS = (bool, int, float, str, type(None))
_FOLDED: dict[str, Callable[..., Any]] = {
    "core.eq": operator.eq, "core.ne": operator.ne, "core.lt": operator.lt, "core.le": operator.le,
    "core.gt": operator.gt, "core.ge": operator.ge, "core.not": operator.not_,
    "core.is_none": lambda x: x is None, "core.and": lambda a, b: a and b,
    "core.or": lambda a, b: a or b, "core.truth_of": bool, "core.same": lambda x: x,
}  # fmt: skip


class Module:
    """A module that is known, where a value stood for one."""

    def __init__(self, module: Any, path: str) -> None:
        self.module, self.path = module, path


class _Returns(Exception):
    """A function leaves from inside of a branch: it cannot be written out."""


def is_literal(x: Any) -> bool:
    return type(x) in _LITERALS


class Inliner:
    """Copies functions of a unit into another; see the module."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.out = Unit()
        self.made: dict[Any, str] = {}
        self.instances = 0
        self.open: list[str] = []

    # -- what is known of modules: nothing, here ----------------------------------------------

    def attribute(self, owner: Module, name: str, copy: _Copy, node: Node) -> Arg:
        raise NotImplementedError

    def store(self, owner: Module, name: str, value: Arg, copy: _Copy, node: Node) -> None:
        raise NotImplementedError

    #: the value for all modules that are known, as the first parameter of functions
    self_type: Type | None = None

    # -- functions ----------------------------------------------------------------------------

    def specialised(self, name: str, modules: dict[int, Module], label: str = "") -> str:
        """The name of a function made for modules that some of its parameters are."""
        key = (name, tuple((i, id(m.module)) for i, m in sorted(modules.items())))
        if key in self.made:
            return self.made[key]
        made, n = label or name, 0
        while made in self.out.functions or made in self.open:
            n += 1
            made = f"{label or name}_{n}"
        self.made[key] = made
        self.open.append(made)
        f = self.unit.functions[name]
        copy = _Copy(self, f, None, made)
        params: list[Param] = []
        inputs: list[Value] = []
        if modules and self.self_type is not None:
            copy.self_value = copy.fresh(self.self_type, "self")
            inputs.append(copy.self_value)
            params.append(Param("self", self.self_type))
        for i, (v, p) in enumerate(zip(f.inputs, f.params, strict=True)):
            if i in modules:
                copy.env[v] = modules[i]
                continue
            inputs.append(copy.value(v))
            name_ = "self_" if p.name == "self" and copy.self_value is not None else p.name
            params.append(Param(name_, p.type, p.default, p.kwonly))
        nodes = copy.body(f)
        done = Function(tuple(inputs), nodes, (), made, params, f.returns, f.file, f.line)
        settled(done)
        self.out.functions[made] = renumbered(done)
        self.open.pop()
        return made


class _Copy:
    """The copy of one function, or of one call that is written out."""

    def __init__(self, owner: Inliner, f: Function, caller: _Copy | None, name: str) -> None:
        self.owner, self.f, self.caller, self.name = owner, f, caller, name
        self.top = caller.top if caller else self
        self.env: dict[Value, Arg] = {}
        self.number = 0 if caller is None else owner.instances
        self.self_value: Value | None = None if caller is None else caller.self_value
        self.versions = Counter(v.name for v in f.values() if v.name)
        self.count = 0
        self.depth = 0
        self.stack: tuple[str, ...] = (*(caller.stack if caller else ()), f.name)

    def fresh(self, t: Any, name: str) -> Value:
        top = self.top
        top.count += 1
        return Value(top.count, t, name)

    def variable(self, name: str) -> str:
        return f"{name}_in{self.number}" if name and self.number else name

    def value(self, v: Value) -> Value:
        made = self.fresh(v.type, self.variable(v.name))
        self.env[v] = made
        return made

    def taken(self, arg: Arg) -> Arg:
        return map_values(arg, lambda v: self.env[v])

    def stands(self, x: Arg) -> Arg:
        """A value that may be read more than once: a variable."""
        if isinstance(x, Value) and not x.name:
            self.top.count += 1
            x.name = f"v_{self.top.count}"
        return x

    def body(self, f: Function) -> list[Node]:
        nodes: list[Node] = []
        self.block(f, nodes)
        return nodes

    def block(self, b: Block, out: list[Node]) -> bool:
        """Copies nodes; False where control does not come to the end."""
        for node in b.nodes:
            if not self.node(node, out):
                return False
        return True

    def give(
        self, outs: Sequence[Value], given: Sequence[Arg], out: list[Node], node: Node
    ) -> None:
        """What values are from here on."""
        for v, x in zip(outs, given, strict=True):
            if v.name and self.versions[v.name] > 1 and not isinstance(x, Module):
                out.append(Node("core.same", (x,), (self.value(v),), node.where))
            else:
                self.env[v] = self.stands(x)

    def node(self, n: Node, out: list[Node]) -> bool:
        args = self.taken(n.args)
        t = n.target
        if t == "if" and is_literal(args[0]):
            chosen = n.blocks[0 if args[0] else 1]
            if not self.block(chosen, out):
                return False
            self.give(n.outs, self.taken(chosen.outputs), out, n)
            return True
        if t == "return" and self.caller is not None:
            if self.depth:
                raise _Returns
            self.result = args
            return False
        if t in ("core.getattr", "core.setattr") and isinstance(args[0], Module):
            if t == "core.setattr":
                self.owner.store(args[0], str(args[1]), args[2], self, n)
                out.extend(self.pending)
                self.pending = []
                return True
            made = self.owner.attribute(args[0], str(args[1]), self, n)
            out.extend(self.pending)
            self.pending = []
            self.give(n.outs, (made,), out, n)
            return True
        if t.startswith("fn."):
            return self.call(n, t[3:], args, out)
        if t == "core.fork" and str(args[0]).startswith("fn."):
            name, rest = self.made_for(str(args[0])[3:], args[1:])
            args = (f"fn.{name}", *rest)
        elif t in _FOLDED and all(map(is_literal, args)) and len(n.outs) == 1:
            self.give(n.outs, (_FOLDED[t](*args),), out, n)
            return True
        held = [a for a in _flat(args) if isinstance(a, Module)]
        if held and t == "core.call_module":
            name = type(held[0].module).__name__
            raise CompileError(f"{name} runs as it is, without a script to freeze", "")
        if held:
            raise CompileError(
                f"a module is given to {t}: freeze knows calls and attributes of modules alone",
                self.f.file,
            )
        blocks = []
        self.depth += 1
        for b in n.blocks:
            inputs = tuple(map(self.value, b.inputs))
            nodes: list[Node] = []
            outputs = self.taken(b.outputs) if self.block(b, nodes) else ()
            blocks.append(Block(inputs, nodes, outputs))
        self.depth -= 1
        outs = tuple(map(self.value, n.outs))
        out.append(Node(t, args, outs, n.where, n.grad, tuple(blocks), n.outside))
        return t not in ENDS

    pending: list[Node] = []
    result: Arg = ()

    def made_for(self, name: str, args: Sequence[Arg]) -> tuple[str, tuple[Arg, ...]]:
        """The function made for the modules among arguments, and the arguments that are left."""
        modules = {i: a for i, a in enumerate(args) if isinstance(a, Module)}
        left = tuple(a for a in args if not isinstance(a, Module))
        made = self.owner.specialised(name, modules)
        return made, ((self.self_value, *left) if modules and self.self_value else left)

    def call(self, n: Node, name: str, args: Sequence[Arg], out: list[Node]) -> bool:
        f = self.owner.unit.functions[name]
        if name not in self.stack and len(self.stack) < 40:
            self.owner.instances += 1
            inner = _Copy(self.owner, f, self, self.name)
            nodes: list[Node] = []
            try:
                for v, a in zip(f.inputs, args, strict=True):
                    inner.give((v,), (a,), nodes, n)
                ended = not inner.block(f, nodes)
            except _Returns:
                pass
            else:
                out.extend(nodes)
                if ended and nodes and nodes[-1].target == "raise":
                    return False
                self.give(n.outs, inner.result, out, n)
                return True
        made, left = self.made_for(name, args)
        outs = tuple(map(self.value, n.outs))
        out.append(Node(f"fn.{made}", left, outs, n.where, n.grad))
        return True


def settled(f: Function) -> None:
    """Gives versions of a variable that no branch or loop joins names of their own, and lets what
    `core.same` gave another name stand for itself."""
    joined = {v.name for n in f.walk() if n.blocks for v in n.outs}
    joined |= {v.name for n in f.walk() for b in n.blocks for v in b.inputs}
    joined.discard("")
    taken: Counter[str] = Counter()
    for v in f.values():
        if v.name and v.name not in joined and v not in f.inputs:
            base = v.name.split("_in")[0]
            taken[base] += 1
            v.name = f"{base}_{taken[base]}"
            while v.name in joined:
                v.name += "_"
    gone: dict[Value, Arg] = {}

    def put(arg: Arg) -> Arg:
        while isinstance(arg, Value) and arg in gone:
            arg = gone[arg]
        return tuple(map(put, arg)) if isinstance(arg, tuple) else arg

    def visit(b: Block) -> None:
        for n in list(b.nodes):
            n.args = put(n.args)
            if n.target == "core.same" and n.out.name not in joined:
                x = n.args[0]
                if not isinstance(x, Value) or x.name not in joined:
                    if isinstance(x, Value) and not x.name:
                        x.name = n.out.name
                    gone[n.out] = x
                    b.nodes.remove(n)
            for inner in n.blocks:
                visit(inner)
        b.outputs = put(b.outputs)

    visit(f)


def _flat(args: Sequence[Arg]) -> list[Arg]:
    out: list[Arg] = []
    for a in args:
        out += _flat(a) if isinstance(a, tuple) else [a]
    return out


def inlined(unit: Unit, name: str) -> Function:
    """A function with the functions that it calls written out, where they can be."""
    made = Inliner(unit)
    return made.out.functions[made.specialised(name, {})]
