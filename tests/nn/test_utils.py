"""nn.utils: clipping, vectors, parametrisations, norms of weights, fusion, stateless calls."""

import copy
import pickle

import numpy as np
import pytest

import flambeau as fb
from flambeau import nn
from flambeau.nn.utils import parametrizations, parametrize
from flambeau.nn.utils.stateless import _functional_call


def same(got, wanted):
    """Equal tensors, or tuples of them, up to rounding."""
    if isinstance(got, tuple):
        for g, w in zip(got, wanted, strict=True):
            same(g, w)
    else:
        np.testing.assert_allclose(
            got.detach().numpy(), wanted.detach().numpy(), rtol=1e-6, atol=1e-6
        )


def array(t):
    return t.detach().numpy()


def params_with_grads():
    params = [nn.Parameter(fb.zeros(2)), nn.Parameter(fb.zeros(1)), nn.Parameter(fb.zeros(3))]
    params[0].grad = fb.tensor([3.0, 0.0])
    params[1].grad = fb.tensor([-4.0])
    return params


@pytest.mark.parametrize("foreach", [None, False])
def test_empty_gradients_have_no_say(foreach):
    for order, want in ((float("inf"), 3.0), (2.0, 5.0)):
        params = [fb.zeros(n, requires_grad=True) for n in (0, 2)]
        params[0].grad, params[1].grad = fb.zeros(0), fb.tensor([3.0, -3.0 if order > 9 else 4.0])
        total = nn.utils.clip_grad_norm_(params, 1.0, norm_type=order, foreach=foreach)
        assert total.item() == want
        np.testing.assert_allclose(array(params[1].grad[0]), 3 / want, rtol=1e-5)
    assert nn.utils.clip_grad_norm_(params[:1], 1.0, float("inf"), foreach=foreach).item() == 0


@pytest.mark.parametrize("foreach", [None, False])
def test_clip_by_norm(foreach):
    params = params_with_grads()
    total = nn.utils.clip_grad_norm_(params, 1.0, foreach=foreach)
    assert total.item() == 5
    np.testing.assert_allclose(array(params[0].grad), [0.6, 0], rtol=1e-5)
    np.testing.assert_allclose(array(params[1].grad), [-0.8], rtol=1e-5)
    assert nn.utils.clip_grad_norm_(params, 10.0, foreach=foreach).item() == pytest.approx(1)
    np.testing.assert_allclose(array(params[1].grad), [-0.8], rtol=1e-5)  # small ones stay
    biggest = nn.utils.clip_grad_norm_(params, 10.0, norm_type=float("inf"), foreach=foreach)
    assert biggest.item() == pytest.approx(0.8)
    assert nn.utils.get_total_norm([], 2.0).item() == 0
    params[0].grad[0] = float("nan")
    with pytest.raises(RuntimeError, match="is non-finite, so it cannot be clipped"):
        nn.utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True, foreach=foreach)
    with pytest.warns(UserWarning, match="empty generator"):
        nn.utils.clip_grad_norm_((p for p in []), 1.0)


@pytest.mark.parametrize("foreach", [None, False])
def test_clip_by_value(foreach):
    params = params_with_grads()
    nn.utils.clip_grad_value_(params, 2.5, foreach=foreach)
    assert params[0].grad.tolist() == [2.5, 0] and params[1].grad.tolist() == [-2.5]


def test_vectors():
    layer = nn.Linear(2, 2)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    assert vector.tolist() == [*layer.weight.flatten().tolist(), *layer.bias.tolist()]
    nn.utils.vector_to_parameters(fb.arange(6.0), layer.parameters())
    assert layer.weight.tolist() == [[0, 1], [2, 3]] and layer.bias.tolist() == [4, 5]
    with pytest.raises(TypeError, match="expected torch.Tensor, but got: list"):
        nn.utils.vector_to_parameters([1.0], layer.parameters())


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, y):
        return y / 2


class Wide(nn.Module):
    def forward(self, x):
        return fb.cat([x, x])


