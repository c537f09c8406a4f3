"""Pipes of files: listing, opening, archives, saving, caches, HTTP, against files made here."""

import bz2
import contextlib
import functools
import gzip
import hashlib
import http.server
import io
import lzma
import os
import pathlib
import struct
import tarfile
import threading
import time
import zipfile

import pytest
import scipy.io

import flambeau as fb
from flambeau.utils.data import DataLoader
from flambeau.utils.data.datapipes.iter import (
    FileLister,
    FileOpener,
    IterableWrapper,
    StreamReader,
)
from flambeau.utils.data.datapipes.utils import StreamWrapper, common, decoder


def W(elements):
    return IterableWrapper(elements, deepcopy=False)


@pytest.fixture
def folder(tmp_path):
    """b.txt, a.csv, in/c.txt"""
    (tmp_path / "in").mkdir()
    for name in ("b.txt", "a.csv", "in/c.txt"):
        (tmp_path / name).write_text(name)
    return tmp_path


def names(paths, folder):
    return [os.path.relpath(path, folder) for path in paths]


def test_listing(folder, monkeypatch):
    list_ = functools.partial(FileLister, str(folder))
    assert names(list_(), folder) == ["a.csv", "b.txt"]
    assert names(list_(recursive=True), folder) == ["a.csv", "b.txt", "in/c.txt"]
    assert names(list_("*.txt", recursive=True), folder) == ["b.txt", "in/c.txt"]
    assert names(list_(["*.csv", "c.*"], recursive=True), folder) == ["a.csv", "in/c.txt"]
    assert sorted(names(list_(non_deterministic=True), folder)) == ["a.csv", "b.txt"]
    both = FileLister([str(folder / "in"), str(folder / "b.txt")])
    assert names(both, folder) == ["in/c.txt", "b.txt"]
    assert names(IterableWrapper([str(folder)]).list_files("a*"), folder) == ["a.csv"]
    monkeypatch.chdir(folder)
    assert list(FileLister("in")) == ["in/c.txt"]
    assert list(FileLister("in", abspath=True)) == [str(folder / "in/c.txt")]
    assert len(FileLister("in", length=4)) == 4
    with pytest.raises(TypeError, match="FileListerIterDataPipe instance doesn't have valid len"):
        len(FileLister("in"))
    with pytest.raises(UserWarning, match="nowhere : No such file"):
        list(FileLister("nowhere"))


def test_listing_does_not_follow_links_to_folders(folder):
    (folder / "loop").symlink_to(folder)
    (folder / "link.txt").symlink_to(folder / "b.txt")
    (folder / "in" / "deep").mkdir()
    (folder / "in" / "deep" / "d.txt").touch()
    found = names(FileLister(str(folder), recursive=True), folder)
    assert found == ["a.csv", "b.txt", "link.txt", "in/c.txt", "in/deep/d.txt"]
    walked = [os.path.join(p, f) for p, _, files in sorted(os.walk(folder)) for f in sorted(files)]
    assert found == names(walked, folder)


def test_opening_and_reading(folder):
    path = str(folder / "b.txt")
    assert list(StreamReader(FileOpener([path]))) == [(path, "b.txt")]
    assert list(W([path]).open_files(mode="b").read_from_stream()) == [(path, b"b.txt")]
    (folder / "latin").write_bytes(b"\xe9")
    [(_, stream)] = FileOpener([str(folder / "latin")], encoding="latin1")
    assert stream.read() == "é"
    with pytest.raises(ValueError, match="Invalid mode w"):
        FileOpener([path], mode="w")
    with pytest.raises(ValueError, match="binary mode doesn't take an encoding"):
        FileOpener([path], mode="b", encoding="utf-8")
    with pytest.raises(TypeError, match="Expected string type for pathname"):
        list(FileOpener([3]))
    assert len(FileOpener([path], length=1)) == 1


