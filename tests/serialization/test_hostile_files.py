"""load on files that are truncated, damaged or made to do harm: an exception, quickly, every
time."""

import io
import json
import random
import struct
import warnings
import zipfile

import pytest

import flambeau as fb
from flambeau.serialization import load, save

TENSOR = {
    "dtype": "float32",
    "size": [2, 2],
    "stride": [2, 1],
    "offset": 0,
    "storage": 0,
    "requires_grad": False,
    "parameter": False,
}
INDEX = {
    "format": "flambeau",
    "version": 1,
    "root": {"node": 0},
    "nodes": [["tensor", TENSOR]],
    "storages": [{"nbytes": 16, "device": "cpu", "entry": "data/0"}],
}


def archive(index, data=bytes(16), compression=zipfile.ZIP_STORED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as file:
        file.writestr("data/0", data)
        file.writestr("index.json", index if isinstance(index, str) else json.dumps(index))
    return stream


def changed(**fields):
    return INDEX | {"nodes": [["tensor", TENSOR | fields]]}


def sample():
    stream = io.BytesIO()
    base = fb.arange(40.0)
    save(
        {"a": base.reshape(5, 8).t(), "b": [base[3:7], fb.ones(3) > 0, "text"]},
        stream,
        format="flambeau",
    )
    return stream.getvalue()


def test_the_hand_made_file_is_sound():
    assert load(archive(INDEX)).tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    "fields",
    [
        {"size": [2, 3]},
        {"size": [2**62, 2**62], "stride": [0, 0]},
        {"size": [2**40, 2], "stride": [2, 1]},
        {"size": [-1, 2]},
        {"size": [2.0, 2]},
        {"size": [True, 2]},
        {"size": "22"},
        {"size": [1] * 65, "stride": [1] * 65},
        {"size": [2]},
        {"stride": [-2, 1]},
        {"stride": [2**63 - 1, 2**63 - 1]},
        {"stride": [2**70, 1]},
        {"stride": None},
        {"offset": 1},
        {"offset": -1},
        {"offset": 2**63 - 1},
        {"size": [0], "stride": [1], "offset": 5},
        {"dtype": "float64"},
        {"dtype": "object"},
        {"dtype": "__class__"},
        {"dtype": ["float32"]},
        {"storage": 1},
        {"storage": -1},
        {"storage": "0"},
        {"dtype": "int32", "requires_grad": True},
    ],
)
def test_impossible_tensors(fields):
    with pytest.raises(ValueError, match=r"^load: "):
        load(archive(changed(**fields)))


def test_bool_bytes_are_checked():
    index = changed(dtype="bool", size=[16], stride=[1])
    assert load(archive(index)).tolist() == [False] * 16
    with pytest.raises(ValueError, match="bool tensor holds bytes other than 0 and 1"):
        load(archive(index, bytes(15) + b"\2"))


@pytest.mark.parametrize(
    "storage",
    [
        {"nbytes": 17, "device": "cpu", "entry": "data/0"},
        {"nbytes": 2**62, "device": "cpu", "entry": "data/0"},
        {"nbytes": -16, "device": "cpu", "entry": "data/0"},
        {"nbytes": 16, "device": 3, "entry": "data/0"},
        {"nbytes": 16, "device": "cpu", "entry": 5},
        {"nbytes": 16, "device": "cpu", "entry": "../../etc/passwd"},
        "data/0",
    ],
)
def test_impossible_storages(storage):
    with pytest.raises((ValueError, RuntimeError), match=r"^load: "):
        load(archive(INDEX | {"storages": [storage]}))


@pytest.mark.parametrize(
    "index",
    [
        "",
        "[]",
        "[" * 100_000,
        '{"format": "flambeau", "version": 1, "x": ' + "9" * 10_000 + "}",
        "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
        {"format": "other"},
        {"format": "flambeau", "version": 1},
        INDEX | {"nodes": None},
        INDEX | {"storages": None},
        INDEX | {"nodes": [["list", [{"node": 0}]]]},
        INDEX | {"nodes": [["list", [{"node": 1}]], ["list", [{"node": 0}]]]},
        INDEX | {"root": {"node": 7}},
        INDEX | {"root": {"node": True}},
        INDEX | {"root": {"node": -1}},
        INDEX | {"root": {"import": "os"}},
        INDEX | {"root": {"float": "1e999"}},
        INDEX | {"root": {"device": "nowhere"}},
        INDEX | {"root": [1]},
        INDEX | {"nodes": [["module", "os"]]},
        INDEX | {"nodes": [["list"]]},
        INDEX | {"nodes": ["list"]},
        INDEX | {"nodes": [5]},
        INDEX | {"nodes": [["set", [{"node": 0}]]]},
        INDEX | {"nodes": [["list", []], ["dict", [[{"node": 0}, 1]]]]},
        INDEX | {"nodes": [["list", []], ["set", [{"node": 0}]]]},
        INDEX | {"nodes": [["defaultdict", [], {"factory": "eval"}]]},
        INDEX | {"nodes": [["dict", [], {"attributes": {"node": 0}}]]},
        INDEX | {"nodes": [["tensor", {}]]},
        INDEX | {"nodes": [["tensor", 3]]},
    ],
)
def test_impossible_indices(index):
    with pytest.raises(ValueError, match=r"^load: "):
        load(archive(index))


