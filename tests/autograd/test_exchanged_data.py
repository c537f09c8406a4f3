"""x.data = y, copy.copy, set_, detach_: what goes on counting, what is shared, what is refused."""

import copy

import pytest

import flambeau as torch


def test_exchanged_memory_goes_on_counting_with_its_views():
    x = torch.zeros(3)
    view = x[:2]
    x.data = torch.ones(3)
    x.add_(1)
    assert (x._version, view._version) == (1, 1)
    view.mul_(2)
    assert (x._version, view._version) == (2, 2)
    assert x.tolist() == [2, 2, 2] and view.tolist() == [0, 0]
    again = x[0]
    again.zero_()
    assert (x._version, view._version, again._version) == (3, 3, 3)


def test_a_change_after_the_exchange_is_noticed_by_who_saved_a_view():
    a = torch.ones(2, requires_grad=True)
    base = torch.ones(3)
    y = a * base[:2]
    base.data = torch.zeros(3)
    base.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_data_counts_alone():
    x = torch.zeros(2)
    x.data.add_(1)
    assert x._version == 0
    old = x.data
    x.data = old
    old.add_(1)
    assert x._version == 0


def test_exchanged_memory_is_given_back():
    x = torch.zeros(3)
    storage = x.untyped_storage()
    import weakref

    gone = weakref.ref(storage)
    x.data = torch.ones(3)
    del storage
    assert gone() is None


@pytest.mark.parametrize("leaf", [True, False])
def test_data_of_a_tensor_with_gradient_stays_inexact(leaf):
    x = torch.ones(2, requires_grad=True)
    x = x if leaf else x * 1
    with pytest.raises(RuntimeError, match="data: expected a floating point or complex tensor"):
        x.data = torch.tensor([1, 2])
    x.data = torch.ones(3, dtype=torch.float64)
    assert x.dtype == torch.float64 and x.shape == (3,)
    plain = torch.ones(2)
    plain.data = torch.tensor([1, 2])
    assert plain.dtype == torch.int64


def test_copy_shares_memory():
    x = torch.arange(6.0)
    part = x[2:4]
    y = copy.copy(part)
    y[0] = 100
    assert x[2] == 100 and y.storage_offset() == 2 and not y._is_view()
    assert (part._version, y._version) == (0, 1)


def test_copy_keeps_class_attributes_and_leaves():
    class Sub(torch.Tensor):
        pass

    p = torch.nn.Parameter(torch.ones(2))
    p.note = [1]
    q = copy.copy(p)
    assert type(q) is torch.nn.Parameter and q.requires_grad and q.is_leaf and q is not p
    assert q.note is p.note and q.data_ptr() == p.data_ptr()
    s = torch.ones(2).as_subclass(Sub)
    s.note = 3
    assert type(copy.copy(s)) is Sub and copy.copy(s).note == 3
    y = copy.copy(torch.ones(2, requires_grad=True) * 2)
    assert y.is_leaf and y.requires_grad


def test_reversed():
    x = torch.arange(6).view(3, 2)
    assert reversed(x).tolist() == [[4, 5], [2, 3], [0, 1]]
    assert type(reversed(x)) is torch.Tensor
    assert reversed(torch.tensor(3)).item() == 3
    a = torch.ones(2, requires_grad=True)
    (reversed(a) * torch.tensor([1.0, 2.0])).sum().backward()
    assert a.grad.tolist() == [2.0, 1.0]


def test_set_takes_a_storage_of_its_dtype():
    longs = torch.arange(4).storage()
    with pytest.raises(RuntimeError, match="set_: expected a storage of dtype float32"):
        torch.empty(0).set_(longs)
    with pytest.raises(RuntimeError, match="set_: expected a storage of dtype float32"):
        torch.empty(0).set_(longs, 0, (4,), (1,))
    with pytest.raises(RuntimeError, match="expected a storage of dtype float32"):
        torch.FloatTensor(longs)
    x = torch.empty(0, dtype=torch.int64).set_(longs, 1, (2,), (1,))
    assert x.tolist() == [1, 2]
    assert torch.empty(0).set_(longs.untyped()).numel() == 8
    floats = torch.ones(3).storage()
    assert torch.FloatTensor(floats).data_ptr() == floats.data_ptr()


def test_detach_in_place_after_saving_keeps_the_derivative():
    a = torch.tensor([3.0], requires_grad=True)
    b = a * 1
    y = b * b
    b.detach_()
    y.backward()
    assert a.grad.item() == 6.0 and not b.requires_grad
