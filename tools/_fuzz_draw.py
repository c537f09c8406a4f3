"""Random calls of public functions, as text: what is printed is what is run.

Owns which functions are called and with what. A `Call` is a target and arguments, each the source
of an expression over the names of `names()`, so that a finding is a line anyone can run. Everything
is drawn from one seeded source. It knows nothing of what makes a call right or wrong.
"""

from __future__ import annotations

import ast
import math
import operator
import random
import types
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import flambeau as torch
from flambeau._ir.types import Param
from flambeau._table import reader
from flambeau._table.model import Op

ROOT = Path(__file__).resolve().parents[1]
DTYPES = (
    "float32 float64 int64 bool uint8 int32 complex64 float16 bfloat16 complex128 int8 int16 "
    "uint16 uint32 uint64"
).split()
SMALL = "0 1 2 3 -1 -2 5 7".split()
EDGES = ("63 64 65 100 -100 2**31-1 2**31 -2**31 2**40 2**62 2**63-1 -2**63 2**64").split()
REALS = "0.0 1.0 -1.0 0.5 2.0 -0.0 1e-8 1e30 -1e30 inf -inf nan 5e-324".split()
#: results that depend on a generator, on uninitialised memory, or on the address or layout
UNSTABLE = (
    "rand empty dropout bernoulli binomial multinomial poisson normal uniform exponential_ "
    "geometric_ cauchy_ resize data_ptr lowrank fractional rrelu gumbel stride contiguous storage "
    "_version is_set_to new_tensor suggest is_same data"
).split()
#: functions that change the process, print, or are not functions of tensors
_APART = (
    "set_ use_ enable seed manual save load compile is_grad inference get_ register_ backward "
    "retain typename memory reset empty_cache import fork init cuda to_dlpack share_ pin_ apply_ "
    "map_ map2_"
).split()
#: products, with the sizes of their arguments: batch, rows, columns, and what is summed over
PRODUCTS = {
    "mm": "rk kc",
    "bmm": "brk bkc",
    "matmul": "rk kc",
    "mv": "rk k",
    "addmm": "rc rk kc",
    "addmv": "r rk k",
    "addbmm": "rc brk bkc",
    "baddbmm": "brc brk bkc",
    "linear": "rk ck c",
}
#: past a tile, past a block, past what one thread packs
_LENGTHS = (1, 2, 5, 17, 64, 108, 129, 200, 300, 1030, 3100)
#: arguments of any type at all
ANYTHING = (
    "None 'x' '' object() [] () {} 3.5 -1 [[1]] 1j torch.float32 [None] b'x' slice(None) torch "
    "range(3) [1,'x'] 2**70 nan True torch.device('cpu') V([2],'float32',3) torch.strided"
).split()


@dataclass
class Target:
    """A function by its text, the entry it comes from if any, and how it changes its arguments."""

    text: str
    name: str
    op: Op | None = None
    form: str = "function"  # function, method, inplace, out


@dataclass
class Call:
    """One call: `target(*args, **kwargs)`; tensors that later arguments refer to are named."""

    target: Target
    args: list[str] = field(default_factory=list)
    kwargs: dict[str, str] = field(default_factory=dict)
    grad: bool = False  # also differentiate the result
    wild: bool = False  # an argument of a type that does not fit was put in

    @property
    def shared(self) -> bool:
        """Do arguments refer to one another?"""
        return any(":=" in a for a in self.args)

    @property
    def text(self) -> str:
        named = [*self.args, *(f"{k}={v}" for k, v in self.kwargs.items())]
        if self.grad:
            return f"G({', '.join([self.target.text, *named])})"
        return f"{self.target.text}({', '.join(named)})"