def test_streams_close_themselves(folder):
    [(_, stream)] = FileOpener([str(folder / "b.txt")])
    file = stream.file_obj
    assert not file.closed
    del stream
    assert file.closed
    parent = StreamWrapper(io.BytesIO())
    children = [StreamWrapper(io.BytesIO(), parent) for _ in range(2)]
    parent.autoclose()
    assert not parent.closed
    for child in children:
        child.close()
    assert parent.closed and parent.file_obj.closed
    with pytest.raises(RuntimeError, match="Parent stream should be StreamWrapper"):
        StreamWrapper(io.BytesIO(), io.BytesIO())
    assert not hasattr(StreamWrapper(io.BytesIO()), "never")


def test_a_filter_closes_what_it_drops(folder):
    opened = []
    pipe = FileOpener([str(folder / "b.txt"), str(folder / "a.csv")])
    kept = pipe.map(lambda pair: opened.append(pair[1]) or pair).filter(
        lambda pair: pair[0].endswith("csv")
    )
    assert len(list(kept)) == 1
    assert opened[0].closed


# archives --------------------------------------------------------------------------------------


def tar_bytes(mode="w"):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode=mode) as tar:
        for name in ("x/a.txt", "b.txt"):
            entry = tarfile.TarInfo(name)
            entry.size = len(name)
            tar.addfile(entry, io.BytesIO(name.encode()))
        tar.addfile(_directory("x"))
    return archive.getvalue()


def _directory(name):
    entry = tarfile.TarInfo(name)
    entry.type = tarfile.DIRTYPE
    return entry


def zip_bytes():
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("x/", "")
        file.writestr("x/a.txt", "x/a.txt")
        file.writestr("b.txt", "b.txt")
    return archive.getvalue()


class OneWay(io.BytesIO):
    def seekable(self):
        return False

    def seek(self, *arguments):
        raise io.UnsupportedOperation


FILES = {"in.z/x/a.txt": b"x/a.txt", "in.z/b.txt": b"b.txt"}


@pytest.mark.parametrize("wrap", [io.BytesIO, lambda c: StreamWrapper(io.BytesIO(c))])
@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_tar(mode, wrap):
    pipe = W([("in.z", wrap(tar_bytes(mode)))]).load_from_tar()
    assert {path: stream.read() for path, stream in pipe} == FILES


def test_tar_as_it_streams_in():
    pipe = W([("in.z", OneWay(tar_bytes("w:gz")))]).load_from_tar()
    assert {path: stream.read() for path, stream in pipe} == FILES


def test_zip_and_the_life_of_its_streams():
    wrapper = StreamWrapper(io.BytesIO(zip_bytes()))
    files = list(W([("in.z", wrapper)]).load_from_zip())
    assert not wrapper.closed
    assert {path: stream.read() for path, stream in files} == FILES
    for _, stream in files:
        stream.close()
    assert wrapper.closed
    own = io.BytesIO(zip_bytes())
    list(W([("in.z", own)]).load_from_zip())
    assert not own.closed, "a stream of the user's is left to him"


@pytest.mark.parametrize(
    ("load", "compress", "path", "inner"),
    [
        ("load_from_bz2", bz2.compress, "ab2.bz2", "ab2"),
        ("load_from_xz", lzma.compress, "zxz.xz", "zxz"),
    ],
)
def test_compressed_files(load, compress, path, inner):
    pipe = getattr(W([(path, io.BytesIO(compress(b"abc")))]), load)()
    assert [(path, stream.read()) for path, stream in pipe] == [(inner, b"abc")]
    assert len(getattr(W([]), load)(length=3)) == 3
    with pytest.raises(TypeError, match="valid length"):
        len(getattr(W([]), load)())
    with pytest.raises(TypeError, match="should be tuple type"):
        list(getattr(W([3]), load)())


