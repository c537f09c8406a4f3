"""C++ of loop nests: one function each, plain loops that the compiler vectorises.

A nest is emitted by one of five strategies. `flat`: nothing is reduced; dims that lie together in
every access become one, the last is the vector. `rows`: the last dim is reduced; each row is swept
stage by stage while it is in the cache. `columns`: the last dim is kept; a tile of it is the
vector, and accumulators are arrays. `panels` (emit_panels.py): the same where all kept points are
such a dim and rows are many. `split`: few rows and much to reduce; every sweep is cut into
a fixed number of pieces, so that results do not depend on the number of threads.
The arithmetic is that of csrc/kernels/scalar_math.h, the same as eager's.

Note [Functions for parts]
What runs inside of a parallel region is a function of its own, or takes its pointers by value:
reached through a closure, a pointer is read again in every lane of a vector.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from .._ir.graph import Dim
from .._ir.symexpr import Expr, expr, product, symbol
from . import emit_panels, emit_segments, indexing
from .cpp_text import Scope, c_expr, literal
from .nest import Accumulate, Nest, Stage, Store
from .scalar import COMPLEX, Scalar, guarded, places, walk

TILE = 64  # columns swept together
PIECES = 32  # parts of a split sweep
GRAIN = 16384  # elements that are worth a second thread
BLOCK = 4096  # elements added up before they join the sum: keeps rounding errors small
_COLD = "__attribute__((cold, noinline)) "


def innermost(nest: Nest) -> int | None:
    """The dim of size above 1 along which memory is dense in most of what a nest goes over whole,
    the last if none is."""
    dims = [d for d, n in enumerate(nest.domain) if n != 1]
    indices = [s.index for s in nest.statements if isinstance(s, Store)]
    loads = walk(s.value for s in nest.statements)
    indices += [n.value[1] for n in loads if n.op == "load"]
    names = {f"i{d}" for d in dims}
    most = max((len(names & i.symbols) for i in indices), default=0)
    whole = [i for i in indices if len(names & i.symbols) == most]

    def dense(d: int) -> tuple[int, int]:
        return sum(indexing.coefficient(i, f"i{d}") == expr(1) for i in whole), d

    return max(dims, key=dense, default=None)


def strategy(nest: Nest) -> str:
    """How a nest is emitted: flat, rows, columns, panels or split."""
    if not nest.reduced:
        return "flat"
    if nest.local:
        return "rows"  # as it was when arrays of the row were made
    rows = product(n for d, n in enumerate(nest.domain) if d not in nest.reduced)
    if rows.constant is not None and rows.constant < 4:
        return "split"
    last = innermost(nest)
    if last is None or last in nest.reduced:
        return "rows"
    swept = product(n for d, n in enumerate(nest.domain) if d in nest.reduced)
    alone = rows == expr(nest.domain[last])
    return "panels" if alone and emit_panels.fits(swept, rows, GRAIN) else "columns"


class Emitter:
    """The C++ of one nest."""

    def __init__(self, nest: Nest, memory: dict[str, str], symbols: Sequence[str] = ()) -> None:
        self.nest = nest
        self.memory = memory  # buffer -> C++ type in memory
        self.symbols = symbols
        self.exact = "true"
        self.arrays: set[str] = set()  # accumulators that are arrays over the tile
        self.checked: set[int] = set()  # angles that are compared with the limit as they come
        self.parts: list[list[str]] = []  # functions for parts of the work

    # Values ---------------------------------------------------------------------------------

    def value(self, n: Scalar, scope: Scope) -> str:
        """Name or literal of a value; what it needs is computed in the scope first."""
        if n.op == "const":
            return literal(n.value, n.type)
        if n.op == "result":
            return f"{n.value}[j]" if n.value in self.arrays else str(n.value)
        for node in walk([n], known=scope.find):
            if node.op in ("const", "result"):
                continue
            scope.names[id(node)] = name = scope.fresh()
            scope.lines.append(f"const {node.type} {name} = {self.expression(node, scope)};")
            if id(node) in self.checked:
                scope.lines.append(f"bad |= s::beyond_trig({name});")
        found = scope.find(n)
        assert found
        return found

    def expression(self, n: Scalar, scope: Scope) -> str:
        args = [self.value(a, scope) for a in n.args]
        if n.op == "load":
            buffer, index, memory = n.value
            return _read(f"{buffer}[{self.located(index, args)}]", memory)
        if n.op in ("size", "index"):
            return f"static_cast<int64_t>({self.located(n.value, args)})"
        if n.op == "within":
            return f"within({args[0]}, {args[1]}, {self.nest.checks.index(n.value) + 1}, fault)"
        # With AVX-512 a plain conversion to uint64 gives other numbers for what does not fit.
        real = n.type == "uint64_t" and n.args[0].type in ("float", "double")
        if n.op == "cast" and (n.value or real or _may_be_folded(n)):
            return f"whole<{n.value or n.type}>({args[0]})"
        if n.op == "cast":
            return f"lift<{n.type}>({args[0]})"
        if n.op == "wrap" and n.type == "float":
            return f"widen(narrow<{n.value}>({args[0]}))"
        if n.op == "wrap":
            return f"static_cast<int64_t>(static_cast<{n.value}>({args[0]}))"
        suffix = f"<{self.exact}>" if guarded(n) else ""
        if n.op == "where":
            suffix = f"<{n.type}>"
        return f"s::{n.op}{suffix}({', '.join(args)})"

    @staticmethod
    def located(index: Expr, args: Sequence[str]) -> str:
        """An index in C, with the names of the computed ones, see Note [Places]."""
        names = {p: symbol(x) for p, x in zip(places(index), args, strict=True)}
        return c_expr(index.replace(names) if names else index)

    def store(self, s: Store, scope: Scope) -> None:
        wrapped = s.value.op == "wrap" and s.value.value == s.memory
        x = self.value(s.value.args[0] if wrapped else s.value, scope)
        target = f"{s.buffer}[{c_expr(s.index)}]"
        register = s.value.type
        match s.memory:
            case "F16" | "BF16":
                x = f"narrow<{s.memory}>(lift<float>({x}))"
            case "C64" | "C128":
                x = f"lift<{s.memory}>({x})"
            case _ if s.memory != register:
                x = f"static_cast<{s.memory}>({x})"
        scope.lines.append(f"{target} = {x};")

    # Strategies -----------------------------------------------------------------------------

    def emit(self) -> list[str]:
        """Lines of the function, and of those that it calls for a part of its work."""
        body = {"flat": self.flat, "split": self.split, "rows": self.rows,
                "columns": self.columns, "panels": self.panels}[strategy(self.nest)]()  # fmt: skip
        head = [f"// {w}" for w in self.nest.where]
        return [*head, *(x for part in self.parts for x in part), *self.function("void", "", body)]

    def function(self, returns: str, suffix: str, body: Iterable[str], more: str = "") -> list[str]:
        """A function of the nest's buffers and sizes, see Note [Functions for parts]."""
        return [f"static {returns} NEST{suffix}(void* const* a, const int64_t* n{more}) {{",
                *_indent(self.prologue()), *_indent(body), "}", ""]  # fmt: skip

    def prologue(self) -> list[str]:
        """Sizes and buffers."""
        lines = [
            f"[[maybe_unused]] const int64_t {s} = n[{i}];" for i, s in enumerate(self.symbols)
        ]
        reads, writes = self.nest.reads, self.nest.writes
        for name in self.buffers():
            memory = self.memory[name]
            if memory == "bool" and name in reads:
                memory = "uint8_t"  # which may hold any byte, and GCC 12 has no vectors of bool
            if name not in writes:
                memory = f"const {memory}"
            place = f"static_cast<{memory}*>(a[@{name}])"
            lines.append(f"[[maybe_unused]] auto* __restrict {name} = {place};")
        if self.nest.checks:
            place = "static_cast<int64_t*>(a[FAULT])"
            lines.append(f"[[maybe_unused]] int64_t* const fault = {place};")
        return lines

    def buffers(self) -> list[str]:
        names = {x for x in self.nest.reads | self.nest.writes if x.startswith("b")}
        return sorted(names, key=lambda x: int(x[1:]))

    def flat(self) -> list[str]:
        loops = self.collapsed()
        trig = self.angles()
        inner = loops[-1] if loops else ("i0", 1, {})
        if trig:
            self.stretch(loops, inner, "false", trig)
        self.stretch(loops, inner, "true", [])
        call = "NEST_true(a, n, from, to, p);"
        if trig:
            call = f"if (!NEST_false(a, n, from, to, p)) {call}"
        outer = c_expr(product(n for _, n, _ in loops[:-1]))
        size = c_expr(inner[1])
        return [
            f"const int64_t outer = {outer}, inner = {size};",
            f"const int64_t pieces = inner > {GRAIN} ? inner / {GRAIN // 2} : 1;",
            "const int64_t step = (inner + pieces - 1) / pieces;",
            *_shared(product(n for _, n, _ in loops), [
                "for (int64_t q = 0; q < outer * pieces; ++q) {",
                "  const int64_t p = q / pieces, from = q % pieces * step;",
                "  const int64_t to = from + step < inner ? from + step : inner;",
                f"  {call}",
                "}",
            ]),
        ]  # fmt: skip

    def stretch(self, loops: Sequence[Any], inner: Any, exact: str, trig: Sequence[Scalar]) -> None:
        """Adds the function for a part of the innermost loop at outer position p."""
        self.exact = exact
        stores = [s for s in self.nest.statements if isinstance(s, Store)]
        loop: list[str] = []
        if trig or not self.angles():  # else it is rarely called
            loop = emit_segments.loops(self, stores, inner[0], trig)
        lines = [
            *_unflatten("p", loops[:-1]),
            *(["int bad = 0;"] if trig else []),
            *(loop or self.loop(stores, inner[0], trig)),
            "return !bad;" if trig else "return true;",
        ]
        self.part(exact, lines, "int64_t from, int64_t to, [[maybe_unused]] int64_t p")

    def loop(self, stores: Sequence[Store], variable: str, trig: Sequence[Scalar]) -> list[str]:
        """One loop that does all."""
        before = self.before(stores, {variable})
        scope = Scope(before)
        for s in stores:
            self.store(s, scope)
        checks = [f"s::beyond_trig({self.value(n, scope)})" for n in trig]
        body = list(scope.lines)
        if checks:
            body.append(f"bad |= {' | '.join(checks)};")
        head = f"for (int64_t {variable} = from; {variable} < to; ++{variable}) {{"
        return [*before.lines, "#pragma GCC ivdep", head, *_indent(body), "}"]

    def before(
        self, statements: Iterable[Store | Accumulate], moving: set[str], outer: Scope | None = None
    ) -> Scope:
        """Indices that are checked and stay as they are in the innermost loop, which would not
        become vectors with the checks in it."""
        scope = Scope(outer)
        if self.nest.checks:
            still: dict[int, bool] = {}
            for n in walk(s.value for s in statements):
                still[id(n)] = _fixed(n, moving) and all(still[id(a)] for a in n.args)
                if still[id(n)] and n.op == "within":
                    self.value(n, scope)
        return scope

    def part(self, exact: str, body: list[str], params: str) -> None:
        """Adds a function for a part of the work; the exact one is rarely called where both are."""
        rare = exact == "true" and self.angles()
        self.parts.append(
            self.function(f"{_COLD}bool" if rare else "bool", f"_{exact}", body, f", {params}")
        )

    def collapsed(self) -> list[tuple[str, Dim, dict[str, Any]]]:
        """Loops over dims of size above 1, outermost first; the store decides their order."""
        dims = [d for d, n in enumerate(self.nest.domain) if n != 1]
        first = next(s for s in self.nest.statements if isinstance(s, Store))

        def stride(d: int) -> float:
            c = indexing.coefficient(first.index, f"i{d}")
            return 0 if c is None else c.estimate(1 << 12)

        dims.sort(key=stride, reverse=True)
        return [(f"i{d}", self.nest.domain[d], {}) for d in dims]

    def rows(self) -> list[str]:
        """Each point of the kept dims at once, stage by stage."""
        kept, _ = self.split_dims()
        trig = self.angles()
        if trig:
            self.row("false", kept, trig)
        self.row("true", kept, [])
        call = "NEST_true(a, n, p);"
        if trig:
            call = f"if (!NEST_false(a, n, p)) {call}"
        rows = c_expr(product(n for _, n, _ in kept))
        return _shared(
            product(self.nest.domain),
            [f"for (int64_t p = 0; p < {rows}; ++p) {{", f"  {call}", "}"],
        )

    def angles(self) -> list[Scalar]:
        """Arguments of trigonometric functions, whose fast form is right below a limit alone."""
        nodes = walk(s.value for s in self.nest.statements)
        return [n.args[0] for n in nodes if guarded(n)]

    def row(self, exact: str, kept: Sequence[Any], trig: Sequence[Scalar]) -> None:
        """Adds the function for the row at position p; false: an angle was too large."""
        self.exact, self.checked = exact, {id(n) for n in trig}
        _, reduced = self.split_dims()
        row = Scope()
        for stage in self.nest.stages:
            if stage.kind == "row":
                for s in stage.statements:
                    assert isinstance(s, Store)
                    self.store(s, row)
            else:
                row.lines += self.sweep(stage, reduced, row)
        self.checked = set()
        lines = [
            *(["int bad = 0;"] if trig else []),
            *_unflatten("p", kept),
            *self.scratch(),
            *row.lines,
            "return !bad;" if trig else "return true;",
        ]
        self.part(exact, lines, "[[maybe_unused]] int64_t p")

    def scratch(self) -> list[str]:
        """Local arrays of the row."""
        found = {}
        for s in self.nest.statements:
            if isinstance(s, Store) and s.buffer.startswith("l"):
                found[s.buffer] = f"{s.memory} {s.buffer}[{self.nest.local[s.buffer]}];"
        return list(found.values())

    def sweep(self, stage: Stage, reduced: Sequence[Any], row: Scope) -> list[str]:
        """Loops of a full stage; accumulators are variables of the row."""
        lines = []
        for s in _accumulates(stage):
            lines.append(f"{s.value.type} {s.name} = {literal(s.initial, s.value.type)};")
            if s.combine in ("maximum", "minimum") and s.value.type in ("float", "double"):
                lines.append(f"{_flag(s)} {s.name}_nan = 0;")
        inner = Scope(self.hoisted(stage, row))
        last = reduced[-1] if reduced else ("once", 1, {})  # no name of a dim that is kept
        blocked = any(s.combine == "add" for s in _accumulates(stage))
        body = self.swept(stage, inner, blocked)
        name, size = last[0], c_expr(last[1])
        simd = _simd(stage, blocked, bool(self.checked))
        if blocked:
            parts = [s for s in _accumulates(stage) if s.combine == "add"]
            loop = [
                f"for (int64_t from = 0; from < {size}; from += {BLOCK}) {{",
                f"  const int64_t to = from + {BLOCK} < {size} ? from + {BLOCK} : {size};",
                *(f"  {s.value.type} {s.name}_part{{}};" for s in parts),
                simd,
                f"  for (int64_t {name} = from; {name} < to; ++{name}) {{",
                *_indent(_indent(body)),
                "  }",
                *(f"  {s.name} = s::add({s.name}, {s.name}_part);" for s in parts),
                "}",
            ]
        else:
            loop = [
                simd,
                f"for (int64_t {name} = 0; {name} < {size}; ++{name}) {{",
                *_indent(body),
                "}",
            ]
        for v, n, _ in reversed(reduced[:-1]):
            loop = [f"for (int64_t {v} = 0; {v} < {c_expr(n)}; ++{v}) {{", *_indent(loop), "}"]
        lines += loop
        for s in _accumulates(stage):
            if s.combine in ("maximum", "minimum") and s.value.type in ("float", "double"):
                nan = '__builtin_nan("")'
                lines.append(f"if ({s.name}_nan) {s.name} = {s.value.type}({nan});")
        return lines

    def swept(self, stage: Stage, scope: Scope, blocked: bool) -> list[str]:
        for s in stage.statements:
            if isinstance(s, Store):
                self.store(s, scope)
                continue
            x = self.value(s.value, scope)
            target = f"{s.name}_part" if s.combine == "add" and blocked else s.name
            scope.lines += _combined(s, target, x)
        return scope.lines

    def hoisted(self, stage: Stage, row: Scope) -> Scope:
        """The row's scope, with all that does not change during the sweep computed in it."""
        moving = {f"i{d}" for d in self.nest.reduced}
        fixed: dict[int, bool] = {}
        for n in walk(s.value for s in stage.statements):
            fixed[id(n)] = _fixed(n, moving) and all(fixed[id(a)] for a in n.args)
            if fixed[id(n)] and n.op not in ("const", "result"):
                self.value(n, row)
        return row

    def split_dims(self) -> tuple[list[Any], list[Any]]:
        """Loops over kept and over reduced dims of size above 1; the innermost dim is the last."""
        dims = [d for d, n in enumerate(self.nest.domain) if n != 1]
        last = innermost(self.nest)
        dims.sort(key=lambda d: d == last)
        real: list[Any] = [(f"i{d}", self.nest.domain[d], {}) for d in dims]
        kept = [x for x in real if int(x[0][1:]) not in self.nest.reduced]
        return kept, [x for x in real if int(x[0][1:]) in self.nest.reduced]

    def columns(self) -> list[str]:
        """Tiles of the last kept dim; accumulators are arrays over the tile."""
        kept, reduced = self.split_dims()
        last = kept[-1]
        body: list[str] = []
        for stage in self.nest.stages:
            before = self.before(stage.statements, {last[0]})
            scope = Scope(before)
            for a in _accumulates(stage):
                self.arrays.add(a.name)
                start = literal(a.initial, a.value.type)
                body += [
                    f"{a.value.type} {a.name}[{TILE}];",
                    f"for (int64_t j = 0; j < {TILE}; ++j) {a.name}[j] = {start};",
                ]
            for s in stage.statements:
                if isinstance(s, Store):
                    self.store(s, scope)
                else:
                    x = self.value(s.value, scope)
                    scope.lines.append(f"{s.name}[j] = s::{s.combine}({s.name}[j], {x});")
            loop = [
                *before.lines,
                "#pragma GCC ivdep",
                "for (int64_t j = 0; j < width; ++j) {",
                f"  [[maybe_unused]] const int64_t {last[0]} = start + j;",
                *_indent(scope.lines),
                "}",
            ]
            sweeps = reduced if stage.kind == "full" else []
            for v, n, _ in reversed(sweeps):
                head = f"for (int64_t {v} = 0; {v} < {c_expr(n)}; ++{v}) {{"
                loop = [head, *_indent(loop), "}"]
            if before.lines and not sweeps:  # stages have names of their own
                loop = ["{", *_indent(loop), "}"]
            body += loop
        outer = c_expr(product(n for _, n, _ in kept[:-1]))
        size = c_expr(last[1])
        tile = [
            f"const int64_t width = start + {TILE} < {size} ? {TILE} : {size} - start;",
            *_unflatten("p", kept[:-1]),
            *body,
        ]
        params = ", [[maybe_unused]] int64_t p, int64_t start"
        self.parts.append(self.function("void", "_tile", tile, params))
        return [
            f"const int64_t tiles = ({size} + {TILE - 1}) / {TILE};",
            *_shared(product(self.nest.domain), [
                f"for (int64_t q = 0; q < ({outer}) * tiles; ++q) {{",
                f"  NEST_tile(a, n, q / tiles, q % tiles * {TILE});",
                "}",
            ]),
        ]  # fmt: skip

    def panels(self) -> list[str]:
        return emit_panels.Panels(self).body()

    def split(self) -> list[str]:
        """Few rows: the first reduced dim of every sweep is cut into pieces."""
        kept, reduced = self.split_dims()
        if not reduced:
            return self.rows()
        cut = max(reduced, key=lambda x: x[1] if isinstance(x[1], int) else 1 << 40)
        row = Scope()
        for stage in self.nest.stages:
            if stage.kind == "row":
                for s in stage.statements:
                    assert isinstance(s, Store)
                    self.store(s, row)
            else:
                row.lines += self.split_sweep(stage, reduced, cut, row)
        loops = row.lines
        for v, n, _ in reversed(kept):
            loops = [f"for (int64_t {v} = 0; {v} < {c_expr(n)}; ++{v}) {{", *_indent(loops), "}"]
        return loops

    def split_sweep(self, stage: Stage, reduced: Sequence[Any], cut: Any, row: Scope) -> list[str]:
        accumulates = _accumulates(stage)
        self.hoisted(stage, row)
        inner = Scope(row)
        for s in stage.statements:
            if isinstance(s, Store):
                self.store(s, inner)
            else:
                inner.lines += _combined(s, f"{s.name}_part", self.value(s.value, inner))
        names = [s.name for s in accumulates]
        loop = inner.lines
        size = c_expr(cut[1])
        position = list(reduced).index(cut)
        for k in range(len(reduced) - 1, -1, -1):
            v, n, _ = reduced[k]
            begin, end = ("from", "to") if k == position else ("0", c_expr(n))
            simd = [_simd(stage, True)] if k == len(reduced) - 1 else []
            loop = [
                *simd,
                f"for (int64_t {v} = {begin}; {v} < {end}; ++{v}) {{",
                *_indent(loop),
                "}",
            ]
        lines = []
        for s in accumulates:
            t, start = s.value.type, literal(s.initial, s.value.type)
            lines.append(f"{t} {s.name} = {start};")
            lines.append(f"{t} {s.name}_pieces[{PIECES}];")
        own = ", ".join(self.buffers())
        work = product(self.nest.domain)
        pragma = f"#pragma omp parallel for if ({c_expr(work)} > {GRAIN}) firstprivate({own})"
        lines += [
            *([] if _is_small(work) else [pragma]),
            f"for (int64_t q = 0; q < {PIECES}; ++q) {{",
            f"  const int64_t from = ({size}) * q / {PIECES}, to = ({size}) * (q + 1) / {PIECES};",
            *(
                f"  {s.value.type} {s.name}_part = {literal(s.initial, s.value.type)};"
                for s in accumulates
            ),
            *(f"  [[maybe_unused]] {_flag(s)} {s.name}_nan = 0;" for s in accumulates),
            *_indent(loop),
            *(
                f'  if ({s.name}_nan) {s.name}_part = {s.value.type}(__builtin_nan(""));'
                for s in accumulates
                if s.combine in ("maximum", "minimum") and s.value.type in ("float", "double")
            ),
            *(f"  {n}_pieces[q] = {n}_part;" for n in names),
            "}",
            f"for (int64_t q = 0; q < {PIECES}; ++q) {{" if names else "",
            *(f"  {s.name} = s::{s.combine}({s.name}, {s.name}_pieces[q]);" for s in accumulates),
            "}" if names else "",
        ]
        return lines


