"""Statements of the IR as C++, with `#line` back to the Python source.

Owns where variables are declared: at their first assignment when every use lies in that block,
else before the statement that first needs them. A body is a list of lines for `Writer`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .._ir import ir
from .._ir.types import Type
from .._table.facts import assigned_names, changed_name, used_names
from .cpp_types import cpp_param, cpp_value
from .emit_expr import ExprEmitter

_BY_VALUE = ("int", "float", "bool", "DType", "Device", "Layout", "MemoryFormat")


class Declarations:
    """Where each variable of a function is declared."""

    def __init__(self, body: list[ir.Stmt], params: set[str]) -> None:
        self.here: dict[int, list[tuple[str, Type]]] = {}  # id(stmt) -> declared by itself
        self.before: dict[int, list[tuple[str, Type]]] = {}  # id(stmt) -> declared before it
        self._types: dict[str, Type] = {}
        self._places: dict[str, list[list[ir.Stmt]]] = {}
        self._blocks: dict[str, list[list[int]]] = {}
        self._visit(body, [], [])
        for name, t in self._types.items():
            if name not in params:
                self._place(name, t)

    def _visit(self, block: list[ir.Stmt], stmts: list[ir.Stmt], blocks: list[int]) -> None:
        for s in block:
            path, at = [*stmts, s], [*blocks, id(block)]
            if isinstance(s, ir.Let):
                self._types[s.name] = s.declared
            if isinstance(s, ir.Unpack):
                self._types.update({n: t for n, t in zip(s.names, s.types, strict=True) if n})
            for name in {*assigned_names(s), *used_names(s)}:
                self._places.setdefault(name, []).append(path)
                self._blocks.setdefault(name, []).append(at)
            for inner in s.blocks():
                self._visit(inner, path, at)

    def _place(self, name: str, t: Type) -> None:
        blocks, paths = self._blocks[name], self._places[name]
        depth = 0
        while all(len(b) > depth for b in blocks) and len({b[depth] for b in blocks}) == 1:
            depth += 1
        first = paths[0][depth - 1]
        alone = (
            len(paths[0]) == depth
            and name in assigned_names(first)
            and name not in used_names(first)
        )
        (self.here if alone else self.before).setdefault(id(first), []).append((name, t))


class BodyEmitter(ExprEmitter):
    """Emits the body of one function. Subclasses change what `return` does."""

    def __init__(self, f: ir.Function, overloaded: Callable[[str], bool]) -> None:
        super().__init__(overloaded)
        self.f = f
        self.lines: list[str] = []
        self.depth = 1
        self.line = -1
        params = {p.name for p in f.params}
        self.used = {n for s in ir.statements(f.body) for n in used_names(s)}
        stmts = list(ir.statements(f.body))
        self.decl = Declarations(f.body, params)
        changed = {changed_name(s) for s in stmts} | f.reassigned
        self.copied = [
            p for p in f.params
            if p.name in changed and not (p.type.base in _BY_VALUE and not p.type.optional)
        ]  # fmt: skip

    def params(self) -> str:
        """C++ parameters of the function; those the body changes come in under another name."""
        return ", ".join(self.param(p.name, p.type) for p in self.f.params)

    def param(self, name: str, t: Type) -> str:
        """One C++ parameter."""
        mark = "" if name in self.used else "[[maybe_unused]] "
        copied = any(p.name == name for p in self.copied)
        return f"{mark}{cpp_param(t)} {self.var(name)}{'_in' if copied else ''}"

    def body(self) -> list[str]:
        """Lines of the body, indented, without braces."""
        for p in self.copied:
            self.put(f"{cpp_value(p.type)} {self.var(p.name)} = {self.var(p.name)}_in;")
        self.block(self.f.body)
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

    def block(self, stmts: Sequence[ir.Stmt]) -> None:
        for s in stmts:
            for name, t in self.decl.before.get(id(s), ()):
                if name != "_":
                    self.put(f"{cpp_value(t)} {self.var(name)}{_initial(t)};")
            self.at(s.line)
            self.stmt(s)

    def stmt(self, s: ir.Stmt) -> None:
        getattr(self, "_" + type(s).__name__.lower())(s)

    def nested(self, stmts: Sequence[ir.Stmt]) -> None:
        self.depth += 1
        self.block(stmts)
        self.depth -= 1

    # -- by kind of statement ---------------------------------------------------------------------

    def _let(self, s: ir.Let) -> None:
        here = bool(self.decl.here.get(id(s)))
        left = f"{cpp_value(s.declared)} " if here else ""
        if s.name == "_":  # evaluated for what it refuses
            self.put(f"static_cast<void>({self.expr(s.value)});")
            return
        self.put(f"{left}{self.var(s.name)} = {self.expr(s.value)};")

    def _unpack(self, s: ir.Unpack) -> None:
        here = {n for n, _ in self.decl.here.get(id(s), ())}
        items = self.fresh("items")
        self.put(f"const auto& {items} = {self.expr(s.value)};")
        is_list = s.value.type.is_list
        if is_list:
            self.put(f"py::expect_count({items}, {len(s.names)});")
        for i, (name, t) in enumerate(zip(s.names, s.types, strict=True)):
            if name:
                value = f"{items}[{i}]" if is_list else f"std::get<{i}>({items})"
                left = f"{cpp_value(t)} " if name in here else ""
                if name == "_":
                    continue  # named only to be passed over
                self.put(f"{left}{self.var(name)} = {value};")

    def _setitem(self, s: ir.SetItem) -> None:
        self.put(f"py::at({self.expr(s.target)}, {self.expr(s.index)}) = {self.expr(s.value)};")

    def _if(self, s: ir.If | ir.Expr) -> str | None:  # type: ignore[override]
        if isinstance(s, ir.Expr):
            return super()._if(s)
        self.put(f"if ({self.condition(s.test)}) {{")
        self.nested(s.then)
        while (
            len(s.other) == 1
            and isinstance(s.other[0], ir.If)
            and not self.decl.before.get(id(s.other[0]))
        ):
            s = s.other[0]
            self.put(f"}} else if ({self.condition(s.test)}) {{")
            self.nested(s.then)
        if s.other:
            self.put("} else {")
            self.nested(s.other)
        self.put("}")
        return None

    def condition(self, e: ir.Expr) -> str:
        text = self.expr(e)
        return text[1:-1] if e.op in ("cmp", "and", "or") and text[0] == "(" else text

    def _for(self, s: ir.For) -> None:
        head, close = self.loop(s.targets, s.types, s.over, s.args)
        for text in head:
            self.put(text)
        self.nested(s.body)
        self.put(close)

    def _while(self, s: ir.While) -> None:
        self.put(f"while ({self.condition(s.test)}) {{")
        self.nested(s.body)
        self.put("}")

    def _jump(self, s: ir.Jump) -> None:
        self.put(f"{s.kind};")

    def _return(self, s: ir.Return) -> None:
        if s.value is None:
            self.put("return;")
        elif s.value.op == "cast" and s.value.attr == "none":
            self.put("return std::nullopt;")
        else:
            self.put(f"return {self.expr(s.value)};")

    def _check(self, s: ir.Check) -> None:
        message = ", ".join(self.pieces(s.message))
        if s.test is None:
            self.put(f"flambeau::fail(ErrorKind::{s.kind}, {message});")
        else:
            self.put(f"FB_CHECK_AS({s.kind}, ({self.condition(s.test)}), {message});")

    def _do(self, s: ir.Do) -> None:
        self.put(f"{self.expr(s.value)};")


def _initial(t: Type) -> str:
    """Initial value of a variable declared before its first assignment."""
    return "{}" if t.base in _BY_VALUE and not t.optional else ""
