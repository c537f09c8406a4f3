"""`jit.trace`: what a function did with example tensors, as a function of a unit.

Owns the recording: each call of the table runs on data and becomes a node; sizes that the program
asks for are asked for again in every run; what it decides by values is a constant, and is warned
of. Tensors that the program brings along are weights of the module that is traced, or constants.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flambeau
from flambeau import _C
from flambeau.nn import Module

from .._ir.graph import Block, Function, Node, Value, renumbered
from .._ir.graph_run import call_in_place
from .._ir.symbols import ShapeEnv, Symbol, _compare
from .._ir.symexpr import Atom, Expr
from .._ir.symscalar import FloatExpr, SymFloat, SymInt
from .._ir.targets import Target
from .._ir.types import BOOL, FLOAT, INT, STR, TENSOR, Param, Type, list_of, tuple_of
from .._ir.where import Where
from .._table.model import Op
from .._trace.fake import Fake
from .._trace.record import Recorder
from .._trace.session import Session, traced_by
from .._trace.tensor import FakeTensor
from .annotations import COMPLEX, dict_of, type_of_value
from .calls import default_value
from .expressions import SLICE
from .made import qualified
from .merging import merged
from .objects import Program, RecursiveScriptModule, ScriptFunction, adopted_module
from .runtime import TRACERS
from .unit import Class, Unit


class TracerWarning(Warning):
    """The program decided by a value: the trace has what it was for the example."""


class TracingCheckError(Exception):
    """A trace gives other values than the program it was made of."""


class _Env(ShapeEnv):
    """Sizes of the example: what is decided by them is a constant of the trace."""

    quiet = 0

    def size(self, n: int) -> SymInt:
        return self.declare(Symbol(f"s{len(self.symbols)}", n, 0, float("inf"), None))

    def wrap(self, e: Expr) -> SymInt | int:
        return SymInt(e, self) if e.constant is None else e.constant

    def decide(self, relation: str, e: Expr) -> bool:
        if e.constant is not None:
            return _compare(relation, e.constant)
        self.warn("a comparison of sizes")
        return _compare(relation, self.hint(e))

    def specialise(self, e: Expr) -> int:
        self.warn("a size used as a Python integer")
        return self.hint(e)

    def warn(self, what: str) -> None:
        """The line of the program, and what of it will not change."""
        if self.quiet or _inside():
            return
        where = self.locate()
        file, line = ("<trace>", 0) if where is None else (where.file, where.line)
        text = (
            f"{what} might cause the trace to be incorrect: the trace has the value of the example "
            "as a constant, and will not follow other values"
        )
        warnings.warn_explicit(text, TracerWarning, file, line)


def _inside() -> bool:
    """The package itself decides: its checks hold for any size that it takes."""
    frame = sys._getframe(2)
    asked = ""  # the outermost function of ours: an operator of sizes asks for itself
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_OWN):
            return file.startswith(_PACKAGE) or asked in _ARITHMETIC
        asked = frame.f_code.co_name if file.endswith("symscalar.py") else ""
        frame = frame.f_back  # type: ignore[assignment]
    return False


#: sizes divided by sizes ask whether those are zero: functions of `_ir.symscalar`
_ARITHMETIC = ("forward", "<lambda>")
_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
_OWN = tuple(os.path.join(_PACKAGE, part) + os.sep for part in ("_ir", "_trace", "_script"))


class _Recorder(Recorder):
    """Runs calls on data and puts them down."""

    def __init__(self) -> None:
        self.sizes = _Env()
        super().__init__(self.sizes)
        self.nodes: list[Node] = []
        self.count = 0
        self.numbers: dict[str, Value] = {}  # symbols as values
        self.symbols: dict[str, tuple[Fake, int]] = {}
        self.outer_grad = flambeau.is_grad_enabled()
        self.owner: _Owner

    # -- values -----------------------------------------------------------------------------------

    def value(self, t: Type, name: str = "") -> Value:
        self.count += 1
        return Value(self.count, t, name)

    def fake_of(self, data: Any, value: Value) -> Fake:
        """What stands for a tensor of the run."""
        shape = []
        fake = Fake(data.dtype, (), (), data.device)
        for d, n in enumerate(data.shape):
            size = self.sizes.size(int(n))
            self.symbols[repr(size)] = (fake, d)
            shape.append(size)
        fake.shape, fake.strides = tuple(shape), tuple(data.stride())
        fake.value, fake.requires_grad = value, data.requires_grad
        fake.data = data  # type: ignore[attr-defined]
        return fake

    def read(self, x: Fake) -> Any:
        if x.wrapped:
            return self.arg(x.number)
        if x.value is None:
            raise RuntimeError("a tensor of another trace was used in this one")
        return x.value

    def arg(self, x: Any) -> Any:
        if isinstance(x, (list, tuple)):
            return self.listed(x)
        if isinstance(x, SymInt):
            return self.number(x.expr)
        if isinstance(x, SymFloat):
            return self.real(x.expr)
        if isinstance(x, flambeau.ScriptObject):
            return self.owner.native(x, self)
        return super().arg(x)

    def listed(self, xs: Sequence[Any], t: Type | None = None) -> Value:
        """A node that makes the list."""
        items = tuple(self.arg(x) for x in xs)
        kinds = {_type_of(a) for a in items}
        item = kinds.pop() if len(kinds) == 1 else FLOAT if kinds else INT
        return self.put("core.list", items, t or list_of(item))

    def put(self, target: str, args: tuple[Any, ...], t: Type) -> Value:
        out = self.value(t)
        self.node(target, args, (out,))
        return out

    def node(self, target: str, args: tuple[Any, ...], outs: tuple[Value, ...]) -> None:
        where = self.sizes.locate() or Where("", 0, "trace")
        node = Node(target, args, outs, where)
        calls = not target.startswith("core.")
        if calls and self.outer_grad and not flambeau.is_grad_enabled():
            inner = tuple(self.value(v.type, v.name) for v in outs)  # type: ignore[arg-type]
            block = Block((), [Node(target, args, inner, where)], inner)
            node = Node("with", ("no_grad", ("",)), outs, where, blocks=(block,))
        self.nodes.append(node)

    def number(self, e: Expr) -> Any:
        """An expression of sizes as nodes."""
        if e.constant is not None:
            return e.constant
        total: Any = None
        for monomial, c in e.terms:
            term: Any = None
            for atom, n in monomial:
                for _ in range(n):
                    x = self.atom(atom)
                    term = x if term is None else self.put("core.mul", (term, x), INT)
            if term is None:
                term = c
            elif c != 1:
                term = self.put("core.mul", (term, c), INT)
            total = term if total is None else self.put("core.add", (total, term), INT)
        return total

    def atom(self, a: Atom) -> Any:
        if a.kind == "sym":
            found = self.numbers.get(a.name)
            if found is None:
                fake, d = self.symbols[a.name]
                found = self.put("lib.Tensor.size_1", (fake.value, d), INT)
                self.numbers[a.name] = found
            return found
        names = {"div": "core.floordiv", "mod": "core.mod", "min": "core.min", "max": "core.max"}
        return self.put(names[a.kind], tuple(map(self.number, a.args)), INT)

    def real(self, e: Any) -> Any:
        """An expression of floats as nodes."""
        if isinstance(e, Expr):
            return self.number(e)
        if not isinstance(e, FloatExpr):
            return e
        args = tuple(map(self.real, e.args))
        names = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "**": "pow",
                 "float": "float_of"}  # fmt: skip
        return self.put(f"core.{names.get(e.op, f'math_{e.op}')}", args, FLOAT)

    # -- calls ------------------------------------------------------------------------------------

    def call(self, op: Op, inplace: bool, args: list[Any]) -> Any:
        before = [self.arg(a) for a in args]
        given = [self.data(a) for a in args]
        target = op.inplace_uid if inplace else op.uid
        if inplace:
            made: Any = (call_in_place(Target(op, "inplace"), tuple(given)),)
        else:
            made = _C._call_entry(op.uid, tuple(given))
        many = op.returns.base == "Tuple" and not inplace
        if not many:
            made = made[0] if made else None
        return self.results(target, tuple(before), op.returns if not inplace else TENSOR, made,
                            args)  # fmt: skip

    def results(
        self, target: str, before: tuple[Any, ...], t: Type, made: Any, args: Sequence[Any]
    ) -> Any:
        """The node of a call that gave these results; what stands for them."""
        if made is None:
            self.node(target, before, ())
            return None
        if isinstance(made, flambeau.Tensor):
            value = self.value(TENSOR)
            self.node(target, before, (value,))
            return self.result(made, value, args)
        if t.is_list:
            whole = self.put(target, before, list_of(TENSOR))
            out = []
            for i, x in enumerate(made):
                value = self.put("core.getitem", (whole, i), TENSOR)
                out.append(self.result(x, value, args))
            return out
        if isinstance(made, tuple):
            values = tuple(self.value(item) for item in t.items)
            self.node(target, before, values)
            return tuple(
                self.result(x, v, args) if isinstance(x, flambeau.Tensor) else x
                for x, v in zip(made, values, strict=True)
            )
        return made

    def result(self, data: Any, value: Value, args: Sequence[Any]) -> Fake:
        for a in args:  # the very tensor that came, changed in place
            if isinstance(a, Fake) and getattr(a, "data", None) is data:
                a.value = value
                return a
        return self.fake_of(data, value)

    def data(self, x: Any) -> Any:
        """An argument as the run has it."""
        if isinstance(x, Fake):
            return x.number if x.wrapped else x.data  # type: ignore[attr-defined]
        if isinstance(x, (list, tuple)):
            return tuple(map(self.data, x))
        if isinstance(x, SymInt):
            return x.hint
        if isinstance(x, SymFloat):
            return x.expr.evaluate(self.sizes.hints())
        return x


def _type_of(a: Any) -> Type:
    if isinstance(a, Value):
        assert isinstance(a.type, Type)
        return a.type
    found = type_of_value(a, lambda _: None)
    return found if found is not None else INT


class _Session(Session):
    """Calls of one thread, run and recorded."""

    recorder: _Recorder

    def __init__(self, recorder: _Recorder, owner: _Owner) -> None:
        super().__init__(recorder)
        self.owner, self.thread = owner, threading.get_ident()

    def attach(self, x: Any) -> FakeTensor:
        if id(x) not in self.of_tensor:
            self.attached.append(x)
            value = self.owner.value_of(x, self.recorder)
            self.of_tensor[id(x)] = self.shown(self.recorder.fake_of(x, value))
        return self.of_tensor[id(x)]

    def __call__(self, name: str, target: str | None, named: dict[str, Any]) -> Any:
        native = _NATIVE.get(name) if target is None else None
        self.recorder.sizes.quiet += 1  # what a call does with its arguments is not the program's
        try:
            if native is None:
                return super().__call__(name, target, named)
            with traced_by(None):
                return native(self, *named.values())
        finally:
            self.recorder.sizes.quiet -= 1

    def seen(self, x: FakeTensor, what: str) -> Any:
        """The tensor of the run, where the program asks for values."""
        self.recorder.sizes.warn(f"{what} that the program reads")
        return x.fake.data  # type: ignore[attr-defined]

    def script_call(self, f: ScriptFunction, args: Sequence[Any], named: dict[str, Any]) -> Any:
        """A call of a script: it runs, and is one node."""
        params = f._program.unit.functions[f._function_name].params
        given = [*args]
        for p in params[len(args) :]:
            if p.name in named:
                given.append(named[p.name])
            elif p.default is not None:
                given.append(default_value(p.default))
        with traced_by(None):
            return self._script_call(f, [*given, *f._constants])

    def _script_call(self, f: ScriptFunction, args: Sequence[Any]) -> Any:
        recorder = self.recorder
        name = f._function_name
        self.owner.unit.functions.update(f._program.unit.functions)
        self.owner.unit.classes.update(f._program.unit.classes)
        self.owner.python.update(f._program.python)
        self.owner.trusted = self.owner.trusted and f._program.trusted
        full = [self.argument(a) for a in args]
        made = f._program.entry(name)(*(self.plain(a) for a in args))
        returns = f._program.unit.functions[name].returns
        out = recorder.put(f"fn.{name}", tuple(full), returns)
        return self.unpacked(made, out, returns)

    def module_call(self, m: Any, args: Sequence[Any], named: dict[str, Any]) -> Any:
        """A call of a submodule that is a script."""
        path = self.owner.scripts.get(id(m))
        if path is None:
            raise RuntimeError("jit.trace: a scripted module that is no submodule was called")
        with traced_by(None):
            record = self.owner.classes[".".join(path)]
            name = record.methods["forward"]
            f = self.owner.unit.functions[name]
            given = [*args]
            for p in f.params[1 + len(args) :]:
                given.append(named[p.name] if p.name in named else default_value(p.default))  # type: ignore[arg-type]
            owner = self.owner.along(path, self.recorder)
            full = [self.argument(a) for a in given]
            made = m._script_forward(m, *(self.plain(a) for a in given))
            out = self.recorder.put(f"fn.{name}", (owner, *full), f.returns)
            return self.unpacked(made, out, f.returns)

    def argument(self, x: Any) -> Any:
        if isinstance(x, (list, tuple)):
            items = tuple(map(self.argument, x))
            kinds = tuple(map(_type_of, items))
            if isinstance(x, tuple):
                return self.recorder.put("core.tuple", items, tuple_of(*kinds))
            return self.recorder.put("core.list", items, list_of(kinds[0] if kinds else TENSOR))
        if isinstance(x, flambeau.Tensor):
            return self.recorder.read(self.fake(x))
        return self.recorder.arg(x)

    def plain(self, x: Any) -> Any:
        if isinstance(x, flambeau.Tensor):
            return self.fake(x).data  # type: ignore[attr-defined]
        if isinstance(x, (list, tuple)):
            return type(x)(map(self.plain, x))
        return self.recorder.data(x)

    def unpacked(self, made: Any, value: Value, t: Type) -> Any:
        """A result with values inside, item by item."""
        recorder = self.recorder
        if isinstance(made, flambeau.Tensor):
            return self.shown(recorder.fake_of(made, value))
        if isinstance(made, tuple):
            return tuple(
                self.unpacked(x, recorder.put("core.part", (value, i), m), m)
                for i, (x, m) in enumerate(zip(made, t.items, strict=True))
            )
        if isinstance(made, list):
            item = t.element
            return [
                self.unpacked(x, recorder.put("core.getitem", (value, i), item), item)
                for i, x in enumerate(made)
            ]
        return made


def _key(session: _Session, key: Any) -> list[Any]:
    recorder = session.recorder
    parts: list[Any] = []
    for k in key if isinstance(key, tuple) else (key,):
        if isinstance(k, slice):
            ends = tuple(recorder.arg(e) for e in (k.start, k.stop, k.step))
            parts.append(recorder.put("core.slice", ends, SLICE))
        elif k is Ellipsis:
            parts.append(recorder.put("core.ellipsis", (), Type("Ellipsis")))
        else:
            parts.append(session.argument(k))
    return parts


def _plain_key(session: _Session, key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(_plain_key(session, k) for k in key)
    if isinstance(key, slice):
        ends = (session.plain(e) for e in (key.start, key.stop, key.step))
        return slice(*ends)
    return key if key is Ellipsis else session.plain(key)


def _get_item(session: _Session, x: Any, key: Any) -> Any:
    made = session.plain(x)[_plain_key(session, key)]
    value = session.recorder.put(
        "core.get_item", (session.argument(x), *_key(session, key)), TENSOR
    )
    return session.shown(session.recorder.fake_of(made, value))


def _set_item(session: _Session, x: Any, key: Any, new: Any) -> None:
    args = (session.argument(x), session.argument(new), *_key(session, key))
    session.recorder.node("core.set_item", args, ())
    session.plain(x)[_plain_key(session, key)] = session.plain(new)


def _detach(session: _Session, x: Any) -> Any:
    value = session.recorder.put("lib.Tensor.detach", (session.argument(x),), TENSOR)
    return session.shown(session.recorder.fake_of(session.plain(x).detach(), value))


_NATIVE: dict[str, Callable[..., Any]] = {
    "__getitem__": _get_item, "__setitem__": _set_item, "detach": _detach,
}  # fmt: skip


# -- the module or function that is traced --------------------------------------------------------


class _Owner:
    """Where tensors that the program brings along are found again."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.python: dict[str, type] = {}
        self.trusted = True  # nothing of it came from a file
        self.self_value: Value | None = None
        self.places: dict[int, tuple[str, ...]] = {}
        self.classes: dict[str, Class] = {}  # by path of the submodule
        self.constants: list[Any] = []
        self.constant_values: list[Value] = []
        self.prologue: list[Node] = []
        self.scripts: dict[int, tuple[str, ...]] = {}  # paths of submodules that are scripts
        self.renamed: dict[int, Callable[[str], str]] = {}  # by program
        self._known: dict[tuple[str, ...], Value] = {}

    def value_of(self, x: Any, recorder: _Recorder) -> Value:
        """The value of a weight, or of a constant."""
        path = self.places.get(id(x))
        if path is None or self.self_value is None:
            return self.constant(x, recorder)
        return self.along(path, recorder)

    def along(self, path: tuple[str, ...], recorder: _Recorder) -> Value:
        """The value of an attribute of a submodule."""
        value = self.self_value
        assert value is not None
        for i, name in enumerate(path):
            key = path[: i + 1]
            if key not in self._known:
                owner = self.classes[".".join(path[:i])]
                child = self.classes.get(".".join(key))
                t = child.type if child is not None else owner.attributes[name]
                out = recorder.value(t)
                self.prologue.append(Node("core.getattr", (value, name), (out,)))
                self._known[key] = out
            value = self._known[key]
        return value

    def native(self, x: Any, recorder: _Recorder) -> Value:
        """An object of a class of C++, which an attribute of a module holds."""
        if id(x) not in self.places or self.self_value is None:
            raise RuntimeError(
                f"jit.trace: {x!r} is no attribute of a traced module; a trace holds no objects "
                "that its program makes or is given (jit.script does)"
            )
        return self.along(self.places[id(x)], recorder)

    def constant(self, x: Any, recorder: _Recorder) -> Value:
        """A tensor that is no weight: an attribute of the module, or bound to the function."""
        self.constants.append(x)
        name = f"_constant{len(self.constants) - 1}"
        out = recorder.value(TENSOR)
        if self.self_value is not None:
            root = self.classes[""]
            root.attributes[name] = TENSOR
            self.prologue.append(Node("core.getattr", (self.self_value, name), (out,)))
        else:
            self.constant_values.append(out)
        return out


