"""A graph that ends in a function followed inside others: all of them go on from there, once.

Plain Python is the reference; each program is called on both sides of its branch.
"""

from __future__ import annotations

import functools

import pytest

import flambeau as torch
from flambeau import nn
from flambeau._dynamo.utils import counters

WHY = "a branch depends on the values of a tensor"


@pytest.fixture(autouse=True)
def _fresh():
    torch.compiler.reset()
    counters.clear()


def inner(x, k=1, *rest, scale=1.0, **named):
    y = x * 2
    y = y + k if y.sum() > 0 else y - k
    return y * scale + len(rest) + len(named)


def middle(x, k):
    before = x + 10
    return inner(x, k) * before


def deep(x):
    a = x * 3
    b = a + middle(a - 1, 2) * a
    return b, a


def with_arguments_of_all_kinds(x):
    args, named = (x, 2, 3, 4), {"scale": 3.0, "other": 1}
    return inner(*args, **named) + inner(x, k=5) - inner(x, 1, 2, scale=0.5)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.seen = nn.Linear(3, 3), []

    def forward(self, x, *, k=1):
        y = self.linear(x)
        self.seen.append(k)
        return inner(y, k) + y


BLOCK = Block()


def a_module(x):
    y = BLOCK(x, k=2)
    return y + 1, list(BLOCK.seen[-1:])


def a_partial(x):
    return functools.partial(inner, k=4)(x) + 1


def closures(x):
    total = torch.zeros(3)
    calls = []

    def add(y):
        nonlocal total
        calls.append("before")
        if y.sum() > 0:
            total = total + y
        calls.append("after")
        return total

    first = add(x)
    total = total * 10
    return first, total, add(x), calls


def raised_within(x):
    try:
        return checked(x * 1)
    except ValueError as error:
        return x - 1, str(error)


def checked(x):
    y = x + 1
    try:
        if y.sum() > 0:
            raise ValueError("positive")
    finally:
        y = y * 2
    return y


def within_modes(x):
    with torch.no_grad():
        y = inner(x * 2) * 2
        grad = torch.is_grad_enabled()
    return y, grad, torch.is_grad_enabled()


def modes_of_the_callee(x):
    def quiet(x):
        with torch.no_grad():
            y = x * 2 if x.sum() > 0 else x * 3
            return y * 2, torch.is_grad_enabled()

    return quiet(x), torch.is_grad_enabled()


def in_a_loop(x):
    for k in range(3):
        x = inner(x, k)
    return x


def in_a_comprehension(x):
    return torch.stack([inner(x, k) for k in range(3)])


def in_a_generator(x):
    return torch.stack(list(inner(x, k) for k in range(2)))  # noqa: C400


def as_a_key(x):
    found = sorted([x, x * 2], key=lambda t: float(inner(t).sum()))
    return found[0], found[1]


class Made:
    def __init__(self, x):
        self.x = x * 2 if x.sum() > 0 else x * 3


def in_an_init(x):
    return Made(x + 1).x + 1


class Operand:
    def __init__(self, x):
        self.x = x

    def __add__(self, other):
        return inner(self.x + other)

    @property
    def value(self):
        return inner(self.x)


def in_an_operator(x):
    return (Operand(x) + 1) * 2 + Operand(x).value


def recursive(x, n=3):
    if n == 0:
        return x * 2 if x.sum() > 0 else x * 3
    y = recursive(x + n, n - 1)
    return y + n * x


def while_something_lives(x):
    rows = (x[k] for k in range(2))
    first = next(rows)
    y = inner(x)
    return y + first + next(rows)


def state_on_both_sides(x):
    log = {"order": []}

    def note(word, value):
        log["order"].append(word)
        return value

    y = note("a", x) + note("b", branching(log, x)) * note("c", x)
    return y, log


def branching(log, x):
    log["order"].append("in")
    if x.sum() > 0:
        log["order"].append("positive")
    return x * len(log["order"])


def printed(x):
    return called(x) + 1


def called(x):
    y = x * 2
    torch._dynamo.graph_break()
    return y + 1


PROGRAMS = [
    deep, with_arguments_of_all_kinds, a_module, a_partial, closures, raised_within, within_modes,
    modes_of_the_callee, in_a_loop, in_a_comprehension, in_a_generator, as_a_key, in_an_init,
    in_an_operator, recursive, while_something_lives, state_on_both_sides, printed,
]  # fmt: skip


def plain(value):
    if isinstance(value, torch.Tensor):
        return [round(v, 4) for v in value.detach().flatten().tolist()], value.requires_grad
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_as_plain_python(f, backend):
    compiled = torch.compile(f, backend=backend)
    for sign in (1.0, -1.0, 1.0, -1.0):
        for grad in (False, True):
            x = (torch.arange(9.0).reshape(3, 3) + 1) * sign
            assert plain(compiled(x.requires_grad_(grad))) == plain(f(x))


@pytest.mark.parametrize("f", [deep, a_module, a_partial, closures, recursive])
def test_one_break_for_all_the_functions_around(f):
    compiled = torch.compile(f, backend="eager")
    x = torch.ones(3, 3)
    compiled(x)
    assert counters["graph_break"][WHY] == (2 if f is closures else 1)
    first = compiled._flambeau_config.parts[0]
    assert first.name == f.__name__ and first.where.function.endswith(
        {closures: "add", recursive: "recursive"}.get(f, "inner")
    )


def test_what_comes_before_is_one_graph():
    compiled = torch.compile(deep, backend="eager")
    compiled(torch.ones(3, 3))
    first = compiled._flambeau_config.parts[0].graph
    assert [n.target for n in first.nodes].count("mul") == 2  # of deep, and of inner
    assert compiled._flambeau_config.parts[1].name == "inner"


def test_gradients_pass_through_all_the_parts():
    x = torch.arange(9.0).reshape(3, 3).requires_grad_()
    deep(x)[0].sum().backward()
    expected, x.grad = x.grad, None
    torch.compile(deep)(x)[0].sum().backward()
    torch.testing.assert_close(x.grad, expected)


def test_an_error_after_the_break_has_the_line_of_the_program():
    def failing(x):
        torch._dynamo.graph_break()
        return x @ torch.ones(7, 7)

    def outer(x):
        y = x + 1
        return failing(y) + 1

    compiled = torch.compile(outer, backend="eager")
    for _ in range(2):
        with pytest.raises(RuntimeError) as caught:
            compiled(torch.ones(3, 3))
        names = [entry.name for entry in caught.traceback]
        assert names[-1] == "failing" and "outer" in names


def test_hooks_on_gradients_end_the_graph_before_the_first_gate():
    module = Block()
    module.linear.register_full_backward_hook(lambda m, i, o: (i[0] * 3,))
    compiled = torch.compile(module, backend="eager")
    found = []
    for call in (module, compiled):
        x = torch.ones(3, 3, requires_grad=True)
        call(x).sum().backward()
        found.append(x.grad)
    assert torch.equal(*found) and counters["graph_break"]["a module with hooks on its gradients"]
