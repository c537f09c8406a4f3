"""Each published advisory about loading files, by the technique that it describes.

Every file here would run code, write memory that is not its own or unpack where it should not in
the version of PyTorch that the advisory is about. Here each must be an error, and nothing may
happen.
"""

import io
import json
import pickle
import struct
import tarfile
import zipfile

import pytest

import flambeau as fb
from flambeau.serialization import get_unsafe_globals_in_checkpoint, load

RAN = []


def ran(*args):
    RAN.append(args)
    return args


class Calls:
    def __init__(self, function, *args, state=None):
        self.parts = (function, args) if state is None else (function, args, state)

    def __reduce__(self):
        return self.parts


@pytest.fixture(autouse=True)
def nothing_runs():
    RAN.clear()
    yield
    assert RAN == []


def archived(pickled, data=(), **entries):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("x/data.pkl", pickled)
        for number, raw in enumerate(data):
            file.writestr(f"x/data/{number}", raw)
        for name, raw in entries.items():
            file.writestr(f"x/{name}", raw)
    return stream


def legacy(pickled, keys=(), tail=b""):
    head = b"".join(pickle.dumps(x, 2) for x in (0x1950A86A20F9469CFC6C, 1001, {}))
    return io.BytesIO(head + pickled + pickle.dumps(list(keys), 2) + tail)


# CVE-2025-32434 (GHSA-53q9-r3pm-6pq6): with weights_only=True two kinds of file went past the
# checked reader: tar archives of before 0.1.10, whose pickles Python's own machine read, and
# TorchScript, whose program ran.


def tar(**members):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return stream


@pytest.mark.parametrize("weights_only", [True, None])
@pytest.mark.parametrize("part", ["storages", "tensors", "pickle", "sys_info"])
def test_cve_2025_32434_tar(part, weights_only):
    members = dict.fromkeys(("sys_info", "storages", "tensors", "pickle"), pickle.dumps(0, 2))
    members[part] = pickle.dumps(Calls(ran, part), 2)
    stream = tar(**members)
    stream.seek(0)
    with pytest.raises(RuntimeError, match="tar archive"):
        load(stream, weights_only=weights_only)
    stream.seek(0)
    with pytest.raises(RuntimeError, match="tar archive"):
        get_unsafe_globals_in_checkpoint(stream)


def test_cve_2025_32434_tar_that_unpacks_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        link = tarfile.TarInfo("storages")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "secret")
        archive.addfile(link)
        archive.addfile(tarfile.TarInfo("../escaped"))
    stream.seek(0)
    with pytest.raises(RuntimeError, match="tar archive"):
        load(stream)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mmap", [False, True])
def test_cve_2025_32434_torchscript(tmp_path, mmap):
    script = (
        b"def forward(self, x: Tensor) -> Tensor:\n  return ops.aten.from_file('/etc/passwd')\n"
    )
    stream = archived(
        pickle.dumps(Calls(ran), 2),
        **{"constants.pkl": pickle.dumps((), 2), "code/__torch__.py": script, "version": b"3"},
    )
    path = tmp_path / "script.pt"
    path.write_bytes(stream.getvalue())
    with pytest.raises(RuntimeError, match="TorchScript"):
        load(path, mmap=mmap)


def test_cve_2025_32434_older_format():
    for function, args in ((ran, ()), (eval, ("1",)), (exec, ("1",)), (__import__, ("os",))):
        with pytest.raises(pickle.UnpicklingError, match=r"^load: "):
            load(legacy(pickle.dumps(Calls(function, *args), 2)))
    head = [pickle.dumps(x, 2) for x in (0x1950A86A20F9469CFC6C, 1001, {}, 5, [])]
    for place in range(len(head)):  # each of the pickles that such a file consists of
        parts = list(head)
        parts[place] = pickle.dumps(Calls(ran, place), 2)
        with pytest.raises((pickle.UnpicklingError, RuntimeError), match=r"^load: "):
            load(io.BytesIO(b"".join(parts)))


# CVE-2026-24747 (GHSA-63cw-57p8-fm3p): the checked reader set items of whatever stood on its stack,
# so that a file wrote into tensors while it was read, and believed a storage's count over the bytes
# that the archive has for it.

TENSOR = (
    b"ctorch._utils\n_rebuild_tensor_v2\n((S'storage'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nI%d\n"
    b"tQI0\n(I%d\nt(I1\ntI00\nNtR"
)


def test_a_sound_file_of_this_kind():
    stream = archived(TENSOR % (4, 2) + b".", [struct.pack("<4f", 1, 2, 3, 4)])
    assert load(stream).tolist() == [1, 2]


