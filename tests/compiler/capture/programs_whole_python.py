"""Programs that are to be one graph, from what users report of PyTorch's `fullgraph=True`: Python
and its own library. Each is a function of a tensor [3, 4]; `REFUSED` holds those that are not
followed, with the message."""

import abc
import bisect
import collections
import contextlib
import contextvars
import copy
import dataclasses
import enum
import functools
import heapq
import importlib
import importlib.util
import inspect
import math
import operator
import re
import sys
import threading
import types
import typing
import warnings

import numpy as np

import flambeau as torch
from flambeau import nn

WHOLE, REFUSED = [], []


def whole(f):
    WHOLE.append(f)
    return f


def refused(message):
    def file(f):
        REFUSED.append((f, message))
        return f

    return file


def kind(v):
    return 2 if isinstance(v, bool | int | float) else 3


@whole
def isinstance_union3(x):
    return x * kind(2) + kind("a")


U = int | float | str


@whole
def isinstance_global_union(x):
    return x * 2 if isinstance(2.5, U) else x


@whole
def isinstance_optional(x):
    return x * 2 if isinstance(None, int | None) else x


@whole
def isinstance_tuple_union(x):
    return x * 2 if isinstance([1], (int | float, list)) else x


@whole
def issubclass_union(x):
    return x * 2 if issubclass(int, int | float) else x


@whole
def annotation_local(x):
    def g(v: list[int] | None = None, w: dict[str, int] | int | None = None) -> list[int] | None:
        return v

    return x if g() is None else x * 2


@whole
def annotation_expr(x):
    T = list[int] | None
    return x * 2 if T is not None else x


@whole
def isinstance_typing(x):
    return x * 2 if isinstance(3, typing.Union[int, str]) and isinstance([], list) else x  # noqa: UP007


@whole
def isinstance_generic_refused(x):
    try:
        isinstance([1], list[int])
    except TypeError:
        return x * 2
    return x


@whole
def tensor_attr(x):
    y = x * 2
    y.tag = 5
    return y * y.tag


@whole
def tensor_attr_returned(x):
    y = x * 2
    y.tag = 5
    return y


@whole
def tensor_attr_hasattr(x):
    y = x * 2
    a = hasattr(y, "tag")
    y.tag = [1]
    y.tag.append(2)
    b = hasattr(y, "tag")
    del y.tag
    return y + a + b + hasattr(y, "tag")


@whole
def tensor_attr_input(x):
    x.tag = (1, 2)
    return x * x.tag[1]


@whole
def tensor_attr_getattr(x):
    y = x + 1
    y.scale = 3.0
    return y * getattr(y, "scale", 1.0) * getattr(y, "other", 2.0)


PAT = re.compile(r"layer(\d+)")


@whole
def re_global(x):
    m = PAT.match("layer12.weight")
    return x * int(m.group(1))


@whole
def re_inline(x):
    return x * len(re.findall("a", "banana")) + (1 if re.search("n+", "banana") else 0)


@whole
def re_sub(x):
    return x * int(re.sub(r"\D", "", "a1b2"))


@whole
def re_split(x):
    return x * len(re.split(r"[,;]", "a,b;c"))


@whole
def re_fullmatch_groups(x):
    m = re.fullmatch(r"(?P<a>\d)-(?P<b>\d)", "3-4")
    d = m.groupdict()
    return x * int(d["a"]) + int(m["b"]) + m.start(2)


@whole
def type3(x):
    K = type("K", (), {})
    k = K()
    k.a = 3
    return x * k.a


@whole
def type3_methods(x):
    K = type("K", (), {"f": lambda self, v: v * 2, "c": 3})
    return K().f(x) * K.c


@refused("a class is defined; define it outside")
def class_stmt(x):
    class K:
        s = 3

        def __init__(self, v):
            self.v = v

        def get(self):
            return self.v * self.s

    return K(x).get()


@refused("a class is defined")
def class_dataclass(x):
    @dataclasses.dataclass
    class P:
        a: int
        b: int = 2

    return x * P(1).b


@whole
def reversed_dict(x):
    d = {"a": 1, "b": 2}
    r = x
    for k in reversed(d):
        r = r * 10 + d[k]
    for v in reversed(d.values()):
        r = r * 10 + v
    for _, v in reversed(d.items()):
        r = r * 10 + v
    return r


CFG = {"a": 1, "b": 2}


@whole
def reversed_dict_global(x):
    r = x
    for k in reversed(CFG):
        r = r * 10 + CFG[k]
    return r


@whole
def heaps(x):
    h = [5, 1, 4]
    heapq.heapify(h)
    heapq.heappush(h, 2)
    a = heapq.heappop(h)
    b = heapq.heappushpop(h, 9)
    c = heapq.heapreplace(h, 7)
    return x * a + b * 10 + c * 100 + heapq.nlargest(1, h)[0] * 1000 + heapq.nsmallest(1, h)[0]


