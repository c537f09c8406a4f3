"""Small programs with tensors, one feature of Python or of the library each, and how many graphs
capture makes of them: what users write, not what is easy.

A program takes a tensor that may require grad and gives anything; it may change what it closes over
only in ways that a second run repeats.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import functools
import itertools
import math
import operator
import types
import typing

import numpy as np

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import nn

PROGRAMS = []


def program(graphs=1):
    """Files a program with the number of its graphs that hold an operation; 1 is without a break,
    None: the frame is broken or left as CPython's objects demand, and only results count."""

    def file(f):
        PROGRAMS.append((f, graphs))
        return f

    return file


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


# Modes --------------------------------------------------------------------------------------------


@program()
def no_grad_context(x):
    with torch.no_grad():
        y = x * 2
        with torch.enable_grad():
            z = x * 3
    return y, z, y.requires_grad, torch.is_grad_enabled()


@torch.no_grad()
def frozen_part(t):
    return t * 2


@torch.enable_grad()
def live_part(t):
    return t * 3


@torch.inference_mode()
def inference_part(t):
    return t * 2


@program()
def grad_mode_decorators(x):
    return frozen_part(x) + x, live_part(x)


@program()
def decorated_in_place(x):
    @torch.no_grad()
    def f(t):
        return t + 1

    g = torch.no_grad()(lambda t: t * 2)
    return f(x), g(x), x * 2


@program()
def set_grad_enabled(x):
    with torch.set_grad_enabled(False):
        y = x + 1
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    z = x * 2
    torch.set_grad_enabled(before)
    return y, z, x * 3


@program()
def inference_mode_context(x):
    with torch.inference_mode():
        y = x * 2
    with torch.inference_mode(False):
        z = x * 3
    return y.sum() * 0 + 1, z


@program()
def autocast_context(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.T
        z = F.softmax(y, -1)
    return y, z, x @ x.T


@program()
def autocast_nested(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        a = x @ x.T
        with torch.autocast("cpu", enabled=False):
            b = x @ x.T
        c = F.linear(x, x)
    return a, b, c, torch.is_autocast_enabled("cpu")


@program()
def autocast_decorator(x):
    return cast_part(x)


@torch.autocast("cpu", dtype=torch.bfloat16)
def cast_part(t):
    return t @ t.T


@program(None)
def checkpointed(x):
    return torch.utils.checkpoint.checkpoint(lambda t: (t * 2).sin(), x, use_reentrant=False)


# Tensors ------------------------------------------------------------------------------------------


@program()
def detach_and_data(x):
    y = (x * 2).detach()
    return y * x, x.detach().requires_grad


@program()
def views_and_in_place(x):
    y = x.clone()
    y[0] += 1
    y[:, 1:].mul_(2)
    y.t().add_(1)
    v = y.view(-1)
    v[::2] = 0
    return y


@program()
def boolean_masks(x):
    y = torch.where(x > 0, x, -x)
    z = x.masked_fill(x < 0, 0.5)
    w = x.clone()
    w[w < 0] = 0
    return y, z, w


@program()
def indices(x):
    i = torch.tensor([0, 2])
    return x[i], x[:, i], x[[0, 1]], x[..., -1], x[None, :, 0], x[i, i]


@program()
def factories_of_shape(x):
    n = x.shape[-1]
    pos = torch.arange(n, device=x.device, dtype=x.dtype)
    mask = torch.ones(n, n, dtype=torch.bool).tril()
    return (
        x * pos,
        torch.full_like(x, 2.0),
        x.new_zeros(2, n) + 1,
        mask.sum(),
        torch.eye(n) * x[0, 0],
    )


@program()
def multiple_outputs(x):
    values, at = x.max(dim=1)
    top = x.topk(2)
    a, b = x.split(2, dim=1)
    u, s = torch.var_mean(x, 0)
    return values, at, top.values, top[1], a + b, u, s


@program()
def random_operations(x):
    return x + torch.rand(3, 4), F.dropout(x, 0.5), torch.randn_like(x)


@program()
def tensor_attributes(x):
    return x.T, x.mT, x.shape, x.ndim, x.numel(), x.stride(), x.is_contiguous(), len(x), x.nbytes


@program()
def iteration_over_rows(x):
    total = 0
    for row in x:
        total = total + row * 2
    a, b, c = x
    return total, a + b + c


@program()
def einops_like(x):
    return (
        torch.einsum("ij,kj->ik", x, x),
        torch.cat([x, x]).chunk(2)[1],
        x.unsqueeze(0).expand(2, -1, -1),
    )


@program()
def complex_numbers(x):
    z = torch.complex(x, x * 2)
    return z.abs(), z.real, (z * 1j).imag


@program()
def constant_tensors(x):
    return x + torch.tensor([1.0, 2.0, 3.0, 4.0]) + CONSTANT


CONSTANT = torch.arange(4.0)


@program()
def casts(x):
    return x.double(), x.to(torch.int64), x.to("cpu", torch.bfloat16).float(), x.type_as(CONSTANT)


@program()
def requires_grad_is_asked(x):
    return x * 2 if x.requires_grad else x * 3


# autograd.Function --------------------------------------------------------------------------------


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2


class Scaled(torch.autograd.Function):
    """Several inputs and outputs, plain values, setup_context."""

    @staticmethod
    def forward(x, k, y):
        return x * k, x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.k, _ = inputs
        ctx.save_for_backward(output[0])

    @staticmethod
    def backward(ctx, ga, gb):
        (a,) = ctx.saved_tensors
        assert ctx.needs_input_grad[1] is False
        return ga * ctx.k + gb + 0 * a, None, gb * 7


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        return g


class Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.weight = weight
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -ctx.weight * g, None


@program()
def function_of_ones_own(x):
    return Cube.apply(x * 2) + 1


@program()
def function_with_setup(x):
    a, b = Scaled.apply(x, 3.0, x * 2)
    return a * 2 + b


@program()
def function_straight_through(x):
    return Straight.apply(x) * x


@program()
def function_gradient_reversal(x):
    return Reversal.apply(x, 0.5).sum()


@program()
def functions_nested(x):
    return Cube.apply(Straight.apply(x) + Cube.apply(x))


@program()
def function_result_unused(x):
    a, _ = Scaled.apply(x, 3.0, x)
    return a


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
