"""Changes in place, of bases and through views, against the same computation without them."""

import re

import numpy as np
import pytest

import flambeau as torch


def leaf(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def same(tensor, want):
    np.testing.assert_allclose(np.array(tensor.tolist()), want, rtol=1e-12)


WEIGHT = torch.tensor([1.0, 10.0, 100.0, 1000.0], dtype=torch.float64)


def test_change_through_a_view_changes_the_history_of_the_base():
    x, w = leaf(1.0, 2.0, 3.0, 4.0), leaf(5.0, 6.0)
    y = x.clone()
    v = y[1:3]
    v.mul_(w)
    assert type(y.grad_fn).__name__ == "CopySlices"
    assert v.grad_fn.name() in ("AsStridedBackward0", "SliceBackward0")
    (y * WEIGHT).sum().backward()
    same(x.grad, [1.0, 50.0, 600.0, 1000.0])
    same(w.grad, [20.0, 300.0])


def test_view_follows_a_change_of_its_base():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x.clone()
    v = y[2:]
    y.mul_(3)
    (v * v).sum().backward()
    same(x.grad, [0.0, 0.0, 54.0, 72.0])


def test_view_of_a_plain_tensor_follows_too():
    w = leaf(2.0, 3.0)
    y = torch.ones(2, dtype=torch.float64)
    v = y[:1]
    assert not v.requires_grad
    y.mul_(w)
    assert v.requires_grad and not v.is_leaf
    v.sum().backward()
    same(w.grad, [1.0, 0.0])


def test_several_views_one_after_the_other():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x.clone()
    a, b = y[:3], y[1:]
    a.mul_(2)
    b.mul_(3)
    a.add_(1)
    (y * WEIGHT).sum().backward()
    same(y, [3.0, 13.0, 19.0, 12.0])
    same(x.grad, [2.0, 60.0, 600.0, 3000.0])


def test_views_of_views():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x.clone()
    m = y.view(2, 2).t()
    m[0].mul_(7)
    (y * WEIGHT).sum().backward()
    same(x.grad, [7.0, 10.0, 700.0, 1000.0])


def test_gradient_of_a_change_only_for_some_inputs():
    x, w = leaf(1.0, 2.0), leaf(3.0)
    y = x.clone()
    y[:1].mul_(w)
    (gw,) = torch.autograd.grad(y.sum(), w, retain_graph=True)
    same(gw, [1.0])
    (gx,) = torch.autograd.grad(y.sum(), x, retain_graph=True)
    same(gx, [3.0, 1.0])


def test_second_derivative_through_a_change_of_a_view():
    x, w = leaf(1.0, 2.0), leaf(3.0)
    y = x * x
    y[:1].mul_(w)
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    same(g.detach(), [36.0, 32.0])  # 4 w² x³, 4 x³
    hx, hw = torch.autograd.grad(g.sum(), (x, w))
    same(hx, [108.0, 48.0])  # 12 w² x², 12 x²
    same(hw, [24.0])  # 8 w x³


def test_assignment_by_index_and_mask():
    x, v = leaf(1.0, 2.0, 3.0, 4.0), leaf(9.0)
    y = x * 1
    y[1] = v[0] * 2
    y[torch.tensor([False, False, True, False])] = 0.0
    (y * WEIGHT).sum().backward()
    same(x.grad, [1.0, 0.0, 0.0, 1000.0])
    same(v.grad, [20.0])


def test_real_view_of_a_complex_base():
    z = torch.tensor([1 + 2j, 3 + 4j], dtype=torch.complex128, requires_grad=True)
    y = z * 1
    torch.view_as_real(y)[:, 0].mul_(5)
    (torch.view_as_real(y) ** 2).sum().backward()
    same(torch.view_as_real(z.grad), [[50.0, 4.0], [150.0, 8.0]])


def test_leaves_and_their_views_are_refused():
    x = leaf(1.0, 2.0)
    with pytest.raises(
        RuntimeError, match="a leaf Variable that requires grad is being used in an"
    ):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being"):
        x[0].add_(1)
    with torch.no_grad():
        x.add_(1)
        x[0].add_(1)
    same(x.detach(), [3.0, 3.0])


def test_views_made_without_grad_are_refused_with_it():
    y = leaf(1.0, 2.0).clone()
    with torch.no_grad():
        v = y[:1]
        v.add_(1)
    with pytest.raises(
        RuntimeError, match="A view was created in no_grad mode and is being modified"
    ):
        v.mul_(2)


def test_expanded_tensors_are_refused():
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers"):
        torch.ones(1).expand(3).add_(1)


def test_changed_saved_tensors_are_noticed():
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.add_(1)
    with pytest.raises(
        RuntimeError,
        match=r"modified by an inplace operation: \[torch.DoubleTensor \[2\]\], which is output 0 "
        r"of Exp.*, is at version 1; expected version 0 instead",
    ):
        y.sum().backward()
    z = x * 1
    w = z * z
    z[0] = 7.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        w.sum().backward()


def test_unneeded_saved_tensors_may_change():
    x, c = leaf(1.0, 2.0), torch.ones(2, dtype=torch.float64)
    y = x * c
    z = y + 1
    y.mul_(2)
    z.sum().backward()
    same(x.grad, [1.0, 1.0])


@pytest.mark.parametrize("exponent", [2, 3, 0.5, -0.5, -1, -2, 1.7])
def test_powers_may_be_changed_in_place(exponent):
    x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    y = x**exponent
    y *= 3
    y.sum().backward()
    expected = 3 * exponent * np.array([0.5, 2.0]) ** (exponent - 1)
    np.testing.assert_allclose(x.grad, expected, rtol=1e-12)


def test_results_are_kept_for_those_cotangents_alone_that_read_them():
    a, b = torch.tensor([[2.0, 1.0], [0.0, 4.0]]), torch.ones(2, 1)
    for operation, slope in (
        (lambda x: torch.linalg.solve(a, x), [[0.5], [0.125]]),
        (lambda x: torch.linalg.solve_triangular(a, x, upper=True), [[0.5], [0.125]]),
        (lambda x: x ** torch.tensor([[3.0], [2.0]]), [[3.0], [2.0]]),
    ):
        x = b.clone().requires_grad_()
        y = operation(x)
        z = y.sum()
        with torch.no_grad():
            y += 1
        z.backward()
        assert x.grad.tolist() == slope
    t = torch.tensor([1.0, 2.0], requires_grad=True)
    y = 2**t
    z = y.sum()
    with torch.no_grad():
        y += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_frozen_weights_keep_no_input():
    linear = torch.nn.Linear(3, 2).requires_grad_(False)
    x = torch.ones(4, 3, requires_grad=True)
    h = x * 1
    y = linear(h)
    h += 1
    y.sum().backward()
    np.testing.assert_allclose(x.grad, np.tile(linear.weight.numpy().sum(0), (4, 1)), rtol=1e-6)
    h, w = torch.ones(4, 3), torch.ones(2, 3, requires_grad=True)
    v = w * 1
    y = torch.nn.functional.linear(h, v)
    with torch.no_grad():
        v += 1
    y.sum().backward()
    assert w.grad.tolist() == [[4, 4, 4]] * 2


def test_change_of_the_base_after_use_of_a_view():
    x = leaf(1.0, 2.0)
    y = x * 1
    a = y[0] + 0
    y.zero_()
    b = y[1] + 0
    (a + b).backward()
    same(x.grad, [1.0, 0.0])


def test_base_and_versions():
    y = torch.ones(4)
    v = y.view(2, 2)[0]
    assert v._base is y and v._is_view() and not y._is_view()
    v.add_(1)
    assert y._version == v._version == 1


def test_change_does_not_leak():
    import gc
    import weakref

    w = leaf(2.0)
    y = torch.ones(1, dtype=torch.float64) * 3
    y.mul_(w)
    y.keep = type("Mark", (), {})()
    gone = weakref.ref(y.keep)
    del y
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    ("views", "name"),
    [
        (lambda x: x.unbind(), "UnbindBackward0"),
        (lambda x: list(x), "UnbindBackward0"),
        (lambda x: x.split(1), "SplitBackward0"),
        (lambda x: x.chunk(3), "SplitBackward0"),
        (lambda x: x.split([1, 2]), "SplitWithSizesBackward0"),
    ],
)
def test_several_views_of_one_function_stay_as_they_are(views, name):
    x = torch.ones(3, 2, requires_grad=True) * 2
    message = (
        f"Output 1 of {name} is a view and is being modified inplace. This view is the output of a "
        "function that returns multiple views."
    )
    with pytest.raises(RuntimeError, match=re.escape(message)):
        views(x)[1].mul_(2)
    with pytest.raises(RuntimeError, match="returns multiple views"):
        views(x)[1].view(-1).mul_(2)
    views(x.detach())[1].mul_(2)  # nothing is recorded
    assert x[1].tolist() == [4.0, 4.0]
    part = x.tensor_split(3)[1]  # slices: each by itself
    part.mul_(2)
    x.sum().backward()


def test_a_base_changed_after_several_views():
    x = torch.ones(3, 2, requires_grad=True) * 2
    first, *_ = x.unbind()
    x.add_(1)
    with pytest.raises(
        RuntimeError, match="its base or another view of its base has been modified"
    ):
        (first * 2).sum().backward()