@whole
def heaps_key(x):
    return x * heapq.nlargest(2, [1, 5, 3], key=lambda v: -v)[0] + sum(heapq.merge([1, 3], [2]))


@whole
def bisection(x):
    items = [1, 3, 5]
    i = bisect.bisect(items, 3)
    j = bisect.bisect_left(items, 3)
    bisect.insort(items, 2)
    return x * i + j + items[1] * 10 + bisect.bisect_right(items, -2, key=lambda v: -v)


@functools.singledispatch
def sd(v):
    return 1


@sd.register
def _(v: int):
    return 2


@sd.register(list)
def _(v):
    return 3


@sd.register
def _(v: torch.Tensor):
    return v * 7


@whole
def singledispatch(x):
    return sd(x) + sd(3) * 10 + sd([1]) * 100 + sd("a") * 1000 + sd(True)


class SDM:
    @functools.singledispatchmethod
    def f(self, v):
        return 1

    @f.register
    def _(self, v: int):
        return 2

    @f.register
    def _(self, v: torch.Tensor):
        return v * 7


sdm = SDM()


@whole
def singledispatchmethod(x):
    return sdm.f(x) + sdm.f(2)


cv = contextvars.ContextVar("cv", default=3)


@whole
def contextvar_get(x):
    return x * cv.get()


@whole
def contextvar_set(x):
    t = cv.set(5)
    y = x * cv.get()
    cv.reset(t)
    return y + cv.get()


def sg(a, b=2, *c, d, **e):
    return a


@whole
def signature(x):
    s = inspect.signature(sg)
    return x * len(s.parameters)


@whole
def signature_bind(x):
    b = inspect.signature(sg).bind(1, d=4)
    b.apply_defaults()
    return x * b.arguments["b"] + (1 if "d" in inspect.signature(sg).parameters else 0)


@whole
def signature_kind(x):
    n = 0
    for _, p in inspect.signature(sg).parameters.items():
        if (
            p.kind == inspect.Parameter.POSITIONAL_OR_KEYWORD
            and p.default is inspect.Parameter.empty
        ):
            n += 1
    return x * n


@whole
def signature_method(x):
    return (
        x * len(inspect.signature(sdm.f).parameters)
        if False
        else x * len(inspect.signature(nn.Linear.forward).parameters)
    )


@whole
def getfullargspec(x):
    return x * len(inspect.getfullargspec(sg).args)


@whole
def isfunction(x):
    return x * (2 if inspect.isfunction(sg) and not inspect.isclass(sg) else 3)


@refused("a parameter is made; make it, or the module it is part of, outside")
def linear_inside(x):
    return nn.Linear(4, 2)(x)


@refused("a parameter is made")
def seq_inside(x):
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.LayerNorm(4))(x)


@refused("a parameter is made")
def param_inside(x):
    return x * nn.Parameter(torch.ones(4))


@whole
def deque(x):
    q = collections.deque([1, 2], maxlen=2)
    q.append(3)
    q.appendleft(7)
    return x * q[0] + q[-1]


@whole
def counter(x):
    return (
        x * collections.Counter("banana")["a"] + collections.Counter("banana").most_common(1)[0][1]
    )


@whole
def copy_(x):
    d = copy.deepcopy({"a": [1, 2]})
    e = copy.copy(d)
    return x * e["a"][1]


@whole
def json_text(x):
    return x * len(f"a{2}") + len(f"{3.14159:.2f}") + len("%d" % 12)  # noqa: UP031 + len(string.ascii_lowercase)


@whole  # noqa: UP031
def random_choice(x):
    return x * math.comb(4, 2) + math.prod([1, 2, 3])


@whole
def exc_group(x):
    try:
        raise ValueError("a")
    except (ValueError, TypeError) as e:
        return x * len(str(e))


@whole
def struct_time(x):
    return x * operator.attrgetter("a")(collections.namedtuple("N", "a")(4)) + functools.reduce(
        operator.mul, [1, 2, 3]
    )


@functools.lru_cache
def cached(n):
    return n * 2


@whole
def lru_cache(x):
    return x * cached(3)


@functools.cache
def cachedt(n):
    return n + 1


@whole
def cache2(x):
    return x * cachedt(2) + cachedt(2)


@refused("a class is defined")
def enumeration(x):
    class E(enum.Enum):
        A = 1

    return x * E.A.value


@whole
def warn(x):
    warnings.warn("hello", stacklevel=2)
    return x * 2


@whole
def chainmap(x):
    return x * collections.ChainMap({"a": 1}, {"b": 2})["b"]


