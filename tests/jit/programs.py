"""Functions and modules that PyTorch's `jit.script` takes, and arguments for each.

Written as programs write them: old annotations, `format`, `zip` without `strict`.
"""

# ruff: noqa: UP006, UP007, UP031, UP032, UP035, UP045, B905, C416, B007, E501

import math
from enum import Enum
from typing import Any, Final, NamedTuple

import flambeau as torch
import flambeau.nn as nn
import flambeau.nn.functional as F
from flambeau import Tensor

CASES = []


def case(f):
    CASES.append(f)
    return f


# ---- functions -------------------------------------------------------------------------------
@case
def rnn004(x, h, W_h, U_h, b_h):
    y = []
    for t in range(x.size(0)):
        h = torch.tanh(x[t] @ W_h + h @ U_h + b_h)
        y += [h]
    return torch.stack(y), h


def foo(x):
    return torch.neg(x)


@case
def fork_example(x):
    future = torch.jit.fork(foo, x)
    x_normal = foo(x)
    x_parallel = torch.jit.wait(future)
    return x_normal, x_parallel


@case
def fork_loop(x):
    futures: list[torch.jit.Future[torch.Tensor]] = []
    for _ in range(100):
        futures.append(torch.jit.fork(foo, x))
    results = []
    for future in futures:
        results.append(torch.jit.wait(future))
    return torch.sum(torch.stack(results))


@case
def if_tensor(x: Tensor, y: Tensor):
    if bool(x.sum() > 0):
        z = x
    elif y.dim() > 1:
        z = y
    else:
        z = x + y
    return z


@case
def if_tensor_implicit(x):
    if x.sum() > 0:
        return x
    else:
        return -x


@case
def while_loop(n: int) -> int:
    a, b = 0, 1
    while b < n:
        a, b = b, a + b
    return a


@case
def early_returns(x: Tensor, n: int) -> Tensor:
    if n < 0:
        return x
    for i in range(n):
        x = x * 2
        if i > 10:
            return x + 1
    return x


@case
def break_continue(xs: list[int]) -> int:
    total = 0
    for x in xs:
        if x < 0:
            continue
        if x > 100:
            break
        total += x
    return total


@case
def list_methods(n: int) -> list[int]:
    xs = [1, 2, 3]
    xs.append(n)
    xs.extend([4, 5])
    xs.reverse()
    xs.sort()
    xs.insert(0, 9)
    last = xs.pop()
    xs.remove(9)
    if len(xs) > 0 and last in xs:
        xs.clear()
    return xs + xs[1:]


