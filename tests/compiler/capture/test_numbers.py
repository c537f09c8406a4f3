"""Integers that vary, and sizes: every operator and builtin of Python on them gives what plain
Python gives, type and errors included, whichever kinds of numbers meet."""

from __future__ import annotations

import math

import numpy as np
import pytest

import flambeau as torch

BINARY = ["+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^", "@"]
COMPARISONS = ["<", "<=", "==", "!=", ">", ">="]
OTHERS = [
    "3", "-3", "0", "1", "True", "2.5", "-2.5", "3.0", "0.0", "inf", "nan", "0.1 ** 9", "2j",
    "'a'", "None", "j", "-j", "j / 2", "-j / 3.0", "j - 7", "2 ** 62", "-(2 ** 70)", "1e300",
    "np.float64(2)", "np.int32(3)", "[1]", "j * 0.5 + 1",
]  # fmt: skip
SUBJECTS = ["i", "-i", "i / 2", "(i - 5) / 2"]
UNARY = [
    "-{}", "+{}", "~{}", "not {}", "abs({})", "round({})", "round({}, 1)", "round({}, -1)",
    "int({})", "float({})", "bool({})", "complex({})", "str({})", "repr({})", "f'{{{}}}'",
    "f'{{{}:>9}}'", "'%s %5.1f' % ({}, {})", "'{{}}'.format({})", "math.floor({})",
    "math.ceil({})", "math.trunc({})", "math.sqrt(abs({}))", "math.isqrt({})", "math.gcd(4, {})",
    "math.exp({} / 9)", "hash({})", "hex({})", "bin({})", "chr({})", "list(range({}))",
    "list(range({}, 30, 7))", "len(range({}))", "({}).bit_length()", "({}).real",
    "({}).is_integer()", "({}).as_integer_ratio()", "isinstance({}, int)",
    "isinstance({}, float)", "type({}).__name__", "[10, 20, 30, 40, 50, 60, 70, 80][{}]",
    "[1, 2, 3, 4, 5, 6, 7, 8][:{}]", "'abc' * {}", "[0] * {}", "{} * (1,)", "{{{}: 1}}",
    "{} in (3, 4, 5, 6)", "{} in range(4, 6)", "sum([{}, 2, 2.5])", "sum([1, {}])",
    "sorted([{}, 3, 4.5])", "{} and 7", "{} or 7", "1 if {} else 2", "max({}, 2.5)",
    "min({}, 2.5)", "max({}, j)", "min(4, {}, j)", "max([{}, 5], key=lambda k: -k)", "pow({}, 2)",
    "pow({}, 2, 5)", "pow({}, -1)", "pow(2, {})", "divmod({}, 3)", "divmod(17, {})",
    "divmod({}, 2.5)", "divmod({}, j)", "np.sqrt(abs({}))", "({}) ** 0.5", "({}) ** 2",
    "({}) ** 3.0", "1 / ({})", "int({} * 1.5)", "{} is None", "all([{}])", "any([{}])",
    "list(enumerate('ab', {}))", "{} if {} > 4 else -1", "max({}, 4) - min({}, 6)",
    "({} // 2) * 2 == {}", "({} + 1) % 4", "[*range(3)][{} % 3]", "math.prod([{}, 2])",
    "({}).__class__", "1 < {} < 6", "math.copysign(1, {})",
]  # fmt: skip


def program(expression):
    namespace = {"inf": math.inf, "nan": math.nan, "math": math, "np": np}
    exec(f"def f(x, i, j):\n    return {expression}, x + 1\n", namespace)
    return namespace["f"]


def outcome(f, *args):
    """What a call gives, its type included; or what it raises."""
    try:
        value = f(*args)[0]
    except Exception as e:
        return type(e), str(e)
    return type(value), repr(value)


