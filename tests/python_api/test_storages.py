"""Storages as objects: copies, pickles, identity, sizes, files."""

import copy
import os
import pickle
import sys
import warnings
import weakref

import pytest

import flambeau as torch


def test_copies_and_pickles():
    s = torch.arange(3, dtype=torch.uint8).untyped_storage()
    pickled = [pickle.loads(pickle.dumps(s, protocol)) for protocol in (2, 5)]
    for made in (copy.copy(s), copy.deepcopy(s), *pickled):
        assert type(made) is torch.UntypedStorage
        assert made.tolist() == [0, 1, 2] and made.data_ptr() != s.data_ptr()
    typed = torch.arange(3, dtype=torch.int16).storage()
    for made in (copy.copy(typed), copy.deepcopy(typed), pickle.loads(pickle.dumps(typed))):
        assert made.dtype == torch.int16 and made.tolist() == [0, 1, 2]
        assert made.data_ptr() != typed.data_ptr()
    meta = pickle.loads(pickle.dumps(torch.ones(2, device="meta").untyped_storage()))
    assert meta.device.type == "meta" and meta.nbytes() == 8


def test_deep_copies_share_what_was_shared():
    x = torch.arange(4.0)
    bits = x.view(torch.int32)
    a, b, s, typed = copy.deepcopy((x, bits[1:], x.untyped_storage(), x.storage()))
    assert a.data_ptr() == s.data_ptr() == typed.data_ptr() == b.data_ptr() - 4
    b[0] = 0
    assert a.tolist() == [0, 0, 2, 3] and x.tolist() == [0, 1, 2, 3]


def test_one_object_per_storage():
    x = torch.ones(4)
    s = x.untyped_storage()
    assert x[1:].untyped_storage() is s
    seen = weakref.ref(s)
    s.note = 3
    assert x.untyped_storage().note == 3
    del s
    assert seen() is None
    assert x.untyped_storage() == x.untyped_storage()


def test_size():
    assert sys.getsizeof(torch.ones(100).untyped_storage()) >= 400
    assert sys.getsizeof(torch.ones(100).storage()) >= 400


def test_files(tmp_path):
    path = str(tmp_path / "bytes")
    with open(path, "wb") as f:
        f.write(bytes(range(16)))
    shared = torch.UntypedStorage.from_file(path, shared=True, nbytes=16)
    shared[0] = 200
    with open(path, "rb") as f:
        assert f.read() == bytes([200, *range(1, 16)])
    assert shared.is_shared() and shared.filename == path and not shared.resizable()
    own = torch.UntypedStorage.from_file(path, shared=False, nbytes=8)
    own[1] = 99
    assert own.tolist()[:3] == [200, 99, 2] and not own.is_shared()
    with open(path, "rb") as f:
        assert f.read()[1] == 1
    made = str(tmp_path / "made")
    x = torch.from_file(made, shared=True, size=4, dtype=torch.int32)
    x[2] = 7
    assert os.path.getsize(made) == 16
    assert torch.from_file(made, size=4, dtype=torch.int32).tolist() == [0, 0, 7, 0]


def test_files_refused(tmp_path):
    missing = str(tmp_path / "missing")
    with pytest.raises(RuntimeError, match="unable to open file .* in read-only mode"):
        torch.UntypedStorage.from_file(missing, False, 4)
    with pytest.raises(RuntimeError, match="unable to open file .* in read-only mode"):
        torch.from_file(missing, size=4)
    short = tmp_path / "short"
    short.write_bytes(b"abc")
    with pytest.raises(RuntimeError, match="has 3 bytes, expected at least 4"):
        torch.UntypedStorage.from_file(str(short), False, 4)


def test_memory_with_a_type_is_deprecated_once():
    from flambeau import storage

    storage._warn_once.cache_clear()
    with pytest.warns(UserWarning, match="untyped_storage"):
        assert torch.ones(3).storage().tolist() == [1, 1, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.ones(3).storage()
        torch.ones(3).untyped_storage()