@whole
def contexts(x):
    with contextlib.suppress(ValueError):
        raise ValueError
    with contextlib.nullcontext(3) as k:
        pass
    with contextlib.ExitStack() as st:
        st.enter_context(torch.no_grad())
    return x * k


class Plain:
    def __init__(self, n):
        self.n = n


FIRST, SECOND = Plain(2.0), Plain(3.0)
BY_PAIR = {("a", 1): 2.0, ("b", True): 3.0, ("c", (1, None)): 4.0}
BY_OBJECT = {FIRST: 2.0, typing.Union: 3.0, typing.List[int]: 4.0}  # noqa: UP006
OBJECTS = {FIRST, ("a", 1), frozenset((SECOND, 2))}
C_FUNCTIONS = {("array", "numpy"): np.array, ("max", "python"): max}


@whole
def tuples_as_keys(x):
    BY_PAIR["late", x.shape[0]] = 5.0
    return x * BY_PAIR["a", 1] + BY_PAIR["b", 1] + BY_PAIR["c", (1, None)] + len(BY_PAIR)


@whole
def objects_as_keys(x):
    for key, value in BY_OBJECT.items():
        x = x * value + (key.n if key is FIRST else 0)
    return x + BY_OBJECT[FIRST] + (SECOND in BY_OBJECT) + BY_OBJECT[typing.Union]


@whole
def sets_of_objects(x):
    for entry in OBJECTS:
        x = x + (entry.n if isinstance(entry, Plain) else 10)
    if SECOND in OBJECTS or ("a", 2) in OBJECTS:
        x = x * 100
    return x * 2 if ("a", 1) in OBJECTS and frozenset((2, SECOND)) in OBJECTS else x


@whole
def functions_of_c_as_values(x):
    try:
        C_FUNCTIONS["nothing", "python"]
    except KeyError:
        x = x + 1
    return x * C_FUNCTIONS["max", "python"](2, 3)


LOCAL = threading.local()
LOCAL.scale = 2.0


class LocalCount(threading.local):
    n = 5.0

    def __init__(self):
        self.m = 3.0


LOCAL_COUNT = LocalCount()


@whole
def of_this_thread(x):
    LOCAL.calls = getattr(LOCAL, "calls", 0) + 1
    missing = LOCAL.__dict__.get("missing", 7.0)
    del LOCAL.calls
    return x * LOCAL.scale * LOCAL_COUNT.n * LOCAL_COUNT.m + missing + hasattr(LOCAL, "calls")


@whole
def number_of_this_thread(x):
    return x * (threading.get_ident() in {threading.main_thread().ident: 1})


@whole
def module_by_name(x):
    return (
        x
        * importlib.import_module("math").pi
        * importlib.import_module(".path", "os").curdir.count(".")
    )


class Base:
    pass


class Left(Base):
    weight = 2.0


class Right(Base):
    weight = 3.0


@whole
def subclasses(x):
    for kind in Base.__subclasses__():
        x = x * kind.weight
    return x


class Quacks(abc.ABC):  # noqa: B024
    @classmethod
    def __subclasshook__(cls, other):
        return hasattr(other, "quack")


class Duck:
    quack = 1


@whole
def abstract_classes(x):
    x = x + isinstance(Duck(), Quacks) + 10 * isinstance(FIRST, Quacks)
    x = x + 100 * issubclass(Duck, Quacks) + 1000 * isinstance(x, Quacks)
    return x + 1e4 * isinstance({}, collections.abc.MutableMapping)


computed = types.ModuleType("computed")
exec(
    "def __getattr__(name):\n    if name == 'two': return 2.0\n    raise AttributeError(name)",
    computed.__dict__,
)


class Loading(types.ModuleType):
    """What it is asked for it imports, and stores."""

    def __getattr__(self, name):
        if name == "fixed":
            return 3.0
        if name not in ("decoder", "encoder"):
            raise AttributeError(name)
        json = __import__("json." + name)
        setattr(self, name, json)
        return json


loading = Loading("loading")


@whole
def modules_that_compute(x):
    return x * computed.two + hasattr(computed, "three") + 10 * hasattr(loading, "three")


@whole
def modules_that_load(x):
    y = x * 2 if loading.decoder.JSONDecoder is loading.encoder.JSONDecoder else x
    loading.written = 4.0
    return y * loading.fixed + loading.written


def empty_cell(x):
    def read():
        try:
            return late
        except NameError:
            return 1.0

    x = x * read()
    late = 2.0
    return x * read()


whole(empty_cell)


class Settings:
    """With attributes that pass through code of the class, as configurations have them."""

    renamed = {"width": "hidden"}  # noqa: RUF012

    def __init__(self):
        self.hidden, self.parts, self.own = 2, {"a": [1, 2]}, self

    def __getattribute__(self, name):
        if name != "renamed" and name in super().__getattribute__("renamed"):
            name = super().__getattribute__("renamed")[name]
        return super().__getattribute__(name)


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self):
        self.a = 1