@pytest.mark.parametrize("load", ["load_from_tar", "load_from_zip"])
def test_what_is_no_archive(load):
    with pytest.raises((tarfile.ReadError, zipfile.BadZipFile)) as caught:
        list(getattr(W([("some/path", io.BytesIO(b"nothing" * 99))]), load)())
    assert "while files were extracted from some/path" in caught.value.__notes__
    with pytest.raises(TypeError, match="length should be 2, but got 3"):
        list(getattr(W([(1, 2, 3)]), load)())
    with pytest.raises(TypeError, match="string type pathname"):
        list(getattr(W([(1, io.BytesIO())]), load)())
    with pytest.raises(TypeError, match="IOBase or its subclasses"):
        list(getattr(W([("a", 1)]), load)())


@pytest.mark.parametrize(
    ("path", "compress"),
    [("a.gz", gzip.compress), ("a.b.xz", lzma.compress), ("a.bz2", bz2.compress)],
)
@pytest.mark.parametrize("name", ["decompress", "extract"])
def test_decompress(path, compress, name):
    stream = StreamWrapper(io.BytesIO(compress(b"abc")))
    pipe = getattr(W([(path, stream)]), name)()
    assert [(p, s.read()) for p, s in pipe] == [(path, b"abc")]


def test_decompress_to_archives_and_by_name():
    pipe = W([("in.z", StreamWrapper(io.BytesIO(tar_bytes("w:gz"))))]).decompress("tar")
    assert {path: s.read() for path, s in pipe.load_from_tar()} == FILES
    [(_, archive)] = W([("a.b.tar.gz", io.BytesIO(tar_bytes("w:gz")))]).decompress()
    assert isinstance(archive.file_obj, tarfile.TarFile)
    [(_, archive)] = W([("a.zip", io.BytesIO(zip_bytes()))]).decompress()
    assert archive.namelist() == ["x/", "x/a.txt", "b.txt"]
    with pytest.raises(RuntimeError, match="file extension .dat, which does not match"):
        list(W([("a.dat", io.BytesIO())]).decompress())
    with pytest.raises(ValueError, match="'brotli' is not a valid CompressionType"):
        W([]).decompress("brotli")


def test_rar_is_refused():
    with pytest.raises(NotImplementedError, match="RAR archives are not supported"):
        W([]).load_from_rar()


# saving and caches -----------------------------------------------------------------------------


def test_saver(tmp_path):
    where = functools.partial(os.path.join, str(tmp_path), "new", "folder")
    pipe = IterableWrapper([("a", "é"), ("b", "2")]).save_to_disk("t", filepath_fn=where)
    assert list(pipe) == [where("a"), where("b")] and len(pipe) == 2
    assert pathlib.Path(where("a")).read_text() == "é"
    assert list(IterableWrapper([(where("a"), b"\x00")]).save_to_disk("wb")) == [where("a")]
    assert pathlib.Path(where("a")).read_bytes() == b"\x00"
    umask = os.umask(0)
    os.umask(umask)
    assert os.stat(where("a")).st_mode & 0o777 == 0o666 & ~umask
    with pytest.raises(TypeError, match="bytes-like"):
        list(IterableWrapper([(where("c"), "text")]).save_to_disk("wb"))
    assert sorted(os.listdir(where())) == ["a", "b"], "no half of a file is left"


class Counting:
    """Content by name, and how often it was asked for."""

    def __init__(self):
        self.asked = []

    def __call__(self, name):
        self.asked.append(name)
        return name, [name.encode(), b"!"]


def cached(folder, elements=("a", "b"), content=None, **options):
    content = content or Counting()
    path = functools.partial(os.path.join, str(folder))
    pipe = IterableWrapper(list(elements)).on_disk_cache(filepath_fn=path, **options)
    return pipe.map(content).end_caching(mode="wb", same_filepath_fn=True), content


def test_a_cache_on_disk(tmp_path):
    pipe, content = cached(tmp_path)
    for _ in range(2):
        assert names(pipe, tmp_path) == ["a", "b"]
    assert content.asked == ["a", "b"]
    assert (tmp_path / "b").read_bytes() == b"b!"
    other, content = cached(tmp_path, ("a", "c"))
    assert names(other, tmp_path) == ["a", "c"]
    assert content.asked == ["c"]
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "c"]


