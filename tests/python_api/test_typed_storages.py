"""Parts of storages, storages with a type, tensors over them: bytes are held against struct's."""

import gc
import io
import struct
import sys

import numpy as np
import pytest

import flambeau as torch
from flambeau.storage import TypedStorage

NATIVE = "<" if sys.byteorder == "little" else ">"
LEGACY = {
    "BFloat16": "bfloat16", "Bool": "bool", "Byte": "uint8", "Char": "int8",
    "ComplexDouble": "complex128", "ComplexFloat": "complex64", "Double": "float64",
    "Float": "float32", "Half": "float16", "Int": "int32", "Long": "int64", "Short": "int16",
}  # fmt: skip


def bytes_8():
    return torch.UntypedStorage(range(8))


# Parts


@pytest.mark.parametrize(
    "part", [slice(1, 3), slice(None), slice(-3, -1), slice(5, 2), slice(20, 30), slice(2, None)]
)
def test_a_part_shares_the_memory(part):
    whole = bytes_8()
    got = whole[part]
    assert type(got) is torch.UntypedStorage
    assert got.tolist() == list(range(8))[part]
    if len(got):
        assert got.data_ptr() == whole.data_ptr() + part.indices(8)[0]
    got.fill_(9)
    want = bytearray(range(8))
    want[part] = bytes([9]) * len(got)
    assert bytes(whole) == bytes(want)


def test_a_part_keeps_the_whole_in_its_place():
    whole = bytes_8()
    part = whole[2:6][1:3]
    assert not whole.resizable() and not part.resizable()
    with pytest.raises(RuntimeError, match="resiz"):
        whole.resize_(100)
    del whole
    gc.collect()
    junk = [torch.UntypedStorage(8).fill_(255) for _ in range(100)]
    assert part.tolist() == [3, 4] and len(junk) == 100
    whole = bytes_8()
    part = whole[1:]
    del part
    assert whole.resize_(100).nbytes() == 100


def test_bytes_are_set_by_slices():
    s = bytes_8()
    s[1:3] = 9
    s[-1] = 7
    assert s.tolist() == [0, 9, 9, 3, 4, 5, 6, 7]
    s[:] = 1
    assert s.tolist() == [1] * 8 and s[-8] == 1


def test_keys_that_are_refused():
    s = bytes_8()
    step = "Trying to slice with a step of 2, but only a step of 1 is supported"
    with pytest.raises(RuntimeError, match=step):
        s[::2]
    with pytest.raises(RuntimeError, match=step):
        s[::2] = 1
    with pytest.raises(TypeError, match=r"can't index a torch.UntypedStorage with str"):
        s["a"]
    with pytest.raises(TypeError, match=r"can't index a torch.UntypedStorage with float"):
        s[1.5] = 2
    with pytest.raises(TypeError, match="cannot be deleted"):
        del s[1:2]
    for i in (8, -9):
        with pytest.raises(IndexError, match="out of range for storage of size 8"):
            s[i]


# Tensors over storages


@pytest.mark.parametrize("make", [torch.tensor, torch.as_tensor, torch.asarray])
def test_a_storage_as_numbers_of_a_dtype(make):
    raw = struct.pack(f"{NATIVE}2f", 1.5, -2.0)
    storage = torch.UntypedStorage(raw)
    x = make(storage, dtype=torch.float32)
    assert x.tolist() == [1.5, -2.0]
    assert x.untyped_storage().data_ptr() == storage.data_ptr()
    x[0] = 4
    assert bytes(storage) == struct.pack(f"{NATIVE}2f", 4, -2)
    assert make(storage).tolist() == [struct.unpack(f"{NATIVE}q", bytes(storage))[0]]
    assert make(storage[4:], dtype=torch.float32).tolist() == [-2]
    assert make(torch.UntypedStorage(range(7)), dtype=torch.int32).shape == (1,)
    with pytest.raises(ValueError, match="expected a storage with bytes, got one on the meta"):
        make(torch.UntypedStorage(4, device="meta"), dtype=torch.int32)


def test_a_storage_with_a_type_has_that_type():
    typed = torch.FloatStorage([1, 2])
    assert torch.tensor(typed).tolist() == [1, 2]
    assert torch.FloatTensor(typed).tolist() == torch.Tensor(typed).tolist() == [1, 2]
    assert torch.ones(1).new(typed).data_ptr() == typed.data_ptr()
    for make in (torch.IntTensor, lambda s: torch.tensor(s, dtype=torch.int32)):
        with pytest.raises(RuntimeError, match="expected a storage of dtype int32 or one without"):
            make(typed)
    copied = torch.asarray(typed, dtype=torch.float32, copy=True)
    assert copied.data_ptr() != typed.data_ptr() and copied.tolist() == [1, 2]


