"""Initialisers: distributions, structure, and the very values of a seed."""

import math

import numpy as np
import pytest

import flambeau as fb
from flambeau import nn
from flambeau.nn import init


def close(tensor, values):
    np.testing.assert_allclose(tensor.detach().numpy(), np.array(values), rtol=0, atol=5e-8)


def test_seeded_weights_are_those_of_the_reference():
    fb.manual_seed(0)
    layer = nn.Linear(3, 2)
    close(
        layer.weight,
        [
            [-0.0043225177, 0.3097158372, -0.4751853347],
            [-0.4248946011, -0.2223689705, 0.1548207253],
        ],
    )
    close(layer.bias, [-0.0114391446, 0.4577749372])
    fb.manual_seed(0)
    layer = nn.Conv2d(1, 1, 2)
    close(layer.weight[0, 0], [[-0.0037434101, 0.2682217956], [-0.4115225673, -0.3679695129]])
    close(layer.bias, [-0.1925771832])
    fb.manual_seed(0)
    close(nn.Embedding(2, 2, padding_idx=1).weight, [[1.5409960747, -0.2934288979], [0, 0]])


def test_seeded_initialisers():
    fb.manual_seed(0)
    close(
        init.trunc_normal_(fb.empty(4), 0, 1, 0.5, 0.9),
        [0.6985026002, 0.8072887063, 0.5353909731, 0.5528122187],
    )
    fb.manual_seed(0)
    close(
        init.trunc_normal_(fb.empty(4)),
        [1.5409960747, -0.2934288979, 0.4033468366, 0.5684312582],
    )
    fb.manual_seed(0)
    close(
        init.xavier_normal_(fb.empty(2, 2)),
        [[1.0896488428, -0.2074855715], [-1.5406367779, 0.4019415975]],
    )


def test_uniform_bounds():
    w = fb.empty(50, 30)
    for fill, bound in (
        (lambda: init.xavier_uniform_(w, gain=2), 2 * math.sqrt(6 / 80)),
        (lambda: init.kaiming_uniform_(w), math.sqrt(6 / 30)),
        (lambda: init.kaiming_uniform_(w, mode="fan_out", nonlinearity="tanh"), 5 / math.sqrt(150)),
        (lambda: init.uniform_(w, -0.1, 0.1), 0.1),
    ):
        assert fill() is w
        assert bound * 0.98 < w.abs().max().item() <= bound * 1.000001


def test_normal_spreads():
    w = fb.empty(200, 100)
    for fill, std in (
        (lambda: init.normal_(w, 1.0, 2.0), 2.0),
        (lambda: init.xavier_normal_(w), math.sqrt(2 / 300)),
        (lambda: init.kaiming_normal_(w, nonlinearity="relu"), math.sqrt(2 / 100)),
    ):
        fill()
        assert w.std().item() == pytest.approx(std, rel=0.03)


@pytest.mark.parametrize("bounds", [(-2.0, 2.0), (1.0, 1.5), (-0.1, 0.1)])
def test_truncated_normal_is_truncated(bounds):
    fb.manual_seed(1)
    w = init.trunc_normal_(fb.empty(4000), 0.0, 1.0, *bounds)
    assert bounds[0] <= w.min().item() and w.max().item() <= bounds[1]
    from scipy.stats import kstest, truncnorm

    assert kstest(w.numpy(), truncnorm(*bounds).cdf).pvalue > 1e-3


def test_structure():
    assert init.eye_(fb.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert init.constant_(fb.empty(2), 3).tolist() == [3, 3]
    assert init.ones_(fb.empty(1)).tolist() == [1] and init.zeros_(fb.empty(1)).tolist() == [0]
    for shape in ((4, 4), (3, 6), (6, 2, 1)):
        w = init.orthogonal_(fb.empty(*shape), gain=2).numpy().reshape(shape[0], -1) / 2
        gram = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
        np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-5)
    zeros = (init.sparse_(fb.empty(10, 4), sparsity=0.35) == 0).sum(0)
    assert zeros.tolist() == [4, 4, 4, 4]


def test_dirac_passes_channels_on():
    conv = nn.Conv1d(4, 4, 3, padding=1, groups=2, bias=False)
    init.dirac_(conv.weight, groups=2)
    x = fb.arange(20.0).view(1, 4, 5)
    assert fb.equal(conv(x), x)


def test_gains():
    assert init.calculate_gain("linear") == init.calculate_gain("conv_transpose3d") == 1
    assert init.calculate_gain("relu") == math.sqrt(2)
    assert init.calculate_gain("leaky_relu", 2) == math.sqrt(2 / 5)
    assert init.calculate_gain("selu") == 0.75


@pytest.mark.parametrize(
    "call",
    [
        lambda: init.calculate_gain("other"),
        lambda: init.calculate_gain("leaky_relu", True),
        lambda: init.eye_(fb.empty(2)),
        lambda: init.dirac_(fb.empty(2)),
        lambda: init.dirac_(fb.empty(3, 1, 1), groups=2),
        lambda: init.xavier_uniform_(fb.empty(2)),
        lambda: init.kaiming_normal_(fb.empty(2, 2), mode="fan"),
        lambda: init.orthogonal_(fb.empty(2)),
        lambda: init.sparse_(fb.empty(2), 0.1),
    ],
)
def test_errors(call):
    with pytest.raises(ValueError):
        call()


def test_old_names_warn():
    with pytest.warns(FutureWarning, match="deprecated in favor of `nn.init.constant_`"):
        assert init.constant(fb.empty(1), 2).tolist() == [2]


def test_empty_tensors_warn():
    with pytest.warns(UserWarning, match="without elements"):
        init.kaiming_uniform_(fb.empty(0, 2))
