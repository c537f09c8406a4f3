"""Memory shared with NumPy, buffers and DLPack, and tensors made of Python data."""

import gc

import numpy as np
import pytest

import flambeau as fb

SHARED = (
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 float32 float64 "
    "complex64 complex128"
)


@pytest.mark.parametrize("name", SHARED.split())
def test_numpy_shares_memory_both_ways(name):
    a = np.arange(6).reshape(2, 3).astype(name)
    x = fb.from_numpy(a)
    assert x.dtype is getattr(fb, name)
    assert x.data_ptr() == a.ctypes.data
    x[0, 0] = 1
    assert a[0, 0] == 1
    b = x.t().numpy()
    assert b.dtype == a.dtype
    assert b.ctypes.data == a.ctypes.data
    np.testing.assert_array_equal(b, a.T)


def test_arrays_outlive_tensors_and_tensors_arrays():
    a = fb.arange(4).numpy()
    gc.collect()
    assert a.tolist() == [0, 1, 2, 3]
    x = fb.from_numpy(np.arange(4))
    gc.collect()
    assert x.tolist() == [0, 1, 2, 3]


def test_arrays_that_cannot_be_shared():
    with pytest.raises(ValueError, match="At least one stride in the given"):
        fb.from_numpy(np.ones(3)[::-1])
    with pytest.raises(TypeError, match="can't convert np.ndarray of type"):
        fb.from_numpy(np.array(["a"]))
    with pytest.raises(TypeError, match=r"expected np.ndarray \(got list\)"):
        fb.from_numpy([1])
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        fb.ones(1, requires_grad=True).numpy()
    with pytest.raises(TypeError, match="Got unsupported ScalarType BFloat16"):
        fb.ones(1, dtype=fb.bfloat16).numpy()
    swapped = np.ones(2).astype(">f8")
    with pytest.raises(ValueError, match="byte order"):
        fb.from_numpy(swapped)


def test_dlpack_both_ways():
    a = np.arange(6.0).reshape(2, 3)
    x = fb.from_dlpack(a)
    assert x.data_ptr() == a.ctypes.data
    b = np.from_dlpack(x[:, 1:])
    assert b.tolist() == [[1, 2], [4, 5]]
    x[0, 1] = 9
    assert b[0, 0] == 9
    y = fb.from_dlpack(fb.ones(2))
    assert y.tolist() == [1, 1]
    from flambeau.utils import dlpack

    z = dlpack.from_dlpack(dlpack.to_dlpack(y))
    assert z.data_ptr() == y.data_ptr()
    capsule = fb.ones(2).__dlpack__()
    fb.from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="consumed only once"):
        fb.from_dlpack(capsule)
    assert fb.ones(1).__dlpack_device__() == (1, 0)


def test_unused_capsules_give_memory_back():
    gc.collect()
    before = fb.memory_stats()["live_bytes"]
    for _ in range(10):
        fb.empty(100_000).__dlpack__()
    gc.collect()
    assert fb.memory_stats()["live_bytes"] <= before + 1_000_000


def test_frombuffer():
    buffer = bytearray(np.arange(4, dtype=np.float32).tobytes())
    x = fb.frombuffer(buffer, dtype=fb.float32, offset=4)
    assert x.tolist() == [1, 2, 3]
    x[0] = 7
    assert np.frombuffer(buffer, np.float32)[1] == 7
    with pytest.raises(ValueError, match="must be a multiple of element size"):
        fb.frombuffer(bytearray(7), dtype=fb.float32)
    with pytest.raises(ValueError, match="must not be greater than actual buffer length"):
        fb.frombuffer(bytearray(8), dtype=fb.float32, count=3)


