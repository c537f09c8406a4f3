"""Triton of loop nests: a module of kernels, and a function that launches each nest.

The counterpart of `emit_cpp`, from the same nests. `triton_tiles` decides what a program covers,
`triton_scalar` says scalars; here stages become text. A kernel's values live in scopes: the
program's own, and inside of it that of a loop over the reduced points where these are not a tile.
Invariant: what lies beyond the data is masked at every load and store that depends on the place,
and filled with what changes nothing before it is reduced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .._ir.symexpr import Atom, Expr, expr
from . import triton_scalar as scalar_text
from .nest import Accumulate, Nest, Stage, Store
from .scalar import Scalar, walk
from .triton_scalar import DTYPE, IN_MEMORY, REDUCTIONS, Refused
from .triton_tiles import Axis, Plan, plan


def index_text(e: Expr) -> str:
    """An integer expression over tiles; all divisions are of non-negative numbers."""
    parts = []
    for monomial, c in e.terms:
        factors = [_atom(a) for a, n in monomial for _ in range(n)]
        if abs(c) != 1 or not factors:
            factors.append(str(abs(c)))
        parts.append(("- " if c < 0 else "+ ") + " * ".join(factors))
    text = " ".join(parts).removeprefix("+ ")
    return f"0 {text}" if text.startswith("-") else text or "0"


def _atom(a: Atom) -> str:
    if a.kind == "sym":
        return a.name
    texts = [index_text(x) for x in a.args]
    if a.kind in ("div", "mod"):
        return f"(({texts[0]}) {'//' if a.kind == 'div' else '%'} ({texts[1]}))"
    out = texts[0]
    for x in texts[1:]:
        out = f"tl.{a.kind}imum({out}, {x})"
    return out


@dataclass
class Scope:
    """Names of values computed so far; an inner scope sees those of the outer one."""

    outer: Scope | None = None
    names: dict[int, str] = field(default_factory=dict)
    stored: dict[tuple[str, Expr], str] = field(default_factory=dict)  # place -> value in memory
    lines: list[str] = field(default_factory=list)

    def find(self, n: Scalar) -> str | None:
        return self.names.get(id(n)) or (self.outer.find(n) if self.outer else None)

    def held(self, place: tuple[str, Expr]) -> str | None:
        return self.stored.get(place) or (self.outer.held(place) if self.outer else None)


@dataclass
class Kernel:
    """One function. `pointers`: argument -> letters of its type; `scratch` are among them."""

    name: str
    pointers: dict[str, str]
    symbols: list[str]
    lines: list[str]
    grid: str
    warps: int


class Emitter:
    """The kernels of one nest."""

    def __init__(self, nest: Nest, symbols: Sequence[str]) -> None:
        self.nest, self.symbols = nest, symbols
        self.plan: Plan = plan(nest)
        self.zeros = {v: expr(0) for v in self.plan.gone}
        self.axes = {v: "x" for v, _ in self.plan.x.loops}
        if self.plan.r is not None:
            self.axes |= {v: "r" for v, _ in self.plan.r.loops}
        self.buffers: dict[str, str] = {}  # names of the program -> names here
        self.results: dict[str, str] = {}
        self.scratch: dict[str, tuple[str, str]] = {}  # name -> elements, C++ type in memory
        self.kernels: list[Kernel] = []
        self.moving: dict[int, bool] = {}  # see `moves`
        self.start()

    def sizes_of_launch(self) -> frozenset[str]:
        """Sizes that grids and scratch memory depend on."""
        return self.plan.x.total.symbols

    # One kernel -----------------------------------------------------------------------------

    def start(self) -> None:
        """Forgets what the last kernel computed."""
        self.program = Scope()
        self.scope = self.program
        self.pointers: dict[str, str] = {}
        self.used: set[str] = set()
        self.counter = 0
        self.written: set[str] = set()

    def finish(self, grid: str) -> None:
        head = self.axis_lines("x", self.plan.x, "tl.program_id(0)")
        if self.plan.whole and self.plan.r is not None:
            head += self.axis_lines("r", self.plan.r, "")
        lines = head + self.program.lines
        used = [s for s in self.symbols if s in self.used]
        lines = [f"{s} = {s}.to(tl.int64)" for s in used] + lines
        name = "NEST" if not self.several else f"NEST_{len(self.kernels)}"
        self.kernels.append(Kernel(name, self.pointers, used, lines, grid, self.plan.warps))
        self.start()

    @property
    def several(self) -> bool:
        return self.plan.strategy == "split"

    def fresh(self, letter: str = "t") -> str:
        self.counter += 1
        return f"{letter}{self.counter}"

    def text(self, e: Expr) -> str:
        """An index as text; notes the sizes that it needs."""
        self.used |= {s for s in e.symbols if s not in self.axes}
        return index_text(e)

    def axis_lines(self, letter: str, axis: Axis, first: str, start: str = "") -> list[str]:
        """Positions along an axis, the mask of those that exist, the variables of its loops."""
        wide = ".to(tl.int64)" if self.plan.wide else ""
        place = f"tl.arange(0, {axis.block})"
        if self.plan.r is not None:
            place += "[:, None]" if letter == "x" else "[None, :]"
        place += wide
        if first and axis.block == 1:
            place = f"{first}{wide} + {place}"
        elif first:
            place = f"{first}{wide} * {axis.block} + {place}"
        elif start:
            place = f"{start} + {place}"
        name = axis.loops[0][0] if len(axis.loops) == 1 else letter
        lines = [f"{name} = {place}"]
        if not axis.exact:
            lines.append(f"{letter}_in = {name} < {self.text(axis.total)}")
        rest = name
        for k, (v, n) in enumerate(reversed(axis.loops)):
            if len(axis.loops) == 1:
                break
            size = self.text(expr(n))
            size = size if size.isalnum() else f"({size})"
            last = k == len(axis.loops) - 1
            lines.append(f"{v} = {rest}" if last else f"{v} = {rest} % {size}")
            rest = f"({rest} // {size})"
        return lines

    # Values ---------------------------------------------------------------------------------

    def axes_of(self, e: Expr) -> set[str]:
        return {self.axes[s] for s in e.symbols if s in self.axes}

    def moves(self, n: Scalar) -> bool:
        """Does the value change along the reduced points?"""
        for node in walk([n]) if id(n) not in self.moving else ():
            if node.op in ("load", "index"):
                index = node.value[1] if node.op == "load" else node.value
                found = "r" in self.axes_of(index.replace(self.zeros))
            else:
                found = any(self.moving[id(a)] for a in node.args)
            self.moving[id(node)] = found
        return self.moving[id(n)]

    def value(self, n: Scalar) -> str:
        """The name of a value; what it needs is computed first, as far out as it can be."""
        for node in walk([n]):
            if self.scope.find(node) is None and (node.op != "const" or node is n):
                scope = self.scope if self.moves(node) else self.program
                text = self.expression(node, scope)
                if text.isidentifier():
                    scope.names[id(node)] = text
                else:
                    name = self.fresh()
                    scope.names[id(node)] = name
                    scope.lines.append(f"{name} = {text}")
        found = self.scope.find(n)
        assert found
        return found

    def expression(self, n: Scalar, scope: Scope) -> str:
        match n.op:
            case "const":
                return scalar_text.constant(n.value, n.type)
            case "result":
                return self.results[n.value]
            case "load":
                return self.load(n, scope)
            case "size" | "index":
                e = n.value.replace(self.zeros)
                constant = e.constant is not None
                return (
                    f"tl.full([], {e}, tl.int64)" if constant else f"({self.text(e)}).to(tl.int64)"
                )
        plain = scalar_text.literals(n)
        args = [
            scalar_text.literal(a.value, a.type) if i in plain else self.value(a)
            for i, a in enumerate(n.args)
        ]
        return scalar_text.expression(n, args)

    def load(self, n: Scalar, scope: Scope) -> str:
        buffer, index, memory = n.value
        register = scalar_text.dtype(n.type)
        index = index.replace(self.zeros)
        held = scope.held((buffer, index))
        if held is None:
            place, mask = self.place(buffer, index, memory)
            held = f"tl.load({place}{mask})"
        same = IN_MEMORY[memory][0] == register
        return held if same else f"{held}.to({register})"

    def place(self, buffer: str, index: Expr, memory: str, tile: bool = False) -> tuple[str, str]:
        """Address and mask of elements. A tile is wanted by stores, also where all is one point."""
        name = self.buffers.setdefault(buffer, f"{buffer[0]}{self.number(buffer[0])}")
        if memory not in IN_MEMORY:
            scalar_text.stored("", "", memory)
        self.pointers[name] = "*" + IN_MEMORY[memory][1]
        if buffer.startswith("l"):
            self.scratch[name] = (self.local_size(buffer), memory)
            index = index + expr(self.nest.local[buffer]) * self.row()
        axes = self.axes_of(index)
        text = self.text(index)
        if tile and not axes:
            text = f"{self.position('x')} * 0" + (f" + {text}" if text != "0" else "")
        masks = [f"{a}_in" for a in ("x", "r") if a in axes and not self.axis(a).exact]
        address = name if text == "0" else f"{name} + {text if text.isalnum() else f'({text})'}"
        return address, f", {' & '.join(masks)}" if masks else ""

    def number(self, letter: str) -> int:
        return sum(name.startswith(letter) for name in self.buffers.values())

    def axis(self, letter: str) -> Axis:
        axis = self.plan.x if letter == "x" else self.plan.r
        assert axis is not None
        return axis

    def position(self, letter: str) -> str:
        loops = self.axis(letter).loops
        return loops[0][0] if len(loops) == 1 else letter

    def row(self) -> Expr:
        """The number of the row, as an expression over the kept variables."""
        place = expr(0)
        for v, n in self.plan.x.loops:
            place = place * expr(n) + Expr({((Atom("sym", v), 1),): 1})
        return place

    def local_size(self, buffer: str) -> str:
        return str(expr(self.nest.local[buffer]) * self.plan.x.total)

    # Statements -----------------------------------------------------------------------------

    def store(self, s: Store) -> None:
        x = self.value(s.value)
        index = s.index.replace(self.zeros)
        scope = self.scope
        text = scalar_text.stored(x, s.value.type, s.memory)
        text = self.named(scope, text)
        scope.stored[(s.buffer, index)] = text
        if s.buffer.startswith("l") and scope is self.program:
            return  # stays in registers
        place, mask = self.place(s.buffer, index, s.memory, tile=True)
        self.written.add(s.buffer)
        scope.lines.append(f"tl.store({place}, {text}{mask})")

    def neutral(self, s: Accumulate) -> str:
        if s.combine not in REDUCTIONS:
            raise Refused(f"triton: {s.combine} does not combine the parts of a reduction")
        scalar_text.dtype(s.value.type)
        return scalar_text.literal(REDUCTIONS[s.combine][0], s.value.type)

    def filled(self, s: Accumulate) -> str:
        """The value over the whole tile, with what changes nothing beyond the data."""
        x, neutral, r = self.value(s.value), self.neutral(s), self.axis("r")
        if not r.exact:
            return f"tl.where(r_in, {x}, {neutral})"
        if self.moves(s.value):
            return x
        return f"tl.broadcast_to({x}, [{self.plan.x.block}, {r.block}])"

    def reduced(self, s: Accumulate, tile: str) -> None:
        """Names the result of a tile's reduction."""
        tile = self.named(self.program, tile)
        name = self.result_name(s)
        template = self.template(s)
        self.program.lines.append(f"{name} = {template.format(tile)}")

    def result_name(self, s: Accumulate) -> str:
        return self.results.setdefault(s.name, f"r{len(self.results)}")

    def template(self, s: Accumulate) -> str:
        found = scalar_text.chosen(REDUCTIONS[s.combine][1], s.value.type)
        if found is None:
            raise Refused(f"triton: {s.combine} of {s.value.type} is no reduction of a tile")
        return found

    def combined(self, s: Accumulate, a: str, b: str) -> str:
        template = scalar_text.rule(s.combine, s.value.type)
        assert template is not None
        return template.format(a, b, T=DTYPE[s.value.type])

    def begun(self, s: Accumulate) -> None:
        """Combines the initial value, where it is not the one that changes nothing."""
        if scalar_text.literal(s.initial, s.value.type) != self.neutral(s):
            name = self.result_name(s)
            start = scalar_text.constant(s.initial, s.value.type)
            self.program.lines += [f"{name}_0 = {start}",
                                   f"{name} = {self.combined(s, f'{name}_0', name)}"]  # fmt: skip

    # Strategies -----------------------------------------------------------------------------

    def emit(self) -> list[Kernel]:
        """The nest's kernels, in the order in which they are launched."""
        if self.several:
            for stage in self.nest.stages:
                self.split_stage(stage)
            return self.kernels
        for stage in self.nest.stages:
            self.barrier(stage)
            if stage.kind == "row" or self.plan.whole:
                for s in stage.statements:
                    self.statement(s)
            else:
                self.loop(stage, "0", self.text(self.axis("r").total))
        self.finish(f"(cdiv({self.plan.x.total}, {self.plan.x.block}),)")
        return self.kernels

    def barrier(self, stage: Stage) -> None:
        """Other threads of the program may have stored what the stage loads."""
        loads = {n.value[0] for n in walk(s.value for s in stage.statements) if n.op == "load"}
        if loads & self.written and (not self.plan.whole or self.unheld(stage)):
            self.program.lines.append("tl.debug_barrier()")
            self.written = set()

    def unheld(self, stage: Stage) -> bool:
        return any(
            n.op == "load" and n.value[0] in self.written
            and self.program.held((n.value[0], n.value[1].replace(self.zeros))) is None
            for n in walk(s.value for s in stage.statements)
        )  # fmt: skip

    def statement(self, s: Store | Accumulate) -> None:
        if isinstance(s, Store):
            self.store(s)
        else:
            self.reduced(s, self.filled(s))
            self.begun(s)

    def loop(self, stage: Stage, begin: str, end: str) -> None:
        """A stage as a loop over tiles of reduced points; accumulators are tiles."""
        x, r = self.plan.x, self.axis("r")
        parts = {}
        for s in stage.statements:
            if isinstance(s, Accumulate):
                parts[s.name] = name = self.fresh("a")
                fill = f"tl.full([{x.block}, {r.block}], {self.neutral(s)}, {DTYPE[s.value.type]})"
                self.program.lines.append(f"{name} = {fill}")
        self.scope = inner = Scope(self.program)
        for s in stage.statements:
            if isinstance(s, Store):
                self.store(s)
                continue
            value = self.value(s.value)
            if not r.exact:
                value = self.named(inner, self.filled(s))
            part = parts[s.name]
            inner.lines.append(f"{part} = {self.combined(s, part, value)}")
        self.scope = self.program
        head = self.axis_lines("r", r, "", "start")
        self.program.lines += [
            f"for start in range({begin}, {end}, {r.block}):",
            *(f"    {line}" for line in head + inner.lines),
        ]
        for s in stage.statements:
            if isinstance(s, Accumulate):
                self.reduced(s, parts[s.name])
                if not self.several:
                    self.begun(s)

    def named(self, scope: Scope, text: str) -> str:
        """The text's value under a name."""
        if text.isidentifier():
            return text
        name = self.fresh()
        scope.lines.append(f"{name} = {text}")
        return name

    def split_stage(self, stage: Stage) -> None:
        """A kernel of its own: combines what earlier ones left of each piece, runs, leaves its own.

        A row of partial results belongs to each kept point.
        """
        x, pieces = self.plan.x, self.plan.pieces
        self.gather(stage)
        programs = f"cdiv({x.total}, {x.block})"
        if stage.kind == "row":
            for s in stage.statements:
                self.statement(s)
            self.finish(f"({programs},)")
            return
        r = self.axis("r")
        total = self.text(r.total)
        wide = ".to(tl.int64)" if self.plan.wide else ""
        self.program.lines += [
            f"step = ({total}) // {pieces * r.block} * {r.block} + {r.block}",
            f"first = tl.program_id(1){wide} * step",
            f"last = tl.minimum(first + step, {total})",
        ]
        self.loop(stage, "first", "last")
        for s in stage.statements:
            if isinstance(s, Accumulate):
                self.leave(s)
        self.finish(f"({programs}, {pieces})")

    def leave(self, s: Accumulate) -> None:
        """Stores a piece's part of a result."""
        part = "p" + self.result_name(s)[1:]
        memory = s.value.type
        self.scratch[part] = (str(self.plan.x.total * self.plan.pieces), memory)
        self.pointers[part] = "*" + IN_MEMORY[memory][1]
        mask = "" if self.plan.x.exact else ", x_in"
        place = f"{self.position('x')} * {self.plan.pieces} + tl.program_id(1)"
        self.program.lines.append(f"tl.store({part} + ({place}), {self.results[s.name]}{mask})")

    def gather(self, stage: Stage) -> None:
        """Combines the pieces of the results that a stage needs."""
        wanted = {n.value for n in walk(s.value for s in stage.statements) if n.op == "result"}
        for other in self.nest.stages:
            for s in other.statements:
                if isinstance(s, Accumulate) and s.name in wanted:
                    part = "p" + self.result_name(s)[1:]
                    self.pointers[part] = "*" + IN_MEMORY[s.value.type][1]
                    mask = "" if self.plan.x.exact else ", x_in"
                    places = f"tl.arange(0, {self.plan.pieces})[None, :]"
                    place = f"{self.position('x')} * {self.plan.pieces} + {places}"
                    self.reduced(s, f"tl.load({part} + ({place}){mask})")
                    self.begun(s)
