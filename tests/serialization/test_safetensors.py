"""`flambeau.safetensors`: files written by hand from the format's description, and malformed ones.

The reference is `struct` and `json`: what a file should hold is spelled out here, byte for byte.
"""

import gc
import json
import os
import struct
import subprocess
import sys

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.safetensors import (
    SafetensorError,
    load,
    load_file,
    load_model,
    safe_open,
    save,
    save_file,
    save_model,
)

# name of the format, dtype, how struct packs 0, 1, 2 of it
TYPES = [
    ("U64", torch.uint64, "<3Q"), ("I64", torch.int64, "<3q"), ("F64", torch.float64, "<3d"),
    ("F32", torch.float32, "<3f"), ("U32", torch.uint32, "<3I"), ("I32", torch.int32, "<3i"),
    ("F16", torch.float16, "<3e"), ("U16", torch.uint16, "<3H"), ("I16", torch.int16, "<3h"),
    ("I8", torch.int8, "<3b"), ("U8", torch.uint8, "<3B"),
]  # fmt: skip


def entry(shape, offsets, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def made(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.safetensors"


@pytest.mark.parametrize(("name", "dtype", "pack"), TYPES)
def test_dtypes(path, name, dtype, pack):
    raw = struct.pack(pack, 0, 1, 2)
    data = made({"a": entry([3], [0, len(raw)], name)}, raw)
    path.write_bytes(data)
    for read in (load(data), load_file(path), load_file(path, backend="pread")):
        assert read["a"].dtype == dtype and read["a"].tolist() == [0, 1, 2]
    again = save({"a": torch.tensor([0, 1, 2], dtype=dtype)})
    assert again[-len(raw) :] == raw
    assert json.loads(again[8 : -len(raw)]) == json.loads(data[8 : -len(raw)])


def test_other_dtypes():
    got = load(made({"a": entry([2], [0, 2], "BOOL"), "b": entry([2], [2, 6], "BF16"),
                     "c": entry([1], [6, 14], "C64")},
                    b"\x01\x00" + b"\x80\x3f\x00\xc0" + struct.pack("<2f", 1, 2)))  # fmt: skip
    assert got["a"].tolist() == [True, False]
    assert got["b"].dtype == torch.bfloat16 and got["b"].tolist() == [1, -2]
    assert got["c"].dtype == torch.complex64 and got["c"].tolist() == [1 + 2j]
    again = load(save(got))
    assert all(torch.equal(again[k], got[k]) for k in got)


def test_the_file_byte_for_byte(path):
    tensors = {
        "z": torch.ones(2), "a": torch.zeros(1), "n": torch.tensor(7), "e": torch.empty(0, 3),
    }  # fmt: skip
    save_file(tensors, path, metadata={"b": "1", "a": "2"})
    header = {
        "__metadata__": {"a": "2", "b": "1"},
        "n": entry([], [0, 8], "I64"),
        "a": entry([1], [8, 12]),
        "e": entry([0, 3], [12, 12]),
        "z": entry([2], [12, 20]),
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    want = struct.pack("<Q", len(text)) + text + struct.pack("<q3f", 7, 0, 1, 1)
    assert path.read_bytes() == want == save(tensors, {"a": "2", "b": "1"})
    with safe_open(path, framework="pt") as file:
        assert file.keys() == ["a", "e", "n", "z"] and file.offset_keys() == ["n", "a", "e", "z"]
        assert file.metadata() == {"a": "2", "b": "1"}
        assert file.get_tensor("e").shape == (0, 3) and file.get_tensor("n").item() == 7
    assert list(load_file(path)) == ["n", "a", "e", "z"]


def test_slices(path):
    x = torch.arange(24.0).view(2, 3, 4)
    save_file({"x": x}, path)
    for backend in ("mmap", "pread"):
        with safe_open(path, framework="pt", backend=backend) as file:
            part = file.get_slice("x")
            assert part.get_shape() == [2, 3, 4] and part.get_dtype() == "F32"
            for key in (0, -1, slice(1, 2), (slice(None), slice(0, 2)), (1, 2, 3), ..., (..., 1)):
                assert torch.equal(part[key], x[key])
            with pytest.raises(IndexError):
                part[2]
            with pytest.raises(SafetensorError, match="File does not contain tensor y"):
                file.get_slice("y")


def test_one_map_and_no_copies(path):
    save_file({"a": torch.ones(4), "b": torch.zeros(4), "c": torch.ones(3, dtype=torch.int8)}, path)
    got = load_file(path)
    assert got["b"].data_ptr() == got["a"].data_ptr() + 16
    assert [t.untyped_storage().nbytes() for t in got.values()] == [16, 16, 3]
    got["a"].fill_(5)  # the file is not changed
    assert load_file(path)["a"].tolist() == [1, 1, 1, 1] and got["b"].tolist() == [0, 0, 0, 0]
    kept = got["c"]
    del got
    gc.collect()
    os.unlink(path)
    assert kept.tolist() == [1, 1, 1]


def test_large_files_are_not_read(path):
    size = 1 << 31
    head = made({"a": entry([size], [0, size], "U8"), "b": entry([1], [size, size + 4])})
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(len(head) + size)
        file.seek(len(head) + size)
        file.write(struct.pack("<f", 7))
    code = (
        "import resource, sys, flambeau.safetensors as s\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "got = s.load_file(sys.argv[1])\n"
        "assert got['b'].item() == 7 and got['a'].shape == (1 << 31,)\n"
        "assert got['a'][-1].item() == 0\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, timeout=120, check=True
    )
    assert int(done.stdout) < 20_000  # kB


def test_odd_addresses(path):
    raw = struct.pack("<Bf", 1, 2.5)
    data = made({"a": entry([1], [0, 1], "U8"), "b": entry([1], [1, 5])}, raw)
    path.write_bytes(data)
    for got in (load(data), load_file(path)):
        assert got["b"].item() == 2.5 and got["b"].data_ptr() % 4 == 0


def test_the_meta_device(path):
    save_file({"a": torch.ones(2, 3)}, path)
    got = load_file(path, device="meta")["a"]
    assert got.device.type == "meta" and got.shape == (2, 3) and got.dtype == torch.float32
    with pytest.raises(ValueError, match="on the meta device"):
        save({"a": got})


@pytest.mark.parametrize("header", [b"{}   ", b"  {}", {"__metadata__": None}, {}])
def test_files_without_tensors(header):
    assert load(made(header)) == {}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file has 0 bytes, its header needs 8"),
        (b"1234567", "the file has 7 bytes"),
        (made({}, length=100), "header should have 100 bytes, the file has 2"),
        (made({}, length=1 << 40), "at most 100000000 bytes, got 1099511627776"),
        (made({}, length=(1 << 64) - 1), "at most 100000000 bytes"),
        (made(b"[]"), "the header is a list, not a dict"),
        (made(b"{abc}"), "not valid JSON"),
        (made(b'{"\xff":1}'), "not UTF-8"),
        (made(b"{}x"), "not valid JSON"),
        (made(b"{}\0"), "not valid JSON"),
        (made(b"[" * 100_000), "nested too deeply|not valid JSON"),
        (made(b'{"a":' * 100_000), "nested too deeply|not valid JSON"),
        (made(b'{"a":' + b"9" * 10_000 + b"}"), "not valid JSON"),
        (made(b'{"a":{"dtype":"U8","shape":[NaN],"data_offsets":[0,1]}}', b"1"), "not valid JSON"),
        (made({}, b"123"), "the tensors have 0 bytes, the file holds 3"),
        (made(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
              b'"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"1"), "names 'a' twice"),
        (made({"a": entry([1], [4, 8])}, b"12345678"), "begins at byte 4 .* expected 0: it leaves"),
        (made({"a": entry([1], [0, 4]), "b": entry([1], [0, 4])}, b"1234"), "overlaps the one"),
        (made({"a": entry([2], [0, 8]), "b": entry([1], [4, 8])}, b"12345678"), "overlaps the one"),
        (made({"a": entry([2], [0, 4])}, b"1234"), "needs 8 bytes, its data_offsets give it 4"),
        (made({"a": entry([-1], [0, 4])}, b"1234"), "should be at most 64 counts"),
        (made({"a": entry([True], [0, 4])}, b"1234"), "should be at most 64 counts"),
        (made({"a": entry([1.0], [0, 4])}, b"1234"), "should be at most 64 counts"),
        (made({"a": entry([1] * 65, [0, 4])}, b"1234"), "should be at most 64 counts"),
        (made({"a": entry([1 << 70], [0, 4])}, b"1234"), "should be at most 64 counts"),
        (made({"a": entry([1 << 62, 1 << 62], [0, 4])}, b"1234"), "bytes, its data_offsets give"),
        (made({"a": entry([1], [4, 0])}, b"1234"), "should be where it begins and ends"),
        (made({"a": entry([1], [0])}, b"1234"), "should be where it begins and ends"),
        (made({"a": entry([1], [0, 4, 4])}, b"1234"), "should be where it begins and ends"),
        (made({"a": entry([2], [0, 8])}, b"1234"), "have 8 bytes, the file holds 4"),
        (made({"a": entry([1], [0, 4])}, b"12345678"), "have 4 bytes, the file holds 8"),
        (made({"a": entry([1], [0, 4], "F33")}, b"1234"), "unknown dtype 'F33'"),
        (made({"a": entry([1], [0, 4], 5)}, b"1234"), "unknown dtype '5'"),
        (made({"a": entry([1], [0, 1], "BOOL")}, b"\5"), "holds bytes other than 0 and 1"),
        (made({"a": entry([1], [0, 1], "F8_E4M3")}, b"1"), "F8_E4M3, which flambeau does not have"),
        (made({"a": entry([2], [0, 1], "F4")}, b"1"), "F4, which flambeau does not have"),
        (made({"a": [1]}, b"1234"), "needs data_offsets, dtype, shape"),
        (made({"a": {"dtype": "F32", "shape": [1]}}, b"1234"), "needs data_offsets, dtype, shape"),
        (made({"__metadata__": {"a": 1}}), "__metadata__ should be a dict from text to text"),
        (made({"__metadata__": []}), "__metadata__ should be a dict from text to text"),
    ],
)  # fmt: skip
def test_malformed_files(path, data, message):
    path.write_bytes(data)
    for read in (
        lambda: load(data),
        lambda: load_file(path),
        lambda: load_file(path, backend="pread"),
    ):
        with pytest.raises(SafetensorError, match=message):
            read()


def test_a_file_cut_anywhere_is_an_error(path):
    data = save({"a": torch.arange(5), "b": torch.ones(2)})
    for end in range(len(data)):
        with pytest.raises(SafetensorError):
            load(data[:end])


def test_bits_that_changed():
    data = save({"a": torch.arange(3), "b": torch.ones(2, 2)}, {"k": "v"})
    generator = np.random.default_rng(0)
    for _ in range(3000):
        mutated = bytearray(data)
        for _ in range(generator.integers(1, 4)):
            mutated[generator.integers(len(data))] ^= 1 << int(generator.integers(8))
        try:
            got = load(mutated)
        except SafetensorError:
            continue
        assert sum(t.numel() * t.element_size() for t in got.values()) <= len(data)


@pytest.mark.parametrize(
    ("tensors", "error", "message"),
    [
        ([1], ValueError, "Expected a dict of .* but received <class 'list'>"),
        ({"a": 1}, ValueError, "Key `a` is invalid, expected Tensor but received <class 'int'>"),
        ({3: torch.ones(1)}, ValueError, "expected names of tensors as keys, got 3"),
        ({"__metadata__": torch.ones(1)}, ValueError, "expected names of tensors as keys"),
        ({"a": torch.ones(2, 3).T}, ValueError, "non contiguous tensor: `a`"),
        ({"a": torch.ones(2, dtype=torch.complex128)}, ValueError, "no dtype torch.complex128"),
    ],
)
def test_what_is_not_saved(path, tensors, error, message):
    for write in (lambda: save(tensors), lambda: save_file(tensors, path)):
        with pytest.raises(error, match=message):
            write()
    assert not path.exists()


def test_shared_memory_is_refused():
    x = torch.ones(4)
    for tensors in ({"a": x, "b": x}, {"a": x, "b": x[1:2]}, {"a": x[:3], "b": x[2:]}):
        with pytest.raises(RuntimeError, match=r"share memory.*\['a', 'b'\]"):
            save(tensors)
    assert load(save({"a": x[:2], "b": x[2:]}))["b"].tolist() == [1, 1]
    with pytest.raises(ValueError, match="metadata as a dict from str to str"):
        save({"a": x}, {"a": 1})


def test_options_that_are_refused(path):
    save_file({}, path)
    with pytest.raises(SafetensorError, match="expected framework as one of pt"):
        safe_open(path, framework="tf")
    with pytest.raises(ValueError, match='expected backend "mmap" or "pread", got "?\'?direct'):
        load_file(path, backend="direct")
    with pytest.raises(FileNotFoundError):
        load_file(path.with_name("missing"))
    with pytest.raises(RuntimeError, match="Parent directory"):
        save_file({}, path.parent / "no" / "folder")


def test_marks_of_conjugates():
    x = torch.tensor([1 + 2j], dtype=torch.complex64)
    assert load(save({"a": x.conj()}))["a"].tolist() == [1 - 2j]


def tied():
    a, b = nn.Linear(3, 3), nn.Linear(3, 3, bias=False)
    b.weight = a.weight
    return nn.Sequential(a, b)


def test_modules_with_shared_parameters(path):
    model = tied()
    save_model(model, path, {"k": "v"})
    with safe_open(path) as file:
        assert file.keys() == ["0.bias", "0.weight"]
        assert file.metadata() == {"1.weight": "0.weight", "k": "v"}
    other = tied()
    assert load_model(other, path) == (set(), [])
    assert torch.equal(other[1].weight, model[0].weight) and other[1].weight is other[0].weight
    apart = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3, bias=False))
    with pytest.raises(RuntimeError, match='for Sequential:\n    Missing key.*: "1.weight"'):
        load_model(apart, path)
    assert load_model(apart, path, strict=False) == ({"1.weight"}, [])
    with pytest.raises(RuntimeError, match='Unexpected key.*: "0.bias", "0.weight"'):
        load_model(nn.Sequential(), path)


def test_the_name_that_the_file_has_is_kept(path):
    save_file({"1.weight": torch.full((3, 3), 2.0), "0.bias": torch.zeros(3)}, path)
    model = tied()
    assert load_model(model, path) == (set(), [])
    assert model[0].weight.eq(2).all()


def test_parts_without_a_whole(path):
    class Parts(nn.Module):
        def __init__(self):
            super().__init__()
            whole = torch.ones(4)
            self.register_buffer("a", whole[:3])
            self.register_buffer("b", whole[1:])

    with pytest.raises(RuntimeError, match="none of them covers all of it"):
        save_model(Parts(), path)


def test_strides(path):
    model = nn.Conv2d(2, 2, 3).to(memory_format=torch.channels_last)
    save_model(model, path)
    assert torch.equal(load_file(path)["weight"], model.weight)
    with pytest.raises(ValueError, match="non contiguous"):
        save_model(model, path, force_contiguous=False)


def test_load_says_who_reads_the_file(path):
    save_file({"a": torch.ones(1)}, path)
    with pytest.raises(RuntimeError, match="flambeau.safetensors.load_file"):
        torch.load(path)
