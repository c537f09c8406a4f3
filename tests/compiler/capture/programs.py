"""Small programs of plain Python, each a function and its arguments. `check` in test_interpreter
runs them captured and compares with CPython; all are meant to be followed without a break."""

# ruff: noqa
from __future__ import annotations

import collections
import functools
import itertools
import math
import operator
from typing import Any, NamedTuple

PROGRAMS: list[tuple[Any, tuple[Any, ...]]] = []


def program(*args: Any) -> Any:
    def file(f: Any) -> Any:
        PROGRAMS.append((f, args))
        return f

    return file


# Arithmetic and comparison ------------------------------------------------------------------------


@program(7, 3)
def arithmetic(a, b):
    return (
        a + b,
        a - b,
        a * b,
        a / b,
        a // b,
        a % b,
        a**b,
        a << b,
        a >> b,
        a & b,
        a | b,
        a ^ b,
        -a,
        +a,
        ~a,
    )


@program(7.5, -2)
def floats(a, b):
    return (
        a + b,
        a * b,
        a // b,
        divmod(a, b),
        abs(b),
        round(a),
        round(a, 1),
        int(a),
        float(b),
        a.is_integer(),
    )


@program(5, 5)
def inplace(a, b):
    a += 2
    a *= b
    a -= 1
    a //= 2
    a **= 2
    a %= 100
    a |= 8
    a &= 0xFE
    a ^= 3
    a <<= 2
    a >>= 1
    return a


@program(3)
def chained_comparison(a):
    return (
        1 < a < 5,
        1 < a > 5,
        a == 3 != 4,
        not a,
        a is None,
        a is not None,
        a in (1, 2, 3),
        a not in [4],
    )


@program(0, "x")
def short_circuit(a, b):
    return a and b, a or b, (a or b) and 3, not (a and b), a if a else b


@program(10)
def conditional(n):
    if n > 100:
        return "large"
    elif n > 5:
        return "middle"
    else:
        return "small"


