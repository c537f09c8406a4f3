"""Statements of the IR as C++, with `#line` back to the Python source.

Owns where variables are declared: at their first assignment when every use lies in that block,
else before the statement that first needs them. A body is a list of lines for `Writer`.
"""

from __future__ import annotations

from .._ir.graph import Arg, Block, Function, Node
from .._ir.reading import Reading, assigned, joins, nested
from .._ir.types import Type
from .compiler import Callees
from .cpp_types import cpp_param, cpp_value
from .emit_expr import ExprEmitter, type_of

_BY_VALUE = ("int", "float", "bool", "DType", "Device", "Layout", "MemoryFormat")


class Declarations:
    """Where each variable of a function is declared."""

    def __init__(self, reading: Reading, body: Block, params: set[str]) -> None:
        self.reading = reading
        self.here: dict[Node, list[tuple[str, Type]]] = {}  # declared by the statement itself
        self.before: dict[Node, list[tuple[str, Type]]] = {}  # declared before it
        self._types: dict[str, Type] = {}
        self._places: dict[str, list[list[Node]]] = {}
        self._blocks: dict[str, list[list[Block]]] = {}
        self._visit(body, [], [])
        for name, t in self._types.items():
            if name not in params:
                self._place(name, t)

    def _visit(self, block: Block, stmts: list[Node], blocks: list[Block]) -> None:
        for s in self.reading.statements(block):
            path, at = [*stmts, s], [*blocks, block]
            if not joins(s):
                self._types.update({v.name: type_of(v) for v in s.outs if v.name})
            for name in {*assigned(s), *self.reading.names(s)}:
                self._places.setdefault(name, []).append(path)
                self._blocks.setdefault(name, []).append(at)
            for inner in nested(s):
                self._visit(inner, path, at)

    def _place(self, name: str, t: Type) -> None:
        blocks, paths = self._blocks[name], self._places[name]
        depth = 0
        while all(len(b) > depth for b in blocks) and len({b[depth] for b in blocks}) == 1:
            depth += 1
        first = paths[0][depth - 1]
        alone = (
            len(paths[0]) == depth
            and name in assigned(first)
            and name not in self.reading.names(first)
        )
        (self.here if alone else self.before).setdefault(first, []).append((name, t))


