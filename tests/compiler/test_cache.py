"""The cache of compiled libraries: shared, bounded, safe from killed writers and other users."""

from __future__ import annotations

import ctypes
import fcntl
import os
import random
import stat
import subprocess
import sys
import time
import warnings

import pytest
from killed import kill_writers, run_to_the_end

import flambeau as torch
from flambeau._compiler import cache, toolchain
from flambeau._compiler.toolchain import CompilerError


def program(n):
    return f'extern "C" __attribute__((visibility("default"))) int answer() {{ return {n}; }}\n'


def answer(text):
    """What the one function of a library gives."""
    library = toolchain.load(text)  # is closed when nobody has it
    return ctypes.CDLL(None, handle=library.handle).answer()


@pytest.fixture
def folder(monkeypatch, tmp_path):
    home = tmp_path / "cache"
    monkeypatch.setenv("FLAMBEAU_CACHE", str(home))
    monkeypatch.delenv("FLAMBEAU_CACHE_SIZE", raising=False)
    cache._private.cache_clear()
    return home


def libraries(folder):
    return sorted(folder.glob("*.so"))


@pytest.fixture
def compilations(monkeypatch):
    """How often the compiler ran."""
    ran = []
    compile_ = toolchain._compile
    monkeypatch.setattr(toolchain, "_compile", lambda *a: (ran.append(1), compile_(*a))[1])
    return ran