@case
def dict_ops(words: list[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for w in words:
        if w in counts:
            counts[w] += 1
        else:
            counts[w] = 1
    for k, v in counts.items():
        if v > 100:
            print(k)
    return counts


@case
def dict_literal(x: Tensor) -> dict[str, Tensor]:
    d = {"a": x, "b": x + 1}
    d["c"] = d["a"] * d.get("b", x)
    for k in d.keys():
        d[k] = d[k] + 1
    return {k: v * 2 for k, v in d.items()}


@case
def tuples(x: Tensor) -> tuple[Tensor, int]:
    t = (x, 3)
    a, b = t
    (c, d), e = (a, b), 4
    return t[0] + c, t[1] + d + e


@case
def optional_arg(x: Tensor, scale: Tensor | None = None, eps: float | None = None) -> Tensor:
    if scale is not None:
        x = x * scale
    if eps is None:
        eps = 1e-5
    assert eps is not None
    return x + eps


@case
def optional_return(xs: list[int]) -> int | None:
    best: int | None = None
    for x in xs:
        if best is None or x > best:
            best = x
    return best


@case
def string_format(x: Tensor, name: str) -> str:
    a = f"{name} has {x.dim()} dims"
    b = f"{name}: {x.size(0)}"
    c = "%s" % name
    print(a, b, len(c))
    return a + b + c.upper()


@case
def asserts(x: Tensor, n: int) -> Tensor:
    assert n > 0
    assert x.dim() == 2, "expected 2 dims"
    if n > 10:
        raise ValueError(f"too many: {n}")
    if n == 7:
        raise RuntimeError
    return x


@case
def comprehensions(xs: list[Tensor], n: int) -> list[Tensor]:
    squares = [i * i for i in range(n)]
    ys = [x * 2.0 for x in xs]
    ys = [y + s for y, s in zip(ys, squares)]
    d = {i: i * i for i in range(n)}
    return [y for y in ys] + [torch.zeros(2) + d[0]]


@case
def enumerate_zip(xs: list[Tensor], ys: list[Tensor]) -> Tensor:
    out = torch.zeros(1)
    for i, (x, y) in enumerate(zip(xs, ys)):
        out = out + i * (x * y).sum()
    return out


@case
def inplace(x: Tensor) -> Tensor:
    y = x.clone()
    y += 1
    y *= 2
    y[0] = 0
    y[1:3] = 5.0
    y[:, 0] += 1
    y.add_(1).relu_()
    return y


@case
def slicing(x: Tensor, i: int) -> Tensor:
    a = x[i]
    b = x[1:, ::2]
    c = x[..., -1]
    d = x[None, :, 0]
    e = x[x > 0]
    f = x[torch.tensor([0, 1]), torch.tensor([0, 1])]
    g = x[:, torch.tensor([0, 1])]
    return a.sum() + b.sum() + c.sum() + d.sum() + e.sum() + f.sum() + g.sum()


@case
def factories(n: int) -> Tensor:
    a = torch.zeros(n, 3)
    b = torch.zeros([n, 3], dtype=torch.float32, device=torch.device("cpu"))
    c = torch.ones(n, 3).to(torch.float64)
    d = torch.arange(n, dtype=torch.float32)
    e = torch.rand(n, 3)
    f = torch.tensor([[1, 2], [3, 4]])
    return a + b + c + d.unsqueeze(1) + e + f.sum()


@case
def methods(x: Tensor) -> Tensor:
    y = x.view(-1).view(x.size(0), -1).permute(1, 0).reshape(x.shape[0], x.numel() // x.shape[0])
    y = y.transpose(0, 1).contiguous().to(x.device).float()
    m, idx = y.max(dim=0)
    k = int(idx[0])
    return m.sum() + k + float(x.mean()) + x.sum().item()


@case
def math_builtins(x: float, n: int) -> float:
    a = math.sqrt(x) + math.pi + math.floor(x) + math.log(x + 1)
    b = max(n, 3) + min(2, n) + abs(n) + round(x) + pow(n, 2) + divmod(n, 3)[0]
    c = n // 2 + n % 3 + n**2
    return a + b + c + float(n > 3)


@case
def fn_functional(x: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
    y = F.linear(x, w, b)
    y = F.relu(y, inplace=True)
    y = F.dropout(y, p=0.5, training=False)
    y = torch.nn.functional.softmax(y, dim=-1)
    y = F.layer_norm(y, [y.size(-1)])
    return F.interpolate(y.unsqueeze(0), scale_factor=2.0).squeeze(0)


class Point(NamedTuple):
    x: Tensor
    y: Tensor
    n: int = 3


@case
def named_tuple(p: Point) -> Point:
    q = Point(p.x + 1, p.y * p.n, p.n + 1)
    return Point(x=q.x, y=q.y, n=q.n)


class Color(Enum):
    RED = 1
    GREEN = 2


@case
def enums(c: Color, x: Tensor) -> Tensor:
    if c == Color.RED:
        return x
    return x * c.value


@torch.jit.script
class Accumulator:
    def __init__(self, start: int):
        self.total = start
        self.items: list[int] = []

    def add(self, n: int) -> int:
        self.total += n
        self.items.append(n)
        return self.total


@case
def user_class(n: int) -> int:
    acc = Accumulator(0)
    for i in range(n):
        acc.add(i)
    return acc.total + len(acc.items)


@case
def union_isinstance(x: int | list[int] | Tensor) -> int:
    if isinstance(x, int):
        return x
    elif torch.jit.isinstance(x, list[int]):
        return len(x)
    else:
        return x.dim()


@case
def any_arg(x: Any) -> bool:
    return isinstance(x, int)


@case
def with_no_grad(x: Tensor) -> Tensor:
    with torch.no_grad():
        y = x * 2
    return y + x


GLOBAL_N: int = 4


@case
def globals_and_calls(x: Tensor) -> Tensor:
    y = foo(x) * 4
    return helper(y, k=2)


def helper(x, k: int = 1):
    return x + k


@case
def starred_varargs(xs: list[Tensor], shape: tuple[int, int]) -> Tensor:
    a, *rest = xs[0], xs[1], xs[2]
    return a.expand(*shape) + rest[0]


@case
def if_expr_bool_ops(x: Tensor, a: int | None, flag: bool) -> Tensor:
    n = a if a is not None else 0
    if not (flag and n > 2) or x.numel() == 0:
        x = x + n
    ok = 0 < n <= 3
    return x * int(ok)


@case
def nested_lists(n: int) -> list[list[int]]:
    out: list[list[int]] = []
    for i in range(n):
        row = torch.jit.annotate(list[int], [])
        for j in range(i):
            row.append(j)
        out.append(row)
    out[0] = [1]
    out[0][0] += 2
    return out


@case
def complex_numbers(x: Tensor) -> Tensor:
    z = torch.view_as_complex(x)
    return torch.abs(z * (1 + 2j))


# ---- modules -----------------------------------------------------------------------------------
class DecisionGate(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return x
        else:
            return -x


@case
class MyCell(nn.Module):
    def __init__(self):
        super().__init__()
        self.dg = DecisionGate()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        new_h = torch.tanh(self.dg(self.linear(x)) + h)
        return new_h, new_h


@case
class LSTMCellHand(nn.Module):
    __constants__ = ["hidden"]

    def __init__(self, n: int = 3, hidden: int = 4):
        super().__init__()
        self.hidden = hidden
        self.w_ih = nn.Parameter(torch.randn(4 * hidden, n))
        self.w_hh = nn.Parameter(torch.randn(4 * hidden, hidden))
        self.register_buffer("steps", torch.zeros(1))

    def forward(
        self, x: Tensor, state: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        if state is None:
            z = torch.zeros(x.size(0), self.hidden, dtype=x.dtype, device=x.device)
            state = (z, z)
        h, c = state
        gates = torch.mm(x, self.w_ih.t()) + torch.mm(h, self.w_hh.t())
        i, f, g, o = gates.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        self.steps += 1
        return h, (h, c)


class BidirectionalRecurrentLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell_f = nn.LSTM(input_size=8, hidden_size=8)
        self.cell_b = nn.LSTM(input_size=8, hidden_size=8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        future_f = torch.jit.fork(self.cell_f, x)
        output_b, _ = self.cell_b(torch.flip(x, dims=[0]))
        output_b_rev = torch.flip(output_b, dims=[0])
        output_f, _ = torch.jit.wait(future_f)
        return torch.cat((output_f, output_b_rev), dim=2)


@case
class LSTMEnsemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.models = nn.ModuleList([BidirectionalRecurrentLSTM() for _ in range(4)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        futures = [torch.jit.fork(model, x) for model in self.models]
        results = [torch.jit.wait(fut) for fut in futures]
        return torch.stack(results).sum(dim=0)


@case
class SequentialNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2)
        )
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        x = self.features(x)
        x = torch.flatten(x.mean(dim=(2, 3)), 1)
        return F.log_softmax(self.head(x), dim=1)


@case
class ExportedMethods(nn.Module):
    scale: Final[int]
    names: list[str]

    def __init__(self):
        super().__init__()
        self.scale = 3
        self.names = ["a"]
        self.table: dict[str, int] = {"a": 1}
        self.layers = nn.ModuleDict({"up": nn.Linear(2, 4), "down": nn.Linear(4, 2)})

    @torch.jit.export
    def lookup(self, k: str) -> int:
        return self.table[k] if k in self.table else -1

    @torch.jit.ignore
    def debug(self, x: Tensor) -> Tensor:
        return x

    @torch.jit.unused
    def never(self, x: Tensor) -> Tensor:
        return x

    def helper(self, x, n: int):
        return x * n

    def forward(self, x: Tensor) -> Tensor:
        for name, layer in self.layers.items():
            x = layer(x)
        if self.training:
            x = self.helper(x, self.scale)
        self.names.append("b")
        return x + self.lookup("a")


@case
class ResidualStack(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.norm: nn.Module | None = None
        self.act = F.gelu

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        for i, block in enumerate(self.blocks):
            x = x + self.act(block(x))
            if i == 1:
                x = x * 0.5
        if mask is not None:
            x = x.masked_fill(mask, float("-inf"))
        if torch.jit.is_scripting():
            x = x + 0
        return self.blocks[0](x)


ARGUMENTS = {
    "rnn004": lambda: (
        torch.randn(3, 2, 4),
        torch.randn(2, 5),
        torch.randn(4, 5),
        torch.randn(5, 5),
        torch.randn(5),
    ),
    "fork_example": lambda: (torch.randn(3),),
    "fork_loop": lambda: (torch.randn(3),),
    "if_tensor": lambda: (torch.randn(2, 2), torch.randn(2, 2)),
    "if_tensor_implicit": lambda: (torch.randn(2, 2),),
    "while_loop": lambda: (50,),
    "early_returns": lambda: (torch.randn(2), 3),
    "break_continue": lambda: ([1, -2, 5, 200, 3],),
    "list_methods": lambda: (7,),
    "dict_ops": lambda: (["a", "b", "a"],),
    "dict_literal": lambda: (torch.randn(2),),
    "tuples": lambda: (torch.randn(2),),
    "optional_arg": lambda: (torch.randn(2), torch.randn(2)),
    "optional_return": lambda: ([1, 3, 2],),
    "string_format": lambda: (torch.randn(2, 3), "nm"),
    "asserts": lambda: (torch.randn(2, 2), 3),
    "comprehensions": lambda: ([torch.randn(2), torch.randn(2)], 3),
    "enumerate_zip": lambda: ([torch.randn(2)] * 2, [torch.randn(2)] * 2),
    "inplace": lambda: (torch.randn(4, 3),),
    "slicing": lambda: (torch.randn(5, 5), 1),
    "factories": lambda: (3,),
    "methods": lambda: (torch.rand(3, 4),),
    "math_builtins": lambda: (2.5, 4),
    "fn_functional": lambda: (torch.randn(2, 3), torch.randn(3, 3), None),
    "named_tuple": lambda: (Point(torch.ones(2), torch.ones(2), 2),),
    "enums": lambda: (Color.GREEN, torch.ones(2)),
    "user_class": lambda: (5,),
    "union_isinstance": lambda: ([1, 2, 3],),
    "any_arg": lambda: (3,),
    "with_no_grad": lambda: (torch.randn(2),),
    "globals_and_calls": lambda: (torch.randn(2),),
    "starred_varargs": lambda: ([torch.ones(1, 1)] * 3, (2, 3)),
    "if_expr_bool_ops": lambda: (torch.ones(2), 3, True),
    "nested_lists": lambda: (4,),
    "complex_numbers": lambda: (torch.randn(3, 2),),
    "MyCell": lambda: (torch.randn(2, 4), torch.randn(2, 4)),
    "LSTMCellHand": lambda: (torch.randn(2, 3),),
    "LSTMEnsemble": lambda: (torch.randn(3, 2, 8),),
    "SequentialNet": lambda: (torch.randn(2, 3, 8, 8),),
    "ExportedMethods": lambda: (torch.randn(2, 2),),
    "ResidualStack": lambda: (torch.randn(2, 4),),
}
