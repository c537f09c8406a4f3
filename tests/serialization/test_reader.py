"""The reader below Python: checksums, directories of archives, the pickle machine."""

from __future__ import annotations

import io
import json
import pickle
import random
import struct
import zipfile
import zlib

import pytest

import flambeau as fb
from flambeau import _C
from flambeau._serialization import archive, builders, pickle_machine


def test_checksums_are_those_of_zlib():
    rng = random.Random(0)
    data = rng.randbytes(5000)
    for _ in range(2000):
        start, size, before = rng.randrange(300), rng.randrange(700), rng.randrange(1 << 32)
        part = data[start : start + size]
        assert _C._crc32(part, before) == zlib.crc32(part, before)
    assert _C._crc32(data * 300, 0) == zlib.crc32(data * 300)


def written(entries):
    stream = io.BytesIO()
    writer = archive.ArchiveWriter(stream)
    for name, data in entries.items():
        writer.add(name, data)
    writer.close()
    return stream.getvalue()


ENTRIES = {"x/a": b"", "x/b": b"12345", "x/größe": bytes(1000), "x/c": bytearray(range(200))}


def test_archives_are_those_of_zipfile():
    data = written(ENTRIES)
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert file.testzip() is None
        assert {n: file.read(n) for n in file.namelist()} == ENTRIES
    reader = archive.ArchiveReader(io.BytesIO(data))
    assert {n: reader.read(n) for n in reader.names()} == ENTRIES
    assert all(reader.span(n)[0] % 64 == 0 for n in reader.names())


@pytest.mark.parametrize("before", [b"", b"something else"])
def test_archives_of_zipfile_are_read(before, tmp_path):
    path = tmp_path / "x.zip"
    path.write_bytes(before)
    with zipfile.ZipFile(path, "a") as file:
        file.comment = b"PK\5\6 is how the end of a directory begins"
        for name, data in ENTRIES.items():
            with file.open(name, "w", force_zip64=name == "x/b") as entry:
                entry.write(data)
    with open(path, "rb") as stream:
        reader = archive.ArchiveReader(stream)
        assert {n: reader.read(n) for n in reader.names()} == ENTRIES


def test_more_entries_than_sixteen_bits_count():
    data = written({str(k): b"" for k in range(70_000)})
    assert len(archive.ArchiveReader(io.BytesIO(data)).names()) == 70_000
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert len(file.namelist()) == 70_000


def test_damage_is_found():
    data = bytearray(written({"x/b": b"12345" * 100}))
    at = data.index(b"12345")
    data[at + 7] ^= 1
    with pytest.raises(RuntimeError, match="'x/b' is damaged"):
        archive.ArchiveReader(io.BytesIO(data)).read("x/b")
    for cut in range(1, len(data), 7):
        with pytest.raises(RuntimeError, match="not a sound file"):
            archive.ArchiveReader(io.BytesIO(data[:-cut]))


