"""Random calls of public operations: `python -m tools.fuzz --calls 200000 --seed 1`.

Each call draws an operation of the table, arguments of the declared types (shapes, strides, dtypes,
numbers at the edges) and now and then wrong ones. It must raise one of the documented exception
classes or give a right result: a call on strided inputs must agree with the same call on dense
copies. Run under the sanitizers (`make asan`) it also finds reads and writes out of bounds. The
seed is printed; `--only OP` and `--call N` narrow down.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import flambeau as torch
from flambeau._build import table
from flambeau._build.model import Op
from flambeau._ir.types import Param

REFUSALS = (
    RuntimeError,
    TypeError,
    ValueError,
    IndexError,
    NotImplementedError,
    ZeroDivisionError,
    OverflowError,
)
DTYPES = [
    "float32",
    "float64",
    "int64",
    "bool",
    "uint8",
    "int32",
    "float16",
    "bfloat16",
    "complex64",
    "complex128",
    "int8",
    "int16",
]
INTS = [0, 1, 2, 3, -1, -2, 5, 7, 63, 64, 100, -100, 2**31, -(2**31), 2**63 - 1, -(2**63)]
FLOATS = [0.0, 1.0, -1.0, 0.5, 2.0, 1e-8, 1e30, -1e30, float("inf"), float("-inf"), float("nan")]
#: results depend on a generator, on uninitialised memory or on addresses
UNSTABLE = (
    "rand", "empty", "dropout", "bernoulli", "multinomial", "poisson", "normal", "uniform_",
    "exponential_", "geometric_", "cauchy_", "random_", "new_empty", "data_ptr", "svd_lowrank",
    "fractional",
)  # fmt: skip


class Draw:
    """Arguments drawn from one seeded source."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)

    def shape(self, rank: int | None = None) -> list[int]:
        n = self.r.choice([0, 1, 1, 2, 2, 2, 3, 3, 4, 5]) if rank is None else rank
        return [self.r.choice([0, 1, 1, 2, 2, 3, 3, 4, 5, 8]) for _ in range(n)]

    def tensor(self, like: Any = None) -> Any:
        shape = self.shape() if like is None or self.r.random() < 0.2 else list(like.shape)
        if like is not None and self.r.random() < 0.2:
            shape = [1 if self.r.random() < 0.5 else n for n in shape][self.r.choice([0, 0, 1]) :]
        name = self.r.choice(DTYPES[: self.r.choice([1, 2, 4, len(DTYPES)])])
        if like is not None and self.r.random() < 0.7:
            name = str(like.dtype).split(".")[-1]
        return self.strided(shape, getattr(torch, name))

    def strided(self, shape: list[int], dtype: Any) -> Any:
        kind = self.r.choice(["dense", "dense", "transposed", "step", "offset", "expanded"])
        if not shape or kind == "dense":
            return self.values(shape, dtype)
        if kind == "transposed":
            a, b = self.r.randrange(len(shape)), self.r.randrange(len(shape))
            shape = list(shape)
            shape[a], shape[b] = shape[b], shape[a]
            return self.values(shape, dtype).transpose(a, b)
        d = self.r.randrange(len(shape))
        if kind == "expanded":
            one = list(shape)
            one[d] = 1
            return self.values(one, dtype).expand(shape)
        wide = list(shape)
        wide[d] = 2 * wide[d] + 3
        start, step = (1, 2) if kind == "step" else (2, 1)
        index = [slice(None)] * len(shape)
        index[d] = slice(start, start + step * shape[d], step)
        return self.values(wide, dtype)[tuple(index)]

    def values(self, shape: list[int], dtype: Any) -> Any:
        n = 1
        for s in shape:
            n *= s
        mode = self.r.random()
        if mode < 0.05:
            flat = [self.r.choice(FLOATS) for _ in range(n)]
        elif mode < 0.4:
            flat = [float(self.r.randint(0, 3)) for _ in range(n)]
        else:
            flat = [self.r.uniform(-3, 3) for _ in range(n)]
        return torch.tensor(flat, dtype=torch.float64).to(dtype).reshape(shape)

    def index(self, like: Any) -> Any:
        shape = self.shape(self.r.choice([1, 1, 2, like.dim() if like is not None else 1]))
        top = max([*(list(like.shape) if like is not None else []), 1])
        flat = [
            self.r.randint(-1 if self.r.random() < 0.1 else 0, top) for _ in range(_product(shape))
        ]
        return torch.tensor(flat, dtype=torch.int64).reshape(shape)

    def value(self, p: Param, like: Any) -> Any:
        t = p.type
        if t.optional and self.r.random() < 0.5:
            return None
        if self.r.random() < 0.03:
            return self.r.choice([None, "x", object(), [], 3.5, -1, [[1]], 1j])
        if t.base == "Tensor":
            if t.or_number and self.r.random() < 0.3:
                return self.number()
            if "ind" in p.name or p.name in ("target", "batch_sizes"):
                return self.index(like)
            return self.tensor(like)
        if t.base in ("Tensors", "OptTensors"):
            return [self.tensor(like) for _ in range(self.r.choice([0, 1, 2, 2, 3]))]
        if t.base == "int":
            if "dim" in p.name and like is not None:
                return self.r.randint(-like.dim() - 1, like.dim())
            return self.r.choice(INTS[: self.r.choice([4, 8, len(INTS)])])
        if t.base in ("Ints", "Floats", "Bools", "Numbers"):
            n = self.r.choice([0, 1, 2, 2, 3, like.dim() if like is not None else 1])
            pick = {
                "Ints": lambda: self.r.choice(INTS[: self.r.choice([4, 8, 8, len(INTS)])]),
                "Floats": lambda: self.r.choice(FLOATS),
                "Bools": lambda: self.r.random() < 0.5,
                "Numbers": self.number,
            }[t.base]
            return [pick() for _ in range(n)]
        if t.base == "float":
            return self.r.choice(FLOATS[: self.r.choice([5, len(FLOATS)])])
        if t.base == "Number":
            return self.number()
        if t.base == "bool":
            return self.r.random() < 0.5
        if t.base == "str":
            return self.r.choice(
                ["mean", "sum", "none", "floor", "trunc", "tanh", "fro", "nearest", "x", ""]
            )
        if t.base == "DType":
            return getattr(torch, self.r.choice(DTYPES))
        return None

    def number(self) -> Any:
        return self.r.choice([*FLOATS, *INTS[:8], True, 1j])


