"""Older ways to make, name and convert tensors: `new(size=)`, `type(Tensor)`, arrays without dims
among numbers, capsules, `numpy()` where nothing is recorded, unset memory in deterministic mode.
"""

import numpy as np
import pytest

import flambeau as torch
from flambeau.utils import dlpack


def test_new_by_keyword():
    x = torch.ones(2, dtype=torch.int32)
    for y in (x.new(size=(2, 3)), x.new(size=torch.Size([2, 3])), x.new(2, 3)):
        assert y.shape == (2, 3) and y.dtype == torch.int32
    assert x.new([1, 2]).tolist() == [1, 2] and x.new(2, device="cpu").shape == (2,)
    assert torch.Tensor(size=(2, 3)).shape == (2, 3)
    with pytest.raises(TypeError, match="unexpected keyword"):
        x.new(sizes=(2,))


def test_type_of_the_default_kind():
    x = torch.ones(2, dtype=torch.int32)
    for name in (torch.Tensor, "torch.Tensor"):
        assert x.type(name).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert x.type(torch.Tensor).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_arrays_without_dims_are_numbers():
    assert torch.tensor([np.array(1.0), 2]).dtype == torch.float64
    assert torch.tensor([np.int8(1), np.array(2.5)]).tolist() == [1, 2.5]
    assert torch.tensor([[torch.tensor(1.0)], [np.array(2)]]).tolist() == [[1], [2]]
    assert torch.tensor([1, np.array(2j)]).tolist() == [1, 2j]
    assert torch.tensor([np.array(True), np.array(False)]).dtype == torch.bool
    assert torch.tensor([np.array(1), np.array(2)]).dtype == torch.int64
    with pytest.raises((TypeError, ValueError)):
        torch.tensor([np.array(1), np.array([2])])


def test_asarray_of_a_capsule_shares_memory():
    x = torch.arange(3.0)
    y = torch.asarray(dlpack.to_dlpack(x))
    assert y.data_ptr() == x.data_ptr() and y.tolist() == x.tolist()
    assert torch.asarray(dlpack.to_dlpack(x), copy=True).data_ptr() != x.data_ptr()
    assert torch.asarray(dlpack.to_dlpack(x), dtype=torch.float64).dtype == torch.float64


def test_numpy_where_nothing_is_recorded():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()
    with torch.no_grad():
        assert x.numpy().tolist() == np.asarray(x).tolist() == [1, 1]


UNSET = {
    "empty": lambda d: torch.empty(5, dtype=d),
    "empty_like": lambda d: torch.empty_like(torch.zeros(5, dtype=d)),
    "empty_strided": lambda d: torch.empty_strided((5,), (2,), dtype=d),
    "empty_permuted": lambda d: torch.empty_permuted((5, 1), (1, 0), dtype=d).view(5),
    "new_empty": lambda d: torch.zeros(1, dtype=d).new_empty(5),
    "new_empty_strided": lambda d: torch.zeros(1, dtype=d).new_empty_strided((5,), (1,)),
    "new": lambda d: torch.zeros(1, dtype=d).new(5),
}


@pytest.mark.parametrize("name", UNSET)
def test_deterministic_mode_fills_unset_memory(name):
    torch.use_deterministic_algorithms(True)
    try:
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            assert UNSET[name](dtype).isnan().all()
        assert UNSET[name](torch.complex64).isnan().all()
        for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
            assert (UNSET[name](dtype) == torch.iinfo(dtype).max).all()
        assert UNSET[name](torch.bool).all()
        torch.utils.deterministic.fill_uninitialized_memory = False
        try:
            assert torch.utils.deterministic.fill_uninitialized_memory is False
        finally:
            torch.utils.deterministic.fill_uninitialized_memory = True
        with pytest.raises(TypeError):
            torch.utils.deterministic.fill_uninitialized_memory = 1
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("grow", ["resize_", "resize_as_"])
def test_deterministic_mode_fills_what_a_tensor_grows_by(grow):
    def grown(x):
        return x.resize_(5) if grow == "resize_" else x.resize_as_(torch.zeros(5))

    torch.use_deterministic_algorithms(True)
    try:
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.complex64):
            x = grown(torch.ones(2, dtype=dtype))
            assert x[:2].tolist() == [1, 1] and x[2:].isnan().all()
        for dtype in (torch.uint8, torch.int32, torch.int64):
            x = grown(torch.ones(2, dtype=dtype))
            assert x.tolist() == [1, 1] + 3 * [torch.iinfo(dtype).max]
        x = torch.ones(5)
        assert x.resize_(2).resize_(5).tolist() == [1] * 5
    finally:
        torch.use_deterministic_algorithms(False)
