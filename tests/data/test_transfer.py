"""Parcels from worker to loader: values, sharing, reuse of memory, failures."""

import os

import numpy as np
import pytest

import flambeau as fb
from flambeau.utils.data import DataLoader
from flambeau.utils.data._utils.transfer import Receiver, Sender


def sent(batch, sender=None, receiver=None):
    sender = sender or Sender(0)
    parcel = sender.pack(batch)
    opened = [os.dup(descriptor) for descriptor in sender.opened()]
    batch = (receiver or Receiver()).unpack(parcel, lambda: opened.pop(0))
    assert not opened
    return parcel, batch


@pytest.mark.parametrize("count", [3, 100_000])
def test_structures_arrive_as_they_were(count):
    x = fb.arange(float(count))
    weight = fb.nn.Parameter(fb.ones(2))
    batch = {"x": [x, x], "t": (x.reshape(-1, 1).t(), "text"), "n": np.arange(3), "w": weight}
    parcel, back = sent(batch)
    assert (parcel.slot is None) == (count == 3)
    assert fb.equal(back["x"][0], x) and back["x"][0] is back["x"][1]
    assert back["t"][0].shape == (1, count) and back["t"][1] == "text"
    assert back["n"].tolist() == [0, 1, 2] and type(back["w"]) is fb.nn.Parameter


def test_odd_tensors():
    big = fb.zeros(20_000)
    batch = [big, fb.empty(0, 3), fb.tensor(2, dtype=fb.bfloat16), fb.empty(2, device="meta")]
    _, back = sent(batch)
    assert [tuple(t.shape) for t in back] == [(20_000,), (0, 3), (), (2,)]
    assert back[2].dtype == fb.bfloat16 and back[3].device.type == "meta"


def test_arrays_and_long_pickles_go_through_memory():
    array = np.arange(20_000).reshape(100, 200)
    batch = {"a": array, "t": array.T, "cut": array[:, ::2], "text": ["word"] * 3, "e": np.empty(0)}
    parcel, back = sent(batch)
    assert parcel.slot is not None
    for name, value in batch.items():
        assert np.array_equal(back[name], value) and type(back[name]) is type(value)
    back["a"][0, 0] = -1
    assert array[0, 0] == 0
    parcel, back = sent(["x" * 100_000, b"y" * 100_000])
    assert parcel.slot is not None and back == ["x" * 100_000, b"y" * 100_000]


def test_a_slot_is_reused_only_after_it_was_given_back():
    sender, receiver = Sender(0), Receiver()
    one, first = sent(fb.full((20_000,), 1.0), sender, receiver)
    two, _ = sent(fb.full((20_000,), 2.0), sender, receiver)
    assert one.slot[0] != two.slot[0]
    sender.release(receiver.emptied(0))
    assert receiver.emptied(0) == []
    three, third = sent(fb.full((20_000,), 3.0), sender, receiver)
    assert three.slot[0] == one.slot[0]
    assert first[0].item() == 1.0 and third[0].item() == 3.0
    sender.release(receiver.emptied(0))
    four, fourth = sent(fb.full((500_000,), 4.0), sender, receiver)
    assert (
        four.slot[1] >= 2_000_000
        and four.dropped == [one.slot[0]]
        and fourth.sum().item() == 2_000_000.0
    )


def test_without_shared_memory_bytes_go_with_the_pickle(monkeypatch):
    def none(*_):
        raise OSError("not here")

    monkeypatch.setattr(os, "memfd_create", none)
    parcel, back = sent(fb.arange(50_000))
    assert parcel.slot is None and back.sum().item() == 50_000 * 49_999 // 2


def large_batch(samples):
    return fb.full((300_000,), float(samples[0]))


def test_many_large_batches_through_workers():
    loader = DataLoader(range(40), collate_fn=large_batch, num_workers=2)
    kept = list(loader)
    assert [t[0].item() for t in kept] == [float(i) for i in range(40)]
    assert [t[-1].item() for t in kept] == [float(i) for i in range(40)]


def unpicklable(samples):
    return lambda: samples


def test_what_cannot_be_pickled_is_an_error_not_a_hang():
    loader = DataLoader(range(2), collate_fn=unpicklable, num_workers=1, timeout=30)
    with pytest.raises((AttributeError, RuntimeError), match="DataLoader worker process 0"):
        next(iter(loader))
