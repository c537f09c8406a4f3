"""Symbolic integers against plain ints: values, normal form, bounds, and soundness of guards."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import flambeau
from flambeau._ir import symexpr
from flambeau._ir.symbols import Guard, Origin, ShapeEnv, UnbackedError
from flambeau._ir.symscalar import SymFloat, SymInt, sym_max, sym_min

LEAVES = st.one_of(st.integers(-6, 12), st.sampled_from(["a", "b", "c"]))
BINARY = ["+", "-", "*", "//", "%", "min", "max"]
TREES = st.recursive(
    LEAVES, lambda t: st.tuples(st.sampled_from(BINARY), t, t), max_leaves=9
)  # fmt: skip
VALUES = st.tuples(*[st.integers(-9, 30)] * 3)
SIZES = st.tuples(*[st.integers(2, 20)] * 3)

PLAIN = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y,
    "//": lambda x, y: x // y, "%": lambda x, y: x % y, "min": min, "max": max,
}  # fmt: skip
SYMBOLIC = {**PLAIN, "min": sym_min, "max": sym_max}
EXPRS = {**PLAIN, "min": symexpr.minimum, "max": symexpr.maximum}


def build(tree, leaf, operations):
    if not isinstance(tree, tuple):
        return leaf(tree)
    name, left, right = tree
    return operations[name](build(left, leaf, operations), build(right, leaf, operations))


def plain(tree, values):
    return build(tree, lambda x: values[x] if isinstance(x, str) else x, PLAIN)


def as_expr(tree):
    return build(
        tree, lambda x: symexpr.symbol(x) if isinstance(x, str) else symexpr.expr(x), EXPRS
    )


@settings(max_examples=600, deadline=None)
@given(TREES, VALUES)
def test_expressions_have_the_values_of_plain_ints(tree, values):
    named = dict(zip("abc", values, strict=True))
    try:
        wanted = plain(tree, named)
        e = as_expr(tree)
    except ZeroDivisionError:
        assume(False)
    assert e.evaluate(named) == wanted


@settings(max_examples=400, deadline=None)
@given(TREES)
def test_estimates_always_exist(tree):
    try:
        found = as_expr(tree)
    except ZeroDivisionError:
        assume(False)
    assert math.isfinite(found.estimate(1 << 20))


def test_estimates_of_nested_divisions_keep_the_order_of_strides():
    a, b, c, d = map(symexpr.symbol, "abcd")
    few = a // (b // (c * d))
    with pytest.raises(ZeroDivisionError):
        few.evaluate(dict.fromkeys("abcd", 1 << 20))
    assert few.estimate(1 << 20) < (a * few).estimate(1 << 20)
    assert (3 * a * b + 7).estimate(10) == 307


def test_sizes_divided_by_sizes_compile():
    def f(x, w):
        d = x.shape[0] // (w.shape[0] * w.shape[1])
        y = x[:, : x.shape[1] // d] * 2
        return y.transpose(0, 1).reshape(-1) + 1

    x, w = flambeau.arange(240.0).reshape(24, 10), flambeau.ones(2, 3)
    wanted = (np.arange(240.0).reshape(24, 10)[:, :2] * 2).T.reshape(-1) + 1
    got = flambeau.compile(f, dynamic=True, fullgraph=True)(x, w)
    np.testing.assert_array_equal(got.numpy(), wanted.astype(np.float32))


@settings(max_examples=400, deadline=None)
@given(TREES)
def test_text_parses_back(tree):
    try:
        e = as_expr(tree)
    except ZeroDivisionError:
        assume(False)
    assert symexpr.parse(e.text) == e


@settings(max_examples=400, deadline=None)
@given(TREES, SIZES)
def test_bounds_hold(tree, values):
    env = ShapeEnv()
    hints = dict(zip("abc", values, strict=True))
    symbols = {}
    for name in "abc":
        symbols[name] = env.symbol(7)
    try:
        wanted = plain(tree, hints)
        x = build(tree, lambda y: symbols[y] if isinstance(y, str) else y, SYMBOLIC)
    except ZeroDivisionError:
        assume(False)
    named = {symbols[k].expr.text: v for k, v in hints.items()}
    assume(all(g.holds(named) for g in env.guards))
    if isinstance(x, SymInt):
        low, high = env.bounds(x.expr)
        assert low <= wanted <= high
    else:
        assert x == wanted


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(TREES, TREES, st.sampled_from(["<", "<=", "==", "!="])), max_size=4),
       SIZES, SIZES)  # fmt: skip
def test_decisions_hold_wherever_the_guards_do(comparisons, hints, others):
    """Soundness: sizes that pass all guards get the same answers as the hints got."""
    relations = {
        "<": lambda x, y: x < y, "<=": lambda x, y: x <= y, "==": lambda x, y: x == y,
        "!=": lambda x, y: x != y,
    }  # fmt: skip
    env = ShapeEnv()
    symbols = {n: env.symbol(h) for n, h in zip("abc", hints, strict=True)}
    answers = []
    try:
        for left, right, relation in comparisons:
            sides = [
                build(t, lambda y: symbols[y] if isinstance(y, str) else y, SYMBOLIC)
                for t in (left, right)
            ]
            answers.append(relations[relation](*sides))
    except ZeroDivisionError:
        assume(False)

    def plainly(values):
        return [relations[r](plain(x, values), plain(y, values)) for x, y, r in comparisons]

    named = dict(zip("abc", hints, strict=True))
    at_hint = {symbols[k].expr.text: v for k, v in named.items()}
    assert all(g.holds(at_hint) for g in env.conditions())
    assert answers == plainly(named)
    elsewhere = {symbols[k].expr.text: v for k, v in zip("abc", others, strict=True)}
    if all(g.holds(elsewhere) for g in env.conditions()):
        assert answers == plainly(dict(zip("abc", others, strict=True)))


def test_normal_form_of_sizes():
    env = ShapeEnv()
    s, t = env.symbol(8), env.symbol(5)
    assert s * t - t * s == 0 and isinstance(s * t - t * s, int)
    assert (s * t * 64) // (t * 64) == s
    assert repr((4 * s + 6) // 2) == "2*s0 + 3"
    assert (s * s - 1) // (s - 1) == s + 1
    assert repr(s // 2 // 3) == "(s0 // 6)"
    assert (2 * s + 1) % 2 == 1
    assert s - s % 4 == s // 4 * 4
    assert sym_max(s, s + 3) == s + 3 and sym_min(s, 1) == 1
    assert env.guards == []


def test_zero_and_one_are_no_symbols():
    env = ShapeEnv()
    assert env.symbol(0) == 0 and env.symbol(1) == 1 and not env.symbols


def test_provable_comparisons_leave_no_guard():
    env = ShapeEnv()
    s, t = env.symbol(8), env.symbol(5)
    assert s >= 2 and s != 0 and s != 1 and s > -1 and bool(s)
    assert s * t > s and s * t - s >= 2
    assert (s + 1) // 2 >= 1 and s % 3 < 3
    assert env.guards == []


def test_equal_sizes_become_one_symbol():
    env = ShapeEnv()
    s, t = env.symbol(8, Origin(0)), env.symbol(8, Origin(1))
    assert s == t
    assert [str(g) for g in env.guards] == ["s0 == s1"]
    assert s + 1 == t + 1 and s * 2 >= t and repr(s + t) in ("2*s0", "2*s1")
    assert len(env.guards) == 1


def test_a_decision_is_asked_once():
    env = ShapeEnv()
    s = env.symbol(8)
    assert s % 2 == 0
    assert s % 2 == 0 and s // 2 * 2 == s
    assert s > 4
    assert s >= 5 and s > 3 and 2 * s > 9
    assert len(env.guards) == 2


def test_index_specialises():
    env = ShapeEnv()
    s = env.symbol(8)
    assert len(range(s)) == 8
    assert [str(g) for g in env.guards] == ["s0 == 8"]
    assert env.wrap((s * 2).expr if isinstance(s * 2, SymInt) else symexpr.expr(s * 2)) == 16
    assert {8: "x"}[s] == "x"


def test_guards_name_the_line():
    env = ShapeEnv()
    s = env.symbol(8)
    assert s < 100
    where = env.guards[0].where
    assert where is not None and where.file == __file__
    assert where.function == "test_guards_name_the_line"


def test_lines_of_a_linked_package_are_not_the_users(tmp_path):
    (tmp_path / "flambeau").symlink_to(Path(flambeau.__file__).parent)
    (tmp_path / "user.py").write_text(
        "from flambeau._ir.symbols import ShapeEnv\n"
        "env = ShapeEnv()\n"
        "assert env.symbol(8) < 100\n"
        "print(env.guards[0].where)\n"
    )
    done = subprocess.run(
        [sys.executable, tmp_path / "user.py"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"{tmp_path / 'user.py'}:3 ")


def test_unbacked_values_raise_with_the_line():
    env = ShapeEnv()
    n = env.unbacked(low=0)
    assert n >= 0 and n * 3 > -1
    with pytest.raises(UnbackedError, match=r"n0.*test_symbols.py:\d+"):
        bool(n == 4)
    assert env.assume("==", n.expr - 4)
    assert n == 4 and n + 1 == 5


def test_floats_of_sizes():
    env = ShapeEnv()
    s = env.symbol(8)
    x = 1.0 / (s - 1) * 0.5
    assert isinstance(x, SymFloat) and x.expr.evaluate({"s0": 5}) == 0.125
    assert env.guards == []
    assert x < 1 and len(env.guards) == 1
    assert math.isclose(float((s / 2).apply("sqrt")), 2.0)


def test_a_guard_can_fail():
    env = ShapeEnv()
    s = env.symbol(8)
    assert not s > 10
    (guard,) = env.guards
    assert guard.holds({"s0": 10}) and not guard.holds({"s0": 11})
    assert guard == Guard(">=", guard.expr)


def test_native_code_rounds_divisions_down():
    def f(x, i):
        return x + (-7 // i), x + (-7 % i), x + (3 - i) // 4, x + (3 - i) % 4

    compiled = flambeau.compile(f, dynamic=True)
    for i in (5, 6, 9, 11):
        want = [-7 // i, -7 % i, (3 - i) // 4, (3 - i) % 4]
        assert [int(y) for y in compiled(flambeau.zeros(1), i)] == want


def test_negative_numbers_are_divided_as_in_python():
    def f(x, i):
        return x + i // 2, x + i % 3, x + (3 - i) // 4, x + -7 // i, x + -7 % i, x + i // -3

    for numbers in ((-5, -4, -7, -9), (5, 4, 7, 9)):
        compiled = flambeau.compile(f, dynamic=True)
        for i in numbers:
            for got, want in zip(
                compiled(flambeau.zeros(3), i), f(flambeau.zeros(3), i), strict=True
            ):
                assert flambeau.equal(got, want)
