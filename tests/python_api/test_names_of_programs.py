"""Names that programs stopped at: what each does."""

import pytest

import flambeau as torch
from flambeau import nn


def test_constants():
    assert torch.legacy_contiguous_format is torch.contiguous_format
    assert torch.cuda._initialized is False and torch.cuda._is_in_bad_fork() is False
    assert torch._C.has_lapack is True and torch._C.has_mkl is False
    assert torch._C.has_openmp == torch.backends.openmp.is_available()
    for space in (torch.special, torch.fft):
        assert all(callable(getattr(space, name)) for name in space.__all__)
    assert "expit" in torch.special.__all__ and "rfft" in torch.fft.__all__


def test_check_of_all_entries():
    torch._check_tensor_all_with(KeyError, torch.tensor([True, True]))
    with pytest.raises(KeyError, match="bad"):
        torch._check_tensor_all_with(KeyError, torch.tensor([True, False]), lambda: "bad")
    with pytest.raises(TypeError, match="must be a tensor"):
        torch._check_tensor_all_with(KeyError, True)


def test_modules_side_by_side():
    modules = [nn.Linear(2, 2), nn.Linear(2, 3)]
    x = torch.rand(4, 2)
    got = nn.parallel.parallel_apply(modules, [x, (x,)])
    assert torch.equal(got[0], modules[0](x)) and torch.equal(got[1], modules[1](x))
    bilinear = nn.Bilinear(2, 2, 1)
    (got,) = nn.parallel.parallel_apply([bilinear], [(x,)], [{"input2": x}], ["cpu"])
    assert torch.equal(got, bilinear(x, x))
    with pytest.raises(ValueError, match="expected inputs of the length of modules, 2, got 1"):
        nn.parallel.parallel_apply(modules, [x])
    with pytest.raises(RuntimeError, match="no GPU"):
        nn.parallel.parallel_apply(modules[:1], [x], devices=["cuda:0"])


def test_batch_norms_without_running_statistics():
    net = nn.Sequential(nn.Conv1d(1, 2, 1), nn.BatchNorm1d(2), nn.Sequential(nn.BatchNorm1d(2)))
    assert torch.func.replace_all_batch_norm_modules_(net) is net
    norms = [m for m in net.modules() if isinstance(m, nn.BatchNorm1d)]
    assert all(m.running_mean is None and not m.track_running_stats for m in norms)
    x = torch.randn(3, 4, 1, 5)
    per_sample = torch.func.vmap(net)(x)
    assert torch.allclose(per_sample, torch.stack([net(each) for each in x]), atol=1e-5)


def test_counting_compilations():
    counter = torch._dynamo.testing.CompileCounter()

    @torch._dynamo.optimize(counter, nopython=True)
    def f(x):
        return (x + 1) * 2

    assert f(torch.ones(2)).tolist() == [4, 4] and f(torch.zeros(2)).tolist() == [2, 2]
    assert (counter.frame_count, counter.op_count) == (1, 2)
    counter.clear()
    assert counter.frame_count == 0
    other = torch._dynamo.testing.CompileCounterWithBackend("inductor")
    assert torch.compile(lambda x: x - 1, backend=other)(torch.ones(1)).item() == 0
    assert other.frame_count == 1


def test_layouts_of_what_is_resized():
    last, last3 = torch.channels_last, torch.channels_last_3d
    x = torch.empty(0).resize_(2, 3, 4, 5, memory_format=last)
    assert x.is_contiguous(memory_format=last) and x.stride() == (60, 1, 15, 3)
    assert x.resize_(2, 3, 4, 5, memory_format=torch.contiguous_format).is_contiguous()
    y = torch.empty(0).resize_((1, 2, 3, 4, 5), memory_format=last3)
    assert y.is_contiguous(memory_format=last3)
    z = torch.empty(0)
    assert z.resize_as_(x, memory_format=last).is_contiguous(memory_format=last)
    like = torch.empty(2, 3, 4, 5).contiguous(memory_format=last)
    assert torch.empty(0).resize_as_(like).is_contiguous()
    kept = torch.empty(0).resize_as_(like, memory_format=torch.preserve_format)
    assert kept.stride() == like.stride()
    for call in (
        lambda: z.resize_(2, 3, memory_format=last),
        lambda: z.resize_as_(torch.empty(2, 3), memory_format=last),
    ):
        with pytest.raises(
            RuntimeError, match="required rank 4 tensor to use channels_last format"
        ):
            call()
    with pytest.raises(RuntimeError, match="Unsupported memory format Preserve"):
        z.resize_(2, memory_format=torch.preserve_format)


def test_what_is_resized_is_filled_where_results_repeat():
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.ones(2).resize_(5)[2:].isnan().all()
        assert torch.ones(2).resize_as_(torch.ones(2, 2))[1].isnan().all()
        top = torch.iinfo(torch.int32).max
        assert torch.ones(1, dtype=torch.int32).resize_(3).tolist() == [1, top, top]
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_factors_of_addr(name):
    m, v = torch.ones(2, 2), torch.ones(2)
    for kind in (torch.float32, torch.int32):
        with pytest.raises(RuntimeError, match=f"Boolean {name} only supported for Boolean"):
            torch.addr(m.to(kind), v.to(kind), v.to(kind), **{name: True})
    for factor in (2.5, 1j):
        for kind in (torch.int32, torch.bool):
            with pytest.raises(RuntimeError, match=f"{name} must not be a floating point"):
                torch.addr(m.to(kind), v.to(kind), v.to(kind), **{name: factor})
    assert torch.addr(m.bool(), v.bool(), v.bool(), **{name: True}).all()


def test_modules_are_not_copied_by_to():
    for call in (
        lambda m: m.to("cpu", copy=True),
        lambda m: m.to("cpu", torch.float32, False, True),
        lambda m: m.to(torch.ones(1), copy=True),
    ):
        with pytest.raises(RuntimeError, match=r"\.to\(\) does not accept copy argument"):
            call(nn.Linear(1, 1))
    assert nn.Linear(1, 1).to("cpu", copy=False) is not None