def test_set():
    raw = struct.pack(f"{NATIVE}4i", 5, 6, 7, 8)
    storage = torch.UntypedStorage(raw)
    empty = torch.tensor([], dtype=torch.int32)
    assert empty.set_(storage).tolist() == [5, 6, 7, 8]
    assert empty.set_(storage[4:12]).tolist() == [6, 7]
    assert empty.set_(storage, 1, (2,)).tolist() == [6, 7]
    assert empty.set_(storage, 0, (2, 2), (1, 2)).tolist() == [[5, 7], [6, 8]]
    meta = torch.tensor([], device="meta").set_(torch.UntypedStorage(8, device="meta"))
    assert meta.shape == (2,) and meta.device.type == "meta"
    with pytest.raises(RuntimeError, match='"cpu" to a storage on different device "meta"'):
        torch.tensor([]).set_(torch.UntypedStorage(8, device="meta"))
    with pytest.raises(RuntimeError, match='"meta" to a storage on different device "cpu"'):
        torch.tensor([], device="meta").set_(torch.UntypedStorage(8))


# Byte order


@pytest.mark.parametrize(
    "dtype", "bool uint8 int16 bfloat16 int32 float64 complex64 complex128".split()
)
def test_byteswap(dtype):
    dtype = getattr(torch, dtype)
    storage = torch.UntypedStorage(range(16))
    assert storage.byteswap(dtype) is None
    size = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    want = [x for i in range(0, 16, size) for x in range(i + size - 1, i - 1, -1)]
    assert storage.tolist() == want
    with pytest.raises(RuntimeError, match="the length of data is not a multiple of 4, got 7"):
        torch.UntypedStorage(range(7)).byteswap(torch.int32)
    with pytest.raises(NotImplementedError, match="meta"):
        torch.UntypedStorage(8, device="meta").byteswap(torch.int32)


@pytest.mark.parametrize(("order", "mark"), [("little", "<"), ("big", ">"), ("native", NATIVE)])
def test_from_buffer(order, mark):
    raw = struct.pack(f"{mark}3f", 1, 2.5, -3)
    made = torch.FloatStorage.from_buffer(raw, order)
    assert type(made) is TypedStorage and made.tolist() == [1, 2.5, -3]
    assert TypedStorage.from_buffer(raw, order, dtype=torch.float32).tolist() == [1, 2.5, -3]
    untyped = torch.UntypedStorage.from_buffer(raw, order, dtype=torch.float32)
    assert bytes(untyped) == struct.pack(f"{NATIVE}3f", 1, 2.5, -3)
    assert torch.FloatStorage.from_buffer(raw, order, 1, 4).tolist() == [2.5]
    assert torch.ByteStorage.from_buffer(b"abc").tolist() == [97, 98, 99]


@pytest.mark.parametrize(
    ("args", "options", "error", "message"),
    [
        ((b"abcd",), {}, RuntimeError, "'dtype' cannot be None"),
        (
            (b"abcd",),
            {"dtype": torch.int32},
            RuntimeError,
            "missing required argument 'byte_order'",
        ),
        ((b"abcd", "middle"), {"dtype": torch.int32}, ValueError, "invalid byte_order 'middle'"),
        (
            (b"abcde", "big"),
            {"dtype": torch.int32},
            ValueError,
            r"\(5\) must be a multiple .* \(4\)",
        ),
        ((b"abcd", "big", 2), {"dtype": torch.int32}, ValueError, "only 1 elements after offset 0"),
        ((b"abcd", "big", 1, 4), {"dtype": torch.int32}, ValueError, "offset must be non-negative"),
        (
            (b"abcd", "big", 1, -1),
            {"dtype": torch.int32},
            ValueError,
            "offset must be non-negative",
        ),
    ],
)
def test_buffers_that_are_refused(args, options, error, message):
    with pytest.raises(error, match=message):
        torch.UntypedStorage.from_buffer(*args, **options)


# Storages with a type


@pytest.mark.parametrize("name", sorted(LEGACY))
def test_classes_for_a_dtype(name):
    cls, dtype = getattr(torch, f"{name}Storage"), getattr(torch, LEGACY[name])
    made = cls([0, 1])
    assert type(made) is TypedStorage and made.dtype == cls.dtype == dtype
    assert isinstance(made, cls) and issubclass(cls, TypedStorage)
    assert not isinstance(made, torch.LongStorage if name != "Long" else torch.IntStorage)
    assert made.tolist() == torch.tensor([0, 1], dtype=dtype).tolist()
    assert made.pickle_storage_type() == f"{name}Storage"
    assert made.type() == f"torch.{name}Storage" and repr(cls) == f"<class 'torch.{name}Storage'>"
    assert cls(3).size() == 3 and cls().size() == 0
    assert cls(wrap_storage=torch.UntypedStorage(32)).size() == 32 // dtype.itemsize
    assert cls._new_shared(2).is_shared()
    wider = made.type(torch.ComplexDoubleStorage)
    assert wider.dtype == torch.complex128 and wider.tolist() == [0, 1]