def _is_small(work: Dim) -> bool:
    """Known not to be worth a second thread."""
    n = expr(work).constant
    return n is not None and n <= GRAIN


def _shared(work: Dim, loop: list[str]) -> list[str]:
    """A loop over so much work, on all threads if that is enough.

    A parallel region costs a microsecond even where its condition is false, so there is none then.
    """
    if _is_small(work):
        return loop
    shared = ["#pragma omp parallel for", *loop]
    if expr(work).constant is not None:
        return shared
    return [f"if ({c_expr(work)} > {GRAIN}) {{", *_indent(shared), "} else {", *_indent(loop), "}"]


def _accumulates(stage: Stage) -> list[Accumulate]:
    return [s for s in stage.statements if isinstance(s, Accumulate)]


def _combined(s: Accumulate, target: str, x: str) -> list[str]:
    """Statements that combine a value into an accumulator; loops over them vectorise."""
    if s.value.type in ("float", "double"):
        if s.combine == "maximum":
            nan = target.removesuffix("_part") + "_nan"
            return [f"{nan} |= {x} != {x};", f"{target} = {x} > {target} ? {x} : {target};"]
        if s.combine == "minimum":
            nan = target.removesuffix("_part") + "_nan"
            return [f"{nan} |= {x} != {x};", f"{target} = {x} < {target} ? {x} : {target};"]
        if s.combine in ("add", "mul"):
            return [f"{target} {'+' if s.combine == 'add' else '*'}= {x};"]
    return [f"{target} = s::{s.combine}({target}, {x});"]