def test_ranges_end_with_the_source(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    with open(path, "rb") as file:
        for source in (b"abc", file.fileno()):
            out = bytearray(2)
            assert _C._read_range(source, 1, out) == zlib.crc32(b"bc") and out == b"bc"
            with pytest.raises(RuntimeError, match="ends after 0 of 2 bytes"):
                _C._read_range(source, 2, out)
            with pytest.raises(RuntimeError, match="ends after 0 of 2 bytes"):
                _C._read_range(source, (1 << 64) - 1, out)
    with pytest.raises(RuntimeError, match="cannot be read"):
        _C._read_range(1_000_000, 0, bytearray(1))


def value(rng, depth=0):
    """Random plain data."""
    kinds = ["none", "bool", "int", "long", "float", "text", "bytes"]
    kind = rng.choice(kinds + ([] if depth > 3 else ["list", "tuple", "dict", "set"] * 2))
    size = rng.choice([0, 1, 2, 3, 5])
    if kind == "list":
        return [value(rng, depth + 1) for _ in range(size)]
    if kind == "tuple":
        return tuple(value(rng, depth + 1) for _ in range(size))
    if kind == "dict":
        return {rng.randrange(99): value(rng, depth + 1) for _ in range(size)}
    if kind == "set":
        return {rng.randrange(-99, 99) for _ in range(min(size, 1))}
    return {
        "none": None, "bool": rng.random() < 0.5, "int": rng.choice([0, 255, 256, 65535, -1]),
        "long": rng.randrange(-(10**30), 10**30), "float": rng.choice([0.5, -0.0, 1e300, 1e-320]),
        "text": rng.choice(["", "a", "größe", "\ud800", "x" * 300]), "bytes": rng.randbytes(size),
    }[kind]  # fmt: skip


@pytest.mark.parametrize("protocol", range(6))
def test_plain_data_as_pickle_reads_it(protocol):
    rng = random.Random(protocol)
    builder = builders.SafeBuilder([], None, None, 1 << 20)
    for _ in range(300):
        want = value(rng)
        data = pickle.dumps(want, protocol)
        got, end = pickle_machine.read(b"..." + data, 3, builder)
        assert repr(got) == repr(want) and end == len(data) + 3
        for cut in {1, len(data) // 2}:
            with pytest.raises(pickle.UnpicklingError, match="^load: malformed pickle at byte"):
                pickle_machine.read(data[:-cut], 0, builder)


def test_shared_and_cyclic_references():
    inner = [1]
    inner.append(inner)
    want = {"a": inner, "b": inner, "t": (inner, [inner])}
    for protocol in range(6):
        builder = builders.SafeBuilder([], None, None, 1000)
        got, _ = pickle_machine.read(pickle.dumps(want, protocol), 0, builder)
        assert got["a"] is got["b"] is got["t"][0] is got["t"][1][0] and got["a"][1] is got["a"]


@pytest.mark.parametrize(
    "data, words",
    [
        (b"\x80\x06N.", "pickle protocol 6"),
        (b"\xff.", "unknown opcode 255"),
        (b"NN.", "unfinished object"),
        (b"(N.", "unfinished object"),
        (b"(R.", "the stack is empty"),
        (b"N(e.", "extend|appended|stack"),
        (b"q\x00.", "the stack is empty"),
        (b"h\x05.", "memo index 5 was not set"),
        (b"gxx\n.", "a memo index 'xx'"),
        (b"X\xff\xff\xff\xffab.", "bytes are wanted"),
        (b"\x8d" + struct.pack("<Q", 1 << 63) + b".", "bytes are wanted"),
        (b"T\xff\xff\xff\xff.", "a size of -1"),
        (b"\x95" + struct.pack("<Q", 99) + b"N.", "a frame of 99 bytes"),
        (b"K\x01K\x02\x90.", "a mark is missing"),
        (b"]Na" + b"a.", "the stack is empty"),
        (b"}(Nu.", "a key without a value"),
        (b"}]Ns.", "unhashable"),
        (b"N)R.", "a call of"),
        (b"NNR.", "the arguments of a call are a NoneType"),
        (b"\x82\x01.", "outside the file"),
        (b"S'a\n.", "without quotes"),
        (b"L12x\n.", "12x|number"),
        (b"I\n.", "invalid literal|number"),
        (b"cos\nsystem\n.", "never allowed"),
        (b"N0" * 3, "1 byte is wanted"),
        (b"(lp2\n0(lp4000000000\n0g4000000000\n.", None),
    ],
)
def test_malformed_pickles(data, words):
    builder = builders.SafeBuilder([], None, None, 1000)
    if words is None:
        assert pickle_machine.read(data, 0, builder)[0] == []
        return
    with pytest.raises(pickle.UnpicklingError, match=words) as caught:
        pickle_machine.read(data, 0, builder)
    assert str(caught.value).startswith("load: ")


def test_depth_and_keys_that_take_long():
    builder = builders.SafeBuilder([], None, None, 1000)
    deep = b"]" * 300_000 + b"a" * 299_999 + b"."
    got, depth = pickle_machine.read(deep, 0, builder)[0], 0
    while got:
        got, depth = got[0], depth + 1
    assert depth == 299_999
    tuples = b")" + b"\x85" * 20_000
    with pytest.raises(pickle.UnpicklingError, match="a key with more than 10000 parts"):
        pickle_machine.read(b"}" + tuples + b"Ns.", 0, builder)
    prime = (1 << 61) - 1  # multiples of it have equal hashes
    many = b"".join(
        b"\x8a\x0a" + (prime * k).to_bytes(10, "little") + b"N" for k in range(1, 12_000)
    )
    with pytest.raises(pickle.UnpicklingError, match="huge or complex numbers as keys"):
        pickle_machine.read(b"}(" + many + b"u.", 0, builder)


@pytest.mark.parametrize("ascii", [True, False])
def test_texts_of_json(ascii):
    rng = random.Random(0)
    signs = 'a"\\/\b\f\n\r\t\x00\x1f\x7f é€😀\u2028'
    for _ in range(300):
        texts = {
            "".join(rng.choices(signs, k=rng.randrange(9))): "".join(rng.choices(signs, k=3))
            for _ in range(4)
        }
        space = rng.choice(["", " ", "\n\t\r "])
        text = json.dumps({"__metadata__": texts}, ensure_ascii=ascii, indent=rng.choice([None, 1]))
        found = _C._safetensors_header(f"{space}{text}{space}".encode(), 0)
        assert found == ([], texts)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "{", '{"a"', '{"a":', '{"a":1', '{"a":1,}', "{,}", "[1,]", "[1 2]", "01", "-",
        "1.", "1e", ".5", "+1", "tru", "nul", "NaN", "Infinity", "'a'", '"a', '"\\x"', '"\\u12"',
        '"\\ud800"', '"\\udc00"', '"\t"', '"\x00"', "1 1", "{} {}", "[" * 502 + "]" * 502,
        "/**/1",
    ],
)  # fmt: skip
def test_what_is_no_json(text):
    with pytest.raises(ValueError, match="not valid JSON"):
        _C._safetensors_header(text.encode(), 0)


