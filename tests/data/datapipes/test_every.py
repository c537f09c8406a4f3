"""Each public pipe has an example, an error test and a resume test: found out, not listed.

The cases of pipes over elements are those of test_pipes.py; here are those of pipes over files,
networks and packages, and of map-style pipes. Packages are stood in for.
"""

import bz2
import http.server
import io
import json
import lzma
import os
import sys
import tarfile
import threading
import types
import zipfile
from types import SimpleNamespace

import pytest

import flambeau as fb
from flambeau import distributed
from flambeau.utils.data import DataLoader, IterDataPipe, MapDataPipe
from flambeau.utils.data.datapipes import iter as iterable
from flambeau.utils.data.datapipes import map as mapped
from flambeau.utils.data.datapipes.iter import IterableWrapper as W
from flambeau.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
from flambeau.utils.data.datapipes.map import SequenceWrapper as S
from tests.data.datapipes import test_pipes

BODIES = {"/a": b"alpha", "/b": b"beta", "/c": b"gamma"}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = BODIES.get(self.path.partition("?")[0])
        self.send_response(404 if body is None else 200)
        self.send_header("content-disposition", f'attachment; filename="{self.path[1:2]}.txt"')
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


class Files:
    """A file system of fsspec over a folder."""

    def __init__(self, folder):
        self.folder = folder

    def isfile(self, path):
        return os.path.isfile(path)

    def ls(self, path, detail):
        return sorted(os.path.join(path, name) for name in os.listdir(path))

    def open(self, path, mode, **options):
        return open(path, mode)


class Table:
    def __init__(self, rows):
        self.rows = rows

    @classmethod
    def from_pylist(cls, rows, schema=None):
        return cls(rows)


class ParquetFile:
    num_row_groups = 2

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def read_row_group(self, i, columns, use_threads):
        return Table([self.path, i])


