"""Pieces of random programs over state: what every program begins with, parts of classes, kinds of
containers, ways to reach what a module holds. Text only; `_state_draw` puts it together.
"""

from __future__ import annotations

HEAD = """\
import collections, contextlib, dataclasses, operator, sys, types
import flambeau as torch
from flambeau import nn
from flambeau.func import functional_call

G = 1
GL = [1, 2]
GD = {"q": 1}
opaque = sys.intern
kind = sys.modules[__name__]

def num(v):
    if isinstance(v, (int, float)):
        return v
    if isinstance(v, torch.Tensor):
        return v.sum()
    return 1

def bump_global(v):
    global G
    G = num(v) if isinstance(v, int) else G + 1
    return G

def make_counter():
    n = 0
    def counter():
        nonlocal n
        n += 1
        return n
    return counter

counter = make_counter()

def remember(v, seen=[]):
    seen.append(v)
    del seen[:-3]
    return len(seen)

def noted(v, *, memo={"n": 0}):
    memo["n"] += 1
    memo["v"] = v
    return memo["n"]

def helper():
    pass

helper.state = 1

def walk(o):
    for n in ("p", "q"):
        setattr(o, n, num(getattr(o, n, 0)) + 1)
        yield o.__dict__.get(n, 1)
    o.n = 0

@contextlib.contextmanager
def changed(o):
    before = getattr(o, "p", 0)
    o.p = 17
    try:
        yield o
    finally:
        o.__dict__["p"] = before

class Methods:
    def __enter__(self):
        self.q = num(self.__dict__.get("q", 0)) + 1
        return self
    def __exit__(self, *error):
        self.__dict__["r"] = error[0] is None
        return False
    def get_p(self):
        return self.p
    def get_q(self):
        return self.__dict__["q"]
    def get_r(self):
        return getattr(self, "r")
    def get_n(self):
        return vars(self).get("n")
    def set_p(self, v):
        self.p = v
    def set_q(self, v):
        self.__dict__["q"] = v
    def set_r(self, v):
        super().__setattr__("r", v)
    def set_n(self, v):
        object.__setattr__(self, "n", v)
    def bump(self):
        for n in ("p", "q", "r"):
            setattr(self, n, num(getattr(self, n, 0)) + 1)
    def total(self):
        return [num(v) for v in self.__dict__.values()]

class Plain(Methods):
    def __init__(self, p=1, q=2):
        self.p = p
        self.__dict__["q"] = q

class Slotted(Plain):
    __slots__ = ("p", "s")

class Tracked(Plain):
    def __setattr__(self, name, value):
        if name == "p":
            self.__dict__["r"] = name
        super().__setattr__(name, value)

@dataclasses.dataclass(eq=False)
class Data(Methods):
    p: int = 3
    q: list = dataclasses.field(default_factory=list)
    def __post_init__(self):
        self.r = self.p

class Stored:
    def __set_name__(self, owner, name):
        self.name = name
    def __get__(self, o, cls=None):
        if o is None:
            return self
        return o.__dict__.get("_" + self.name, 0)
    def __set__(self, o, value):
        o.__dict__["_" + self.name] = value
    def __delete__(self, o):
        del o.__dict__["_" + self.name]

class Lazy:
    def __set_name__(self, owner, name):
        self.name = name
    def __get__(self, o, cls=None):
        if o is None:
            return self
        value = o.__dict__[self.name] = 4
        return value

class Point(collections.namedtuple("Point", "x y")):
    note = 0

class Record(collections.OrderedDict):
    def __init__(self, x=None, name=None):
        super().__init__()
        self.x = x
        self.name = name
        for n in ("x", "name"):
            if getattr(self, n) is not None:
                self[n] = getattr(self, n)
    def __setattr__(self, name, value):
        if name in self.keys() and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)
    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)

class Named(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name)
    def __setattr__(self, name, value):
        self[name] = value

class Counting(dict):
    count = 0
    def __setitem__(self, key, value):
        self.count += 1
        super().__setitem__(key, value)
    def __getitem__(self, key):
        return super().__getitem__(key)
    def __missing__(self, key):
        return self.count
    def pop(self, key, *rest):
        self.count -= 1
        return super().pop(key, *rest)

class Filling(dict):
    def __missing__(self, key):
        value = self[key] = len(self)
        return value
    def update(self, *args, **named):
        for k, v in dict(*args, **named).items():
            self[k] = v

class Ordered(collections.OrderedDict):
    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        self.last = key
    def __delitem__(self, key):
        super().__delitem__(key)
        self.last = None

class Late(collections.OrderedDict):
    def __init__(self, pairs=()):
        super().__init__()
        for k, v in pairs:
            torch._dynamo.graph_break()
            super().__setitem__(k, v)

class Default(collections.defaultdict):
    def __init__(self):
        super().__init__(int)

class User(collections.UserDict):
    def __setitem__(self, key, value):
        self.seen = key
        super().__setitem__(key, value)

class Items(list):
    def __init__(self, *v):
        super().__init__(v)
        self.note = 0
    def append(self, v):
        self.note += 1
        super().append(v)

class Shown(list):
    def __len__(self):
        return 3
    def __getitem__(self, k):
        return super().__getitem__(k)

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.register_buffer("s", torch.zeros(3))
        self.k = 2
        self.child = nn.Linear(3, 3)
        with torch.no_grad():
            self.child.weight.fill_(0.5)
            self.child.bias.zero_()
    def forward(self, x):
        return x * self.w + self.s + num(self.k)
    def step(self, x):
        self.s = self.s + 1
        self._buffers["s"] = self._buffers["s"] * 2
        return x + self.s
"""

