"""Small programs about the language: containers, functions, exceptions, what ends a graph; see
`programs_table`."""

from __future__ import annotations

import collections
import functools
import itertools
import math
import operator

import numpy as np

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import nn

from .programs_classes import Pair
from .programs_table import program

# Containers, comprehensions, strings --------------------------------------------------------------


@program()
def comprehensions(x):
    parts = [x * i for i in range(3) if i != 1]
    table = {k: v + 1 for k, v in zip("ab", parts, strict=True)}
    odd = {i for i in range(5) if i % 2}
    return sum(t.sum() for t in table.values()), sorted(odd), list(table)


@program()
def dict_operations(x):
    d = {"a": x, 1: x * 2}
    d.update(b=x * 3)
    d |= {"c": 4}
    d.setdefault("e", x)
    popped = d.pop(1)
    got = d.get("zzz", 5)
    first, *_ = d.items()
    merged = {**d, "z": 1}
    return popped + d["b"] * got + d["c"], list(d), first[0], len(merged), "b" in d


@program()
def ordered_and_default_dicts(x):
    d = collections.defaultdict(list)
    d["a"].append(x)
    d["a"].append(x * 2)
    o = collections.OrderedDict(p=1, q=2)
    o.move_to_end("p")
    c = collections.Counter("aab")
    return sum(d["a"]) * c["a"], list(o), next(iter(o))


@program()
def set_operations(x):
    s = {1, 2, 3} & {2, 3, 4} | {9}
    s.add(7)
    s.discard(2)
    return x * len(s), sorted(s), s >= {9}, frozenset(s) == s


@program()
def deque_operations(x):
    q = collections.deque(maxlen=2)
    for i in range(4):
        q.append(x * i)
    return q[0] + q[1], len(q)


@program()
def lists(x):
    xs = [x, x + 1]
    xs[0] = xs[0] * 2
    xs.insert(1, x - 1)
    xs += [x]
    xs.reverse()
    last = xs.pop()
    a, *rest = xs
    return last, a, len(rest), torch.stack(xs[::-1]).sum(0)


PERCENT, FORMAT = "%s-%d", "{:.2f}"


@program()
def f_strings(x):
    n = x.shape[0]
    name = f"layer{n:03d}_{'a'!r:>5}_{x.dim()}"
    return x * len(name), name, PERCENT % (name, n), FORMAT.format(1.5)


@program()
def string_methods(x):
    keys = "a.b.c".split(".")
    joined = "/".join(k.upper() for k in keys)
    return x * joined.count("/"), joined.startswith("A"), joined.replace("/", "")


@program()
def sorting(x):
    xs = sorted([3, 1, 2], key=lambda v: -v)
    ys = sorted({"b": 2, "a": 1}.items(), key=operator.itemgetter(1), reverse=True)
    return x * xs[0], ys, max("abc", key=ord), min(3, 1, 2)


@program()
def itertools_and_functools(x):
    total = x
    for a, b in itertools.product((1, 2), (3,)):
        total = total + a * b
    for chunk in itertools.islice(itertools.count(2), 2):
        total = total * chunk
    total = functools.reduce(lambda s, v: s + v, [total, x, 1])
    pairs = list(itertools.pairwise([1, 2, 3]))
    groups = [(k, len(list(g))) for k, g in itertools.groupby("aab")]
    return total, pairs, groups, list(itertools.accumulate([1, 2, 3]))


@program()
def generators(x):
    def layers(n):
        for i in range(n):
            yield x * i
        return 7

    def chained(n):
        last = yield from layers(n)
        yield x * last

    out = torch.zeros_like(x)
    for t in chained(3):
        out = out + t
    return out, sum(1 for _ in layers(4))


@program()
def enumerate_zip_reversed(x):
    out = x
    for i, (a, b) in enumerate(zip([1, 2], reversed([3, 4]), strict=True), start=1):
        out = out * a + b * i
    return out, any(v > 1 for v in (1, 2)), all(map(bool, (1, 0)))


@program()
def while_and_else(x):
    n = 0
    while True:
        n += 1
        if n == 2:
            continue
        x = x + n
        if n > 3:
            break
    for _ in range(2):
        pass
    else:
        x = x * 2
    return x, n


@program()
def match_statement(x):
    def kind(v):
        match v:
            case {"op": "mul", "by": k}:
                return x * k
            case [a, b]:
                return x + a + b
            case Pair(first=f):
                return x - f
            case _:
                return x

    return kind({"op": "mul", "by": 2}), kind([1, 2]), kind(Pair(3)), kind(None)


@program()
def shape_arithmetic(x):
    b, t = x.shape
    y = x.reshape(b * t).view(-1, t)
    return y, math.sqrt(t), math.prod(x.shape), math.ceil(t / 3), divmod(t, 3), x.size(-1) // 2


@program()
def type_tests(x):
    return (
        x * 2 if torch.is_tensor(x) else 0,
        isinstance(x, torch.Tensor),
        type(x) is torch.Tensor,
        callable(F.relu),
        issubclass(nn.Linear, nn.Module),
        x.dtype == torch.float32,
        x.device.type,
        x.is_floating_point(),
    )


@program()
def numpy_scalars(x):
    k = np.float32(2.5)
    n = np.int64(3)
    return x * float(k) + int(n), np.sqrt(4.0) * 2, int(np.prod([2, 3]))


@program()
def numpy_scalar_operand(x):
    return x * np.float64(2.5) + np.int64(3)


# Functions ----------------------------------------------------------------------------------------


