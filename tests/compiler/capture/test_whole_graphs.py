"""Programs that users write, as one graph: values and gradients are plain Python's, and a second
call on other data compiles nothing; or an error names the line and what to write instead."""

from __future__ import annotations

import warnings

import pytest

import flambeau as torch

from . import programs_whole_python, programs_whole_sizes, programs_whole_transforms

GROUPS = (programs_whole_python, programs_whole_transforms, programs_whole_sizes)
WHOLE = [f for g in GROUPS for f in g.WHOLE]
REFUSED = [pair for g in GROUPS for pair in g.REFUSED]


@pytest.fixture(autouse=True)
def _fresh():
    torch.compiler.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for v in value for t in tensors(v)] if isinstance(value, (list, tuple)) else []


def gradient(y, x):
    return torch.autograd.grad(y.sum(), x, retain_graph=True, allow_unused=True)[0]


def check(function, compiled, seed):
    torch.manual_seed(seed)
    x = torch.randn(3, 4, requires_grad=True)
    again = x.detach().clone().requires_grad_(True)
    torch.manual_seed(seed)
    wanted = tensors(function(x))
    torch.manual_seed(seed)
    got = tensors(compiled(again))
    assert len(wanted) == len(got)
    for a, b in zip(wanted, got, strict=True):
        assert a.shape == b.shape and a.dtype is b.dtype and a.requires_grad == b.requires_grad
        torch.testing.assert_close(b, a)
        if a.requires_grad:
            torch.testing.assert_close(gradient(b, again), gradient(a, x))


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("function", WHOLE, ids=lambda f: f.__name__)
def test_one_graph(function, backend):
    compiled = torch.compile(function, backend=backend, fullgraph=True)
    for seed in range(3):
        check(function, compiled, seed)
    assert len(compiled._flambeau_config.parts) == 1


@pytest.mark.parametrize("function, message", REFUSED, ids=lambda v: getattr(v, "__name__", ""))
def test_refused_by_name(function, message):
    with pytest.raises(torch._dynamo.exc.Unsupported, match=message) as found:
        torch.compile(function, backend="eager", fullgraph=True)(torch.randn(3, 4))
    assert f"in {function.__qualname__}" in str(found.value)


def test_an_attribute_of_a_tensor_from_outside():
    def body(x):
        x.count = getattr(x, "count", 0) + 1
        return x * x.count

    compiled = torch.compile(body, backend="eager", fullgraph=True)
    x = torch.ones(2)
    assert [compiled(x).sum().item() for _ in range(3)] == [2, 4, 6] and x.count == 3


def test_an_attribute_of_a_result_is_new_in_each_call():
    def body(x):
        y, z = x + 1, x * 2
        y.other, z.items = z, [1]
        return y

    compiled = torch.compile(body, backend="eager", fullgraph=True)
    a, b = compiled(torch.ones(2)), compiled(torch.ones(2))
    assert a.other is not b.other and a.other.items is not b.other.items
    assert a.other.tolist() == [2, 2] and a.other.items == [1]


def test_a_registration_of_single_dispatch_is_noticed():
    import functools

    @functools.singledispatch
    def scale(v):
        return 1

    class Own:
        pass

    compiled = torch.compile(lambda x, v: x * scale(v), backend="eager", fullgraph=True)
    x, own = torch.ones(2), Own()
    assert compiled(x, own).tolist() == [1, 1]
    scale.register(Own, lambda v: 5)
    assert compiled(x, own).tolist() == [5, 5]


def test_context_variables_are_guarded_and_set():
    import contextvars

    depth = contextvars.ContextVar("depth", default=2)

    def body(x):
        token = depth.set(depth.get() + 1)
        y = x * depth.get()
        depth.reset(token)
        depth.set(7)
        return y

    compiled = torch.compile(body, backend="eager", fullgraph=True)

    def in_context(*values):
        for v in values:
            depth.set(v)
        return compiled(torch.ones(1)).item(), depth.get()

    for values, wanted in (((), (3, 7)), ((4,), (5, 7)), ((), (3, 7)), ((9, 1), (2, 7))):
        assert contextvars.Context().run(in_context, *values) == wanted


def test_a_class_made_inside_does_not_leave():
    compiled = torch.compile(
        lambda x: (type("K", (), {})(), x + 1), backend="eager", fullgraph=True
    )
    with pytest.raises(torch._dynamo.exc.Unsupported, match="the class K, made in compiled code"):
        compiled(torch.ones(2))


def test_regions_over_sizes_that_vary():
    from flambeau.func import grad, vmap

    def body(x, w):
        y = vmap(grad(lambda v: (v * w).sin().sum()))(x)
        return torch.cond(y.sum() > 0, lambda a: a * 2, lambda a: a - w, (y,))

    compiled = torch.compile(body, fullgraph=True, dynamic=True)
    for n in (3, 5, 8):
        x, w = torch.randn(n, n + 1), torch.randn(n + 1)
        torch.testing.assert_close(compiled(x, w), body(x, w))
    assert len(compiled._flambeau_config.parts) == 1


