"""Forward mode over reverse mode, and forward mode over changes in place: against finite
differences, reverse over reverse, and closed forms.
"""

from __future__ import annotations

import pytest

import flambeau as torch
import flambeau.autograd.forward_ad as fwAD
from flambeau import func, nn

F = nn.functional
D = torch.float64


def spd(a):
    return a @ a.T + torch.eye(a.shape[0], dtype=a.dtype)


CLASSES = torch.tensor([0, 3, 1])
INDEX, OFFSETS = torch.tensor([0, 2, 2, 3, 1]), torch.tensor([0, 1, 4])
FUNCTIONS = {
    "cross_entropy": lambda x: F.cross_entropy(x, CLASSES),
    "smoothed": lambda x: F.cross_entropy(x, CLASSES, label_smoothing=0.1, reduction="sum"),
    "layer_norm": lambda x: (F.layer_norm(x, [4]) ** 3).sum(),
    "batch_norm": lambda x: (F.batch_norm(x, None, None, training=True) ** 3).sum(),
    "group_norm": lambda x: (F.group_norm(x, 1) ** 3).sum(),
    "instance_norm": lambda x: (F.instance_norm(x.reshape(1, 3, 4)) ** 3).sum(),
    "local_response_norm": lambda x: F.local_response_norm(x.reshape(1, 3, 4), 2).pow(3).sum(),
    "det": lambda x: torch.linalg.det(x @ x.T),
    "slogdet": lambda x: torch.linalg.slogdet(spd(x))[1],
    "logdet": lambda x: torch.logdet(spd(x)),
    "solve": lambda x: torch.linalg.solve(spd(x), x[:, 0]).sum(),
    "svdvals": lambda x: torch.linalg.svdvals(x).pow(3).sum(),
    "eigvalsh": lambda x: torch.linalg.eigvalsh(spd(x)).pow(2).sum(),
    "eigvals": lambda x: torch.linalg.eigvals(spd(x)).abs().pow(2).sum(),
    "nuclear": lambda x: torch.linalg.matrix_norm(x, "nuc"),
    "cond": lambda x: torch.linalg.cond(x),
    "attention": lambda x: F.scaled_dot_product_attention(
        x.reshape(1, 2, 2, 3), x.sin().reshape(1, 2, 2, 3), x.reshape(1, 2, 2, 3)
    ).pow(2).sum(),
    "grouped_attention": lambda x: F.scaled_dot_product_attention(
        x.reshape(1, 2, 2, 3), x.sin().reshape(1, 2, 2, 3)[:, :1], x.reshape(1, 2, 2, 3)[:, :1],
        is_causal=True, enable_gqa=True,
    ).pow(2).sum(),
    "embedding_bag": lambda x: F.embedding_bag(INDEX, x.T, OFFSETS).pow(3).sum(),
    "bag_of_maxima": lambda x: F.embedding_bag(INDEX, x.T, OFFSETS, mode="max").pow(3).sum(),
    "bag_padded": lambda x: F.embedding_bag(
        INDEX, x.T, OFFSETS, mode="sum", padding_idx=2, per_sample_weights=x.reshape(-1)[:5]
    ).pow(2).sum(),
    "bag_to_an_end": lambda x: F.embedding_bag(
        INDEX, x.T, torch.tensor([0, 1, 4]), mode="mean", include_last_offset=True
    ).pow(3).sum(),
}  # fmt: skip


def differences(f, x, v, eps=1e-6):
    return (f(x + eps * v) - f(x - eps * v)) / (2 * eps)


