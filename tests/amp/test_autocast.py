"""The autocast context: what it sets, nests, restores."""

import pytest

import flambeau as fb
from flambeau.amp import autocast, custom_bwd, custom_fwd, is_autocast_available


def state():
    return (
        fb.is_autocast_enabled("cpu"),
        fb.get_autocast_dtype("cpu"),
        fb.is_autocast_cache_enabled(),
    )


def test_contexts_nest_and_restore():
    before = state()
    with autocast("cpu"):
        assert state() == (True, fb.bfloat16, True)
        with autocast("cpu", enabled=False, cache_enabled=False):
            assert state() == (False, fb.bfloat16, False)
        with autocast("cpu", dtype=fb.float16):
            assert state()[1] == fb.float16
        assert state() == (True, fb.bfloat16, True)
    assert state() == before


def test_one_instance_may_be_entered_again_inside_itself():
    before, context = state(), autocast("cpu")
    with context, context:
        assert fb.is_autocast_enabled("cpu")
    assert state() == before


def test_restores_after_an_exception():
    before = state()
    with pytest.raises(KeyError), autocast("cpu"):
        raise KeyError
    assert state() == before


def test_products_run_in_the_fast_dtype_and_gradients_come_back():
    x = fb.ones(2, 2).requires_grad_()
    with autocast("cpu"):
        y = fb.mm(x, x)
    assert y.dtype == fb.bfloat16 and fb.mm(x, x).dtype == fb.float32
    y.float().sum().backward()
    assert x.grad.dtype == fb.float32 and x.grad.tolist() == [[4, 4], [4, 4]]


def test_decorator():
    @autocast("cpu")
    def inside():
        return fb.is_autocast_enabled("cpu")

    assert inside() and not fb.is_autocast_enabled("cpu")
    assert inside.__name__ == "inside"


def test_unsupported_dtype_disables_with_a_warning():
    with pytest.warns(UserWarning, match="target dtype is not supported"):
        context = autocast("cpu", dtype=fb.float64)
    with context:
        assert not fb.is_autocast_enabled("cpu")


def test_wrong_device_types():
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        autocast(3)
    with pytest.raises(RuntimeError):
        autocast("toaster")
    assert is_autocast_available("cpu")


def test_custom_functions_see_the_same_state_forward_and_backward():
    seen = []

    class Square(fb.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu", cast_inputs=fb.float32)
        def forward(ctx, x):
            seen.append((x.dtype, fb.is_autocast_enabled("cpu")))
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            seen.append(fb.is_autocast_enabled("cpu"))
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    x = fb.ones(2, dtype=fb.bfloat16).requires_grad_()
    with autocast("cpu"):
        y = Square.apply(x)
        y.sum().backward()
    assert seen == [(fb.float32, False), False]
    assert x.grad.tolist() == [2, 2]