def test_the_folder_is_where_the_environment_says(monkeypatch, tmp_path):
    for name in ("FLAMBEAU_CACHE", "TORCHINDUCTOR_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.wanted_folder() == tmp_path / ".cache" / "flambeau"
    for name in ("XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR"):  # each goes before the last
        monkeypatch.setenv(name, str(tmp_path / name))
        assert cache.wanted_folder() == tmp_path / name / "flambeau"
    monkeypatch.setenv("FLAMBEAU_CACHE", str(tmp_path / "own"))
    assert cache.wanted_folder() == tmp_path / "own"


def test_a_library_is_compiled_once(folder, compilations):
    assert answer(program(42)) == 42
    assert answer(program(42)) == 42
    assert len(compilations) == 1 and len(libraries(folder)) == 1
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not list(folder.glob("making-*"))


def test_the_one_used_longest_ago_goes_first(folder, monkeypatch, compilations):
    for n in range(3):
        toolchain.load(program(n))
        for path in libraries(folder):
            os.utime(path, (path.stat().st_mtime - 10,) * 2)
    toolchain.load(program(0))  # used again, so the second is the oldest
    size = sum(p.stat().st_size for p in libraries(folder))
    monkeypatch.setenv("FLAMBEAU_CACHE_SIZE", str(size * 7 // 6))  # three and a half
    toolchain.load(program(3))
    assert len(libraries(folder)) == 3 and len(compilations) == 4
    toolchain.load(program(0))
    assert len(compilations) == 4
    toolchain.load(program(1))
    assert len(compilations) == 5


def test_the_folder_is_looked_at_again_only_after_much_was_written(folder, monkeypatch):
    looks = []
    trim = cache._trim
    monkeypatch.setattr(cache, "_trim", lambda *args: looks.append(args) or trim(*args))
    monkeypatch.setenv("FLAMBEAU_CACHE_SIZE", "160K")
    for n in range(100):  # 400 KiB in files of 4 KiB, of which 10 KiB may be written unseen
        cache.write(f"{n}.plan", bytes(4096))
        kept = sorted(int(p.stem) for p in folder.glob("*.plan"))
        assert sum(p.stat().st_size for p in folder.glob("*.plan")) <= 160 << 10
        assert kept[-1] == n and kept == list(range(kept[0], n + 1))
        time.sleep(0.001)  # so that times of files differ
    assert len(looks) < 60 and kept[0] > 50


@pytest.mark.parametrize("text, value", [("5", 5), ("2k", 2048), ("3M", 3 << 20), ("1G", 1 << 30)])
def test_the_bound_is_set_by_the_environment(monkeypatch, text, value):
    monkeypatch.setenv("FLAMBEAU_CACHE_SIZE", text)
    assert cache.bound() == value


@pytest.mark.parametrize("text", ["much", "-1", "G", "1.5G", "10KB"])
def test_a_bound_that_is_no_size_is_refused(monkeypatch, text):
    monkeypatch.setenv("FLAMBEAU_CACHE_SIZE", text)
    with pytest.raises(ValueError, match="expected a number of bytes, or one with K, M or G"):
        cache.bound()


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "unsealed"])
def test_a_damaged_library_is_not_loaded_but_made_again(folder, compilations, damage):
    text = program(f"7 + sizeof(char[{len(damage)}])")
    toolchain.load(text)
    (path,) = libraries(folder)
    data = bytearray(path.read_bytes())
    path.unlink()
    if damage == "flipped":
        data[len(data) // 2] ^= 1
    path.write_bytes(
        {"cut": data[: len(data) // 2], "empty": b"", "unsealed": data[:-1]}.get(damage, data)
    )
    assert answer(text) == 7 + len(damage)
    assert len(compilations) == 2


WHOLE = bytes(range(256)) * 3


def fetched(name, contents=WHOLE):
    """What the cache gives for a file of those contents, and whether it was made just now."""
    made = []

    def make(work):
        made.append(1)
        (work / "made").write_bytes(contents)
        return work / "made"

    return cache.fetch(name, make, lambda path: path.read_bytes()), bool(made)


def test_a_file_damaged_at_random_is_made_again(folder):
    r = random.Random(5)
    sealed, _ = fetched("a.so")
    for _ in range(300):
        data = bytearray(sealed)
        kind = r.randrange(5)
        at, n = r.randrange(len(data)), r.randrange(1, 40)
        if kind == 0:
            data[at] ^= 1 << r.randrange(8)
        elif kind == 1:
            del data[at : at + n]
        elif kind == 2:
            data[at:at] = r.randbytes(n)
        elif kind == 3:
            data = data[:at]
        else:
            data = r.randbytes(r.randrange(2 * len(data)))
        (folder / "a.so").write_bytes(data)
        assert fetched("a.so") == (sealed, data != sealed)
    assert fetched("a.so") == (sealed, False)


def test_a_file_of_another_name_is_made_again(folder):
    fetched("a.so", b"of a")
    fetched("b.so", b"of b")
    (folder / "a.so").rename(folder / "b.so")
    data, made = fetched("b.so", b"of b")
    assert made and data.startswith(b"of b")


@pytest.mark.parametrize("what", ["pipe", "broken link", "loop", "link to a pipe", "zeros"])
def test_what_is_no_library_is_replaced_at_once(folder, what):
    folder.mkdir(mode=0o700)
    place = folder / "a.so"
    if "pipe" in what:
        os.mkfifo(folder / "pipe", 0o600)
    if what == "zeros":  # more of them than there is memory
        place.touch(0o600)
        os.truncate(place, 1 << 42)
    else:
        place.symlink_to({"broken link": "nowhere", "loop": "a.so"}.get(what, "pipe"))
    assert fetched("a.so")[1] is True and not place.is_symlink()
    assert fetched("a.so")[1] is False


def test_a_link_to_what_others_may_write_to_is_not_followed(folder):
    sealed, _ = fetched("a.so")
    elsewhere = folder.parent / "elsewhere.so"
    (folder / "a.so").rename(elsewhere)
    (folder / "a.so").symlink_to(elsewhere)
    elsewhere.chmod(0o622)
    assert fetched("a.so") == (sealed, True)
    assert not (folder / "a.so").is_symlink()


def test_a_folder_in_the_place_of_a_file_is_left_alone_and_told(folder):
    (folder / "a.so").mkdir(parents=True)
    folder.chmod(0o700)
    (folder / "a.so" / "precious").touch()
    with pytest.warns(RuntimeWarning, match="Is a directory"):
        assert fetched("a.so")[1]
    assert (folder / "a.so" / "precious").exists()


def test_what_killed_writers_left_goes_and_what_writers_hold_stays(folder):
    toolchain.load(program(1))
    left, held, fresh = (folder / f"making-{name}" for name in ("left", "held", "fresh"))
    for path in (left, held, fresh):
        path.mkdir()
        (path / "kernels.cpp").write_text("half")
    for path in (left, held):
        os.utime(path, (time.time() - 3600,) * 2)
    lock = os.open(held, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    cache._room.clear()  # as in a new process
    toolchain.load(program(2))
    assert not left.exists() and held.exists() and fresh.exists()
    os.close(lock)


def refused(folder, reason):
    """Loading works, in a folder of the process's own, and says why."""
    with pytest.warns(RuntimeWarning, match=reason) as seen:
        assert answer(program(11)) == 11
        assert answer(program(12)) == 12
    assert len(seen) == 1 and "FLAMBEAU_CACHE names another" in str(seen[0].message)


def test_a_folder_that_others_may_write_to_is_not_trusted(folder):
    toolchain.load(program(11))
    folder.chmod(0o777)
    before = [p.stat().st_mtime_ns for p in libraries(folder)]
    refused(folder, "other users may write to .* chmod go-w")
    assert [p.stat().st_mtime_ns for p in libraries(folder)] == before


def test_a_library_that_others_may_write_to_is_made_again(folder, compilations):
    toolchain.load(program(13))
    (path,) = libraries(folder)
    path.chmod(0o722)
    assert answer(program(13)) == 13
    assert len(compilations) == 2
    assert stat.S_IMODE(libraries(folder)[0].stat().st_mode) == 0o700


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_a_folder_of_another_user_is_not_trusted(folder):
    folder.mkdir(mode=0o755)
    os.chown(folder, 12345, 12345)
    refused(folder, "belongs to user 12345, not to 0")


def test_a_cache_that_is_a_file_is_told(folder):
    folder.write_text("no folder")
    refused(folder, "File exists")


def test_a_full_disk_is_told(folder, monkeypatch):
    folder.mkdir(mode=0o700)
    make = cache.tempfile.mkdtemp

    def full(dir=None, prefix=None):
        if dir == folder:
            raise OSError(28, os.strerror(28))
        return make(dir=dir, prefix=prefix)

    monkeypatch.setattr(cache.tempfile, "mkdtemp", full)
    refused(folder, "No space left on device")


def test_no_place_at_all_is_an_error(folder, monkeypatch):
    def full(dir=None, prefix=None):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(cache.tempfile, "mkdtemp", full)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(CompilerError, match="could be written.*No space left on device"):
            toolchain.load(program(14))


def test_a_private_folder_goes_with_its_process(folder):
    folder.write_text("no folder")
    code = (
        "from flambeau._compiler import cache, toolchain; import os\n"
        f"toolchain.load({program(1)!r})\n"
        "print(cache.folder())\n"
        "if not os.fork(): raise SystemExit\n"
        "os.wait(); print(cache.folder().exists())"
    )
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    path, exists = run.stdout.split()
    assert exists == "True" and not os.path.exists(path)


def test_a_compiler_that_fails_is_told_with_its_words_and_the_source(folder):
    with pytest.raises(CompilerError, match="failed with status 1 on .*\\.cpp:") as caught:
        toolchain.load("this is no program\n")
    path = str(caught.value).split(" on ")[1].split(":")[0]
    with open(path) as f:
        assert f.read() == "this is no program\n"
    os.unlink(path)
    assert not list(folder.glob("making-*"))


def test_writers_killed_at_random_moments_do_no_harm(folder):
    kill_writers(folder, kills=10, seed=20261121)
    run_to_the_end(folder)


def test_headers_are_those_that_the_compiler_reads(tmp_path):
    source = tmp_path / "x.cpp"
    source.write_text(f'#include "{toolchain.ENTRY}"\n')
    flags = [f for f in toolchain.flags() if f not in ("-shared",)]
    run = subprocess.run(
        [toolchain.compiler(), *flags, "-M", str(source)],
        capture_output=True,
        text=True,
        check=True,
    )
    read = {os.path.realpath(w) for w in run.stdout.replace("\\\n", " ").split()[2:]}
    ours = {os.path.realpath(p) for p in toolchain.headers()}
    roots = tuple(os.path.realpath(p) for p in (toolchain.sources(), toolchain._HERE))
    assert {p for p in read if p.startswith(roots)} <= ours


def test_headers_are_found_in_a_checkout_and_in_a_package(monkeypatch, tmp_path):
    here = tmp_path / "flambeau" / "_compiler"
    monkeypatch.setattr(toolchain, "_HERE", here)
    toolchain.sources.cache_clear()
    with pytest.raises(CompilerError, match="expected the header kernels/scalar_math.h in .* or "):
        toolchain.sources()
    for place in (here / "csrc", tmp_path / "csrc"):
        (place / "kernels").mkdir(parents=True)
        (place / toolchain.ENTRY).write_text("")
        toolchain.sources.cache_clear()
        assert toolchain.sources() == place
    toolchain.sources.cache_clear()


def test_the_place_of_a_program_is_no_part_of_what_is_compiled(folder):
    source = "def f(x):\n    return torch.exp(x) * 3\n"
    for lines_before in (0, 5):
        scope = {"torch": torch}
        exec("\n" * lines_before + source, scope)
        torch.compile(scope["f"])(torch.ones(2))
    assert len(libraries(folder)) == 1