def _flag(s: Accumulate) -> str:
    """Type of the flag that a NaN was seen: as wide as the value, so that both share a vector."""
    return "int64_t" if s.value.type == "double" else "int32_t"


def _simd(stage: Stage, parts: bool, checks: bool = False) -> str:
    """The pragma that lets sums and extremes be reordered."""
    clauses = ["reduction(| : bad)"] if checks else []
    for s in _accumulates(stage):
        if s.value.type not in ("float", "double"):
            return ""
        name = f"{s.name}_part" if parts and (s.combine == "add" or parts) else s.name
        match s.combine:
            case "add" | "mul":
                clauses.append(f"reduction({'+' if s.combine == 'add' else '*'} : {name})")
            case "maximum" | "minimum":
                clauses.append(f"reduction({s.combine[:3]} : {name}) reduction(| : {s.name}_nan)")
            case _:
                return ""
    if not _accumulates(stage):
        return "#pragma GCC ivdep"
    return f"#pragma omp simd {' '.join(clauses)}"


def _fixed(n: Scalar, moving: set[str]) -> bool:
    if n.op == "load":
        return not (n.value[1].symbols & moving)
    return n.op != "index" or not (n.value.symbols & moving)


def _unflatten(p: str, loops: Sequence[Any]) -> list[str]:
    """Loop variables from a flat position."""
    lines: list[str] = []
    rest = p
    for k, (v, n, _) in enumerate(reversed(loops)):
        if k == len(loops) - 1:
            lines.append(f"const int64_t {v} = {rest};")
        else:
            lines.append(f"const int64_t {v} = {rest} % ({c_expr(n)});")
            rest = f"({rest} / ({c_expr(n)}))"
    return lines


