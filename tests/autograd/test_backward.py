"""Backward and grad: values, accumulation, retained and recorded graphs, error messages."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.autograd import backward, grad


def leaf(*values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def same(tensor, want):
    np.testing.assert_allclose(np.array(tensor.detach().tolist()), want, rtol=1e-12, atol=1e-12)


def test_gradients_of_a_product_and_a_sum():
    x, y = leaf(1.0, 2.0, 3.0), leaf(4.0, 5.0, 6.0)
    (x * y + x).sum().backward()
    same(x.grad, [5.0, 6.0, 7.0])
    same(y.grad, [1.0, 2.0, 3.0])
    (x * y).sum().backward()
    same(x.grad, [9.0, 11.0, 13.0])


def test_broadcast_gradients_are_summed():
    x, y = torch.ones(3, 1, requires_grad=True), torch.ones(4, requires_grad=True)
    (x * y).sum().backward()
    same(x.grad, [[4.0]] * 3)
    same(y.grad, [3.0] * 4)


def test_cotangent_is_used_and_checked():
    x = leaf(1.0, 2.0)
    (x * x).backward(torch.tensor([1.0, 10.0], dtype=torch.float64))
    same(x.grad, [2.0, 40.0])
    with pytest.raises(
        RuntimeError, match="grad can be implicitly created only for scalar outputs"
    ):
        (x * x).backward()
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[0\] has a shape of"):
        (x * x).backward(torch.ones(3, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        grad((x.sum(), x.sum()), x, (x[0],))


def test_roots_that_are_leaves():
    x = leaf(1.0)
    x.backward()
    same(x.grad, [1.0])
    backward([x, x * 2])
    same(x.grad, [4.0])


def test_root_without_history_is_an_error():
    with pytest.raises(
        RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"
    ):
        torch.ones(1).backward()


def test_second_backward_needs_retain_graph():
    x = leaf(1.0, 2.0)
    y = x.exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    same(x.grad, 2 * np.exp([1.0, 2.0]))
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_higher_derivatives():
    x = leaf(0.3)
    d = x.sin().sum()
    for want in (np.cos(0.3), -np.sin(0.3), -np.cos(0.3), np.sin(0.3)):
        (d,) = grad(d.sum(), x, create_graph=True)
        same(d, [want])


def test_grad_leaves_grad_alone():
    x = leaf(1.0, 2.0)
    y = x * x
    (g,) = grad(y.sum(), x)
    same(g, [2.0, 4.0])
    assert x.grad is None


def test_grad_of_results_in_the_middle():
    x = leaf(1.0, 2.0)
    y = x * 3
    z = (y * y).sum()
    gy, gx = grad(z, (y, x))
    same(gy, [6.0, 12.0])
    same(gx, [18.0, 36.0])
    (one,) = grad(z.detach().requires_grad_(), z.detach().requires_grad_(), allow_unused=True)
    assert one is None
    (root,) = grad(z2 := (x * 2).sum(), z2)
    same(root, 1.0)


def test_unused_inputs():
    x, y = leaf(1.0), leaf(2.0)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        grad(x.sum(), y)
    assert grad(x.sum(), y, allow_unused=True) == (None,)
    (zero,) = grad(x.sum(), y, materialize_grads=True)
    same(zero, [0.0])
    with pytest.raises(
        RuntimeError, match="One of the differentiated Tensors does not require grad"
    ):
        grad(x.sum(), torch.ones(1))
    with pytest.raises(ValueError, match="Expected allow_unused to be True"):
        grad(x.sum(), y, allow_unused=False, materialize_grads=True)
    with pytest.raises(RuntimeError, match="`inputs` argument to `grad..` cannot be empty"):
        grad(x.sum(), ())


def test_backward_to_some_inputs_only():
    x, y = leaf(1.0), leaf(2.0)
    m = x * y
    (m * y).sum().backward(inputs=[x])
    same(x.grad, [4.0])
    assert y.grad is None
    m = x * y
    (m * y).sum().backward(inputs=[m])
    same(m.grad, [2.0])
    with pytest.raises(RuntimeError, match="cannot be empty"):
        x.sum().backward(inputs=[])


def test_unwanted_branches_are_not_run():
    ran = []
    x, y = leaf(1.0), leaf(2.0)
    a, b = x * 2, y * 3
    b.register_hook(lambda g: ran.append("b"))
    grad((a + b).sum(), x)
    assert ran == []


def test_batched_grads():
    x = leaf(1.0, 2.0)
    eye = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    (jacobian,) = grad(x * x, x, eye, is_grads_batched=True)
    same(jacobian, [[2.0, 0.0], [0.0, 4.0]])


def test_first_gradient_is_not_shared():
    x, y = leaf(1.0), leaf(1.0)
    (x + y).sum().backward()
    x.grad.add_(1)
    same(y.grad, [1.0])
    g = torch.ones(1, dtype=torch.float64)
    z = leaf(1.0)
    z.backward(g)
    z.grad.add_(1)
    same(g, [1.0])


def test_accumulation_is_in_place_unless_recorded():
    x = leaf(1.0)
    (x * 2).sum().backward()
    first = x.grad
    (x * 2).sum().backward()
    assert x.grad is first
    same(first, [4.0])


@pytest.mark.filterwarnings("ignore:Using backward")
def test_recorded_accumulation_has_a_history():
    x = leaf(2.0)
    (x**3).sum().backward(create_graph=True)
    (x**3).sum().backward(create_graph=True)
    same(x.grad, [24.0])
    (second,) = grad(x.grad.sum(), x)
    same(second, [24.0])


def test_gradient_has_the_layout_of_the_leaf():
    x = torch.ones(3, 4).t().requires_grad_()
    (x * torch.ones(4, 3)).sum().backward()
    assert x.grad.stride() == x.stride()
    e = torch.ones(2, 1).expand(2, 3).requires_grad_()
    (e * 2).sum().backward()
    assert e.grad.is_contiguous()


def test_requires_grad_of_leaves_and_results():
    x = torch.ones(2)
    assert not x.requires_grad and x.is_leaf and x.grad_fn is None
    assert x.requires_grad_() is x
    y = x * 2
    assert y.requires_grad and not y.is_leaf
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf"):
        y.requires_grad_(False)
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype can require grad"):
        torch.ones(2, dtype=torch.int64).requires_grad_()
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        x.requires_grad = 1


def test_assigned_gradients_are_checked():
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.ones(2)
    x.grad = None
    with pytest.raises(RuntimeError, match="attempting to assign a gradient of size"):
        x.grad = torch.ones(3)
    with pytest.raises(RuntimeError, match="attempting to assign a gradient with dtype"):
        x.grad = torch.ones(2, dtype=torch.float64)
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None"):
        x.grad = 3
    with pytest.raises(RuntimeError, match="can't assign Variable as its own grad"):
        x.grad = x


def test_grad_of_a_result_warns():
    y = torch.ones(2, requires_grad=True) * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None
    y.retain_grad()
    y.sum().backward()
    same(y.grad, [1.0, 1.0])
    assert y.retains_grad
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor"):
        torch.ones(1).retain_grad()


def test_detach_shares_memory_and_versions():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    d = y.detach()
    assert not d.requires_grad and d.data_ptr() == y.data_ptr()
    d.add_(1)
    assert y._version == d._version == 1
    y.data.add_(1)
    assert y._version == 1
    y.detach_()
    assert y.is_leaf and not y.requires_grad


def test_integral_results_stay_out_of_the_graph():
    x = leaf(3.0, 1.0)
    values, indices = x.sort()
    assert values.requires_grad and not indices.requires_grad
    assert not (x > 1).requires_grad


def test_dtype_of_gradients_follows_the_inputs():
    x = torch.ones(2, dtype=torch.float32, requires_grad=True)
    (x.double() * 2).sum().backward()
    assert x.grad.dtype == torch.float32
    x16 = torch.ones(2, dtype=torch.float16, requires_grad=True)
    (x16 * torch.ones(2)).sum().backward()
    assert x16.grad.dtype == torch.float16


def test_complex_root_and_real_part():
    z = torch.tensor([1 + 2j], requires_grad=True)
    with pytest.raises(RuntimeError, match="real scalar outputs but got torch.complex64"):
        z.sum().backward()
    (z * z.conj()).real.sum().backward()
    same(torch.view_as_real(z.grad), [[2.0, 4.0]])


def test_callbacks_run_at_the_end():
    order = []
    x = leaf(1.0)
    y = x * 2

    def hook(g):
        torch.autograd.Variable._execution_engine.queue_callback(lambda: order.append("end"))
        order.append("hook")

    y.register_hook(hook)
    x.register_hook(lambda g: order.append("leaf"))
    y.sum().backward()
    assert order == ["hook", "leaf", "end"]
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward"):
        torch.autograd.Variable._execution_engine.queue_callback(print)


def test_rules_compute_with_numbers_in_full_precision():
    """`1 - 0.3` of lerp's rule is no float32, whatever way the rule is run."""
    x, end = (torch.linspace(-1, k, 5, dtype=torch.float64).requires_grad_() for k in (1, 2))
    y = torch.lerp(x, end, 0.3)
    for create_graph in (False, True):
        got = torch.autograd.grad(y.sum(), [x, end], retain_graph=True, create_graph=create_graph)
        for g, want in zip(got, (0.7, 0.3), strict=True):
            np.testing.assert_allclose(g.detach().numpy(), np.full(5, want), rtol=1e-15)
    _, tangent = torch.func.jvp(lambda x: torch.lerp(x, x * 2, 0.3), (x,), (torch.ones_like(x),))
    np.testing.assert_allclose(tangent.detach().numpy(), np.full(5, 1.3), rtol=1e-15)
