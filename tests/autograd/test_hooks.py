"""Hooks on tensors and nodes: order, replacement, removal."""

import gc
import weakref

import pytest

import flambeau as torch


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


def test_tensor_hooks_replace_the_gradient_in_order():
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(g.item()) or g * 10)
    y.register_hook(lambda g: seen.append(g.item()))
    x.register_hook(lambda g: seen.append(g.item()) or g + 1)
    y.sum().backward()
    assert seen == [1.0, 10.0, 20.0]
    assert x.grad.item() == 21.0


def test_order_around_a_node():
    x = leaf(1.0)
    y = x * 2
    order = []
    y.grad_fn.register_hook(lambda gi, go: order.append("post"))
    y.grad_fn.register_prehook(lambda go: order.append("pre"))
    y.register_hook(lambda g: order.append("tensor"))
    x.register_hook(lambda g: order.append("leaf"))
    x.register_post_accumulate_grad_hook(lambda t: order.append("accumulated"))
    y.sum().backward()
    assert order == ["tensor", "pre", "post", "leaf", "accumulated"]


def test_retained_gradient_is_that_after_hooks():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 3)
    y.sum().backward()
    assert y.grad.item() == 3.0


def test_node_hooks_replace():
    x = leaf(1.0)
    y = x * 2
    y.grad_fn.register_prehook(lambda go: (go[0] * 5,))
    y.grad_fn.register_hook(lambda gi, go: (gi[0] + go[0], *gi[1:]))
    y.sum().backward()
    assert x.grad.item() == 15.0


def test_removal():
    x = leaf(1.0)
    calls = []
    a = x.register_hook(lambda g: calls.append("a"))
    b = x.register_hook(lambda g: calls.append("b"))
    a.remove()
    a.remove()
    x.sum().backward()
    assert calls == ["b"]
    with b:
        pass
    x.sum().backward()
    assert calls == ["b"]


def test_a_hook_may_remove_itself():
    x = leaf(1.0)
    calls = []

    def hook(g):
        calls.append(1)
        handle.remove()

    handle = x.register_hook(hook)
    x.sum().backward()
    x.sum().backward()
    assert calls == [1]


def test_post_accumulate_hook_sees_the_gradient():
    x = leaf(1.0)

    def step(p):
        assert p is x
        with torch.no_grad():
            p -= 0.5 * p.grad
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2).sum().backward()
    assert x.grad is None and x.item() == 0.0
    with pytest.raises(
        RuntimeError, match="post accumulate grad hooks cannot be registered on non"
    ):
        (x * 2).register_post_accumulate_grad_hook(step)


def test_hooks_of_a_leaf_survive_the_leaf():
    calls = []

    def make():
        x = leaf(1.0)
        x.register_hook(lambda g: calls.append(g.item()))
        return x * 2

    make().sum().backward()
    assert calls == [2.0]


def test_errors():
    with pytest.raises(
        RuntimeError, match="cannot register a hook on a tensor that doesn't require"
    ):
        torch.ones(1).register_hook(print)
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: 3)
    with pytest.raises(TypeError):
        y.sum().backward()


def test_an_exception_in_a_hook_arrives_unchanged():
    class Mine(Exception):
        pass

    def hook(g):
        raise Mine("here")

    x = leaf(1.0)
    x.register_hook(hook)
    with pytest.raises(Mine, match="here"):
        (x * 2).sum().backward()
    x = leaf(2.0)
    (x * 2).sum().backward()
    assert x.grad.item() == 2.0


def test_hooks_before_a_change_in_place_keep_their_place():
    x = leaf(3.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(("old", g.item())))
    y.retain_grad()
    y.mul_(5)
    y.register_hook(lambda g: seen.append(("new", g.item())))
    y.sum().backward()
    assert seen == [("new", 1.0), ("old", 5.0)]
    assert y.grad.item() == 1.0


def test_a_hook_that_knows_its_tensor_is_collected():
    class Mark:
        pass

    x = leaf(1.0)
    x.mark = Mark()
    gone = weakref.ref(x.mark)

    def hook(g, knows=x):
        return None

    x.register_hook(hook)
    del x, hook
    gc.collect()
    assert gone() is None


class Token:
    """Something to refer to weakly."""


@pytest.mark.parametrize("kind", ["tensor", "pre", "post", "metadata"])
def test_hooks_that_refer_to_their_own_tensor_are_collected(kind):
    token = Token()
    gone = weakref.ref(token)
    x = leaf(1.0)
    y = x * 2

    def hook(*args, y=y, token=token):
        return None

    if kind == "tensor":
        y.register_hook(hook)
    elif kind == "pre":
        y.grad_fn.register_prehook(hook)
    elif kind == "post":
        y.grad_fn.register_hook(hook)
    else:
        y.grad_fn.metadata["hook"] = hook
    y.sum().backward(retain_graph=True)
    gc.collect()
    assert gone() is token
    del y, hook, token
    gc.collect()
    assert gone() is None


def test_a_hook_on_a_node_that_lives_on_is_kept():
    x = leaf(1.0)
    y = x * 2
    seen = []

    def hook(grad, y=y):
        seen.append(grad.item())

    y.register_hook(hook)
    z = y * 3
    del y, hook
    gc.collect()
    z.backward()
    assert seen == [3.0]


def test_a_post_accumulate_hook_returns_nothing():
    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda p: p.grad)
    with pytest.raises(RuntimeError, match="post-accumulate-grad hook: expected it to return None"):
        (x * 2).backward()


OTHER_KINDS = {
    "dtype": lambda g: g.double(),
    "whole numbers": lambda g: g.long(),
    "complex": lambda g: g * 1j,
    "device": lambda g: g.to("meta"),
    "rank": lambda g: g.reshape(1, *g.shape),
    "one entry": lambda g: g[:1],
    "no dims": lambda g: g.sum(),
}


def _of_tensor(y, x, change):
    y.register_hook(change)


def _of_leaf(y, x, change):
    x.register_hook(change)


def _before_node(y, x, change):
    y.grad_fn.register_prehook(lambda grads: (change(grads[0]),))


def _after_node(y, x, change):
    y.grad_fn.register_hook(lambda made, arrived: (change(made[0]), *made[1:]))


@pytest.mark.parametrize("register", [_of_tensor, _of_leaf, _before_node, _after_node])
@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_a_hook_does_not_change_the_kind_of_a_gradient(register, kind):
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    register(y, x, OTHER_KINDS[kind])
    with pytest.raises(RuntimeError, match=r"a hook changed the (type|shape) of a gradient"):
        y.sum().backward()
    assert x.grad is None


def test_a_hook_that_ends_the_gradient_is_checked_where_it_is_asked_for():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.register_hook(lambda g: g.double())
    with pytest.raises(RuntimeError, match="expected torch.float32 on cpu, got torch.float64"):
        torch.autograd.grad(y.sum(), y)


@pytest.mark.parametrize(
    ("result", "error"), [(2.0, TypeError), ((1,), TypeError), (torch.ones(1), RuntimeError)]
)
def test_what_a_post_accumulate_hook_returns(result, error):
    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda p: result)
    with pytest.raises(error, match="expected it to return None"):
        x.sum().backward()


def test_a_post_accumulate_hook_may_give_its_tensor():
    x = leaf(1.0, 2.0)
    x.register_post_accumulate_grad_hook(lambda p: p)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