def test_a_cache_whose_files_are_checked(tmp_path):
    pipe, content = cached(tmp_path, ("a",), hash_dict={str(tmp_path / "a"): "0" * 64})
    with pytest.raises(RuntimeError, match="does not match the expected hash"):
        list(pipe)
    assert os.listdir(tmp_path) == []
    right = {str(tmp_path / "a"): hashlib.md5(b"a!").hexdigest()}
    (tmp_path / "a").write_bytes(b"wrong")
    pipe, content = cached(tmp_path, ("a",), hash_dict=right, hash_type="md5")
    for _ in range(2):
        assert names(pipe, tmp_path) == ["a"]
    assert content.asked == ["a"] and (tmp_path / "a").read_bytes() == b"a!"
    pipe, content = cached(tmp_path, ("a",), extra_check_fn=lambda path: False)
    assert names(pipe, tmp_path) == ["a"] and content.asked == ["a"]


def test_a_cache_of_several_files_for_each_entry(tmp_path):
    archive = tmp_path / "in.zip"
    archive.write_bytes(zip_bytes())
    asked = []

    def make():
        pipe = IterableWrapper([str(archive)]).on_disk_cache(
            filepath_fn=lambda path: path.removesuffix(".zip")
        )
        pipe = pipe.map(lambda path: asked.append(path) or path)
        pipe = FileOpener(pipe, mode="b").load_from_zip()
        return pipe.end_caching(filepath_fn=lambda path: path.replace(".zip", ""))

    expected = [str(tmp_path / "in" / name) for name in ("x/a.txt", "b.txt")]
    pipe = make()
    assert list(pipe) == list(pipe) == list(make()) == expected
    assert asked == [str(archive)]
    assert (tmp_path / "in" / "b.txt").read_bytes() == b"b.txt"


def test_a_cache_that_was_broken_off_is_made_again(tmp_path):
    pipe, content = cached(tmp_path, "abc")
    next(iter(pipe))
    assert sorted(os.listdir(tmp_path)) == ["a"]

    def fails(name):
        yield name.encode()
        raise OSError("no more")

    broken, _ = cached(tmp_path, "abc", content=lambda name: (name, fails(name)))
    with pytest.raises(OSError, match="no more"):
        list(broken)
    assert sorted(os.listdir(tmp_path)) == ["a"]
    assert sorted(names(pipe, tmp_path)) == ["a", "b", "c"]


def test_errors_of_caches(tmp_path):
    holder = IterableWrapper(["a"]).on_disk_cache()
    with pytest.raises(RuntimeError, match="Please call `end_caching"):
        list(holder)
    with pytest.raises(RuntimeError, match="doesn't support add operation"):
        holder + holder
    with pytest.raises(ValueError, match="mutually exclusive"):
        holder.end_caching(filepath_fn=str, same_filepath_fn=True)
    holder.end_caching()
    with pytest.raises(RuntimeError, match="only be invoked once"):
        holder.end_caching()
    with pytest.raises(RuntimeError, match="Expected `OnDiskCacheHolder`"):
        IterableWrapper([]).end_caching()
    with pytest.raises(ValueError, match="Invalid hash_type"):
        IterableWrapper([]).on_disk_cache(hash_dict={}, hash_type="sha1")
    with pytest.raises(TypeError, match="expected filepath_fn to return one path"):
        list(IterableWrapper(["a"]).on_disk_cache(lambda x: [x]).end_caching())


def _log(folder, name):
    with open(os.path.join(folder, "log"), "a") as log:
        log.write(name)
    time.sleep(0.02)
    return name, [name.encode()]


