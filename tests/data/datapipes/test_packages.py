"""Pipes that need a package: what they ask it for, and what they say where it is missing.

The packages are stood in for: fsspec by a file system in memory, pyarrow and datasets by what is
called of them.
"""

import contextlib
import io
import sys
import types

import pytest

from flambeau import distributed
from flambeau.utils.data.datapipes import iter as iterable
from flambeau.utils.data.datapipes import utils
from flambeau.utils.data.datapipes.iter import IterableWrapper


@pytest.fixture
def absent(monkeypatch):
    for name in ("fsspec", "pyarrow", "pyarrow.parquet", "datasets", "graphviz"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize(
    ("make", "package"),
    [
        (lambda: iterable.FSSpecFileLister("memory://"), "fsspec"),
        (lambda: IterableWrapper([]).open_files_by_fsspec(), "fsspec"),
        (lambda: IterableWrapper([]).save_by_fsspec(), "fsspec"),
        (lambda: IterableWrapper([]).dataframe(), "pyarrow"),
        (lambda: IterableWrapper([]).load_parquet_as_df(), "pyarrow"),
        (lambda: iterable.HuggingFaceHubReader("some"), "datasets"),
        (lambda: utils.to_graph(IterableWrapper([])), "graphviz"),
    ],
)
def test_a_package_that_is_missing_is_named(make, package, absent):
    with pytest.raises(ModuleNotFoundError, match=f"ackage `?{package}`? is required"):
        make()


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("S3FileLister", "FSSpecFileLister"),
        ("S3FileLoader", "FSSpecFileOpener"),
        ("AISFileLister", "FSSpecFileLister"),
        ("AISFileLoader", "FSSpecFileOpener"),
        ("IoPathFileLister", "FSSpecFileLister"),
        ("IoPathFileOpener", "FSSpecFileOpener"),
        ("IoPathSaver", "FSSpecSaver"),
    ],
)
def test_what_is_refused_names_what_does_it(name, instead):
    with pytest.raises(NotImplementedError, match=f"not supported; use {instead}"):
        getattr(iterable, name)([])


# fsspec ----------------------------------------------------------------------------------------


class Memory:
    """A file system of two folders; `ls` gives names without the protocol."""

    def __init__(self, **options):
        self.options = options

    files = {}

    def isfile(self, path):
        return path in self.files

    def ls(self, path, detail):
        assert detail is False
        return [name for name in self.files if name.startswith(path.rstrip("/") + "/")]

    @contextlib.contextmanager
    def _writing(self, path):
        file = io.StringIO()
        yield file
        self.files[path] = file.getvalue()

    def open(self, path, mode, **options):
        self.options.update(options)
        return self._writing(path) if "w" in mode else io.StringIO(self.files[path])


@pytest.fixture
def memory(monkeypatch):
    system = Memory()
    monkeypatch.setattr(Memory, "files", {"/d/b.txt": "b", "/d/a.csv": "1,2", "/e": "e"})
    package = types.ModuleType("fsspec")

    def url_to_fs(uri, **options):
        system.options = options
        return system, uri.partition("://")[2]

    package.core = types.SimpleNamespace(url_to_fs=url_to_fs)
    monkeypatch.setitem(sys.modules, "fsspec", package)
    return system


def test_files_of_any_file_system(memory):
    assert list(iterable.FSSpecFileLister("memory:///d", "*.csv")) == ["memory:///d/a.csv"]
    both = IterableWrapper(["memory:///d", "memory:///e"]).list_files_by_fsspec()
    assert list(both) == ["memory:///d/b.txt", "memory:///d/a.csv", "memory:///e"]
    opened = IterableWrapper(["memory:///e"]).open_files_by_fsspec(
        token="t", kwargs_for_open={"compression": None}
    )
    assert [(uri, stream.read()) for uri, stream in opened] == [("memory:///e", "e")]
    assert memory.options == {"token": "t", "compression": None} and len(opened) == 1
    saved = IterableWrapper([("new", "text")]).save_by_fsspec(
        filepath_fn=lambda name: f"memory:///{name}"
    )
    assert list(saved) == ["memory:///new"] and memory.files["/new"] == "text"


# tables ----------------------------------------------------------------------------------------


