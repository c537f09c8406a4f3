"""Default devices and dtypes: compiled factories follow them as plain ones do, and what was
compiled under another default is not used. Metadata of plain calls is the reference."""

from __future__ import annotations

import pytest

import flambeau as torch

BACK_ENDS = ("eager", "aot_eager", "inductor")


@pytest.fixture(autouse=True)
def _fresh():
    torch.compiler.reset()
    yield
    torch.set_default_device(None)
    torch.set_default_dtype(torch.float32)


def factories(x):
    return (
        torch.zeros(3),
        torch.ones(2, 2),
        torch.arange(3),
        torch.tensor([1.0, 2.0]),
        torch.as_tensor([1, 2]),
        torch.scalar_tensor(1.0),
        torch.empty(2),
        torch.rand(2),
        torch.eye(2),
        torch.linspace(0, 1, 3),
        torch.full((2,), 1.0),
        torch.randint(3, (2,)),
        torch.tril_indices(2, 2),
        torch.hann_window(3),
        torch.zeros_like(x),
        x.new_zeros(2),
        x.new_tensor([1.0]),
        torch.zeros(2, device="cpu"),
    )


def facts(result):
    return [(t.device.type, t.dtype, tuple(t.shape)) for t in result]


@pytest.mark.parametrize("backend", BACK_ENDS)
def test_the_default_device_of_the_call(backend):
    compiled = torch.compile(factories, backend=backend, fullgraph=True)
    x = torch.ones(2)
    for _ in range(2):
        assert facts(compiled(x)) == facts(factories(x))
        with torch.device("meta"):
            assert facts(compiled(x)) == facts(factories(x))
    assert len(compiled._flambeau_config.parts) == 2


@pytest.mark.parametrize("backend", BACK_ENDS)
def test_the_default_dtype_of_the_call(backend):
    compiled = torch.compile(factories, backend=backend, fullgraph=True)
    x = torch.ones(2)
    for dtype in (torch.float32, torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        assert facts(compiled(x)) == facts(factories(x))


def nested(x):
    a = torch.zeros(1)
    with torch.device("meta"):
        b = torch.zeros(1)
        with torch.device("cpu"):
            c = torch.zeros(1)
        d = torch.zeros(1)
    return a, b, c, d, torch.zeros(1), x + 1


@pytest.mark.parametrize("outer", ["cpu", "meta"])
@pytest.mark.parametrize("backend", BACK_ENDS)
def test_devices_entered_inside(backend, outer):
    compiled = torch.compile(nested, backend=backend, fullgraph=True)
    with torch.device(outer):
        x = torch.ones(2, device="cpu")
        assert facts(compiled(x)) == facts(nested(x))
        assert torch.get_default_device().type == outer
    assert torch.get_default_device().type == "cpu"


def broken(x):
    with torch.device("meta"):
        a = torch.zeros(1)
        torch._dynamo.graph_break()
        b = torch.zeros(1)
    return a, b, torch.zeros(1), x * 2


@pytest.mark.parametrize("backend", BACK_ENDS)
def test_a_graph_that_ends_inside(backend):
    compiled = torch.compile(broken, backend=backend)
    x = torch.ones(2)
    for _ in range(2):
        assert facts(compiled(x)) == facts(broken(x))
        assert torch.get_default_device().type == "cpu"


def test_an_exception_inside():
    @torch.compile(backend="eager")
    def raises(x):
        try:
            with torch.device("meta"):
                raise ValueError("inside")
        except ValueError:
            return torch.zeros(1), x + 1

    assert facts(raises(torch.ones(2)))[0][0] == "cpu"
    assert torch.get_default_device().type == "cpu"


def test_moves_between_devices():
    def moved(x):
        return x.to("meta"), x.to(device="meta", dtype=torch.float64), torch.ones(1, device="meta")

    x = torch.ones(2)
    for backend in BACK_ENDS:
        compiled = torch.compile(moved, backend=backend, fullgraph=True)
        assert facts(compiled(x)) == facts(moved(x))


@pytest.mark.parametrize("backend", BACK_ENDS)
def test_backward_under_another_default(backend):
    x = torch.arange(3.0).requires_grad_()
    loss = torch.compile(lambda x: (x.relu() * x.sin()).sum(), backend=backend)(x)
    with torch.device("meta"):
        loss.backward()
    assert torch.allclose(x.grad, (x.sin() + x * x.cos()).detach())


def test_the_default_can_be_asked_for():
    f = torch.compile(lambda x: x.to(torch.get_default_device()), backend="eager", fullgraph=True)
    assert f(torch.ones(1)).device.type == "cpu"
    with torch.device("meta"):
        assert f(torch.ones(1, device="cpu")).device.type == "meta"


def test_the_reason_of_a_recompile():
    f = torch.compile(lambda x: x + torch.zeros(1), backend="eager")
    f(torch.ones(1))
    torch.set_default_device("meta")
    with pytest.raises(RuntimeError):
        f(torch.ones(1, device="cpu"))
    torch.set_default_device(None)
    torch.set_default_dtype(torch.float64)
    f(torch.ones(1))
    assert "default device or default dtype" in f._flambeau_config.parts[-1].because