@pytest.mark.parametrize(
    "target",
    [
        TENSOR % (4, 2), b"(S'storage'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nI4\ntQ", b"]", b")",
        b"cbuiltins\nlist\n", b"ctorch\nSize\n((I2\nttR", b"ctorch\nTensor\n", b"N", b"S'text'\n",
        b"cbuiltins\nset\n(]tR", b"ctorch\ndevice\n(S'cpu'\ntR",
    ],
)  # fmt: skip
@pytest.mark.parametrize("items", [b"I0\nI7\ns.", b"(I0\nI7\nI1\nI8\nu."])
def test_cve_2026_24747_items_of_other_objects(target, items):
    with pytest.raises(pickle.UnpicklingError, match=r"^load: "):
        load(archived(target + items, [bytes(16)]))


@pytest.mark.parametrize("target", [TENSOR % (4, 2), b"}", b")", b"ctorch\nTensor\n", b"N"])
@pytest.mark.parametrize("items", [b"I0\na.", b"(I0\nI1\ne."])
def test_cve_2026_24747_appends_to_other_objects(target, items):
    with pytest.raises(pickle.UnpicklingError, match=r"^load: "):
        load(archived(target + items, [bytes(16)]))


@pytest.mark.parametrize("count", [3, 5, 1 << 20, 1 << 40, 1 << 61, (1 << 62) + 1, -1])
@pytest.mark.parametrize("mmap", [False, True])
def test_cve_2026_24747_counts_of_a_storage(tmp_path, count, mmap):
    path = tmp_path / "a.pt"
    path.write_bytes(archived(TENSOR % (count, 2) + b".", [bytes(16)]).getvalue())
    with pytest.raises(pickle.UnpicklingError, match=r"^load: "):
        load(path, mmap=mmap)


def test_cve_2026_24747_one_storage_with_two_counts():
    two = (
        b"("
        + TENSOR % (4, 2)
        + (TENSOR % (4, 2)).replace(b"FloatStorage", b"DoubleStorage")
        + b"t."
    )
    with pytest.raises(pickle.UnpicklingError, match="has 16 bytes and elsewhere 32"):
        load(archived(two, [bytes(16)]))


def test_cve_2026_24747_an_id_is_not_shown_by_its_own_code():
    class Shown:
        def __reduce__(self):
            return Showing, ()

    pid = pickle.dumps((Shown(),), 2)[:-1] + b"Q."
    with fb.serialization.safe_globals([Showing]), pytest.raises(pickle.UnpicklingError):
        load(archived(pid))


class Showing:
    def __repr__(self):
        return str(ran("repr"))


# Rebuilders with numbers that reach beyond the memory: views, parameters, conversions.


@pytest.mark.parametrize(
    "call",
    [
        b"ctorch._utils\n_rebuild_tensor\n(%sI0\n(I9\nt(I1\nttR.",
        b"ctorch._utils\n_rebuild_tensor_v2\n(%sI4\n(I1\nt(I1\ntI00\nNtR.",
        b"ctorch._utils\n_rebuild_tensor_v3\n(%sI0\n(I4\nt(I1\ntI00\nNctorch\nfloat64\ntR.",
        b"ctorch._utils\n_rebuild_tensor_v2\n(%sI0\n(I2\nI2\nt(I9223372036854775807\nI1\nt"
        b"I00\nNtR.",
        b"ctorch._utils\n_rebuild_tensor_v2\n(%sI0\n(I4294967296\nI4294967296\nt(I0\nI0\nt"
        b"I00\nNtR.",
        b"ctorch._utils\n_rebuild_tensor_v2\n(%sI-1\n(I1\nt(I1\ntI00\nNtR.",
        b"ctorch._utils\n_rebuild_tensor_v2\n(%sI0\n(I2\nt(I-1\ntI00\nNtR.",
    ],
)
def test_views_beyond_their_storage(call):
    storage = b"(S'storage'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nI4\ntQ"
    pickled = call % storage
    with pytest.raises(pickle.UnpicklingError, match=r"^load: "):
        load(archived(pickled, [bytes(16)]))


@pytest.mark.parametrize(
    "name",
    ["_rebuild_sparse_tensor", "_rebuild_sparse_csr_tensor", "_rebuild_qtensor",
     "_rebuild_nested_tensor", "_rebuild_wrapper_subclass"],
)  # fmt: skip
def test_indices_of_other_layouts_are_not_believed(name):
    """What has indices of its own into memory is refused by name, before it is looked at."""
    call = b"ctorch._utils\n" + name.encode() + b"\n(I1\nI-5\nI1000000000000\ntR."
    with pytest.raises(pickle.UnpicklingError, match="which flambeau does not have"):
        load(archived(call))


def test_a_state_replaces_no_methods_class_or_slots():
    """BUILD sets attributes; what is looked up on the class stays the class's."""
    state = pickle.dumps({"__class__": 1, "__reduce_ex__": 2, "__del__": 3, "note": 4}, 2)[2:-1]
    call = b"ctorch._tensor\n_rebuild_from_type_v2\n(" + b"ctorch._utils\n_rebuild_tensor_v2\n"
    parts = b"ctorch\nTensor\n((S'storage'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nI4\ntQI0\n(I2\nt"
    got = load(archived(call + parts + b"(I1\ntI00\nNt" + state + b"tR.", [bytes(16)]))
    assert type(got) is fb.Tensor and got.note == 4 and got.tolist() == [0, 0]


