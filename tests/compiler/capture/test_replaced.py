"""What a program replaces in a library after the first call: the compiled function notices.

The reference is the same function without compile, and NumPy for the first values.
"""

import builtins
import functools
import math
import operator
import unittest.mock

import pytest

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import nn

X = torch.arange(3.0) - 1
LINEAR, RELU = nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3), nn.ReLU())
ATTENTION = nn.MultiheadAttention(4, 2).eval()


class Base:
    def go(self, x):
        return x + 1


class Derived(Base):
    pass


OBJECT = Derived()


def seven(*args, **kwargs):
    return next(a for a in args if isinstance(a, torch.Tensor)) * 7


CASES = {
    "function": (lambda x: F.relu(x), F, "relu", seven),
    "top": (lambda x: torch.relu(x), torch, "relu", seven),
    "linalg": (lambda x: torch.linalg.norm(x), torch.linalg, "norm", seven),
    "by path": (lambda x: torch.nn.functional.gelu(x), F, "gelu", seven),
    "method": (lambda x: x.relu(), torch.Tensor, "relu", seven),
    "operator": (lambda x: x + 1, torch.Tensor, "__add__", seven),
    "reflected": (lambda x: 1 - x, torch.Tensor, "__rsub__", seven),
    "unary": (lambda x: -x, torch.Tensor, "__neg__", seven),
    "property": (lambda x: x[None].T, torch.Tensor, "T", property(seven)),
    "module": (lambda x: LINEAR(x), nn.Linear, "forward", seven),
    "submodule": (lambda x: RELU(x), nn.ReLU, "forward", seven),
    "called by a module": (lambda x: LINEAR(x), F, "linear", seven),
    "call of modules": (lambda x: LINEAR(x), nn.Module, "__call__", seven),
    "a new method": (lambda x: LINEAR(x), nn.Linear, "__call__", seven),
    "inside": (
        lambda x: ATTENTION(x.new_ones(2, 3, 4), *[x.new_ones(2, 3, 4)] * 2, need_weights=False)[0],
        F, "scaled_dot_product_attention", seven,
    ),
    "math": (lambda x: x * math.sin(1.0), math, "sin", lambda v: 7.0),
    "constant": (lambda x: x * math.pi, math, "pi", 7.0),
    "dtype": (lambda x: x.to(torch.float64), torch, "float64", torch.float16),
    "operator module": (lambda x: operator.add(x, 1), operator, "add", seven),
    "functools": (lambda x: functools.reduce(operator.add, [x, x]), functools, "reduce",
                  lambda f, xs: xs[0] * 7),
    "builtin": (lambda x: x * max(1, 2), builtins, "max", lambda *a: 7),
    "class": (lambda x: OBJECT.go(x), Base, "go", seven),
    "derived class": (lambda x: OBJECT.go(x), Derived, "go", seven),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_replaced_later_counts(name):
    f, where, attribute, other = CASES[name]
    compiled = torch.compile(f, backend="eager")
    before = f(X)
    assert torch.equal(compiled(X), before)
    with unittest.mock.patch.object(where, attribute, other, create=True):
        changed = f(X)
        assert changed.dtype != before.dtype or not torch.equal(changed, before)
        assert torch.equal(compiled(X), changed)
    assert torch.equal(compiled(X), before)


def test_nothing_replaced_compiles_once():
    made = []

    def backend(graph, inputs):
        made.append(graph)
        return graph.forward

    f = torch.compile(lambda x: F.relu(RELU(x)) + math.sin(1.0), backend=backend)
    for _ in range(3):
        f(X)
        F.a_name_of_a_program = 1  # another name, which nothing has read
        del F.a_name_of_a_program
    assert len(made) == 1


def test_the_log_names_what_was_replaced(capfd, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_LOGS", "recompiles")
    f = torch.compile(lambda x: F.relu(x), backend="eager")
    f(X)
    with unittest.mock.patch.object(F, "relu", seven):
        f(X)
    assert "functional.relu is relu" in capfd.readouterr().err


def test_a_wrapper_of_a_library_function_is_followed():
    """`wraps` gives it the library's name, and nothing else."""

    @functools.wraps(F.multi_head_attention_forward)
    def outer(x):
        seen.append(x)
        return x * 2

    seen = []
    f = torch.compile(lambda x: outer(x), backend="eager")
    assert f(X).tolist() == f(X).tolist() == [-2, 0, 2] and len(seen) == 2