@program()
def partials(x):
    f = functools.partial(torch.add, alpha=2)
    g = functools.partial(F.leaky_relu, negative_slope=0.2)
    h = functools.partial(lambda a, b, *, c: a * b + c, c=3)
    return f(x, x), g(x), h(x, 2)


@functools.cache
def cached_power(n):
    return n * n


@functools.cache
def cached_again(n):
    return n + 1


@program()
def lru_cached(x):
    return x * cached_power(3) + cached_again(1)


@program()
def nonlocal_closure(x):
    total, calls = x * 0, 0

    def add(t):
        nonlocal total, calls
        total = total + t
        calls += 1

    for i in range(3):
        add(x * i)
    return total, calls


@program()
def decorated(x):
    def twice(f):
        @functools.wraps(f)
        def inner(*args, **kwargs):
            return f(*args, **kwargs) * 2

        return inner

    @twice
    def body(t, k=1):
        """Doc."""
        return t + k

    return body(x, k=3), body.__name__, body.__doc__


@program()
def recursion(x):
    def power(t, n):
        return t if n == 1 else t * power(t, n - 1)

    return power(x, 4)


@program()
def star_arguments(x):
    def f(a, *rest, k=1, **more):
        return a + sum(rest) * k + more.get("z", 0)

    args, kwargs = (x, 2, 3), {"k": 4, "z": x}
    return f(*args, **kwargs) + f(x)


@program(None)
def singledispatch(x):
    return x * describe(3) + describe("a")


@functools.singledispatch
def describe(v):
    return 1


@describe.register
def _(v: int):
    return v * 10


@program()
def lambda_table(x):
    table = {"relu": F.relu, "double": lambda t: t * 2, "tanh": torch.tanh}
    for name in ("relu", "double", "tanh"):
        x = table[name](x)
    return x


@program()
def walrus_and_conditionals(x):
    if (n := x.shape[0]) > 2 and not n % 3:
        x = x * n
    return x if n else None, [y := 2, y**2]


@program()
def assertions(x):
    assert x.dim() == 2, f"expected a matrix, got {x.dim()}-d"
    assert isinstance(x, torch.Tensor)
    return x + 1


@program()
def chained_assignments(x):
    a = b = x * 2
    a, b = b, a + 1
    (c, d), e = (a, b), x
    c += 1
    return a, b, c, d, e


@program()
def annotations_and_delete(x):
    y: torch.Tensor = x + 1
    z = y * 2
    del y
    return z


@program()
def operator_module(x):
    return operator.add(x, 1), operator.itemgetter(0)(x), operator.attrgetter("T")(x)


@program()
def method_caller(x):
    return operator.methodcaller("mul", 3)(x)


SCALE = 2
TABLE = {"k": 3, "list": [1, 2]}


@program()
def globals_read(x):
    return x * SCALE + TABLE["k"] + sum(TABLE["list"])


@program()
def imports_inside(x):
    import math as m
    from collections import Counter

    from flambeau.nn import functional

    return functional.relu(x) * m.pi, Counter("aa")["a"]


# Exceptions ---------------------------------------------------------------------------------------


class Refused(ValueError):
    def __init__(self, n):
        super().__init__(f"refused {n}")
        self.n = n


@program()
def try_except_else_finally(x):
    log = []
    for n in range(3):
        try:
            if n == 1:
                raise Refused(n)
            x = x + n
        except Refused as e:
            log.append((e.n, str(e)))
        else:
            log.append("else")
        finally:
            log.append("finally")
    return x, log


@program()
def exceptions_of_the_library(x):
    try:
        x @ torch.ones(7, 7)
    except RuntimeError:
        x = x + 1
    try:
        x = x.sizes
    except AttributeError:
        x = x * 2
    try:
        {}["k"]
    except (KeyError, IndexError) as e:
        name = type(e).__name__
    return x, name


@program()
def exception_chain(x):
    try:
        try:
            raise KeyError("a")
        except KeyError as e:
            raise ValueError("b") from e
    except ValueError as e:
        return x * 2, repr(e.__cause__), str(e)


def nothing():
    return None


@program()
def return_in_finally(x):
    def f():
        try:
            return x * 2
        finally:
            nothing()

    return f()


@program()
def stop_iteration(x):
    it = iter([x, x * 2])
    total = next(it) + next(it)
    return total, next(it, None)


# Breaks -------------------------------------------------------------------------------------------


@program(2)
def print_between(x):
    y = x * 2
    print(end="")
    return y + 1


@program(2)
def branch_on_data(x):
    y = x * 2
    if y.sum() > 0:
        return y + 1
    return y - 1


@program(2)
def item_is_read(x):
    k = x.sum().item()
    return x * k


@program(2)
def numpy_is_asked(x):
    n = (x.detach() * 2).numpy()
    return x + float(n.sum())


@program(2)
def list_of_values(x):
    v = (x[0] * 2).tolist()
    return x * v[0]


@program(2)
def branch_in_callee(x):
    def clip(t):
        t = t * 2
        if t.max() > 1:
            return t / t.max()
        return t

    return clip(x)


@program(2)
def repr_of_tensor(x):
    y = x + 1
    s = repr(y)
    return y * len(s)


@program(2)
def break_in_with(x):
    with torch.no_grad():
        y = x * 2
        print(end="")
        y = y + 1
    return y


@program(2)
def break_in_try(x):
    try:
        y = x * 2
        print(end="")
        y = y + 1
    finally:
        z = 1
    return y * z