# CVE-2026-4538: a .pt2 archive holds pickles of sample inputs and constants, which its loader read
# without the checks.


def pt2(extra):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("m/archive_format", "pt2")
        file.writestr("m/archive_version", "0")
        file.writestr("m/models/model.json", json.dumps({"graph_module": {}}))
        for name, data in extra.items():
            file.writestr(f"m/{name}", data)
    return stream


@pytest.mark.parametrize(
    "name", ["data/sample_inputs/model.pt", "data/constants/custom_obj_0", "data/weights/weight_0"]
)
def test_cve_2026_4538(name):
    inner = archived(pickle.dumps(Calls(ran, "inner"), 2)).getvalue()
    for data in (inner, pickle.dumps(Calls(ran, "bare"), 2)):
        with pytest.raises(RuntimeError, match="load: this is neither a file of flambeau.save"):
            load(pt2({name: data}))
    with pytest.raises(pickle.UnpicklingError, match=r"^load: "):  # taken out and read by itself
        load(io.BytesIO(inner))


def test_cve_2026_4538_a_pickle_of_the_archive_itself():
    with pytest.raises(pickle.UnpicklingError, match=r"^load: "):
        load(pt2({"data.pkl": pickle.dumps(Calls(ran), 2)}))


# CVE-2022-45907: torch.jit.annotations.parse_type_line evaluated a type comment.


def test_cve_2022_45907():
    annotations = fb.jit.annotations
    assert not hasattr(annotations, "parse_type_line")
    assert not hasattr(annotations, "try_real_annotations")

    def commented(x):
        # type: (__import__('os').system('true')) -> Tensor
        return x

    with pytest.raises(RuntimeError, match=r"unknown type \"__import__\('os'\)"):
        fb.jit.script(commented)


# Names by which scanners and allow-lists were gone round.


@pytest.mark.parametrize(
    "name",
    [
        b"os\nsystem", b"posix\nsystem", b"nt\nsystem", b"subprocess\nPopen", b"builtins\neval",
        b"__builtin__\neval", b"builtins\ngetattr", b"operator\nattrgetter", b"runpy\n_run_code",
        b"torch.serialization\nload", b"torch.hub\nload", b"torch\nload", b"torch\ncompile",
        b"torch.utils._config_module\nConfigModule.load_config", b"torch.jit\nload",
        b"torch.storage\n_load_from_bytes", b"torch._C\n_extend_storage", b"pickle\nloads",
        b"numpy\nload", b"numpy.f2py.crackfortran\nmyeval", b"pip\nmain", b"pydoc\npipepager",
        b"torch.utils.collect_env\nrun", b"timeit\ntimeit", b"bdb\nBdb", b"functools\npartial",
        b"torch\nos.system", b"flambeau\nload", b"torch.fx.graph_module\n_forward_from_src",
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", [b"c%s\n.", b"c%s\n(tR.", b"c%s\n(S'id'\ntR."])
def test_names_that_act(name, form):
    for stream in (archived(form % name), legacy(form % name)):
        if name.endswith(b"getattr") and form == b"c%s\n.":
            continue  # by itself it is only a name; every call of it is checked
        with pytest.raises(pickle.UnpicklingError, match=r"^load: "):
            load(stream)


def test_the_pickle_is_the_one_that_the_directory_names(tmp_path):
    """Two entries of one name, of which a scanner sees one and a reader the other."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("x/data.pkl", pickle.dumps({}, 2))
        with pytest.warns(UserWarning, match="Duplicate name"):
            file.writestr("x/data.pkl", pickle.dumps(Calls(ran), 2))
    with pytest.raises(RuntimeError, match=r"^load: "):
        load(stream)


def test_headers_that_disagree():
    """The entry's own header has another name than the directory."""
    raw = archived(pickle.dumps({}, 2)).getvalue()
    changed = raw.replace(b"x/data.pkl", b"x/safe.pkl", 1)
    assert changed != raw
    with pytest.raises(RuntimeError, match=r"^load: "):
        load(io.BytesIO(changed))


def test_bytes_behind_the_pickle_are_not_read():
    """Tools stopped at a broken opcode behind code that had run; here nothing runs before it."""
    broken = pickle.dumps(Calls(ran), 2)[:-1] + b"\xff\xff."
    with pytest.raises(pickle.UnpicklingError, match=r"^load: "):
        load(archived(broken))
    assert load(archived(pickle.dumps({"a": 1}, 2) + pickle.dumps(Calls(ran), 2))) == {"a": 1}
