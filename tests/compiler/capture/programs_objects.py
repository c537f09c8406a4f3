"""The second half of `programs`: classes, exceptions, patterns, what a program changes outside."""

# ruff: noqa

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import functools
import operator
from typing import Any

from .programs import PROGRAMS, Point, _positional_only, program

# Classes ------------------------------------------------------------------------------------------


class Base:
    scale = 2

    def __init__(self, v):
        self.v = v
        self._hidden = [v]

    def method(self, k):
        return self.v * k * self.scale

    @property
    def double(self):
        return self.v * 2

    @double.setter
    def double(self, value):
        self.v = value // 2

    @classmethod
    def make(cls, v):
        return cls(v + 1)

    @staticmethod
    def plain(v):
        return -v

    def __len__(self):
        return self.v

    def __getitem__(self, i):
        if i >= self.v:
            raise IndexError(i)
        return i * 10

    def __add__(self, other):
        return type(self)(self.v + (other.v if isinstance(other, Base) else other))

    def __radd__(self, other):
        return Base(other + self.v)

    def __eq__(self, other):
        return isinstance(other, Base) and self.v == other.v

    def __hash__(self):
        return hash(self.v)

    def __lt__(self, other):
        return self.v < other.v

    def __bool__(self):
        return self.v > 0

    def __contains__(self, x):
        return x == self.v

    def __call__(self, x):
        return x + self.v

    def __iter__(self):
        return iter(range(self.v))

    def __repr__(self):
        return f"Base({self.v})"

    def __neg__(self):
        return Base(-self.v)


class Derived(Base):
    scale = 3

    def __init__(self, v):
        super().__init__(v)
        self.more = v + 100

    def method(self, k):
        return super().method(k) + 1

    def __getattr__(self, name):
        if name.startswith("auto_"):
            return name[5:]
        raise AttributeError(name)


@program(3)
def instances(n):
    a, b = Base(n), Derived(n)
    a.double = 10
    b.extra = "e"
    return (
        a.v,
        a.method(2),
        a.double,
        b.method(2),
        b.more,
        b.extra,
        Base.make(1).v,
        Derived.make(1).more,
        Base.plain(2),
        b.auto_name,
        hasattr(b, "nothing"),
        getattr(b, "nothing", 5),
        isinstance(b, Base),
        issubclass(Derived, Base),
        type(b) is Derived,
        type(b).__name__,
        Base.scale,
    )


@program(3)
def special_methods(n):
    a, b = Base(n), Base(n + 1)
    return (
        len(a),
        a[1],
        (a + b).v,
        (a + 1).v,
        (1 + a).v,
        a == b,
        a != b,
        a == Base(n),
        a < b,
        bool(a),
        not a,
        n in a,
        a(5),
        list(a),
        [*a],
        repr(a),
        str(a),
        f"{a}",
        (-a).v,
        sum([a, b], Base(0)).v,
        1 if a else 2,
    )


@program(Base(4))
def given_object(o):
    return o.v + o.method(1), o.double, len(o), list(o), o(3), o == Base(4), o.scale


@program(4)
def returned_object(n):
    o = Derived(n)
    o.ref = [o.v]
    return o


class _Descriptor:
    def __get__(self, obj, cls):
        return 5 if obj is None else obj.__dict__.get("_d", 0)

    def __set__(self, obj, value):
        obj.__dict__["_d"] = value + 1


class WithSlots:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


@program(2)
def slots_class(n):
    s = WithSlots(n)
    s.b = n + s.a
    return s.a, s.b, hasattr(s, "c")


@dataclasses.dataclass
class Data:
    x: int
    y: list = dataclasses.field(default_factory=list)
    z: str = "z"


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: int
    y: int = 1


@program(3)
def dataclass_objects(n):
    d = Data(n)
    d.y.append(n)
    e = Data(n, [n])
    f = Frozen(n)
    return d.x, d.y, d.z, d == e, f.x, f.y, f == Frozen(n), d


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@program(Color.RED)
def enums(c):
    return c is Color.RED, c == Color.BLUE, c.name, c.value, Color(2), c in (Color.RED,)


class Manager:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, value, traceback):
        self.log.append(kind.__name__ if kind else None)
        return kind is KeyError


@program(1)
def with_statement(n):
    log = []
    with Manager(log) as m:
        log.append(n)
    with Manager(log):
        raise KeyError("k")
    try:
        with Manager(log):
            raise ValueError("v")
    except ValueError as e:
        log.append(str(e))
    with Manager(log), Manager(log):
        pass
    return log, m.log is log


@contextlib.contextmanager
def _managed(log):
    log.append("in")
    try:
        yield 5
    finally:
        log.append("out")


@program()
def context_manager_function():
    log = []
    with _managed(log) as v:
        log.append(v)
    return log


@program()
def early_return_in_with():
    log = []

    def inner():
        with Manager(log):
            return 3

    return inner(), log


# Exceptions ---------------------------------------------------------------------------------------


@program([1, 2])
def exceptions(xs):
    out = []
    try:
        xs[5]
    except IndexError as e:
        out.append(str(e))
    try:
        {}["k"]
    except (KeyError, ValueError) as e:
        out.append(repr(e))
    else:
        out.append("else")
    finally:
        out.append("finally")
    try:
        out.append("fine")
    except Exception:
        out.append("no")
    else:
        out.append("else")
    return out


class Own(ValueError):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code


