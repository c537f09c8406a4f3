"""A graph ends before a comprehension in which it has to end, and another begins after it: whether
CPython runs it as a function (3.11) or in line (3.12).
"""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._capture import inlined, opcodes

from .test_breaks import captured, parts
from .test_tensors import same


def end_graph(value):
    print(end="")
    return value


def kept(x):
    y = x * 2
    found = [end_graph(y) * i for i in range(3)]
    return y + found[1].sin()


def returned(x):
    y = x * 2
    return {i: end_graph(y) * i for i in range(3)}


def shadowing(x):
    i = x + 1
    y = x * 2
    found = [end_graph(y) * i for i in range(3)]
    return y + found[1], i


def with_cells(x):
    y = x * 2
    n = [(lambda: end_graph(i) + j)() for i, j in zip((1, 2), (3, 4), strict=True) for _ in "ab"]
    return y * n[0] + len(n)


def nested(x):
    y = x * 2
    rows = [[end_graph(i * j) for j in range(2)] for i in range(3)]
    return y + sum(map(sum, rows))


def assigning(x):
    last = 5
    y = x * 2
    found = [end_graph(last := i) for i in range(3)]
    return y * last + found[0]


def into_its_variable(x):
    y = x * 2
    i = [end_graph(i) for i in range(3)]
    return y * i[1]


def as_statement(x):
    y = x * 2
    [end_graph(k) for k in range(3)]
    return y * 3


def as_argument(x):
    y = x * 2
    return torch.stack([end_graph(y) for _ in range(3)], 0).sum() + y


def conditional(x):
    y = x * 2
    return y * len({k for k in range(4) if end_graph(k) % 2 if k}) + y


RESUMED = [
    kept, shadowing, with_cells, nested, assigning, into_its_variable, as_statement, as_argument,
    conditional,
]  # fmt: skip


def assigning_first(x):
    y = x * 2
    found = [end_graph(last := i) for i in range(3)]
    return y * last + found[0]


def raising(x):
    y = x * 2
    try:
        found = [end_graph(1) / i for i in range(3)]
    except ZeroDivisionError as e:
        return y * 3, str(e)
    return y * found[0]


def in_loop(x):
    y = x * 2
    for k in range(2):
        y = y + sum([end_graph(k) for k in range(3)])
    return y * k


def still_unset(x):
    y = x * 2
    found = [end_graph(k) for k in range(3)]
    try:
        if y.sum() > 1e9:
            k = 1
        return y * k
    except UnboundLocalError as e:
        return y * found[1], str(e)


@pytest.mark.parametrize(
    "f", [*RESUMED, returned, assigning_first, raising, in_loop, still_unset],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_results_are_right(f):
    compiled = captured(f)
    for seed in range(3):
        torch.manual_seed(seed)
        x = torch.randn(4)
        same(compiled(x), f(x))
    assert parts(compiled)[0].nodes and parts(compiled)[0].reason == "a call of print"


@pytest.mark.parametrize("f", RESUMED, ids=lambda f: f.__name__)
def test_what_comes_after_is_captured(f):
    compiled = captured(f)
    compiled(torch.ones(4))
    own = [p for p in parts(compiled) if p.name == f.__name__]
    assert len(own) == 2 and own[1].nodes and own[1].reason is None


def test_where_one_begins_and_ends():
    d = opcodes.decoded(kept.__code__)
    loops = [n for n, i in enumerate(d.instructions) if i.name == "FOR_ITER"]
    if not loops:
        assert all(inlined.comprehension(d, n) is None for n in range(len(d.instructions)))
        return
    found = inlined.comprehension(d, loops[0])
    assert d.instructions[found.first - 1].name == "GET_ITER"
    assert [i.name for i in d.instructions[found.landing : found.end]] == ["STORE_FAST"] * 2
    assert inlined.comprehension(d, found.end) is None
