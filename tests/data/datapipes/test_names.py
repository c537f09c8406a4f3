"""The page of names is as it would be made today; helpers of pipes that no other test calls."""

import io
import pathlib

import numpy as np
import pytest
import scipy.io

from flambeau.utils.data import nodes
from flambeau.utils.data.datapipes.iter import IterableWrapper
from flambeau.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
from flambeau.utils.data.datapipes.map.callable import default_fn
from flambeau.utils.data.datapipes.utils import StreamWrapper, janitor, pin_memory_fn
from flambeau.utils.data.datapipes.utils.common import (
    get_file_binaries_from_pathnames,
    get_file_pathnames_from_root,
    validate_pathname_binary_tuple,
)
from flambeau.utils.data.datapipes.utils.decoder import (
    ImageHandler,
    MatHandler,
    extension_extract_fn,
    handle_extension,
)
from tools import data_names


def test_the_page_is_as_it_would_be_made(capsys):
    assert data_names.main(["--check"]) == 0, capsys.readouterr().err


def test_a_name_without_test_or_reason_is_found():
    (module,) = data_names.settle(
        data_names.read("[torchdata.datapipes.iter]\nBatcher batch\nFloater\nLost: gone upstream\n")
    )
    batcher, floater, lost = module.names
    assert batcher.settled and batcher.test == "test_pipes: test_values[Batcher-0]"
    assert not floater.there and not floater.settled
    assert lost.settled and lost.reason == "gone upstream"


def test_no_reason_for_what_is_there_and_not_refused():
    """A reason that has become untrue is taken off the list."""
    for module in data_names.settle(data_names.read(data_names.NAMES.read_text())):
        for name in module.names:
            if name.there and name.reason:
                assert "refused" in name.reason or "not" in name.reason, name.text


def test_streams_are_closed_wherever_they_are():
    streams = [StreamWrapper(io.StringIO("a")) for _ in range(3)]
    janitor({"x": [streams[0]], "y": (streams[1], {"z": streams[2]})})
    assert all(stream.closed for stream in streams)


def test_pinning_needs_a_device():
    with pytest.raises(RuntimeError, match="accelerator"):
        list(map(pin_memory_fn, IterableWrapper([np.float32(1)]).map(_tensor)))


def _tensor(value):
    import flambeau as fb

    return fb.tensor(value)


def test_groups_of_shares():
    assert [group.name for group in SHARDING_PRIORITIES] == [
        "DEFAULT",
        "DISTRIBUTED",
        "MULTIPROCESSING",
    ]
    pipe = IterableWrapper(range(12)).sharding_filter()
    pipe.apply_sharding(2, 1, sharding_group=SHARDING_PRIORITIES.DISTRIBUTED)
    pipe.apply_sharding(3, 2, sharding_group=SHARDING_PRIORITIES.MULTIPROCESSING)
    assert list(pipe) == [5, 11]


def test_the_function_of_a_mapper_that_has_none():
    value = object()
    assert default_fn(value) is value


def test_a_type_variable_is_the_one_of_nodes():
    assert nodes.T.__name__ == "T"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("b.txt", "a.csv", "in/c.txt"):
        (tmp_path / name).write_text(name)
    return tmp_path


def test_paths_and_streams(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert list(get_file_pathnames_from_root(".", "")) == ["./a.csv", "./b.txt"]
    assert list(get_file_pathnames_from_root(".", "*.txt", recursive=True)) == [
        "./b.txt",
        "./in/c.txt",
    ]
    assert list(get_file_pathnames_from_root("b.txt", "*.txt", abspath=True)) == [
        str(pathlib.Path(folder, "b.txt"))
    ]
    ((path, stream),) = get_file_binaries_from_pathnames(["a.csv"], "b")
    validate_pathname_binary_tuple((path, stream))
    assert (path, stream.read()) == ("a.csv", b"a.csv")
    stream.close()
    with pytest.raises(TypeError, match="should be tuple type, but it is type <class 'list'>"):
        validate_pathname_binary_tuple([path, stream])
    with pytest.raises(TypeError, match="Expected string type for pathname, but got <class 'int'>"):
        list(get_file_binaries_from_pathnames([1], "b"))


def test_handlers():
    assert extension_extract_fn("folder.x/a.tar.gz") == "gz" and extension_extract_fn("a") == ""
    assert handle_extension("PNG seg.raw", len)("a.SEG.raw", b"123") == 3
    assert handle_extension("png", len)("a.jpg", b"123") is None
    with pytest.raises(AssertionError, match="unknown image specification: cmyk"):
        ImageHandler("cmyk")
    assert ImageHandler("rgb")("txt", b"") is None
    file = io.BytesIO()
    scipy.io.savemat(file, {"x": np.arange(3)})
    handler = MatHandler(variable_names=["x"])
    assert handler("mat", file.getvalue())["x"].tolist() == [[0, 1, 2]]
    assert handler("txt", b"") is None