def test_parametrize():
    layer = nn.Linear(2, 2)
    before = array(layer.weight).copy()
    original = layer.weight
    parametrize.register_parametrization(layer, "weight", Doubled())
    np.testing.assert_allclose(array(layer.weight), before)
    assert parametrize.is_parametrized(layer, "weight")
    assert type(layer).__name__ == "ParametrizedLinear"
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    assert layer.parametrizations.weight.original is original
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    layer(fb.ones(1, 2)).sum().backward()
    assert original.grad.tolist() == [[2, 2], [2, 2]]
    parametrize.register_parametrization(layer, "weight", Doubled())
    np.testing.assert_allclose(array(layer.weight), 2 * before)
    layer.weight = fb.full((2, 2), 8.0)
    assert original.tolist() == [[2, 2], [2, 2]]
    twin = copy.deepcopy(layer)
    assert fb.equal(twin.weight, layer.weight)
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(layer)
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and layer.weight is original
    assert layer.weight.tolist() == [[8, 8], [8, 8]]


def test_parametrize_errors():
    layer = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(layer, "weight", Wide())
    assert isinstance(layer.weight, nn.Parameter)
    with pytest.raises(ValueError, match="does not have a parameter, a buffer"):
        parametrize.register_parametrization(layer, "none", Doubled())
    with pytest.raises(ValueError, match="does not have a parametrization on weight"):
        parametrize.remove_parametrizations(layer, "weight")
    parametrize.register_parametrization(layer, "weight", Wide(), unsafe=True)
    assert layer.weight.shape == (4, 2)
    with pytest.raises(RuntimeError, match="does not implement right_inverse"):
        layer.weight = fb.ones(4, 2)


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm(dim):
    layer = nn.Linear(3, 2)
    before = array(layer.weight).copy()
    parametrizations.weight_norm(layer, dim=dim)
    np.testing.assert_allclose(array(layer.weight), before, rtol=1e-6)
    axes = {0: 1, 1: 0, None: None}[dim]
    magnitude = array(layer.parametrizations.weight.original0)
    np.testing.assert_allclose(
        magnitude.flatten(), np.sqrt((before**2).sum(axes)).flatten(), rtol=1e-6
    )
    with pytest.warns(FutureWarning, match="weight_norm. is deprecated"):
        old = nn.utils.weight_norm(nn.Linear(3, 2), dim=dim)
    assert list(old.state_dict()) == ["bias", "weight_g", "weight_v"]
    layer.load_state_dict(old.state_dict())  # the older format is read too
    x = fb.ones(1, 3)
    np.testing.assert_allclose(array(layer(x)), array(old(x)), rtol=1e-5)
    nn.utils.remove_weight_norm(old)
    assert list(old.state_dict()) == ["bias", "weight"]
    np.testing.assert_allclose(array(layer(x)), array(old(x)), rtol=1e-5)
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found"):
        nn.utils.remove_weight_norm(old)


def test_spectral_norm():
    fb.manual_seed(0)
    layer = nn.Linear(4, 3)
    largest = np.linalg.svd(array(layer.weight))[1][0]
    expected = array(layer.weight) / largest
    new = parametrizations.spectral_norm(copy.deepcopy(layer), n_power_iterations=100)
    old = nn.utils.spectral_norm(layer, n_power_iterations=100)
    x = fb.ones(1, 4)
    np.testing.assert_allclose(array(old(x)), array(new(x)), rtol=1e-4)
    np.testing.assert_allclose(array(new.weight), expected, rtol=1e-4)
    assert list(old.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    old.load_state_dict(old.state_dict())
    nn.utils.remove_spectral_norm(old)
    np.testing.assert_allclose(array(old.weight), expected, rtol=1e-4)
    new.eval()
    assert fb.equal(new.weight, new.weight)


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal(shape, kind, trivial):
    fb.manual_seed(0)
    layer = nn.Linear(*shape, bias=False).double()
    parametrizations.orthogonal(layer, orthogonal_map=kind, use_trivialization=trivial)
    layer.weight.pow(3).sum().backward()
    with fb.no_grad():
        for p in layer.parameters():
            p -= 0.1 * p.grad
    w = array(layer.weight)
    gram = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-10)
    target = nn.init.orthogonal_(fb.empty(*w.shape, dtype=fb.float64))
    if trivial:
        layer.weight = target
        np.testing.assert_allclose(array(layer.weight), target.numpy(), atol=1e-10)
    elif kind != "householder":
        with pytest.raises(NotImplementedError, match="use_trivialization=False"):
            layer.weight = target


