"""One nest for each primitive and type, by hand, over special and ordinary values."""

from __future__ import annotations

from typing import Any

import numpy as np

import flambeau as torch
from flambeau._compiler.nest import Nest, Stage, Store, variable
from flambeau._compiler.scalar import MEMORY, REGISTER, Body
from flambeau._compiler.triton_scalar import rule
from flambeau.ops.scalar import PRIMITIVES

TYPES = {
    "float": torch.float32, "double": torch.float64, "int64_t": torch.int64,
    "uint64_t": torch.uint64, "bool": torch.bool,
}  # fmt: skip
_REAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 3.0, -3.0, 1e-3, 7.25, -7.25, 20.0, -20.0,
         float("inf"), float("-inf"), float("nan"), 0.9, -0.1, 1.5]  # fmt: skip
_WHOLE = [0, 1, -1, 2, -2, 3, 7, -7, 10, 62, 63, 64, 100, -100, 2**40 + 3, -(2**63), 2**63 - 1]
#: primitives that are no operations
_NONE = ("inf", "nan", "imag")
_NONE_OF_BOOL = ("sub", "neg", "floor", "ceil", "trunc", "round")
#: what a kernel may not be asked: division by zero raises where there is no GPU
_NONZERO = ("floor_divide", "trunc_divide", "remainder", "fmod")


def pairs(op: str, type: str) -> tuple[list[Any], list[Any]]:
    """Values of two arguments, each with each."""
    most = 2**64 if PRIMITIVES[op].signed else 2**50  # else eager takes the type for a signed one
    unsigned = [abs(v) for v in _WHOLE if abs(v) < most]
    known = {"bool": [False, True], "uint64_t": unsigned, "int64_t": _WHOLE}
    values = known.get(type, _REAL)
    second = (
        [v for v in values if v] if op in _NONZERO and type in ("int64_t", "uint64_t") else values
    )
    both = [(a, b) for a in values for b in second]
    return [a for a, _ in both], [b for _, b in both]


def cases() -> list[tuple[str, str]]:
    """Primitives and the types that they are computed in."""
    out = []
    for p in PRIMITIVES.values():
        for type in TYPES:
            operation = p.name not in _NONE and not (type == "bool" and p.name in _NONE_OF_BOOL)
            if rule(p.name, type) and operation:
                out.append((p.name, type))
    return out


def result_type(op: str, type: str) -> str:
    return "bool" if PRIMITIVES[op].kind == "bool" else type


def nest(op: str, type: str, count: int, first: int) -> Nest:
    """Buffers first, first + 1 (the arguments), first + 2 (the result)."""
    body, dtype = Body(), TYPES[type]
    a, b = (body.load(f"b{first + i}", variable(0), dtype) for i in (0, 1))
    args: list[Any] = [a, b][: len(PRIMITIVES[op].args)]
    if op == "where":
        args = [body.make("gt", "bool", (a, b)), a, b]
    made = result_type(op, type)
    value = body.make(op, made, args)
    store = Store(f"b{first + 2}", variable(0), value, MEMORY[TYPES[made]])
    return Nest((count,), frozenset(), [Stage("full", [store])])


def together(type: str) -> Nest:
    """All primitives of a type as one nest, whose statements share nothing."""
    nests = [nest(op, t, 64, 3 * i) for i, (op, t) in enumerate(cases()) if t == type]
    stores = [s for n in nests for s in n.statements]
    return Nest((64,), frozenset(), [Stage("full", stores)])


def everything() -> tuple[list[Nest], list[Any]]:
    """A nest for each case, and the buffers of all: argument, argument, zeros."""
    nests, buffers = [], []
    for op, type in cases():
        a, b = pairs(op, type)
        nests.append(nest(op, type, len(a), len(buffers)))
        dtype = TYPES[type]
        assert REGISTER[dtype] == type
        buffers += [torch.tensor(a, dtype=dtype), torch.tensor(b, dtype=dtype)]
        buffers.append(torch.zeros(len(a), dtype=TYPES[result_type(op, type)]))
    return nests, buffers


#: primitives that are no operation of that name and form
_FORMS = {
    "trunc_divide": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "where": lambda a, b: torch.where(a > b, a, b),
    "logsigmoid": torch.nn.functional.logsigmoid,
}


def eager(op: str, type: str, a: Any, b: Any) -> Any:
    """What the operation of a primitive gives."""
    found = _FORMS.get(op) or getattr(torch, op, None) or getattr(torch.special, op)
    args = (a, b) if op == "where" else (a, b)[: len(PRIMITIVES[op].args)]
    return found(*args).to(TYPES[result_type(op, type)])


def differences(op: str, type: str, ours: Any, theirs: Any) -> Any:
    """Positions at which two results are not the same, signs of zeros included."""
    ours, theirs = ours.numpy(), theirs.numpy()
    if ours.dtype.kind != "f":
        return np.flatnonzero(ours != theirs)
    tolerance = 2e-6 if type == "float" else 1e-12
    near = np.isclose(ours, theirs, rtol=tolerance, atol=tolerance / 10, equal_nan=True)
    zeros = (ours == 0) & (theirs == 0) & (op != "expm1")  # eager's is a known failure
    signs = ~zeros | (np.signbit(ours) == np.signbit(theirs))
    return np.flatnonzero(~(near & signs))
