"""Functions of nn.functional as entries of the table: flags, old arguments, overrides."""

import inspect
import types
import warnings

import numpy as np
import pytest

import flambeau as fb
from flambeau.nn import functional as F

#: what the table cannot state: Python functions and objects as arguments, sizes with None
PYTHON = {
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "grouped_mm",
    "linear_cross_entropy",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "multi_head_attention_forward",
    "triplet_margin_with_distance_loss",
}


def test_functions_written_in_python_are_listed() -> None:
    names = [n for n in dir(F) if n[0] != "_"]
    found = {n for n in names if isinstance(getattr(F, n), types.FunctionType)}
    assert found == PYTHON


ACTIVATIONS = {
    "relu": ((), lambda x: np.maximum(x, 0)),
    "relu6": ((), lambda x: np.clip(x, 0, 6)),
    "elu": ((0.5,), lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
    "leaky_relu": ((0.2,), lambda x: np.where(x > 0, x, 0.2 * x)),
    "hardtanh": ((-0.5, 2.0), lambda x: np.clip(x, -0.5, 2)),
    "silu": ((), lambda x: x / (1 + np.exp(-x))),
    "threshold": ((0.3, 7.0), lambda x: np.where(x > 0.3, x, 7.0)),
    "celu": ((2.0,), lambda x: np.maximum(x, 0) + np.minimum(0, 2 * np.expm1(x / 2))),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_inplace_flag(name: str) -> None:
    rest, reference = ACTIVATIONS[name]
    f = getattr(F, name)
    data = np.linspace(-2, 8, 11)
    for given in ((), (False,)):
        x = fb.tensor(data)
        y = f(x, *rest, *given)
        assert y is not x and np.array_equal(x.numpy(), data)
        np.testing.assert_allclose(y.numpy(), reference(data))
    for keywords in ({"inplace": True}, {"inplace": 1}):
        x = fb.tensor(data)
        assert f(x, *rest, **keywords) is x
        np.testing.assert_allclose(x.numpy(), reference(data))
    leaf = fb.tensor(data, requires_grad=True)
    f(leaf * 1, *rest, inplace=True).sum().backward()
    again = fb.tensor(data, requires_grad=True)
    f(again, *rest).sum().backward()
    assert fb.equal(leaf.grad, again.grad)


def test_only_functions_of_nn_functional_take_flags() -> None:
    x = fb.ones(2)
    for f in (fb.relu, fb.celu, fb.selu):
        with pytest.raises(TypeError, match="unexpected keyword argument 'inplace'"):
            f(x, inplace=True)
    with pytest.raises(TypeError):
        fb.max_pool2d(fb.ones(1, 2, 2), 2, return_indices=True)


def test_refusals_tell_of_the_signature_that_is_public() -> None:
    with pytest.raises(TypeError, match="relu\\(\\): argument 'input'.* must be Tensor, not str"):
        F.relu("x")
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        F.relu(fb.ones(1), False, 3)
    with pytest.raises(ValueError, match="min_val cannot be greater"):
        F.hardtanh(fb.ones(1), 2.0, 1.0)


def test_old_arguments_name_a_reduction() -> None:
    x, y = fb.tensor([[1.0, 5.0], [2.0, 2.0]]), fb.tensor([[0.0, 1.0], [2.0, 0.0]])
    each = (x - y).numpy() ** 2
    for given, expected in (
        ({"size_average": False}, each.sum()),
        ({"size_average": True}, each.mean()),
        ({"reduce": False}, each),
        ({"reduce": True, "size_average": False}, each.sum()),
    ):
        with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
            np.testing.assert_allclose(F.mse_loss(x, y, **given).numpy(), expected)
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert F.mse_loss(x, y, False).item() == each.sum()  # by position, as early versions had it
    with pytest.warns(UserWarning, match="elementwise_mean"):
        assert F.mse_loss(x, y, reduction="elementwise_mean").item() == each.mean()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert F.mse_loss(x, y, None, None, "sum").item() == each.sum()
        classes = fb.tensor([1, 0])
        one = F.cross_entropy(x, classes, None, None, 0, None, "sum", 0.1)
        two = F.cross_entropy(x, classes, ignore_index=0, reduction="sum", label_smoothing=0.1)
        assert one.item() == two.item() != 0


def test_sizes_that_broadcast_are_told() -> None:
    x, y = fb.ones(2, 3), fb.zeros(3)
    text = r"target size \(torch.Size\(\[3\]\)\).*input size \(torch.Size\(\[2, 3\]\)\)"
    for f in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss):
        with pytest.warns(UserWarning, match=text):
            assert f(x, y, reduction="none").shape == (2, 3)


def test_maxima_with_their_places() -> None:
    data = np.random.default_rng(0).normal(size=(2, 3, 4, 6))
    x = fb.tensor(data)
    values, places = F.max_pool2d(x, 2, return_indices=True)
    windows = data.reshape(2, 3, 2, 2, 3, 2)
    np.testing.assert_array_equal(values.numpy(), windows.max((3, 5)))
    flat = data.reshape(2, 3, 24)
    picked = np.take_along_axis(flat, places.numpy().reshape(2, 3, 6), 2)
    np.testing.assert_array_equal(picked.reshape(2, 3, 2, 3), values.numpy())
    assert fb.equal(F.max_pool2d(x, 2, 2, 0, 1, False, False), values)
    assert len(F.max_pool2d_with_indices(x, 2, return_indices=True)) == 2


class Seen(fb.Tensor):
    calls: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append((func, len(args), sorted(kwargs or {})))
        return super().__torch_function__(func, types, args, kwargs or {})


def test_overrides_see_the_public_function_once() -> None:
    x = fb.ones(1, 2, 4).as_subclass(Seen)
    y = fb.zeros(1, 2, 4)
    for f, args, keywords in (
        (F.relu, (x,), {"inplace": False}),
        (F.mse_loss, (x, y), {"reduction": "sum"}),
        (F.softmax, (x,), {"dim": 1}),
        (F.interpolate, (x,), {"scale_factor": 2}),
        (F.dropout1d, (x, 0.0), {}),
        (F.max_pool1d, (x, 2), {"return_indices": True}),
        (fb.relu, (x,), {}),
    ):
        Seen.calls.clear()
        f(*args, **keywords)
        assert Seen.calls == [(f, len(args), sorted(keywords))]


def test_signatures_can_be_read() -> None:
    names = list(inspect.signature(F.cross_entropy).parameters)
    assert names == [
        "input", "target", "weight", "size_average", "ignore_index", "reduce", "reduction",
        "label_smoothing",
    ]  # fmt: skip
    assert inspect.signature(F.relu).parameters["inplace"].default is False
    assert inspect.signature(F.interpolate).parameters["mode"].default == "nearest"
    assert F.relu.__doc__.startswith("relu(Tensor input, bool inplace")
    assert (F.relu.__name__, F.relu.__module__) == ("relu", fb.nn.functional.__name__)


def test_captured_graphs_hold_the_forms() -> None:
    def f(x, y):
        a = F.relu(x * 1, inplace=True)
        b, at = F.max_pool1d(a, 2, return_indices=True)
        c = F.interpolate(b, scale_factor=2.0, mode="linear", align_corners=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return F.mse_loss(F.softmax(c, dim=-1), y, size_average=False), at

    x = fb.randn(2, 3, 8, requires_grad=True)
    y = fb.randn(2, 3, 8)
    loss, at = fb.compile(f)(x, y)
    loss.backward()
    got, x.grad = x.grad, None
    expected, places = f(x, y)
    expected.backward()
    fb.testing.assert_close(loss, expected)
    fb.testing.assert_close(got, x.grad)
    assert fb.equal(at, places)


def test_batches_of_functions() -> None:
    x = fb.randn(4, 1, 2, 6)
    for f in (
        lambda t: F.interpolate(t, scale_factor=2.0),
        lambda t: F.leaky_relu(t, 0.3),
        lambda t: F.softmin(t, dim=1),
        lambda t: F.gaussian_nll_loss(t, t * 0, t * t, reduction="none"),
        lambda t: F.max_pool1d(t, 2),
    ):
        fb.testing.assert_close(fb.vmap(f)(x), fb.stack([f(t) for t in x]))


def test_gradient_of_small_variances_is_kept() -> None:
    var = fb.tensor([1e-9, 2.0], requires_grad=True)
    F.gaussian_nll_loss(fb.zeros(2), fb.ones(2), var, eps=0.5, reduction="sum").backward()
    v = np.array([0.5, 2.0])
    np.testing.assert_allclose(var.grad.numpy(), 0.5 * (1 / v - 1 / v**2))
    assert F.gaussian_nll_loss(fb.zeros(2), fb.ones(2), 1.0).item() == 0.5
    for bad in (fb.tensor([-1.0, 1.0]), -1.0):
        with pytest.raises(ValueError, match="negative"):
            F.gaussian_nll_loss(fb.zeros(2), fb.ones(2), bad)
    with pytest.raises(ValueError, match="incorrect size"):
        F.gaussian_nll_loss(fb.zeros(2), fb.ones(2), fb.ones(3))


def test_hard_samples_have_the_gradient_of_soft_ones() -> None:
    logits = fb.randn(3, 5, requires_grad=True)
    fb.manual_seed(0)
    hard = F.gumbel_softmax(logits, tau=0.7, hard=True)
    weight = fb.arange(15.0).reshape(3, 5)
    (hard * weight).sum().backward()
    got, logits.grad = logits.grad, None
    fb.manual_seed(0)
    soft = F.gumbel_softmax(logits, tau=0.7)
    (soft * weight).sum().backward()
    fb.testing.assert_close(got, logits.grad)
    assert fb.equal(hard.argmax(1), soft.argmax(1)) and fb.equal(hard.sum(1), fb.ones(3))


def test_indices_outside_a_table_are_refused() -> None:
    with pytest.raises(AssertionError, match="Padding_idx must be within num_embeddings"):
        F.embedding(fb.tensor([0]), fb.ones(2, 3), padding_idx=5)
    weight = fb.tensor([[3.0, 4.0], [0.0, 1.0]], requires_grad=True)
    out = F.embedding(fb.tensor([0]), weight, max_norm=1.0)
    np.testing.assert_allclose(out.detach().numpy(), [[0.6, 0.8]], rtol=1e-6)
    out.sum().backward()
    assert weight.grad.tolist() == [[1.0, 1.0], [0.0, 0.0]]