def test_orthogonal_errors():
    with pytest.raises(ValueError, match="Expected a matrix or batch of matrices"):
        parametrizations.orthogonal(nn.LayerNorm(3))
    with pytest.raises(ValueError, match="orthogonal_map has to be one of"):
        parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="x")


@pytest.mark.parametrize("transposed", [False, True])
def test_fusion(transposed):
    fb.manual_seed(0)
    conv = (nn.ConvTranspose2d if transposed else nn.Conv2d)(2, 3, 2, bias=False).eval()
    norm = nn.BatchNorm2d(3)
    norm(fb.randn(4, 3, 5, 5) * 3 + 1)
    nn.init.uniform_(norm.weight, 0.5, 2)
    norm.eval()
    x = fb.randn(2, 2, 4, 4)
    fused = nn.utils.fuse_conv_bn_eval(conv, norm, transpose=transposed)
    np.testing.assert_allclose(array(fused(x)), array(norm(conv(x))), atol=1e-5)
    with pytest.raises(AssertionError, match="Fusion only for eval"):
        nn.utils.fuse_conv_bn_eval(conv.train(), norm)
    linear, flat = nn.Linear(2, 3).eval(), nn.BatchNorm1d(3)
    flat(fb.randn(9, 3) + 2)
    flat.eval()
    fused = nn.utils.fuse_linear_bn_eval(linear, flat)
    z = fb.randn(5, 2)
    np.testing.assert_allclose(array(fused(z)), array(flat(linear(z))), atol=1e-5)


def test_stateless_calls():
    shared = nn.Linear(2, 2)
    net = nn.Sequential(shared, shared, nn.BatchNorm1d(2))
    weight = shared.weight
    given = {"0.weight": fb.eye(2), "0.bias": fb.ones(2), "2.running_mean": fb.zeros(2)}
    x = fb.tensor([[1.0, 2.0], [3.0, 4.0]])
    expected = nn.BatchNorm1d(2)(x + 2)
    same(_functional_call(net, given, x), expected)
    assert shared.weight is weight  # put back
    assert given["2.running_mean"].sum().item() > 0  # updated in place
    leaf = fb.eye(2, requires_grad=True)
    _functional_call(shared, {"weight": leaf}, (x,)).sum().backward()
    assert leaf.grad.tolist() == [[4, 6], [4, 6]]
    with pytest.raises(ValueError, match="multiple values for keys .* which are tied"):
        _functional_call(net, {"0.weight": fb.eye(2), "1.weight": fb.ones(2, 2)}, x)
    with pytest.raises(
        RuntimeError, match=r"Unexpected key\(s\): 'z'.\n\tMissing key\(s\): 'bias'"
    ):
        _functional_call(shared, {"weight": leaf, "z": leaf}, x, strict=True)
    with pytest.raises(RuntimeError):
        _functional_call(shared, {"weight": fb.ones(3, 5)}, x)
    assert shared.weight is weight


def test_skip_init():
    layer = nn.utils.skip_init(nn.Linear, 3, 2)
    assert layer.weight.shape == (2, 3) and not layer.weight.is_meta
    with pytest.raises(RuntimeError, match="must support a 'device' arg"):
        nn.utils.skip_init(nn.ReLU)


def test_memory_format_of_convolutions():
    net = nn.Sequential(nn.Conv2d(2, 3, 2), nn.Linear(2, 2))
    nn.utils.convert_conv2d_weight_memory_format(net, fb.channels_last)
    assert net[0].weight.is_contiguous(memory_format=fb.channels_last)
