"""Functions of a unit as Python code: a syntax tree made node by node.

Every name that the code reads is a parameter, a local made here, or an entry of `space`, filled
from closed tables: the table's functions, `core`'s helpers, the unit's own. Nothing of a text goes
into the code but literals, so that a file cannot name what runs. Operands that one node takes stand
inside of it where that keeps the order of evaluation. Lines are those of the program's source.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from typing import Any

import flambeau

from .._ir.graph import Arg, Block, Function, Node, Value, values_of
from .._ir.types import Param, Type
from . import runtime
from .forms import (
    ATTRIBUTES,
    AUGMENTED,
    CALLS,
    CONTROL,
    METHODS,
    OPERATORS,
    RESERVED,
    TEMPLATES,
    as_list,
    bare_list,
    call_of,
    chosen,
    filled,
    gives,
    index_of,
    is_tensor,
    iterated,
    read_of,
    same_default,
    shown_type,
    template,
)
from .targets import form_of, library_entry
from .typer import CONTEXTS, context
from .unit import Unit


class Emitter:
    """Emits the functions of one unit.

    Args:
        unit: what is emitted.
        python: classes by name.
        hosts: functions left to Python.
        errors: classes of exceptions of the program.
        trusted: the types in it were found here, and are not a file's word.
    """

    def __init__(
        self, unit: Unit, python: Mapping[str, Any], hosts: Mapping[str, Any],
        errors: Mapping[str, Any], trusted: bool = True,
    ) -> None:  # fmt: skip
        self.unit, self.python, self.trusted = unit, python, trusted
        self.hosts, self.errors = hosts, errors
        # No other built-in can be reached by a name: the code may be a file's.
        self.space: dict[str, Any] = {"torch": flambeau, **runtime.SPACE}
        self.space["__builtins__"] = runtime.BUILTINS
        self.trees: dict[str, ast.FunctionDef] = {}

    def function(self, name: str) -> Any:
        """The Python function of a function of the unit, and all that it calls."""
        todo = [name]
        while todo:
            n = todo.pop()
            key = f"fn.{n}"
            if key in self.space:
                continue
            f = self.unit.functions[n]
            tree = Body(self, f).tree()
            self.trees[n] = tree
            self.space[key] = self.compiled(tree, f.file, f"fn.{n}")
            todo += [
                t.removeprefix("fn.") for node in f.walk()
                for t in (node.target, *_forked(node))
                if t.startswith("fn.")
            ]  # fmt: skip
            for node in f.walk():
                if node.target == "with" and node.args[0] == "object":
                    kind = node.args[1][0].type.base
                    todo += [self.unit.classes[kind].methods[m] for m in ("__enter__", "__exit__")]
        return self.space[f"fn.{name}"]

    def compiled(self, tree: ast.FunctionDef, file: str, name: str) -> Any:
        ast.fix_missing_locations(tree)
        code = compile(ast.Module([tree], []), file or "<script>", "exec")
        made: dict[str, Any] = {}
        exec(code, self.space, made)  # noqa: S102  (a tree of this file, not a text)
        return made[tree.name]

    def shown(self, name: str) -> str:
        """The function as text, submodules and weights by their plain names."""
        return ast.unparse(
            ast.fix_missing_locations(Body(self, self.unit.functions[name], True).tree())
        )


def _forked(node: Node) -> tuple[str, ...]:
    return (str(node.args[0]),) if node.target == "core.fork" else ()


class Body:
    """The code of one function."""

    def __init__(self, emitter: Emitter, f: Function, pretty: bool = False) -> None:
        self.emitter, self.f, self.pretty = emitter, f, pretty
        self.space = emitter.space
        self.locals: dict[Value, str] = {}
        self.taken: dict[str, int] = {}
        self.uses: dict[Value, int] = {}
        for node in f.walk():
            for v in values_of(node.args):
                self.uses[v] = self.uses.get(v, 0) + 1
            for b in node.blocks:
                for v in values_of(b.outputs):
                    self.uses[v] = self.uses.get(v, 0) + 1
        self.pending: list[tuple[Value, ast.expr]] = []
        self.line = f.line or 1

    # -- names ------------------------------------------------------------------------------------

    def local(self, v: Value) -> str:
        found = self.locals.get(v)
        if found is None:
            base = v.name or "v"
            if base in RESERVED:
                base += "_"
            n = self.taken.get(base, 0)
            self.taken[base] = n + 1
            found = self.locals[v] = base if not n else f"{base}_{n}"
            if found != base and found in self.taken:  # a variable of that very name
                return self.local_again(v, base)
            self.taken.setdefault(found, 1)
        return found

    def local_again(self, v: Value, base: str) -> str:
        n = self.taken[base]
        while f"{base}_{n}" in self.taken:
            n += 1
        self.taken[base], self.taken[f"{base}_{n}"] = n + 1, 1
        self.locals[v] = f"{base}_{n}"
        return self.locals[v]

    def tree(self) -> ast.FunctionDef:
        args = [ast.arg(self.local(v), None) for v in self.f.inputs]
        if self.pretty:
            for a, p in zip(args, self.f.params, strict=True):
                if a.arg != "self":
                    a.annotation = read_of(shown_type(p.type))
        body = self.block(self.f)
        name = self.f.name.rpartition(".")[2]
        signature = ast.arguments([], args, None, [], [], None, [])
        tree = ast.FunctionDef(name, signature, body or [ast.Pass()], [], None)
        if self.pretty:
            tree.returns = read_of(shown_type(self.f.returns))
        tree.lineno = self.f.line or 1
        tree.col_offset = 0
        tree.end_lineno, tree.end_col_offset = tree.lineno, 0
        return tree

    def place(self, node: ast.stmt) -> ast.stmt:
        for n in ast.walk(node):
            if "lineno" in n._attributes and not hasattr(n, "lineno"):
                n.lineno = n.end_lineno = self.line  # type: ignore[attr-defined]
                n.col_offset = n.end_col_offset = 0  # type: ignore[attr-defined]
        return node

    # -- operands ---------------------------------------------------------------------------------

    def flush(self, out: list[ast.stmt], keep: int = 0) -> None:
        """Pending operands become locals, but for the last `keep`."""
        cut = len(self.pending) - keep
        for v, e in self.pending[:cut]:
            out.append(self.assigned(self.local(v), e))
        self.pending = self.pending[cut:]

    def assigned(self, name: str, e: ast.expr) -> ast.stmt:
        return self.place(ast.Assign([ast.Name(name, ast.Store())], e))

    def take(self, args: Sequence[Arg], out: list[ast.stmt]) -> list[ast.expr]:
        """The operands; pending ones inside if they are the last ones, in order."""
        waiting = [v for v, _ in self.pending]
        asked = [v for v in values_of(tuple(args)) if v in waiting]
        if asked and waiting[len(waiting) - len(asked) :] != asked:
            self.flush(out)
            asked = []
        found = dict(self.pending[len(self.pending) - len(asked) :]) if asked else {}
        if asked:
            del self.pending[len(self.pending) - len(asked) :]

        def read(a: Arg) -> ast.expr:
            if isinstance(a, Value):
                return found[a] if a in found else read_of(self.local(a))
            return self.literal(a)

        return [read(a) for a in args]

    def literal(self, a: Arg) -> ast.expr:
        if isinstance(a, tuple):
            return ast.Tuple([self.literal(x) for x in a], ast.Load())
        if isinstance(a, float) and (math.isinf(a) or math.isnan(a)):
            text = f"float('{a}')"
            return template(text) if self.pretty else ast.Constant(a)
        if a is None or isinstance(a, (bool, int, float, str, complex)):
            return ast.Constant(a)
        text = str(a) if "." in str(a) else f"torch.{a}"
        if isinstance(a, flambeau.device):
            text = f"torch.device({str(a)!r})"
        self.space[text] = a
        return read_of(text)

    # -- blocks -----------------------------------------------------------------------------------

    def block(self, block: Block) -> list[ast.stmt]:
        """Statements of a block; its outputs stay pending or are locals."""
        out: list[ast.stmt] = []
        for node in block.nodes:
            if node.where is not None and node.where.line:
                self.line = node.where.line
            self.node(node, out)
        if not block.outputs:
            self.flush(out)
        return out

    def inner(self, block: Block) -> tuple[list[ast.stmt], list[ast.expr]]:
        """Statements of a nested block, and what it gives."""
        outer, self.pending = self.pending, []
        line = self.line
        out = self.block(block)
        results = self.take(block.outputs, out) if block.outputs else []
        self.flush_before(out, results)
        self.pending, self.line = outer, line
        return out, results

    def flush_before(self, out: list[ast.stmt], results: Sequence[ast.expr]) -> None:
        if self.pending:  # computed and dropped, before what is given
            for v, e in self.pending:
                out.append(self.assigned(self.local(v), e))
            self.pending = []

    def node(self, node: Node, out: list[ast.stmt]) -> None:
        method = getattr(self, "n_" + node.target.removeprefix("core."), None)
        if method is not None and (node.target.startswith("core.") or node.target in CONTROL):
            method(node, out)
            return
        e = self.expression(node, self.take(node.args, out))
        if (
            node.target == "core.same"
            and isinstance(e, ast.Name)
            and (self.locals.get(node.out) == e.id)
        ):
            return  # it has that name already
        self.result(node, e, out)

    def result(self, node: Node, e: ast.expr, out: list[ast.stmt]) -> None:
        """What a node gives: pending, or assigned."""
        if not node.outs:
            self.flush(out)
            out.append(self.place(ast.Expr(e)))
            return
        if len(node.outs) > 1:
            self.flush(out)
            names: list[ast.expr] = [ast.Name(self.local(v), ast.Store()) for v in node.outs]
            out.append(self.place(ast.Assign([ast.Tuple(names, ast.Store())], e)))
            return
        v = node.out
        n = self.uses.get(v, 0)
        if n == 1 and not v.name:
            for x in ast.walk(e):
                if "lineno" in x._attributes and not hasattr(x, "lineno"):
                    x.lineno = x.end_lineno = self.line  # type: ignore[attr-defined]
                    x.col_offset = x.end_col_offset = 0  # type: ignore[attr-defined]
            self.pending.append((v, e))
            return
        self.flush(out)
        out.append(self.assigned(self.local(v), e) if n or v.name else self.place(ast.Expr(e)))

    # -- expressions ------------------------------------------------------------------------------

    def expression(self, node: Node, args: list[ast.expr]) -> ast.expr:
        target = node.target
        if target.startswith("core."):
            return self.core(node, target[5:], args)
        if target.startswith(("fn.", "host.")):
            if target.startswith("host.") and not self.pretty:
                name = target.removeprefix("host.")
                if name not in self.emitter.hosts:
                    raise ValueError(f"{name} is left to Python and is not in this program")
                self.space[target] = self.emitter.hosts[name]
            shown = target.partition(".")[2] if self.pretty else target
            return call_of(read_of(shown), args)
        if target.startswith("lib."):
            name, f, entry = library_entry(target)
            self.space[name] = f
            made = self.called(
                name, entry.params, node.args, args, name.startswith("torch.Tensor.")
            )
            return as_list(made, entry.returns)
        operator = self.operator(node, args)
        if operator is not None:
            return operator
        name, f, form = form_of(target)
        self.space[name] = f
        if form is None:
            return as_list(call_of(read_of(name), args), node.outs[0].type if node.outs else None)
        op = form.op
        given = dict(
            zip([p.name for p in op.params], zip(node.args, args, strict=True), strict=True)
        )
        raw = [given[p.name][0] for p in form.params]
        made = self.called(name, form.params, raw, [given[p.name][1] for p in form.params],
                           name.startswith("torch.Tensor."))  # fmt: skip
        return as_list(made, op.returns if not form.inplace else None)

    def operator(self, node: Node, args: list[ast.expr]) -> ast.expr | None:
        """A call of the table that Python has an operator for, and which is quicker that way."""
        found = OPERATORS.get(node.target)
        if found is None or not any(is_tensor(a) for a in node.args[:2]):
            return None
        if any(a != 1 or isinstance(a, bool) for a in node.args[2:]):
            return None  # alpha
        if issubclass(found, ast.unaryop):
            return ast.UnaryOp(found(), args[0])
        if issubclass(found, ast.cmpop):
            return ast.Compare(args[0], [found()], [args[1]])
        return ast.BinOp(args[0], found(), args[1])

    def called(
        self, name: str, params: Sequence[Param], raw: Sequence[Arg], args: Sequence[ast.expr],
        method: bool,
    ) -> ast.expr:  # fmt: skip
        """A call with what differs from the defaults."""
        positional = [i for i, p in enumerate(params) if not p.kwonly]
        while positional and same_default(params[positional[-1]], raw[positional[-1]]):
            positional.pop()
        plain = [args[i] for i in positional]
        named = {
            p.name: args[i] for i, p in enumerate(params)
            if p.kwonly and not same_default(p, raw[i])
        }  # fmt: skip
        if "from_" in named:
            named["from"] = named.pop("from_")
        if method and self.pretty:
            return call_of(ast.Attribute(plain[0], name.rpartition(".")[2], ast.Load()), plain[1:],
                         **named)  # fmt: skip
        return call_of(read_of(name), plain, **named)

    def core(self, node: Node, name: str, args: list[ast.expr]) -> ast.expr:
        special = getattr(self, f"c_{name}", None)
        if special is not None:
            made: ast.expr = special(node, args)
            return made
        if name in TEMPLATES:
            if name in ("getitem", "len", "part") and (bare := bare_list(args[0])) is not None:
                args = [bare, *args[1:]]
            return filled(TEMPLATES[name], args)
        if name in CALLS:
            return call_of(read_of(CALLS[name]), args)
        if name.startswith("math_"):
            self.space[f"math.{name[5:]}"] = getattr(math, name[5:])
            return call_of(read_of(f"math.{name[5:]}"), args)
        if name.startswith("invoke_"):
            return call_of(read_of("script.invoke"), [ast.Constant(name[7:]), *args])
        if name.startswith("attr_") and name[5:] in ATTRIBUTES:
            return ast.Attribute(args[0], name[5:], ast.Load())
        if name in METHODS:
            return self.method(node, name, args)
        if name in runtime.CONSTANTS:
            return self.literal(runtime.CONSTANTS[name])
        helper = f"script.{name}"
        if helper in self.space:
            return call_of(read_of(helper), args)
        raise ValueError(f"core.{name} is not known")

    def method(self, node: Node, name: str, args: list[ast.expr]) -> ast.expr:
        made = call_of(ast.Attribute(args[0], name, ast.Load()), args[1:])
        if name == "sort":
            made = call_of(ast.Attribute(args[0], name, ast.Load()), [], reverse=args[1])
        if name == "pop" and len(node.args) == 2 and node.args[1] == -1:
            made.args = []
        return call_of(read_of("list"), [made]) if name in ("keys", "values", "items") else made

    def c_list(self, node: Node, args: list[ast.expr]) -> ast.expr:
        return ast.List(args, ast.Load())

    def c_tuple(self, node: Node, args: list[ast.expr]) -> ast.expr:
        return ast.Tuple(args, ast.Load())

    def c_dict(self, node: Node, args: list[ast.expr]) -> ast.expr:
        return ast.Dict(list(args[::2]), list(args[1::2]))

    def c_sorted(self, node: Node, args: list[ast.expr]) -> ast.expr:
        return call_of(read_of("sorted"), args[:1], reverse=args[1])

    def c_format(self, node: Node, args: list[ast.expr]) -> ast.expr:
        if isinstance(node.args[0], str) and runtime.is_plain_format(node.args[0]):
            return call_of(ast.Attribute(args[0], "format", ast.Load()), args[1:])
        return call_of(read_of("script.format"), args)

    def c_percent(self, node: Node, args: list[ast.expr]) -> ast.expr:
        return ast.BinOp(args[0], ast.Mod(), ast.Tuple(args[1:], ast.Load()))

    def c_range_list(self, node: Node, args: list[ast.expr]) -> ast.expr:
        return call_of(read_of("list"), [call_of(read_of("range"), args)])

    def c_getslice(self, node: Node, args: list[ast.expr]) -> ast.expr:
        ends = [None if isinstance(a, ast.Constant) and a.value is None else a for a in args[1:]]
        return ast.Subscript(args[0], ast.Slice(*ends), ast.Load())

    def c_get_item(self, node: Node, args: list[ast.expr]) -> ast.expr:
        return ast.Subscript(args[0], index_of(args[1:]), ast.Load())

    def c_getattr(self, node: Node, args: list[ast.expr]) -> ast.expr:
        return self.attribute(node.args[0], args[0], str(node.args[1]), ast.Load())

    def attribute(self, owner: Arg, e: ast.expr, name: str, mode: Any) -> ast.expr:
        """An attribute of a value, of a module from the table that keeps it."""
        assert isinstance(owner, Value) and isinstance(owner.type, Type)
        record = self.emitter.unit.classes.get(owner.type.base)
        if record is None and owner.type.base != "Tensor":
            raise ValueError(f"{owner.type} has no attributes")
        if record is not None and name not in record.attributes and name not in record.places:
            raise ValueError(f"{owner.type} has no attribute {name!r}")
        if name.startswith(("__", "_script")) or (record is None and mode.__class__ is ast.Load):
            raise ValueError(f"{owner.type} has no attribute {name!r}")
        if record is None and name not in ("grad", "requires_grad", "data"):
            raise ValueError(f"attribute {name!r} of a Tensor cannot be assigned")
        if record is not None and not self.pretty and not self.emitter.trusted:
            # Types of a file are its own word: what the object has is looked at when it runs.
            e = call_of(read_of("script.holder"), [e, ast.Constant(name)])
        place = record.places.get(name) if record is not None else None
        if place and not self.pretty:
            return ast.Subscript(ast.Attribute(e, place, ast.Load()), ast.Constant(name), mode)
        return ast.Attribute(e, name, mode)

    def c_new(self, node: Node, args: list[ast.expr]) -> ast.expr:
        name = f"new.{node.args[0]}"
        self.space[name] = runtime.maker(self.emitter.python[str(node.args[0])])
        return call_of(read_of(name), [])

    def c_make_tuple(self, node: Node, args: list[ast.expr]) -> ast.expr:
        name = str(node.args[0])
        self.space[name] = self.emitter.python[name]
        return call_of(read_of(name), args[1:])

    def c_enum(self, node: Node, args: list[ast.expr]) -> ast.expr:
        cls, member = map(str, node.args)
        text = f"{cls}.{member}"
        self.space[text] = self.emitter.python[cls][member]
        return read_of(text)

    def c_enum_of(self, node: Node, args: list[ast.expr]) -> ast.expr:
        name = str(node.args[0])
        self.space[name] = self.emitter.python[name]
        return call_of(read_of(name), args[1:])

    def c_isinstance(self, node: Node, args: list[ast.expr]) -> ast.expr:
        text = str(node.args[1])
        key = f"is {text}"
        self.space[key] = runtime.predicate(text, self.emitter.python)
        return call_of(read_of(key), args[:1])

    def c_fork(self, node: Node, args: list[ast.expr]) -> ast.expr:
        if node.args[0] == "core.call_module":  # a module of the package calls itself
            return call_of(read_of("script.fork"), [read_of("script.call"), *args[1:]])
        if str(node.args[0]).removeprefix("fn.") not in self.emitter.unit.functions:
            raise ValueError(f"fork: {node.args[0]!r} is no function of the script")
        return call_of(read_of("script.fork"), [read_of(str(node.args[0])), *args[1:]])

    def c_call_module(self, node: Node, args: list[ast.expr]) -> ast.expr:
        return call_of(read_of("script.call"), args)

    # -- statements -------------------------------------------------------------------------------

    def n_set_item(self, node: Node, out: list[ast.stmt]) -> None:
        args = self.take(node.args, out)
        self.flush(out)
        target = ast.Subscript(args[0], index_of(args[2:]), ast.Store())
        out.append(self.place(ast.Assign([target], args[1])))

    def n_update_item(self, node: Node, out: list[ast.stmt]) -> None:
        args = self.take(node.args, out)
        self.flush(out)
        target = ast.Subscript(args[0], index_of(args[3:]), ast.Store())
        out.append(self.place(ast.AugAssign(target, AUGMENTED[str(node.args[1])](), args[2])))

    def n_setitem(self, node: Node, out: list[ast.stmt]) -> None:
        box, key, value = self.take(node.args, out)
        self.flush(out)
        out.append(self.place(ast.Assign([ast.Subscript(box, key, ast.Store())], value)))

    def n_setslice(self, node: Node, out: list[ast.stmt]) -> None:
        args = self.take(node.args, out)
        self.flush(out)
        target = ast.Subscript(args[0], ast.Slice(*args[2:]), ast.Store())
        out.append(self.place(ast.Assign([target], args[1])))

    def n_delitem(self, node: Node, out: list[ast.stmt]) -> None:
        box, key = self.take(node.args, out)
        self.flush(out)
        out.append(self.place(ast.Delete([ast.Subscript(box, key, ast.Del())])))

    def n_setattr(self, node: Node, out: list[ast.stmt]) -> None:
        args = self.take(node.args, out)
        self.flush(out)
        target = self.attribute(node.args[0], args[0], str(node.args[1]), ast.Store())
        out.append(self.place(ast.Assign([target], args[2])))

    def n_unpack(self, node: Node, out: list[ast.stmt]) -> None:
        (xs,) = self.take(node.args, out)
        self.flush(out)
        names: list[ast.expr] = [ast.Name(self.local(v), ast.Store()) for v in node.outs]
        out.append(self.place(ast.Assign([ast.List(names, ast.Store())], bare_list(xs) or xs)))

    def n_entered(self, node: Node, out: list[ast.stmt]) -> None:
        self.flush(out)  # `with ... as` has given it

    def n_return(self, node: Node, out: list[ast.stmt]) -> None:
        args = self.take(node.args, out)
        self.flush(out)
        out.append(self.place(ast.Return(args[0] if args else None)))

    def n_raise(self, node: Node, out: list[ast.stmt]) -> None:
        _, text = self.take(node.args, out)
        self.flush(out)
        name = str(node.args[0])
        cls = runtime.error_class(name, self.emitter.errors)
        self.space[f"error.{name}"] = cls
        shown = name.rpartition(".")[2] if self.pretty else f"error.{name}"
        args = [] if isinstance(text, ast.Constant) and text.value == "" else [text]
        out.append(self.place(ast.Raise(call_of(read_of(shown), args), None)))

    def n_break(self, node: Node, out: list[ast.stmt]) -> None:
        self.leave(node, out)
        out.append(self.place(ast.Break()))

    def n_continue(self, node: Node, out: list[ast.stmt]) -> None:
        self.leave(node, out)
        out.append(self.place(ast.Continue()))

    loops: list[tuple[list[str], list[str]]]

    def leave(self, node: Node, out: list[ast.stmt]) -> None:
        args = self.take(node.args, out)
        self.flush(out)
        carried, leaving = self.loops[-1]
        self.carry(leaving if node.target == "break" else carried, args, out)

    def carry(self, names: Sequence[str], args: Sequence[ast.expr], out: list[ast.stmt]) -> None:
        """Locals get values, all at once."""
        pairs = [
            (n, a) for n, a in zip(names, args, strict=True)
            if not (isinstance(a, ast.Name) and a.id == n)
        ]  # fmt: skip
        if len(pairs) == 1:
            out.append(self.assigned(*pairs[0]))
        elif pairs:
            target = ast.Tuple([ast.Name(n, ast.Store()) for n, _ in pairs], ast.Store())
            value = ast.Tuple([a for _, a in pairs], ast.Load())
            out.append(self.place(ast.Assign([target], value)))

    def n_if(self, node: Node, out: list[ast.stmt]) -> None:
        (test,) = self.take(node.args, out)
        then, else_ = node.blocks
        if len(node.outs) == 1 and not node.out.name:
            kept = dict(self.locals), dict(self.taken)
            a, x = self.inner(then)
            b, y = self.inner(else_)
            if not a and not b and x and y:
                self.result(node, chosen(test, x[0], y[0]), out)
                return
            self.locals, self.taken = kept
        self.flush(out)
        for v in node.outs:
            self.local(v)
        sides = []
        for side in (then, else_):
            self.join(side, node.outs)
            body, results = self.inner(side)
            if results:
                self.carry([self.local(v) for v in node.outs], results, body)
            sides.append(body)
        if not sides[0] and sides[1]:
            test, sides = ast.UnaryOp(ast.Not(), test), [sides[1], []]
        out.append(self.place(ast.If(test, sides[0] or [ast.Pass()], sides[1])))

    def join(self, block: Block, outs: Sequence[Value]) -> None:
        """What a block's last node makes to be given gets the local of what it becomes."""
        last = block.nodes[-1] if block.nodes else None
        for v, a in zip(outs, block.outputs, strict=False):
            if last is not None and a in last.outs and self.uses.get(a) == 1:
                self.locals.setdefault(a, self.local(v))

    def carry_over(self, body: Block, names: Sequence[str], inputs: Sequence[Value]) -> None:
        """A carried value gets its own local back, where the old value is not read any more."""
        for name, v, a in zip(names, inputs, body.outputs, strict=False):
            if not isinstance(a, Value) or self.uses.get(a) != 1 or a in self.locals:
                continue
            at = next((i for i, n in enumerate(body.nodes) if a in n.outs), None)
            if at is None or (body.nodes[at].blocks and body.nodes[at].target != "if"):
                continue
            later = Block((), body.nodes[at + 1 :], body.outputs)
            if not any(v in n.inputs or gives(n, v) for n in later.walk()) and (
                v not in values_of(body.outputs)
            ):
                self.locals[a] = name

    def name_items(self, body: Block, items: Sequence[Value]) -> None:
        """Items of a loop that are only given a name have it at once."""
        for node in body.nodes:
            if node.target != "core.same" or node.args[0] not in items:
                break
            if self.uses.get(node.args[0]) == 1:
                self.locals[node.args[0]] = self.local(node.out)

    def n_with(self, node: Node, out: list[ast.stmt]) -> None:
        kind, args = node.args
        given = self.take(args, out)
        self.flush(out)
        (block,) = node.blocks
        entered = next((n.out for n in block.nodes if n.target == "core.entered"), None)
        if kind == "object":
            record = self.emitter.unit.classes[args[0].type.base]
            enter, leave = (f"fn.{record.methods[m]}" for m in ("__enter__", "__exit__"))
            manager: ast.expr = call_of(
                read_of("script.entering"), [*given, read_of(enter), read_of(leave)]
            )
        else:
            if kind not in CONTEXTS:
                raise ValueError(f"with: {kind!r} is not known")
            name = f"torch.{kind}"
            self.space[name] = context(kind)
            names = [n for n in str(args[0]).split(",") if n]
            cut = len(given) - len(names)
            named = dict(zip(names, given[cut:], strict=True))
            manager = call_of(read_of(name), given[1:cut], **named)
        variable = ast.Name(self.local(entered), ast.Store()) if entered is not None else None
        for v in node.outs:
            self.local(v)
        body, results = self.inner(block)
        if results:
            self.carry([self.local(v) for v in node.outs], results, body)
        item = ast.withitem(manager, variable)
        out.append(self.place(ast.With([item], body or [ast.Pass()])))

    def n_loop(self, node: Node, out: list[ast.stmt]) -> None:
        kind, lists, init = node.args
        given = self.take((*lists, *init), out)
        self.flush(out)
        over, start = given[: len(lists)], given[len(lists) :]
        body = node.blocks[-1]
        n = len(body.inputs) - len(init)
        names = [self.local(v) for v in body.inputs[n:]]
        self.carry(names, start, out)
        if len(node.outs) == len(names) and all(
            v.name == w.name for v, w in zip(node.outs, body.inputs[n:], strict=True)
        ):
            for v, name in zip(node.outs, names, strict=True):
                self.locals[v] = name
            leaving = names
        else:
            leaving = [self.local(v) for v in node.outs]
        self.loops = [*getattr(self, "loops", []), (names, leaving)]
        if kind == "while":
            first = node.blocks[0]
            for v, name in zip(first.inputs, names, strict=True):
                self.locals[v] = name
            self.carry_over(body, names, body.inputs)
            before, tests = self.inner(first)
            test = tests[0]
            if before:
                done = ast.If(ast.UnaryOp(ast.Not(), test), [ast.Break()], [])
                before.append(self.place(done))
                test = ast.Constant(True)
            inner, results = self.inner(body)
            if not body.ended:
                self.carry(names, results, inner)
            out.append(self.place(ast.While(test, [*before, *inner] or [ast.Pass()], [])))
        else:
            self.name_items(body, body.inputs[:n])
            self.carry_over(body, names, body.inputs[n:])
            items: list[ast.expr] = [ast.Name(self.local(v), ast.Store()) for v in body.inputs[:n]]
            inner, results = self.inner(body)
            if not body.ended:
                self.carry(names, results, inner)
            target = items[0] if n == 1 else ast.Tuple(items, ast.Store())
            out.append(self.place(ast.For(target, iterated(kind, over), inner or [ast.Pass()], [])))
        self.loops.pop()
        if leaving is not names and kind != "while":
            raise ValueError("a loop gives what it carries")

    def n_collect(self, node: Node, out: list[ast.stmt]) -> None:
        kind, lists = node.args
        over = self.take(lists, out)
        first = node.blocks[0]
        names = [self.local(v) for v in first.inputs]
        for b in node.blocks[1:]:
            for v, name in zip(b.inputs, names, strict=True):
                self.locals[v] = name
        parts = [self.inner(b) for b in node.blocks]
        target: ast.expr = (
            ast.Name(names[0], ast.Store()) if len(names) == 1
            else ast.Tuple([ast.Name(n, ast.Store()) for n in names], ast.Store())
        )  # fmt: skip
        if not any(statements for statements, _ in parts):
            tests = [results[0] for _, results in parts[:-1]]
            gen = ast.comprehension(target, iterated(kind, over), tests, 0)
            self.result(node, ast.ListComp(parts[-1][1][0], [gen]), out)
            return
        self.flush(out)
        made = self.local(node.out)
        out.append(self.assigned(made, ast.List([], ast.Load())))
        body: list[ast.stmt] = []
        for statements, results in parts[:-1]:
            skip = ast.If(ast.UnaryOp(ast.Not(), results[0]), [ast.Continue()], [])
            body += [*statements, self.place(skip)]
        append = call_of(ast.Attribute(read_of(made), "append", ast.Load()), parts[-1][1])
        body += [*parts[-1][0], self.place(ast.Expr(append))]
        out.append(self.place(ast.For(target, iterated(kind, over), body, [])))
