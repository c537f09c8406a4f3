"""Products of groups of matrices: the four forms against NumPy, derivatives, what is refused."""

import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def test_groups_of_rows():
    x, w = draw(7, 3), draw(3, 3, 4)
    out = F.grouped_mm(x, w, offs=torch.tensor([2, 2, 6], dtype=torch.int32))
    a, b = x.numpy(), w.numpy()
    expected = np.concatenate((a[:2] @ b[0], a[2:6] @ b[2], np.zeros((1, 4))))
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12)


def test_groups_of_columns_terms_and_batches():
    x, w = draw(2, 5, 3), draw(3, 6)
    a, b = x.numpy(), w.numpy()
    out = F.grouped_mm(x, w, offs=torch.tensor([4, 6]))
    expected = np.concatenate((a[0] @ b[:, :4], a[1] @ b[:, 4:]), 1)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12)
    left, right = draw(4, 6), draw(6, 5)
    out = F.grouped_mm(left, right, offs=torch.tensor([1, 6]))
    expected = np.stack(
        (left.numpy()[:, :1] @ right.numpy()[:1], left.numpy()[:, 1:] @ right.numpy()[1:])
    )
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12)
    y = draw(2, 3, 4)
    np.testing.assert_allclose(F.grouped_mm(x, y).numpy(), a @ y.numpy(), rtol=1e-12)


def test_derivatives_are_those_of_the_products():
    x, w = draw(5, 3).requires_grad_(), draw(2, 3, 4).requires_grad_()
    ends = torch.tensor([2, 5])
    assert torch.autograd.gradcheck(lambda x, w: F.grouped_mm(x, w, offs=ends), (x, w))
    g = draw(5, 4)
    torch._grouped_mm(x, w, ends).backward(g)
    expected = np.stack(
        (x.detach().numpy()[:2].T @ g.numpy()[:2], x.detach().numpy()[2:].T @ g.numpy()[2:])
    )
    np.testing.assert_allclose(w.grad.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: F.grouped_mm(draw(5), draw(2, 3, 4)), "2 or 3 dimensions, got 1"),
        (lambda: F.grouped_mm(draw(5, 3), draw(2, 4, 4), offs=torch.tensor([2, 5])), "as many col"),
        (lambda: F.grouped_mm(draw(5, 3), draw(2, 3, 4)), "offs exactly where"),
        (lambda: F.grouped_mm(draw(5, 3), draw(2, 3, 4), offs=torch.tensor([5])), "one number of"),
        (
            lambda: F.grouped_mm(draw(5, 3), draw(2, 3, 4).float(), offs=torch.tensor([2, 5])),
            "dtype",
        ),
    ],
)
def test_what_is_refused(call, said):
    with pytest.raises(RuntimeError, match=said):
        call()
