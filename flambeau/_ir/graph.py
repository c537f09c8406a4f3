"""The one IR: typed values, nodes that call, blocks of nodes.

A value is defined once, by the inputs of a block or by one node, before its uses; blocks see the
values of the blocks around them. A node's target is the `uid` of an entry, with a trailing `_` for
its derived in-place form, or with `.new` for the form of a mutating entry that leaves its first
argument alone; or `core.NAME`, an intrinsic of the language; or one of `CONTROL`. See Note [Blocks]
for those. Arguments of an entry are all its parameters in order. The result of an in-place form is
its first argument after the change, under a new name. What a stage allows is `graph_verify`'s.
Must not know how graphs are made or run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from .symbols import ShapeEnv, Symbol
from .symexpr import Expr
from .symscalar import FloatExpr
from .types import NONE, Param, Type
from .where import Where

Dim = int | Expr
B = TypeVar("B", bound="Block")


def contiguous_strides(shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """Strides of a dense row-major tensor; a dim of size 0 counts as 1."""
    out: list[Dim] = []
    step: Dim = 1
    for n in reversed(shape):
        out.append(step)
        if n != 0:
            step = dim(step * n)
    return tuple(reversed(out))


def dim(e: Dim) -> Dim:
    """A dim in its only form: an int where it is constant."""
    return e if isinstance(e, int) or e.constant is None else e.constant


@dataclass(frozen=True)
class TensorType:
    """Type of a tensor: all that a shape rule may ask."""

    dtype: Any
    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    device: Any

    @property
    def contiguous(self) -> bool:
        """The strides are those of a dense row-major tensor."""
        return self.strides == contiguous_strides(self.shape)


#: a type of the language, or what refines it where shapes are known
ValueType = TensorType | Type


@dataclass(eq=False, slots=True)
class Value:
    """A value; identity is what distinguishes it, `id` is its name in print.

    `name` is the variable of the source that it is a version of, see Note [Variables].
    """

    id: int
    type: ValueType
    name: str = ""

    def __repr__(self) -> str:
        return f"%{self.name}.{self.id}" if self.name else f"%{self.id}"

    @property
    def shape(self) -> tuple[Dim, ...]:
        assert isinstance(self.type, TensorType)
        return self.type.shape

    @property
    def dtype(self) -> Any:
        assert isinstance(self.type, TensorType)
        return self.type.dtype


#: Value, number, str, None, dtype, device, layout, memory format, expression, tuple of these
Arg = Any


# Note [Derivatives of their own]
# `custom_gradient(made, wanted, given)` copies the tensors `made`. Gradients of its results flow
# to `wanted` by the node's block, the rule: it takes `given` and the cotangents of all results,
# sees nothing else, and gives a cotangent (or None) for each of `wanted`. Such a node is no entry
# of the table. It occurs in captured graphs, and in functional ones until they are differentiated.
#: The target of nodes that give tensors a derivative of the user's own.
CUSTOM = "custom_gradient"


# Note [Regions]
# `region.KIND(options, own, free, orders)` is a call of a transform or of control flow whose
# functions are the node's blocks. A block's inputs are its own (samples under `vmap`, carried
# values of `while_loop`), then `free`, what the functions take from around them; it sees nothing
# else. Kinds are those of `graph_regions`. Results are dense: `orders` are their dims in memory,
# slowest first; () is contiguous. A graph with such a node is captured, and runs node by node: no
# pass looks into a region.
REGION = "region."


# Note [Blocks]
# `if` (test) has two blocks without inputs; their outputs are the results. `loop` (kind, lists,
# carried) has the block of a turn: its inputs are the items and the carried values, its outputs
# the carried values of the next turn; the last ones are the results. Kinds are `range` (start,
# stop, step), `list`, `enumerate`, `reversed` (a list), `zip` (lists), and `while`, which has the
# block of its test first. `collect` (kind, lists) makes a list of what its last block gives; of
# two blocks the first says which items count. `return`, `break` and `continue` leave the function,
# the loop or the turn with the values that these give; `raise` (class, message) leaves everything.
# They end a block, which has no outputs then. `with` (kind, operands) has one block, whose outputs
# are the results, and ends what it has entered however the block is left; scripts alone have it.
# The levels `table` and `script` have blocks: turning an
# early return into flags would make neither the C++ nor an interpreter better.
CONTROL = ("if", "loop", "collect", "with")
ENDS = ("return", "break", "continue", "raise")
_JUMPS = ("break", "continue")
#: intrinsics that change their first argument
CHANGES = ("core.append", "core.extend", "core.insert", "core.pop", "core.setitem")

# Note [Variables]
# Values of the same name are versions of one variable: where one of them is read, no later one has
# been made. So the C++ of a function has the variables of its source. A value without a name that
# one node defines is an operand: it is used once, in the same block, and stands in the expression
# of its user. `core.same` gives a value the name of another variable.


@dataclass(eq=False, slots=True)
class Node:
    """One call; without `grad` it runs as under no_grad."""

    target: str
    args: tuple[Arg, ...]
    outs: tuple[Value, ...]
    where: Where | None = None
    grad: bool = True
    blocks: tuple[Block, ...] = ()
    outside: str = ""  # the error of an index out of bounds, where that is not the entry's own

    @property
    def out(self) -> Value:
        """The only result."""
        (value,) = self.outs
        return value

    @property
    def rule(self) -> Block | None:
        """The block of a node that is no entry, see Note [Derivatives of their own]."""
        return self.blocks[0] if self.target == CUSTOM else None

    @property
    def is_region(self) -> bool:
        """It calls a transform or control flow, see Note [Regions]."""
        return self.target.startswith(REGION)

    @property
    def is_call(self) -> bool:
        """It calls an entry of the table."""
        core = self.target.startswith("core.")
        return not (core or self.is_region) and self.target not in (CUSTOM, *CONTROL, *ENDS)

    @property
    def inputs(self) -> list[Value]:
        """Values among the arguments, those in lists too, in order."""
        return list(values_of(self.args))


def values_of(arg: Arg) -> Iterator[Value]:
    """All values in an argument."""
    if isinstance(arg, Value):
        yield arg
    elif isinstance(arg, tuple):
        for a in arg:
            yield from values_of(a)


def map_values(arg: Arg, f: Callable[[Value], Arg]) -> Arg:
    """The argument with other things for its values."""
    if isinstance(arg, Value):
        return f(arg)
    return tuple(map_values(a, f) for a in arg) if isinstance(arg, tuple) else arg


@dataclass(eq=False)
class Block:
    """Nodes in order; what comes in and what goes out."""

    inputs: tuple[Value, ...] = ()
    nodes: list[Node] = field(default_factory=list)
    outputs: tuple[Arg, ...] = ()

    def __str__(self) -> str:
        return show(self)

    def walk(self) -> Iterator[Node]:
        """All nodes, those of nested blocks after their owner."""
        for node in self.nodes:
            yield node
            for b in node.blocks:
                yield from b.walk()

    def values(self) -> Iterator[Value]:
        """All values in the order of the text."""
        yield from self.inputs
        for node in self.nodes:
            yield from node.outs
            for b in node.blocks:
                yield from b.values()

    def uses(self) -> dict[Value, list[Node]]:
        """Nodes that take each value, in order; unused values have no key."""
        out: dict[Value, list[Node]] = {}
        for node in self.walk():
            for v in dict.fromkeys(node.inputs):
                out.setdefault(v, []).append(node)
        return out

    def next_id(self) -> int:
        return max((v.id for v in self.values()), default=-1) + 1

    @property
    def ended(self) -> str:
        """How control leaves the block other than at its end: `return` or `raise`, or by a jump.

        "" where it may come to the end.
        """
        last = self.nodes[-1] if self.nodes else None
        if last is None or last.target in ENDS:
            return last.target if last else ""
        if last.target == "with":
            return last.blocks[0].ended
        if last.target == "if":
            both = [b.ended for b in last.blocks]
            return "" if not all(both) else next((k for k in both if k in _JUMPS), "return")
        forever = last.target == "loop" and last.blocks[0].outputs == (True,)
        jumps = any(n.target == "break" for b in last.blocks for n in b.walk())
        return "return" if forever and last.args[0] == "while" and not jumps else ""


@dataclass(eq=False)
class Graph(Block):
    """A straight-line program.

    `attached` are tensors bound to the last inputs: what the traced function closed over.
    `replaced` are pairs of an output and the input whose new value it is: a back end may change
    that input, if no other output shows it. Neither is part of the text.
    """

    env: ShapeEnv = field(default_factory=ShapeEnv)
    attached: tuple[Any, ...] = ()
    replaced: tuple[tuple[int, int], ...] = ()


@dataclass(eq=False)
class Function(Block):
    """A function of the language: it leaves by `return`, or at its end without a result."""

    name: str = ""
    params: list[Param] = field(default_factory=list)
    returns: Type = NONE
    file: str = ""
    line: int = 0


class Builder:
    """Makes a graph: numbers values, appends nodes."""

    def __init__(self, env: ShapeEnv) -> None:
        self.graph = Graph(env=env)
        self.count = 0

    def value(self, type: ValueType) -> Value:
        self.count += 1
        return Value(self.count - 1, type)

    def input(self, type: ValueType) -> Value:
        v = self.value(type)
        self.graph.inputs += (v,)
        return v

    def add(
        self, target: str, args: tuple[Arg, ...], types: tuple[ValueType, ...],
        where: Where | None, grad: bool = True,
    ) -> Node:  # fmt: skip
        node = Node(target, args, tuple(self.value(t) for t in types), where, grad)
        self.graph.nodes.append(node)
        return node


def copied(block: Block, value: Callable[[ValueType], Value]) -> Block:
    """The same straight-line block with values of its own."""
    made = {v: value(v.type) for v in block.values()}

    def put(b: Block) -> Block:
        return Block(take(b.inputs), [node(n) for n in b.nodes], take(b.outputs))

    def node(n: Node) -> Node:
        outs, blocks = take(n.outs), tuple(map(put, n.blocks))
        return Node(n.target, take(n.args), outs, n.where, n.grad, blocks)

    def take(args: tuple[Arg, ...]) -> Any:
        return map_values(args, lambda v: made.get(v, v))

    return put(block)


def renumbered(block: B) -> B:
    """The same block, its values numbered in the order of definition."""
    for i, v in enumerate(block.values()):
        v.id = i
    return block


# Text --------------------------------------------------------------------------------------------


@cache
def dtype_names() -> dict[Any, str]:
    """Dtypes as types and arguments show them."""
    import flambeau  # the build, which imports this file, has only its folder

    names = {"uint": "u", "int": "i", "float": "f", "complex": "c", "bfloat": "bf"}
    out = {flambeau.bool: "bool"}
    for kind, short in names.items():
        for bits in (8, 16, 32, 64, 128):
            dtype = getattr(flambeau, f"{kind}{bits}", None)
            if dtype is not None:
                out[dtype] = f"{short}{bits}"
    return out


@cache
def constant_names() -> dict[Any, str]:
    """Enumerations that occur as arguments, by their public names."""
    import flambeau

    kinds = (flambeau.memory_format, flambeau.layout)
    found = {name: getattr(flambeau, name) for name in dir(flambeau)}
    return {x: name for name, x in found.items() if type(x) in kinds}


def show_type(t: ValueType) -> str:
    """`f32[s0, 128]`, `int`, `Tensor | None`."""
    if isinstance(t, Type):
        return str(t)
    text = f"{dtype_names()[t.dtype]}[{', '.join(map(str, t.shape))}]"
    if not t.contiguous:
        text += f"{{{', '.join(map(str, t.strides))}}}"
    return text if t.device.type == "cpu" else f"{text}@{t.device}"


def show_arg(a: Arg) -> str:
    """An argument of a node."""
    if isinstance(a, tuple):
        inner = ", ".join(map(show_arg, a))
        return f"({inner},)" if len(a) == 1 else f"({inner})"
    if isinstance(a, FloatExpr):
        return f"number({a!r})"
    if isinstance(a, complex):  # its repr is a sum, which has lost the signs of zeros
        return f"complex({a.real!r}, {a.imag!r})"
    if isinstance(a, (Value, Expr, str, int, float)) or a is None:
        return repr(a)
    if type(a).__name__ == "device":
        return f"device({str(a)!r})"
    return dtype_names().get(a) or constant_names()[a]


def _defined(values: Iterable[Value]) -> str:
    return ", ".join(f"{v}: {show_type(v.type)}" for v in values)


def show_node(node: Node) -> str:
    """A node without its blocks."""
    mode = "" if node.grad else "no_grad "
    text = f"{mode}{node.target}({', '.join(map(show_arg, node.args))})"
    if node.outs or node.target not in (*CONTROL, *ENDS):
        text = f"{_defined(node.outs) or '()'} = {text}"
    return f"{text}  # {node.where}" if node.where else text


#: what stands before the blocks of a node
LABELS = {
    "if": ("then", "else"), "loop": ("while", "do"), "collect": ("when", "each"),
    "with": ("inside",),
    CUSTOM: ("backward",),
    REGION + "cond": ("then", "else"), REGION + "while_loop": ("while", "do"),
}  # fmt: skip


def _labels(n: Node) -> tuple[str, ...]:
    labels = LABELS.get(n.target, ("of",) if n.is_region else ())
    return labels[-len(n.blocks) :]


def _lines(block: Block, pad: str, function: str = "") -> Iterator[str]:
    for n in block.nodes:
        text = pad + show_node(n)
        # Within a function of the language its line says where a node is.
        yield text.removesuffix(str(n.where)) + str(n.where.line) if function and n.where else text
        for label, b in zip(_labels(n), n.blocks, strict=False):
            yield f"{pad}{label}({_defined(b.inputs)}):"
            yield from _lines(b, pad + "  ", function)
            if b.outputs:
                yield f"{pad}  yield {', '.join(map(show_arg, b.outputs))}"


def _show_symbol(s: Symbol) -> str:
    hint = "?" if s.hint is None else str(s.hint)
    origin = f" from {s.origin}" if s.origin else ""
    return f"{s.name} = {hint} in [{s.low}, {s.high}]{origin}"


def show(block: Block) -> str:
    """A whole graph with its symbols and guards, or a function."""
    inputs = _defined(block.inputs)
    if isinstance(block, Function):
        where = f"  # {Where(block.file, block.line, block.name)}" if block.file else ""
        head = f"def {block.name}({inputs}) -> {block.returns}:{where}"
        return "\n".join([head, *_lines(block, "  ", block.name)]) + "\n"
    lines: list[str] = []
    if isinstance(block, Graph):
        lines = [_show_symbol(s) for s in block.env.symbols.values()]
        for g in block.env.guards:
            lines.append(f"guard {g.expr} {g.relation} 0" + (f"  # {g.where}" if g.where else ""))
    outputs = ", ".join(map(show_arg, block.outputs))
    lines += [f"graph({inputs}):", *_lines(block, "  "), f"  return {outputs}".rstrip()]
    return "\n".join(lines) + "\n"
