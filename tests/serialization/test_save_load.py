"""save and load: what goes in comes out, sharing and strides kept, on paths and streams."""

import doctest
import gc
import io
import math
import os
import stat
import zipfile
from collections import Counter, OrderedDict, defaultdict

import numpy as np
import pytest

import flambeau as fb
import flambeau.serialization
from flambeau._C import memory_stats
from flambeau.serialization import load, save

DTYPES = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
).split()


def round_trip(obj, **options):
    stream = io.BytesIO()
    save(obj, stream)
    return load(stream, **options)


def test_docstring_example():
    outcome = doctest.testmod(flambeau.serialization)
    assert outcome.attempted > 0 and outcome.failed == 0


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
def test_dtypes_and_shapes(name, shape):
    numbers = np.arange(math.prod(shape)).reshape(shape) % 2
    tensor = fb.tensor(numbers.tolist(), dtype=getattr(fb, name)).reshape(shape)
    back = round_trip(tensor)
    assert back.dtype == tensor.dtype and back.shape == tensor.shape
    assert back.tolist() == tensor.tolist()


def test_every_kind_of_value():
    tree = OrderedDict(
        none=None,
        flags=(True, False),
        ints=[0, -1, 2**62, -(2**63), 10**40],
        floats=[0.1, -0.0, 1e308, float("inf"), float("-inf")],
        z=[1 + 2j, complex(float("inf"), -0.0)],
        text=["", "ü\u0000\n", "\ud800"],
        raw=[b"", bytes(range(256)), bytearray(b"x")],
        sets=[{1, "a"}, frozenset({(1, 2)})],
        keys={1: "int", 1.5: "float", (1, "a"): "tuple", None: 0, False: 2},
        counts=Counter("abca"),
        lists=defaultdict(list, a=[1]),
        bare=defaultdict(None, a=1),
        size=fb.Size([2, 3]),
        dtype=fb.bfloat16,
        device=fb.device("cpu"),
    )
    back = round_trip(tree)
    assert back == tree
    assert [type(v) for v in back.values()] == [type(v) for v in tree.values()]
    assert [type(v) for v in back["raw"]] == [bytes, bytes, bytearray]
    assert back["lists"].default_factory is list and back["bare"].default_factory is None
    assert math.copysign(1, back["floats"][1]) == -1 and math.isnan(round_trip(float("nan")))
    assert round_trip([np.float32(1.5), np.int64(3), np.bool_(True)]) == [1.5, 3, True]


def test_attributes_of_an_ordered_dict():
    state = OrderedDict(w=fb.ones(1))
    state._metadata = OrderedDict({"": {"version": 1}})
    assert round_trip(state)._metadata == state._metadata


def test_strides_offset_and_sharing():
    base = fb.arange(24.0).reshape(4, 6)
    saved = {"base": base, "t": base.t(), "part": base[1:, ::2], "one": base[2, 3]}
    for options in ({}, {"map_location": "cpu"}):
        back = round_trip(saved, **options)
        for name, tensor in saved.items():
            assert back[name].stride() == tensor.stride()
            assert back[name].storage_offset() == tensor.storage_offset()
            assert fb.equal(back[name], tensor)
        back["t"][3, 2] = -7.0
        assert back["base"][2, 3].item() == back["one"].item() == -7.0
    wide = fb.tensor([5.0]).expand(1000, 1000)
    stream = io.BytesIO()
    save(wide, stream)
    assert len(stream.getvalue()) < 2000
    assert load(stream).stride() == (0, 0)


def test_same_objects_stay_the_same():
    weight, inner = fb.nn.Parameter(fb.ones(2)), [1]
    back = round_trip({"a": weight, "b": weight, "c": inner, "d": (inner, inner)})
    assert back["a"] is back["b"] and back["c"] is back["d"][0] is back["d"][1]


