"""Where a graph has to end: results stay right, the rest is captured again, the reason is told."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau._capture.errors import Unsupported

from .test_interpreter import captured
from .test_tensors import same


def parts(compiled):
    return compiled._flambeau_config.parts


def reasons(compiled):
    return [p.reason for p in parts(compiled) if p.reason is not None]


def printing(x):
    y = x * 2
    print("sum is", float(y.sum()))
    return y + 1


def data_dependent(x):
    y = x * 2
    if y.sum() > 0:
        z = y + 1
    else:
        z = y - 1
    return z * 3


def item(x):
    n = int(x.abs().sum().item())
    return x * n + n


def in_callee(x):
    def inner(t):
        t = t + 1
        if t.max() > 100:
            return t
        return t * 2

    a = inner(x) + 1
    return inner(a) * 2


def in_call_arguments(x):
    return torch.maximum(x * 2, helper(x.sum().item() + 0 * x)) + 1


def helper(t):
    return t + 1


def in_expression(x):
    return [x + 1, {"k": (x * 2).tolist()}, (x.mean().item(), x - 1)]


def with_defaults_and_cells(x, scale=2):
    total = 0

    def add(k):
        nonlocal total
        total += k
        return total

    add(1)
    print(end="")
    add(2)
    y = x * total * scale
    print(end="")
    return y + add(3), total


def in_loop(x):
    for _ in range(3):
        x = x + 1
        if x.sum() > 5:
            x = x * 0.5
    return x


def in_try(x):
    try:
        y = x + 1
        n = y.sum().item()
        if n > 0:
            raise ValueError("positive")
        return y
    except ValueError as e:
        return x * len(str(e))
    finally:
        x = x * 2


def in_no_grad(x):
    with torch.no_grad():
        y = x * 2
        print(end="")
        z = y + x
        flag = torch.is_grad_enabled()
    w = z * x
    return w, flag, torch.is_grad_enabled()


def in_user_context(x):
    log = []

    class Manager:
        def __enter__(self):
            log.append("in")
            return self

        def __exit__(self, kind, value, traceback):
            log.append(kind.__name__ if kind else "out")
            return True

    with Manager():
        y = x + 1
        print(end="")
        if y.sum().item() > 0:
            raise KeyError("k")
        y = y * 2
    return x * 3, log


def iterator_alive(x):
    it = iter([1, 2, 3])
    a = x * next(it)
    print(end="")
    return a * next(it) + sum(it)


def mutated_before(x):
    xs = [1]
    xs.append(2)
    d = {"a": xs}
    print(end="")
    d["a"].append(3)
    return x * len(xs), d, xs is d["a"]


def not_set_yet(x):
    if x.sum() > 1000:
        late = 1
    print(end="")
    late = 2
    return x * late


def star_call(x):
    args, kwargs = (x,), {"end": ""}
    print(**kwargs)
    return helper(*args)


def conditional_expression(x):
    return (x + 1 if x.sum() > 0 else x - 1) * (2 if (x > 10).any() else 3)


def short_circuit(x):
    return x if (x > 5).all() or (x < 0).any() else x * 2


def two_prints(x):
    a = x + 1
    print(end="")
    b = a * 2
    print(end="")
    return a + b


def deleted_before_a_loop(x):
    y = x * 2
    z = y + 1
    w = z * 3
    del z
    while True:
        print(end="")
        y = y + 1
        if y.sum() > 10:
            z = w
            return y, z


def set_before_a_loop(x):
    y = x * 2
    n = 3
    while True:
        print(end="")
        n += 1
        if n > 5:
            return y * n


class Base:
    @property
    def count(self):
        print(end="")
        return 2

    @property
    def scaled(self):
        print(end="")
        return lambda t: t * 3


class Derived(Base):
    pass


def through_super(x):
    d = Derived()
    y = x * super(Derived, d).count
    return super(Derived, d).scaled(y) + 1


FUNCTIONS = [
    data_dependent, item, in_callee, in_call_arguments, in_expression, with_defaults_and_cells,
    in_loop, in_try, in_no_grad, in_user_context, iterator_alive, mutated_before, not_set_yet,
    star_call, conditional_expression, short_circuit, two_prints, printing, through_super,
    deleted_before_a_loop, set_before_a_loop,
]  # fmt: skip


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_results_are_right(f, grad):
    compiled = captured(f)
    for seed in range(4):
        torch.manual_seed(seed)
        x = (torch.randn(4) * 3 * (-1) ** seed).requires_grad_(grad)
        same(compiled(x), f(x))
    assert reasons(compiled)
    assert torch.is_grad_enabled()


def test_reason_and_line(capsys):
    compiled = captured(printing)
    compiled(torch.ones(2))
    first = next(p for p in parts(compiled) if p.reason)
    assert "the value of a traced tensor" in first.reason
    assert first.where.file == __file__
    assert first.where.line == printing.__code__.co_firstlineno + 2
    assert capsys.readouterr().out == "sum is 4.0\n"


def test_what_comes_after_a_break_is_captured():
    compiled = captured(two_prints)
    compiled(torch.ones(2))
    assert [p.nodes for p in parts(compiled)] == [1, 1, 1]


def test_full_graph_raises_with_the_line():
    compiled = captured(data_dependent, fullgraph=True)
    with pytest.raises(Unsupported, match="depends on the values of a tensor") as e:
        compiled(torch.ones(2))
    assert f"{__file__}:{data_dependent.__code__.co_firstlineno + 2}" in str(e.value)


def test_exceptions_pass_through():
    def f(x, n):
        y = x + 1
        if n > 3:
            raise ValueError(f"n is {n}")
        return y

    compiled = captured(f)
    x = torch.ones(2)
    same(compiled(x, 1), f(x, 1))
    for _ in range(2):
        with pytest.raises(ValueError, match="n is 5") as e:
            compiled(x, 5)
        assert e.traceback[-1].lineno == f.__code__.co_firstlineno + 2
    same(compiled(x, 2), f(x, 2))


def test_error_of_an_operation():
    def f(x, y):
        return (x + 1) @ y

    compiled = captured(f)
    with pytest.raises(RuntimeError):
        compiled(torch.ones(2, 3), torch.ones(2, 3))
    same(compiled(torch.ones(2, 3), torch.ones(3, 2)), f(torch.ones(2, 3), torch.ones(3, 2)))


def test_loop_over_loader_compiles_the_step():
    layer = torch.nn.Linear(3, 1)
    opt = torch.optim.SGD(layer.parameters(), lr=0.1)
    data = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(3)]

    def step(x, y):
        return ((layer(x) - y) ** 2).mean()

    def train(batches):
        losses = []
        for x, y in iter(batches):
            opt.zero_grad()
            loss = step(x, y)
            loss.backward()
            opt.step()
            losses.append(loss.item())
        return losses

    compiled = captured(train)
    start = {k: v.clone() for k, v in layer.state_dict().items()}
    found = compiled(data)
    layer.load_state_dict(start)
    assert found == train(data)
    assert any(p.name.endswith("step") and p.nodes for p in parts(compiled))


def counted(x, n):
    total, k = 0, 0
    while k < n:
        total, k = total + k, k + 1
    return x + total


def calls_counted(x, n):
    return counted(x * 2, n) + 1


@pytest.mark.parametrize("function", [counted, calls_counted])
def test_long_loops_are_not_followed_for_ever(function, monkeypatch):
    monkeypatch.setattr("flambeau._capture.interpreter._LONGEST", 2000)
    torch.compiler.reset()
    compiled = torch.compile(function, backend="eager")
    assert torch.equal(compiled(torch.ones(2), 5000), function(torch.ones(2), 5000))
    reasons = [part.reason or "" for part in compiled._flambeau_config.parts]
    assert any("more than 2,000 instructions" in r for r in reasons)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="more than 2,000 instructions"):
        torch.compile(function, backend="eager", fullgraph=True)(torch.ones(2), 6000)


@pytest.mark.parametrize("inlined", [False, True])
def test_what_raises_only_while_it_is_compiled_runs_in_plain_python(inlined):
    def masked(x, mask):
        if mask is None and not torch.compiler.is_compiling():
            mask = x > 1
        x = x * 2
        return x * mask[None]

    def outer(x, mask):
        return masked(x, mask) + 1

    f = outer if inlined else masked
    compiled, x = torch.compile(f), torch.tensor([0.0, 1.0, 2.0])
    wanted = np.array([[0.0, 0.0, 4.0]]) + inlined
    np.testing.assert_array_equal(compiled(x, None).numpy(), wanted)
    np.testing.assert_array_equal(compiled(x, x > 1).numpy(), wanted)


def test_what_raises_while_it_is_compiled_is_told_with_fullgraph():
    def f(x):
        if torch.compiler.is_compiling():
            raise ValueError("only so")
        return x

    with pytest.raises(RuntimeError, match=r"after `is_compiling\(\)` was True: ValueError: only"):
        torch.compile(f, fullgraph=True)(torch.ones(2))