def test_a_newer_version_is_named():
    with pytest.raises(RuntimeError, match="expected a file of version 1, got version 2"):
        load(archive(INDEX | {"version": 2}))


def test_not_ours():
    with pytest.raises(RuntimeError, match="not a readable zip"):
        load(io.BytesIO(b"hello"))
    with pytest.raises(RuntimeError, match="not a readable zip"):
        load(io.BytesIO())
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("archive/data.pkl", b"\x80\x02N.")
    assert load(stream) is None
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("x", b"")
    with pytest.raises(RuntimeError, match="it has no index.json"):
        load(stream)


def test_bombs_and_doubles():
    bomb = archive(INDEX, bytes(1 << 20), zipfile.ZIP_DEFLATED)
    with pytest.raises(RuntimeError, match="is compressed or encrypted"):
        load(bomb)
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile says so too
        with zipfile.ZipFile(stream, "w") as file:
            file.writestr("index.json", "{}")
            file.writestr("index.json", "{}")
    with pytest.raises(RuntimeError, match="two entries are named 'index.json'"):
        load(stream)


def directory_entry(raw, name):
    at = raw.rindex(name.encode()) - 46
    assert raw[at : at + 4] == b"PK\1\2"
    return at


@pytest.mark.parametrize(
    ("at", "code", "value"),
    [
        (42, "<I", 5),  # header offset: inside another entry
        (42, "<I", 0xFFFFFFF0),  # beyond the file
        (20, "<I", 0xFFFFFFF0),  # compressed size
        (24, "<I", 0xFFFFFFF0),  # size
        (16, "<I", 1),  # checksum
        (10, "<H", 8),  # compression method
        (10, "<H", 99),
        (8, "<H", 1),  # encrypted
        (28, "<H", 0xFFFF),  # length of the name
        (30, "<H", 0xFFFF),  # length of the extra field
    ],
)
def test_forged_directory(at, code, value):
    raw = bytearray(archive(INDEX).getvalue())
    struct.pack_into(code, raw, directory_entry(raw, "data/0") + at, value)
    with pytest.raises(RuntimeError, match=r"^load: "):
        load(io.BytesIO(bytes(raw)))


def test_overlapping_entries():
    raw = bytearray(archive(INDEX).getvalue())
    grow = directory_entry(raw, "data/0")
    struct.pack_into("<II", raw, grow + 20, 60, 60)
    with pytest.raises(RuntimeError, match="overlap"):
        load(io.BytesIO(bytes(raw)))


def test_every_truncation_is_noticed():
    raw = sample()
    for length in range(0, len(raw), 7):
        with pytest.raises((RuntimeError, ValueError), match=r"^load: "):
            load(io.BytesIO(raw[:length]))


def test_flipped_bytes_give_an_exception_or_the_same_values():
    raw, rng = sample(), random.Random(5)
    whole = load(io.BytesIO(raw))
    for _ in range(3000):
        damaged = bytearray(raw)
        for _ in range(rng.choice([1, 1, 2, 8])):
            damaged[rng.randrange(len(raw))] = rng.randrange(256)
        try:
            back = load(io.BytesIO(bytes(damaged)))
        except (RuntimeError, ValueError) as error:
            assert str(error).startswith("load: ")
        else:
            assert fb.equal(back["a"], whole["a"]) and fb.equal(back["b"][0], whole["b"][0])


def test_damaged_index_structures_give_clear_errors():
    """Random edits of the index, with the checksums right: only the checks of the tree remain."""
    rng = random.Random(7)
    pieces = ["0", "-1", "9223372036854775807", "null", '"x"', "[]", "{}", "1e400", "true"]
    text = json.dumps(INDEX)
    for _ in range(2000):
        words = text.split(" ")
        for _ in range(rng.choice([1, 2])):
            at = rng.randrange(len(words))
            end = words[at][-1] if words[at][-1] in ",:" else ""
            words[at] = rng.choice(pieces) + end
        try:
            load(archive(" ".join(words)))
        except (RuntimeError, ValueError) as error:
            assert str(error).startswith("load: ")


@pytest.mark.parametrize("mmap", [False, True])
def test_a_mapped_file_is_checked_too(tmp_path, mmap):
    path = tmp_path / "x"
    path.write_bytes(archive(changed(offset=1)).getvalue())
    with pytest.raises(ValueError, match="needs 5 elements of its storage, which has 4"):
        load(path, mmap=mmap)
