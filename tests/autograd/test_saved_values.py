"""What nodes kept: attributes of grad_fn, hooks on one saved tensor, changes of what was saved."""

import math

import pytest

import flambeau as torch


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


def test_saved_operands_and_parameters():
    a, b = leaf(2.0, 3.0), leaf(5.0, 7.0)
    node = (a * b).grad_fn
    assert node._saved_self is a and node._saved_other is b
    assert {"_saved_self", "_raw_saved_self", "_saved_other", "_raw_saved_other"} <= set(dir(node))
    node = a.softmax(0).grad_fn
    assert node._saved_dim == 0
    assert "_raw_saved_dim" not in dir(node)
    assert torch.nn.functional.gelu(a, approximate="tanh").grad_fn._saved_approximate == "tanh"


def test_saved_results_lead_back_to_their_node():
    a = leaf(1.0)
    y = a.exp()
    kept = y.grad_fn._saved_result
    assert kept.item() == pytest.approx(math.e) and kept.grad_fn is y.grad_fn


def test_what_is_not_there():
    node = (leaf(1.0) * 2).grad_fn
    with pytest.raises(AttributeError, match="_saved_nothing"):
        _ = node._saved_nothing
    assert not hasattr(node, "_raw_saved_nothing")
    a = leaf(1.0)
    # The other factor's gradient is not wanted, so this one is not kept.
    assert (a * torch.ones(1)).grad_fn._saved_self is None


def test_saved_values_are_gone_after_backward():
    y = leaf(1.0).exp()
    node = y.grad_fn
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        _ = node._saved_result


def test_hooks_on_one_saved_tensor():
    a, b = leaf(2.0), leaf(3.0)
    y = a * b
    packed = []
    y.grad_fn._raw_saved_self.register_hooks(
        lambda t: packed.append(t.item()) or t * 10, lambda t: t + 1
    )
    y.backward()
    assert packed == [2.0]
    assert b.grad.item() == 21.0 and a.grad.item() == 3.0


def test_hooks_on_a_saved_tensor_keep_its_history():
    a = leaf(2.0)
    b = a * 3
    y = b * b
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t.numpy().copy(), torch.from_numpy)
    (g,) = torch.autograd.grad(y, a, create_graph=True)
    assert g.item() == 36.0
    assert torch.autograd.grad(g, a)[0].item() == 18.0


def test_hooks_on_a_saved_tensor_refused():
    a = leaf(2.0)
    y = a * torch.ones(1)
    with pytest.raises(RuntimeError, match="value None"):
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    y = a.exp()
    raw = y.grad_fn._raw_saved_result
    raw.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="hooks already"):
        raw.register_hooks(lambda t: t, lambda t: t)
    y = a.exp()
    raw = y.grad_fn._raw_saved_result
    y.backward()
    with pytest.raises(RuntimeError, match="freed"):
        raw.register_hooks(lambda t: t, lambda t: t)


def test_raw_saved_tensors_of_a_function():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    a = leaf(3.0)
    y = Square.apply(a)
    [raw] = y.grad_fn._raw_saved_tensors
    raw.register_hooks(lambda t: t * 2, lambda t: t)
    y.backward()
    assert a.grad.item() == 12.0


def test_changes_of_what_was_saved_are_allowed_in_a_block():
    a = leaf(0.5, 2.0)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        b = a.clone()
        part = b[:1]
        out = (b**3).sum() + (b.exp() * 2).sum()
        part.mul_(10)
        b.zero_()
        out.backward()
    assert a.grad.allclose(3 * a.detach() ** 2 + 2 * a.detach().exp())


def test_a_block_copies_only_what_is_changed():
    a = leaf(1.0, 2.0)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        b, c = a.clone(), a.clone()
        yb, yc = b * b, c * c
        b.add_(1)
        assert yb.grad_fn._saved_self.data_ptr() != b.data_ptr()
        assert yc.grad_fn._saved_self.data_ptr() == c.data_ptr()
        (yb + yc).sum().backward()
    assert a.grad.tolist() == [4.0, 8.0]


def test_the_block_must_be_open_for_backward():
    a = leaf(1.0)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        y = a.clone().exp()
        with (
            pytest.raises(RuntimeError, match="nested"),
            torch.autograd.graph.allow_mutation_on_saved_tensors(),
        ):
            pass
    with pytest.raises(AssertionError, match="outside of the block"):
        y.backward()
    (a.clone() ** 2).backward()  # afterwards all is as before
    assert a.grad.item() == 2.0


def test_pack_hooks_see_what_the_program_has():
    """A leaf itself, of its class; an input with its history. What comes back is used."""
    w = torch.nn.Parameter(torch.tensor([2.0, 3.0]))
    seen = []

    def pack(t):
        seen.append(t)
        return t.detach().clone()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = w * w
        z = (y * y).sum()
    assert seen[0] is w and isinstance(seen[0], torch.nn.Parameter)
    assert seen[2].requires_grad and type(seen[2].grad_fn).__name__ == "MulBackward0"
    z.backward()
    assert w.grad.tolist() == [4 * 2.0**3, 4 * 3.0**3]


def test_hooks_that_keep_what_they_see_make_no_cycle():
    import gc
    import weakref

    w = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = (w * 2).exp() * w
    node = weakref.ref(y.grad_fn)
    gc.disable()
    try:
        del y
        assert node() is None
    finally:
        gc.enable()
