"""The public face: forms of compile, back ends, explain, disable, errors."""

from __future__ import annotations

import subprocess
import sys

import pytest

import flambeau as torch
from flambeau import nn


def test_call_decorator_and_module():
    @torch.compile(backend="eager")
    def f(x, k=1):
        """Docs."""
        return x + k

    assert f(torch.ones(2), k=2).tolist() == [3.0, 3.0]
    assert f.__name__ == "f" and f.__doc__ == "Docs."
    layer = nn.Linear(2, 2)
    compiled = torch.compile(layer, backend="eager")
    x = torch.ones(1, 2)
    assert torch.equal(compiled(x), layer(x))
    assert isinstance(compiled, nn.Module)
    assert list(compiled.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    assert [id(p) for p in compiled.parameters()] == [id(p) for p in layer.parameters()]
    compiled.eval()
    assert not layer.training
    assert compiled.in_features == 2
    layer.compile(backend="eager")
    assert torch.equal(layer(x), compiled(x))


def test_wrong_options():
    with pytest.raises(ValueError, match="expected backend to be one of"):
        torch.compile(lambda x: x, backend="nothing")
    with pytest.raises(ValueError, match="mode"):
        torch.compile(lambda x: x, backend="eager", mode="fastest")
    with pytest.raises(RuntimeError, match="mode or options"):
        torch.compile(lambda x: x, backend="eager", mode="default", options={})
    with pytest.raises(TypeError, match="function or a module"):
        torch.compile(3, backend="eager")
    f = lambda x: x  # noqa: E731
    assert torch.compile(f, disable=True) is f


def test_custom_back_end_sees_the_graph():
    seen = []

    def backend(graph, example_inputs):
        seen.append((graph, example_inputs))
        return graph.forward

    f = torch.compile(lambda x: x.sin() + 1, backend=backend)
    x = torch.ones(2)
    assert torch.equal(f(x), x.sin() + 1)
    ((graph, examples),) = seen
    assert isinstance(graph, torch.fx.GraphModule)
    targets = [n.target for n in graph.graph.nodes if n.op == "call_function"]
    assert targets == [torch.sin, torch.add]
    assert examples[0] is x


def test_registered_back_end():
    @torch.compiler.register_backend
    def my_test_backend(graph, example_inputs):
        return lambda *inputs: (torch.full((1,), 7.0),)

    assert "my_test_backend" in torch.compiler.list_backends()
    assert torch.compile(lambda x: x + 1, backend="my_test_backend")(torch.ones(1)).item() == 7
    with pytest.raises(ValueError, match="taken"):
        torch.compiler.register_backend(lambda g, e: None, name="eager")


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_back_ends_that_differentiate(backend):
    def f(x, w):
        return torch.tanh(x @ w).sum()

    x, w = torch.randn(3, 4), torch.randn(4, 2, requires_grad=True)
    compiled = torch.compile(f, backend=backend)
    compiled(x, w).backward()
    expected = torch.autograd.grad(f(x, w), w)[0]
    assert torch.allclose(w.grad, expected)


def test_disable():
    calls = []

    @torch.compiler.disable(reason="has side effects")
    def noted(x):
        calls.append(torch.compiler.is_compiling())
        return x + 1

    def f(x):
        return noted(x * 2) * 3

    compiled = torch.compile(f, backend="eager")
    for _ in range(3):
        assert compiled(torch.ones(1)).item() == 9
    assert calls == [False] * 3


def test_is_compiling_and_allow_in_graph():
    def f(x):
        return x + (1 if torch.compiler.is_compiling() else 2)

    assert torch.compile(f, backend="eager")(torch.zeros(1)).item() == 1
    assert f(torch.zeros(1)).item() == 2

    @torch.compiler.allow_in_graph
    def allowed(x):
        return x * 2

    g = torch.compile(lambda x: allowed(x) + 1, backend="eager", fullgraph=True)
    assert g(torch.ones(1)).item() == 3


def test_explain():
    def f(x):
        y = x.sin()
        print(end="")
        if y.sum() > 0:
            return y.cos()
        return y

    e = torch.compiler.explain(f)(torch.ones(2))
    assert e.graph_count >= 2 and e.graph_break_count == 2
    assert all("test_compile.py" in r for r in e.break_reasons)
    assert any("x is a torch.float32 tensor of shape [2]" in g for g in e.out_guards)
    assert "ends because of" in str(e)


def test_nested_compiled_functions():
    inner = torch.compile(lambda x: x * 2, backend="eager")

    def f(x):
        return inner(x) + 1

    assert torch.compile(f, backend="eager", fullgraph=True)(torch.ones(1)).item() == 3


def test_methods_and_partial_objects():
    class Model:
        def __init__(self):
            self.k = 3

        def run(self, x):
            return x * self.k

        @torch.compile(backend="eager")
        def compiled(self, x):
            return x + self.k

    m = Model()
    assert torch.compile(m.run, backend="eager")(torch.ones(1)).item() == 3
    assert m.compiled(torch.ones(1)).item() == 4


def test_logging(monkeypatch, capsys):
    monkeypatch.setenv("FLAMBEAU_LOGS", "graph_breaks,graph_code,recompiles")

    def f(x, word):
        print(end="")
        return x * len(word)

    compiled = torch.compile(f, backend="eager")
    compiled(torch.ones(1), "a")
    compiled(torch.ones(1), "bb")
    err = capsys.readouterr().err
    assert "[graph_breaks] " in err and "a call of print" in err
    assert "[graph_code] " in err and "mul" in err
    assert "[recompiles] " in err and "word == 'a'" in err


def test_import_is_lazy():
    code = (
        "import sys, flambeau; "
        "assert not [m for m in sys.modules if m.startswith(('flambeau._capture', "
        "'flambeau.compiler', 'flambeau._trace'))]; "
        "flambeau.compiler; assert 'flambeau._capture' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_of_being_compiled():
    def f(x):
        torch.compiler.cudagraph_mark_step_begin()
        flags = (
            torch.compiler.is_compiling(),
            torch.compiler.is_dynamo_compiling(),
            torch.compiler.is_exporting(),
            torch._dynamo.is_compiling(),
        )
        return x + sum(flags)

    assert torch.compile(f, backend="eager", fullgraph=True)(torch.zeros(1)).item() == 3
    assert f(torch.zeros(1)).item() == 0


def test_recompile_limit_is_a_switch(monkeypatch):
    monkeypatch.setattr(torch._dynamo.config, "recompile_limit", 2)

    def f(x, word):
        return x * len(word)

    compiled = torch.compile(f, backend="eager")
    compiled(torch.ones(1), "a")
    compiled(torch.ones(1), "bb")
    with pytest.warns(UserWarning, match=r"was compiled 2 times.*not so any more: word == ") as w:
        assert compiled(torch.ones(1), "ccc").item() == 3
    assert w[0].filename == __file__ and w[0].lineno == f.__code__.co_firstlineno


def test_reason_of_disable_is_told():
    @torch.compiler.disable(reason="talks to a server")
    def noted(x):
        return x

    e = torch.compiler.explain(lambda x: noted(x * 2) + 1)(torch.ones(1))
    assert "is disabled: talks to a server" in e.break_reasons[0]


def test_graph_break():
    def f(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    e = torch._dynamo.explain(f)(torch.ones(2))
    assert (e.graph_count, e.graph_break_count) == (2, 1)
    assert "graph_break is disabled" in e.break_reasons[0]
    assert f(torch.ones(2)).tolist() == torch.compile(f)(torch.ones(2)).tolist() == [4.0, 4.0]


@pytest.mark.parametrize("version", [(3, 10, 14), (3, 13, 0), (3, 14, 1)])
def test_other_pythons_are_refused_clearly(monkeypatch, version):
    monkeypatch.setattr(sys, "version_info", version)
    told = f"supported on CPython 3.11 and 3.12, this is {'.'.join(map(str, version))}"
    with pytest.raises(RuntimeError, match=told):
        torch.compile(lambda x: x + 1)
    assert torch.compile(nn.ReLU(), disable=True)(torch.ones(1)).item() == 1


def test_generated_code_is_listed_with_the_users_lines(monkeypatch, capsys):
    monkeypatch.setenv("FLAMBEAU_LOGS", "output_code")

    def f(x):
        y = torch.sin(x) + 1
        return y.sum(0)

    torch.compile(f)(torch.ones(4, 8))
    text = capsys.readouterr().err
    assert text.startswith("[output_code] // graph of primitives (%0: f32[4, 8])")
    line = f.__code__.co_firstlineno + 1
    assert f"// {__file__}:{line} in " in text and "//     y = torch.sin(x) + 1" in text
    assert text.index("y = torch.sin(x)") < text.index("return y.sum(0)") < text.index('extern "C"')


def test_back_end_of_primitive_graphs():
    seen: list[dict[str, set[str]]] = []

    def compiler(name):
        def compile(gm, examples):
            assert all(x.device.type == "meta" for x in examples)
            nodes = [n for n in gm.graph.nodes if n.op == "call_function"]
            seen[-1][name] = {n.target.__name__ for n in nodes}
            return torch._dynamo.backends.common.make_boxed_func(gm.forward)

        return compile

    make = torch._dynamo.backends.common.aot_autograd
    for written_out in (False, True):
        seen.append({})
        back_end = make(
            fw_compiler=compiler("forward"),
            bw_compiler=compiler("backward"),
            decompositions=written_out,
        )
        layer = nn.LayerNorm(4)
        x = torch.randn(3, 4, requires_grad=True)
        out = torch.compile(layer, backend=back_end)(x)
        assert torch.allclose(out, layer(x), atol=1e-6)
        out.sum().backward()
    fused, written = seen
    assert fused.keys() == written.keys() == {"forward", "backward"}
    assert "native_layer_norm" in fused["forward"]
    assert "native_layer_norm" not in written["forward"]


def test_substitutes_of_functions_of_c_code():
    import operator

    def count(xs, n):
        return operator.indexOf(xs, n)

    def index_of(a, b, /):
        for i, item in enumerate(a):
            if item is b or item == b:
                return i
        raise ValueError("not there")

    with pytest.raises(TypeError, match="expected the parameters"):
        torch.compiler.substitute_in_graph(operator.indexOf)(lambda a: 0)
    torch.compiler.substitute_in_graph(operator.indexOf)(index_of)
    with pytest.raises(ValueError, match="has a substitute"):
        torch.compiler.substitute_in_graph(operator.indexOf)
    f = torch.compile(lambda x, xs: x + count(xs, 2), fullgraph=True, backend="eager")
    assert f(torch.zeros(1), [1, 2, 3]).item() == 1
    assert f(torch.zeros(1), [2, 1, 3]).item() == 0


def test_the_default_back_end():
    ran = []

    def own(graph, inputs):
        ran.append(graph)
        return graph

    with pytest.raises(ValueError, match="expected backend to be one of"):
        torch.compiler.set_default_backend("nobody's")
    torch.compiler.set_default_backend(own)
    try:
        assert torch.compiler.get_default_backend() is own
        assert torch.compile(lambda x: x + 1)(torch.zeros(1)).item() == 1
        assert len(ran) == 1
    finally:
        torch.compiler.set_default_backend(None)
    assert torch.compiler.get_default_backend() == "inductor"


IN_PLACE = [
    "elu", "selu", "celu", "relu", "relu6", "leaky_relu", "silu", "mish", "hardswish",
    "hardsigmoid", "hardtanh", "threshold",
]  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_activations_in_place_keep_what_their_derivative_needs(name, backend):
    """Some have no method of that name: the graph calls the in-place form itself."""
    more = (0.1, 0.3) if name == "threshold" else ()

    def f(x):
        y = x * 2
        z = getattr(torch.nn.functional, name)(y, *more, inplace=True)
        return z * y

    x = torch.linspace(-3.1, 3.3, 20, dtype=torch.float64, requires_grad=True)
    results = []
    for call in (f, torch.compile(f, backend=backend, fullgraph=True)):
        y = call(x)
        results.append((y, *torch.autograd.grad(y.sum(), x)))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b)
