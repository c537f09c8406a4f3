"""Random functions for `derivative_programs`: smooth operations, views, writes in place through
views, tensors filled inside, modules with live and with detached parameters.

A program is text: `build()` returns the function of its inputs. Knows nothing of how it is judged.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

Shape = tuple[int, ...]

UNARY = (
    "torch.sin({0})", "torch.tanh({0})", "torch.sigmoid({0})", "{0} * {0}", "{0} * 1.5 - 0.3",
    "torch.exp(0.3 * {0})", "torch.atan({0})", "F.softplus({0})", "F.gelu({0})", "F.silu({0})",
    "torch.sqrt({0} * {0} + 1)", "torch.erf({0})", "-{0}", "{0}.pow(3)", "{0}.clone()",
    "torch.where({0} > 0.123, {0} * 2 - 0.123, {0})", "{0} / ({0} * {0} + 2)",
    "torch.expm1(0.2 * {0})", "F.elu({0} + 0.01)", "torch.complex({0}, {0} * 2).real * 1.1",
)  # fmt: skip
ALONG = (  # over a dim, the shape stays
    "torch.softmax({0}, {1})", "torch.log_softmax({0}, {1})", "{0}.cumsum({1})", "{0}.flip({1})",
    "{0}.roll(1, {1})", "F.normalize({0} + 2.0, dim={1})", "{0} - {0}.mean({1}, keepdim=True)",
    "{0} / ({0} + 3.0).var({1}, keepdim=True, correction=0).add(1)",
    "torch.cumprod({0} + 1.5, {1})",
)  # fmt: skip
BINARY = (
    "{0} + {1}", "{0} * {1}", "{0} - 2 * {1}", "{0} / ({1} * {1} + 1)", "torch.lerp({0}, {1}, 0.3)",
    "torch.addcmul({0}, {1}, {1}, value=0.5)", "torch.where({1} > 0.123, {0}, {0} * {1})",
    "torch.atan2({0}, {1} * {1} + 1)", "torch.hypot({0}, {1} + 3)", "torch.logaddexp({0}, {1})",
)  # fmt: skip
INPLACE = (
    "{0}.mul_(1.5)", "{0}.add_({1})", "{0}.copy_({1})", "{0}.sin_()", "{0}.tanh_()", "{0}.neg_()",
    "{0}.mul_({1})", "{0}.sub_({1}, alpha=2)", "{0}.addcmul_({1}, {1})", "{0}.lerp_({1}, 0.3)",
    "{0}.masked_fill_({1} > 0.123, 0.5)", "{0}.fill_(1.5)", "{0}.zero_()", "{0}.sigmoid_()",
    "{0}.div_({1} * {1} + 1)", "{0}.clamp_(-2.1, 2.3)", "{0} += {1}", "{0} *= {1}", "{0}.square_()",
    "{0}.cumsum_(-1)", "{0}.addcdiv_({1}, {1} * {1} + 2)", "{0}.pow_(2)",
)  # fmt: skip
MADE = (
    "torch.zeros({0}, dtype=torch.float64)", "{1}.new_zeros({0})", "torch.full({0}, 0.5).double()",
    "{1}.new_empty({0}).fill_(0.2)", "torch.tensor({2}, dtype=torch.float64)",
)  # fmt: skip
MODULES: dict[int, tuple[tuple[str, str], ...]] = {  # constructor and call by the dims of the input
    2: (
        ("nn.Linear({c}, 3)", "{m}({0})"), ("nn.LayerNorm({c})", "{m}({0})"),
        ("nn.BatchNorm1d({c}, track_running_stats=False)", "{m}({0})"),
        ("nn.BatchNorm1d({c}).eval()", "{m}({0})"), ("nn.GroupNorm(1, {c})", "{m}({0})"),
        ("nn.Bilinear({c}, {c}, 2)", "{m}({0}, {0})"), ("nn.GRUCell({c}, 3)", "{m}({0})"),
        ("nn.LSTMCell({c}, 2)", "{m}({0})[0]"), ("nn.RNNCell({c}, 2)", "{m}({0})"),
        ("nn.RMSNorm({c})", "{m}({0})"), ("nn.Embedding(3, {c})", "{m}(torch.tensor(1)) * {0}"),
        ("nn.CrossEntropyLoss()", "{m}({0}, torch.zeros({n}, dtype=torch.int64))"),
        ("nn.MultiMarginLoss(p=2)", "{m}({0}, torch.ones({n}, dtype=torch.int64))"),
        ("nn.MSELoss()", "{m}({0}, {0}.flip(0))"), ("nn.HuberLoss()", "{m}({0}, {0}.roll(1, 0))"),
        ("nn.Softmax(-1)", "{m}({0})"), ("nn.Linear({c}, {c}, bias=False)", "{m}({0})"),
    ),
    3: (
        ("nn.BatchNorm1d({c}, track_running_stats=False)", "{m}({0})"),
        ("nn.InstanceNorm1d({c}, affine=True)", "{m}({0})"),
        ("nn.LocalResponseNorm(2)", "{m}({0})"),
        ("nn.Conv1d({c}, 2, 2, padding=1)", "{m}({0})"), ("nn.GroupNorm(1, {c})", "{m}({0})"),
        ("nn.ConvTranspose1d({c}, 2, 2)", "{m}({0})"), ("nn.AvgPool1d(2)", "{m}({0})"),
        ("nn.GRU({l}, 2)", "{m}({0})[0]"), ("nn.LSTM({l}, 2)", "{m}({0})[0]"),
        ("nn.RNN({l}, 2)", "{m}({0})[1]"), ("nn.Linear({l}, 2)", "{m}({0})"),
        ("nn.MultiheadAttention({l}, 1)", "{m}({0}, {0}, {0})[0]"),
        ("nn.TransformerEncoderLayer({l}, 1, 4, dropout=0.0, activation='gelu')", "{m}({0})"),
        ("nn.AdaptiveAvgPool1d(2)", "{m}({0})"), ("nn.LayerNorm([{c}, {l}])", "{m}({0})"),
    ),
}  # fmt: skip


@dataclass
class Line:
    text: str
    made: str = ""  # the variable that it makes


@dataclass
class Program:
    seed: int
    shapes: list[Shape]
    setup: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    returns: list[str] = field(default_factory=list)

    def text(self) -> str:
        names = ", ".join(f"x{i}" for i in range(len(self.shapes)))
        made = {x.made for x in self.lines} | {f"x{i}" for i in range(len(self.shapes))}
        returns = [r for r in self.returns if r in made] or ["x0"]
        return "\n".join([
            "def build():", f"    torch.manual_seed({self.seed % 1000})",
            *(f"    {line}" for line in self.setup),
            f"    def f({names}):", *(f"        {line.text}" for line in self.lines),
            f"        return [{', '.join(returns)}]", "    return f", "",
        ])  # fmt: skip

    def smaller(self) -> Iterator[Program]:
        """Programs with a line less, a result less, or parts of the set-up less."""
        for what in ("lines", "returns", "setup"):
            for k in range(len(getattr(self, what)) - 1, -1, -1):
                trial = copy.deepcopy(self)
                del getattr(trial, what)[k]
                yield trial


class Drawer:
    def __init__(self, seed: int, length: int) -> None:
        self.r = random.Random(seed)
        shapes = [self.shape() for _ in range(self.r.choice((1, 1, 2)))]
        self.program = Program(seed, shapes)
        self.shapes: dict[str, Shape] = {f"x{i}": s for i, s in enumerate(shapes)}
        self.writable: list[str] = []  # variables whose memory was made inside
        for _ in range(length):
            self.step()
        names = list(self.shapes)
        self.program.returns = sorted(set(names[-2:] + self.r.sample(names, min(2, len(names)))))

    def shape(self) -> Shape:
        return tuple(self.r.choice((2, 3)) for _ in range(self.r.choice((1, 2, 2, 3))))

    def some(self, shape: Shape | None = None) -> str:
        """A variable; with `shape`, an expression that can be broadcast to it."""
        names = list(self.shapes)
        if shape is None:
            return self.r.choice(names[-6:])
        fitting = [n for n in names if self.shapes[n] == shape]
        fitting += [n for n in names if shape and self.shapes[n] == shape[1:]]
        if fitting and self.r.random() < 0.9:
            return self.r.choice(fitting)
        return f"{self.r.choice(names)}.mean()"

    def put(self, text: str, shape: Shape, fresh: bool) -> None:
        name = f"a{len(self.shapes)}"
        self.program.lines.append(Line(f"{name} = {text}", name))
        self.shapes[name] = shape
        if fresh:
            self.writable.append(name)

    def view(self, name: str) -> tuple[str, Shape]:
        """A view of a variable."""
        shape, r = self.shapes[name], self.r
        if not shape:
            return name, shape
        d = r.randrange(len(shape))
        k = r.randrange(shape[d])
        rest = shape[:d] + shape[d + 1 :]
        turned = (shape[-1], *shape[1:-1], shape[0]) if len(shape) > 1 else shape
        ways: list[tuple[str, Shape]] = [
            (f"{name}.select({d}, {k})", rest),
            (f"{name}[{k % shape[0]}]", shape[1:]),
            (f"{name}[..., {k % shape[-1]}:]", (*shape[:-1], shape[-1] - k % shape[-1])),
            (f"{name}.narrow({d}, {k}, 1)", (*shape[:d], 1, *shape[d + 1 :])),
            (f"{name}.transpose(0, -1)", turned),
            (f"{name}.unbind({d})[{k}]", rest),
            (f"{name}.unsqueeze({d})", (*shape[:d], 1, *shape[d:])),
            (f"{name}[::2]", ((shape[0] + 1) // 2, *shape[1:])),
            (f"{name}.reshape(-1) * 1", (math.prod(shape),)),
            (f"{name}.chunk(2, {d})[0]", (*shape[:d], (shape[d] + 1) // 2, *shape[d + 1 :])),
        ]  # fmt: skip
        if shape[d] > 1:
            ways.append(
                (f"{name}.unfold({d}, 2, 1)", (*shape[:d], shape[d] - 1, *shape[d + 1 :], 2))
            )
        if len(shape) > 1:
            n = min(shape[-2:])
            ways += [(f"{name}.diagonal(0, -2, -1)", (*shape[:-2], n))] * 2
        return r.choice([w for w in ways if len(w[1]) < 4])

    def step(self) -> None:
        r = self.r
        kind = r.random()
        name = self.some()
        shape = self.shapes[name]
        if kind < 0.16:
            self.put(r.choice(UNARY).format(name), shape, True)
        elif kind < 0.22 and shape:
            self.put(r.choice(ALONG).format(name, r.randrange(len(shape))), shape, True)
        elif kind < 0.34:
            self.put(r.choice(BINARY).format(name, self.some(shape)), shape, True)
        elif kind < 0.42:
            text, made = self.view(name)
            self.put(text, made, False)
            if name in self.writable and ".unfold(" not in text and "*" not in text:
                self.writable.append(list(self.shapes)[-1])
        elif kind < 0.50:
            made = self.shape()
            data = [0.5] * made[0]
            for n in made[1:]:
                data = [data] * n  # type: ignore[list-item]
            text = r.choice(MADE).format(list(made), name, data)
            if text.startswith("torch.tensor"):
                made = made[:0:-1] + made[:1]
            self.put(text, made, True)
        elif kind < 0.80 and self.writable:
            self.write(r.choice(self.writable[-5:]))
        elif kind < 0.84 and len(shape) == 2:
            self.put(f"{name} @ {name}.T", (shape[0], shape[0]), True)
        elif kind < 0.88 and shape:
            self.put(f"torch.stack([{name}, {name} * 2])", (2, *shape), True)
        elif len(shape) in MODULES and min(shape) > 1:
            self.module(name)
        else:
            self.put(r.choice(UNARY).format(name), shape, True)

    def write(self, name: str) -> None:
        """A change in place, of the variable or through a view of it."""
        text, shape = name, self.shapes[name]
        if self.r.random() < 0.7:
            text, shape = self.view(name)
            if "reshape" in text or "unfold" in text:  # a copy, or memory that overlaps
                text, shape = name, self.shapes[name]
        if not shape and text == name:
            text = f"{name}.view(())"
        # A copy: what shares memory with what is written has no defined value.
        source = f"{self.some(shape)}.clone()"
        if "[" in text and text.endswith("]") and "(" not in text and self.r.random() < 0.4:
            self.program.lines.append(Line(f"{text} = {source}"))
            return
        way = self.r.choice(INPLACE)
        if ("=" in way.split("}")[1][:4] and "(" in text) or (not shape and "cumsum" in way):
            way = "{0}.mul_({1})"
        self.program.lines.append(Line(way.format(text, source)))

    def module(self, name: str) -> None:
        shape = self.shapes[name]
        constructor, call = self.r.choice(MODULES[len(shape)])
        m = f"m{len(self.program.setup)}"
        sizes = {"n": shape[0], "c": shape[1], "l": shape[-1], "m": m}
        live = "" if self.r.random() < 0.5 else ".requires_grad_(False)"
        self.program.setup.append(f"{m} = {constructor.format(**sizes)}.double(){live}")
        self.put(f"{call.format(name, **sizes)}.reshape(-1)[:2] * 1", (2,), True)


def generate(seed: int, length: int = 8) -> Program:
    return Drawer(seed, length).program