def _read(place: str, memory: str) -> str:
    match memory:
        case "F16" | "BF16":
            return f"widen({place})"
        case "C64" | "C128" | "float" | "double" | "int64_t" | "uint64_t":
            return place
        case "bool":
            return f"{place} != 0"
    return f"static_cast<int64_t>({place})"


def _indent(lines: Iterable[str]) -> list[str]:
    return [x if x.startswith("#") or not x else f"  {x}" for x in lines]


#: not the digits of a hexadecimal constant such as 0x1.b2dp-2
_NAMES = re.compile(r"(?<![\w.])(?:b\d+\b|l\d+\b|r\d+_\d+(?=_|\b))")


def _canonical(lines: list[str]) -> tuple[list[str], list[str]]:
    """A nest's text with names by order of appearance, and the buffers that they stand for.

    Nests that differ in their buffers alone, as those of a model's equal layers do, become equal.
    """
    order: dict[str, dict[str, str]] = {"b": {}, "l": {}, "r": {}}

    def rename(match: re.Match[str]) -> str:
        names = order[match[0][0]]
        return names.setdefault(match[0], f"{match[0][0]}{len(names)}")

    out = [_NAMES.sub(rename, x) for x in lines]
    return [x.replace("@b", "") for x in out], list(order["b"])