def test_the_text_and_the_rules_of_a_region():
    from flambeau._ir.graph_verify import verify

    seen = []

    def back_end(module, example_inputs):
        seen.append(module)
        return module

    def body(x):
        return torch.cond(x.sum() > 0, lambda: x.sin(), lambda: torch.func.vmap(torch.cos)(x))

    compiled = torch.compile(body, backend=back_end, fullgraph=True)
    x = torch.tensor([[1.0, -3.0]])
    assert compiled(x).tolist() == body(x).tolist() and len(seen) == 1
    graph = compiled._flambeau_config.parts[0].graph
    assert "region.cond" in str(graph) and "then(" in str(graph)
    verify(graph, "captured")


def test_a_branch_is_chosen_in_each_call_with_the_parameters_of_the_moment():
    model = torch.nn.Linear(2, 2)

    @torch.compile(fullgraph=True)
    def body(x):
        return torch.cond(x.sum() > 0, model, lambda v: v * 3, (x,))

    x = torch.ones(1, 2)
    body(x).sum().backward()
    assert model.weight.grad.tolist() == [[1, 1], [1, 1]]
    with torch.no_grad():
        model.weight.zero_()
    assert torch.equal(body(x)[0], model.bias) and body(-x).tolist() == [[-3, -3]]


def test_without_fullgraph_a_condition_ends_the_graph():
    def body(x):
        return torch.cond(x.sum() > 0, lambda: x.sin(), lambda: x.cos())

    assert torch.compiler.explain(body)(torch.ones(2)).graph_break_count == 1


@pytest.mark.parametrize("function", programs_whole_sizes.SIZED, ids=lambda f: f.__name__)
def test_a_number_as_a_size_begins_a_second_graph(function):
    compiled = torch.compile(function, fullgraph=True)
    for seed in range(12):
        check(function, compiled, seed)
    assert len(compiled._flambeau_config.parts) <= 6  # 0, 1, one other size, and any


@pytest.mark.parametrize("x", [[-1.0, -2.0], [1.0, -2.0], [1.0, 2.0]])
def test_results_without_or_with_one_element(x):
    def body(x):
        y = x[x > 0]
        return y * 2, y.shape[0], y.sum() / max(y.numel(), 1), torch.cat([y, x])

    compiled = torch.compile(body, fullgraph=True)
    compiled(torch.tensor([3.0, 4.0, -1.0]))
    got, wanted = compiled(torch.tensor(x)), body(torch.tensor(x))
    assert [v.tolist() if isinstance(v, torch.Tensor) else v for v in got] == [
        v.tolist() if isinstance(v, torch.Tensor) else v for v in wanted
    ]


def test_a_shape_that_is_not_what_the_graph_holds():
    compiled = torch.compile(lambda x: x[x > 0].squeeze() + x, fullgraph=True)
    x = torch.tensor([1.0, 2.0])
    assert compiled(x).tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="gives the shape .* where the graph holds"):
        compiled(torch.tensor([1.0, -2.0]))


def test_sizes_of_a_run_beside_sizes_that_vary():
    def body(x, w):
        rows = x[x[:, 0] > 0]
        rows[rows[:, 1] > 0] = 0
        return rows @ w, rows.shape[0] + x.shape[0]

    compiled = torch.compile(body, fullgraph=True, dynamic=True)
    for n in (4, 6, 9):
        torch.manual_seed(n)
        x, w = torch.randn(n, n + 1), torch.randn(n + 1, 2)
        got, wanted = compiled(x, w), body(x, w)
        torch.testing.assert_close(got[0], wanted[0])
        assert got[1] == wanted[1]
    assert len(compiled._flambeau_config.parts) == 1


def test_strides_of_what_transforms_give():
    from flambeau.func import hessian, jacfwd, vmap

    def body(x):
        y = vmap(lambda v: v * 2, out_dims=1)(x)
        return (
            y,
            vmap(hessian(lambda v: v.prod()))(x),
            jacfwd(torch.sin)(x),
            y.contiguous().view(-1),
        )

    compiled = torch.compile(body, fullgraph=True)
    x = torch.randn(3, 4)
    for a, b in zip(body(x), compiled(x), strict=True):
        assert a.stride() == b.stride()
        torch.testing.assert_close(b, a)


def test_a_signature_does_not_depend_on_other_globals():
    import inspect

    names = {"inspect": inspect, "count": 0}
    text = "def scaled(x, by: int = 2): pass\n"
    text += "def body(x): return x * len(inspect.signature(scaled).parameters)"
    exec(text, names)
    compiled = torch.compile(names["body"], backend="eager", fullgraph=True)
    for _ in range(3):
        names["count"] += 1
        assert compiled(torch.ones(1)).item() == 2
    assert len(compiled._flambeau_config.parts) == 1
