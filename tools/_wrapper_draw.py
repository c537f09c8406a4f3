"""Functions and modules wrapped in one another, for `wrapper_programs`: transforms, grad modes,
autocast, checkpoints, decorators, methods, hooks and `compile`, in any order.

A program is text that defines `setup(compile)`, which gives the outermost function and the
parameters below it; with `compile` the identity it is the eager program. Invariant: what is drawn
is fixed by the seed. Knows nothing of how it is judged.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

HEAD = """
def summed(g):
    return lambda x: g(x).sum()

def pulled(g):
    def pulled(x):
        out, back = torch.func.vjp(g, x)
        return back(out.cos())[0]
    return pulled

def pushed(g):
    def pushed(x):
        out, tangent = torch.func.jvp(g, (x,), (x.cos(),))
        return out + tangent
    return pushed

def columns(g, jacobian):
    def columns(x):
        return jacobian(g)(x).flatten(0, x.dim() - 1).sum(0)
    return columns

def aside(g):
    def aside(x):
        out = g(x)
        return out.sum(), {"out": out}
    return aside

def wraps(g):
    @functools.wraps(g)
    def wrapper(*args, **kwargs):
        return g(*args, **kwargs) * 1.5
    return wrapper

def counted(g):
    @functools.wraps(g)
    def wrapper(x):
        wrapper.calls += 1
        return g(x) + 1
    wrapper.calls = 0
    return wrapper

def scaled(g, x, by=0.5):
    return g(x) * by

@contextlib.contextmanager
def quiet():
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    try:
        yield
    finally:
        torch.set_grad_enabled(before)

class Called:
    def __init__(self, g):
        self.g, self.by = g, 2
    def __call__(self, x):
        return self.g(x) * self.by
    def go(self, x):
        return self.g(x) - self.by

class Holds(nn.Module):
    def __init__(self, g):
        super().__init__()
        self.g = g
    def forward(self, x):
        return self.g(x) + 0.5

def hooked(g, pre=None, after=None, method="register_forward_hook"):
    m = Holds(g)
    if pre is not None:
        m.register_forward_pre_hook(pre)
    if after is not None:
        m.register_forward_hook(after)
    return m