def _record(
    f: Callable[..., Any], inputs: Sequence[Any], names: Sequence[str], owner: _Owner, name: str,
    first: Value | None, recorder: _Recorder, strict: bool,
) -> Function:  # fmt: skip
    """The function of what `f` did with the inputs."""
    session = _Session(recorder, owner)
    recorder.owner = owner
    values, params, given = [], [], []
    if first is not None:
        assert isinstance(first.type, Type)
        params.append(Param("self", first.type))
    with traced_by(None):
        for x, n in zip(inputs, names, strict=True):
            t = type_of_value(x, lambda _: None)
            if t is None:
                raise RuntimeError(
                    f"jit.trace: expected tensors, numbers and containers of them, got a "
                    f"{type(x).__name__} for {n!r}"
                )
            value = recorder.value(t, n)
            values.append(value)
            params.append(Param(n, t))
            given.append(_input(session, x, value, t))
    TRACERS.append(session)
    try:
        result = session.run(f, given)
    finally:
        TRACERS.remove(session)
    out, returns = _output(session, result, strict)
    recorder.nodes.append(Node("return", (out,), (), Where("", 0, "trace")))
    for node in owner.prologue:
        node.where = Where("", 0, "trace")
    inputs_ = ((first,) if first is not None else ()) + tuple(values)
    made = Function(inputs_, [*owner.prologue, *recorder.nodes], (), name, params, returns, "", 0)
    return made


