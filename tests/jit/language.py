"""Programs over the constructs of the language, and arguments for each.

Written as programs write them.
"""

# ruff: noqa: UP006, UP007, UP031, UP032, UP035, UP045, B905, C416, B007, E501, E701, E702, SIM102, SIM108, F841, C401

import enum
import math
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import Tensor

PROGRAMS = []


def program(*args):
    def add(f):
        PROGRAMS.append((f, args))
        return f

    return add


@program(5)
def nested_while(n: int):
    total = 0
    i = 0
    while True:
        i += 1
        if i > n:
            break
        j = 0
        while j < i:
            j += 1
            if j == 3:
                continue
            total += j
    return total


@program([3, 1, 2])
def sorting(xs: List[int]):
    ys = sorted(xs)
    xs.sort(reverse=True)
    return ys, xs, ys[::-1], ys[-1], xs[0:2]


@program("a,b,c")
def strings(s: str):
    parts = s.split(",")
    return (
        "-".join(parts),
        s[0],
        len(s),
        s.replace("a", "z"),
        [c for c in s if c != ","],
        "b" in s,
        s * 2,
        s == "x",
        parts[0] < parts[1],
    )


@program(torch.ones(2, 3))
def multi_ret(x):
    if x.size(0) > 1:
        return x, 1
    return x * 2, 2


@program(torch.ones(2, 3))
def opt_tuple(x: Tensor) -> Tuple[Tensor, Optional[Tensor]]:
    if x.dim() == 2:
        return x, None
    return x, x


@program({"a": 1})
def dict_iter(d: Dict[str, int]):
    total = 0
    for k in d:
        total += d[k]
    for k, v in d.items():
        total += v
    d["z"] = 3
    d.update({"q": 4})
    del d["z"]
    return total, len(d), list(d.keys()), d.get("nope"), d.get("a", 5), "a" in d, d.pop("a")


@program(3)
def recursion(n: int) -> int:
    if n <= 1:
        return 1
    return n * recursion(n - 1)


@program(torch.arange(6.0).view(2, 3))
def tensor_iter(x):
    out = []
    for row in x:
        out.append(row.sum())
    a, b = x
    return torch.stack(out), a + b, len(x)


@program(4)
def fors(n: int):
    xs = [i for i in range(n) if i % 2 == 0]
    ys = [(i, i * 2) for i in xs]
    z = 0
    for a, b in ys:
        z += a * b
    for i in range(10, 0, -3):
        z += i
    for i, (a, b) in enumerate(ys):
        z += i * a
    for a, b in zip([1, 2], [3.0, 4.0]):
        z += a * int(b)
    for c in reversed(xs):
        z -= c
    return z, xs, [[i + j for j in range(2)] for i in range(2)]


@program(2.5)
def numbers(x: float):
    return (
        int(x),
        x // 1,
        x % 1,
        -x,
        abs(-x),
        max(x, 1.0),
        min(1, 2),
        round(x),
        x**2,
        7 // 2,
        7 / 2,
        -7 // 2,
        7 % -3,
        2**3,
        1 << 3,
        5 & 3,
        5 | 3,
        5 ^ 3,
        ~5,
        x > 1 and x < 3,
        not x > 1,
        math.ceil(x),
        float("inf"),
    )


@program(torch.ones(3))
def scalar_item(x):
    v = x.sum().item()
    n = int(x.sum())
    b = bool(x[0] == 1)
    return v + 1, n, b, float(x[0])


@program(torch.randn(3, 4))
def maxes(x):
    v, i = torch.max(x, dim=1)
    m = x.max()
    t = torch.topk(x, 2)
    return v, i, m, t.values, t[1], x.min(0).values, torch.sort(x, 1)[0]


@program(torch.ones(2, 2))
def chained(x):
    return (
        (x + 1)
        .mul(2)
        .sub_(1)
        .t()
        .contiguous()
        .view(-1)[None]
        .expand(2, -1)
        .sum(dim=[0, 1], keepdim=False)
    )


@program(torch.ones(4))
def masks(x):
    x = x.clone()
    x[x > 0] = 0.5
    m = (x > 0.2) & ~(x > 3)
    x[m] += 1
    x[0], x[1] = x[1], x[0]
    return x.masked_fill(m, 2), torch.where(m, x, 0.0), x[m].numel(), m.any(), m.all().item()