"""

#: what is innermost: `{n}` is its number
LEAVES = (
    "def f{n}(x): return x.sin() * w",
    "def f{n}(x): return lin(x)",
    "def f{n}(x): return x @ W",
    "def f{n}(x): return F.relu(x @ W) + x",
    "def f{n}(x): return x * x.mean()",
    "def f{n}(x): return torch.tanh(lin(x)) * x",
    "def f{n}(x): return torch.softmax(x, -1) * w",
    "def f{n}(x): return x * 2 if torch.is_grad_enabled() else x * 3",
    "def f{n}(x): return x.detach() + w",
    "def f{n}(x): return x.cos() if x.requires_grad else x.sin()",
    "def f{n}(x): return x.clone().mul_(2).add_(w)",
    "f{n} = lin",
    "f{n} = torch.sin",
    "f{n} = nn.Sequential(lin, nn.Tanh())",
    "f{n} = Holds(lin)",
    "f{n} = lambda x: x.exp().clamp(max=2.0)",
    "f{n} = functools.partial(torch.mul, w)",
)
#: a layer around `{g}`; those after `|` need as many dims
LAYERS = (
    "f{n} = torch.func.vmap({g})|2",
    "f{n} = torch.func.vmap({g}, in_dims=1, out_dims=1)|2",
    "f{n} = torch.func.vmap({g}, chunk_size=1)|2",
    "f{n} = torch.func.grad(summed({g}))",
    "f{n} = lambda x: torch.func.grad(aside({g}), has_aux=True)(x)[1]['out']",
    "f{n} = lambda x: torch.func.grad_and_value(summed({g}))(x)[0]",
    "f{n} = pulled({g})",
    "f{n} = pushed({g})",
    "f{n} = columns({g}, torch.func.jacrev)",
    "f{n} = columns({g}, torch.func.jacfwd)",
    "f{n} = torch.func.jacrev(summed({g}))",
    "f{n} = torch.no_grad()({g})",
    "f{n} = torch.enable_grad()({g})",
    "f{n} = torch.inference_mode()({g})",
    "f{n} = torch.autocast('cpu', torch.bfloat16)({g})",
    "f{n} = quiet()({g})",
    "@torch.no_grad()\ndef f{n}(x): return {g}(x) + x",
    "def f{n}(x):\n    with torch.no_grad():\n        y = {g}(x)\n    return y * x",
    "def f{n}(x):\n    with torch.enable_grad():\n        return {g}(x)",
    "def f{n}(x):\n    with torch.inference_mode():\n        return {g}(x)",
    "def f{n}(x):\n    with torch.autocast('cpu', torch.bfloat16): y = {g}(x)\n    return y + x",
    "def f{n}(x):\n    with torch.autocast('cpu', enabled=False):\n        return {g}(x)",
    "f{n} = lambda x: checkpoint({g}, x, use_reentrant=False)",
    "f{n} = functools.partial(checkpoint, {g}, use_reentrant=False)",
    "f{n} = wraps({g})",
    "f{n} = wraps(wraps({g}))",
    "f{n} = counted({g})",
    "f{n} = functools.partial({g})",
    "f{n} = functools.partial(scaled, {g}, by=3)",
    "f{n} = functools.partial(scaled, {g})",
    "f{n} = functools.update_wrapper(lambda x: {g}(x) - x, {g})",
    "f{n} = Called({g})",
    "f{n} = Called({g}).go",
    "f{n} = Called({g}).__call__",
    "class C{n}:\n    by = 2\n    @classmethod\n    def go(cls, x): return {g}(x) * cls.by\n"
    "f{n} = C{n}.go",
    "class C{n}:\n    @staticmethod\n    def go(x): return {g}(x) * 0.5\nf{n} = C{n}().go",
    "class C{n}:\n    go = staticmethod({g})\nf{n} = C{n}().go",
    "class C{n}:\n    by, g = 3, staticmethod({g})\n    go = functools.partialmethod(Called.go)\n"
    "f{n} = C{n}().go",
    "f{n} = Holds({g})",
    "f{n} = Holds({g}).forward",
    "f{n} = nn.Sequential(Holds({g}), nn.Tanh())",
    "f{n} = hooked({g}, pre=lambda m, args: (args[0] * 2,))",
    "f{n} = hooked({g}, after=lambda m, args, out: out * 2)",
    "f{n} = hooked(torch.sin, after=lambda m, args, out: {g}(out))",
    "f{n} = hooked(torch.cos, pre=lambda m, args: {g}(args[0]))",
    "f{n} = torch.compiler.disable({g})",
    "f{n} = torch.compiler.disable(lambda x: {g}(x) * 2)",
    "@torch.compiler.disable(recursive=False)\ndef f{n}(x): return {g}(x) + 1",
    "f{n} = lambda x: {g}({g}(x))",
    "f{n} = lambda x: {g}(x) + f0(x)",
    "def f{n}(x):\n    y = {g}(x)\n    torch._dynamo.graph_break()\n    return y * 2",
    "def f{n}(x):\n    def inner(y): return {g}(y) * x\n    return inner(x)",
    "def f{n}(x, *, g={g}): return g(x) * 2",
    "f{n} = lambda x: torch.func.functional_call(Holds({g}), dict(), (x,))",
    "f{n} = lambda x: (lambda *xs: sum(xs))(*map({g}, (x, x + 1)))",
)  # fmt: skip
SHAPES = ((2, 3, 3), (3, 3), (3,))
#: around the calls
MODES = (
    "contextlib.nullcontext()", "torch.no_grad()", "torch.inference_mode()",
    "torch.autocast('cpu', torch.bfloat16)",
)  # fmt: skip


@dataclass(frozen=True)
class Layer:
    text: str
    backend: str = ""  # of `compile` around it

    def lines(self, n: int) -> str:
        out = self.text.replace("{n}", str(n)).replace("{g}", f"f{n - 1}")
        if self.backend:
            out += f"\nf{n} = compile(f{n}, backend={self.backend!r})"
        return out


@dataclass(frozen=True)
class Call:
    mode: str
    requires_grad: bool
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    seed: int
    layers: tuple[Layer, ...]
    calls: tuple[Call, ...]

    def text(self) -> str:
        body = ["torch.manual_seed(0)", "lin, w = nn.Linear(3, 3), nn.Parameter(torch.randn(3))",
                "W = nn.Parameter(torch.randn(3, 3))"]  # fmt: skip
        for n, layer in enumerate(self.layers):
            body += layer.lines(n).splitlines()
        body.append(f"return f{len(self.layers) - 1}, [w, W, *lin.parameters()]")
        calls = "".join(f"    ({c.mode!r}, {c.requires_grad}, {c.shape}),\n" for c in self.calls)
        return (
            HEAD + "\ndef setup(compile):\n" + "".join(f"    {line}\n" for line in body)
            + f"\nCALLS = [\n{calls}]\n"
        )  # fmt: skip

    def smaller(self) -> Iterator[Program]:
        """Programs with a layer, a `compile` or a mode less."""
        for k in range(len(self.layers) - 1, -1, -1):
            rest = self.layers[:k] + self.layers[k + 1 :]
            if rest and (k or rest[0].text in LEAVES):
                yield replace(self, layers=rest)
        for k, layer in enumerate(self.layers):
            if layer.backend:
                trials = [replace(layer, backend="")]
                trials += [replace(layer, backend="eager")] * (layer.backend != "eager")
                for trial in trials:
                    yield replace(self, layers=(*self.layers[:k], trial, *self.layers[k + 1 :]))
        if self.layers[0].text not in LEAVES[:2]:
            for text in LEAVES[:2]:
                first = replace(self.layers[0], text=text)
                yield replace(self, layers=(first, *self.layers[1:]))
        for k in range(len(self.calls)):
            if len(self.calls) > 1:
                yield replace(self, calls=self.calls[:k] + self.calls[k + 1 :])
        for k, call in enumerate(self.calls):
            if call.mode != MODES[0]:
                plain = replace(call, mode=MODES[0])
                yield replace(self, calls=(*self.calls[:k], plain, *self.calls[k + 1 :]))


def generate(seed: int, most: int = 5) -> Program:
    """A program of one to `most` layers around a function, one of them compiled at least."""
    r = random.Random(seed)
    dims = len(shape := r.choice(SHAPES))
    layers = [Layer(r.choice(LEAVES))]
    below: list[str] = []
    count = r.randrange(1, most + 1)
    for _ in range(count):
        text, _, need = r.choice(LAYERS).partition("|")
        while need and dims - sum("vmap" in t for t in below) < int(need):
            text, _, need = r.choice(LAYERS).partition("|")
        below.append(text)
    layers += [Layer(text) for text in below]
    which = [k for k in range(len(layers)) if r.random() < 0.35] or [r.randrange(len(layers))]
    for k in which:
        layers[k] = replace(layers[k], backend=r.choice(("eager", "eager", "aot_eager")))
    modes = [MODES[0]] * 3 if r.random() < 0.6 else [r.choice(MODES) for _ in range(3)]
    turns = r.choice(((True, True, True), (True, False, True), (False, True, True)))
    grow = r.random() < 0.3
    calls = tuple(
        Call(mode, turn, (shape[0] + k * (grow and dims > 1), *shape[1:]))
        for k, (mode, turn) in enumerate(zip(modes, turns, strict=True))
    )
    return Program(seed, tuple(layers), calls)
