"""What the suites of this folder share: the table, read as the build reads it, and inputs made for
an entry from its signature alone. Knows no operation by name but in `DOMAINS`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import flambeau as torch
from flambeau._table import reader

ROOT = Path(__file__).resolve().parents[2]
TABLE = reader.load(ROOT)

#: where the real line is not a function's domain: (low, high) for its inputs
DOMAINS = {
    "acos": (-0.9, 0.9), "asin": (-0.9, 0.9), "atanh": (-0.9, 0.9), "acosh": (1.1, 3),
    "log": (0.1, 3),
    "log2": (0.1, 3), "log10": (0.1, 3), "log1p": (-0.5, 3), "sqrt": (0.1, 3), "rsqrt": (0.1, 3),
    "logit": (0.1, 0.9), "erfinv": (-0.9, 0.9), "lgamma": (0.3, 4), "digamma": (0.3, 4),
    "reciprocal": (0.3, 2), "ndtri": (0.1, 0.9), "xlogy": (0.2, 3), "xlog1py": (0.2, 3),
    "pow": (0.2, 2),
    "float_power": (0.2, 2), "mvlgamma": (3, 5), "polygamma": (0.5, 3), "zeta": (1.5, 4),
    "special_entr": (0.2, 2), "entr": (0.2, 2), "tan": (-1, 1), "igamma": (0.5, 3),
    "igammac": (0.5, 3),
}  # fmt: skip


def public(op) -> str | None:
    """Dotted name below the package of an entry's function, if it has one."""
    for space in op.namespaces:
        return f"{space}.{op.name}" if space else op.name
    return None


def resolve(name: str):
    thing = torch
    for part in name.split("."):
        thing = getattr(thing, part)
    return thing


def pointwise_tensor_ops():
    """Public pointwise entries whose required parameters are tensors alone."""
    for op in TABLE:
        if op.kind != "pointwise" or op.overload or public(op) is None:
            continue
        required = [p for p in op.params if p.required]
        if required and all(p.type.base == "Tensor" and not p.type.optional for p in required):
            yield op


def required_tensors(op) -> int:
    return sum(p.required for p in op.params)


def allowed(op) -> str:
    """Letters of the dtypes that a pointwise entry takes."""
    default = {"first": "bifc", "real": "bifc"}.get(str(op.option("promote", "same")), "bifc")
    return str(op.option("dtypes", default))


def array(op, shape, dtype, place=0) -> np.ndarray:
    """Numbers of the entry's domain for the parameter at that place; truths for a condition."""
    rng = np.random.default_rng(place)
    low, high = DOMAINS.get(op.name, (-2, 2))
    if dtype == "bool" or op.params[place].name in op.option("conditions", ()):
        return rng.integers(0, 2, shape).astype(bool)
    if "int" in dtype:
        return rng.integers(1, 5, shape).astype(dtype)
    if "complex" in dtype:
        return (rng.uniform(low, high, shape) + 1j * rng.uniform(-1, 1, shape)).astype(dtype)
    return rng.uniform(low, high, shape).astype(dtype)
