"""Calls of the table's entries as functions of tensors alone: those of the documented examples, and
for pointwise entries calls with values at the edges, in every dtype.

A sample is text, so that capture meets what a user would have written.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import flambeau as torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "ops"))
from example_calls import calls, compares  # noqa: E402
from table_cases import TABLE, allowed, array, public  # noqa: E402
from table_cases import resolve as public_function  # noqa: E402

DTYPES = {
    "b": ["bool"], "i": ["int64", "int32", "int8", "uint8"],
    "f": ["float32", "float64", "bfloat16", "float16"], "c": ["complex64", "complex128"],
}  # fmt: skip
#: entries whose results are memory as it was found, or addresses
UNSET = ("empty", "data_ptr", "resize", "new_tensor", "set_", "record_stream")


@dataclass
class Sample:
    """`def f(t0, t1): return text`, with names for what is no tensor, and example tensors."""

    uid: str
    text: str
    names: dict[str, Any]
    tensors: list[Any]

    @property
    def function(self) -> Any:
        names = ", ".join(f"t{i}" for i in range(len(self.tensors)))
        space = {"torch": torch, "F": torch.nn.functional, **self.names}
        code = f"def f({names}):\n    return {self.text}\n"
        exec(compile(code, f"<{self.uid}: {self.text}>", "exec"), space)
        return space["f"]

    def larger(self) -> list[Any] | None:
        """The tensors with twice the rows, if each has rows, in the same layout."""
        if not all(t.dim() and t.shape[0] > 1 and t.is_contiguous() for t in self.tensors):
            return None
        return [torch.cat([t, t]) for t in self.tensors]


class _Writer:
    """Arguments as text; tensors become parameters."""

    def __init__(self) -> None:
        self.tensors: list[Any] = []
        self.names: dict[str, Any] = {}

    def text(self, x: Any) -> str:
        if isinstance(x, torch.Tensor):
            self.tensors.append(x.detach())
            return f"t{len(self.tensors) - 1}"
        if type(x) in (list, tuple):
            parts = ", ".join(map(self.text, x))
            return f"[{parts}]" if type(x) is list else f"({parts}{',' * (len(x) == 1)})"
        if isinstance(x, (int, str, bool, type(None))):
            return repr(x)
        name = f"c{len(self.names)}"
        self.names[name] = x
        return name


def documented(op: Any) -> list[Sample]:
    """Of the calls in the entry's example."""
    out = []
    for function, args, kwargs in calls(op):
        w = _Writer()
        parts = [w.text(a) for a in args] + [f"{k}={w.text(v)}" for k, v in kwargs.items()]
        name = getattr(function, "__name__", "")
        if name == "<lambda>" and parts and parts[0] == "t0":  # a method of its first argument
            method = _method(function)
            text = f"t0.{method}({', '.join(parts[1:])})"
        else:
            w.names["function"] = function
            text = f"function({', '.join(parts)})"
        if w.tensors:
            out.append(Sample(op.uid, text, w.names, w.tensors))
    return out


def _method(function: Any) -> str:
    cells = [c.cell_contents for c in function.__closure__]
    return str(next(c for c in cells if isinstance(c, str)))


def _edges(dtype: str) -> Any:
    kind = getattr(torch, dtype)
    if kind.is_complex:
        return torch.tensor([0j, 1 + 2j, -1 - 0.5j, 2.5 + 0j], dtype=kind)
    if kind.is_floating_point:
        values = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.7, float("inf"), -float("inf"), float("nan")]
        return torch.tensor(values, dtype=kind)
    if dtype == "bool":
        return torch.tensor([True, False])
    info = torch.iinfo(kind)
    return torch.tensor([0, 1, 2, 5, info.max, info.min, info.max - 1, info.min + 1], dtype=kind)


def edges(op: Any) -> list[Sample]:
    """A pointwise entry over ordinary values and those at the edges, for each dtype that it takes.

    Operands are broadcast against each other, so that every pair of edges meets.
    """
    if op.kind != "pointwise" or op.overload or public(op) is None:
        return []
    required = [p for p in op.params if p.required]
    if not required or any(p.type.base != "Tensor" or p.type.optional for p in required):
        return []
    dtypes = [d for k, ds in DTYPES.items() if k in allowed(op) for d in ds]
    names = {"function": public_function(public(op))}
    n = len(required)

    def sample(groups: list[list[Any]]) -> Sample:
        given = [", ".join(f"t{i}" for i in range(k * n, k * n + n)) for k in range(len(groups))]
        text = f"({', '.join(f'function({g})' for g in given)},)"
        return Sample(op.uid, text, names, [x for g in groups for x in g])

    at_edges = [[_edges(d).reshape(-1, *[1] * i) for i in range(n)] for d in dtypes]
    main = "float32" if "float32" in dtypes else dtypes[0]
    plain = [torch.from_numpy(array(op, (3, 4), main, i)) for i in range(n)]
    return [sample(at_edges), sample([plain]), sample([[x.t() for x in plain]])]


def entries() -> list[Any]:
    """Entries that have samples whose values follow from their arguments."""
    return [
        op for op in TABLE
        if ">>>" in op.doc and compares(op) and not any(op.name.startswith(u) for u in UNSET)
    ]  # fmt: skip


def samples(op: Any) -> list[Sample]:
    return [*documented(op), *edges(op)]
