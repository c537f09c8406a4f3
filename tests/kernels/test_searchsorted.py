"""Places in sequences that hold NaN: it is the largest, as in sort, and NumPy's searchsorted says
where everything belongs."""

import numpy as np
import pytest

import flambeau as torch

nan, inf = float("nan"), float("inf")
LINES = [[1, 2, nan], [1, 2, nan, nan, nan], [nan, nan], [-inf, 1, inf, nan], [1, 2, 3]]
VALUES = [-inf, 0.0, 1.0, 1.5, 2.0, 3.0, inf, nan]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("line", LINES)
def test_against_numpy(line, side, dtype):
    s, x = torch.tensor(line, dtype=dtype), torch.tensor(VALUES, dtype=dtype)
    want = np.searchsorted(np.array(line, "float64"), np.array(VALUES), side=side).tolist()
    assert torch.searchsorted(s, x, side=side).tolist() == want
    assert torch.searchsorted(s.expand(2, -1), x.expand(2, -1), side=side).tolist() == [want] * 2
    assert torch.bucketize(x, s, right=side == "right").tolist() == want
    back = torch.arange(len(line)).flip(0)
    assert torch.searchsorted(s.flip(0), x, side=side, sorter=back).tolist() == want


@pytest.mark.parametrize("tests", [[nan, 1.0], [nan], [1.0, nan, nan, 7.0], [nan, -inf, 1.0]])
def test_isin_beside_nan(tests):
    got = torch.isin(torch.tensor([3.0, 1.0, nan]), torch.tensor(tests)).tolist()
    assert got == np.isin([3.0, 1.0, nan], tests).tolist()