def test_workers_share_a_cache(tmp_path):
    """Without sharding each worker asks for all; each entry is made once, by one of them."""
    (tmp_path / "cache").mkdir()
    path = functools.partial(os.path.join, str(tmp_path), "cache")
    pipe = IterableWrapper(list("abcdef")).on_disk_cache(filepath_fn=path)
    pipe = pipe.map(functools.partial(_log, str(tmp_path))).end_caching(same_filepath_fn=True)
    loader = DataLoader(pipe, batch_size=None, num_workers=2)
    found = sorted(names(loader, tmp_path / "cache"))
    assert found == sorted("abcdef" * 2)
    assert sorted((tmp_path / "log").read_text()) == list("abcdef")
    assert sorted(os.listdir(path())) == list("abcdef")


def test_waiting_for_another_process_ends(tmp_path):
    pipe, _ = cached(tmp_path, ("a",))
    pipe.set_timeout(0.05)
    holder = pipe.holder
    (tmp_path / f"a.promise.{holder._uuid}").touch()
    with pytest.raises(RuntimeError, match="file is not ready in 0.05 seconds"):
        list(pipe)


# network ---------------------------------------------------------------------------------------


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path == "/missing":
            self.send_error(404, "Nothing here")
            return
        self.send_response(200)
        if path == "/drive" and "confirm=t" in query:
            self.send_header("content-disposition", 'attachment; filename="data.csv"')
        if path == "/cookie" and "confirm=tok" not in query:
            self.send_header("set-cookie", "download_warning_1=tok")
        if path == "/cookie" and "confirm=tok" in query:
            self.send_header("content-disposition", 'attachment; filename="big.csv"')
        self.end_headers()
        if path == "/slow":
            time.sleep(1)
        pages = {
            "/drive": b"<title>Google Drive - Virus scan warning</title>",
            "/quota": b"<title>Google Drive - Quota exceeded</title>",
        }
        agent = self.headers.get("X-Name", "")
        body = pages.get(path, f"{path} {query} {agent}".encode())
        with contextlib.suppress(BrokenPipeError):
            self.wfile.write(b"1,2\n" if "confirm" in query else body)

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


def contents(pipe):
    found = []
    for name, stream in pipe:
        found.append((name, stream.read()))
        stream.close()
    return found


@pytest.mark.parametrize("name", ["read_from_http", "read_from_remote"])
def test_http(server, name):
    url = server + "/a"
    read = getattr(IterableWrapper([url]), name)
    assert contents(read()) == [(url, b"/a  ")] and len(read()) == 1
    pipe = read(headers={"X-Name": "me"}, params={"q": 1}, timeout=5)
    assert contents(pipe) == [(url, b"/a q=1 me")]
    missing = getattr(IterableWrapper([server + "/missing", url]), name)
    with pytest.raises(OSError, match="404"):
        contents(missing())
    with pytest.warns(UserWarning, match="404: Nothing here, skipping"):
        assert contents(missing(skip_on_error=True)) == [(url, b"/a  ")]
    with pytest.raises(TimeoutError):
        contents(getattr(IterableWrapper([server + "/slow"]), name)(timeout=0.1))


def test_google_drive(server):
    drive, cookie = f"{server}/drive?id=1", f"{server}/cookie?id=1"
    assert contents(IterableWrapper([drive]).read_from_gdrive()) == [("data.csv", b"1,2\n")]
    assert contents(IterableWrapper([cookie]).read_from_gdrive()) == [("big.csv", b"1,2\n")]
    with pytest.raises(RuntimeError, match="the quota was exceeded"):
        contents(IterableWrapper([server + "/quota"]).read_from_gdrive())
    with pytest.raises(RuntimeError, match="don't contain content-disposition"):
        contents(IterableWrapper([server + "/other"]).read_from_gdrive())


# TFRecord --------------------------------------------------------------------------------------


def message(number, *parts):
    body = b"".join(parts)
    return bytes([number << 3 | 2, len(body)]) + body


def entry(key, value):
    return message(1, message(1, key.encode()), message(2, value))


