"""Facts of bodies and rules: what each returned cotangent needs, what must be saved.

Pure functions over the IR. `slot_uses` finds which cotangents each variable serves, so that a rule
computes only what is wanted; `take_metadata` replaces uses of a tensor's shape or dtype by values
saved at forward, so that the tensor itself is not kept alive.
"""

from __future__ import annotations

from collections.abc import Iterable

from .._ir.graph import Arg, Block, Function, Node, Value, values_of
from .._ir.intrinsics import METADATA
from .._ir.reading import Reading, assigned, joins, nested, operands
from .._ir.types import NONE, Param, Type
from .model import Op

Slots = frozenset[int]


def makes_alias(f: Function) -> bool:
    """The body makes its view itself, by `strided` or `alias_of`."""
    return any(n.target in ("core.strided", "core.alias_of") for n in f.walk())


def body_returns(op: Op) -> Type:
    """Type that the body of an entry returns: rules that only check return nothing."""
    only_checks = op.option("dynamic") or op.option("inplace_kernel") or op.mutated_lists
    return NONE if op.kind == "structured" and only_checks else op.returns


def tensor_slots(op: Op) -> list[int]:
    """Positions of the tensor parameters."""
    return [
        i for i, p in enumerate(op.params) if p.type.base in ("Tensor", "Tensors", "OptTensors")
    ]


class SlotUses:
    """Which of `n` cotangents every variable and statement of a rule serves."""

    def __init__(self, f: Function, n: int) -> None:
        self.all: Slots = frozenset(range(n))
        self.vars: dict[str, Slots] = {}
        self.stmts: dict[Node, Slots] = {}
        self.reading = Reading(f)
        self.changed = True
        while self.changed:
            self.changed = False
            self._block(f)

    def _use(self, names: Iterable[str], slots: Slots) -> None:
        for name in names:
            have = self.vars.get(name, frozenset())
            if not slots <= have:
                self.vars[name] = have | slots
                self.changed = True

    def _block(self, block: Block) -> Slots:
        total: Slots = frozenset()
        for s in reversed(self.reading.statements(block)):
            self.stmts[s] = self._stmt(s)
            total |= self.stmts[s]
        return total

    def _stmt(self, s: Node) -> Slots:
        read = self.reading
        if s.target == "return":
            given = read.made_by(s.args[0], "core.tuple")
            if given is None or len(given.args) != len(self.all):
                self._use(read.names(s), self.all)
                return self.all
            for i, a in enumerate(given.args):
                self._use(read.below(a), frozenset({i}))
            return self.all
        if s.target in ("raise", "break", "continue"):
            slots = self.all
        elif joins(s):
            slots = frozenset().union(*(self._block(b) for b in nested(s)))
        else:
            targets = {*assigned(s), *filter(None, [read.changed(s)])}
            if not targets:  # done for its effect on the first argument
                targets = read.below(s.args[0])
            slots = frozenset().union(*(self.vars.get(n, frozenset()) for n in targets))
        self._use(read.names(s), slots)
        return slots


def _metadata_use(read: Reading, node: Node, name: str) -> list[Node]:
    """The nodes, the last of which reads metadata of variable `name` (or tests it for None)."""
    what = node.target.removeprefix("core.")
    if node.target != f"core.{what}" or not node.args or not isinstance(node.args[0], Value):
        return []
    if what != "is_none" and (what not in METADATA or any(values_of(node.args[1:]))):
        return []
    unwrap = read.made_by(node.args[0], "core.unwrap")
    x = unwrap.args[0] if unwrap else node.args[0]
    return [n for n in (unwrap, node) if n] if x.name == name else []


def _reads(f: Function, name: str) -> int:
    return sum(v.name == name for n in f.walk() for v in values_of(operands(n)))


def is_metadata(f: Function, name: str) -> bool:
    """Whether a tensor's metadata alone are read."""
    read = Reading(f)
    return _reads(f, name) == sum(bool(_metadata_use(read, n, name)) for n in f.walk())


def is_measured(f: Function, name: str) -> bool:
    """Whether a list's tensors are read in loops alone, and only their metadata (no device)."""
    loops = [
        n for n in f.walk()
        if n.target == "loop" and n.args[0] == "list" and n.args[1][0].name == name
    ]  # fmt: skip
    if any(n.target == "core.device" for n in f.walk()):
        return False
    return _reads(f, name) == len(loops) and all(
        is_metadata(f, n.blocks[-1].inputs[0].name) for n in loops
    )


def take_metadata(f: Function, name: str) -> dict[str, list[Node]] | None:
    """Replaces metadata reads of parameter `name` by parameters, when there is no other use of it.

    Returns:
        The new parameters with the nodes that each stands for; None when the tensor is needed.
    """
    if not is_metadata(f, name):
        return None
    read = Reading(f)
    taken: dict[str, list[Node]] = {}
    made: dict[str, Value] = {}
    instead: dict[Value, Value] = {}

    def visit(block: Block) -> None:
        for node in list(block.nodes):
            for b in node.blocks:
                visit(b)
            found = _metadata_use(read, node, name)
            if not found:
                continue
            suffix = "".join(f"_{a}".replace("-", "m") for a in node.args[1:])
            new = f"{name}_{node.target.removeprefix('core.')}{suffix}"
            if new not in made:
                made[new] = Value(f.next_id() + len(made), node.out.type, new)
                copy = Node(node.target, node.args, (Value(-1, node.out.type),))
                taken[new] = [*found[:-1], copy]
            for n in found[:-1]:
                block.nodes.remove(n)
            if node.out.name:
                node.target, node.args = "core.same", (made[new],)
            else:
                instead[node.out] = made[new]
                block.nodes.remove(node)

    visit(f)

    def put(a: Arg) -> Arg:
        if isinstance(a, tuple):
            return tuple(map(put, a))
        return instead.get(a, a) if isinstance(a, Value) else a

    for n in f.walk():
        n.args = put(n.args)
        for b in n.blocks:
            b.outputs = put(b.outputs)
    f.inputs = (*(v for v in f.inputs if v.name != name), *made.values())
    f.params = [p for p in f.params if p.name != name]
    f.params += [Param(n, v.type) for n, v in made.items() if isinstance(v.type, Type)]
    return taken
