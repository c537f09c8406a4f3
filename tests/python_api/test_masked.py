"""Masked reductions against NumPy over the selected elements alone."""

import numpy as np
import pytest
from scipy import special

import flambeau as torch
from flambeau import masked

X = np.random.default_rng(0).standard_normal((4, 5))
MASK = np.random.default_rng(1).random((4, 5)) < 0.6
MASK[:, 0] = True
x, mask = torch.from_numpy(X), torch.from_numpy(MASK)


def rows(f):
    return np.array([f(row[m]) for row, m in zip(X, MASK, strict=True)])


REFERENCES = {
    "sum": np.sum,
    "prod": np.prod,
    "amax": np.max,
    "amin": np.min,
    "mean": np.mean,
    "median": lambda r: np.sort(r)[(len(r) - 1) // 2],
    "norm": np.linalg.norm,
    "logsumexp": special.logsumexp,
}


@pytest.mark.parametrize("name", REFERENCES)
def test_reductions(name):
    args = (2.0, 1) if name == "norm" else (1,)
    got = getattr(masked, name)(x, *args, mask=mask)
    np.testing.assert_allclose(got.numpy(), rows(REFERENCES[name]), rtol=1e-12)


@pytest.mark.parametrize("correction", [0, 1])
def test_variance(correction):
    want = np.array(
        [
            row[m].var(ddof=correction) if m.sum() > correction else np.nan
            for row, m in zip(X, MASK, strict=True)
        ]
    )
    got = masked.var(x, 1, correction=correction, mask=mask)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    root = masked.std(x, 1, correction=correction, mask=mask)
    np.testing.assert_allclose(root.numpy(), np.sqrt(want), rtol=1e-12)


def test_places():
    for name, fill in (("argmax", -np.inf), ("argmin", np.inf)):
        want = getattr(np, name)(np.where(MASK, X, fill), 1)
        assert getattr(masked, name)(x, 1, mask=mask).tolist() == want.tolist()


def test_scans():
    np.testing.assert_allclose(
        masked.cumsum(x, 1, mask=mask).numpy(), np.cumsum(np.where(MASK, X, 0), 1)
    )
    np.testing.assert_allclose(
        masked.cumprod(x, 1, mask=mask).numpy(), np.cumprod(np.where(MASK, X, 1), 1)
    )


def test_normalisations():
    want = special.softmax(np.where(MASK, X, -np.inf), 1)
    np.testing.assert_allclose(masked.softmax(x, 1, mask=mask).numpy(), want, rtol=1e-12)
    np.testing.assert_allclose(masked.softmin(-x, 1, mask=mask).numpy(), want, rtol=1e-12)
    logs = masked.log_softmax(x, 1, mask=mask)
    np.testing.assert_allclose(logs.exp().numpy(), want, rtol=1e-12)
    unit = masked.normalize(x, 2.0, 1, mask=mask)
    np.testing.assert_allclose((unit * unit).sum(1).numpy(), np.ones(4))
    assert (unit[~mask] == 0).all()


def test_nothing_selected():
    none = torch.zeros(3, dtype=torch.bool)
    ones = torch.ones(3)
    assert masked.sum(ones, mask=none) == 0 and masked.prod(ones, mask=none) == 1
    assert masked.amax(ones, mask=none) == -np.inf and masked.mean(ones, mask=none).isnan()
    assert masked.amin(torch.ones(3, dtype=torch.int32), mask=none) == 2**31 - 1
    with pytest.raises(ValueError, match="under the mask"):
        masked.median(torch.arange(3), 0, mask=none)


def test_gradients_reach_selected_elements_alone():
    leaf = x.clone().requires_grad_()
    masked.mean(leaf, mask=mask).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), MASK / MASK.sum())


def test_mask_must_broadcast():
    with pytest.raises(ValueError, match="broadcasts to"):
        masked.sum(x, mask=torch.ones(3, dtype=torch.bool))
