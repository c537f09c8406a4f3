"""What autocast does to operations: the dtypes they run in, gradients through casts, the cache."""

import pytest

import flambeau as fb
import flambeau.nn.functional as F
from flambeau.amp import autocast

BF16, F16, F32, F64 = fb.bfloat16, fb.float16, fb.float32, fb.float64


def m(*shape, dtype=F32):
    return fb.arange(1.0, 1.0 + fb.empty(shape).numel()).reshape(shape).to(dtype) / 8


LOWER = {
    "matmul": lambda: m(2, 3) @ m(3, 2),
    "matmul_vector": lambda: m(2, 3) @ m(3),
    "mm": lambda: fb.mm(m(2, 3), m(3, 2)),
    "bmm": lambda: fb.bmm(m(2, 2, 3), m(2, 3, 2)),
    "addmm": lambda: fb.addmm(m(2, 2), m(2, 3), m(3, 2)),
    "addbmm": lambda: fb.addbmm(m(2, 2), m(2, 2, 3), m(2, 3, 2)),
    "baddbmm": lambda: fb.baddbmm(m(2, 2, 2), m(2, 2, 3), m(2, 3, 2)),
    "linear": lambda: F.linear(m(2, 3), m(4, 3), m(4)),
    "conv1d": lambda: F.conv1d(m(1, 2, 5), m(3, 2, 2)),
    "conv2d": lambda: F.conv2d(m(1, 2, 4, 4), m(3, 2, 2, 2), m(3)),
    "conv2d_same": lambda: F.conv2d(m(1, 2, 4, 4), m(3, 2, 3, 3), padding="same"),
    "conv3d": lambda: F.conv3d(m(1, 1, 2, 2, 2), m(1, 1, 2, 2, 2)),
    "conv_transpose2d": lambda: F.conv_transpose2d(m(1, 2, 3, 3), m(2, 1, 2, 2)),
    "prelu": lambda: F.prelu(m(2, 3), m(1)),
    "attention": lambda: F.scaled_dot_product_attention(
        m(1, 2, 3, 4), m(1, 2, 3, 4), m(1, 2, 3, 4)
    ),
    "mixed": lambda: fb.mm(m(2, 3, dtype=BF16), m(3, 2)),
}
FLOAT32 = {
    "mse_loss": lambda x: F.mse_loss(x, x * 0),
    "l1_loss": lambda x: F.l1_loss(x, x * 0),
    "cross_entropy": lambda x: F.cross_entropy(x, fb.tensor([0, 1])),
    "nll_loss": lambda x: F.nll_loss(x, fb.tensor([0, 1])),
    "bce_with_logits": lambda x: F.binary_cross_entropy_with_logits(x, x * 0),
    "prod": lambda x: x.prod(),
    "prod_dim": lambda x: x.prod(1),
    "cdist": lambda x: fb.cdist(x, x),
    "trace": lambda x: x.trace(),
    "inverse": lambda x: fb.linalg.inv(x + 2 * fb.eye(2, dtype=x.dtype)),
    "quantile": lambda x: fb.quantile(x, 0.5),
}