class Table:
    def __init__(self, rows, schema=None):
        self.rows, self.schema = rows, schema

    @classmethod
    def from_pylist(cls, rows, schema=None):
        return cls(rows, schema)

    def select(self, columns):
        return Table([{c: row[c] for c in columns} for row in self.rows], self.schema)

    def cast(self, schema):
        return Table(self.rows, schema)


class ParquetFile:
    num_row_groups = 2

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def read_row_group(self, i, columns, use_threads):
        return Table([self.path, i, columns, use_threads])


@pytest.fixture
def pyarrow(monkeypatch):
    package, parquet = types.ModuleType("pyarrow"), types.ModuleType("pyarrow.parquet")
    package.Table, parquet.ParquetFile, package.parquet = Table, ParquetFile, parquet
    monkeypatch.setitem(sys.modules, "pyarrow", package)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", parquet)


def test_tables_of_rows(pyarrow):
    def tables(rows, **options):
        return [t.rows for t in IterableWrapper(rows).dataframe(**options)]

    assert tables([1, 2, 3], dataframe_size=2) == [[{"f0": 1}, {"f0": 2}], [{"f0": 3}]]
    assert tables([("a", 1)], columns=["x", "y"]) == [[{"x": "a", "y": 1}]]
    assert tables([{"x": 1, "y": 2}], columns=["y"]) == [[{"y": 2}]]
    schema = types.SimpleNamespace(names=["p"])
    assert tables([[5]], dtype=schema) == tables([[5]], dtype_generator=lambda: schema)
    assert tables([[5]], dtype=schema) == [[{"p": 5}]]
    with pytest.raises(NotImplementedError, match="expected device '' or 'cpu', got 'gpu'"):
        IterableWrapper([]).dataframe(device="gpu")


def test_parquet(pyarrow):
    pipe = IterableWrapper(["f"]).load_parquet_as_df(columns=["x"], use_threads=True, dtype="s")
    assert [(t.rows, t.schema) for t in pipe] == [
        (["f", 0, ["x"], True], "s"),
        (["f", 1, ["x"], True], "s"),
    ]


def test_the_hub(monkeypatch):
    package = types.ModuleType("datasets")
    package.load_dataset = lambda path, **options: [path, options]
    monkeypatch.setitem(sys.modules, "datasets", package)
    pipe = iterable.HuggingFaceHubReader("some/set", split="train")
    assert list(pipe) == ["some/set", {"streaming": True, "split": "train"}]
    with pytest.raises(TypeError, match="valid length"):
        len(pipe)


def test_a_picture_of_a_graph(monkeypatch):
    package = types.ModuleType("graphviz")

    class Digraph:
        def __init__(self, **options):
            self.nodes, self.edges = {}, []

        def node(self, key, label, **style):
            self.nodes[key] = label

        def edge(self, a, b):
            self.edges.append((self.nodes[a], self.nodes[b]))

    package.Digraph = Digraph
    monkeypatch.setitem(sys.modules, "graphviz", package)
    a, b = IterableWrapper([1]).fork(2)
    graph = utils.to_graph(a.zip(b.map(abs)))
    assert sorted(graph.edges) == [
        ("Forker", "Mapper"),
        ("Forker", "Zipper"),
        ("IterableWrapper", "Forker"),
        ("Mapper", "Zipper"),
    ]
    assert len(utils.to_graph(a.zip(b), debug=True).nodes) == 5


# ranks -----------------------------------------------------------------------------------------


def test_fullsync_alone(tmp_path):
    pipe = IterableWrapper(range(3)).fullsync()
    with pytest.raises(RuntimeError, match="required to be initialized"):
        list(pipe)
    distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/world", rank=0, world_size=1
    )
    try:
        assert list(pipe) == [0, 1, 2]
    finally:
        distributed.destroy_process_group()


def test_fullsync_ends_with_the_first_rank(monkeypatch):
    """Another rank has two elements: what it has is added to each sum."""
    theirs = iter([1, 1, 0])

    def all_reduce(tensor, op, group):
        assert group == ("gloo", 5)
        tensor.add_(next(theirs))

    def new_group(backend, timeout):
        return backend, timeout.total_seconds()

    for name, value in {
        "is_initialized": lambda: True,
        "get_world_size": lambda: 2,
        "new_group": new_group,
        "all_reduce": all_reduce,
    }.items():
        monkeypatch.setattr(distributed, name, value)
    pipe = IterableWrapper(range(9)).fullsync(timeout=5)
    assert list(pipe) == [0, 1] and not pipe.is_replicable()