def holds(expression, dynamic, values):
    plain = program(expression)
    compiled = torch.compile(plain, backend="eager", dynamic=dynamic)
    x = torch.zeros(2)
    for i, j in values:
        expected, got = outcome(plain, x, i, j), outcome(compiled, x, i, j)
        assert got == expected, f"{expression} for i = {i}, j = {j}"


PAIRS = [(4, 6), (5, 7), (7, 7)]
NEGATIVE = [(-4, 3), (-5, -4), (6, 6)]
pytestmark = [
    pytest.mark.filterwarnings("ignore:compile. :UserWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning:numpy"),
    pytest.mark.filterwarnings("ignore:overflow"),
    pytest.mark.filterwarnings("ignore:divide by zero"),
    pytest.mark.filterwarnings("ignore:invalid value"),
]


@pytest.fixture(autouse=True)
def _fresh():
    torch.compiler.reset()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch._dynamo.config, "recompile_limit", 40)
        yield


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("operator", [*BINARY, *COMPARISONS])
def test_operators(operator, subject):
    for other in OTHERS:
        huge = operator in ("<<", "**") and ("2 **" in other or "e300" in other)
        for values in (PAIRS, NEGATIVE):
            if not huge:
                holds(f"({subject}) {operator} ({other})", None, values)
            if not (huge or (operator in ("<<", "**") and other == "'a'")):
                if operator not in ("<<", "**") or "62" not in other:
                    holds(f"({other}) {operator} ({subject})", None, values)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_functions(subject):
    for form in UNARY:
        for values in (PAIRS, NEGATIVE):
            holds(form.format(*[f"({subject})"] * 4), None, values)


@pytest.mark.parametrize("operator", BINARY[:7])
def test_in_place(operator):
    def made(text):
        namespace = {}
        exec(f"def f(x, i, j):\n    k = i\n    k {operator}= {text}\n    return k, x\n", namespace)
        return namespace["f"]

    for text in ("3", "j", "2.5", "j / 2"):
        plain = made(text)
        compiled = torch.compile(plain, backend="eager")
        for i, j in PAIRS:
            assert outcome(compiled, torch.ones(1), i, j) == outcome(plain, torch.ones(1), i, j)


def test_sizes_are_numbers_too():
    def f(x):
        n, m = x.shape
        return max(n, 2.5), round(n), 2**n, n << 1, n & 3, n | m, n ^ m, ~n, min(n / m, m), f"{n}"

    compiled = torch.compile(f, backend="eager", dynamic=True)
    for n, m in ((3, 4), (5, 4), (7, 9)):
        assert repr(compiled(torch.ones(n, m))) == repr(f(torch.ones(n, m)))


def test_numbers_that_are_results_are_not_captured_in_turn():
    f = torch.compile(
        lambda x: (x + 1, x.shape[0] // 2), backend="eager", dynamic=True, fullgraph=True
    )
    assert [f(torch.ones(n))[1] for n in (4, 7, 9)] == [2, 3, 4]
    assert len(f._flambeau_config.parts) == 1


def test_what_has_a_symbolic_meaning_is_not_compiled_again():
    def f(x, i):
        k = ~i + (i << 2) - (i >> 1) + round(i) + max(i, 2.5)
        return x * k * (1 if i >= 2.5 else 2)

    compiled = torch.compile(f, backend="eager")
    for i in range(4, 12):
        assert torch.equal(compiled(torch.ones(2), i), f(torch.ones(2), i))
    assert len(compiled._flambeau_config.parts) == 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_numbers_of_classes_of_their_own(backend):
    class Length(float):
        pass

    def f(x, i):
        y = x * np.sqrt(32)
        y *= np.sqrt(32) / i
        return y + Length(1.5) + np.int64(2)

    compiled = torch.compile(f, backend=backend)
    for i in (2, 3, 4):
        x = torch.arange(3.0, requires_grad=True)
        y = compiled(x, i)
        y.sum().backward()
        assert torch.allclose(y, x * 32 / i + 3.5)
        assert torch.allclose(x.grad, torch.full((3,), 32.0 / i))
