"""Compiled functions whose inputs vary as programs vary them: right, compiled no more often than
what varies explains, never given up. `make truth` runs thousands.
"""

from __future__ import annotations

import ast

import pytest

import flambeau as torch
from tools._known import known
from tools._variation_draw import OTHERS, Program, generate
from tools.variation_programs import KNOWN, counted, failure, script


@pytest.mark.parametrize("part", range(4))
def test_programs(part):
    programs = [generate(k) for k in range(30 * part, 30 * (part + 1))]
    found = [(script(p, why), why) for p in programs if (why := failure(p))]
    void = [why for _, why in found if why.startswith("program:")]
    patterns = known(KNOWN)
    failed = [
        text for text, why in found if why not in void and not any(x.search(text) for x in patterns)
    ]
    assert not failed, "\n".join(failed)
    assert len(void) < 5


def test_programs_are_the_same_every_time():
    assert generate(7).text() == generate(7).text()
    ast.parse(generate(7).text())


def test_too_many_compilations_are_found():
    """A number that decides what runs is a constant of each form."""
    p = Program(0, ("X[:4]", 0, 1), ("3 + k", 1, 1), "x * range(99)[y]", False)
    assert counted(p)[0] > p.most or counted(p)[1]
    assert "expected at most" in failure(p) or "8 times" in failure(p)
    assert not failure(Program(0, ("X[:4]", 0, 1), OTHERS[0], "x * 2", False))


def compilations(f, calls):
    count = 0

    def backend(graph, inputs):
        nonlocal count
        count += 1
        return graph.forward

    compiled = torch.compile(f, backend=backend)
    for args in calls:
        torch.testing.assert_close(compiled(*args), f(*args))
    return count


def test_where_a_tensor_begins_does_not_matter():
    x = torch.randn(96, 6)
    layer = torch.nn.Linear(6, 1)
    assert compilations(layer, [(x[i : i + 8],) for i in range(0, 96, 8)]) == 1
    assert compilations(lambda x: x.sin() * 2, [(row,) for row in x]) == 1
    assert compilations(lambda x: x.sin() * 2, [(x[:, k],) for k in range(6)]) == 1
    assert compilations(lambda x: x @ x.T, [(part,) for part in x.split(8)]) == 1
    assert (
        compilations(lambda x: torch.view_as_complex(x).abs(), [(x[k, :2],) for k in range(5)]) == 1
    )


def test_strides_that_vary_are_symbols():
    x = torch.randn(60)
    parents = [(torch.randn(6, k)[:, :3],) for k in range(4, 12)]
    assert compilations(lambda x: x.sin().sum(0), parents) == 2
    assert compilations(lambda x: x.sum() + x, [(x[: 10 * k : k],) for k in range(2, 6)]) == 2


def test_a_program_that_asks_where_a_tensor_begins_is_told():
    x = torch.randn(9)
    asks = lambda x: x * x.storage_offset()  # noqa: E731
    assert compilations(asks, [(x[k : k + 2],) for k in (0, 3, 3, 0)]) == 2
    places = lambda x: x.as_strided((2,), (1,), 4) + x  # noqa: E731
    compiled = torch.compile(places)
    for k in (0, 3, 5):
        torch.testing.assert_close(compiled(x[k : k + 2]), places(x[k : k + 2]))
    follows = lambda x: x.as_strided((2,), (2,)) + 1  # noqa: E731
    assert compilations(follows, [(x[k : k + 3],) for k in (0, 2, 5)]) == 1


def test_native_code_reads_at_any_place():
    """Memory that begins at any element, forward and backward, and written in place."""

    def f(x, w):
        y = torch.softmax(x * 2, -1) @ w
        x += 1
        return y.sin()

    compiled = torch.compile(f)
    base = torch.randn(300)
    for k in range(7):
        w = torch.randn(40)[k : k + 15].view(5, 3).requires_grad_()
        there, here = base.clone(), base.clone()
        got = compiled(here[k : k + 20].view(4, 5), w)
        (g,) = torch.autograd.grad(got.sum(), w)
        want = f(there[k : k + 20].view(4, 5), w)
        (h,) = torch.autograd.grad(want.sum(), w)
        for a, b in ((got, want), (g, h), (here, there)):
            torch.testing.assert_close(a, b)


def test_the_reason_names_the_layout():
    e = torch.compiler.explain(lambda x: x + 1)(torch.ones(3, 2).t())
    assert any("of shape [2, 3] and strides [1, 2]" in g for g in e.out_guards), e.out_guards
