"""The choice among implementations of attention: values against NumPy, what ran by the graph of
autograd, what no implementation can do, and that a choice ends with its block and its thread."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest
from scipy.special import softmax

import flambeau as fb
from flambeau import nn
from flambeau.nn.attention import SDPBackend, _cur_sdpa_kernel_backends, sdpa_kernel

F = nn.functional
cuda = fb.backends.cuda
FLASH, MATH = SDPBackend.FLASH_ATTENTION, SDPBackend.MATH
OTHERS = (SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.OVERRIDEABLE)
FLAGS = ("flash", "mem_efficient", "math", "cudnn")


@pytest.fixture(autouse=True)
def _restored():
    before = _cur_sdpa_kernel_backends(with_priority=True)
    yield
    assert _cur_sdpa_kernel_backends(with_priority=True) == before


def tensors(query=(2, 3, 4, 8), key=(2, 3, 5, 8), value=None, dtype=fb.float64):
    fb.manual_seed(3)
    shapes = (query, key, value or key)
    return [fb.randn(s, dtype=dtype, requires_grad=True) for s in shapes]


def formula(q, k, v, mask=0.0):
    """Attention in NumPy."""
    q, k, v = (x.detach().numpy() for x in (q, k, v))
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + mask, axis=-1) @ v


def ran(y):
    """Which implementation a result comes from."""
    seen, todo = set(), [y.grad_fn]
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            todo += [n for n, _ in node.next_functions]
    names = {n.name() for n in seen}
    assert ("AttentionBackward0" in names) != ("SoftmaxBackward0" in names)
    return FLASH if "AttentionBackward0" in names else MATH


@pytest.mark.parametrize("backend", [FLASH, MATH])
@pytest.mark.parametrize("case", ["plain", "causal", "mask", "grouped", "three"])
def test_each_choice_is_the_formula_and_is_what_runs(backend, case):
    q, k, v = tensors()
    mask, given = 0.0, {}
    if case == "causal":
        mask = np.triu(np.full((4, 5), -np.inf), 1)
        given = {"is_causal": True}
    elif case == "mask":
        given = {"attn_mask": fb.randn(4, 5, dtype=fb.float64)}
        mask = given["attn_mask"].numpy()
    elif case == "grouped":
        q, k, v = tensors((2, 6, 4, 8))
        given = {"enable_gqa": True}
    elif case == "three":
        q, k, v = tensors((3, 4, 8), (3, 5, 8))
    wide = [x.detach().repeat_interleave(2, 1) for x in (k, v)] if case == "grouped" else (k, v)
    with sdpa_kernel(backend):
        y = F.scaled_dot_product_attention(q, k, v, **given)
    np.testing.assert_allclose(y.detach().numpy(), formula(q, *wide, mask), atol=1e-12)
    assert ran(y) == backend
    got = fb.autograd.grad(y.sin().sum(), [q, k, v])
    usual = F.scaled_dot_product_attention(q, k, v, **given)
    assert ran(usual) == FLASH
    for a, b in zip(got, fb.autograd.grad(usual.sin().sum(), [q, k, v]), strict=True):
        assert fb.allclose(a, b, atol=1e-12)


def test_the_kernel_where_it_applies_and_the_formula_elsewhere():
    q, k, v = tensors()
    with sdpa_kernel([FLASH, MATH]):
        assert ran(F.scaled_dot_product_attention(q, k, v)) == FLASH
        assert ran(F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)) == MATH
    with sdpa_kernel([MATH, FLASH]):
        assert ran(F.scaled_dot_product_attention(q, k, v)) == FLASH
    for other in OTHERS:  # which no CPU has
        with sdpa_kernel([other, MATH]):
            assert ran(F.scaled_dot_product_attention(q, k, v)) == MATH


def test_the_order_is_a_priority_where_that_is_asked_for():
    q, k, v = tensors()
    with sdpa_kernel([MATH, FLASH], set_priority=True):
        assert _cur_sdpa_kernel_backends(with_priority=True) == [MATH, FLASH]
        assert ran(F.scaled_dot_product_attention(q, k, v)) == MATH
        with sdpa_kernel(FLASH), sdpa_kernel([FLASH, MATH]):  # they keep the order
            assert ran(F.scaled_dot_product_attention(q, k, v)) == MATH
        with sdpa_kernel([FLASH, MATH], set_priority=True):
            assert ran(F.scaled_dot_product_attention(q, k, v)) == FLASH
    with sdpa_kernel(MATH), sdpa_kernel([MATH, FLASH]):
        assert _cur_sdpa_kernel_backends(with_priority=True) == [FLASH, MATH]
        assert ran(F.scaled_dot_product_attention(q, k, v)) == FLASH


@pytest.mark.parametrize("wanted", [[], SDPBackend.ERROR, *OTHERS, list(OTHERS)])
def test_no_implementation_is_an_error(wanted):
    q, k, v = tensors()
    with sdpa_kernel(wanted), pytest.raises(RuntimeError) as e:
        F.scaled_dot_product_attention(q, k, v)
    assert str(e.value) == (
        "scaled_dot_product_attention: No viable backend: expected FLASH_ATTENTION or MATH, which "
        "there are on cpu, among those that are allowed; see torch.nn.attention.sdpa_kernel"
    )


def _cases():
    five = tensors((1, 2, 3, 4, 8), (1, 2, 3, 5, 8))
    mask = fb.zeros(4, 5, dtype=fb.float64, requires_grad=True)
    shapes = "got query [1, 2, 3, 4, 8], key [1, 2, 3, 5, 8], value [1, 2, 3, 5, 8]"
    apart = "got query [1, 3, 4, 8], key [2, 3, 5, 8], value [2, 3, 5, 8]"
    dims = "3 or 4 dims and the same batch and heads, "
    three = tensors((3, 4, 8), (3, 5, 8))
    third = {"attn_mask": fb.zeros(3, 4, 5, dtype=fb.float64)}
    return {
        "dropout": (tensors(), {"dropout_p": 0.5}, "no dropout, got dropout_p=0.5"),
        "mask": (tensors(), {"attn_mask": mask}, "an attn_mask that requires no grad"),
        "complex": (tensors(dtype=fb.complex64), {}, "real tensors, got torch.complex64"),
        "five": (five, {}, dims + shapes),
        "broadcast": (tensors((1, 3, 4, 8)), {}, dims + apart),
        "mask of three": (
            three,
            third,
            "an attn_mask of 2 dims or as many as query, got [3, 4, 5] for query [3, 4, 8]",
        ),
    }


@pytest.mark.parametrize("case", list(_cases()))
def test_what_the_kernel_cannot_do_is_an_error(case):
    given, options, reason = _cases()[case]
    with sdpa_kernel([FLASH, *OTHERS]), pytest.raises(RuntimeError) as e:
        F.scaled_dot_product_attention(*given, **options)
    start = "scaled_dot_product_attention: No available kernel: MATH is not allowed, and "
    assert str(e.value) == f"{start}FLASH_ATTENTION expects {reason}"
    if case != "complex":  # of which there is no softmax
        with sdpa_kernel([FLASH, MATH]):
            assert ran(F.scaled_dot_product_attention(*given, **options)) == MATH


def test_values_that_differ_in_size_take_the_kernel():
    q, k, v = tensors(value=(2, 3, 5, 6))
    with sdpa_kernel(FLASH):
        y = F.scaled_dot_product_attention(q, k, v)
    np.testing.assert_allclose(y.detach().numpy(), formula(q, k, v), atol=1e-12)


@pytest.mark.parametrize("wanted", [[], FLASH, MATH, OTHERS[0]])
def test_nothing_to_compute_needs_no_implementation(wanted):
    with sdpa_kernel(wanted):
        for q, k in (((0, 3, 4, 8), (0, 3, 5, 8)), ((2, 3, 0, 8), (2, 3, 5, 8))):
            y = F.scaled_dot_product_attention(*tensors(q, k))
            assert y.shape == q and y.numel() == 0
        y = F.scaled_dot_product_attention(*tensors((2, 3, 4, 8), (2, 3, 0, 8)))
        assert y.shape == (2, 3, 4, 8) and not y.detach().numpy().any()
        meta = [x.detach().to("meta") for x in tensors()]
        assert F.scaled_dot_product_attention(*meta, dropout_p=0.5).shape == (2, 3, 4, 8)


def test_blocks_nest_and_end_with_exceptions():
    everything = _cur_sdpa_kernel_backends()
    with sdpa_kernel([FLASH, MATH]):
        with sdpa_kernel(MATH) as nothing:
            assert not nothing
            assert _cur_sdpa_kernel_backends() == [MATH]
        assert _cur_sdpa_kernel_backends() == [FLASH, MATH]
        with pytest.raises(ZeroDivisionError), sdpa_kernel(MATH):
            raise ZeroDivisionError
        assert _cur_sdpa_kernel_backends() == [FLASH, MATH]
    assert _cur_sdpa_kernel_backends() == everything
    again = sdpa_kernel(MATH)
    with again, sdpa_kernel(FLASH), again:
        assert _cur_sdpa_kernel_backends() == [MATH]


def test_a_decorator():
    q, k, v = tensors()

    @sdpa_kernel(MATH)
    def f(deep):
        return f(deep - 1) if deep else F.scaled_dot_product_attention(q, k, v)

    assert ran(f(2)) == MATH
    assert ran(F.scaled_dot_product_attention(q, k, v)) == FLASH


def test_threads_choose_for_themselves():
    q, k, v = tensors()
    found = []

    def other():
        found.append(ran(F.scaled_dot_product_attention(q, k, v)))
        cuda.enable_math_sdp(False)
        found.append(cuda.math_sdp_enabled())

    with sdpa_kernel(MATH):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert found == [FLASH, False]
        assert cuda.math_sdp_enabled()
        assert ran(F.scaled_dot_product_attention(q, k, v)) == MATH


@pytest.mark.parametrize("wanted", ["math", ("a",), (MATH,), None, 1, [1], [MATH, "x"]])
def test_what_is_no_backend(wanted):
    with pytest.raises(AssertionError, match="Backend must be an instance of SDPBackend"):
        with sdpa_kernel(wanted):
            pass


def test_switches_are_the_same_choice():
    q, k, v = tensors()
    assert [getattr(cuda, f"{n}_sdp_enabled")() for n in FLAGS] == [True] * 4
    with sdpa_kernel(MATH):
        assert [getattr(cuda, f"{n}_sdp_enabled")() for n in FLAGS] == [False, False, True, False]
        cuda.enable_flash_sdp(True)
        assert _cur_sdpa_kernel_backends(with_priority=True) == [FLASH, MATH]
        assert ran(F.scaled_dot_product_attention(q, k, v)) == FLASH
        cuda.enable_flash_sdp(False)
        assert ran(F.scaled_dot_product_attention(q, k, v)) == MATH
        cuda.enable_math_sdp(False)
        with pytest.raises(RuntimeError, match="No viable backend"):
            F.scaled_dot_product_attention(q, k, v)
        cuda.enable_mem_efficient_sdp(True)
        assert _cur_sdpa_kernel_backends() == [SDPBackend.EFFICIENT_ATTENTION]
    before = _cur_sdpa_kernel_backends(with_priority=True)
    for n in FLAGS:
        for enabled in (False, True):
            getattr(cuda, f"enable_{n}_sdp")(enabled)
            assert getattr(cuda, f"{n}_sdp_enabled")() is enabled
        assert _cur_sdpa_kernel_backends(with_priority=True) == before


def test_the_older_context():
    q, k, v = tensors()
    with pytest.warns(FutureWarning, match="sdpa_kernel"):
        context = cuda.sdp_kernel(enable_flash=False)
    with context:
        assert ran(F.scaled_dot_product_attention(q, k, v)) == MATH
    with pytest.warns(FutureWarning):
        context = cuda.sdp_kernel(enable_math=False)
    with context, pytest.raises(RuntimeError, match="no dropout"):
        F.scaled_dot_product_attention(q, k, v, dropout_p=0.1)


def test_what_is_said_of_gpus():
    x = fb.ones(1, 1, 2, 4)
    params = cuda.SDPAParams(x, x, x, None, 0.0, True, False)
    assert params.query is x and params.is_causal and not params.enable_gqa
    assert not cuda.can_use_flash_attention(params) and not cuda.is_flash_attention_available()
    assert not cuda.can_use_efficient_attention(params) and not cuda.can_use_cudnn_attention(params)
    assert cuda.SDPBackend is SDPBackend
    assert pickle.loads(pickle.dumps(MATH)) is MATH


def test_transforms_and_layers_follow():
    q, k, v = tensors((5, 2, 3, 4, 8), (5, 2, 3, 5, 8))
    batched = fb.vmap(F.scaled_dot_product_attention)
    layer = nn.MultiheadAttention(8, 2, batch_first=True).double()
    x = q.detach()[0, 0].requires_grad_()
    for backend in (FLASH, MATH):
        with sdpa_kernel(backend):
            y = batched(q, k, v)
            z, _ = layer(x, x, x, need_weights=False)
        assert ran(y) == ran(z) == backend
        np.testing.assert_allclose(y.detach().numpy(), formula(q, k, v), atol=1e-12)
    with sdpa_kernel(FLASH), pytest.raises(RuntimeError, match="No available kernel"):
        fb.func.grad(lambda m: F.scaled_dot_product_attention(q[0], k[0], v[0], m).sum())(
            fb.zeros(4, 5, dtype=fb.float64)
        )


def test_autocast_and_scripts_follow():
    q, k, v = tensors(dtype=fb.float32)
    scripted = fb.jit.script(_scripted)
    for backend in (FLASH, MATH):
        with sdpa_kernel(backend):
            with fb.autocast("cpu", dtype=fb.bfloat16):
                y = F.scaled_dot_product_attention(q, k, v)
            z = scripted(q, k, v)
        assert y.dtype == fb.bfloat16 and ran(y) == backend
        assert ran(z) == backend


def _scripted(q: fb.Tensor, k: fb.Tensor, v: fb.Tensor) -> fb.Tensor:
    return F.scaled_dot_product_attention(q, k, v)
