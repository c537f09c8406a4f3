"""Facts of bodies and rules: what each returned cotangent needs, what must be saved.

Pure functions over the IR. `slot_uses` finds which cotangents each variable serves, so that a rule
computes only what is wanted; `take_metadata` replaces uses of a tensor's shape or dtype by values
saved at forward, so that the tensor itself is not kept alive.
"""

from __future__ import annotations

from collections.abc import Iterable

from .._ir import ir
from .._ir.intrinsics import METADATA
from .._ir.types import BOOL, NONE, Type
from .model import Op

Slots = frozenset[int]
_CHANGES = ("append", "extend", "insert", "pop")


def changed_name(s: ir.Stmt) -> str:
    """Variable that a statement changes without assigning it ("" if none)."""
    if isinstance(s, ir.SetItem):
        return s.target.attr
    for e in s.exprs():
        for x in e.walk():
            if x.op == "core" and x.attr in _CHANGES and x.args[0].op == "var":
                return x.args[0].attr
    return ""


def assigned_names(s: ir.Stmt) -> tuple[str, ...]:
    if isinstance(s, ir.Let):
        return (s.name,)
    if isinstance(s, ir.Unpack):
        return tuple(n for n in s.names if n)
    return ()


def used_names(s: ir.Stmt) -> set[str]:
    return {x.attr for e in s.exprs() for x in e.walk() if x.op == "var"}


def makes_alias(f: ir.Function) -> bool:
    """The body makes its view itself, by `strided` or `alias_of`."""
    return any(
        x.op == "core" and x.attr in ("strided", "alias_of")
        for s in ir.statements(f.body)
        for e in s.exprs()
        for x in e.walk()
    )


def body_returns(op: Op) -> Type:
    """Type that the body of an entry returns: rules that only check return nothing."""
    only_checks = op.option("dynamic") or op.option("inplace_kernel") or op.mutated_lists
    return NONE if op.kind == "structured" and only_checks else op.returns


def tensor_slots(op: Op) -> list[int]:
    """Positions of the tensor parameters."""
    return [
        i for i, p in enumerate(op.params) if p.type.base in ("Tensor", "Tensors", "OptTensors")
    ]


def _names(e: ir.Expr) -> set[str]:
    return {x.attr for x in e.walk() if x.op == "var"}


def _return_uses(s: ir.Return, slots: Slots) -> dict[str, Slots]:
    assert s.value is not None
    if s.value.op == "tuple" and len(s.value.args) == len(slots):
        out: dict[str, Slots] = {}
        for i, e in enumerate(s.value.args):
            for name in _names(e):
                out[name] = out.get(name, frozenset()) | {i}
        return out
    return dict.fromkeys(_names(s.value), slots)


class SlotUses:
    """Which of `n` cotangents every variable and statement of a rule serves."""

    def __init__(self, f: ir.Function, n: int) -> None:
        self.all: Slots = frozenset(range(n))
        self.vars: dict[str, Slots] = {}
        self.stmts: dict[int, Slots] = {}
        self.changed = True
        while self.changed:
            self.changed = False
            self._block(f.body)

    def _use(self, names: Iterable[str], slots: Slots) -> None:
        for name in names:
            have = self.vars.get(name, frozenset())
            if not slots <= have:
                self.vars[name] = have | slots
                self.changed = True

    def _block(self, block: list[ir.Stmt]) -> Slots:
        total: Slots = frozenset()
        for s in reversed(block):
            self.stmts[id(s)] = self._stmt(s)
            total |= self.stmts[id(s)]
        return total

    def _stmt(self, s: ir.Stmt) -> Slots:
        if isinstance(s, ir.Return):
            for name, slots in _return_uses(s, self.all).items():
                self._use([name], slots)
            return self.all
        if isinstance(s, (ir.Check, ir.Jump)):
            slots = self.all
        elif s.blocks():
            slots = frozenset().union(*(self._block(b) for b in s.blocks()))
        else:
            targets = [*assigned_names(s), *filter(None, [changed_name(s)])]
            if isinstance(s, ir.Do) and not changed_name(s):
                targets = [x.attr for x in s.value.args[0].walk() if x.op == "var"]
            slots = frozenset().union(*(self.vars.get(n, frozenset()) for n in targets))
        self._use(used_names(s), slots)
        return slots


def _metadata_use(e: ir.Expr, name: str) -> bool:
    """`e` reads metadata of variable `name` (or tests it for None)."""
    if e.op not in ("core", "is_none") or not e.args:
        return False
    if e.op == "core" and (e.attr not in METADATA or any(a.op != "const" for a in e.args[1:])):
        return False
    x = e.args[0]
    if x.op == "cast" and x.attr == "unwrap":
        x = x.args[0]
    return x.op == "var" and x.attr == name


def _count(f: ir.Function, name: str) -> tuple[int, int]:
    uses = metadata = 0
    for s in ir.statements(f.body):
        for e in s.exprs():
            for x in e.walk():
                uses += x.op == "var" and x.attr == name
                metadata += _metadata_use(x, name)
    return uses, metadata


def is_metadata(f: ir.Function, name: str) -> bool:
    """Whether a tensor's metadata alone are read."""
    uses, metadata = _count(f, name)
    return uses == metadata


def is_measured(f: ir.Function, name: str) -> bool:
    """Whether a list's tensors are read in loops alone, and only their metadata (no device)."""
    loops = [
        s
        for s in ir.statements(f.body)
        if isinstance(s, ir.For) and s.over == "list" and _names(s.args[0]) == {name}
    ]
    nodes = (x for s in ir.statements(f.body) for e in s.exprs() for x in e.walk())
    if any(x.op == "core" and x.attr == "device" for x in nodes):
        return False
    uses, _ = _count(f, name)
    return uses == len(loops) and all(is_metadata(f, s.targets[0]) for s in loops)


def take_metadata(f: ir.Function, name: str) -> dict[str, ir.Expr] | None:
    """Replaces metadata reads of `name` by variables, when there is no other use of it.

    Returns:
        The new variables with the expression that each stands for; None when the tensor is needed.
    """
    if not is_metadata(f, name):
        return None
    taken: dict[str, ir.Expr] = {}

    def replace(e: ir.Expr) -> ir.Expr:
        if not _metadata_use(e, name):
            e.args = tuple(replace(a) for a in e.args)
            return e
        what = "is_none" if e.op == "is_none" else str(e.attr)
        suffix = "".join(f"_{a.attr}".replace("-", "m") for a in e.args[1:])
        new = f"{name}_{what}{suffix}"
        taken.setdefault(new, e)
        return ir.Expr("var", (), BOOL if e.op == "is_none" else e.type, new, e.line)

    for s in ir.statements(f.body):
        for key, value in vars(s).items():
            if isinstance(value, ir.Expr):
                setattr(s, key, replace(value))
            elif key == "args":
                s.args = tuple(replace(a) for a in value)  # type: ignore[attr-defined]
    return taken


def metadata_type(e: ir.Expr) -> Type:
    return BOOL if e.op == "is_none" else e.type