def floats(*values):
    return message(2, message(1, struct.pack(f"<{len(values)}f", *values)))


def integers(*values):
    return message(3, b"".join(b"\x08" + varint(v & (1 << 64) - 1) for v in values))


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def tfrecord(*messages):
    framed = b"".join(struct.pack("<Q4x", len(m)) + m + bytes(4) for m in messages)
    return W([("a.tfrecord", io.BytesIO(framed))])


EXAMPLE = message(
    1,
    entry("f", floats(0.5, -2.0)),
    entry("i", integers(7, -3, 300)),
    entry("b", message(1, message(1, b"x"), message(1, b"yz"))),
    entry("nothing", b""),
)
SEQUENCE = message(1, entry("i", integers(1))) + message(
    2, entry("s", message(1, integers(1, 2)) + message(1, integers(3, 4)))
)


def test_tfrecord():
    [first, second] = tfrecord(EXAMPLE, SEQUENCE).load_from_tfrecord()
    assert first["f"].tolist() == [0.5, -2.0] and first["f"].dtype == fb.float32
    assert first["i"].tolist() == [7, -3, 300] and first["i"].dtype == fb.int64
    assert first["b"] == [b"x", b"yz"] and first["nothing"] == []
    assert [step.tolist() for step in second["s"]] == [[1, 2], [3, 4]]


def test_tfrecord_as_specified():
    spec = {"i": ((3, 1), fb.int32), "b": ((2, -1), None)}
    [found] = tfrecord(EXAMPLE).load_from_tfrecord(spec)
    assert found["i"].tolist() == [[7], [-3], [300]] and found["i"].dtype == fb.int32
    assert found["b"] == [[b"x"], [b"yz"]]
    [found] = tfrecord(SEQUENCE).load_from_tfrecord({"s": ((4,), fb.float64)})
    assert found["s"].tolist() == [1.0, 2.0, 3.0, 4.0]
    for spec, text in (
        ({"zz": ((1,), None)}, "missing some required keys"),
        ({"b": ((3,), None)}, "Cannot reshape 2 values"),
        ({"b": ((-1, -1), None)}, "at most one dynamic"),
    ):
        with pytest.raises(RuntimeError, match=text) as caught:
            list(tfrecord(EXAMPLE).load_from_tfrecord(spec))
        assert "while records were read from a.tfrecord" in caught.value.__notes__


@pytest.mark.parametrize("cut", range(1, 30, 4))
def test_tfrecord_that_is_cut_off(cut):
    [(_, stream)] = tfrecord(EXAMPLE)
    damaged = W([("a", io.BytesIO(stream.read()[:-cut]))])
    with pytest.raises(RuntimeError, match="Invalid tfrecord file"):
        list(damaged.load_from_tfrecord())


def test_tfrecord_of_other_messages():
    for content in (b"\xff" * 30, b"\x0b", b"\x0a\xff"):
        with pytest.raises(RuntimeError, match="no Example"):
            list(tfrecord(content).load_from_tfrecord())


# decoders --------------------------------------------------------------------------------------


def test_decoders():
    saved = io.BytesIO()
    fb.save(fb.tensor([1, 2]), saved)
    basic = decoder.basichandlers
    assert basic("pt", saved.getvalue()).tolist() == [1, 2]
    assert basic("count", b"x") is None and basic("tx", b"x") is None
    assert decoder.Decoder(basic)(("_name", b"x")) == {"_name": "x"}
    assert decoder.Decoder(basic)([("a.txt", b"x"), ("b", b"")]) == {"a.txt": "x", "b": b""}
    with pytest.raises(AssertionError, match="unknown image specification: jpg"):
        decoder.imagehandler("jpg")
    assert decoder.imagehandler("pil")("txt", b"") is None
    assert decoder.videohandler("txt", b"") is decoder.audiohandler("txt", b"") is None
    matrix = io.BytesIO()
    scipy.io.savemat(matrix, {"x": [[1.0, 2.0]]})
    assert decoder.mathandler()("mat", matrix.getvalue())["x"].tolist() == [[1.0, 2.0]]