@pytest.mark.parametrize("name", LOWER)
def test_products_run_in_the_lower_dtype(name):
    plain = LOWER[name]
    for dtype in (BF16, F16):
        with autocast("cpu", dtype=dtype):
            if name == "mixed" and dtype == F16:
                continue
            assert plain().dtype == dtype
    if name != "mixed":
        exact = plain()
        assert exact.dtype == F32
        with autocast("cpu"):
            close = plain().float()
        assert fb.allclose(close, exact, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("name", FLOAT32)
def test_losses_and_their_kin_run_in_float32(name):
    x = m(2, 2, dtype=BF16)
    with autocast("cpu"):
        assert FLOAT32[name](x).dtype == F32


def test_the_widest_dtype_of_what_is_joined():
    a, b = m(2, dtype=BF16), m(2)
    with autocast("cpu"):
        assert fb.cat([a, b]).dtype == F32
        assert fb.stack([a, b]).dtype == F32
        assert fb.cat([a, a]).dtype == BF16
        assert fb.index_copy(b, 0, fb.tensor([0, 1]), a).dtype == F32


def test_other_operations_run_as_they_are_given():
    with autocast("cpu"):
        assert (m(2) + 1).dtype == m(2).softmax(0).dtype == m(2).sum().dtype == F32
        assert F.layer_norm(m(2, dtype=BF16), (2,)).dtype == BF16


def test_float64_integers_and_the_rest_of_a_call_are_left_alone():
    with autocast("cpu"):
        assert fb.mm(m(2, 2, dtype=F64), m(2, 2, dtype=F64)).dtype == F64
        assert fb.mm(m(2, 2).long(), m(2, 2).long()).dtype == fb.int64


def test_disabled_inside_and_out():
    x = m(2, 2)
    with autocast("cpu"):
        with autocast("cpu", enabled=False):
            assert fb.mm(x, x).dtype == F32
        assert fb.mm(x, x).dtype == BF16
        with autocast("cpu", dtype=F16):
            assert fb.mm(x, x).dtype == F16
        assert fb.mm(x, x).dtype == BF16
    with autocast("cpu", enabled=False):
        assert fb.mm(x, x).dtype == F32
    assert fb.mm(x, x).dtype == F32


def test_in_place_and_out_forms_are_left_alone():
    x, y = m(2, 2), m(2, 2)
    want = fb.addmm(y, x, x)
    with autocast("cpu"):
        y.addmm_(x, x)
        out = fb.empty(2, 2)
        fb.mm(x, x, out=out)
    assert fb.equal(y, want) and fb.equal(out, fb.mm(x, x))


def test_gradients_come_back_in_the_dtype_of_the_leaf():
    w = m(3, 2).requires_grad_()
    x = m(4, 3)
    with autocast("cpu"):
        loss = F.mse_loss(F.linear(x, w.t()).relu(), fb.ones(4, 2))
    loss.backward()
    reference = w.detach().clone().requires_grad_()
    F.mse_loss(F.linear(x, reference.t()).relu(), fb.ones(4, 2)).backward()
    assert w.grad.dtype == F32 and fb.allclose(w.grad, reference.grad, rtol=3e-2, atol=3e-2)


def test_a_weight_is_cast_once():
    w = m(3, 3).requires_grad_()

    def cast_of(y):
        return y.grad_fn.next_functions[1][0]

    with autocast("cpu"):
        a, b = fb.mm(m(3, 3), w), fb.mm(m(3, 3), w)
        assert cast_of(a) is cast_of(b)
        with fb.no_grad():
            w.mul_(2)
        c = fb.mm(m(3, 3), w)
        assert cast_of(c) is not cast_of(a)
        assert fb.allclose(c.float(), fb.mm(m(3, 3), w.detach()).float())
    with autocast("cpu", cache_enabled=False):
        assert cast_of(fb.mm(m(3, 3), w)) is not cast_of(fb.mm(m(3, 3), w))
    (a.sum() + b.sum()).float().backward()
    assert w.grad.shape == (3, 3)


def test_a_weight_cast_without_gradients_is_cast_again_for_them():
    w = m(3, 3).requires_grad_()
    with autocast("cpu"):
        with fb.no_grad():
            fb.mm(m(3, 3), w)
        assert fb.mm(m(3, 3), w).requires_grad


def test_modules_train():
    fb.manual_seed(0)
    net = fb.nn.Sequential(
        fb.nn.Conv2d(1, 4, 3), fb.nn.BatchNorm2d(4), fb.nn.ReLU(), fb.nn.Flatten(),
        fb.nn.Linear(16, 2),
    )  # fmt: skip
    step = fb.optim.SGD(net.parameters(), lr=0.1)
    x, y = fb.randn(8, 1, 4, 4), fb.randint(0, 2, (8,))
    losses = []
    for _ in range(20):
        step.zero_grad()
        with fb.autocast("cpu", dtype=BF16):
            out = net(x)
            loss = F.cross_entropy(out, y)
        assert out.dtype == BF16 and loss.dtype == F32
        loss.backward()
        step.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] * 0.9


@pytest.mark.parametrize("cell", [fb.nn.LSTM, fb.nn.GRU, fb.nn.RNN])
def test_recurrent_layers(cell):
    layer = cell(3, 4, batch_first=True)
    with autocast("cpu"):
        out, _ = layer(m(2, 5, 3))
    assert out.dtype == BF16


def test_jvp_and_vmap_see_the_casts():
    x, w = m(4, 2, 3), m(3, 2)
    with autocast("cpu"):
        y = fb.vmap(lambda a: a @ w)(x)
        assert y.dtype == BF16 and fb.equal(y, x @ w)
        value, slope = fb.func.jvp(lambda a: a @ w, (x,), (x,))
    assert value.dtype == slope.dtype == BF16 and fb.equal(value, slope)