@program(3)
def fstr(n: int):
    x = 2.5
    return f"{n:03d} {x:.2f} {n!r}" + str(n) + "{:>5}|{}".format(n, x) + "%d %s" % (n, x)


@program(1)
def try_assert(n: int):
    assert n > 0, f"bad {n}"
    return n


@program(torch.ones(2))
def devices(x):
    y = torch.zeros(2, device=x.device, dtype=x.dtype)
    z = y.to(x)
    w = z.to(torch.float64).to("cpu").type(torch.int64)
    return (
        y.device == x.device,
        y.dtype == torch.float32,
        w.is_floating_point(),
        x.device.type,
        torch.zeros_like(x),
        torch.full((2,), 3.0),
        torch.empty(2, 3).shape,
        x.new_ones(2),
    )


class Cfg(NamedTuple):
    a: int
    b: List[int] = []


@program(Cfg(1, [2]))
def nt(c: Cfg):
    d = Cfg(c.a + 1, c.b)
    a, b = d
    return d.a, b, d[0], Cfg(a=3)


class Mode(enum.Enum):
    A = "a"
    B = "b"


@program(Mode.B)
def en(m: Mode):
    if m == Mode.A:
        return 1
    elif m is Mode.B:
        return len(m.value) + len(m.name)
    return 0


@program([torch.ones(2), None])
def opt_list(xs: List[Optional[Tensor]]):
    n = 0
    for x in xs:
        if x is not None:
            n += x.numel()
    return n


@program(5)
def union(x: Union[int, str]):
    if isinstance(x, int):
        return x + 1
    else:
        return len(x)


@program(torch.ones(3), 2)
def defaults(x: Tensor, n: int = 3, s: Optional[float] = None, flag: bool = False):
    if flag or (s is not None and s > 0):
        n = n + 1
    return x * n


class Acc:
    def __init__(self, n: int):
        self.n = n
        self.hist: Dict[str, List[int]] = {}

    def add(self, k: str, v: int):
        if k not in self.hist:
            self.hist[k] = []
        self.hist[k].append(v)
        self.n += v
        return self

    @property
    def total(self) -> int:
        return self.n

    def __len__(self) -> int:
        return len(self.hist)

    def __add__(self, o: "Acc") -> int:
        return self.n + o.n

    @staticmethod
    def make(n: int) -> "Acc":
        return Acc(n)


@program(3)
def classes(n: int):
    a = Acc(n)
    a.add("x", 1).add("y", 2)
    return a.total, len(a), a + a, a.hist["x"], a.n


class Ctx:
    def __init__(self):
        self.n = 0

    def __enter__(self):
        self.n += 1
        return self.n

    def __exit__(self, a: Any, b: Any, c: Any) -> None:
        self.n += 10


@program()
def withs():
    c = Ctx()
    with c as k:
        z = k + 1
    with torch.no_grad(), torch.autograd.profiler.record_function("x"):
        y = torch.ones(2, requires_grad=False) * z
    return c.n, y


@program(torch.ones(2, 3, 4))
def funcs(x):
    y = F.pad(x, (1, 1))
    y = F.avg_pool1d(y, 2)
    y = F.softmax(y, -1, dtype=torch.float64)
    z = torch.einsum("bij,bkj->bik", x, x)
    a, b = torch.split(x, [1, 2], dim=1)
    q = torch.cat((a, b), dim=1)
    u = torch.nn.functional.one_hot(torch.tensor([0, 2]), 3)
    w = torch.linspace(0, 1, steps=5)
    g = torch.meshgrid(w, w, indexing="ij")
    n = torch.norm(x, p=2, dim=-1)
    return (
        y.shape,
        z.shape,
        q.shape,
        u,
        g[0].shape,
        n.shape,
        x.norm(),
        torch.arange(1, 5, 2),
        x.std(),
        x.var(dim=1).shape,
        torch.linalg.norm(x).item(),
        x.split(2, dim=2)[0].shape,
        x.chunk(2, -1)[1].shape,
        x.unbind(0)[0].shape,
        x.permute(0, 2, 1).shape,
        x.repeat(1, 2, 1).shape,
        x.roll(1, 0).shape,
    )


@program(torch.ones(2))
def complex_(x):
    z = torch.complex(x, x)
    c = 1 + 2j
    return z.real, z.abs(), c.imag, (c * c).real, z * c


