"""The derivatives in flambeau/ops/scalar.py against central differences of the functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special as sp

from flambeau._ir.scalars import Scalar, walk
from flambeau._table.scalar_diff import cotangents, tangents
from flambeau._table.scalar_expr import Graph
from flambeau.ops.scalar import PRIMITIVES

FUNCTIONS = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "neg": lambda x: -x, "reciprocal": lambda x: 1 / x,
    "square": lambda x: x * x, "floor_divide": lambda a, b: a // b, "remainder": lambda a, b: a % b,
    "fmod": math.fmod, "pow": lambda a, b: a**b, "maximum": max, "minimum": min, "fmax": max,
    "fmin": min, "copysign": math.copysign, "hypot": math.hypot, "atan2": math.atan2,
    "ldexp": lambda a, b: a * 2.0**b, "logaddexp": np.logaddexp, "logaddexp2": np.logaddexp2,
    "xlogy": sp.xlogy, "xlog1py": sp.xlog1py, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b, "logical_and": lambda a, b: a and b,
    "logical_or": lambda a, b: a or b, "logical_not": lambda x: not x, "isnan": math.isnan,
    "signbit": lambda x: math.copysign(1, x) < 0, "where": lambda c, a, b: a if c else b,
    "abs": abs, "sign": np.sign, "sgn": np.sign, "floor": math.floor, "trunc": math.trunc,
    "real": lambda x: x, "conj": lambda x: x, "exp": math.exp, "exp2": lambda x: 2.0**x,
    "expm1": math.expm1, "log": math.log, "log2": math.log2, "log10": math.log10,
    "log1p": math.log1p, "sqrt": math.sqrt, "rsqrt": lambda x: 1 / math.sqrt(x),
    "sigmoid": sp.expit, "logsigmoid": sp.log_expit, "sin": math.sin, "cos": math.cos,
    "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan, "sinh": math.sinh,
    "cosh": math.cosh, "tanh": math.tanh, "asinh": math.asinh, "acosh": math.acosh,
    "atanh": math.atanh, "sinc": np.sinc, "erf": math.erf, "erfc": math.erfc, "erfcx": sp.erfcx,
    "erfinv": sp.erfinv, "ndtr": sp.ndtr, "ndtri": sp.ndtri, "log_ndtr": sp.log_ndtr,
    "lgamma": math.lgamma, "digamma": sp.digamma, "zeta": sp.zeta,
    "polygamma": lambda n, x: float(sp.polygamma(int(n), x)), "igamma": sp.gammainc,
    "igammac": sp.gammaincc, "i0": sp.i0, "i0e": sp.i0e, "i1": sp.i1, "i1e": sp.i1e,
    "entr": sp.entr, "inf": lambda x: math.inf, "nan": lambda x: math.nan,
}  # fmt: skip

#: where the function is smooth, other than around 0.7 and 0.4
POINTS = {"acosh": (1.7,), "zeta": (2.5, 1.3), "polygamma": (2.0, 1.3), "igamma": (1.3, 0.9),
          "igammac": (1.3, 0.9), "where": (1.0, 0.7, 0.4), "fmod": (2.3, 0.7),
          "remainder": (-2.3, 0.7)}  # fmt: skip
COMPLEX_ONLY = {"angle", "imag", "complex"}
SMOOTH = [p.name for p in PRIMITIVES.values() if p.smooth and p.name not in COMPLEX_ONLY]


#: derivatives that nobody has a formula for: (function, argument)
UNDERIVABLE = {("zeta", 0), ("igamma", 0), ("igammac", 0)}


def evaluate(node: Scalar, values: dict[str, float]) -> float:
    """The value of a graph."""
    done: dict[int, float] = {}
    for n in walk([node]):
        if n.op == "const":
            done[id(n)] = n.value  # type: ignore[assignment]
        elif n.args:
            done[id(n)] = FUNCTIONS[n.op](*(done[id(a)] for a in n.args))
        else:
            done[id(n)] = values[str(n.value)]
    return done[id(node)]


def point(name: str) -> tuple[float, ...]:
    return POINTS.get(name, (0.7, 0.4)[: len(PRIMITIVES[name].args)])


def difference(name: str, at: tuple[float, ...], i: int) -> float:
    h = 1e-6
    up, down = list(at), list(at)
    up[i] += h
    down[i] -= h
    f = FUNCTIONS[name]
    return (f(*up) - f(*down)) / (2 * h)


@pytest.mark.parametrize("name", SMOOTH)
def test_cotangents_are_differences(name):
    g = Graph(PRIMITIVES)
    args = PRIMITIVES[name].args
    inputs = [g.input(a, "real") for a in args]
    out = g.call(name, *inputs)
    found = cotangents(g, [out], [g.input("g", "real")], inputs)
    at = point(name)
    values = dict(zip(args, at, strict=True))
    assert any(c is not None for c in found)
    for i, c in enumerate(found):
        unknown = c is not None and any(n.op == "underivable" for n in walk([c]))
        assert unknown == ((name, i) in UNDERIVABLE)
        if c is not None and not unknown:
            want = 1.5 * difference(name, at, i)
            assert evaluate(c, {**values, "g": 1.5}) == pytest.approx(want, rel=2e-6, abs=1e-8)


@pytest.mark.parametrize("name", SMOOTH)
def test_tangents_are_differences(name):
    g = Graph(PRIMITIVES)
    args = PRIMITIVES[name].args
    inputs = [g.input(a, "real") for a in args]
    out = g.call(name, *inputs)
    wanted = cotangents(g, [out], [g.input("g", "real")], inputs)
    moving = [i for i, c in enumerate(wanted) if c is not None and (name, i) not in UNDERIVABLE]
    given = {id(inputs[i]): g.input(f"{args[i]}_t", "real") for i in moving}
    (t,) = tangents(g, [out], given)
    at = point(name)
    values = dict(zip(args, at, strict=True)) | {f"{args[i]}_t": 1.0 + i for i in moving}
    want = sum((1.0 + i) * difference(name, at, i) for i in moving)
    assert t is not None
    assert evaluate(t, values) == pytest.approx(want, rel=2e-6, abs=1e-8)


def test_equal_expressions_are_one_node():
    g = Graph(PRIMITIVES)
    x = g.input("x", "real")
    assert g.call("mul", x, g.const(2)) is g.call("mul", g.const(2), x)
    assert g.call("neg", g.call("neg", x)) is x
    assert g.call("add", x, g.const(0)) is x
    assert g.call("conj", x) is x


def test_second_derivative_of_tanh():
    g = Graph(PRIMITIVES)
    x, seed = g.input("x", "real"), g.input("g", "real")
    (first,) = cotangents(g, [g.call("tanh", x)], [seed], [x])
    assert first is not None
    (second,) = cotangents(g, [first], [seed], [x])
    assert second is not None
    y = math.tanh(0.3)
    assert evaluate(second, {"x": 0.3, "g": 1.0}) == pytest.approx(-2 * y * (1 - y * y))
