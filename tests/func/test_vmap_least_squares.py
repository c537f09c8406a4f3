"""lstsq and pinv under vmap are those of the batch, sample by sample."""

import pytest

import flambeau as torch

vmap = torch.func.vmap


@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
def test_least_squares(shape, driver):
    torch.manual_seed(0)
    a, b = (torch.randn(2, shape[0], n, dtype=torch.float64) for n in (shape[1], 3))
    got = vmap(lambda a, b: tuple(torch.linalg.lstsq(a, b, driver=driver)))(a, b)
    for i in range(2):
        for x, y in zip(got, torch.linalg.lstsq(a[i], b[i], driver=driver), strict=True):
            assert x[i].shape == y.shape and torch.allclose(x[i].double(), y.double())
    if shape == (5, 3) and driver in ("gels", "gelsd", "gelss"):
        assert got[1].shape == (2, 3)


@pytest.mark.parametrize("hermitian", [True, False])
def test_pseudo_inverses(hermitian):
    torch.manual_seed(0)
    x = torch.randn(3, 2, 4, 2, dtype=torch.float64)
    x = x @ x.mT  # of rank 2
    f = lambda x: torch.linalg.pinv(x, hermitian=hermitian, rtol=1e-8)  # noqa: E731
    want = torch.stack([torch.stack([f(m) for m in row]) for row in x])
    assert torch.allclose(vmap(f)(x), want) and torch.allclose(vmap(vmap(f))(x), want)
    assert torch.allclose(vmap(f, in_dims=2, out_dims=2)(x.movedim(0, 2)), want.movedim(0, 2))
    tolerances = torch.tensor([[1e-8, 10.0], [10.0, 1e-8], [1e-8, 1e-8]], dtype=torch.float64)
    g = lambda x, t: torch.linalg.pinv(x, rtol=t, hermitian=hermitian)  # noqa: E731
    zeroed = torch.where(tolerances[..., None, None] > 1, 0.0, want)
    assert torch.allclose(vmap(g)(x, tolerances), zeroed)
    assert torch.allclose(vmap(g, in_dims=(1, None))(x, tolerances[:, 0]), torch.where(
        tolerances[:, 0][:, None, None] > 1, 0.0, want.movedim(1, 0)))  # fmt: skip


@pytest.mark.parametrize("hermitian", [True, False])
def test_gradients_of_pseudo_inverses(hermitian):
    torch.manual_seed(0)
    x = torch.randn(3, 4, 4, dtype=torch.float64)
    x = x @ x.mT
    f = lambda x: torch.linalg.pinv(x, hermitian=hermitian).pow(2).sum()  # noqa: E731
    got = vmap(torch.func.grad(f))(x)
    assert torch.allclose(got, torch.stack([torch.func.grad(f)(m) for m in x]))