#: an index that is looked at before it is used; the first that is wrong is told to the caller
_WITHIN = """
[[gnu::cold, gnu::noinline]] void outside(int64_t i, int64_t n, int64_t check, int64_t* fault) {
#pragma omp critical
  if (!fault[0]) fault[0] = check, fault[1] = i, fault[2] = n;
}
inline int64_t within(int64_t i, int64_t n, int64_t check, int64_t* fault) {
  if (static_cast<uint64_t>(i) < static_cast<uint64_t>(n)) [[likely]] return i;
  outside(i, n, check, fault);
  return 0;
}
""".splitlines()


#: operations that no compiler turns into a constant, whatever their arguments
_COMPUTED = frozenset(
    ("load", "add", "sub", "mul", "div", "neg", "abs", "floor", "ceil", "trunc", "round", "result")
)


def _may_be_folded(n: Scalar) -> bool:
    """Whether a conversion to 64 bits might be of a constant, nan say, for the C++ compiler. Else a
    plain conversion does what processors do, in half the time."""
    if n.type not in ("int64_t", "uint64_t") or n.args[0].type not in COMPLEX:
        return False
    return n.args[0].op not in _COMPUTED or any(
        m.op not in _COMPUTED and m.op not in ("const", "size", "index") for m in walk([n.args[0]])
    )