@pytest.mark.parametrize(
    "data",
    [
        1,
        1.5,
        True,
        2j,
        [],
        [[], []],
        [1, 2.5],
        [True, 2],
        [[1, 2], [3, 4]],
        (1.0, (2)),
        [np.float32(1), np.float32(2)],
        [np.array([1, 2]), np.array([3, 4])],
        range(3),
    ],
)
@pytest.mark.filterwarnings("ignore:A tensor is made of a list of NumPy arrays")
def test_tensor_of_data(data):
    x = fb.tensor(data)
    expected = np.array(data)
    assert tuple(x.shape) == expected.shape
    np.testing.assert_array_equal(x.numpy(), expected)
    if expected.size and not isinstance(np.ravel(data)[0], np.float32):
        kinds = {"f": fb.float32, "i": fb.int64, "b": fb.bool, "c": fb.complex64}
        assert x.dtype is kinds[expected.dtype.kind]


def test_tensor_of_bad_data():
    for data, error, text in [
        ([[1, 2], [3]], ValueError, "expected sequence of length 2 at dim 1 (got 1)"),
        (["a"], ValueError, "too many dimensions 'str'"),
        ("a", TypeError, "new(): invalid data type 'str'"),
        (None, RuntimeError, "Could not infer dtype of NoneType"),
        ([1, None], RuntimeError, "Could not infer dtype of NoneType"),
        (2**70, ValueError, "Overflow when unpacking long long"),
        ([[1], 2], TypeError, "not a sequence"),
    ]:
        with pytest.raises(error) as caught:
            fb.tensor(data)
        assert str(caught.value) == text
    with pytest.raises(RuntimeError, match="to type uint8 without overflow"):
        fb.tensor(300, dtype=fb.uint8)
    assert fb.tensor(-1, dtype=fb.uint8).item() == 255


def test_as_tensor_and_asarray_share_where_they_can():
    a = np.ones(3)
    assert fb.as_tensor(a).data_ptr() == a.ctypes.data
    assert fb.as_tensor(a, dtype=fb.float32).dtype is fb.float32
    x = fb.ones(2)
    assert fb.as_tensor(x) is x
    assert fb.asarray(a, copy=True).data_ptr() != a.ctypes.data
    with pytest.raises(ValueError, match="can't alias tensor with dtype 'Double'"):
        fb.asarray(a, copy=False, dtype=fb.float32)


def test_conversions():
    x = fb.tensor([1.5, 2.5])
    assert x.to(fb.float32) is x
    assert x.to("cpu") is x
    assert x.to(fb.int64).tolist() == [1, 2]
    assert x.to(fb.zeros(1, dtype=fb.float64)).dtype is fb.float64
    assert x.to(fb.float32, copy=True) is not x
    assert x.double().type() == "torch.DoubleTensor"
    assert x.type("torch.LongTensor").dtype is fb.int64
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        x.cuda()
    with pytest.raises(ValueError, match="invalid type: 'foo'"):
        x.type("foo")


def test_legacy_constructors():
    assert fb.Tensor(2, 3).shape == (2, 3)
    assert fb.Tensor([1, 2]).dtype is fb.float32
    assert fb.LongTensor([1, 2]).dtype is fb.int64
    assert isinstance(fb.tensor([1]), fb.LongTensor)
    assert not isinstance(fb.tensor([1.0]), fb.LongTensor)


def test_storages():
    x = fb.arange(4, dtype=fb.float32)
    s = x.storage()
    assert s.tolist() == [0, 1, 2, 3]
    s[0] = 5.0
    assert x[0].item() == 5
    assert x.untyped_storage().nbytes() == 16
    y = fb.empty(0).set_(x.untyped_storage(), 1, (2,), (1,))
    assert y.tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        fb.empty(0).set_(x.untyped_storage(), 3, (2,), (1,))


def test_steps_beyond_the_address_space():
    """A dim of one entry may have any step."""
    for x in (fb.ones(2, 3)[:: 2**61], fb.ones(2, 3)[:: 2**64]):
        assert x.numpy().tolist() == [[1, 1, 1]]
        assert (x + x).tolist() == [[2, 2, 2]]
        assert fb.from_dlpack(x).tolist() == [[1, 1, 1]]
