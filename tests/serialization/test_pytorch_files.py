"""load on files that PyTorch 2.13 wrote: what comes back equals what the same code builds here."""

import enum
import io
import pathlib
import pickle
import random
import struct
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pytest

import flambeau as fb
import flambeau.storage
from flambeau.serialization import load, save

from .pytorch_cases import CASES, LEGACY

FILES = pathlib.Path(__file__).parent / "pytorch_files"


def check(got, want, seen=None):
    seen = {} if seen is None else seen
    if id(want) in seen:
        assert got is seen[id(want)] or isinstance(want, (str, int, float, bool, type(None), tuple))
        return
    assert type(got) is type(want)
    if isinstance(want, (fb.Tensor, list, dict)):
        seen[id(want)] = got
    if isinstance(want, fb.Tensor):
        assert got.dtype == want.dtype and got.shape == want.shape
        assert got.stride() == want.stride() and got.requires_grad == want.requires_grad
        assert vars(got) == vars(want) and got.device == want.device and got.is_leaf
        if want.device.type != "meta" and want.is_floating_point():
            assert fb.allclose(got.float(), want.float(), rtol=1e-6, atol=1e-7)
        elif want.device.type != "meta":
            assert got.tolist() == want.tolist()
    elif isinstance(want, dict):
        assert list(got) == list(want)
        for key in want:
            check(got[key], want[key], seen)
        assert getattr(got, "_metadata", None) == getattr(want, "_metadata", None)
        assert getattr(got, "default_factory", 0) is getattr(want, "default_factory", 0)
    elif isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            check(a, b, seen)
    elif isinstance(want, np.ndarray):
        # NumPy itself turns small arrays of the other byte order round when it unpickles them.
        assert got.dtype == want.dtype.newbyteorder("=") and got.shape == want.shape
        assert np.array_equal(got, want) and got.flags.f_contiguous == want.flags.f_contiguous
    elif isinstance(want, float):
        assert got == pytest.approx(want, rel=1e-12)
    else:
        assert got == want


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("name", [n for n in CASES if n != "storages"])
def test_zip_files(name, mmap):
    check(load(FILES / f"{name}.pt", mmap=mmap), CASES[name](fb))


@pytest.mark.parametrize("name", LEGACY)
def test_legacy_files(name):
    file = FILES / f"{name}_legacy.pt"
    check(load(file), CASES[name](fb))
    stream = io.BytesIO(b"before" + file.read_bytes() + b"after")
    other = io.BufferedReader(stream)
    other.seek(6)
    check(load(other), CASES[name](fb))
    assert other.read() == b"after"


def test_a_storage_comes_back_with_a_type():
    back = load(FILES / "storages.pt")
    assert isinstance(back, fb.storage.TypedStorage) and back.tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["views.pt", "views_legacy.pt"])
def test_views_share_their_memory_again(name):
    back = load(FILES / name)
    back["t"][3, 2] = -7.0
    assert back["base"][2, 3].item() == back["one"].item() == -7.0
    assert back["again"] is back["base"] and back["wide"].stride() == (0, 1)


def test_map_location():
    assert load(FILES / "views.pt", map_location="meta")["t"].device.type == "meta"
    assert load(FILES / "views.pt", {"cpu": "meta"})["t"].stride() == (1, 6)
    seen = []

    def other(storage, location):
        seen.append(location)
        return storage.clone()

    assert load(FILES / "views.pt", other)["one"].item() == 15.0 and set(seen) == {"cpu"}
    with pytest.raises(RuntimeError, match="CUDA is not available"):
        load(FILES / "views.pt", "cuda") if not fb.cuda.is_available() else pytest.fail()


