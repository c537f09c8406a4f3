"""unique and unique_consecutive: NaN, histories."""

import numpy as np
import pytest

import flambeau as torch

NAN = float("nan")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_rows_with_nan_are_each_their_own(dtype):
    x = torch.tensor([[1, NAN], [2, 3], [1, NAN], [2, 3], [0, 0], [-0.0, 0]], dtype=dtype)
    rows, inverse, counts = torch.unique(x, dim=0, return_inverse=True, return_counts=True)
    assert counts.sum() == 6 and sorted(counts.tolist()) == [1, 1, 2, 2]
    assert rows.isnan().sum() == 2
    for row, at in zip(x.float().tolist(), inverse.tolist(), strict=True):
        np.testing.assert_equal(rows[at].float().tolist(), np.array(row) + 0.0)
    rows, counts = torch.unique_consecutive(x[[0, 2, 1, 3]], dim=0, return_counts=True)
    assert counts.tolist() == [1, 1, 2] and rows.shape == (3, 2)
    columns = torch.unique(x.t(), dim=1)
    assert columns.shape == (2, 4)


@pytest.mark.parametrize("f", [torch.unique, torch.unique_consecutive])
@pytest.mark.parametrize("dim", [None, 0])
def test_the_result_keeps_its_history_and_has_no_derivative(f, dim):
    x = torch.tensor([1.0, 2.0, 2.0], requires_grad=True)
    y, inverse = f(x, return_inverse=True, dim=dim)
    assert y.requires_grad and not inverse.requires_grad
    with pytest.raises(NotImplementedError, match="unique"):
        y.sum().backward()
    with torch.no_grad():
        assert not f(x, dim=dim).requires_grad
    assert not f(torch.tensor([1, 2, 2]), dim=dim).requires_grad
