"""Integer expressions over symbols, in normal form: equal polynomials are equal objects.

An `Expr` is a sum of integer multiples of monomials; a monomial is a product of powers of atoms; an
atom is a symbol, or a floor division, remainder, minimum or maximum that does not simplify. All
arithmetic is exact and follows Python's (floor division and remainder too). Knows no ranges and
no hints: `symbols` owns those.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce

Monomial = tuple[tuple["Atom", int], ...]


@dataclass(frozen=True)
class Atom:
    """A symbol (`kind` "sym", `name`), or an operation "div", "mod", "min", "max" on `args`."""

    kind: str
    name: str = ""
    args: tuple[Expr, ...] = ()

    @cached_property
    def text(self) -> str:
        match self.kind:
            case "sym":
                return self.name
            case "div" | "mod":
                sign = "//" if self.kind == "div" else "%"
                return f"({_operand(self.args[0])} {sign} {_operand(self.args[1])})"
        return f"{self.kind}({', '.join(a.text for a in self.args)})"

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Atom) and self.text == other.text


def _operand(e: Expr) -> str:
    simple = len(e.terms) == 1 and e.terms[0][1] == 1 and len(e.terms[0][0]) == 1
    simple = simple and e.terms[0][0][0][1] == 1
    constant = e.constant
    return e.text if simple or (constant is not None and constant >= 0) else f"({e.text})"


class Expr:
    """A polynomial; immutable, hashable, compared by structure."""

    __slots__ = ("__dict__", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        kept = [(m, c) for m, c in terms.items() if c]
        if len(kept) > 1:
            kept.sort(key=lambda item: _order(item[0]))
        self.terms: tuple[tuple[Monomial, int], ...] = tuple(kept)

    def _times(self, n: int) -> Expr:
        """A multiple; the order of the terms stays."""
        if n == 1:
            return self
        if n == 0:
            return expr(0)
        made = Expr.__new__(Expr)
        made.terms = tuple((m, c * n) for m, c in self.terms)
        return made

    @cached_property
    def text(self) -> str:
        out = ""
        for monomial, c in self.terms:
            body = "*".join(a.text if n == 1 else f"{a.text}**{n}" for a, n in monomial)
            size = str(abs(c)) if not body else body if abs(c) == 1 else f"{abs(c)}*{body}"
            sign = "-" if c < 0 else "+"
            out += f" {sign} {size}" if out else f"{'-' if c < 0 else ''}{size}"
        return out or "0"

    @cached_property
    def constant(self) -> int | None:
        """The value of an expression without symbols."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and not self.terms[0][0]:
            return self.terms[0][1]
        return None

    @cached_property
    def symbols(self) -> frozenset[str]:
        """Names of all symbols, also those inside of divisions."""
        out: set[str] = set()
        for monomial, _ in self.terms:
            for a, _ in monomial:
                out |= {a.name} if a.kind == "sym" else set().union(*(x.symbols for x in a.args))
        return frozenset(out)

    def __hash__(self) -> int:
        return hash(self.terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and self.terms == other.terms

    def __repr__(self) -> str:
        return self.text

    def __add__(self, other: Expr | int) -> Expr:
        other = expr(other)
        if not other.terms:
            return self
        if not self.terms:
            return other
        terms = dict(self.terms)
        for m, c in other.terms:
            terms[m] = terms.get(m, 0) + c
        return Expr(terms)

    def __mul__(self, other: Expr | int) -> Expr:
        other = expr(other)
        if other.constant is not None:
            return self._times(other.constant)
        if self.constant is not None:
            return other._times(self.constant)
        terms: dict[Monomial, int] = {}
        for m1, c1 in self.terms:
            for m2, c2 in other.terms:
                m = _times(m1, m2)
                terms[m] = terms.get(m, 0) + c1 * c2
        return Expr(terms)

    def __neg__(self) -> Expr:
        return self._times(-1)

    def __sub__(self, other: Expr | int) -> Expr:
        return self + -expr(other)

    def __radd__(self, other: int) -> Expr:
        return self + other

    def __rmul__(self, other: int) -> Expr:
        return self * other

    def __rsub__(self, other: int) -> Expr:
        return -self + other

    def __floordiv__(self, other: Expr | int) -> Expr:
        return floordiv(self, expr(other))

    def __mod__(self, other: Expr | int) -> Expr:
        return mod(self, expr(other))

    def __pow__(self, n: int) -> Expr:
        return reduce(lambda x, _: x * self, range(n), expr(1))

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The value where the symbols have these values."""
        total = 0
        for monomial, c in self.terms:
            for a, n in monomial:
                c *= _value(a, values) ** n
            total += c
        return total

    def estimate(self, size: int) -> float:
        """About what it is where every symbol is `size`, to sort and to weigh by alone.

        Never raises: a quotient is taken without rounding, so what is not zero for the sizes of a
        run (`a // (b // (c * d))`) has no zero divisor here; what cancels to zero divides as 1.
        """
        total = 0.0
        for monomial, c in self.terms:
            term = float(c)
            for a, n in monomial:
                term *= _estimate(a, size) ** n
            total += term
        return total

    def replace(self, by: Mapping[str, Expr]) -> Expr:
        """The expression with other expressions for symbols, in normal form again."""
        if not by or not self.symbols & by.keys():
            return self
        total = expr(0)
        for monomial, c in self.terms:
            term = expr(c)
            for a, n in monomial:
                term = term * _replaced(a, by) ** n
            total = total + term
        return total


def _order(m: Monomial) -> tuple[int, list[tuple[str, int]]]:
    return -sum(n for _, n in m), [(a.text, -n) for a, n in m]


def _times(a: Monomial, b: Monomial) -> Monomial:
    if not a or not b:
        return a or b
    powers = dict(a)
    for atom, n in b:
        powers[atom] = powers.get(atom, 0) + n
    return tuple(sorted(((x, n) for x, n in powers.items() if n), key=lambda item: item[0].text))


def _value(a: Atom, values: Mapping[str, int]) -> int:
    if a.kind == "sym":
        return values[a.name]
    args = [x.evaluate(values) for x in a.args]
    match a.kind:
        case "div":
            return args[0] // args[1]
        case "mod":
            return args[0] % args[1]
    return min(args) if a.kind == "min" else max(args)


def _estimate(a: Atom, size: int) -> float:
    if a.kind == "sym":
        return float(size)
    args = [x.estimate(size) for x in a.args]
    match a.kind:
        case "div":
            return args[0] / (args[1] or 1.0)
        case "mod":  # anything below the divisor, most likely not zero
            return args[1] / 2
    return min(args) if a.kind == "min" else max(args)


def _replaced(a: Atom, by: Mapping[str, Expr]) -> Expr:
    if a.kind == "sym":
        return by.get(a.name) or of_atom(a)
    make: dict[str, Callable[..., Expr]] = {
        "div": floordiv, "mod": mod, "min": minimum, "max": maximum,
    }  # fmt: skip
    return make[a.kind](*(x.replace(by) for x in a.args))


def expr(x: Expr | int) -> Expr:
    """An int as an expression."""
    return x if isinstance(x, Expr) else _constant(x)


@lru_cache(maxsize=4096, typed=True)
def _constant(n: int) -> Expr:
    return Expr({(): n} if n else {})


def product(sizes: Iterable[Expr | int]) -> Expr:
    """The product of sizes: 1 of none."""
    total = expr(1)
    for n in sizes:
        total = total * expr(n)
    return total


def symbol(name: str) -> Expr:
    return of_atom(Atom("sym", name))


def of_atom(a: Atom) -> Expr:
    return Expr({((a, 1),): 1})


# Division ---------------------------------------------------------------------------------------


def _over(m: Monomial, d: Monomial) -> Monomial | None:
    """m / d where d divides m."""
    powers = dict(m)
    for a, n in d:
        left = powers.get(a, 0) - n
        if left < 0:
            return None
        powers[a] = left
    return tuple((a, powers[a]) for a, _ in m if powers[a])


def _split(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """(q, r) with a = q*b + r as polynomials; r is what could not be divided."""
    lead, c = b.terms[0]
    quotient = expr(0)
    if len(b.terms) == 1:
        parts = [(_over(m, lead), k, m) for m, k in a.terms]
        exact = {q: k // c for q, k, _ in parts if q is not None and k % c == 0}
        rest = {m: k for q, k, m in parts if q is None or k % c}
        return Expr(exact), Expr(rest)
    rest_ = a
    for _ in range(32):  # long division; the bound holds where the order of terms is no help
        if not rest_.terms:
            return quotient, rest_
        m, k = rest_.terms[0]
        q = _over(m, lead)
        if q is None or k % c:
            break
        step = Expr({q: k // c})
        quotient, rest_ = quotient + step, rest_ - step * b
    return expr(0), a


def _content(a: Expr, b: Expr) -> tuple[int, Monomial]:
    """The greatest common factor of all terms: a number and a monomial."""
    terms = [*a.terms, *b.terms]
    number = math.gcd(*(c for _, c in terms))
    powers = dict(terms[0][0])
    for m, _ in terms[1:]:
        have = dict(m)
        powers = {x: min(n, have.get(x, 0)) for x, n in powers.items() if have.get(x, 0)}
    return number, tuple(sorted(powers.items(), key=lambda item: item[0].text))


def _reduced(a: Expr, b: Expr) -> tuple[Expr, Expr, Expr]:
    """(f, a / f, b / f) for the common factor f."""
    number, monomial = _content(a, b)
    f = Expr({monomial: number})
    return f, _split(a, f)[0], _split(b, f)[0]


def floordiv(a: Expr, b: Expr) -> Expr:
    """a // b for every value where b is not 0."""
    if b.constant == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    if b.constant is not None and b.constant < 0:
        a, b = -a, -b
    q, r = _split(a, b)
    if not r.terms:
        return q
    _, r, d = _reduced(r, b)
    if d.constant is not None and d.constant < 0:
        r, d = -r, -d
    if r.constant is not None and d.constant is not None:
        return q + r.constant // d.constant
    if d.constant == 1:
        return q + r
    if d.constant is not None and d.constant > 0:  # the constant: a multiple of d comes out
        whole = sum(c for m, c in r.terms if not m) // d.constant
        r, q = r - whole * d, q + whole
        nested = _nested(r, d.constant)
        if nested is not None:
            return q + nested
    return q + of_atom(Atom("div", args=(r, d)))


def _nested(r: Expr, d: int) -> Expr | None:
    """(x // c) // d is x // (c * d) for positive c and d."""
    if len(r.terms) != 1 or r.terms[0][1] != 1 or len(r.terms[0][0]) != 1:
        return None
    (atom, power) = r.terms[0][0][0]
    if atom.kind != "div" or power != 1:
        return None
    c = atom.args[1].constant
    return floordiv(atom.args[0], expr(c * d)) if c is not None and c > 0 else None


def mod(a: Expr, b: Expr) -> Expr:
    """a % b for every value where b is not 0."""
    if b.constant == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    if b.constant is not None and b.constant < 0:
        return -mod(-a, -b)
    _, r = _split(a, b)
    if not r.terms:
        return r
    f, r, d = _reduced(r, b)
    if d.constant is not None and d.constant < 0:
        f, r, d = -f, -r, -d
    if r.constant is not None and d.constant is not None:
        return f * (r.constant % d.constant)
    if d.constant == 1:
        return expr(0)
    if d.constant is not None:  # coefficients between 0 and the divisor
        r = Expr({m: c % d.constant for m, c in r.terms})
    return f * of_atom(Atom("mod", args=(r, d)))


def _extreme(kind: str, args: Iterable[Expr]) -> Expr:
    pick = min if kind == "min" else max
    flat: list[Expr] = []
    for a in args:
        inner = a.terms[0][0][0][0] if len(a.terms) == 1 and a.terms[0][0] else None
        same = inner is not None and inner.kind == kind and of_atom(inner) == a
        flat += inner.args if same and inner is not None else (a,)
    kept: list[Expr] = []
    for a in flat:
        for i, b in enumerate(kept):
            gap = (a - b).constant
            if gap is not None:
                kept[i] = b + pick(gap, 0)
                break
        else:
            kept.append(a)
    if len(kept) == 1:
        return kept[0]
    return of_atom(Atom(kind, args=tuple(sorted(kept, key=lambda e: e.text))))


def minimum(*args: Expr) -> Expr:
    return _extreme("min", args)


def maximum(*args: Expr) -> Expr:
    return _extreme("max", args)


# Text -------------------------------------------------------------------------------------------


def from_ast(node: ast.expr) -> Expr:
    """The expression that Python syntax says: `s0*2 + (s1 // 3)`, `min(s0, 4)`."""
    match node:
        case ast.Constant(value=int() as value):
            return expr(value)
        case ast.Name(id=name):
            return symbol(name)
        case ast.UnaryOp(op=ast.USub(), operand=x):
            return -from_ast(x)
        case ast.BinOp(left=x, op=ast.Pow(), right=ast.Constant(value=int() as n)):
            return from_ast(x) ** n
        case ast.BinOp(left=x, op=op, right=y) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](from_ast(x), from_ast(y))
        case ast.Call(func=ast.Name(id="min" | "max" as name), args=args):
            return _extreme(name, [from_ast(x) for x in args])
    raise ValueError(f"not an integer expression: {ast.unparse(node)}")


_OPERATORS: dict[type, Callable[[Expr, Expr], Expr]] = {
    ast.Add: Expr.__add__,
    ast.Sub: Expr.__sub__,
    ast.Mult: Expr.__mul__,
    ast.FloorDiv: floordiv,
    ast.Mod: mod,
}


def parse(text: str) -> Expr:
    """The inverse of `str`."""
    return from_ast(ast.parse(text, mode="eval").body)
