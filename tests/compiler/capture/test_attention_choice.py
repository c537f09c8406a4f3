"""The choice among implementations of attention in compiled code: chosen around it or inside, it
is followed, a change compiles anew, and the formula is not fused where it was asked for. Eager
calls are the reference, and the entries that the functional graph calls say what runs."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._aot import aot
from flambeau.nn.attention import SDPBackend, _cur_sdpa_kernel_backends, sdpa_kernel

F = torch.nn.functional
FLASH, MATH = SDPBackend.FLASH_ATTENTION, SDPBackend.MATH
BACK_ENDS = ("eager", "aot_eager", "inductor")


@pytest.fixture(autouse=True)
def _fresh():
    torch.compiler.reset()
    before = _cur_sdpa_kernel_backends(with_priority=True)
    yield
    assert _cur_sdpa_kernel_backends(with_priority=True) == before


def tensors(dtype=torch.float64):
    torch.manual_seed(3)
    return [torch.randn(2, 3, n, 8, dtype=dtype, requires_grad=True) for n in (4, 5, 5)]


def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def by_hand(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / 8**0.5, -1) @ v


def targets(compiled, part=-1):
    """The entries that a compiled part calls, forward."""
    graph = compiled._flambeau_config.parts[part].graph
    made = aot(graph, [True] * len(graph.inputs))
    return [n.target for n in made.forward.nodes]


def ran(compiled, part=-1):
    called = targets(compiled, part)
    assert ("_attention" in called) != ("softmax" in called)
    return FLASH if "_attention" in called else MATH


def agree(compiled, f, inputs):
    got, wanted = compiled(*inputs), f(*inputs)
    assert torch.allclose(got, wanted, atol=1e-12)
    pairs = [torch.autograd.grad(y.sin().sum(), inputs) for y in (got, wanted)]
    for a, b in zip(*pairs, strict=True):
        assert torch.allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("backend", BACK_ENDS)
def test_the_choice_of_the_call(backend):
    compiled = torch.compile(attend, backend=backend, fullgraph=True)
    inputs = tensors()
    for _ in range(2):
        agree(compiled, attend, inputs)
        for choice in (MATH, FLASH):
            with sdpa_kernel(choice):
                agree(compiled, attend, inputs)
    assert [ran(compiled, k) for k in range(3)] == [FLASH, MATH, FLASH]
    parts = compiled._flambeau_config.parts
    assert len(parts) == 3
    assert "implementations of attention" in parts[1].because


@pytest.mark.parametrize("backend", BACK_ENDS)
def test_a_choice_inside(backend):
    def f(q, k, v):
        with sdpa_kernel(MATH):
            a = F.scaled_dot_product_attention(q, k, v)
        return a + F.scaled_dot_product_attention(q, k, v).cos()

    compiled = torch.compile(f, backend=backend, fullgraph=True)
    inputs = tensors()
    agree(compiled, f, inputs)
    called = targets(compiled)
    assert called.count("_attention") == called.count("softmax") == 1
    with sdpa_kernel(MATH):
        agree(compiled, f, inputs)
        called = targets(compiled)
        assert "_attention" not in called


@pytest.mark.parametrize("backend", BACK_ENDS)
def test_the_usual_choice_inside_another(backend):
    everything = _cur_sdpa_kernel_backends()

    def f(q, k, v):
        with sdpa_kernel(everything):
            return F.scaled_dot_product_attention(q, k, v)

    compiled = torch.compile(f, backend=backend, fullgraph=True)
    with sdpa_kernel(MATH):
        agree(compiled, f, tensors())
        assert ran(compiled) == FLASH


def test_a_formula_of_the_program_is_fused_beside_one_that_was_asked_for():
    def f(q, k, v):
        with sdpa_kernel(MATH):
            a = F.scaled_dot_product_attention(q, k, v)
        return a + by_hand(q.sin(), k, v)

    compiled = torch.compile(f, backend="aot_eager", fullgraph=True)
    agree(compiled, f, tensors())
    called = targets(compiled)
    assert called.count("_attention") == called.count("softmax") == 1


def test_decorators_switches_and_graph_breaks():
    @sdpa_kernel(MATH)
    def plain(q, k, v):
        return F.scaled_dot_product_attention(q, k, v)

    def f(q, k, v):
        torch.backends.cuda.enable_flash_sdp(False)
        a = F.scaled_dot_product_attention(q, k, v)
        torch.backends.cuda.enable_flash_sdp(True)
        return a + plain(q, k, v)

    compiled = torch.compile(f, backend="aot_eager", fullgraph=True)
    agree(compiled, f, tensors())
    assert "_attention" not in targets(compiled)

    seen = []

    def g(q, k, v):
        with sdpa_kernel(MATH):
            a = q + 1
            torch.compiler.disable(lambda: seen.append(_cur_sdpa_kernel_backends()))()
            return F.scaled_dot_product_attention(a, k, v)

    compiled = torch.compile(g, backend="aot_eager")
    agree(compiled, g, tensors())
    assert seen == [[MATH]] * 2
    assert ran(compiled) == MATH


def test_a_switch_that_stays():
    def f(q, k, v):
        torch.backends.cuda.enable_flash_sdp(False)
        return F.scaled_dot_product_attention(q, k, v)

    compiled = torch.compile(f, backend="eager", fullgraph=True)
    for _ in range(2):
        compiled(*tensors())
        assert not torch.backends.cuda.flash_sdp_enabled()
        torch.backends.cuda.enable_flash_sdp(True)


def test_what_cannot_be_done():
    def f(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)

    with sdpa_kernel(FLASH):
        with pytest.raises(RuntimeError, match="No available kernel"):
            torch.compile(f, backend="eager")(*tensors())
        with pytest.raises(RuntimeError, match="No available kernel"):
            torch.compile(f, backend="eager", fullgraph=True)(*tensors())


def test_autocast_and_half():
    def f(q, k, v):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return F.scaled_dot_product_attention(q, k, v)

    compiled = torch.compile(f, backend="aot_eager", fullgraph=True)
    for choice in (FLASH, MATH):
        with sdpa_kernel(choice):
            got, wanted = compiled(*tensors(torch.float32)), f(*tensors(torch.float32))
        assert got.dtype == torch.bfloat16 and torch.allclose(got, wanted, atol=1e-2)
        assert ran(compiled) == choice


def test_layers_and_given_back_ends():
    layer = torch.nn.MultiheadAttention(8, 2, batch_first=True).double()
    modules = []

    def backend(module, inputs):
        modules.append((module, inputs))
        return module

    f = torch.compile(lambda x: layer(x, x, x, need_weights=False)[0], backend=backend)
    x = torch.randn(2, 4, 8, dtype=torch.float64)
    with sdpa_kernel(MATH):
        wanted = layer(x, x, x, need_weights=False)[0]
        assert torch.allclose(f(x), wanted, atol=1e-12)
    with sdpa_kernel([]):  # what is compiled has made its choice
        ((module, inputs),) = modules
        assert torch.allclose(module(*inputs)[0], wanted, atol=1e-12)
