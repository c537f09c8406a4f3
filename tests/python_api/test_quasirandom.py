"""Sobol points against SciPy's, and what scrambling keeps."""

import numpy as np
import pytest
from scipy.stats import qmc

import flambeau as torch
from flambeau.quasirandom import SobolEngine


@pytest.mark.parametrize("dimension", [1, 2, 7, SobolEngine.MAXDIM])
def test_points(dimension):
    want = qmc.Sobol(dimension, scramble=False).random(1024)
    engine = SobolEngine(dimension)
    parts = [engine.draw(n, dtype=torch.float64) for n in (1, 0, 5, 250, 768)]
    assert engine.num_generated == 1024 and parts[1].shape == (0, dimension)
    np.testing.assert_array_equal(torch.cat(parts).numpy(), want)
    again = engine.reset().fast_forward(100).draw(3)
    assert again.dtype == torch.float32
    np.testing.assert_array_equal(again.numpy(), want[100:103].astype("float32"))
    out = torch.empty(0)
    assert engine.draw(2, out=out) is out
    np.testing.assert_array_equal(out.numpy(), want[103:105].astype("float32"))


def test_late_points():
    engine = SobolEngine(3).fast_forward((1 << 20) + 3)
    want = qmc.Sobol(3, scramble=False).fast_forward((1 << 20) + 3).random(4)
    np.testing.assert_array_equal(engine.draw(4, dtype=torch.float64).numpy(), want)


def test_scrambled_points_lie_as_evenly():
    first = SobolEngine(5, scramble=True, seed=7).draw(256, dtype=torch.float64)
    assert torch.equal(first, SobolEngine(5, scramble=True, seed=7).draw(256, dtype=torch.float64))
    assert not torch.equal(first, SobolEngine(5, scramble=True, seed=8).draw(256).double())
    # Each of 256 intervals of an axis holds one point, and boxes of the first two axes too.
    assert torch.equal(
        (first * 256).long().sort(0).values, torch.arange(256)[:, None].expand(-1, 5)
    )
    boxes = (first[:, :2] * 16).long()
    assert (boxes[:, 0] * 16 + boxes[:, 1]).unique().numel() == 256
    torch.manual_seed(3)
    a = SobolEngine(2, scramble=True).draw(2)
    torch.manual_seed(3)
    assert torch.equal(a, SobolEngine(2, scramble=True).draw(2))


def test_powers_of_two():
    engine = SobolEngine(2)
    assert engine.draw_base2(2).shape == (4, 2) and engine.draw_base2(2).shape == (4, 2)
    with pytest.raises(ValueError, match=r"a power of 2. 8 points have .* n=8\+2\*\*2=12"):
        engine.draw_base2(2)
    assert repr(engine) == "SobolEngine(dimension=2)"
    assert repr(SobolEngine(1, True, 4)) == "SobolEngine(dimension=1, scramble=True, seed=4)"


@pytest.mark.parametrize("dimension", [0, -1, SobolEngine.MAXDIM + 1])
def test_refused(dimension):
    with pytest.raises(ValueError, match="Supported range of dimensionality for SobolEngine"):
        SobolEngine(dimension)
    with pytest.raises(ValueError, match="points, got -1"):
        SobolEngine(1).draw(-1)
    with pytest.raises(ValueError, match="expected from 0 to 1 points, got 2"):
        SobolEngine(1).fast_forward((1 << 30) - 1).draw(2)