def test_masks():
    assert common.match_masks("a.b", "*.b") and not common.match_masks("a.b", ["*.c"])


def test_columns_of_functions():
    validate = common.validate_input_col
    validate(max, [1, 2])
    validate(lambda a, b=1, *, c=2: a, [1])
    validate(lambda *a: a, [1, 2, 3])
    for function, columns, text in (
        (lambda a: a, [1, 2], "takes 1 positional parameters, but 2 are required"),
        (lambda a, b: a, None, "takes 2 positional parameters, but 1 are required"),
        (lambda a, *, c: a, 0, "takes 1 non-default keyword-only parameters"),
        (functools.partial(lambda a, b: a, 1), [0, 1], "takes 1 positional"),
    ):
        with pytest.raises(ValueError, match=text):
            validate(function, columns)


def test_threads_end_with_the_pass():
    before = threading.active_count()
    for pipe in (
        IterableWrapper(range(9)).prefetch(2),
        IterableWrapper(range(9)).threadpool_map(abs, max_workers=2),
    ):
        iterator = iter(pipe)
        next(iterator)
        assert threading.active_count() > before
        del iterator
        assert threading.active_count() == before
    pipe = IterableWrapper(range(9)).prefetch(2)
    iterator = iter(pipe)
    next(iterator)
    assert list(pipe) == list(range(9))
    with pytest.raises(RuntimeError, match="invalidated"):
        next(iterator)
    pipe = IterableWrapper([1, 0]).map(lambda x: 1 // x).prefetch(2)
    with pytest.raises(ZeroDivisionError) as caught:
        list(pipe)
    assert "IterableWrapper -> [Mapper] -> Prefetcher" in caught.value.__notes__[0]
    assert threading.active_count() == before


def test_a_prefetcher_pauses_and_is_shut_down():
    seen = []
    pipe = IterableWrapper(range(100)).map(lambda x: seen.append(x) or x).prefetch(5)
    iterator = iter(pipe)
    next(iterator)
    pipe.pause()
    time.sleep(0.02)
    count = len(seen)
    time.sleep(0.02)
    assert len(seen) == count <= 7
    pipe.resume()
    assert next(iterator) == 1
    pipe.shutdown()
    assert len(list(iterator)) <= 6


def test_threads_of_a_user():
    started, names = [], set()
    pipe = IterableWrapper(range(20)).threadpool_map(
        lambda x: names.add(threading.current_thread().name) or x,
        max_workers=3,
        thread_name_prefix="mine",
        initializer=started.append,
        initargs=(1,),
    )
    assert list(pipe) == list(range(20))
    assert started == [1, 1, 1] and names <= {"mine_0", "mine_1", "mine_2"}
    pipe = IterableWrapper([1, 2]).threadpool_map(abs, initializer=int, initargs=("x",))
    with pytest.raises(ValueError, match="invalid literal"):
        list(pipe)
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        list(IterableWrapper([1]).threadpool_map(abs, other=1))


def test_calls_in_threads_run_at_once_and_their_errors_arrive():
    together = threading.Barrier(4, timeout=20)
    pipe = IterableWrapper(range(8)).threadpool_map(
        lambda x: together.wait() >= 0 and x, max_workers=4
    )
    assert list(pipe) == list(range(8))
    calls = []

    def slow(x):
        calls.append(x)
        time.sleep(0.01)
        return 1 // (x - 3)

    elements = iter(IterableWrapper(range(1000)).threadpool_map(slow, max_workers=2))
    assert [next(elements) for _ in range(3)] == [-1, -1, -1]
    with pytest.raises(ZeroDivisionError):
        next(elements)
    assert len(calls) < 100, "what waited is not called"
    assert not any(t.name.startswith("threadpool_map") for t in threading.enumerate())