def test_big_endian_files_are_turned_round():
    stream = io.BytesIO()
    with zipfile.ZipFile(FILES / "views.pt") as old, zipfile.ZipFile(stream, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("/byteorder"):
                data = b"big"
            elif "/data/" in name:
                data = np.frombuffer(data, ">u4").astype("<u4").tobytes()
            new.writestr(name, data)
    check(load(stream), CASES["views"](fb))


@pytest.mark.parametrize("name", ["sparse", "float8", "quantised"])
def test_what_is_missing_is_refused_by_name(name):
    word = {"sparse": "sparse tensor", "float8": "float8", "quantised": "quantised"}[name]
    with pytest.raises(pickle.UnpicklingError, match=word):
        load(FILES / f"{name}.pt")


def test_modules_need_weights_only_false(monkeypatch):
    with pytest.raises(pickle.UnpicklingError, match=r"add_safe_globals\(\[torch\.nn\.modules"):
        load(FILES / "module.pt")
    names = fb.serialization.get_unsafe_globals_in_checkpoint(FILES / "module.pt")
    assert "torch.nn.modules.linear.Linear" in names and "torch.FloatStorage" not in names
    with pytest.warns(UserWarning, match="can run any code"):
        module = load(FILES / "module.pt", weights_only=False)
    assert isinstance(module[0], fb.nn.Linear) and module.training
    assert module.eval()(fb.ones(1, 2)).tolist() == [[pytest.approx(2.0, rel=1e-4)] * 2]
    with fb.serialization.safe_globals(
        [fb.nn.Sequential, fb.nn.Linear, fb.nn.BatchNorm1d, fb.nn.ReLU]
    ):
        assert isinstance(load(FILES / "module.pt")[1], fb.nn.BatchNorm1d)
    for variable in ("FLAMBEAU_NO_UNSAFE_LOAD", "TORCH_FORCE_WEIGHTS_ONLY_LOAD"):
        with monkeypatch.context() as context:
            context.setenv(variable, "1")
            with pytest.warns(UserWarning, match=variable), pytest.raises(pickle.UnpicklingError):
                load(FILES / "module.pt", weights_only=False)


class Colour(enum.Enum):
    RED = 1


class Config:
    def __init__(self, value):
        self.value = value


def archived(pickled, **entries):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("x/data.pkl", pickled)
        for name, data in entries.items():
            file.writestr(f"x/data/{name}", data)
    return stream


@pytest.mark.parametrize("protocol", range(6))
def test_classes_that_the_user_allowed(protocol):
    value = {"c": Colour.RED, "o": Config([1, 2]), "l": [1, b"x"], "t": (1.5, "ü")}
    stream = archived(pickle.dumps(value, protocol))
    with pytest.raises(pickle.UnpicklingError, match=r"add_safe_globals\(\[.*Colour\]\)"):
        load(stream)
    with fb.serialization.safe_globals([Colour, Config]):
        back = load(stream)
    assert back["c"] is Colour.RED and back["o"].value == [1, 2] and back["t"] == (1.5, "ü")
    assert fb.serialization.get_safe_globals() == []


class Runs:
    def __init__(self, function, *args):
        self.function, self.args = function, args

    def __reduce__(self):
        return self.function, self.args


def _attack():
    raise AssertionError("code of a file ran")


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (_attack, ()), (eval, ("_attack()",)), (exec, ("_attack()",)), (__import__, ("os",)),
        (getattr, (str, "join")), (map, (_attack, [1])), (bytearray, (1 << 60,)),
        (struct.unpack, ("<I", b"1234")), (pickle.loads, (b"N.",)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("legacy", [False, True])
def test_no_code_runs(function, args, legacy):
    payload = pickle.dumps(Runs(function, *args), 2)
    if legacy:  # CVE-2025-32434: the older format was read without the checks
        head = b"".join(pickle.dumps(x, 2) for x in (0x1950A86A20F9469CFC6C, 1001, {}))
        stream = io.BytesIO(head + payload + pickle.dumps([], 2))
    else:
        stream = archived(payload)
    with pytest.raises(pickle.UnpicklingError, match=r"^load: "):
        load(stream)


TENSOR = (
    "ctorch._utils\n_rebuild_tensor_v2\n((X'storage'\nctorch\nFloatStorage\nX'0'\nX'cpu'\nI{count}\n"
    "tQI{offset}\n{size}{stride}I00\nNtR."
)


@pytest.mark.parametrize(
    "fields",
    [
        {"count": 5}, {"count": -1}, {"count": 2**62}, {"offset": 3}, {"offset": -1},
        {"size": "(I5\nt"}, {"size": "(I-1\nt"}, {"stride": "(I4\nt"}, {"stride": "(I-1\nt"},
        {"stride": "(I9223372036854775807\nt"}, {"size": "N"}, {"size": "(I2\nI2\nt"},
    ],
)  # fmt: skip
def test_tensors_outside_their_storage(fields):
    good = {"count": 4, "offset": 0, "size": "(I2\nt", "stride": "(I1\nt"}

    def file(values):
        text = TENSOR.replace("X'", "S'").format(**values)
        return archived(text.encode(), **{"0": struct.pack("<4f", 1, 2, 3, 4)})

    assert load(file(good)).tolist() == [1.0, 2.0]
    with pytest.raises(pickle.UnpicklingError, match=r"^load: "):
        load(file(good | fields))


def doubled(depth):
    """Tuples of twice the same, deep: 2**depth parts to hash in a few bytes."""
    return b")" + b"2\x86" * depth


@pytest.mark.parametrize(
    "raw",
    [
        b"", b".", b"\x80\x09.", b"\x80\x02", b"(.", b"NN.", b"0.", b"t.", b"h\x05.", b"]h\x00e.",
        b"X\xff\xff\xff\xffa.", b"\x8a\xffa.", b"\x8b\xff\xff\xff\x7fa.", b"B\xff\xff\xff\xff.",
        b"\x8e\xff\xff\xff\xff\xff\xff\xff\xff.", b"}" + doubled(60) + b"Ns.",
        b"}" + b")" + b"\x85" * 200_000 + b"Ns.", b"}]Ns.", b"\x82\x01.", b"\x97.",
        b"I" + b"9" * 9999 + b"\n.", b"cos\nsystem\n(S'true'\ntR.",
        b"cposix\nsystem\n.", b"(lp0\nh\x00R.", b"NNb.",
    ],
)  # fmt: skip
def test_malformed_pickles(raw):
    with pytest.raises(pickle.UnpicklingError, match=r"^load: "):
        load(archived(raw))


def test_deep_nesting_is_read_without_recursion():
    back = load(archived(b"]" * 100_000 + b"a" * 99_999 + b"."))
    for _ in range(99_999):
        (back,) = back
    assert back == []


def test_a_small_file_cannot_ask_for_much_work():
    many = (
        b"(" + b"N" * 100_000 + b"tq\x00" + b"(" + b"c__builtin__\nlist\nh\x00\x85R" * 5000 + b"t."
    )
    with pytest.raises(pickle.UnpicklingError, match="far more data than it holds"):
        load(archived(many))


@pytest.mark.parametrize("name", ["views", "numpy_values", "views_legacy", "containers_legacy"])
def test_mutated_files_give_an_error_or_an_object(name):
    raw, rng = (FILES / f"{name}.pt").read_bytes(), random.Random(3)
    pickled = None
    if not name.endswith("legacy"):
        with zipfile.ZipFile(io.BytesIO(raw)) as file:
            pickled = file.read(f"{name}/data.pkl")
            entries = {n.rpartition("/")[2]: file.read(n) for n in file.namelist() if "/data/" in n}
    for _ in range(300):
        damaged = bytearray(raw if pickled is None else pickled)
        for _ in range(rng.choice([1, 1, 2, 8])):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        data = bytes(damaged)
        try:
            load(io.BytesIO(data) if pickled is None else archived(data, **entries))
        except (RuntimeError, ValueError, pickle.UnpicklingError) as error:
            assert str(error).startswith("load: ")


def test_flipped_bytes_of_an_archive_give_an_error_or_an_equal_object():
    raw, rng = (FILES / "views.pt").read_bytes(), random.Random(4)
    for _ in range(300):
        damaged = bytearray(raw)
        damaged[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                back = load(io.BytesIO(bytes(damaged)))
        except (RuntimeError, ValueError, pickle.UnpicklingError) as error:
            assert str(error).startswith("load: ")
        else:
            check(back, CASES["views"](fb))


def test_foreign_files_are_named():
    with pytest.raises(RuntimeError, match="tar archive"):
        load(io.BytesIO(bytes(257) + b"ustar" + bytes(300)))
    with pytest.raises(RuntimeError, match="safetensors"):
        load(io.BytesIO(struct.pack("<Q", 2) + b"{}" + bytes(9)))
    with pytest.raises(TypeError, match="encoding"):
        load(FILES / "views.pt", encoding="rot13")


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}])
@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("name", [n for n in CASES if n != "storages"])
def test_what_is_saved_here_comes_back(name, options, protocol):
    stream = io.BytesIO()
    if options and name == "dtypes":
        with pytest.raises(TypeError, match="the older format has no storage for dtype uint16"):
            save(CASES[name](fb), stream, **options)
        return
    save(CASES[name](fb), stream, pickle_protocol=protocol, **options)
    check(load(stream), CASES[name](fb))