def values(shape: list[int], dtype: str, seed: int) -> Any:
    """A dense tensor of reproducible values: mostly small numbers, sometimes extremes."""
    r = np.random.default_rng(seed)
    n = math.prod(shape)
    mode = seed % 8
    if mode == 0:
        flat = r.choice([0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e30, 2.0**31, 1e-40], n)
    elif mode <= 3:
        flat = r.integers(0, 4, n).astype(float)
    else:
        flat = r.uniform(-3, 3, n)
    x = torch.from_numpy(flat).reshape(shape)
    if dtype.startswith("complex"):
        x = torch.complex(x, x.flip(0) if shape else x)
    return x.to(getattr(torch, dtype)).clone()


def places(shape: list[int], top: int, seed: int, dtype: str = "int64") -> Any:
    """Indices below `top`, now and then one that is not."""
    r = np.random.default_rng(seed)
    n = math.prod(shape)
    flat = r.integers(0, max(top, 1), n)
    if n and seed % 6 == 0:
        flat[r.integers(0, n)] = r.choice([-1, top, top + 1, -top - 1, 2**62, -(2**62)])
    return torch.from_numpy(flat).reshape(shape).to(getattr(torch, dtype)).clone()


def names() -> dict[str, Any]:
    """What the text of a call may refer to."""
    numbers = {"inf": math.inf, "nan": math.nan}
    items = {"getitem": operator.getitem, "setitem": operator.setitem}
    return {"torch": torch, "V": values, "I": places, **numbers, **items}


def _public(home: Any, prefix: str, skip: set[str]) -> list[Target]:
    kinds = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType)
    out = []
    for name in dir(home):
        if name.startswith("_") or name in skip or any(name.startswith(a) for a in _APART):
            continue
        if isinstance(getattr(home, name), kinds):
            form = "method" if home is torch.Tensor else "function"
            out.append(Target(f"{prefix}.{name}", name, None, form))
    return out


def targets() -> list[Target]:
    """Every public function, method, in-place and out= form, and indexing."""
    out: list[Target] = []
    seen: set[str] = set()
    for op in reader.load(ROOT):
        if op.name.startswith("_"):
            continue
        for space in op.namespaces:
            home: Any = torch
            for part in filter(None, space.split(".")):
                home = getattr(home, part, None)
            if callable(getattr(home, op.name, None)):
                text = ".".join(filter(None, ("torch", space, op.name)))
                out.append(Target(text, op.name, op))
                if op.has_out and not space.startswith("nn"):
                    out.append(Target(text, op.name, op, "out"))
                break
        forms = ((op.name, op.is_method, "method"), (op.name + "_", op.has_inplace, "inplace"))
        for name, wanted, form in forms:
            if wanted and hasattr(torch.Tensor, name):
                form = "inplace" if op.mutates else form
                out.append(Target(f"torch.Tensor.{name}", name, op, form))
        seen |= {op.name, op.name + "_"}
    for prefix in ("torch.Tensor", "torch", "torch.nn.functional", "torch.linalg", "torch.fft"):
        out += _public(eval(prefix, {"torch": torch}), prefix, seen)
    out += [Target("getitem", "getitem")] * 10 + [
        Target("setitem", "setitem", None, "inplace")
    ] * 10
    return out


