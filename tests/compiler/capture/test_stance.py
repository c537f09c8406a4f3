"""What a program may say of its compilation: stances, sizes that are fixed or may vary, results
that are constants, ends of graphs that are errors."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import nn

X = torch.tensor([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def _fresh():
    torch.compiler.reset()
    yield
    torch.compiler.set_stance("default")


class Counting:
    """A back end that counts what it compiles."""

    def __init__(self):
        self.count = 0

    def __call__(self, graph, inputs):
        self.count += 1
        return graph.forward


def double(x):
    return x * 2


def which(x):
    """How it runs: 2 captured, 3 plain."""
    return x * 0 + (2 if torch.compiler.is_compiling() else 3)


def test_force_eager_runs_as_if_nothing_was_compiled():
    backend = Counting()
    compiled = torch.compile(which, backend=backend)
    with torch.compiler.set_stance("force_eager"):
        assert compiled(X)[0] == 3
    assert backend.count == 0
    assert compiled(X)[0] == 2

    @torch.compiler.set_stance("force_eager")
    def caller(x):
        return compiled(x)

    assert caller(X)[0] == 3
    assert compiled(X)[0] == 2
    torch.compiler.set_stance("force_eager")
    assert compiled(X)[0] == 3
    assert backend.count == 1


def test_modules_follow_the_stance_too():
    backend = Counting()
    m = nn.Linear(3, 1)
    compiled = torch.compile(m, backend=backend)
    with torch.compiler.set_stance("force_eager"):
        assert torch.equal(compiled(X[None]), m(X[None]))
    assert backend.count == 0


def test_eager_on_recompile_uses_what_there_is():
    backend = Counting()
    compiled = torch.compile(double, backend=backend)
    compiled(X)
    with torch.compiler.set_stance("eager_on_recompile"):
        assert compiled(X).tolist() == [2, 4, 6]
        assert compiled(torch.ones(2, 2)).tolist() == [[2, 2], [2, 2]]
    assert backend.count == 1
    compiled(torch.ones(2, 2))
    assert backend.count == 2


def test_fail_on_recompile():
    compiled = torch.compile(double, backend="eager")
    compiled(X)
    with torch.compiler.set_stance("fail_on_recompile"):
        compiled(X)
        with pytest.raises(RuntimeError, match="double would be compiled, and the stance is"):
            compiled(torch.ones(2, 2))
        with pytest.raises(RuntimeError, match="fail_on_recompile"):
            torch.compile(lambda x: x + 1, backend="eager")(X)


@pytest.mark.parametrize("stance", ["eager_then_compile", "aot_eager_then_compile"])
def test_the_first_call_tells_what_varies(stance):
    backend = Counting()
    compiled = torch.compile(lambda x, n: x * n, backend=backend)
    with torch.compiler.set_stance(stance):
        for size in (3, 4, 5, 6):
            assert compiled(torch.ones(size), size).tolist() == [size] * size
    assert backend.count == 1


def test_another_back_end_for_a_while():
    mine, other = Counting(), Counting()
    compiled = torch.compile(double, backend=mine)
    with torch.compiler.set_stance("default", force_backend=other):
        compiled(X)
        compiled(X)
    assert (mine.count, other.count) == (0, 1)
    compiled(X)
    assert (mine.count, other.count) == (1, 1)


def test_stances_that_are_refused():
    with pytest.raises(RuntimeError, match="expected one of .*got 'eager'"):
        torch.compiler.set_stance("eager")
    with pytest.raises(RuntimeError, match="force_backend needs the stance 'default'"):
        torch.compiler.set_stance("force_eager", force_backend="eager")
    with pytest.raises(NotImplementedError, match="guards are always evaluated"):
        torch.compiler.set_stance("default", skip_guard_eval_unsafe=True)


def test_a_size_marked_as_static_is_compiled_for_each_value():
    counts = []
    for marked in (False, True):
        backend = Counting()
        compiled = torch.compile(double, backend=backend, dynamic=True)
        for rows in (3, 4, 5):
            x = torch.ones(rows, 6)
            if marked:
                torch._dynamo.mark_static(x, 0)
            compiled(x)
        counts.append(backend.count)
    assert counts == [1, 3]
    with pytest.raises(IndexError, match=r"mark_static: expected a dim in \[-2, 1\], got 2"):
        torch._dynamo.mark_static(torch.ones(2, 2), 2)
    with pytest.raises(TypeError, match="mark_static: expected a tensor, got int"):
        torch._dynamo.mark_static(3)


def test_a_size_that_may_vary_and_one_that_must():
    def fixes(x):
        return x * 2 if x.shape[0] == 3 else x * 3

    for mark in (torch._dynamo.maybe_mark_dynamic, torch._dynamo.mark_dynamic):
        x = torch.ones(3, 2)
        mark(x, 0)
        compiled = torch.compile(fixes, backend="eager")
        if mark is torch._dynamo.mark_dynamic:
            with pytest.raises(RuntimeError, match="mark_dynamic: dim 0 of x"):
                compiled(x)
        else:
            assert torch.equal(compiled(x), x * 2)
    backend = Counting()
    compiled = torch.compile(double, backend=backend)
    for rows in (3, 4):
        x = torch.ones(rows, 2)
        torch._dynamo.maybe_mark_dynamic(x, 0)
        compiled(x)
    assert backend.count == 1


def test_constant_results_are_asked_for_once():
    asked = []

    @torch._dynamo.assume_constant_result
    def settings(name):
        asked.append(name)
        with open(__file__):  # what no graph can hold
            return {"width": (len(asked), "a")}

    @torch.compiler.assume_constant_result
    def table():
        return torch.arange(3.0)

    @torch.compile(fullgraph=True, backend="eager")
    def f(x):
        return x * settings("w")["width"][0] + table()

    for _ in range(3):
        assert f(X).tolist() == [1, 3, 5]
    assert asked == ["w"]
    with pytest.raises(TypeError, match="expected a function, got int"):
        torch.compiler.assume_constant_result(3)


def test_ends_of_graphs_as_errors_in_a_block():
    def f(x):
        with torch._dynamo.error_on_graph_break(True):
            y = x + 1
            print(end="")
        return y

    with pytest.raises(RuntimeError, match="error_on_graph_break: a call of print"):
        torch.compile(f, backend="eager")(X)
    assert f(X).tolist() == [2, 3, 4]

    @torch._dynamo.error_on_graph_break(True)
    def inner(x):
        with torch._dynamo.error_on_graph_break(False):
            print(end="")
        return x + 1

    assert torch.compile(inner, backend="eager")(X).tolist() == [2, 3, 4]

    def after(x):
        with torch._dynamo.error_on_graph_break(True):
            y = x + 1
        print(end="")
        return y * 2

    assert torch.compile(after, backend="eager")(X).tolist() == [4, 6, 8]


def test_a_nested_region_is_the_function_itself():
    @torch.compiler.nested_compile_region
    def layer(x):
        return x.sin()

    compiled = torch.compile(lambda x: layer(layer(x)), fullgraph=True)
    assert torch.allclose(compiled(X), X.sin().sin())
    with pytest.raises(NotImplementedError, match="no options of its own"):
        torch.compiler.nested_compile_region(layer, options={})