def test_parameters_and_gradients():
    back = round_trip(
        [
            fb.nn.Parameter(fb.ones(2)),
            fb.nn.Parameter(fb.ones(2), requires_grad=False),
            fb.ones(2, requires_grad=True),
            fb.ones(2, requires_grad=True) * 2,
        ]
    )
    assert [type(t) is fb.nn.Parameter for t in back] == [True, True, False, False]
    assert [t.requires_grad for t in back] == [True, False, True, True]
    assert all(t.is_leaf for t in back)
    (back[2] * 3).sum().backward()
    assert back[2].grad.tolist() == [3.0, 3.0]


def test_conjugated_and_meta():
    z = fb.tensor([1 + 2j]).conj()
    assert round_trip(z).tolist() == [1 - 2j]
    meta = round_trip(fb.empty(3, 4, device="meta").t())
    assert meta.device.type == "meta" and meta.shape == (4, 3) and meta.stride() == (1, 4)


def test_module_and_optimizer_state():
    def build():
        model = fb.nn.Sequential(fb.nn.Linear(3, 4), fb.nn.Linear(4, 1))
        return model, fb.optim.Adam(model.parameters(), lr=0.1)

    def step(model, optimizer):
        optimizer.zero_grad()
        model(fb.ones(2, 3)).sum().backward()
        optimizer.step()

    fb.manual_seed(0)
    model, optimizer = build()
    step(model, optimizer)
    state = round_trip({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    other, other_optimizer = build()
    other.load_state_dict(state["model"])
    other_optimizer.load_state_dict(state["optimizer"])
    step(model, optimizer)
    step(other, other_optimizer)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert fb.equal(one, two)


def test_deep_nesting():
    obj = 1
    for _ in range(20_000):
        obj = [obj]
    back = round_trip(obj)
    for _ in range(20_000):
        (back,) = back
    assert back == 1


@pytest.mark.parametrize("mmap", [False, True])
def test_files(tmp_path, mmap):
    path = tmp_path / "state.pt"
    save({"w": fb.arange(5), "e": fb.empty(0)}, path)
    back = load(str(path), mmap=mmap, weights_only=True)
    back["w"][0] = 9
    assert back["w"].tolist() == [9, 1, 2, 3, 4] and back["e"].shape == (0,)
    assert load(path)["w"].tolist() == [0, 1, 2, 3, 4]
    assert os.listdir(tmp_path) == ["state.pt"]


def test_payloads_are_aligned_and_the_zip_is_ordinary(tmp_path):
    path = tmp_path / "state.pt"
    save([fb.ones(n) for n in (1, 7, 33)], path)
    raw = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        for info in archive.infolist():
            name, extra = raw[info.header_offset + 26], raw[info.header_offset + 28]
            assert (info.header_offset + 30 + name + extra) % 64 == 0
        assert archive.read("state/data/1") == np.ones(7, np.float32).tobytes()


def test_streams(tmp_path):
    class OnlyWrite:
        """A pipe: no position, takes at most 100 bytes at a time."""

        def __init__(self):
            self.got = bytearray()

        def write(self, data):
            self.got += bytes(data[:100])
            return min(100, len(data))

    pipe = OnlyWrite()
    save(fb.arange(100), pipe)
    assert load(io.BytesIO(bytes(pipe.got))).tolist() == list(range(100))
    with open(tmp_path / "x", "w+b") as file:
        file.write(b"header")
        save(fb.arange(3), file)
        assert load(file).tolist() == [0, 1, 2]


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "state.pt"
    save(1, path)
    with pytest.raises(TypeError):
        save({"bad": lambda: 0}, path)

    def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        save(2, path)
    monkeypatch.undo()
    assert load(path) == 1 and os.listdir(tmp_path) == ["state.pt"]


def test_what_killed_saves_left_is_removed_by_the_next(tmp_path):
    from flambeau._serialization import archive

    path = tmp_path / "state.pt"
    (tmp_path / ".state.pt.0123456789ab.part").write_bytes(b"half")
    (tmp_path / ".other.pt.0123456789ab.part").write_bytes(b"half")
    with archive.atomic_file(str(path)):  # one that is being written stays
        save(1, path)
        assert len([n for n in os.listdir(tmp_path) if n.startswith(".state")]) == 1
    assert sorted(os.listdir(tmp_path)) == [".other.pt.0123456789ab.part", "state.pt"]


def test_saves_that_are_killed_leave_one_of_both(tmp_path):
    import random

    from tools.save_kills import checkpoint, kill_one

    save(checkpoint(0), tmp_path / "checkpoint.pt")
    rng = random.Random(1)
    assert [kill_one(tmp_path, rng, old) for old in (False, False, True)] == [""] * 3


def test_replacing_keeps_mode_and_follows_links(tmp_path):
    path, link = tmp_path / "state.pt", tmp_path / "latest"
    save(1, path)
    path.chmod(0o640)
    link.symlink_to(path)
    save(2, link)
    assert link.is_symlink() and load(path) == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_map_location():
    tensor = fb.ones(2)
    assert round_trip(tensor, map_location="meta").device.type == "meta"
    assert round_trip(tensor, map_location=fb.device("cpu")).tolist() == [1.0, 1.0]
    assert round_trip(tensor, map_location={"cpu": "meta"}).device.type == "meta"
    seen = []

    def keep(storage, location):
        seen.append((storage.nbytes(), location))
        return storage

    assert round_trip([tensor, tensor[:1]], map_location=keep)[1].tolist() == [1.0]
    assert seen == [(8, "cpu")]
    assert round_trip(tensor, map_location=lambda storage, location: None).tolist() == [1.0, 1.0]


def test_what_is_not_data_is_refused():
    options = {"format": "flambeau"}
    with pytest.raises(TypeError, match=r"got .*Linear at object\['model'\]; save its state_dict"):
        save({"model": fb.nn.Linear(1, 1)}, io.BytesIO(), **options)
    for bad in (print, object(), range(3), type("Sub", (dict,), {})(), defaultdict(lambda: 0)):
        with pytest.raises(TypeError, match=r"save: expected data, got .* at object\[1\]\[0\]"):
            save([0, [bad]], io.BytesIO(), **options)
    with pytest.raises(TypeError, match=r"\(a key\)"):
        save({object(): 1}, io.BytesIO(), **options)
    loop = []
    loop.append({"x": loop})
    with pytest.raises(ValueError, match="contains itself"):
        save(loop, io.BytesIO(), **options)
    for bad in (lambda: 0, type("Local", (), {})(), (x for x in ())):
        with pytest.raises(TypeError, match=r"save: expected data, got .* at object\[1\]\['k'\]"):
            save([0, {"k": bad}], io.BytesIO())
    for wrong in ({"format": "x"}, {"pickle_module": io}, {"pickle_protocol": 1}):
        with pytest.raises(ValueError, match=r"save: expected .* got"):
            save(1, io.BytesIO(), **wrong)


def test_wrong_targets(tmp_path):
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        save(1, tmp_path / "no" / "file")
    with pytest.raises(AttributeError, match="write method as f, got int"):
        save(1, 3)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")
    with pytest.raises(AttributeError, match="without read"):
        load(3)
    with pytest.raises(ValueError, match="must be a path"):
        load(io.BytesIO(), mmap=True)


def test_safe_globals_are_a_list_of_notes(tmp_path):
    with fb.serialization.safe_globals([OrderedDict]):
        assert fb.serialization.get_safe_globals() == [OrderedDict]
    assert fb.serialization.get_safe_globals() == []
    save({"w": fb.ones(2)}, tmp_path / "x")
    assert fb.serialization.get_unsafe_globals_in_checkpoint(tmp_path / "x") == []


@pytest.mark.parametrize("older", [False, True])
def test_what_is_dropped_is_freed_at_once(tmp_path, older):
    """Without the cycle collector: a loader that held storages kept a second copy of a model."""
    path = tmp_path / "a.pt"
    save({"w": fb.ones(1 << 20)}, path, _use_new_zipfile_serialization=not older)
    load(path)
    gc.collect()
    gc.disable()
    try:
        before = memory_stats()["live_bytes"]
        state = load(path)
        assert state["w"].sum() == 1 << 20
        del state
        assert memory_stats()["live_bytes"] == before
    finally:
        gc.enable()