class Drawer:
    """Draws one call."""

    def __init__(self, seed: str, target: Target) -> None:
        self.r = random.Random(seed)
        self.target = target
        self.wild = False
        self.shapes: list[list[int]] = []  # of the tensors drawn so far, in order
        self.types: list[str] = []
        self.slots: list[int] = []  # argument position of each tensor
        self.shared: set[int] = set()  # arguments that others refer to
        self.fitting: dict[str, list[int]] = {}  # shapes that parameters have to have

    def seed(self) -> int:
        return self.r.randrange(1 << 20)

    def shape(self, rank: int | None = None) -> list[int]:
        r = self.r
        n = r.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5]) if rank is None else rank
        sizes = [0, 1, 1, 2, 2, 3, 3, 4, 5] if r.random() < 0.3 else [1, 2, 2, 3, 3, 4, 5, 8]
        shape = [r.choice(sizes) for _ in range(n)]
        if n and n < 3 and r.random() < 0.15:  # past a vector register, a tile, a thread's share
            shape[r.randrange(n)] = r.choice([17, 31, 33, 64, 65, 127, 257, 1025, 2049])
        return shape

    def product(self, params: Sequence[Param], dims: str) -> dict[str, list[int]]:
        """Shapes that fit a product of any size that takes a moment at most."""
        while True:
            size = {d: self.r.choice(_LENGTHS) for d in "rck"} | {"b": self.r.choice((1, 2, 3))}
            if math.prod(size.values()) <= 1 << 26:
                break
        shapes = [[size[d] for d in word] for word in dims.split()]
        return {p.name: shape for p, shape in zip(params, shapes, strict=False)}

    def tensor(self, slot: int, shape: list[int] | None = None) -> str:
        """The source of a tensor, related to those before it more often than not."""
        r = self.r
        if shape is None:
            shape = self.shape()
            if self.shapes and r.random() < 0.75:
                shape = list(r.choice(self.shapes))
                if r.random() < 0.25:
                    shape = [1 if r.random() < 0.5 else n for n in shape][r.choice([0, 0, 1]) :]
        dtype = r.choice(DTYPES[: r.choice([1, 1, 2, 4, len(DTYPES)])])
        if self.types and r.random() < 0.8:
            dtype = self.types[-1]
        named = [k for k, at in enumerate(self.slots) if at >= 0]
        if named and r.random() < 0.04:  # the same memory again
            k = r.choice(named)
            self.shared.add(self.slots[k])
            self.record(self.shapes[k], self.types[k], slot)
            views = ["", "", ".t()", "[1:]", "[..., :-1]", ".flatten()", "[None]", ".flip(0)"]
            return f"a{self.slots[k]}{r.choice(views)}"
        self.record(shape, dtype, slot)
        return self.strided(shape, dtype)

    def record(self, shape: list[int], dtype: str, slot: int) -> None:
        """What the arguments that follow may take after: a tensor that was drawn."""
        self.shapes.append(shape)
        self.types.append(dtype)
        self.slots.append(slot)

    def strided(self, shape: list[int], dtype: str) -> str:
        r = self.r
        kind = r.choice(
            ["dense", "dense", "dense", "swap", "step", "offset", "expand", "last", "view"]
        )
        if self.target.op and self.target.op.kind in ("view", "pointwise") and r.random() < 0.01:
            huge = [r.choice([2**31, 2**40, 2**58, 3]) for _ in range(r.choice([1, 2]))]
            return f"V([1], {dtype!r}, {self.seed()}).expand({huge})"
        if not shape or kind == "dense":
            return self.dense(shape, dtype)
        a, b = r.randrange(len(shape)), r.randrange(len(shape))
        wide = list(shape)
        if kind == "swap":
            wide[a], wide[b] = wide[b], wide[a]
            return f"{self.dense(wide, dtype)}.transpose({a}, {b})"
        if kind == "expand":
            wide[a] = 1
            return f"{self.dense(wide, dtype)}.expand({shape})"
        if kind == "last" and len(shape) in (4, 5):
            form = "channels_last" if len(shape) == 4 else "channels_last_3d"
            return f"{self.dense(shape, dtype)}.contiguous(memory_format=torch.{form})"
        if kind == "view" and len(shape) == 1 and shape[0] > 1:  # windows that overlap
            n = shape[0]
            return f"{self.dense([n + 2], dtype)}.as_strided([{n}], [1], {r.choice([0, 1, 2])})"
        index = [":"] * len(shape)
        start, step = (1, 2) if kind == "step" else (2, 1)
        wide[a] = 2 * wide[a] + 3
        index[a] = f"{start}:{start + step * shape[a]}:{step}"
        return f"{self.dense(wide, dtype)}[{', '.join(index)}]"

    def dense(self, shape: list[int], dtype: str) -> str:
        return f"V({shape}, {dtype!r}, {self.seed()})"

    def index(self, slot: int) -> str:
        r = self.r
        like = self.shapes[0] if self.shapes else []
        shape = list(like) if r.random() < 0.5 else self.shape(r.choice([0, 1, 1, 2]))
        top = r.choice([*like, 1, 3]) if like else 3
        self.record(shape, "int64", slot)
        dtype = (
            "" if r.random() < 0.85 else f", {r.choice(['int32', 'uint8', 'float32', 'bool'])!r}"
        )
        return f"I({shape}, {top}, {self.seed()}{dtype})"

    def integer(self, name: str = "") -> str:
        r = self.r
        like = self.shapes[0] if self.shapes else []
        if "dim" in name or name in ("axis", "start", "end") and r.random() < 0.5:
            if r.random() < 0.05:
                return r.choice(EDGES)
            return str(
                r.randint(-len(like) - (r.random() < 0.1), max(len(like) - (r.random() < 0.9), 0))
            )
        return r.choice(EDGES) if r.random() < 0.08 else r.choice(SMALL)

    def integers(self, name: str) -> str:
        r = self.r
        like = self.shapes[0] if self.shapes else []
        if name in ("size", "shape", "sizes") and like and r.random() < 0.5:
            shape = list(like)
            r.shuffle(shape)
            if shape and r.random() < 0.4:
                shape[r.randrange(len(shape))] = -1
            return str(shape)
        if "dim" in name and like and r.random() < 0.6:
            return str(r.sample(range(-len(like), 0), r.randint(0, len(like))))
        n = r.choice([0, 1, 1, 2, 2, 3, len(like), 2 * len(like)])
        parts = [self.integer(name) for _ in range(n)]
        return f"[{', '.join(parts)}]"

    def number(self) -> str:
        return self.r.choice([*REALS, *SMALL, *SMALL, *EDGES, "True", "1j", "complex(nan, 1)"])

    def anything(self) -> str:
        """An argument of any type at all."""
        self.wild = True
        return self.r.choice(ANYTHING)

    def option(self) -> str:
        """One of the words that the entry itself speaks of."""
        words = {"mean", "sum", "none", "x", ""}
        if self.target.op:
            constants = (c for c in ast.walk(self.target.op.node) if isinstance(c, ast.Constant))
            words |= {c.value for c in constants if isinstance(c.value, str) and len(c.value) < 14}
        return repr(self.r.choice(sorted(words)))

    def value(self, p: Param, slot: int) -> str:
        """The source of an argument for a declared parameter."""
        t, r = p.type, self.r
        if t.optional and r.random() < 0.45:
            return "None"
        if r.random() < 0.02:
            return self.anything()
        match t.base:
            case "Tensor":
                if t.or_number and r.random() < 0.3:
                    return self.number()
                if "ind" in p.name or p.name in ("target", "batch_sizes", "sorter", "offsets"):
                    return self.index(slot) if r.random() < 0.9 else self.tensor(slot)
                if p.name in ("mask", "condition") and self.shapes and r.random() < 0.8:
                    return f"V({self.shapes[-1]}, 'bool', {self.seed()})"
                return self.tensor(slot, self.fitting.get(p.name))
            case "Tensors" | "OptTensors":
                parts = [self.tensor(-1) for _ in range(r.choice([0, 1, 2, 2, 3]))]
                return f"[{', '.join(parts)}]"
            case "int":
                return self.integer(p.name)
            case "Ints":
                return self.integer(p.name) if r.random() < 0.2 else self.integers(p.name)
            case "Floats":
                return f"[{', '.join(r.choice(REALS) for _ in range(r.choice([0, 1, 2, 3])))}]"
            case "Bools":
                return r.choice(["[]", "[True]", "[False, True]"])
            case "Numbers":
                return f"[{', '.join(self.number() for _ in range(r.choice([0, 1, 2, 3])))}]"
            case "float":
                return r.choice(REALS[: r.choice([5, 5, len(REALS)])])
            case "Number":
                return self.number()
            case "bool":
                return r.choice(["True", "False"])
            case "str":
                return self.option()
            case "DType":
                return f"torch.{r.choice(DTYPES)}"
            case "MemoryFormat":
                return (
                    f"torch.{r.choice(['contiguous_format', 'preserve_format', 'channels_last'])}"
                )
            case "Device":
                return r.choice(["'cpu'", "'cpu:0'", "'cuda'", "'meta'", "'nowhere'", "'cpu:-5'"])
            case "Generator":
                return r.choice(["torch.Generator()", "None"])
            case _:
                return self.anything()

    def subscript(self, slot: int) -> str:
        r = self.r

        def one() -> str:
            kind = r.randrange(9)
            if kind < 2:
                return self.integer("dim") if r.random() < 0.8 else self.integer()
            if kind < 5:
                bounds = [r.choice(["", *SMALL, *SMALL, r.choice(EDGES)]) for _ in range(3)]
                return "slice({}, {}, {})".format(*(b or "None" for b in bounds))
            if kind == 5:
                return r.choice(["None", "...", "True", "False"])
            if kind == 6:
                return f"V({self.shapes[0][: r.choice([1, 1, 2])]}, 'bool', {self.seed()})"
            return self.index(slot) if r.random() < 0.85 else self.anything()

        parts = [one() for _ in range(r.choice([1, 1, 1, 2, 2, 3, 4]))]
        if len(parts) == 1 and r.random() < 0.8:
            return parts[0]
        # The argument is a tuple: none of the tensors in it can be referred to.
        self.slots = [-1 if at == slot else at for at in self.slots]
        return f"({', '.join(parts)},)"

    def loose(self) -> tuple[list[str], dict[str, str]]:
        """Arguments for a function whose parameters are not known."""
        r = self.r
        args = [
            self.tensor(0)
            if self.target.form == "method" or r.random() < 0.8
            else self.integers("size")
        ]
        for k in range(1, 1 + r.choice([0, 0, 1, 1, 1, 2, 3])):
            kind = r.randrange(9)
            dim, size = self.integer("dim"), self.integers("size")
            more = [dim, self.integer(), size, self.number(), self.option(), self.anything()]
            more.append(f"torch.{r.choice(DTYPES)}")
            args.append(
                self.tensor(k) if kind == 7 else self.index(k) if kind == 8 else more[kind % 7]
            )
        self.wild = True
        return args, {}

    def call(self) -> Call:
        """The call of this seed."""
        args: list[str] = []
        kwargs: dict[str, str] = {}
        op, r = self.target.op, self.r
        if self.target.name in ("getitem", "setitem"):
            args = [self.tensor(0, self.shape(r.choice([1, 2, 2, 3, 4, 0]))), self.subscript(1)]
            if self.target.name == "setitem":
                args.append(self.number() if r.random() < 0.4 else self.tensor(2))
            self.wild = True
        elif op is None:
            args, kwargs = self.loose()
        else:
            if op.name in PRODUCTS and r.random() < 0.5:
                self.fitting = self.product(op.params, PRODUCTS[op.name])
            for p in op.params:
                if not p.required and r.random() < 0.5:
                    if r.random() < 0.5:
                        break
                    continue
                by_name = p.kwonly or bool(kwargs) or len(args) < op.params.index(p)
                text = self.value(p, -1 if by_name else len(args))
                if by_name:
                    kwargs[p.name] = text
                else:
                    args.append(text)
        if r.random() < 0.01:
            kwargs["nonsense"] = "1"
        if self.target.form == "out":
            n = 1 if op is None else len(op.outputs)
            outs = [self.tensor(-1) for _ in range(n)]
            kwargs["out"] = outs[0] if n == 1 else f"({', '.join(outs)},)"
        for k in self.shared:
            if k < len(args) and not args[k].startswith("["):
                args[k] = f"(a{k} := {args[k]})"
        return Call(
            self.target, args, kwargs, r.random() < 0.15 and self.target.form != "out", self.wild
        )