class Listed(list):
    pass


@dataclasses.dataclass
class Data:
    x: int = 1
    y: list = dataclasses.field(default_factory=list)


class SaysHow:
    def __init__(self, q=1):
        self.q = q

    def __deepcopy__(self, memo):
        return SaysHow(self.q * 5)


class SaysState:
    def __init__(self):
        self.z = 1

    def __getstate__(self):
        return {"z": self.z + 1}

    def __setstate__(self, state):
        self.z = state["z"] * 10


class Named(tuple):
    def __new__(cls, a, b):
        return super().__new__(cls, (a, b))

    def __getnewargs__(self):
        return self[0], self[1]


SETTINGS, SLOTTED, LISTED, DATA = Settings(), Slotted(), Listed([1, 2]), Data(3, [4])
LISTED.attribute = 3
ORDERED, DEFAULTS = collections.OrderedDict(a=1, b=[2]), collections.defaultdict(list, {"k": [7]})


@whole
def deep_copies(x):
    made = copy.deepcopy(SETTINGS)
    made.hidden += 1
    made.parts["a"].append(3)
    listed, data = copy.deepcopy(LISTED), copy.deepcopy(DATA)
    listed.append(9)
    data.y.append(1)
    ordered, defaults = copy.deepcopy(ORDERED), copy.deepcopy(DEFAULTS)
    ordered["b"].append(1)
    defaults["new"].append(2)
    kept = (made.own is made) + 10 * (made.parts is SETTINGS.parts) + 100 * (SETTINGS.width == 2)
    sizes = len(SETTINGS.parts["a"]) + len(LISTED) + len(DATA.y) + len(ORDERED["b"])
    x = x * made.width + sum(listed) + listed.attribute + sum(data.y) + kept + sizes
    return x + len(defaults) + sum(ordered["b"]) + copy.deepcopy(SaysHow()).q


@whole
def shallow_copies(x):
    slotted, state, named = copy.copy(SLOTTED), copy.copy(SaysState()), copy.copy(Named(2, 3))
    slotted.b = 4
    made = copy.copy(SETTINGS)
    made.parts["a"].append(1)
    SETTINGS.parts["a"].pop()
    return x * slotted.a + slotted.b + state.z + named[1] + hasattr(SLOTTED, "b")


@whole
def objects_that_answer_for_their_class(x):
    return x + isinstance(SETTINGS, dict) + 2 * isinstance(SETTINGS, Settings)


LARGE = {n: float(n) for n in range(5000)}


@whole
def large_dicts_are_asked_by_key(x):
    LARGE["new"] = 3.0
    del LARGE[17]
    x = x * LARGE[2] + LARGE.get(3) + LARGE.get(-1, 5.0) + (7 in LARGE) + ("no" in LARGE)
    try:
        LARGE[-2]
    except KeyError:
        x = x + 1
    x = x + LARGE.pop("new") if False else x + LARGE["new"] + (17 in LARGE)
    LARGE[17] = 17.0
    del LARGE["new"]
    return x + ("sys" in sys.modules) + ("nothing" in sys.modules)


@refused("LARGE has 5000 elements; too many to guard")
def large_dicts_are_not_gone_through(x):
    return x * sum(LARGE.values())


class Wide:
    def __init__(self):
        self.__dict__.update({f"a{n}": n for n in range(3000)})


WIDE = Wide()


@whole
def attributes_of_a_large_object(x):
    WIDE.a1 = 7
    return x * WIDE.a2


@refused("WIDE has 3000 elements; too many to guard")
def dictionary_of_a_large_object(x):
    return x * len(vars(WIDE))


class Loud:
    def __repr__(self):
        raise RuntimeError("shown")


LOUD = Loud()
OF_LOUD, SET_OF_LOUD = {(LOUD, 1): 2.0}, {LOUD}


@whole
def keys_are_not_shown(x):
    return x * OF_LOUD[LOUD, 1] + (LOUD in SET_OF_LOUD)


@refused("LARGE has 5000 elements; too many to guard")
def whether_a_large_dict_is_empty(x):
    return x if LARGE else x + 1


@whole
def what_can_be_imported(x):
    found = importlib.util.find_spec("json") is not None
    return x * found + (importlib.util.find_spec("no_such_module") is None)


class Cached:
    @functools.lru_cache(None)  # noqa: B019
    def factor(self, k):
        return k * 2.0


CACHED = Cached()


@whole
def cached_methods(x):
    return x * CACHED.factor(3) + Cached.factor(CACHED, 4)


@refused("a call of id")
def uuid_id(x):
    s = {id(x)}
    return x * 2 if id(x) in s else x