#: parts of class bodies; NAME and OTHER become attribute names
CLASS_PARTS = [
    """
@property
def NAME(self):
    return self.__dict__.get("_NAME", 1)
@NAME.setter
def NAME(self, value):
    self._NAME = value
""",
    """
@property
def NAME(self):
    return num(self.__dict__.get("OTHER", 0)) + 1
""",
    """
@property
def NAME(self):
    return self._hidden
@NAME.setter
def NAME(self, value):
    self.__dict__["_hidden"] = value
@NAME.deleter
def NAME(self):
    del self._hidden
""",
    "NAME = Stored()",
    "NAME = Lazy()",
    """
def __setattr__(self, name, value):
    self.__dict__[name] = value
""",
    """
def __setattr__(self, name, value):
    object.__setattr__(self, name, value)
    if name == "NAME":
        self.OTHER_seen = 1
""",
    """
def __setattr__(self, name, value):
    super().__setattr__(name, value)
    vars(self)["count"] = vars(self).get("count", 0) + 1
""",
    """
def __getattr__(self, name):
    if name == "NAME":
        return 9
    raise AttributeError(name)
""",
    """
def __getattr__(self, name):
    if name.startswith("_"):
        raise AttributeError(name)
    self.__dict__[name] = 3
    return self.__dict__[name]
""",
    """
def __getattribute__(self, name):
    if name == "NAME":
        return object.__getattribute__(self, "__dict__").get("NAME", 6)
    return super().__getattribute__(name)
""",
    """
def __delattr__(self, name):
    self.__dict__["gone"] = name
    super().__delattr__(name)
""",
    """
def __len__(self):
    return len(self.__dict__)
""",
    """
def __eq__(self, other):
    return isinstance(other, Methods) and self.__dict__.get("NAME") is other.__dict__.get("NAME")
__hash__ = None
""",
    '__slots__ = ("NAME",)',
    '__slots__ = ("NAME", "_OTHER")',
    """
def set_NAME(self, v):
    super().__setattr__("NAME", v)
    self.__dict__.pop("OTHER", None)
""",
    """
def bump(self):
    store = self.__dict__
    store["NAME"] = num(store.get("NAME", 0)) + 1
    self.OTHER = store["NAME"]
""",
]

LISTS = ("[1, 2]", "[1, 2.5]", "[]", "Items(1, 2)", "Shown([1, 2, 3])", "collections.deque([1, 2])",
         "[[1], 2]")  # fmt: skip
MAPPINGS = (
    "{'p': 1, 'k': 2}",
    "{}",
    "collections.OrderedDict(p=1, q=2)",
    "collections.defaultdict(int, p=1)",
    "collections.defaultdict(list)",
    "Counting(p=1)",
    "Filling(p=1)",
    "Ordered(p=1, k=3)",
    "Named(p=1)",
    "Record(x=1)",
    "Late([('p', 1), ('q', 2)])",
    "Default()",
    "collections.Counter('aab')",
    "User(p=1)",
    "collections.ChainMap({'p': 1}, {'q': 2})",
)

#: what is read of a module `m`, and how it is changed
MODULE_WAYS = {
    "read": (
        "m.w", "m.s", "m.k", "m._parameters['w']", "m._buffers['s']", "m._modules['child']",
        "m(x)", "m.step(x)", "m.child(x)", "m.__dict__['k']", "vars(m)['_buffers']",
        "list(m.named_parameters())", "dict(m.named_buffers())", "hasattr(m, 'extra')",
        "functional_call(m, {'w': x * 2}, (x,))", "getattr(m, 'extra', 4)", "m.training",
        "list(m._buffers)",
    ),
    "write": (
        "m.s = x", "m.s = m.s + 1", "m._buffers['s'] = x * 3", "m.k = 5", "m.__dict__['k'] = 6",
        "m.register_buffer('extra', x * 1)", "m.extra = 3", "del m.extra", "m.s = None",
        "m._parameters['w'] = x", "m.w = nn.Parameter(torch.ones(3) * 2)", "vars(m)['k'] = 7",
        "object.__setattr__(m, 's', 5)", "m._modules.pop('child', None)", "del m.s",
        "setattr(m, 'k', m.k + 1 if isinstance(m.k, int) else 0)", "m.eval()", "m.train()",
        "m._buffers = dict(m._buffers)", "m.__dict__.pop('k', None)", "m.register_buffer('s', x)",
    ),
}  # fmt: skip
