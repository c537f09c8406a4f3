"""`testing.assert_close` and `make_tensor`, against NumPy's comparison."""

import numpy as np
import pytest

import flambeau as torch

close = torch.testing.assert_close


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_defaults_are_the_tolerances_of_the_dtype(dtype):
    rtol = {"float16": 1e-3, "bfloat16": 1.6e-2, "float32": 1.3e-6, "float64": 1e-7,
            "complex64": 1.3e-6}[dtype]  # fmt: skip
    x = torch.full((3,), 64.0, dtype=getattr(torch, dtype))
    wide = torch.complex128 if x.dtype.is_complex else torch.float64
    near = (x.to(wide) * (1 + 0.4 * rtol)).to(x.dtype)
    close(near, x)
    far = (x.to(wide) * (1 + 3 * max(rtol, 2**-7 if dtype == "bfloat16" else 0))).to(x.dtype)
    if dtype == "bfloat16":
        far = x + 2
    with pytest.raises(AssertionError, match="Tensor-likes are not close!"):
        close(far, x)


def test_random_pairs_agree_with_numpy():
    rng = np.random.default_rng(0)
    for _ in range(200):
        a = rng.standard_normal(4)
        b = a + rng.standard_normal(4) * 10.0 ** rng.integers(-8, -2)
        if rng.random() < 0.2:
            a[0] = b[0] = np.nan
        rtol, atol, nan = (
            10.0 ** rng.integers(-8, -2),
            10.0 ** rng.integers(-8, -2),
            bool(rng.integers(2)),
        )
        expected = np.allclose(a, b, rtol, atol, nan)
        try:
            close(torch.tensor(a), torch.tensor(b), rtol=rtol, atol=atol, equal_nan=nan)
        except AssertionError:
            assert not expected
        else:
            assert expected


def test_attributes_are_compared():
    a = torch.ones(2)
    for b, words in (
        (torch.ones(3), r"'shape' do not match: \(2,\) != \(3,\)"),
        (
            torch.ones(2, dtype=torch.float64),
            "'dtype' do not match: torch.float32 != torch.float64",
        ),
    ):
        with pytest.raises(AssertionError, match=words):
            close(a, b)
    close(a, torch.ones(2, dtype=torch.float64), check_dtype=False)
    x = torch.ones(2, 2)
    close(x, x.t().contiguous().t())
    y = torch.ones(2, 3)
    with pytest.raises(AssertionError, match="'stride"):
        close(y, y.t().contiguous().t(), check_stride=True)


def test_the_message_says_where():
    with pytest.raises(AssertionError) as caught:
        close(torch.tensor([1.0, 2.0, 5.0]), torch.tensor([1.0, 2.0, 4.0]))
    assert str(caught.value) == (
        "Tensor-likes are not close!\n\n"
        "Mismatched elements: 1 / 3 (33.3%)\n"
        "Greatest absolute difference: 1.0 at index (2,) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 0.25 at index (2,) (up to 1.3e-06 allowed)"
    )
    with pytest.raises(AssertionError, match="Tensor-likes are not equal!"):
        close(torch.tensor([1, 2]), torch.tensor([1, 3]))
    with pytest.raises(
        AssertionError, match=r"(?s)Scalars are not close!.*Expected 2.0 but got 1.0"
    ):
        close(1.0, 2.0)
    with pytest.raises(AssertionError, match="mine"):
        close(1.0, 2.0, msg="mine")
    with pytest.raises(AssertionError, match="Scalars.*!"):
        close(1.0, 2.0, msg=lambda text: text.replace("\n", " "))


def test_containers_and_numbers():
    close([torch.ones(1), {"a": 2.0}], (torch.ones(1), {"a": 2.0}))
    close(None, None)
    close(np.ones(2), np.ones(2))
    close(3, 3.0)
    with pytest.raises(AssertionError, match=r"The failure occurred for item \[1\]\['a'\]"):
        close([1, {"a": 2.0}], [1, {"a": 3.0}])
    with pytest.raises(AssertionError, match="length of the sequences mismatch: 1 != 2"):
        close([1], [1, 2])
    with pytest.raises(AssertionError, match="keys of the mappings do not match"):
        close({"a": 1}, {"b": 1})
    with pytest.raises(TypeError, match="No comparison pair"):
        close(torch.ones(1), "a")
    with pytest.raises(TypeError, match="No comparison pair"):
        close(torch.ones(1), 1.0)
    with pytest.raises(ValueError, match="rtol and atol both or neither"):
        close(1.0, 1.0, rtol=1.0)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32", "complex64"])
def test_made_tensors_lie_in_the_interval(dtype):
    kind = getattr(torch, dtype)
    x = torch.testing.make_tensor((40, 5), dtype=kind, device="cpu", low=0, high=2)
    assert x.dtype is kind and x.shape == (40, 5)
    values = np.asarray(torch.view_as_real(x) if kind.is_complex else x).astype(float)
    assert values.min() >= 0 and values.max() <= 2 and values.max() > values.min()
    strided = torch.testing.make_tensor(4, 5, dtype=kind, device="cpu", noncontiguous=True)
    assert not strided.is_contiguous() and strided.shape == (4, 5)
    assert (torch.testing.make_tensor(99, dtype=kind, device="cpu", exclude_zero=True) != 0).all()
    if dtype == "float32":
        assert torch.testing.make_tensor(
            2, dtype=kind, device="cpu", requires_grad=True
        ).requires_grad