@pytest.mark.filterwarnings("ignore:vmap. there is no batching rule for _embedding_bag")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_way_to_a_second_derivative(name):
    f = FUNCTIONS[name]
    torch.manual_seed(3)
    x, v = torch.randn(3, 4, dtype=D), torch.randn(3, 4, dtype=D)
    torch.testing.assert_close(
        func.jvp(f, (x,), (v,))[1], differences(f, x, v), rtol=1e-5, atol=1e-7
    )
    want = differences(func.grad(f), x, v)
    assert want.abs().max() > 1e-4
    ways = {
        "jvp of grad": func.jvp(func.grad(f), (x,), (v,))[1],
        "grad of jvp": func.grad(lambda x: func.jvp(f, (x,), (v,))[1])(x),
        "hessian": (func.hessian(f)(x) * v).sum((-1, -2)),
        "reverse over reverse": (func.jacrev(func.jacrev(f))(x) * v).sum((-1, -2)),
        "vmap": func.vmap(lambda d: func.jvp(func.grad(f), (x,), (d,))[1])(torch.stack([v, v]))[1],
    }
    with fwAD.dual_level():
        leaf = x.clone().requires_grad_()
        dual = fwAD.make_dual(leaf, v)
        (slope,) = torch.autograd.grad(f(dual), dual)
        ways["dual level"] = fwAD.unpack_dual(slope).tangent
    for way, got in ways.items():
        torch.testing.assert_close(
            got, want, rtol=1e-4, atol=1e-6, msg=lambda m, way=way: f"{way}: {m}"
        )
    curved = func.jvp(lambda x: func.jvp(f, (x,), (v,))[1], (x,), (v,))[1]
    torch.testing.assert_close(curved, (want * v).sum(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_recurrent_layers(kind):
    torch.manual_seed(0)
    net = kind(3, 4, num_layers=2).double()
    for p in net.parameters():
        p.requires_grad_(False)
    f = lambda x: net(x)[0].pow(2).sum()  # noqa: E731
    x, v = torch.randn(5, 2, 3, dtype=D), torch.randn(5, 2, 3, dtype=D)
    got = func.jvp(func.grad(f), (x,), (v,))[1]
    torch.testing.assert_close(got, differences(func.grad(f), x, v), rtol=1e-5, atol=1e-7)


def test_products_with_the_hessian_of_a_classifier():
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(5, track_running_stats=False)
    net = nn.Sequential(nn.Linear(3, 5), norm, nn.Tanh(), nn.Linear(5, 4)).double()
    x = torch.randn(3, 3, dtype=D)
    names = [n for n, _ in net.named_parameters()]
    values = tuple(p.detach() for p in net.parameters())
    along = tuple(torch.randn_like(p) for p in values)

    def loss(*ps):
        y = func.functional_call(net, dict(zip(names, ps, strict=True)), (x,))
        return F.cross_entropy(y, CLASSES)

    slopes = func.grad(loss, tuple(range(len(values))))
    got = func.jvp(slopes, values, along)[1]
    eps = 1e-6
    up = slopes(*(p + eps * v for p, v in zip(values, along, strict=True)))
    down = slopes(*(p - eps * v for p, v in zip(values, along, strict=True)))
    for g, a, b, name in zip(got, up, down, names, strict=True):
        want = (a - b) / (2 * eps)
        torch.testing.assert_close(g, want, rtol=1e-4, atol=1e-7)
        assert name == "0.bias" or want.abs().max() > 1e-5, name  # batch norm hides this one


def test_ctc_loss_has_a_tangent_and_refuses_a_second_derivative():
    torch.manual_seed(0)
    x, v = torch.randn(6, 2, 4, dtype=D), torch.randn(6, 2, 4, dtype=D)
    f = lambda x: F.ctc_loss(  # noqa: E731
        x.log_softmax(-1), torch.tensor([[1, 2], [2, 3]]), (6, 5), (2, 2)
    )
    torch.testing.assert_close(
        func.jvp(f, (x,), (v,))[1], differences(f, x, v), rtol=1e-6, atol=1e-8
    )
    with pytest.raises(NotImplementedError, match="_ctc_loss_backward: forward-mode"):
        func.jvp(func.grad(f), (x,), (v,))
    with pytest.raises(NotImplementedError, match="_ctc_loss_backward"):
        func.grad(lambda x: func.grad(f)(x).pow(2).sum())(x)


def test_a_power_of_a_negative_number_with_a_complex_exponent():
    a = torch.tensor([-2.0, 3.0, -0.5], dtype=D)
    b = torch.tensor([1 + 2j, 0.5 - 1j, -1 + 0.1j], dtype=torch.complex128, requires_grad=True)
    (got,) = torch.autograd.grad(torch.pow(a, b).real.sum(), b)
    y = torch.pow(a.to(torch.complex128), b.detach())
    want = (y * torch.log(a.to(torch.complex128))).conj()
    torch.testing.assert_close(got, want)


# Changes in place -------------------------------------------------------------------------------


def test_a_change_does_not_reach_the_tangent_that_was_given():
    def f(x):
        y = x.clone()
        y[0] *= 5
        return y.sum() + x.sum()

    v = torch.ones(2)
    assert func.jvp(f, (torch.tensor([1.0, 2.0]),), (v,))[1] == 8
    assert v.tolist() == [1, 1]


LAYOUTS = {
    "dense": lambda v: v.clone(),
    "transposed": lambda v: v.T.contiguous().T,
    "with gaps": lambda v: torch.stack([v, v], -1)[..., 0],
    "expanded": lambda v: v[:1].expand(v.shape),
}
CHANGES = {
    "row": lambda z: z[0].mul_(2),
    "column": lambda z: z[:, 1].copy_(z[:, 0] * z[:, 2]),
    "transposed": lambda z: z.T[0].add_(z[:, 2]),
    "diagonal": lambda z: z.diagonal().mul_(z.diagonal()),
    "a view of a view": lambda z: z[1:].T[1].exp_(),
    "flat": lambda z: z.view(-1)[2:5].sin_(),
    "zeroed": lambda z: z[1].zero_(),
    "a mask": lambda z: z.__setitem__(torch.tensor([True, False, True]), z[1] * 3),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("change", CHANGES)
def test_changes_through_views(layout, change):
    def f(x):
        z = x * 1
        early = z[0]
        CHANGES[change](z)
        return torch.cat([z.reshape(-1), early, z[0] * z[2]])

    torch.manual_seed(0)
    x = torch.randn(3, 3, dtype=D)
    v = LAYOUTS[layout](torch.randn(3, 3, dtype=D))
    before = v.clone()
    want = differences(f, x, v)
    torch.testing.assert_close(func.jvp(f, (x,), (v,))[1], want, rtol=1e-6, atol=1e-8)
    both = func.vmap(lambda x, v: func.jvp(f, (x,), (v,))[1], in_dims=(0, 2))(
        torch.stack([x, x]), torch.stack([v, v], 2)
    )
    torch.testing.assert_close(both[1], want, rtol=1e-6, atol=1e-8)
    assert torch.equal(v, before)


def filled(x):
    z = x.new_zeros(3)
    z[0] = x[0]
    z[1] = x[1] * x[0]
    z[2:].copy_(x[1:] ** 2)
    return z[0] * z[1] + z.pow(2).sum()


def accumulated(x):
    z = torch.zeros(2, dtype=x.dtype)
    first = z[0]
    z.add_(x).add_(x)
    first.mul_(x[1])
    return (z * z).sum()


@pytest.mark.parametrize("f", [filled, accumulated])
def test_tensors_filled_inside(f):
    """Under vmap, what was made inside gets a history of the level when it changes."""
    x = torch.tensor([0.7, -1.3], dtype=D)
    eye = torch.eye(2, dtype=D)
    want = torch.stack([differences(func.grad(f), x, v) for v in eye])
    for way in (
        func.hessian(f), func.jacfwd(func.grad(f)), func.jacrev(func.jacrev(f)),
        func.jacfwd(func.jacfwd(f)), func.jacrev(func.jacfwd(f)),
    ):  # fmt: skip
        torch.testing.assert_close(way(x), want, rtol=1e-6, atol=1e-8)


def test_history_of_a_plain_tensor_under_vmap():
    def f(x):
        z = torch.zeros(2)
        z.add_(x).add_(x)
        return z.sum()

    pulled = func.vmap(lambda c: func.vjp(f, torch.ones(2))[1](c)[0])(torch.ones(2))
    assert pulled.tolist() == [[2, 2], [2, 2]]


def test_a_tensor_that_outlives_the_level_is_what_it_was():
    kept = []

    def f(x):
        z = torch.zeros(2)
        part = z[0]
        z.add_(x)
        kept[:] = [z, part, part + 0]
        return (z * z).sum()

    func.vmap(lambda c: func.vjp(f, torch.ones(2))[1](c)[0])(torch.ones(2))
    z, part, _ = kept
    assert z.tolist() == [1, 1] and part.item() == 1 and not z.requires_grad
    part.mul_(3)
    assert z.tolist() == [3, 1]
    z.requires_grad_().sum().backward()
    assert z.grad.tolist() == [1, 1]


def test_an_unpacked_primal_has_no_share_in_the_tangent():
    with fwAD.dual_level():
        x = fwAD.make_dual(torch.ones(3), torch.ones(3)) * 2
        primal = fwAD.unpack_dual(x).primal
        assert fwAD.unpack_dual(primal[0]).tangent is None
        assert fwAD.unpack_dual(x[0]).tangent == 2
        y = torch.zeros(2, 3)
        row = y[1]
        y[1] = x
        assert fwAD.unpack_dual(row).tangent.tolist() == [2, 2, 2]
        assert fwAD.unpack_dual(y.detach()).tangent is None
        assert fwAD.unpack_dual(y).tangent.tolist() == [[0, 0, 0], [2, 2, 2]]


def test_detach_under_vmap_cuts_off_every_level():
    f = lambda x: x * x.detach() + x.data  # noqa: E731
    x, v = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.5])
    assert func.jvp(func.vmap(f), (x,), (v,))[1].tolist() == [1, 1]
    assert func.grad(lambda x: func.vmap(f)(x).sum())(x).tolist() == [1, 2]
    assert func.vmap(func.grad(f))(x).tolist() == [1, 2]
    leaf = x.clone().requires_grad_()
    func.vmap(f)(leaf).sum().backward()
    assert leaf.grad.tolist() == [1, 2]


@pytest.mark.filterwarnings("ignore:vmap. there is no batching rule for _ctc_loss_backward")
def test_a_second_derivative_that_is_missing_is_refused_under_vmap():
    """It was zeros."""
    x = torch.randn(4, 1, 3, dtype=D)

    def slope(x):
        loss = lambda x: F.ctc_loss(  # noqa: E731
            x.log_softmax(-1), torch.tensor([[1, 2]]), (4,), (2,)
        )
        return func.grad(loss)(x)

    directions = torch.ones(2, 4, 1, 3, dtype=D)
    with pytest.raises(NotImplementedError, match="_ctc_loss_backward"):
        func.vmap(lambda d: func.vjp(slope, x)[1](d)[0])(directions)


def test_a_compiled_function_follows_or_refuses_a_view_that_became_dual():
    f = torch.compile(lambda x: x * 2 + 1)
    with fwAD.dual_level():
        base = torch.zeros(2, 3)
        row = base[0]
        base.copy_(fwAD.make_dual(torch.ones(2, 3), torch.ones(2, 3)))
        assert fwAD.unpack_dual(f(row)).tangent.tolist() == [2, 2, 2]