@program(2)
def ternary(n: int):
    x = 1 if n > 1 else 0
    y = None if n > 5 else n
    z: Optional[int] = None
    if n == 2:
        z = 3
    w = z if z is not None else -1
    return x, y, w, 0 < n <= 2 < 3, n in [1, 2], n not in (3, 4)


@program(torch.ones(2))
def ignored(x):
    return helper_ignored(x) + 1


@torch.jit.ignore
def helper_ignored(x: Tensor) -> Tensor:
    return x * 3


@program(torch.ones(2))
def lambdaish(x):
    fs = torch.relu
    return fs(x), torch.nn.functional.relu(x, inplace=True)


@program([1.0, 2.0])
def list_ops(xs: List[float]):
    ys = xs + [3.0]
    zs = ys * 2
    ys.extend(zs)
    ys.insert(0, 0.5)
    ys.remove(2.0)
    return (
        ys,
        sum(xs),
        max(xs),
        ys.index(3.0),
        ys.count(3.0),
        xs == [1.0, 2.0],
        torch.tensor(xs),
        list(range(3)),
        [0.0] * 2,
        [1, 2] + [3],
        all([True, False]),
        any([True]),
    )


@program(torch.ones(2))
def del_shadow(x):
    y = x
    del y
    y = 3
    return y


@program(torch.ones(2), [2, 1])
def size_args(x, s: List[int]):
    return (
        x.view(s).shape,
        x.reshape(s[0], s[1]).shape,
        torch.zeros(s).shape,
        x.expand([3, 2]).shape,
        x.new_zeros(2, 3).shape,
        x.unsqueeze(0).size(),
        x.view(x.size()).size(-1),
    )


@program(torch.ones(2))
def early(x):
    for i in range(3):
        for j in range(3):
            if i * j == 2:
                return x * i
    return x


@program(torch.ones(2))
def typ(x):
    # type: (Tensor) -> Tensor
    return x


@program(3)
def comment_args(n, xs=None):
    # type: (int, Optional[List[int]]) -> int
    if xs is None:
        xs = [n]
    return xs[0]


@program(torch.tensor([2, 3, 1]), torch.arange(18.0).view(6, 3))
def ragged(lengths, x):
    out: List[Tensor] = []
    start = 0
    sizes: List[int] = lengths.tolist()
    for n in sizes:
        out.append(x[start : start + n].sum(0))
        start += n
    return torch.stack(out)


@program(torch.rand(2, 6, 5), torch.tensor([3], dtype=torch.int32))
def gated(x, channels):
    n = channels[0]
    return torch.tanh(x[:, :n, :]) * torch.sigmoid(x[:, n:, :])


@program(torch.rand(5, 4), torch.rand(5), 0.5)
def suppressed(boxes: Tensor, scores: Tensor, limit: float) -> Tensor:
    keep: List[int] = []
    order = torch.argsort(scores, descending=True)
    while order.numel() > 0:
        i = int(order[0].item())
        keep.append(i)
        rest = order[1:]
        inter = (
            torch.max(boxes[i, 0], boxes[rest, 0])
            * (boxes[i, 2:] - boxes[i, :2]).clamp(min=0).prod()
        )
        order = rest[inter <= limit]
    return torch.tensor(keep, dtype=torch.long)


@program(torch.rand(2, 8, 16))
def attention(q):
    k = v = q
    B, N, C = q.shape
    qh, kh, vh = [t.view(B, N, 4, C // 4).transpose(1, 2) for t in [q, k, v]]
    attn = (qh @ kh.transpose(-2, -1)) * (C // 4) ** -0.5
    mask = torch.triu(torch.full((N, N), float("-inf")), diagonal=1)
    return ((attn + mask).softmax(dim=-1) @ vh).transpose(1, 2).reshape(B, N, C)


@program(torch.rand(3, 4), torch.rand(3, 4))
def into_others(x, y):
    # Conjugate gradients write so (linear_operator).
    storage = torch.empty(3, 4)
    total = torch.empty(1, 4)
    small = torch.empty(1, 4, dtype=torch.bool)
    torch.mul(x, y, out=storage)
    total = torch.sum(storage, dim=-2, keepdim=True, out=total)
    torch.lt(total, 0.5, out=small)
    torch.div(total, x[:1], out=total)
    grown = torch.empty(0)
    torch.addcmul(storage, x, y, out=grown)
    return storage, total, small, grown