@pytest.fixture
def place(tmp_path, server, monkeypatch):
    """Files, a server, and stand-ins of packages."""
    for name in "cab":
        (tmp_path / f"{name}.txt").write_text(name * 3)
    made = {name: types.ModuleType(name) for name in ("fsspec", "pyarrow", "datasets")}
    made["pyarrow.parquet"] = types.ModuleType("pyarrow.parquet")
    made["fsspec"].core = SimpleNamespace(
        url_to_fs=lambda uri, **options: (Files(tmp_path), uri.partition("://")[2])
    )
    made["pyarrow"].Table, made["pyarrow.parquet"].ParquetFile = Table, ParquetFile
    made["pyarrow"].parquet = made["pyarrow.parquet"]
    made["datasets"].load_dataset = lambda path, **options: [{"row": i} for i in range(4)]
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(fb.cuda, "is_available", lambda: True)
    monkeypatch.setattr(fb.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(distributed, "get_world_size", lambda: 1)
    return SimpleNamespace(folder=str(tmp_path), url=server)


def streams(*pairs):
    return W([(path, io.BytesIO(content)) for path, content in pairs], deepcopy=False)


def tar():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name in ("x", "y", "z"):
            entry = tarfile.TarInfo(name)
            entry.size = 1
            archive.addfile(entry, io.BytesIO(name.encode()))
    return file.getvalue()


def zipped():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in ("x", "y", "z"):
            archive.writestr(name, name * 2)
    return file.getvalue()


def records():
    """Examples of TFRecord with nothing in them but an empty feature each."""
    body = bytes([0x0A, 0x07, 0x0A, 0x05, 0x0A, 0x01]) + b"f" + bytes([0x12, 0x00])
    frame = len(body).to_bytes(8, "little") + bytes(4) + body + bytes(4)
    return streams(("r", 3 * frame))


def texts(place):
    return [os.path.join(place.folder, f"{name}.txt") for name in "abc"]


def uris(place):
    return [f"file://{path}" for path in texts(place)]


def in_folder(place, name):
    return lambda path: os.path.join(place.folder, name, os.path.basename(path))


def cached(place):
    pipe = W(["k", "l", "m"]).on_disk_cache(filepath_fn=in_folder(place, "cache"))
    pipe = pipe.map(lambda path: (path, [path.encode()]))
    return pipe.end_caching(mode="wb", same_filepath_fn=True)


def pinned(element, device):
    return element, device


#: name -> (function of `place`: a pipe of three elements or more; of `place`: what fails, error)
FILES = {
    "Bz2FileLoader": (
        lambda p: streams(
            *[(f"{i}.bz2", bz2.compress(b"a" * i)) for i in range(3)]
        ).load_from_bz2(),
        lambda p: list(W(["a"]).load_from_bz2()),
        (TypeError, "should be tuple type"),
    ),
    "DataFrameMaker": (
        lambda p: W(range(7)).dataframe(dataframe_size=2),
        lambda p: W([]).dataframe(device="gpu"),
        (NotImplementedError, "expected device '' or 'cpu'"),
    ),
    "Decompressor": (
        lambda p: streams(*[(f"{i}.xz", lzma.compress(b"a" * i)) for i in range(3)]).decompress(),
        lambda p: list(streams(("a.dat", b"")).decompress()),
        (RuntimeError, "which does not match"),
    ),
    "EndOnDiskCacheHolder": (
        cached,
        lambda p: W([1]).end_caching(),
        (RuntimeError, "Expected `OnDiskCacheHolder`"),
    ),
    "Extractor": (
        lambda p: streams(*[(f"{i}.bz2", bz2.compress(b"a" * i)) for i in range(3)]).extract(),
        lambda p: W([]).extract("brotli"),
        (ValueError, "not a valid CompressionType"),
    ),
    "FSSpecFileLister": (
        lambda p: iterable.FSSpecFileLister(f"file://{p.folder}", "*.txt"),
        lambda p: list(iterable.FSSpecFileLister(f"file://{p.folder}/nowhere")),
        (OSError, "nowhere"),
    ),
    "FSSpecFileOpener": (
        lambda p: W(uris(p)).open_files_by_fsspec(),
        lambda p: list(W(["file:///nowhere"]).open_files_by_fsspec()),
        (OSError, "nowhere"),
    ),
    "FSSpecSaver": (
        lambda p: W([(uri + "2", "text") for uri in uris(p)]).save_by_fsspec(),
        lambda p: list(W([("file:///nowhere/at/all", "text")]).save_by_fsspec()),
        (OSError, "nowhere"),
    ),
    "FileLister": (
        lambda p: iterable.FileLister(p.folder, "*.txt"),
        lambda p: list(iterable.FileLister(p.folder + "/nowhere")),
        (UserWarning, "No such file"),
    ),
    "FileOpener": (
        lambda p: W(texts(p)).open_files(),
        lambda p: W(texts(p)).open_files(mode="w"),
        (ValueError, "Invalid mode w"),
    ),
    "FullSync": (
        lambda p: W(range(4)).fullsync(),
        lambda p: list(W(["1"]).map(int, input_col=3).fullsync()),
        (IndexError, "range"),
    ),
    "GDriveReader": (
        lambda p: W([f"{p.url}/{n}?id=1" for n in "abc"]).read_from_gdrive(),
        lambda p: list(W([f"{p.url}/nowhere?id=1"]).read_from_gdrive()),
        (OSError, "404"),
    ),
    "HttpReader": (
        lambda p: W([f"{p.url}/{n}" for n in "abc"]).read_from_http(),
        lambda p: list(W([f"{p.url}/nowhere"]).read_from_http()),
        (OSError, "404"),
    ),
    "HuggingFaceHubReader": (
        lambda p: iterable.HuggingFaceHubReader("some/set"),
        lambda p: len(iterable.HuggingFaceHubReader("some/set")),
        (TypeError, "valid length"),
    ),
    "OnDiskCacheHolder": (
        cached,
        lambda p: list(W([1]).on_disk_cache()),
        (RuntimeError, "Please call `end_caching"),
    ),
    "OnlineReader": (
        lambda p: W([f"{p.url}/{n}" for n in "abc"]).read_from_remote(),
        lambda p: list(W([f"{p.url}/nowhere"]).read_from_remote()),
        (OSError, "404"),
    ),
    "ParquetDataFrameLoader": (
        lambda p: W(["f", "g"]).load_parquet_as_df(),
        lambda p: W([]).load_parquet_as_df(device="gpu"),
        (NotImplementedError, "expected device '' or 'cpu'"),
    ),
    "PinMemory": (
        lambda p: W(range(5)).pin_memory(pin_memory_fn=pinned),
        lambda p: list(W(range(5)).pin_memory(pin_memory_fn=lambda x, device: 1 / x)),
        (ZeroDivisionError, "division"),
    ),
    "Saver": (
        lambda p: W([(n, "text") for n in "xyz"]).save_to_disk("t", in_folder(p, "saved")),
        lambda p: list(W([("x", "text")]).save_to_disk("wb", in_folder(p, "saved"))),
        (TypeError, "bytes-like"),
    ),
    "TFRecordLoader": (
        lambda p: records().load_from_tfrecord(),
        lambda p: list(streams(("r", bytes(5))).load_from_tfrecord()),
        (RuntimeError, "Invalid tfrecord file"),
    ),
    "TarArchiveLoader": (
        lambda p: streams(("t", tar())).load_from_tar(),
        lambda p: list(streams(("t", b"no archive")).load_from_tar()),
        (tarfile.ReadError, "could not be opened"),
    ),
    "XzFileLoader": (
        lambda p: streams(*[(f"{i}.xz", lzma.compress(b"a" * i)) for i in range(3)]).load_from_xz(),
        lambda p: list(W(["a"]).load_from_xz()),
        (TypeError, "should be tuple type"),
    ),
    "ZipArchiveLoader": (
        lambda p: streams(("z", zipped())).load_from_zip(),
        lambda p: list(streams(("z", b"no archive")).load_from_zip()),
        (zipfile.BadZipFile, "not a zip file"),
    ),
}

MAPS = {
    "Batcher": lambda: S(range(9)).batch(2),
    "Concater": lambda: S("abc").concat(S("de")),
    "InMemoryCacheHolder": lambda: S(range(5)).map(str).in_memory_cache(),
    "IterToMapConverter": lambda: W([(i, i * i) for i in range(6)]).to_map_datapipe(),
    "Mapper": lambda: S(range(5)).map(lambda n: n + 1),
    "SequenceWrapper": lambda: mapped.SequenceWrapper("abcdef"),
    "Shuffler": lambda: S(range(9)).shuffle(),
    "UnZipper": lambda: S([(i, -i) for i in range(6)]).unzip(2)[1],
    "Zipper": lambda: S("abc").zip(S(range(5))),
}


def dispatched():
    return W(range(6)).sharding_round_robin_dispatch(SHARDING_PRIORITIES.MULTIPROCESSING)


def joined(pipes):
    return pipes[0].mux_longest(*pipes[1:])


#: several pipes of one, and others that test_pipes.py has no pipe of
MORE = {
    "Demultiplexer": lambda: joined(W(range(9)).demux(3, lambda n: n % 3)),
    "Forker": lambda: joined(W(range(5)).shuffle().fork(2)),
    "InMemoryCacheHolder": lambda: W(range(5)).shuffle().in_memory_cache(),
    "RandomSplitter": lambda: W(range(9)).random_split({"a": 1, "b": 2}, 5, target="b"),
    "RoundRobinDemultiplexer": lambda: joined(W(range(7)).round_robin_demux(2)),
    "ShardingRoundRobinDispatcher": dispatched,
    "UnZipper": lambda: joined(W([(i, -i) for i in range(5)]).unzip(2)),
}

REFUSED = {
    **{
        name: [W([])] for name in ("AISFileLister", "AISFileLoader", "S3FileLister", "S3FileLoader")
    },
    **{f"IoPath{name}": [W([])] for name in ("FileLister", "FileOpener", "Saver")},
    "RarArchiveLoader": [W([])],
}


def plain(element):
    """What an element holds, with streams read and closed."""
    if isinstance(element, tuple | list):
        return [plain(each) for each in element]
    if isinstance(element, Table):
        return element.rows
    if hasattr(element, "read"):
        content = element.read()
        element.close()
        return content
    return repr(element)


@pytest.mark.parametrize("name", [*FILES, *MORE])
def test_stopped_at_every_element(name, place):
    def make():
        fb.manual_seed(1)
        return FILES[name][0](place) if name in FILES else MORE[name]()

    expected = [plain(element) for element in make()]
    assert len(expected) >= 3
    for stop in range(1, len(expected) + 1):
        pipe = make()
        elements = iter(pipe)
        before = [plain(next(elements)) for _ in range(stop)]
        state = json.loads(json.dumps(pipe.state_dict()))
        assert before + [plain(element) for element in elements] == expected
        other = make()
        other.load_state_dict(state)
        fb.manual_seed(stop)
        assert [plain(element) for element in other] == expected[stop:]


@pytest.mark.parametrize("name", FILES)
def test_errors(name, place):
    _, fails, (error, text) = FILES[name]
    with pytest.raises(error, match=text):
        fails(place)


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    with pytest.raises(NotImplementedError, match="not supported"):
        getattr(iterable, name)(*REFUSED[name])


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("workers", [0, 1])
def test_map_style_pipes_are_stopped_in_a_loader(name, workers):
    """They have no pass of their own: a loader has."""
    how = {"num_workers": workers, "batch_size": None, "collate_fn": repr}
    if workers:
        how["worker_backend"] = "thread"
    fb.manual_seed(2)
    expected = list(DataLoader(MAPS[name](), **how))
    for stop in range(len(expected)):
        fb.manual_seed(2)
        loader = DataLoader(MAPS[name](), **how)
        elements = iter(loader)
        for _ in range(stop):
            next(elements)
        state = loader.state_dict()
        other = DataLoader(MAPS[name](), **how)
        other.load_state_dict(state)
        assert list(other) == expected[stop:]


def names_it(name, cls, make):
    """Whether a function calls a pipe by its class or by its functional name."""
    functions = [*IterDataPipe.functions.items(), *MapDataPipe.functions.items()]
    called = {key for key, each in functions if cls in each.args} | {name}
    return bool(called & set(make.__code__.co_names))


def public(package, base):
    return {name: getattr(package, name) for name in package.__all__ if name != base.__name__}


def test_every_iterable_pipe_has_all_three():
    stopped = {
        name
        for name, cases in test_pipes.ITER_VALUES.items()
        if any(_is_pipe(make) for make, _ in cases)
    }
    names = public(iterable, IterDataPipe)
    assert len(names) - len(REFUSED) >= 60
    assert names.keys() - REFUSED.keys() == stopped | FILES.keys() | MORE.keys()
    assert names.keys() - REFUSED.keys() <= test_pipes.ITER_ERRORS.keys() | FILES.keys()
    assert all(">>> " in cls.__doc__ for cls in names.values())


def _is_pipe(make):
    fb.manual_seed(0)
    try:
        return isinstance(test_pipes.quiet(make), IterDataPipe)
    except Exception:
        return False


def test_every_map_style_pipe_has_all_three():
    names = public(mapped, MapDataPipe)
    assert names.keys() == MAPS.keys() == test_pipes.MAP_ERRORS.keys()
    for name, make in MAPS.items():
        assert names_it(name, names[name], make), name
    assert all(">>> " in cls.__doc__ for cls in names.values())


def test_the_cases_are_of_the_pipes_that_they_name():
    for name, (make, fails, _) in FILES.items():
        assert names_it(name, getattr(iterable, name), make), name
        assert names_it(name, getattr(iterable, name), fails), name
    for name, make in MORE.items():
        assert names_it(name, getattr(iterable, name), make), name
    assert set(REFUSED) | set(FILES) == test_pipes.ELSEWHERE
