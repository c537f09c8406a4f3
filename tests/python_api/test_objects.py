"""The Python object of a tensor: identity, subclasses, attributes, cycles, leaks, overrides."""

import copy
import gc
import pickle
import sys
import weakref

import pytest

import flambeau as fb


class Marked(fb.Tensor):
    pass


def make_marked(value=1.0):
    x = fb.Tensor._make_subclass(Marked, fb.tensor([value]))
    x.mark = "kept"
    return x


def test_identity_survives_a_trip_through_cpp():
    x = fb.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad is x.grad
    y = fb.empty(3)
    assert fb.add(x.detach(), 1, out=y) is y
    assert y.add_(1) is y


def test_attributes_survive_while_cpp_holds_the_tensor():
    x = fb.ones(2, requires_grad=True)
    x.grad = fb.zeros(2)
    x.grad.label = "mine"
    gc.collect()
    assert x.grad.label == "mine"


def test_subclass_survives_while_cpp_holds_the_tensor():
    x = fb.ones(1, requires_grad=True)
    x.grad = make_marked()
    gc.collect()
    assert type(x.grad) is Marked
    assert x.grad.mark == "kept"
    x.grad = None


def test_results_of_subclasses():
    x = make_marked()
    assert type(x + 1) is Marked
    assert type(1 - x) is Marked
    assert type(x[0]) is Marked
    assert type(fb.relu(x)) is Marked
    assert type(fb.cat([x, x])) is Marked
    assert type(x.as_subclass(fb.Tensor)) is fb.Tensor
    with pytest.raises(TypeError, match="does not inherit from Tensor"):
        x.as_subclass(int)


def test_parameter_gives_plain_results():
    p = fb.nn.Parameter(fb.ones(2))
    assert type(p) is fb.nn.Parameter
    assert p.requires_grad
    assert type(p + 1) is fb.Tensor


def test_override_by_a_foreign_class():
    class Foreign:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, types, args, kwargs

    f = Foreign()
    x = fb.ones(1)
    name, types, args, kwargs = fb.add(x, f, alpha=2)
    assert name == "add"
    assert types == (Foreign,)
    assert args[0] is x
    assert args[1] is f
    assert kwargs == {"alpha": 2}
    assert (x + f)[0] == "add"
    assert fb.cat([x, f])[0] == "cat"


def test_override_sees_the_public_function():
    class Seen(fb.Tensor):
        calls = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.calls.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = fb.ones(1).as_subclass(Seen)
    y = fb.relu(x)
    assert Seen.calls == [fb.relu]
    assert type(y) is Seen


def test_weak_references_and_attributes():
    x = fb.ones(1)
    r = weakref.ref(x)
    x.note = 3
    assert r() is x
    assert x.note == 3
    del x
    assert r() is None


def test_a_cycle_through_attributes_is_collected():
    x = fb.ones(1)
    x.me = x
    r = weakref.ref(x)
    del x
    gc.collect()
    assert r() is None


def test_a_cycle_through_a_hook_is_collected():
    x = fb.ones(1, requires_grad=True)
    x.register_hook(lambda g, x=x: None)
    r = weakref.ref(x)
    del x
    gc.collect()
    assert r() is None


def test_references_do_not_leak():
    x, y, out = fb.ones(2, 2), fb.ones(2, 2), fb.empty(2, 2)
    key, two = (slice(0, 1), 0), 2.0

    def calls():
        x + y
        x * two
        two - x
        fb.add(x, y, out=out)
        x[key]
        x[0] = 1.0
        assert x.view(2, 2, 1).shape
        x.sum(0, keepdim=True)
        x.tolist()
        x.numpy()
        fb.tensor([1.0, 2.0])
        fb.cat([x, y])
        for bad in ("a", [1]):
            with pytest.raises(TypeError):
                x.add(bad)

    calls()
    objects = [x, y, out, key, two, fb.float32, fb.Tensor, fb.Size]
    before = [sys.getrefcount(o) for o in objects]
    for _ in range(200):
        calls()
    gc.collect()
    after = [sys.getrefcount(o) for o in objects]
    assert all(abs(a - b) < 50 for a, b in zip(after, before, strict=True))
    live = fb.memory_stats()["live_bytes"]
    for _ in range(200):
        calls()
    gc.collect()
    assert fb.memory_stats()["live_bytes"] <= live + 4096


def test_pickle_and_deepcopy():
    x = fb.arange(6).view(2, 3)
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()
    y = copy.deepcopy(x)
    assert y.tolist() == x.tolist()
    assert y.untyped_storage() != x.untyped_storage()
    for small in (fb.float32, fb.device("cpu"), fb.Size([1, 2]), fb.strided, fb.channels_last):
        again = pickle.loads(pickle.dumps(small))
        assert again == small
        assert type(again) is type(small)
    g = fb.Generator().manual_seed(5)
    h = pickle.loads(pickle.dumps(g))
    assert fb.equal(h.get_state(), g.get_state())


def test_small_types_print_as_in_pytorch():
    assert repr(fb.float32) == "torch.float32"
    assert repr(fb.device("cuda", 1)) == "device(type='cuda', index=1)"
    assert str(fb.device("cuda:1")) == "cuda:1"
    assert repr(fb.Size([2, 3])) == "torch.Size([2, 3])"
    assert repr(fb.strided) == "torch.strided"
    assert repr(fb.channels_last) == "torch.channels_last"
    assert repr(fb.finfo(fb.bfloat16)).startswith("finfo(resolution=0.01, min=-3.38953e+38")
    assert repr(fb.iinfo(fb.int8)) == "iinfo(min=-128, max=127, dtype=int8)"


def test_size_is_a_tuple():
    s = fb.ones(2, 3).shape
    assert s == (2, 3)
    assert s.numel() == 6
    assert type(s[:1]) is fb.Size
    assert type(s + (4,)) is fb.Size
    assert type(s * 2) is fb.Size
    assert hash(s) == hash((2, 3))
    with pytest.raises(TypeError, match="item 0 is 'str'"):
        fb.Size(["a"])


def test_size_joins_tuples_on_either_side():
    size = fb.Size([2, 3])
    for found, expected in (
        (size + (1,), (2, 3, 1)),  # noqa: RUF005
        ((1,) + size, (1, 2, 3)),  # noqa: RUF005
        (size + size, (2, 3, 2, 3)),
    ):
        assert type(found) is fb.Size
        assert found == expected
    for other in ([1], 1, None):
        with pytest.raises(TypeError):
            size + other
        with pytest.raises(TypeError):
            other + size
