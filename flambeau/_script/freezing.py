"""`jit.freeze`: a scripted module as one function of constants; passes over what comes out.

Owns which attributes become constants, the module that holds them, and the passes: dropout that does
nothing goes, batch normalisation goes into the convolution or linear layer before it, operations of
constants are done once. Each is a function from a function to a function. Writing calls out is
`inlining`'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import flambeau
from flambeau import _C

from .._ir.errors import CompileError
from .._ir.graph import Arg, Block, Function, Node, Value, renumbered
from .._ir.types import BOOL, TENSOR, Type
from .inlining import Inliner, Module, _Copy, is_literal
from .machine import CHANGES
from .objects import Program, RecursiveScriptModule
from .unit import Class, Unit

_DROPOUTS = (
    "dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout", "dropout1d",
    "dropout2d", "dropout3d",
)  # fmt: skip
_CONVOLUTIONS = ("conv1d", "conv2d", "conv3d")
_SETS = ("core.setattr", "core.set_item", "core.update_item")
#: operations that are done once where all they take is constant
_PURE = (
    "add sub mul div neg abs exp log sqrt rsqrt reciprocal sigmoid tanh relu softmax t transpose "
    "permute reshape view flatten unsqueeze squeeze expand mm matmul addmm sum mean"
).split()  # fmt: skip


class _Freezer(Inliner):
    """Makes functions for one tree of modules."""

    def __init__(self, root: RecursiveScriptModule, kept: set[str]) -> None:
        super().__init__(root._script_program.unit)
        self.root, self.kept = root, kept
        self.values: dict[str, Any] = {}
        self.record = Class(root._script_record.name, "module", {"training": BOOL})
        self.self_type = self.record.type
        nodes = [n for f in self.unit.functions.values() for n in f.walk()]
        #: names of attributes that a script sets: they stay attributes
        self.assigned = {str(n.args[1]) for n in nodes if n.target == "core.setattr"}
        self._names: dict[Any, str] = {}

    def _place(self, owner: Module, name: str, x: Any, t: Type) -> str:
        """The attribute of the frozen module for an attribute of one of its modules."""
        tensor = isinstance(x, flambeau.Tensor)
        fixed = tensor and name not in self.assigned
        key = id(x) if fixed else (id(owner.module), name)
        if key not in self._names:
            full = f"{owner.path}.{name}".lstrip(".")
            label = full.replace(".", "_")
            while label in self.values or label == "training":
                label += "_"
            self._names[key] = label
            self.values[label] = x.detach() if fixed else x
            self.record.attributes[label] = t
        return self._names[key]

    def attribute(self, owner: Module, name: str, copy: _Copy, node: Node) -> Arg:
        m = owner.module
        full = f"{owner.path}.{name}".lstrip(".")
        child = m._modules.get(name)
        if child is not None:
            return Module(child, full)
        x = m._parameters.get(name, m._buffers.get(name, vars(m).get(name)))
        if is_literal(x) and name not in self.assigned and full not in self.kept:
            return x
        t = node.outs[0].type
        assert isinstance(t, Type)
        made = copy.fresh(t, f"{name}_in{copy.top.count}")
        label = self._place(owner, name, x, m._script_record.attributes.get(name, t))
        copy.pending = [Node("core.getattr", (copy.self_value, label), (made,), node.where)]
        return made

    def store(self, owner: Module, name: str, value: Arg, copy: _Copy, node: Node) -> None:
        m = owner.module
        t = m._script_record.attributes[name]
        x = m._parameters.get(name, m._buffers.get(name, vars(m).get(name)))
        label = self._place(owner, name, x, t)
        copy.pending = [Node("core.setattr", (copy.self_value, label, value), (), node.where)]

    def specialised(self, name: str, modules: dict[int, Module], label: str = "") -> str:
        for m in modules.values():
            if not isinstance(m.module, RecursiveScriptModule):
                raise CompileError(
                    f"{type(m.module).__name__} runs as it is, without a script to freeze", ""
                )
        return super().specialised(name, modules, label)


def freeze(
    m: RecursiveScriptModule, preserved: Iterable[str], numerics: bool
) -> RecursiveScriptModule:
    """A module of the same values whose attributes are constants, but for those that are kept."""
    record, unit = m._script_record, m._script_program.unit
    kept = set(preserved)
    methods = [n for n in record.methods if n == "forward" or n in kept]
    known = {*record.methods, *record.attributes, *m._modules, *m.__dict__}
    for name in kept:
        if name.partition(".")[0] not in known:
            raise ValueError(
                f"jit.freeze: preserved_attrs names {name!r}, which {record.name} has not"
            )
        if name in m._modules:
            raise ValueError(f"jit.freeze: {name!r} is a module; keep its attributes by name")
    freezer = _Freezer(m, kept)
    for name, c in unit.classes.items():
        if c.kind not in ("module", "library"):
            freezer.out.classes[name] = c
            for f in c.methods.values():
                freezer.specialised(f, {})
            new = f"{name}.__new__"
            if new in unit.functions:
                freezer.specialised(new, {})
    root = Module(m, "")
    for name in methods:
        function = record.methods[name]
        freezer.record.methods[name] = freezer.specialised(function, {0: root}, function)
    for name in kept - set(methods):
        if name in record.attributes or name in vars(m):
            x = m._parameters.get(name, m._buffers.get(name, vars(m).get(name)))
            t = record.attributes.get(name)
            if t is not None and name not in freezer.values:
                freezer.record.attributes[name] = t
            freezer.values.setdefault(name, x)
    freezer.out.classes[freezer.record.name] = freezer.record
    return _made(m, freezer.out, freezer.record, freezer.values, numerics)


def _made(
    m: RecursiveScriptModule, unit: Unit, record: Class, values: dict[str, Any], numerics: bool
) -> RecursiveScriptModule:
    for name, f in unit.functions.items():
        unit.functions[name] = optimised(f, record, values, numerics)
    used = {
        str(n.args[1]) for f in unit.functions.values() for n in f.walk()
        if n.target in ("core.getattr", "core.setattr")
    }  # fmt: skip
    old = m._script_program
    python = {n: c for n, c in old.python.items() if n in unit.classes}
    program = Program(unit, python, old.hosts, old.errors, old.trusted)
    program.python = {**python, record.name: old.python[record.name]}
    out = RecursiveScriptModule(program, record)
    for name, x in values.items():
        if name in used or name not in record.attributes or name in vars(m):
            out.__dict__[name] = x
        else:
            del record.attributes[name]
    out.__dict__["training"] = False
    return out


def run_frozen_optimizations(m: RecursiveScriptModule, numerics: bool) -> None:
    """Runs the passes over a frozen module, in place."""
    record = m._script_record
    values = {n: vars(m)[n] for n in record.attributes if n in vars(m)}
    made = _made(m, m._script_program.unit, record, values, numerics)
    m.__dict__.pop("_script_call", None)
    m.__dict__.update(made.__dict__)


# -- passes ---------------------------------------------------------------------------------------


def optimised(f: Function, record: Class, values: dict[str, Any], numerics: bool) -> Function:
    """A function of a frozen module after all passes."""
    quiet = not any(
        n.target.endswith("_") or n.target in (*CHANGES, *_SETS) or n.target.startswith("host.") for n in f.walk()
    )  # fmt: skip
    passes = _Passes(f, record, values)
    passes.dropouts(f)
    if numerics:
        passes.normalisations(f)
    if quiet:
        passes.constants(f)
    passes.unused(f)
    return renumbered(f)


class _Passes:
    """Passes over one function; `values` are the attributes of the module, which get new ones."""

    def __init__(self, f: Function, record: Class, values: dict[str, Any]) -> None:
        self.f, self.record, self.values = f, record, values
        self.ids = f.next_id()
        self.fixed: dict[Value, Any] = {}  # values that are constant tensors
        sets = {str(n.args[1]) for n in f.walk() if n.target == "core.setattr"}
        for n in f.walk():
            if n.target == "core.getattr" and self._is_self(n.args[0]):
                x = values.get(str(n.args[1]))
                if isinstance(x, flambeau.Tensor) and n.args[1] not in sets:
                    self.fixed[n.out] = x

    def _is_self(self, x: Arg) -> bool:
        return bool(self.f.inputs) and x is self.f.inputs[0] and x.type == self.record.type

    def fresh(self, t: Type = TENSOR, name: str = "") -> Value:
        self.ids += 1
        return Value(self.ids, t, name or f"folded_{self.ids}")

    def blocks(self, b: Block) -> Iterable[Block]:
        yield b
        for n in b.nodes:
            for inner in n.blocks:
                yield from self.blocks(inner)

    def constant(self, x: flambeau.Tensor, like: str, node: Node) -> Node:
        """A node that reads a new constant."""
        name, n = f"{like}_folded", 0
        while name in self.values:
            n += 1
            name = f"{like}_folded{n}"
        self.values[name] = x
        self.record.attributes[name] = TENSOR
        made = Node("core.getattr", (self.f.inputs[0], name), (self.fresh(),), node.where)
        self.fixed[made.out] = x
        return made

    def replace(self, old: Value, new: Arg) -> None:
        if isinstance(new, Value) and not new.name:
            new.name = f"kept_{new.id}"

        def put(arg: Arg) -> Arg:
            if arg is old:
                return new
            return tuple(map(put, arg)) if isinstance(arg, tuple) else arg

        for b in self.blocks(self.f):
            b.outputs = put(b.outputs)
            for n in b.nodes:
                n.args = put(n.args)

    def dropouts(self, f: Function) -> None:
        """Dropout outside of training gives what it takes."""
        for b in list(self.blocks(f)):
            for n in list(b.nodes):
                if n.target in _DROPOUTS and n.args[2] is False and not self._joined(n.out):
                    self.replace(n.out, n.args[0])
                    b.nodes.remove(n)

    def _joined(self, v: Value) -> bool:
        """It is one of several versions of a variable, which blocks join."""
        return bool(v.name) and sum(x.name == v.name for x in self.f.values()) > 1

    def known(self, x: Arg) -> bool:
        return x is None or (isinstance(x, Value) and x in self.fixed)

    def tensor(self, x: Arg) -> Any:
        return None if x is None else self.fixed[x]

    def normalisations(self, f: Function) -> None:
        """batch_norm(conv(x)) is a convolution with other weights; so for a linear layer of rows."""
        for b in list(self.blocks(f)):
            made = {n.outs[0]: n for n in b.nodes if len(n.outs) == 1}
            uses = f.uses()
            for n in list(b.nodes):
                if n.target != "batch_norm" or n.args[5] is not False:
                    continue
                x, mean, var, weight, bias = n.args[:5]
                before = made.get(x)
                if before is None or before.target not in (*_CONVOLUTIONS, "linear"):
                    continue
                others = [u for u in uses.get(x, []) if u is not n]
                if (
                    any(u.target != "lib.Tensor.dim" for u in others)
                    or mean is None
                    or var is None
                    or self._joined(n.out)
                ):
                    continue
                if any(x in _values(q.outputs) for q in self.blocks(f)):
                    continue
                if not all(map(self.known, (*before.args[1:3], mean, var, weight, bias))):
                    continue
                if before.args[1] is None:
                    continue
                self._fold(b, before, n)

    def _fold(self, b: Block, before: Node, n: Node) -> None:
        _, mean, var, weight, bias = n.args[:5]
        w, old = self.tensor(before.args[1]), self.tensor(before.args[2])
        mean, var = self.tensor(mean), self.tensor(var)
        scale = (var + n.args[7]).rsqrt()
        if weight is not None:
            scale = scale * self.tensor(weight)
        shift = -mean if old is None else old - mean
        shift = shift * scale
        if bias is not None:
            shift = shift + self.tensor(bias)
        w2 = (w * scale.reshape([-1] + [1] * (w.dim() - 1))).to(w.dtype)
        at = b.nodes.index(before)
        reads = [self.constant(w2, "weight", n), self.constant(shift.to(w.dtype), "bias", n)]
        args = (before.args[0], reads[0].out, reads[1].out, *before.args[3:])
        if before.target != "linear":
            folded = Node(before.target, args, before.outs, n.where, n.grad)
            b.nodes[at : at + 1] = [*reads, folded]
            b.nodes.remove(n)
            self.replace(n.out, before.out)
            return
        # Channels of what is not rows are another dimension.
        rank, two = self.fresh(Type("int")), self.fresh(BOOL)
        yes, no = self.fresh(), self.fresh()
        linear = Node("linear", args, (yes,), n.where, n.grad)
        first = self.fresh()
        plain = Node("linear", before.args, (first,), before.where, before.grad)
        norm = Node("batch_norm", (first, *n.args[1:]), (no,), n.where, n.grad)
        b.nodes.remove(n)
        # What they read is there before the layer.
        early = [m for m in b.nodes if set(m.outs) & set(norm.inputs)]
        for m in early:
            b.nodes.remove(m)
        if isinstance(args[0], Value) and not args[0].name:
            args[0].name = f"rows_{args[0].id}"
        out = before.out
        self.replace(n.out, out)
        if not out.name:
            out.name = f"normal_{out.id}"
        yes.name = no.name = out.name
        tests = [
            Node("lib.Tensor.dim", (args[0],), (rank,), n.where),
            Node("core.eq", (rank, 2), (two,), n.where),
        ]
        chosen = Node(
            "if", (two,), (out,), n.where, True,
            (Block((), [linear], (yes,)), Block((), [plain, norm], (no,))),
        )  # fmt: skip
        at = b.nodes.index(before)
        b.nodes[at : at + 1] = [*early, *reads, *tests, chosen]

    def constants(self, f: Function) -> None:
        """Operations of constants alone are done once."""
        for b in list(self.blocks(f)):
            for n in list(b.nodes):
                values = n.inputs
                if n.target not in _PURE or not values or len(n.outs) != 1:
                    continue
                if not all(v in self.fixed for v in values) or self._joined(n.out):
                    continue
                args = _filled(n.args, self.fixed)
                with flambeau.no_grad():
                    (made,) = _C._call_entry(n.target, args)
                if not isinstance(made, flambeau.Tensor):
                    continue
                read = self.constant(made.contiguous(), n.target, n)
                self.replace(n.out, read.out)
                b.nodes[b.nodes.index(n)] = read

    def unused(self, f: Function) -> None:
        """What nothing takes, and has no effect, goes."""
        while True:
            taken = {v for b in self.blocks(f) for v in _values(b.outputs)}
            taken |= {v for n in f.walk() for v in n.inputs}
            gone = 0
            for b in list(self.blocks(f)):
                kept = [n for n in b.nodes if not _harmless(n) or taken & set(n.outs)]
                gone += len(b.nodes) - len(kept)
                b.nodes[:] = kept
            if not gone:
                return


def _filled(arg: Arg, fixed: dict[Value, Any]) -> Any:
    if isinstance(arg, Value):
        return fixed[arg]
    return tuple(_filled(a, fixed) for a in arg) if isinstance(arg, tuple) else arg


_HARMLESS = (
    "core.getattr", "core.same", "core.list", "core.filled", "core.number", "core.wrap",
    "lib.Tensor.dim",
)  # fmt: skip


def _harmless(n: Node) -> bool:
    return n.target in _HARMLESS or n.target in _PURE


def _values(arg: Arg) -> list[Value]:
    if isinstance(arg, Value):
        return [arg]
    return [v for a in arg for v in _values(a)] if isinstance(arg, tuple) else []
