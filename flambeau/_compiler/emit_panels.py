"""C++ of nests that reduce many rows into few columns side by side: sums of a bias's gradient,
statistics of channels that lie last.

Every sweep goes over the rows once, all columns at a time, so memory is read in its order. Rows are
cut into pieces for the threads; each piece has accumulators of its own, which are combined in the
order of pieces: results do not depend on the number of threads. What does not change from row to
row is computed once per piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._ir.graph import Dim
from .._ir.symexpr import expr
from .cpp_text import Scope, c_expr, literal
from .nest import Accumulate, Stage, Store
from .scalar import Scalar, walk

if TYPE_CHECKING:
    from .emit_cpp import Emitter

COLUMNS = 2048  # at most: accumulators of a piece stay in the first-level cache
PIECES = 16  # at most: accumulators of all pieces are on the stack
ROWS = 32  # that a piece has at least
BLOCK = 512  # rows added up before they join the sum of the piece: keeps rounding errors small
_TRIVIAL = ("const", "result", "load", "size", "index")


def fits(rows: Dim, columns: Dim, grain: int) -> bool:
    """Whether so many rows and columns are worth it."""
    n, m = expr(columns).constant, expr(rows).constant
    if n is None or n > COLUMNS:
        return False
    return m is None or (m >= 4 * ROWS and m * n > grain)


class Panels:
    """The function of one nest, being written."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        (self.column,), self.reduced = emitter.split_dims()
        self.width = expr(self.column[1]).constant
        sizes = [expr(n).constant or 1 << 40 for _, n, _ in self.reduced]
        self.cut = sizes.index(max(sizes))  # the loop whose range is cut into pieces
        self.done: list[Accumulate] = []  # what earlier stages accumulated

    def body(self) -> list[str]:
        size = c_expr(self.reduced[self.cut][1])
        lines = [
            f"const int64_t rows = {size};",
            f"const int64_t most = rows / {ROWS} < {PIECES} ? rows / {ROWS} : {PIECES};",
            "const int64_t pieces = most > 1 ? most : 1;",
        ]
        for k, stage in enumerate(self.emitter.nest.stages):
            lines += self.rows(k, stage) if stage.kind == "full" else self.once(stage)
        return lines

    def once(self, stage: Stage) -> list[str]:
        """A stage that runs once for each column."""
        scope = Scope()
        for s in stage.statements:
            assert isinstance(s, Store)
            self.emitter.store(s, scope)
        return self.columns(scope.lines)

    def columns(self, lines: Sequence[str], depth: int = 0, independent: bool = False) -> list[str]:
        """A loop over the columns; nothing where there are no lines."""
        if not lines:
            return []
        indent = "  " * depth
        return [
            *(["#pragma GCC ivdep"] if independent else []),
            f"{indent}for (int64_t j = 0; j < {self.width}; ++j) {{",
            f"{indent}  [[maybe_unused]] const int64_t {self.column[0]} = j;",
            *(f"{indent}  {x}" for x in lines),
            f"{indent}}}",
        ]

    def rows(self, k: int, stage: Stage) -> list[str]:
        """A stage that sweeps the rows, piece by piece."""
        own = [s for s in stage.statements if isinstance(s, Accumulate)]
        self.part(k, stage, own)
        declared, starts, joined, ends = [], [], [], []
        for s in own:
            t, start = s.value.type, literal(s.initial, s.value.type)
            declared += [
                f"{t} {s.name}[{self.width}];",
                f"{t} {s.name}_pieces[{PIECES}][{self.width}];",
            ]
            starts.append(f"{s.name}_pieces[q][j] = {s.name}_part[j] = {start};")
            joined.append(
                f"{s.name}_pieces[q][j] = s::{s.combine}({s.name}_pieces[q][j], {s.name}_part[j]);"
            )
            joined.append(f"{s.name}_part[j] = {start};")
            total = f"s::{s.combine}({s.name}[j], {s.name}_pieces[q][j])"
            ends.append(f"{s.name}[j] = q ? {total} : {s.name}_pieces[q][j];")
        given = ["a", "n", "from", "to", *(f"{s.name}_part" for s in own)]
        given += [s.name for s in self.done]
        self.done += own
        return [
            *declared,
            "#pragma omp parallel for if (pieces > 1)",
            "for (int64_t q = 0; q < pieces; ++q) {",
            "  const int64_t end = rows * (q + 1) / pieces;",
            *(f"  {s.value.type} {s.name}_part[{self.width}];" for s in own),
            *self.columns(starts, 1),
            f"  for (int64_t from = rows * q / pieces; from < end; from += {BLOCK}) {{",
            f"    const int64_t to = from + {BLOCK} < end ? from + {BLOCK} : end;",
            f"    NEST_rows{k}({', '.join(given)});",
            *self.columns(joined, 2),
            "  }",
            "}",
            *(
                ["for (int64_t q = 0; q < pieces; ++q) {", *self.columns(ends, 1), "}"]
                if own
                else []
            ),
        ]

    def part(self, k: int, stage: Stage, own: Sequence[Accumulate]) -> None:
        """Adds the function of a sweep over the rows of a piece."""
        fixed = Scope()
        hoisted = self.hoisted(stage, fixed)
        before = self.emitter.before(stage.statements, {self.column[0]}, fixed)
        inner = Scope(before)
        masks = self.masks(stage, inner)
        self.emitter.arrays.update(s.name for s in own)
        for s in stage.statements:
            if isinstance(s, Store):
                self.emitter.store(s, inner)
            else:
                place, x = f"{s.name}_part[j]", self.emitter.value(s.value, inner)
                inner.lines.append(f"{place} = s::{s.combine}({place}, {x});")
        loop = [*before.lines, *masks, *self.columns(inner.lines, independent=True)]
        for at in range(len(self.reduced) - 1, -1, -1):
            v, n, _ = self.reduced[at]
            start, stop = ("from", "to") if at == self.cut else ("0", c_expr(n))
            head = f"for (int64_t {v} = {start}; {v} < {stop}; ++{v}) {{"
            loop = [head, *(x if x.startswith("#") else f"  {x}" for x in loop), "}"]
        params = [f"{s.value.type}* __restrict {s.name}_part" for s in own]
        params += [f"const {s.value.type}* __restrict {s.name}" for s in self.done]
        more = "".join(f", [[maybe_unused]] {p}" for p in ("int64_t from", "int64_t to", *params))
        # Inlined into the loops around it, GCC 12 makes wrong sums of some widths (12 of int64).
        returns = "__attribute__((noinline)) void"
        self.emitter.parts.append(
            self.emitter.function(returns, f"_rows{k}", [*hoisted, *loop], more)
        )

    def masks(self, stage: Stage, scope: Scope) -> list[str]:
        """The row's masks as ints, for the scope: among floats, bytes would take whole vectors of
        them, more columns than there may be."""
        lines: list[str] = []
        for n in walk(s.value for s in stage.statements):
            if n.op == "load" and n.value[2] == "bool" and not scope.find(n):
                name = f"mask{len(lines)}"
                value = self.emitter.expression(n, scope)
                fill = self.columns([f"{name}[j] = {value};"])
                lines += [f"int32_t {name}[{self.width}];", "#pragma omp simd", *fill]
                scope.names[id(n)] = f"({name}[j] != 0)"
        return lines

    def hoisted(self, stage: Stage, fixed: Scope) -> list[str]:
        """Arrays of what depends on the column alone; the scope knows them afterwards."""
        moving = {v for v, _, _ in self.reduced}
        nodes = walk(s.value for s in stage.statements)
        still: dict[int, bool] = {}
        for n in nodes:
            still[id(n)] = _still(n, moving) and all(still[id(a)] for a in n.args)
        roots = [s.value for s in stage.statements] + [
            a for n in nodes if not still[id(n)] for a in n.args
        ]
        wanted = [n for n in nodes if still[id(n)] and n.op not in _TRIVIAL and n in roots]
        if not wanted:
            return []
        scope = Scope()
        scope.counter = fixed.counter
        made: list[tuple[Scalar, str]] = []
        arrays: list[str] = []
        for n in wanted:
            value, name = self.emitter.value(n, scope), scope.fresh()
            arrays.append(f"{n.type} {name}[{self.width}];")
            scope.lines.append(f"{name}[j] = {value};")
            made.append((n, name))
        for n, name in made:
            fixed.names[id(n)] = f"{name}[j]"
        return [*arrays, *self.columns(scope.lines)]


def _still(n: Scalar, moving: set[str]) -> bool:
    """Its own value stays as it is while the variables move."""
    if n.op == "load":
        return not (n.value[1].symbols & moving)
    return n.op != "index" or not (n.value.symbols & moving)
