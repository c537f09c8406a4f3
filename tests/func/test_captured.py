"""What a transformed function may do to tensors it captured, and to gradients of its own."""

import pytest

import flambeau as torch
from flambeau.func import functional_call, grad, jacfwd, jacrev, jvp, vjp, vmap

ones = torch.ones(2)


def transforms():
    return {
        "grad": lambda f: grad(f)(ones),
        "vjp": lambda f: vjp(f, ones),
        "jvp": lambda f: jvp(f, (ones,), (ones,)),
        "jacrev": lambda f: jacrev(f)(ones),
        "jacfwd": lambda f: jacfwd(f)(ones),
        "vmap of grad": lambda f: vmap(grad(f))(torch.ones(3, 2)),
    }


@pytest.mark.parametrize("name", transforms())
def test_captured_tensors_are_not_changed(name):
    run = transforms()[name]
    c = torch.zeros(2)

    def copies(x):
        c.copy_(x)
        return (x * c).sum()

    def stores(x):
        c[0] = 3.0
        return (x * c).sum()

    def through_a_view(x):
        c[:1].add_(1)
        return (x * c).sum()

    for f in (copies, stores, through_a_view):
        with pytest.raises(RuntimeError, match="cannot mutate a captured Tensor"):
            run(f)
    assert c.tolist() == [0, 0] and c.grad_fn is None
    c.add_(1)  # afterwards it is the caller's again
    assert c.tolist() == [1, 1]


def test_a_tensor_of_an_outer_transform_is_captured_by_the_inner_one():
    def f(x):
        y = x * 2

        def g(z):
            y.mul_(z)
            return (y * z).sum()

        return grad(g)(x).sum()

    with pytest.raises(RuntimeError, match="mul_: .*captured"):
        grad(f)(ones)


def test_own_tensors_and_arguments_are_changed():
    def f(x, c):
        y = torch.zeros(2)
        y[0] = x[0]
        y.mul_(x)
        c.copy_(y)
        return (x * c).sum()

    c = torch.zeros(2)
    # f = x0^3, c = (x0^2, 0)
    assert grad(f)(2 * ones, c).tolist() == [12, 0]
    assert c.tolist() == [4, 0] and c.grad_fn is None


def test_statistics_that_are_captured():
    norm = torch.nn.BatchNorm1d(2)
    x = torch.arange(6.0).view(3, 2)
    with pytest.raises(RuntimeError, match="cannot mutate a captured Tensor"):
        grad(lambda x: norm(x).pow(3).sum())(x)
    buffers = {k: v.clone() for k, v in norm.named_buffers()}

    def f(x, buffers):
        state = {**dict(norm.named_parameters()), **buffers}
        return functional_call(norm, state, (x,)).pow(3).sum()

    grad(f)(x, buffers)
    assert buffers["running_mean"].allclose(torch.tensor([0.2, 0.3]))


def test_gradients_are_not_asked_for_inside():
    for f in (
        lambda x: x.requires_grad_(),
        lambda x: torch.ones(2).requires_grad_() * x,
        lambda x: x.requires_grad_(False),
    ):
        for run in (lambda f: vmap(f)(ones), lambda f: jvp(f, (ones,), (ones,))):
            with pytest.raises(RuntimeError, match=r"requires_grad_\(\) was called inside"):
                run(f)
        with pytest.raises(RuntimeError, match=r"requires_grad_\(\) was called inside"):
            grad(lambda x, f=f: f(x).sum())(ones)

    def keeps(x):
        y = x * 2
        y.retain_grad()
        return y.sum()

    with pytest.raises(RuntimeError, match=r"retain_grad\(\) was called inside"):
        grad(keeps)(ones)

    def runs(x):
        y = (x * 2).sum()
        y.backward()
        return y

    with pytest.raises(RuntimeError, match=r"backward\(\) was called inside"):
        grad(runs)(ones)


def test_leaves_made_inside_are_not_seen_outside():
    g = grad(lambda x: (x * torch.ones(2, requires_grad=True)).sum())(ones)
    assert g.tolist() == [1, 1] and not g.requires_grad
    g = grad(lambda x: torch.nn.Linear(2, 2)(x).sum())(ones)
    assert not g.requires_grad
    w = torch.ones(2, requires_grad=True)
    assert grad(lambda x: (x * w).sum())(ones).requires_grad


def test_vjp_made_under_no_grad_pulls_back_with_history():
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        y, pull = vjp(lambda a: a * a * x, x)
        (inside,) = pull(ones)
    (g,) = pull(ones)
    assert not y.requires_grad and not inside.requires_grad and g.requires_grad
    # d(a^2 x)/da with a = x is 2 x^2, whose derivative is 4 x
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [4, 4]
    with torch.no_grad():
        assert not grad(lambda a: (a * a * x).sum())(x).requires_grad


def test_chunks_of_the_same_randomness():
    def f(x):
        return x + torch.rand(()) + torch.rand(())

    torch.manual_seed(0)
    whole = vmap(f, randomness="same")(torch.zeros(5))
    state = torch.get_rng_state()
    torch.manual_seed(0)
    chunks = vmap(f, randomness="same", chunk_size=2)(torch.zeros(5))
    assert chunks.equal(whole) and len(set(chunks.tolist())) == 1
    assert torch.get_rng_state().equal(state)
    different = vmap(f, randomness="different", chunk_size=2)(torch.zeros(5))
    assert len(set(different.tolist())) == 5