@program(3)
def raising(n):
    def fail():
        raise Own(n)

    try:
        fail()
    except ValueError as e:
        first = (e.code, str(e), type(e).__name__)
    try:
        try:
            1 / 0
        except ZeroDivisionError as e:
            raise RuntimeError("outer") from e
    except RuntimeError as e:
        second = (str(e), type(e.__cause__).__name__, type(e.__context__).__name__)
    try:
        try:
            raise KeyError("a")
        except KeyError:
            raise
    except KeyError as e:
        third = e.args
    try:
        assert n == 0, "message"
    except AssertionError as e:
        fourth = str(e)
    return first, second, third, fourth


@program()
def finally_order():
    log = []

    def f():
        try:
            log.append(1)
            return "a"
        finally:
            log.append(2)

    def g():
        for i in range(3):
            try:
                if i == 1:
                    continue
                log.append(i)
            finally:
                log.append("f")
        return "b"

    return f(), g(), log


@program()
def unbound():
    try:
        print(nothing)
    except NameError as e:
        a = str(e)
    try:
        del b
    except UnboundLocalError:
        return a
    b = 1


@program(3)
def wrong_calls(n):
    out = []
    for f in (lambda: _positional_only(1), lambda: _positional_only(1, 2, c=3, d=4), lambda: n()):
        try:
            f()
        except TypeError:
            out.append("TypeError")
    return out


# Patterns -----------------------------------------------------------------------------------------


@program([1, 2, 3])
def matching(v):
    def look(x):
        match x:
            case 0:
                return "zero"
            case [a, b, *rest]:
                return a, b, rest
            case {"k": k, **others}:
                return k, others
            case Point(x=px, y=py):
                return px, py
            case str() as s:
                return s
            case int(i) if i > 5:
                return i
            case _:
                return None

    return look(v), look(0), look({"k": 1}), look("s"), look(9), look(4), look([1])


# What the program changes outside -----------------------------------------------------------------


@program([1, 2], {"a": 1})
def mutates_arguments(xs, d):
    xs.append(3)
    xs[0] = 10
    d["b"] = xs
    d["a"] += 1
    del xs[1]
    return len(xs), xs, d


@program(Base(1))
def mutates_object(o):
    o.v += 5
    o.new = [o.v]
    o._hidden.append(7)
    return o.v, o.new


GLOBAL = 0


@program(2)
def mutates_global(n):
    global GLOBAL
    GLOBAL += n
    value = GLOBAL
    GLOBAL = 0
    return value


@program([[1], [2]])
def aliases(xs):
    a = xs[0]
    b = a
    b.append(5)
    xs.append(a)
    return a is xs[0], xs[-1] is a, xs


@program([3, 1, 2])
def sorts_argument(xs):
    xs.sort()
    ys = sorted(xs, reverse=True)
    xs.reverse()
    return xs, ys


@program(3)
def self_reference(n):
    xs = [n]
    xs.append(xs)
    d = {}
    d["me"] = d
    return xs[1] is xs, d["me"] is d


@program(5)
def returns_function(n):
    k = n * 2

    def f(x, y=n):
        return x + y + k

    return f(1), f


@program(5)
def returns_containers(n):
    shared = [n]
    return {"a": shared, "b": (shared, {n}, None, 1.5, "s"), "c": slice(1, n)}


@program(3)
def many_locals(n):
    a = b = c = d = e = n
    (a, b), [c, d] = (d, c), (b, a)
    e, a = a, e
    del b
    return a, c, d, e


@program(1, 2, 3)
def star_arguments(*args, **kwargs):
    a, *rest = args
    return a, rest, kwargs, len(args)


@program("abc")
def try_in_loop(s):
    out = []
    for c in s:
        try:
            out.append(int(c))
        except ValueError:
            out.append(c)
    return out


@program(3)
def conditional_import(n):
    import math as m
    from collections import OrderedDict

    return m.factorial(n), OrderedDict(a=n)


@program(4)
def class_attributes(n):
    return Base.__name__, Base.scale, Derived.__mro__[1] is Base, Base.method(Base(n), 2)


@program(7)
def nested_functions_with_defaults(n):
    fs = [lambda x, i=i: x + i for i in range(3)]
    gs = [lambda x: x + i for i in range(3)]
    return [f(n) for f in fs], [g(n) for g in gs]


@program(True, None)
def bools(a, b):
    return a + 1, a and 5, b or 7, not b, isinstance(a, int), int(a), bool([]), bool("x"), a is True


class Holder:
    def __init__(self, v):
        self.v = v
        self.inner = None


@program([Holder(3), Holder(1)])
def builtins_given_to_c(os):
    os[0].v = 5
    return (
        list(map(getattr, os, ["v", "v"])),
        sorted(os, key=operator.attrgetter("v"))[0].v,
        list(map(operator.itemgetter(1), [(1, 2), (3, 4)])),
        list(map(len, ["a", "bc"])),
        list(map(isinstance, [1, "a"], [int, int])),
        functools.partial(getattr, os[0])("v"),
    )


@program([1, 2, 3])
def default_factories(xs):
    d = collections.defaultdict(lambda: [0])
    for x in xs:
        d[x % 2].append(x)
    return dict(d), collections.Counter("aab").most_common(1)


class Named(dict):
    def __init__(self, name):
        super().__init__(a=1)
        self.name = name


@program(Named("n"), [])
def subclass_of_dict_and_stored_functions(d, fs):
    def g(x):
        return x + 1

    fs.append(g)
    d["b"] = 2
    d.name += "!"
    return d.name, d["a"], len(d), hasattr(d, "other"), fs[0] is g, fs[0](3)