class BodyEmitter(ExprEmitter):
    """Emits the body of one function. Subclasses change what `return` does."""

    def __init__(self, f: Function, callees: Callees) -> None:
        super().__init__(callees, Reading(f))
        self.f = f
        self.lines: list[str] = []
        self.depth = 1
        self.line = -1
        params = {p.name for p in f.params}
        stmts = list(self.reading.all_statements(f))
        self.used = {n for s in stmts for n in self.reading.names(s)}
        self.decl = Declarations(self.reading, f, params)
        changed = {n for s in stmts for n in (self.reading.changed(s), *assigned(s))}
        self.copied = [
            p for p in f.params
            if p.name in changed and not (p.type.base in _BY_VALUE and not p.type.optional)
        ]  # fmt: skip

    def params(self) -> str:
        """C++ parameters of the function; those the body changes come in under another name."""
        return ", ".join(self.param(p.name, p.type) for p in self.f.params)

    def param_names(self) -> list[str]:
        """The names of those."""
        return [self.param_name(p.name) for p in self.f.params]

    def param_name(self, name: str) -> str:
        return f"{self.var(name)}{'_in' if any(p.name == name for p in self.copied) else ''}"

    def param(self, name: str, t: Type) -> str:
        """One C++ parameter."""
        mark = "" if name in self.used else "[[maybe_unused]] "
        return f"{mark}{cpp_param(t)} {self.param_name(name)}"

    def body(self) -> list[str]:
        """Lines of the body, indented, without braces."""
        for p in self.copied:
            self.put(f"{cpp_value(p.type)} {self.var(p.name)} = {self.var(p.name)}_in;")
        self.block(self.f)
        return self.lines

    # -- output ---------------------------------------------------------------------------------

    def put(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)
        self.line += 1

    def at(self, line: int) -> None:
        """The next output line stands for source line `line`."""
        if line and line != self.line:
            self.lines.append(f'#line {line} "{self.f.file}"')
            self.line = line

    def block(self, block: Block) -> None:
        for s in self.reading.statements(block):
            for name, t in self.decl.before.get(s, ()):
                if name != "_":
                    self.put(f"{cpp_value(t)} {self.var(name)}{_initial(t)};")
            self.at(line_of(s))
            self.stmt(s)

    def nested(self, block: Block) -> None:
        self.depth += 1
        self.block(block)
        self.depth -= 1

    # -- by kind of statement ---------------------------------------------------------------------

    def stmt(self, s: Node) -> None:
        """A statement; its nested blocks too."""
        match s.target:
            case "if" if joins(s):
                self._if(s)
            case "loop":
                self._loop(s)
            case "break" | "continue":
                self.put(f"{s.target};")
            case "return":
                self._return(s)
            case "raise":
                kind, message = s.args
                self.put(f"flambeau::fail(ErrorKind::{kind}, {', '.join(self.pieces(message))});")
            case "core.unpack":
                self._unpack(s)
            case "core.setitem":
                xs, i, value = self.many(s.args)
                self.put(f"py::at({xs}, {i}) = {value};")
            case _ if assigned(s):
                self._assign(s)
            case _:
                self.put(f"{self.node(s)};")

    def _assign(self, s: Node) -> None:
        left = f"{cpp_value(type_of(s.out))} " if self.decl.here.get(s) else ""
        value = self.expr(s.args[0]) if s.target == "core.same" else self.node(s)
        if s.out.name == "_":  # evaluated for what it refuses
            self.put(f"static_cast<void>({value});")
            return
        self.put(f"{left}{self.var(s.out.name)} = {value};")

    def _unpack(self, s: Node) -> None:
        here = {n for n, _ in self.decl.here.get(s, ())}
        items = self.fresh("items")
        self.put(f"const auto& {items} = {self.expr(s.args[0])};")
        is_list = type_of(s.args[0]).is_list
        if is_list:
            self.put(f"py::expect_count({items}, {len(s.outs)});")
        for i, v in enumerate(s.outs):
            if v.name:
                value = f"{items}[{i}]" if is_list else f"std::get<{i}>({items})"
                left = f"{cpp_value(type_of(v))} " if v.name in here else ""
                self.put(f"{left}{self.var(v.name)} = {value};")

    def _if(self, s: Node) -> None:
        then, other = s.blocks
        inside = self.reading.statements(other)
        if not then.nodes and [x.target for x in inside] == ["raise"]:
            kind, message = inside[0].args
            pieces = ", ".join(self.pieces(message))
            self.put(f"FB_CHECK_AS({kind}, ({self.condition(s.args[0])}), {pieces});")
            return
        self.put(f"if ({self.condition(s.args[0])}) {{")
        self.nested(then)
        while len(inside) == 1 and self._goes_on(inside[0]):
            s = inside[0]
            then, other = s.blocks
            inside = self.reading.statements(other)
            self.put(f"}} else if ({self.condition(s.args[0])}) {{")
            self.nested(then)
        if inside:
            self.put("} else {")
            self.nested(other)
        self.put("}")

    def _goes_on(self, s: Node) -> bool:
        """An `if` that can stand behind `else` (checks are no such)."""
        return s.target == "if" and bool(s.blocks[0].nodes) and not self.decl.before.get(s)

    def condition(self, a: Arg) -> str:
        text, made = self.expr(a), self.reading.maker(a)
        bare = made is not None and (self.logic(made) or self.compares(made))
        return text[1:-1] if bare and text[0] == "(" else text

    def _loop(self, s: Node) -> None:
        kind, lists, init = s.args
        if kind == "while":
            self.put(f"while ({self.condition(s.blocks[0].outputs[0])}) {{")
            close = "}"
        else:
            items = s.blocks[-1].inputs[: len(s.blocks[-1].inputs) - len(init)]
            types = [type_of(v) for v in items]
            head, close = self.loop([v.name for v in items], types, kind, lists)
            for text in head:
                self.put(text)
        self.nested(s.blocks[-1])
        self.put(close)

    def _return(self, s: Node) -> None:
        self.put(f"return {self.expr(s.args[0])};" if s.args else "return;")

    def returned(self, s: Node) -> list[str]:
        """The parts of a tuple that is returned as a literal, with their exact types."""
        given = self.reading.made_by(s.args[0], "core.tuple")
        types = type_of(given.out).items if given else ()
        return [self.exactly(a, t) for a, t in zip(given.args, types, strict=True)] if given else []


def line_of(s: Node) -> int:
    """Line of the source that a statement stands in."""
    return s.where.line if s.where else 0


def _initial(t: Type) -> str:
    """Initial value of a variable declared before its first assignment."""
    return "{}" if t.base in _BY_VALUE and not t.optional else ""
