"""Symbolic integers, and the environment that answers questions about them.

`SymInt` stands where an int stands. Arithmetic gives expressions; a comparison is answered from
what is known (ranges of symbols, facts) or, failing that, from the hint, and then it is recorded as
a guard: whatever was decided holds for all sizes that pass the guards. Nothing is decided silently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field

from .symexpr import Atom, Expr, expr, of_atom, symbol
from .symscalar import HUGE, SymInt
from .where import Where, user_frame

Bound = float  # an int, or an infinity


class UnbackedError(RuntimeError):
    """The value of a symbol that only the run will tell was asked for."""


@dataclass(frozen=True)
class Origin:
    """Where a symbol's value is found: a dim's size or stride, an offset, a plain int input."""

    input: int
    kind: str = "size"  # size | stride | offset | value
    dim: int = 0

    def __str__(self) -> str:
        place = f" {self.kind} {self.dim}" if self.kind in ("size", "stride") else f" {self.kind}"
        return f"input {self.input}{place}"


@dataclass(frozen=True)
class Symbol:
    """A symbol: the value it was made for (None: unbacked), its range, where it comes from."""

    name: str
    hint: int | None
    low: Bound
    high: Bound
    origin: Origin | None


@dataclass(frozen=True)
class Guard:
    """`expr` compared with 0, which compiled code relies on."""

    relation: str  # ">=" | "==" | "!="
    expr: Expr
    where: Where | None = field(default=None, compare=False)

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether it is true for these values of the symbols."""
        return _compare(self.relation, self.expr.evaluate(values))

    def __str__(self) -> str:
        left = Expr({m: c for m, c in self.expr.terms if c > 0})
        right = Expr({m: -c for m, c in self.expr.terms if c < 0})
        return f"{left} {self.relation} {right}"


def _compare(relation: str, value: Bound) -> bool:
    return value >= 0 if relation == ">=" else (value == 0) == (relation == "==")