def _product(shape: list[int]) -> int:
    n = 1
    for s in shape:
        n *= s
    return n


def targets() -> list[tuple[Op, Any]]:
    """Every function that an entry gives to users, and its in-place form as a method."""
    out = []
    for op in table.load(Path(__file__).resolve().parents[1]):
        for space in op.namespaces:
            home: Any = torch
            for part in filter(None, space.split(".")):
                home = getattr(home, part, None)
            f = getattr(home, op.name, None)
            if callable(f):
                out.append((op, f))
                break
        if op.is_method and hasattr(torch.Tensor, op.name):
            out.append((op, getattr(torch.Tensor, op.name)))
        if op.has_inplace and hasattr(torch.Tensor, op.name + "_"):
            out.append((op, getattr(torch.Tensor, op.name + "_")))
    return out


def arguments(d: Draw, op: Op) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    like = None
    for p in op.params:
        if not p.required and d.r.random() < 0.6:
            break
        value = d.value(p, like)
        if like is None and isinstance(value, torch.Tensor):
            like = value
        if p.kwonly:
            kwargs[p.name] = value
        else:
            args.append(value)
    if d.r.random() < 0.02:
        kwargs["nonsense"] = 1
    return args, kwargs


def too_large(args: list[Any], kwargs: dict[str, Any]) -> bool:
    """Sizes that would only try to use up the machine's memory: not what is tested here."""
    n = 1.0
    for a in [*args, *kwargs.values()]:
        for x in a if isinstance(a, list) else [a]:
            if isinstance(x, int) and not isinstance(x, bool) and 64 < abs(x) < 2**40:
                n *= abs(x)
    return n > 1e6


def dense(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return x.clone(memory_format=torch.contiguous_format)
    return [dense(v) for v in x] if isinstance(x, list) else x


def differ(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        if a.shape != b.shape or a.dtype != b.dtype:
            return True
        wide = torch.complex128 if a.is_complex() else torch.float64
        return not torch.allclose(a.to(wide), b.to(wide), rtol=1e-2, atol=1e-2, equal_nan=True)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) != len(b) or any(differ(x, y) for x, y in zip(a, b, strict=True))
    return False


def one(op: Op, f: Any, seed: int) -> str | None:
    """Makes the call of a seed; the finding, if there is one."""
    args, kwargs = arguments(Draw(seed), op)
    if too_large(args, kwargs):
        return None
    plain = dense(args), {k: dense(v) for k, v in kwargs.items()}
    try:
        got = f(*args, **kwargs)
    except REFUSALS:
        return None
    except MemoryError:
        return None
    if any(u in op.name for u in UNSTABLE):
        return None
    try:
        want = f(*plain[0], **plain[1])
    except REFUSALS as e:
        if op.kind in ("view", "composite") or op.mutates:
            return None  # views exist for some strides and not for others
        return f"strided inputs gave a result, dense ones {type(e).__name__}: {e}"
    return "strided and dense inputs disagree" if differ(got, want) else None


def main() -> int:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--calls", type=int, default=20000)
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("--only", help="operations of this name alone")
    p.add_argument("--call", type=int, help="this call of the seed alone")
    p.add_argument("--trace", action="store_true", help="print each call before it is made")
    a = p.parse_args()
    print(f"seed {a.seed}", flush=True)
    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    pool = [t for t in targets() if a.only in (None, t[0].name)]
    findings = 0
    for i in range(a.calls) if a.call is None else [a.call]:
        op, f = pool[random.Random(f"{a.seed}/{i}").randrange(len(pool))]
        if a.trace:
            print(i, op.uid, flush=True)
        try:
            found = one(op, f, hash((a.seed, i)) & 0xFFFFFFFF)
        except BaseException as e:  # anything that is not a documented refusal
            found = f"{type(e).__name__}: {e}"
            if isinstance(e, KeyboardInterrupt):
                raise
        if found:
            findings += 1
            print(f"call {i} {op.uid}: {found}", flush=True)
    print(f"{a.calls} calls of {len(pool)} functions, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
