"""Meta tensors as objects: what has no values is refused, what needs none works; devices of
factories, modules, copies and files.
"""

import copy
import io
import pickle
import threading

import pytest

import flambeau as torch
from flambeau import nn


@pytest.fixture
def x():
    return torch.empty(2, 3, device="meta")


def test_has_no_memory(x):
    assert x.data_ptr() == 0 and x.untyped_storage().data_ptr() == 0
    assert x.untyped_storage().nbytes() == 24 and x.untyped_storage().device.type == "meta"
    assert x.is_meta and not x.is_cpu and x.device == torch.device("meta")
    assert x[1:].storage_offset() == 3 and x.t().stride() == (1, 3)


def test_printing(x):
    assert repr(x) == "tensor(..., device='meta', size=(2, 3))"
    assert "dtype=torch.int64" in str(x.long())
    assert f"{x.sum()}" == "tensor(..., device='meta', size=())"


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.sum().item(), lambda x: bool(x.sum()), lambda x: float(x.sum()),
        lambda x: int(x.sum()), lambda x: x.tolist(), lambda x: x.numpy(), lambda x: x.nonzero(),
        lambda x: x.unique(), lambda x: x[x > 0], lambda x: torch.equal(x, x), lambda x: x.cpu(),
        lambda x: x.to("cpu"), lambda x: torch.zeros(2, 3).copy_(x), lambda x: 1.0 in x,
        lambda x: memoryview(x.untyped_storage()), lambda x: x.untyped_storage()[0],
        lambda x: torch.zeros(2, 3).__setitem__(0, x[0]), lambda x: x.untyped_storage().cpu(),
        lambda x: torch.full((2,), x.sum()), lambda x: range(3)[x.sum().long()],
        lambda x: torch.arange(3)[x.sum().long()], lambda x: torch.set_rng_state(x.byte()),
        lambda x: torch.zeros(3).fill_(x.sum()), lambda x: torch.tensor([1.0, x.sum()]),
        lambda x: x.__dlpack__(),
    ],
)  # fmt: skip
def test_values_are_refused(x, read):
    with pytest.raises((RuntimeError, NotImplementedError, TypeError, BufferError, ValueError)):
        read(x)


def test_copies(x):
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        x.to("cpu")
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        torch.zeros(2, 3).copy_(x)
    assert x.copy_(torch.ones(3)) is x
    y = torch.ones(3, 2).t().to("meta", torch.float64)
    assert y.is_meta and y.dtype == torch.float64 and y.stride() == (1, 2)
    assert x.to("meta") is x and x.to(torch.ones(1).to("meta")) is x


def test_gradients(x):
    w = torch.empty(3, 4, device="meta", requires_grad=True)
    loss = (x @ w).relu().mean()
    loss.backward()
    assert w.grad.is_meta and w.grad.shape == (3, 4)
    with torch.no_grad():
        w -= 0.1 * w.grad
    v = torch.ones(3, requires_grad=True)
    assert (v.to("meta") * 2).is_meta
    h = (w * 2)[1:]
    h.mul_(3)
    h.sum().backward()


def test_factories():
    for make in (
        lambda **k: torch.zeros(2, **k), lambda **k: torch.arange(2, **k),
        lambda **k: torch.eye(2, **k),
        lambda **k: torch.rand(2, **k), lambda **k: torch.full((2,), 3, **k),
        lambda **k: torch.tensor([1, 2], **k), lambda **k: torch.randperm(3, **k),
        lambda **k: torch.linspace(0, 1, 3, **k), lambda **k: torch.as_tensor([1], **k),
        lambda **k: torch.hann_window(3, **k), lambda **k: torch.scalar_tensor(1, **k),
    ):  # fmt: skip
        want, got = make(), make(device="meta")
        assert got.is_meta and (got.shape, got.dtype) == (want.shape, want.dtype)
        with torch.device("meta"):
            assert make().is_meta and make(device="cpu").is_cpu
        assert make().is_cpu


def test_like_factories(x):
    for f in (torch.zeros_like, torch.ones_like, torch.empty_like, torch.rand_like):
        assert f(x).is_meta and f(torch.ones(2), device="meta").is_meta
        assert f(x, device="cpu").is_cpu
    for y in (
        x.new_zeros(2),
        x.new_ones(2),
        x.new_full((2,), 1),
        x.new_empty(2),
        x.new_tensor([1]),
    ):
        assert y.is_meta
    assert x.new_zeros(2, device="cpu").is_cpu and x.new(3).is_meta


def test_default_device():
    assert torch.get_default_device() == torch.device("cpu")
    torch.set_default_device("meta")
    try:
        assert torch.get_default_device() == torch.device("meta")
        assert torch.ones(2).is_meta and nn.Linear(2, 3).weight.is_meta
        with torch.device("cpu"), torch.device("meta"), torch.device("cpu"):
            assert torch.ones(2).is_cpu
        assert torch.ones(2).is_meta
        seen = []
        thread = threading.Thread(target=lambda: seen.append(torch.ones(1).device.type))
        thread.start()
        thread.join()
        assert seen == ["cpu"]  # each thread has its own
    finally:
        torch.set_default_device(None)
    assert torch.ones(2).is_cpu

    @torch.device("meta")
    def make():
        return torch.ones(2)

    assert make().is_meta and make.__name__ == "make"


def test_modules():
    layer = nn.Sequential(nn.Linear(3, 2, device="meta"), nn.BatchNorm1d(2, device="meta"))
    assert layer(torch.empty(4, 3, device="meta")).shape == (4, 2)
    with pytest.raises(NotImplementedError, match="to_empty"):
        layer.to("cpu")
    state = {k: torch.ones(v.shape, dtype=v.dtype) for k, v in layer.state_dict().items()}
    layer.load_state_dict(state, assign=True)
    assert not any(p.is_meta for p in layer.parameters())
    skipped = nn.utils.skip_init(nn.Linear, 3, 2)
    assert skipped(torch.ones(1, 3)).shape == (1, 2)
    model = nn.Linear(2, 2).to("meta").to_empty(device="cpu")
    assert model.weight.is_cpu and isinstance(model.weight, nn.Parameter)


def test_copies_of_objects(x):
    p = nn.Parameter(x.t())
    for made in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert isinstance(made, nn.Parameter) and made.is_meta
        assert made.shape == (3, 2) and made.stride() == (1, 3) and made.requires_grad
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    assert torch.load(file)["x"].is_meta
    assert x.untyped_storage().clone().device.type == "meta"


def test_storage():
    s = torch.UntypedStorage(10**15, device="meta")
    assert s.nbytes() == 10**15 and s.data_ptr() == 0 and "device=meta" in repr(s)
    with pytest.raises(NotImplementedError, match="Not available for 'meta' device type"):
        s[0] = 1
    s.resize_(7)
    assert len(s.fill_(1).clone()) == 7