#: see `scalar.whole`; a plain conversion is the compiler's to choose where it knows the number
_WHOLE = """
template <class To, class From>
inline int64_t whole(From x) {
  constexpr To least = To(1) << (8 * sizeof(To) - 1);
  return x >= From(least) && x < -From(least) ? static_cast<To>(x) : least;
}
template <class To, class From>
  requires std::is_same_v<To, uint64_t>
inline uint64_t whole(From x) {
  constexpr uint64_t half = uint64_t(1) << 63;
  const uint64_t upper = x >= From(half) ? half : 0;
  return static_cast<uint64_t>(whole<int64_t>(x - From(upper))) + upper;
}
""".splitlines()


def source(nests: Sequence[Nest], memory: dict[str, str], symbols: Sequence[str]) -> str:
    """A whole translation unit: the nests' functions, and `run`, which calls nest k."""
    functions: dict[str, int] = {}
    text: list[str] = []
    cases: list[str] = []
    for k, nest in enumerate(nests):
        lines = Emitter(nest, memory, symbols).emit()
        head = [x for x in lines if x.startswith("//")]
        body, buffers = _canonical(lines[len(head) :])
        may_fail = bool(nest.checks)
        body = [x.replace("a[FAULT]", f"a[{len(buffers)}]") for x in body]
        key = "\n".join(body)
        if key not in functions:
            functions[key] = len(functions)
            text += [*head, *(x.replace("NEST", f"nest{functions[key]}") for x in body)]
        pointers = ", ".join([*(f"b[{name[1:]}]" for name in buffers), *["fault"] * may_fail])
        call = f"return nest{functions[key]}(a, n);"
        cases.append(f"    case {k}: {{ void* const a[] = {{{pointers}}}; {call} }}")
    return "\n".join(
        [
            '#include "kernels/scalar_math.h"',
            "",
            "using namespace flambeau::kernels::FB_ISA;",
            "namespace {",
            "",
            *(_WITHIN if any(nest.checks for nest in nests) else []),
            *(_WHOLE if any("whole<" in x for x in text) else []),
            *text,
            "}  // namespace",
            "",
            'extern "C" __attribute__((visibility("default")))',
            "void run(int k, void* const* b, const int64_t* n, [[maybe_unused]] int64_t* fault) {",
            "  switch (k) {",
            *cases,
            "  }",
            "}",
            "",
        ]  # fmt: skip
    )