def test_conversions():
    made = torch.FloatStorage([1.5, 300])
    assert made.float() is made
    assert made.int().tolist() == [1, 300] and made.long().dtype == torch.int64
    assert made.half().untyped().tolist() == list(np.float16([1.5, 300]).tobytes())
    assert made.complex_double().tolist() == [1.5, 300]
    assert made.bool().tolist() == [True, True]
    assert torch.UntypedStorage([1, 2]).double().tolist() == [1, 2]
    assert torch.UntypedStorage([1, 2]).type(torch.ShortStorage).dtype == torch.int16
    assert torch.UntypedStorage([1, 2]).type() == "torch.storage.UntypedStorage"
    assert made.type("torch.IntStorage").tolist() == [1, 300]
    assert made.copy_(torch.IntStorage([4, 5])).tolist() == [4, 5]
    assert made.copy_(torch.UntypedStorage(struct.pack("=2f", 7, 8))).tolist() == [7, 8]


def test_numbers_are_read_and_set():
    made = torch.FloatStorage([1, 2, 3])
    made[0], made[-1] = 9.5, 4
    made[1:2] = 8
    assert list(made) == [9.5, 8, 4] and made[-3] == 9.5
    with pytest.raises(IndexError, match="index 3 out of range for storage of size 3"):
        made[3]
    with pytest.raises(RuntimeError, match="slices are only supported in UntypedStorage"):
        made[1:]
    with pytest.raises(RuntimeError, match="can't index"):
        made[1.5]
    with pytest.raises(RuntimeError, match="cannot set item with value type"):
        made[0] = torch.FloatStorage([1])


@pytest.mark.parametrize(
    ("args", "options", "error", "message"),
    [
        ((), {"wrap_storage": torch.UntypedStorage(8)}, RuntimeError, "'dtype' must be specified"),
        (
            (2,),
            {"wrap_storage": torch.UntypedStorage(8), "dtype": torch.int32},
            RuntimeError,
            "No pos",
        ),
        (
            (),
            {"wrap_storage": 3, "dtype": torch.int32},
            TypeError,
            "must be UntypedStorage, but got",
        ),
        (
            (),
            {"wrap_storage": torch.UntypedStorage(8), "dtype": int},
            TypeError,
            "must be torch.dtype",
        ),
        (
            (),
            {"wrap_storage": torch.UntypedStorage(8), "dtype": torch.int32, "device": "cpu"},
            RuntimeError,
            "'device' should not be specified",
        ),
        ((1, 2), {}, RuntimeError, "Too many positional arguments"),
        ((2.5,), {}, TypeError, "Argument type not recognized: <class 'float'>"),
        (("a",), {}, TypeError, "invalid data type 'str'"),
        ((np.ones(2),), {}, TypeError, "Argument type not recognized"),
    ],
)
def test_arguments_that_are_refused(args, options, error, message):
    with pytest.raises(error, match=message):
        TypedStorage(*args, **options)


def test_classes_have_their_dtype_and_device():
    for options in ({"device": "cpu"}, {"dtype": torch.int32}):
        with pytest.raises(RuntimeError, match="cannot be specified"):
            torch.FloatStorage(2, **options)
    with pytest.raises(RuntimeError, match="can only be called on derived classes"):
        TypedStorage.from_file("name")


# The meta device


def test_meta_storages():
    typed = TypedStorage(4, dtype=torch.int16, device="meta")
    untyped = typed.untyped()
    assert typed.device.type == "meta" and len(typed) == 4 and untyped.nbytes() == 8
    assert repr(typed).startswith(
        "...\n[torch.storage.TypedStorage(dtype=torch.int16, device=meta)"
    )
    assert repr(untyped) == "...\n[torch.storage.UntypedStorage(device=meta) of size 8]"
    assert untyped.clone().device.type == typed.clone().device.type == "meta"
    assert torch.UntypedStorage(8).to(device="meta").device.type == "meta"
    for read in (lambda: typed[0], lambda: untyped[0], lambda: untyped[1:3], untyped.tolist):
        with pytest.raises(NotImplementedError, match="Not available for 'meta' device type"):
            read()
    for copy in (untyped.cpu, typed.cpu, lambda: torch.UntypedStorage(8).copy_(untyped)):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
            copy()
    with pytest.raises(NotImplementedError, match="no data"):
        untyped.to(device="cpu")
    assert untyped.copy_(torch.UntypedStorage(8)) is untyped


# Files


def saved(value, **options):
    stream = io.BytesIO()
    torch.save(value, stream, **options)
    stream.seek(0)
    return torch.load(stream)


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}])
def test_storages_in_files(options):
    x = torch.arange(4, dtype=torch.int16)
    y, typed = saved((x, TypedStorage(wrap_storage=x.untyped_storage(), dtype=x.dtype)), **options)
    typed[0] = 7
    assert y.tolist() == typed.tolist() == [7, 1, 2, 3]
    assert saved(bytes_8()[2:5], **options).tolist() == [2, 3, 4]
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        saved(torch.UntypedStorage(4, device="meta"), **options)
    with pytest.raises(TypeError, match="files have no name for a storage of dtype torch.uint16"):
        saved(TypedStorage([1], dtype=torch.uint16), **options)
    from flambeau.storage import _load_from_bytes

    stream = io.BytesIO()
    torch.save(torch.FloatStorage([1, 2]), stream, **options)
    assert _load_from_bytes(stream.getvalue()).tolist() == [1, 2]