def _input(session: _Session, x: Any, value: Value, t: Type) -> Any:
    recorder = session.recorder
    if isinstance(x, flambeau.Tensor):
        return session.shown(recorder.fake_of(x.detach().clone().requires_grad_(x.requires_grad)
                                              if x.is_floating_point() or x.is_complex()
                                              else x.clone(), value))  # fmt: skip
    if isinstance(x, tuple):
        parts = [recorder.put("core.part", (value, i), m) for i, m in enumerate(t.items)]
        made = [_input(session, y, v, m) for y, v, m in zip(x, parts, t.items, strict=True)]
        return tuple(made)
    if isinstance(x, list):
        parts = [recorder.put("core.getitem", (value, i), t.element) for i in range(len(x))]
        return [_input(session, y, v, t.element) for y, v in zip(x, parts, strict=True)]
    if isinstance(x, dict):
        item = t.items[1]
        return {
            k: _input(session, y, recorder.put("core.lookup", (value, k), item), item)
            for k, y in x.items()
        }
    return x  # a number: a constant of the trace


def _output(session: _Session, x: Any, strict: bool) -> tuple[Any, Type]:
    recorder = session.recorder
    if isinstance(x, flambeau.Tensor):
        with traced_by(None):
            return recorder.read(session.fake(x)), TENSOR
    if isinstance(x, (tuple, list)):
        pairs = [_output(session, y, strict) for y in x]
        items, kinds = tuple(a for a, _ in pairs), tuple(t for _, t in pairs)
        if isinstance(x, list) and len(set(kinds)) == 1:
            if strict:
                raise RuntimeError(
                    "Encountering a list at the output of the tracer might cause the trace to be "
                    "incorrect; return a tuple, or pass strict=False"
                )
            t = list_of(kinds[0])
            return recorder.put("core.list", items, t), t
        t = tuple_of(*kinds)
        return recorder.put("core.tuple", items, t), t
    if isinstance(x, dict):
        if strict:
            raise RuntimeError(
                "Encountering a dict at the output of the tracer might cause the trace to be "
                "incorrect; return a tuple, or pass strict=False"
            )
        pairs = [_output(session, y, strict) for y in x.values()]
        flat = tuple(a for k, (v, _) in zip(x, pairs, strict=True) for a in (k, v))
        t = dict_of(STR, pairs[0][1] if pairs else TENSOR)
        return recorder.put("core.dict", flat, t), t
    if isinstance(x, SymInt):
        return recorder.arg(x), INT
    if x is None or isinstance(x, (bool, int, float, complex, str)):
        plain = {bool: BOOL, int: INT, float: FLOAT, complex: COMPLEX, str: STR}
        return x, plain.get(type(x), Type("None"))
    raise RuntimeError(
        f"jit.trace: expected tensors and containers of them as the result, got {type(x).__name__}"
    )


