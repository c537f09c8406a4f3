"""How programs call the entries: names, the functions and methods of a name, their arguments.

Owns which signatures a public name has, in which modules and on tensors. The build emits bindings
and stubs from it, scripts resolve their calls by it. Must not know C++.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from .._ir.types import BOOL, TENSOR, Param
from .model import Op


@dataclass
class Form:
    """One signature: an entry called plainly (with its out= form) or in place."""

    op: Op
    inplace: bool = False
    method: bool = False  # the tensor whose method it is comes first, wherever the entry has it
    order: str = ""  # names of the parameters that are given by position, else as the entry says
    front: Front | None = None  # of the first form of a function that has one

    @property
    def id(self) -> str:
        return self.op.uid + ("_inplace" if self.inplace else "_method" if self.method else "")

    @property
    def name(self) -> str:
        """The Python name of functions and methods."""
        return self.op.python_name + ("_" if self.inplace else "")

    @property
    def target(self) -> str:
        """The entry and its form, as graphs name them."""
        return self.op.inplace_uid if self.inplace else self.op.uid

    @property
    def params(self) -> list[Param]:
        """Parameters in the order in which the call gives them."""
        params = list(self.op.params)
        if self.order:
            by_name = {p.name: p for p in params}
            given = [by_name.pop(name) for name in self.order.split()]
            params = [Param(p.name, replace(p.type, or_number=False)) for p in given]
            params += by_name.values()
        if self.method:
            params.insert(0, params.pop(self_index(params)))
        return params

    @property
    def cpp(self) -> str:
        return self.op.name + ("_" if self.inplace else "")

    @property
    def has_out(self) -> bool:
        return self.op.has_out and not self.inplace

    @property
    def factory(self) -> bool:
        return bool(self.op.option("factory") or self.op.option("like_factory"))


@dataclass
class Front:
    """What the function of nn.functional takes, where that is not what its entry takes.

    `inplace_flag` adds `inplace=False`, which calls the in-place form; `flag=(name, entry)` a flag
    that calls another entry; `old_reduction=(i, j)` puts the arguments `size_average` and `reduce`
    of early versions at these places.
    """

    params: list[Param]
    chosen: Form | None = None  # what the flag calls

    @property
    def flag(self) -> str:
        return self.params[-1].name if self.chosen else ""


def front_of(op: Op, ops: Mapping[str, Op]) -> Front | None:
    """The front of an entry in nn.functional; `ops`: the table by name."""
    flag, old = op.option("flag"), op.option("old_reduction")
    if not (flag or op.option("inplace_flag")) and old is None:
        return None
    chosen = Form(ops[flag[1]]) if flag else Form(op, True) if old is None else None
    added = [Param(flag[0] if flag else "inplace", BOOL, ast.Constant(False))] if chosen else []
    params = [*op.params, *added]
    for at, name in zip(old or (), ("size_average", "reduce"), strict=False):
        params.insert(at, Param(name, BOOL.or_none(), ast.Constant(None)))
    return Front(params, chosen)


@dataclass(eq=False)
class Group:
    """A Python name with its overloads, as functions of some modules and as a method."""

    name: str
    suffix: str = ""  # tells functions of one name apart
    functions: list[Form] = field(default_factory=list)
    methods: list[Form] = field(default_factory=list)
    spaces: dict[str, None] = field(default_factory=dict)
    aliases: dict[str, None] = field(default_factory=dict)
    alias_methods: dict[str, None] = field(default_factory=dict)

    @property
    def front(self) -> Front | None:
        return self.functions[0].front if self.functions else None

    @property
    def id(self) -> str:
        return self.name + self.suffix


def self_index(params: Sequence[Param]) -> int:
    """Which parameter is the tensor of x.f(...): `input` or `self`, usually the first."""
    names = [p.name for p in params]
    return next((names.index(n) for n in ("self", "input") if n in names), 0)


def _one_tensor(op: Op) -> bool:
    return sum(p.type.is_tensor for p in op.params if p.required) == 1


def loose_tensors(op: Op) -> bool:
    """Several tensors, each of which may be a number, though not all of them."""
    tensors = op.tensor_params
    loose = len(tensors) > 1 and all(p.required and p.type.or_number for p in tensors)
    return loose and not op.option("numbers")


def groups(ops: Sequence[Op], by_name: Mapping[str, Op] | None = None) -> list[Group]:
    """Overload sets in order of first appearance; `by_name`: where flags find their entries."""
    found: dict[str, Group] = {}
    if by_name is None:
        by_name = {op.name: op for op in reversed(ops)}
    for op in ops:
        front = front_of(op, by_name)
        if front or op.name.startswith("functional_"):
            forms = [Form(op, front=front), *([front.chosen] if front and front.chosen else [])]
            own = Group(forms[0].name, "_functional", forms)
            own.spaces["nn.functional"] = None
            found[own.id] = own
            if not front or op.python_name != op.name:
                continue
        for form in (Form(op), Form(op, True)):
            if form.inplace and not op.has_inplace:
                continue
            g = found.setdefault(form.name, Group(form.name))
            if op.is_method:
                at = self_index(op.params)
                reorder = not form.inplace and op.params[at].type.is_tensor and at > 0
                g.methods.append(Form(op, method=True) if reorder else form)
            suffix = "_" if form.inplace else ""
            aliases = [str(a) for a in op.option("aliases", ())]
            if op.is_method:
                g.alias_methods.update({a + suffix: None for a in aliases if "." not in a})
            hidden = form.inplace and not (_one_tensor(op) or op.option("inplace_function"))
            if not op.option("function", True) or hidden:
                continue
            apart = form.name + "_functional" in found
            spaces = [s for s in op.namespaces if not (apart and s == "nn.functional")]
            if spaces or op.option("aliases"):
                g.functions.append(form)
                g.spaces.update(dict.fromkeys(spaces))
            g.aliases.update({a + suffix: None for a in aliases if not suffix or "." not in a})
    for g in found.values():
        g.functions, g.methods = _tensors_first(g.functions), _tensors_first(g.methods)
    return [g for g in found.values() if g.functions or g.methods]


def _tensors_first(forms: Sequence[Form]) -> list[Form]:
    """Overloads in order, but none after one that takes its tensor for a number (0-d ones pass)."""
    out: list[Form] = []
    for form in forms:
        at = next((i for i, before in enumerate(out) if _hides(before, form)), len(out))
        out.insert(at, form)
    return out


def _hides(a: Form, b: Form) -> bool:
    pairs = zip(a.params, b.params, strict=False)
    bases = ("Number", "int") if b.op.option("tensors_first") else ("Number",)
    return any(p.type.base in bases and q.type.required() == TENSOR for p, q in pairs)