@pytest.mark.parametrize(
    "args, words",
    [
        ((fb.float32, 0, (2**62, 2**62), (0, 0)), "too many elements"),
        ((fb.float32, 0, (5,), (1,)), "needs 5 elements of its storage, which has 4"),
        ((fb.float32, 2, (2, 2), (2, 1)), "needs 6 elements"),
        ((fb.float32, 0, (2,), (2**63 - 1,)), "needs too many elements"),
        ((fb.float32, -1, (1,), (1,)), "offset should hold numbers from 0"),
        ((fb.float32, 0, (-1,), (1,)), "size should hold numbers from 0"),
        ((fb.float32, 0, (1.0,), (1,)), "size should hold numbers from 0"),
        ((fb.float32, 0, (1,), (1, 1)), "1 sizes but 2 strides"),
        ((fb.float32, 0, "ab", (1, 1)), "size should be a list"),
        ((fb.float32, 0, (1,) * 65, (1,) * 65), "at most 64 numbers"),
        ((fb.bool, 0, (16,), (1,)), "bytes other than 0 and 1"),
    ],
)
def test_tensors_stay_in_their_storage(args, words):
    flat = fb.arange(16, dtype=fb.uint8)
    with pytest.raises(ValueError, match=f"^load: .*{words}"):
        _C._tensor_in(flat, *args)


def test_tensors_over_bytes():
    numbers = fb.arange(4, dtype=fb.float32)
    flat = fb.empty(0, dtype=fb.uint8).set_(numbers.untyped_storage(), 0, (16,), (1,))
    x = _C._tensor_in(flat, fb.float32, 1, [3], [1])
    assert x.tolist() == [1, 2, 3] and x.data_ptr() == numbers.data_ptr() + 4
    assert _C._tensor_in(flat, fb.float32, 3, (0, 9), (1, 1)).shape == (0, 9)
    y = _C._tensor_in(flat, fb.float32, 0, (2, 2), (1, 2))
    y.add_(1)
    assert (x._version, y._version) == (0, 1), "a version each"
    with pytest.raises(ValueError, match="begins at byte 2"):
        _C._tensor_in(flat[2:], fb.float32, 0, (1,), (1,))