def trace_function(
    f: Any, inputs: Sequence[Any], names: Sequence[str], strict: bool
) -> ScriptFunction:
    """The trace of a function."""
    unit = Unit()
    owner, recorder = _Owner(unit), _Recorder()
    name = qualified(f) if hasattr(f, "__qualname__") else f"trace.{type(f).__name__}"
    made = _record(f, inputs, names, owner, name, None, recorder, strict)
    made.inputs += tuple(owner.constant_values)
    made.params += [Param(f"constant{i}", TENSOR) for i in range(len(owner.constants))]
    unit.functions[name] = renumbered(made)
    program = Program(unit, owner.python, {}, {}, owner.trusted)
    return ScriptFunction(program, name, constants=owner.constants)


def trace_methods(
    m: Module, inputs: Mapping[str, Sequence[Any]], names: Callable[[str, int], Sequence[str]],
    strict: bool,
) -> RecursiveScriptModule:  # fmt: skip
    """The trace of methods of a module."""
    unit = Unit()
    owner = _Owner(unit)
    _classes(m, "", owner, unit)
    root = owner.classes[""]
    constants: list[Any] = []
    for method, given in inputs.items():
        recorder = _Recorder()
        own = _Owner(unit)
        own.places, own.classes, own.constants = owner.places, owner.classes, constants
        own.scripts = owner.scripts
        own.self_value = recorder.value(root.type, "self")
        name = f"{root.name}.{method}"
        f = m if method == "forward" else getattr(m, method)
        made = _record(
            f, given, names(method, len(given)), own, name, own.self_value, recorder, strict
        )
        owner.python.update(own.python)
        owner.trusted = owner.trusted and own.trusted
        unit.functions[name] = renumbered(made)
        root.methods[method] = name
    python = {c.name: Module for c in unit.classes.values()} | owner.python
    program = Program(unit, python, {}, {}, owner.trusted)
    out = _objects(m, "", owner, program)
    for i, x in enumerate(constants):
        out.__dict__[f"_constant{i}"] = x
    return out