def test_saved_sharing_dtypes_classes_and_storages():
    base = fb.arange(4.0)
    looped = ([],)
    looped[0].append(looped)
    tree = [base, base.view(fb.int32), base.untyped_storage(), looped, Colour.RED, Config(base)]
    stream = io.BytesIO()
    save(tree, stream)
    with fb.serialization.safe_globals([Colour, Config]):
        back = load(stream)
    back[1][1] = 0
    assert back[0].tolist() == [0.0, 0.0, 2.0, 3.0] and back[5].value is back[0]
    assert back[2].data_ptr() == back[0].data_ptr() and back[3][0][0] is back[3]
    assert back[4] is Colour.RED


def test_a_whole_module_comes_back():
    module = fb.nn.Sequential(fb.nn.Linear(2, 2), fb.nn.ReLU())
    stream = io.BytesIO()
    save(module, stream)
    assert b"torch.nn.modules.linear\nLinear" in stream.getvalue()
    with pytest.warns(UserWarning, match="can run any code"):
        back = load(stream, weights_only=False)
    assert fb.equal(back(fb.ones(1, 2)), module(fb.ones(1, 2)))
    assert isinstance(back[0].weight, fb.nn.Parameter)


def test_a_killed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.pt"
    save(1, path)
    code = (
        "import flambeau as fb, os, sys\n"
        "from flambeau._serialization import archive\n"
        "archive.ArchiveWriter.close = lambda self: os._exit(9)\n"
        "fb.save(fb.ones(1000), sys.argv[1])\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)]).returncode == 9
    assert load(path) == 1
