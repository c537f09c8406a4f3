"""Small programs about classes and objects, see `programs_table`."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import types
import typing

import flambeau as torch

from .programs_table import program

# Classes and objects ------------------------------------------------------------------------------


@dataclasses.dataclass
class Options:
    scale: float = 2.0
    names: list = dataclasses.field(default_factory=list)
    bias: typing.Any = None


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: typing.Any
    k: int = 3


class Pair(typing.NamedTuple):
    first: typing.Any
    second: typing.Any = 1

    def total(self):
        return self.first + self.second


@program()
def dataclass_made_and_replaced(x):
    o = Options(bias=x * 2)
    o.names.append("n")
    p = dataclasses.replace(o, scale=3.0)
    return o.bias * p.scale + x, p.names, dataclasses.is_dataclass(p)


@program()
def dataclass_fields(x):
    o = Options(1.5)
    total = x
    for field in dataclasses.fields(o):
        if field.name == "scale":
            total = total * getattr(o, field.name)
    return total


@program()
def dataclass_as_dict(x):
    o = Options(1.5, ["q"])
    d = dataclasses.asdict(o)
    return x * d["scale"], d


@program()
def dataclass_frozen(x):
    f = Frozen(x + 1)
    try:
        f.k = 4
    except dataclasses.FrozenInstanceError:
        return f.a * f.k
    return None


@program()
def dataclass_compared(x):
    return x * (2 if Options(1.0) == Options(1.0) else 3), repr(Frozen(1))


@program()
def named_tuple(x):
    p = Pair(x * 2)
    q = p._replace(second=x)
    a, b = q
    return q.total() + a * b, p._asdict()["second"], Pair._fields, q


@program(None)
def named_tuple_collections(x):
    P = collections.namedtuple("P", "u v")
    p = P(u=x, v=2)
    return p.u * p.v


class Shape:
    count = 0

    def __init__(self, k):
        self._k = k

    @property
    def k(self):
        return self._k

    @k.setter
    def k(self, v):
        self._k = v * 2

    @staticmethod
    def twice(t):
        return t * 2

    @classmethod
    def make(cls, k):
        return cls(k)

    def area(self, t):
        return t * self._k

    def __call__(self, t):
        return self.area(t)

    def __getitem__(self, i):
        return self._k + i

    def __len__(self):
        return 3

    def __contains__(self, i):
        return i == self._k

    def __iter__(self):
        return iter(range(self._k))

    def __enter__(self):
        self._k += 1
        return self

    def __exit__(self, *error):
        self._k -= 1
        return False


class Square(Shape):
    def area(self, t):
        return super().area(t) + super().twice(t)

    def __getattr__(self, name):
        if name.startswith("dyn_"):
            return int(name[4:])
        raise AttributeError(name)


@program()
def properties_and_methods(x):
    s = Shape.make(2)
    s.k = 3
    return s(x) + s.twice(x) + s.k, len(s), s[4], 6 in s, list(s)


@program()
def super_and_getattr(x):
    s = Square(2)
    return s(x) + s.dyn_5, hasattr(s, "nope"), hasattr(s, "dyn_1"), isinstance(s, Shape)


@program()
def getattr_setattr(x):
    s = Shape(1)
    name = "ext" + "ra"
    setattr(s, name, x * 2)
    out = getattr(s, name) + getattr(s, "missing", 3)
    delattr(s, "extra")
    return out, hasattr(s, "extra"), vars(s)


@program(None)
def class_in_function(x):
    class Local:
        factor = 3

        def __init__(self, v):
            self.v = v

        def run(self):
            return self.v * self.factor

    return Local(x).run()


@program()
def user_context_manager(x):
    with Shape(2) as s:
        y = s.area(x)
    return y, s.k


@contextlib.contextmanager
def scaled(log, k):
    log.append("in")
    try:
        yield k
    finally:
        log.append("out")


@program()
def generator_context_manager(x):
    log = []
    with scaled(log, 3) as k, contextlib.nullcontext(4) as m:
        y = x * k * m
    with contextlib.suppress(KeyError):
        raise KeyError("k")
    return y, log


@program()
def exit_stack(x):
    log = []
    with contextlib.ExitStack() as stack:
        a = stack.enter_context(scaled(log, 2))
        stack.enter_context(torch.no_grad())
        y = x * a
    return y, log


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@program()
def enumerations(x):
    c = Colour(2)
    return x * c.value * Level.HIGH, c is Colour.BLUE, c.name, Colour["RED"].value


@program()
def simple_namespace(x):
    n = types.SimpleNamespace(a=2, t=x)
    n.b = 3
    return n.t * n.a * n.b


@program(None)
def slots(x):
    class S:
        __slots__ = ("a",)

        def __init__(self, a):
            self.a = a

    return S(x).a * 2


class V:
    def __init__(self, t):
        self.t = t

    def __add__(self, o):
        return V(self.t + (o.t if isinstance(o, V) else o))

    __radd__ = __add__

    def __matmul__(self, o):
        return V((self.t * o.t).sum())

    def __eq__(self, o):
        return self.t.shape == o.t.shape

    def __bool__(self):
        return True


@program()
def operator_overloading(x):
    v = V(x)
    return (1 + (v + v) + 2).t, (v @ v).t, v == V(x), bool(v)