def _classes(m: Module, path: str, owner: _Owner, unit: Unit) -> None:
    record = Class(qualified(type(m)), "module")
    n = 0
    while record.name in unit.classes:
        n += 1
        record.name = f"{qualified(type(m))}_{n}"
    unit.classes[record.name] = owner.classes[path] = record
    record.attributes["training"] = BOOL
    prefix = tuple(path.split(".")) if path else ()
    for table in ("_parameters", "_buffers"):
        for name, x in getattr(m, table).items():
            if x is not None:
                record.attributes[name], record.places[name] = TENSOR, table
                owner.places.setdefault(id(x), (*prefix, name))
    for name, x in vars(m).items():
        if isinstance(x, flambeau.ScriptObject):
            native = Class(x._script_name, "native")
            unit.classes[native.name], owner.python[native.name] = native, type(x)
            record.attributes[name] = native.type
            owner.places.setdefault(id(x), (*prefix, name))
    for name, child in m._modules.items():
        if child is not None and hasattr(child, "_script_record"):
            record.places[name] = "_modules"
            _adopt(child, (*prefix, name), owner)
        elif child is not None:
            record.places[name] = "_modules"
            _classes(child, f"{path}.{name}" if path else name, owner, unit)


def _adopt(m: Any, path: tuple[str, ...], owner: _Owner) -> None:
    """A submodule that is a script: the trace calls it."""
    program = m._script_program
    known = owner.renamed.get(id(program))
    if known is None:
        known = owner.renamed[id(program)] = merged(owner.unit, program.unit)
        owner.python.update({known(n): c for n, c in program.python.items()})
        owner.trusted = owner.trusted and program.trusted
    owner.classes[".".join(path)] = owner.unit.classes[known(m._script_record.name)]
    owner.scripts[id(m)] = path


def _objects(m: Module, path: str, owner: _Owner, program: Program) -> RecursiveScriptModule:
    out = RecursiveScriptModule(program, owner.classes[path])
    out._parameters.update({n: x for n, x in m._parameters.items() if x is not None})
    out._buffers.update({n: x for n, x in m._buffers.items() if x is not None})
    out.__dict__["_non_persistent_buffers_set"] = set(m._non_persistent_buffers_set)
    out.__dict__["training"] = m.training
    out.__dict__.update({n: x for n, x in vars(m).items() if isinstance(x, flambeau.ScriptObject)})
    for name, child in m._modules.items():
        below = f"{path}.{name}" if path else name
        if child is not None and hasattr(child, "_script_record"):
            out._modules[name] = adopted_module(child, program, owner.classes[below])
        elif child is not None:
            out._modules[name] = _objects(child, below, owner, program)
    return out