class ShapeEnv:
    """Symbols, what is known of them, and the guards in the order in which they were recorded."""

    def __init__(self, locate: Callable[[], Where | None] = user_frame) -> None:
        self.symbols: dict[str, Symbol] = {}
        self.guards: list[Guard] = []
        self.facts: list[Guard] = []
        self.history: list[Guard] = []  # all that was learned, as it was learned
        self.locate = locate
        self.asked_by_rules = 0  # how many rules are running that ask, see `assuming`
        self.ranges: dict[str, tuple[Bound, Bound]] = {}  # with what facts say of one symbol
        self._equal: dict[str, Expr] = {}  # a symbol that equals an expression of others
        self._known: dict[tuple[str, Expr], bool] = {}

    def copied(self) -> ShapeEnv:
        """Another one, which learns for itself."""
        out = copy(self)
        for name in ("symbols", "guards", "facts", "history", "ranges", "_equal", "_known"):
            setattr(out, name, copy(getattr(self, name)))
        return out

    # -- symbols --------------------------------------------------------------------------------
    # Note [Names of symbols]
    # The first letter says what is known without an environment: s of sizes and of numbers that are
    # not negative, z of numbers that may be, n of those that only the run tells.

    def symbol(
        self, hint: int, origin: Origin | None = None, low: Bound = 2, high: Bound = math.inf
    ) -> SymInt | int:
        """A symbol for a value that varies; 0 and 1 stay numbers. See Note [Names of symbols]."""
        if hint in (0, 1):
            return hint
        kind = "s" if low >= 0 else "z"
        return self.declare(Symbol(f"{kind}{len(self.symbols)}", hint, low, high, origin))

    def unbacked(self, low: Bound = -math.inf, high: Bound = math.inf) -> SymInt:
        """A symbol whose value only the run tells."""
        return self.declare(Symbol(f"n{len(self.symbols)}", None, low, high, None))

    def declare(self, s: Symbol) -> SymInt:
        self.symbols[s.name] = s
        self.ranges[s.name] = s.low, s.high
        return SymInt(symbol(s.name), self)

    def is_own(self, n: SymInt, origin: Origin) -> bool:
        """Whether a number is just the symbol of that origin."""
        return any(s.origin == origin and n.expr == symbol(s.name) for s in self.symbols.values())

    def wrap(self, e: Expr) -> SymInt | int:
        """An expression as a number: an int where it is constant."""
        e = self.simplify(e)
        if e.constant is None and any(abs(c) >= HUGE for _, c in e.terms):
            return self.specialise(e)
        return SymInt(e, self) if e.constant is None else e.constant

    def simplify(self, e: Expr) -> Expr:
        """The expression with symbols that equal others written as those."""
        return e.replace(self._equal)

    def hints(self) -> dict[str, int]:
        return {s.name: s.hint for s in self.symbols.values() if s.hint is not None}

    def hint(self, e: Expr) -> int:
        """The value for which the graph is made."""
        unknown = [s for s in sorted(e.symbols) if self.symbols[s].hint is None]
        if unknown:
            raise UnbackedError(
                f"the value of {e} depends on {', '.join(unknown)}, which only the run tells "
                f"({self.locate()}); state what holds of it beforehand"
            )
        return e.evaluate(self.hints())

    # -- what is known --------------------------------------------------------------------------

    def bounds(self, e: Expr) -> tuple[Bound, Bound]:
        """A range in which the value certainly lies."""
        return _lower(self, e), -_lower(self, -e)

    def proves(self, relation: str, e: Expr) -> bool | None:
        """Whether `e relation 0` holds wherever facts and ranges do; None: not known."""
        e = self.simplify(e)
        if e.constant is not None:
            return _compare(relation, e.constant)
        key = (relation, e)
        if key not in self._known:
            found = self._prove(relation, e)
            if found is None:
                return None
            self._known[key] = found
        return self._known[key]

    def _prove(self, relation: str, e: Expr) -> bool | None:
        if relation == ">=":
            if self._nonnegative(e):
                return True
            return False if self._nonnegative(-e - 1) else None
        plain = _without_mod(e)
        if plain.constant == 0:
            return relation == "=="
        if self._nonnegative(e - 1) or self._nonnegative(-e - 1):
            return relation == "!="
        for f in self.facts:
            if f.relation != ">=" and _without_mod(f.expr) in (plain, -plain):
                return relation == f.relation
        return None

    def _nonnegative(self, e: Expr) -> bool:
        if _lower(self, e) >= 0:
            return True
        return any(
            f.relation == ">=" and f.expr.symbols & e.symbols and _lower(self, e - f.expr) >= 0
            for f in self.facts
        )

    # -- decisions ------------------------------------------------------------------------------

    def decide(self, relation: str, e: Expr) -> bool:
        """Whether `e relation 0`: proved, or so for the hint and guarded."""
        known = self.proves(relation, e)
        if known is not None:
            return known
        e = self.simplify(e)
        if self.asked_by_rules and any(self.symbols[s].hint is None for s in e.symbols):
            return self._assumed(relation, e)
        holds = _compare(relation, self.hint(e))
        if not holds:
            relation, e = {">=": (">=", -e - 1), "==": ("!=", e), "!=": ("==", e)}[relation]
        guard = Guard(relation, e, self.locate())
        self.guards.append(guard)
        self.learn(guard)
        return holds

    @contextmanager
    def assuming(self) -> Iterator[None]:
        """Within, shape rules ask: what only the run tells is taken for other than 0 and 1."""
        self.asked_by_rules += 1
        try:
            yield
        finally:
            self.asked_by_rules -= 1

    def _assumed(self, relation: str, e: Expr) -> bool:
        """An answer for sizes other than 0 and 1; the run holds results to it."""
        unknown = [s for s in e.symbols if self.symbols[s].hint is None]
        before = self.ranges
        self.ranges = before | {s: (max(before[s][0], 2), before[s][1]) for s in unknown}
        try:
            if relation != ">=":
                apart = self._nonnegative(e - 1) or self._nonnegative(-e - 1)
                return apart == (relation == "!=")
            if self._nonnegative(e):
                return True
            if self._nonnegative(-e - 1):
                return False
            one = e.replace({s: symbol(min(unknown)) for s in unknown})
            if one.constant is not None:  # of equal sizes
                return one.constant >= 0
        finally:
            self.ranges = before
        left, right = str(Guard(relation, e)).split(f" {relation} ")
        raise UnbackedError(
            f"whether {left} >= {right} is known only when it runs ({', '.join(sorted(unknown))}: "
            "sizes that depend on data); compile without fullgraph=True"
        )

    def assume(self, relation: str, e: Expr) -> bool:
        """Takes `e relation 0` as a fact that the program itself checks; False: it cannot hold."""
        known = self.proves(relation, e)
        if known is None:
            self.learn(Guard(relation, self.simplify(e), self.locate()))
        return known is not False

    def specialise(self, e: Expr) -> int:
        """The hint as a plain int, guarded."""
        value = self.hint(e)
        if abs(value) < HUGE and all(abs(c) < HUGE for _, c in e.terms):
            self.decide("==", e - value)
        else:
            for name in sorted(e.symbols):
                self.specialise_symbol(name)
        return value

    def specialise_symbol(self, name: str) -> int:
        """The same for a symbol by its name."""
        return self.specialise(symbol(name))

    def learn(self, guard: Guard) -> None:
        self.history.append(guard)
        self.facts.append(guard)
        if guard.relation == ">=":
            self._narrow(guard.expr)
        if guard.relation != "==":
            return
        for monomial, c in reversed(guard.expr.terms):  # s0 - e == 0 makes s0 another name for e
            if c not in (1, -1) or len(monomial) != 1 or monomial[0][1] != 1:
                continue
            atom = monomial[0][0]
            rest = (guard.expr - of_atom(atom) * c) * -c
            if atom.kind == "sym" and atom.name not in rest.symbols and self._may(atom.name, rest):
                by = {atom.name: rest}
                self._equal = {s: x.replace(by) for s, x in self._equal.items()} | by
                self.facts = [Guard(f.relation, f.expr.replace(by), f.where) for f in self.facts]
                return

    def _narrow(self, e: Expr) -> None:
        """`c * s + k >= 0` bounds s."""
        names = [m for m, _ in e.terms if m]
        if len(names) != 1 or len(names[0]) != 1 or names[0][0][1] != 1:
            return
        atom, c = names[0][0][0], e.terms[0][1]
        if atom.kind != "sym":
            return
        k = sum(n for m, n in e.terms if not m)
        low, high = self.ranges[atom.name]
        bound = -(k // c) if c > 0 else k // -c
        self.ranges[atom.name] = (max(low, bound), high) if c > 0 else (low, min(high, bound))

    def _may(self, name: str, rest: Expr) -> bool:
        """The range of `name` is not lost when `rest` is written for it; unbacked ones go first."""
        s = self.symbols[name]
        if s.hint is not None and any(self.symbols[x].hint is None for x in rest.symbols):
            return False
        low, high = self.bounds(rest)
        return low >= self.ranges[name][0] and high <= self.ranges[name][1]

    def conditions(self) -> list[Guard]:
        """All that must hold of the symbols: their ranges, then the guards."""
        out: list[Guard] = []
        for s in self.symbols.values():
            if s.hint is None:
                continue
            if s.low > -math.inf:
                out.append(Guard(">=", symbol(s.name) - int(s.low)))
            if s.high < math.inf:
                out.append(Guard(">=", int(s.high) - symbol(s.name)))
        return out + self.guards


# Bounds -----------------------------------------------------------------------------------------


def _product(a: tuple[Bound, Bound], b: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    ends = [0 if x == 0 or y == 0 else x * y for x in a for y in b]
    return min(ends), max(ends)


def _range(env: ShapeEnv, a: Atom) -> tuple[Bound, Bound]:
    """Range of an atom."""
    if a.kind == "sym":
        return env.ranges[a.name]
    args = [env.bounds(x) for x in a.args]
    if a.kind in ("min", "max"):
        pick = min if a.kind == "min" else max
        return pick(x for x, _ in args), pick(y for _, y in args)
    (low, high), (d_low, d_high) = args
    if d_low <= 0:
        return -math.inf, math.inf
    if a.kind == "mod":
        return 0, min(d_high - 1, high if low >= 0 else math.inf)
    by = [(x, d) for x in (low, high) for d in (d_low, d_high)]
    ends = [_quotient(x, d) for x, d in by]
    return min(ends), max(ends)


def _quotient(x: Bound, d: Bound) -> Bound:
    if math.isinf(x):
        return x if not math.isinf(d) else math.copysign(math.inf, x)
    if math.isinf(d):
        return 0 if x >= 0 else -1
    return x // d


def _lower(env: ShapeEnv, e: Expr) -> Bound:
    """A number that the value is never below.

    Every atom is written as its least value plus what is beyond; what then has a positive factor
    cannot lower the sum.
    """
    total: Bound = 0
    shifted = expr(0)
    gaps: dict[Atom, Bound] = {}
    for monomial, c in e.terms:
        ranges = {a: _range(env, a) for a, _ in monomial}
        if any(low == -math.inf for low, _ in ranges.values()):
            r: tuple[Bound, Bound] = (1, 1)
            for a, n in monomial:
                for _ in range(n):
                    r = _product(r, ranges[a])
            total += _product(r, (c, c))[0]
            continue
        term = expr(c)
        for a, n in monomial:
            low, high = ranges[a]
            gaps[a] = high - low
            term = term * (of_atom(a) + int(low)) ** n
        shifted = shifted + term
    for monomial, c in shifted.terms:
        if not monomial:
            total += c
        elif c < 0:
            most: Bound = 1
            for a, n in monomial:
                most = 0 if most == 0 or gaps[a] == 0 else most * gaps[a] ** n
            total += c * most
    return total


def _without_mod(e: Expr) -> Expr:
    """`a % b` written as `a - b * (a // b)`, so that the two forms of one value meet."""
    total = expr(0)
    for monomial, c in e.terms:
        term = expr(c)
        for a, n in monomial:
            factor = of_atom(a)
            if a.kind == "mod":
                factor = a.args[0] - a.args[1] * (a.args[0] // a.args[1])
            term = term * factor**n
        total = total + term
    return total


# The number -------------------------------------------------------------------------------------