@program(12)
def walrus(n):
    if (half := n // 2) > 5:
        return half
    return -half


@program(3.0)
def mathematics(x):
    return (
        math.sqrt(x),
        math.floor(x),
        math.sin(x),
        math.pi,
        math.inf,
        math.isnan(x),
        math.prod([1, 2, 3]),
    )


@program(2 + 3j)
def complexes(z):
    return z.real, z.imag, z.conjugate(), abs(z), z * z


# Loops --------------------------------------------------------------------------------------------


@program(10)
def for_range(n):
    total = 0
    for i in range(n):
        if i == 3:
            continue
        if i == 8:
            break
        total += i
    else:
        total = -1
    return total


@program(5)
def for_else(n):
    for i in range(n):
        if i > n:
            break
    else:
        return "done"
    return "broken"


@program(100)
def while_loop(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@program(4)
def nested_loops(n):
    out = []
    for i in range(n):
        for j in range(i):
            if j == 2:
                break
            out.append((i, j))
    return out


@program([1, 2, 3], ("a", "b", "c"))
def zips(xs, ys):
    out = []
    for i, (x, y) in enumerate(zip(xs, ys)):
        out.append((i, x, y))
    return out, list(reversed(xs)), list(zip(*out))


@program({"a": 1, "b": 2})
def over_dict(d):
    return [k for k in d], [v for v in d.values()], [(k, v) for k, v in d.items()], len(d), "a" in d


@program("hello")
def over_string(s):
    return [c for c in s], s[::-1], s[1:3], "".join(sorted(s)), s.upper(), s.replace("l", "L")


# Comprehensions and generators --------------------------------------------------------------------


@program(5)
def comprehensions(n):
    a = [i * i for i in range(n) if i % 2]
    b = {i: str(i) for i in range(n)}
    c = {i % 3 for i in range(n)}
    d = [(i, j) for i in range(n) for j in range(i) if i + j > 3]
    e = sum(i for i in range(n))
    return a, b, c, d, e


@program(3)
def nested_comprehension(n):
    return [[i * j for j in range(n)] for i in range(n)]


@program(6)
def generator(n):
    def squares(k):
        for i in range(k):
            yield i * i

    g = squares(n)
    first = next(g)
    return first, list(g), next(g, "end"), max(squares(n)), tuple(squares(2))


@program(4)
def generator_send(n):
    def accumulate():
        total = 0
        while True:
            x = yield total
            if x is None:
                return
            total += x

    g = accumulate()
    next(g)
    return [g.send(i) for i in range(n)]


@program(3)
def yield_from(n):
    def inner(k):
        for i in range(k):
            yield i
        return k

    def outer():
        r = yield from inner(n)
        yield r * 10
        yield from [7, 8]

    return list(outer())


@program(5)
def any_all(n):
    return any(i > 3 for i in range(n)), all(i < 3 for i in range(n)), any([]), all([])


# Functions ----------------------------------------------------------------------------------------


def _defaults(a, b=2, *args, c=3, d, **kwargs):
    return a, b, args, c, d, kwargs


@program(1)
def call_forms(x):
    args, kwargs = (5, 6), {"d": 7, "e": 8}
    return (
        _defaults(x, d=1),
        _defaults(x, 9, 10, 11, d=1, z=2),
        _defaults(x, *args, **kwargs),
        _defaults(*[1, 2, 3], c=0, **{"d": 4}),
        _defaults(d=0, a=1),
    )


def _positional_only(a, /, b, *, c):
    return a, b, c


@program(1)
def positional_only(x):
    return _positional_only(x, 2, c=3), _positional_only(x, b=2, c=3)


@program(3)
def closures(n):
    total = 0

    def add(k):
        nonlocal total
        total += k
        return total

    def twice(f):
        return lambda k: f(k) + f(k)

    return add(n), twice(add)(1), total


@program(4)
def counter(n):
    def make():
        count = 0

        def step():
            nonlocal count
            count += 1
            return count

        return step

    a, b = make(), make()
    return [a() for _ in range(n)], b()


@program(5)
def lambdas(n):
    f = lambda x, y=2: x * y + n
    g = lambda *a, **k: (a, k)
    return f(1), f(1, 3), g(1, 2, z=3), (lambda: n)()


@program(6)
def recursion(n):
    def factorial(k):
        return 1 if k < 2 else k * factorial(k - 1)

    return factorial(n)


@program(2)
def partials(n):
    f = functools.partial(_defaults, 1, d=5)
    g = functools.partial(f, n, c=0)
    return f(), g(), g(3)


def _decorate(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return ("wrapped", f(*args, **kwargs))

    return wrapper


@_decorate
def _decorated(x, y=1):
    return x + y


@program(3)
def decorated(n):
    return _decorated(n), _decorated(n, y=5)


@program([3, 1, 2])
def higher_order(xs):
    return (
        list(map(lambda x: x + 1, xs)),
        list(filter(lambda x: x > 1, xs)),
        functools.reduce(lambda a, b: a * b, xs),
        functools.reduce(operator.add, xs, 10),
        sorted(xs, key=lambda x: -x),
        max(xs, key=lambda x: -x),
        min(xs),
        min(4, 2, 3),
        max([], default=0),
        sum(xs, 5),
    )


@program([1, 2, 3])
def operators(xs):
    return (
        operator.mul(3, 4),
        operator.getitem(xs, 1),
        operator.itemgetter(0)(xs),
        operator.eq(xs, [1, 2, 3]),
    )


# Containers ---------------------------------------------------------------------------------------


@program([4, 5])
def lists(xs):
    ys = xs + [1]
    ys.append(2)
    ys.extend([3, 3])
    ys.insert(0, 9)
    popped = ys.pop()
    ys.remove(4)
    ys[0] = 8
    ys[1:2] = [7, 7]
    del ys[-1]
    return (
        ys,
        popped,
        ys.index(7),
        ys.count(7),
        ys[::2],
        len(ys),
        ys == [1],
        ys.copy(),
        xs * 2,
        [*xs, *ys],
    )


@program((1, 2, 3))
def tuples(t):
    a, *b = t
    *c, d = t
    e, (f, g) = 1, (2, 3)
    return a, b, c, d, e, f, g, t + (4,), t[1:], t.index(2), (*t, 0)


@program({"x": 1})
def dicts(d):
    e = {**d, "y": 2}
    e["z"] = 3
    e.setdefault("w", []).append(1)
    popped = e.pop("y")
    e.update(a=1)
    e |= {"b": 2}
    return (
        e,
        popped,
        e.get("nothing"),
        e.get("q", 5),
        list(e),
        sorted(e),
        "x" in e,
        dict(a=1),
        dict([("k", 2)]),
    )


@program()
def sets():
    s = {1, 2, 3}
    s.add(4)
    s.discard(1)
    return (
        s,
        s | {9},
        s & {2, 3},
        s - {2},
        s ^ {2, 10},
        3 in s,
        frozenset(s),
        len(s),
        {*s, 5},
        s <= {2, 3, 4},
    )


@program()
def collections_module():
    d = collections.defaultdict(list)
    d["a"].append(1)
    o = collections.OrderedDict(a=1, b=2)
    o["c"] = 3
    q = collections.deque([1, 2], maxlen=2)
    q.append(3)
    return dict(d), list(o.items()), list(q)


class Point(NamedTuple):
    x: int
    y: int = 2


@program(1)
def namedtuples(n):
    p = Point(n)
    x, y = p
    return p, p.x, x + y, p._replace(y=5), p == (1, 2), isinstance(p, tuple)


@program(Point(3, 4))
def given_namedtuple(p):
    return p.x * p.y, p, p[0]


@program()
def itertools_module():
    return (
        list(itertools.chain([1], [2, 3])),
        list(itertools.product([1, 2], repeat=2)),
        list(itertools.accumulate([1, 2, 3])),
        list(itertools.islice(itertools.count(), 3)),
        list(itertools.zip_longest([1], [2, 3])),
    )


@program("value", 3.14159, 42)
def strings(name, x, n):
    return (
        f"{name}={x:.2f} {n!r:>5} {n:03d} {name!s}",
        "%s %d" % (name, n),
        "{} {b}".format(name, b=n),
        name.split("l"),
        ",".join([name, "a"]),
        name.startswith("v"),
        str(n) + repr(name),
        "a" * 3,
        name.encode(),
        ord("a"),
        chr(98),
        hex(n),
        int("12"),
        float("1.5"),
        f"{n:{n}d}"[-3:],
    )


@program(list(range(10)), 2)
def slices(xs, n):
    s = slice(n, None, 3)
    return xs[s], xs[n:], xs[:-n], xs[-n:], s.start, xs[slice(1, 3)]
