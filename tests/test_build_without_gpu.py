"""The cuda and backends namespaces of a build without GPU; seeds and forked generators."""

import importlib

import flambeau.backends.cudnn as cudnn
import pytest

import flambeau as fb
from flambeau import backends
from flambeau import random as rng

cuda = importlib.import_module("flambeau.cuda")

needs_no_gpu = pytest.mark.skipif(cuda.is_available(), reason="there is a GPU")


@needs_no_gpu
def test_queries_are_truthful():
    assert cuda.device_count() == 0 and not cuda.is_initialized()
    assert cuda.memory_allocated() == cuda.max_memory_reserved() == 0
    assert not cuda.is_bf16_supported() and cuda.get_arch_list() == []
    assert all(hasattr(cuda, name) for name in cuda.__all__)


@needs_no_gpu
def test_hints_are_taken_silently():
    cuda.manual_seed_all(3)
    cuda.empty_cache()
    with cuda.device(-1), cuda.stream(None):
        pass


@needs_no_gpu
@pytest.mark.parametrize("name", ["current_device", "synchronize", "get_device_name", "init"])
def test_what_needs_a_gpu_says_so(name):
    with pytest.raises(AssertionError, match=f"cuda.{name}: .* no GPU support"):
        getattr(cuda, name)()


@needs_no_gpu
def test_objects_that_need_a_gpu():
    with pytest.raises(RuntimeError, match="Stream: .* no GPU support"):
        cuda.Stream()
    with pytest.raises(AssertionError, match="no GPU support"), cuda.device(0):
        pass


def test_switches_can_be_set_and_restored():
    assert cudnn is backends.cudnn and cudnn.enabled
    with cudnn.flags(enabled=False, benchmark=True):
        assert not cudnn.enabled and cudnn.benchmark
    assert cudnn.enabled and not cudnn.benchmark
    with pytest.raises(AttributeError, match="cudnn has no switch 'benchmrak'"):
        cudnn.benchmrak = True
    backends.cuda.matmul.allow_tf32 = False
    assert not backends.mps.is_available() and not backends.cuda.is_built()
    assert isinstance(backends.cpu.get_cpu_capability(), str)


def test_seeds_repeat_and_forks_leave_no_trace():
    rng.manual_seed(5)
    first = fb.rand(3)
    rng.manual_seed(5)
    with rng.fork_rng(devices=[]):
        inside = fb.rand(3)
        rng.manual_seed(99)
    assert fb.equal(inside, first) and fb.equal(fb.rand(3), first)
    assert rng.initial_seed() == 5
    state = rng.get_rng_state()
    a = fb.rand(2)
    rng.set_rng_state(state)
    assert fb.equal(fb.rand(2), a)
    with pytest.raises(ValueError), rng.fork_rng(devices=[]):
        fb.rand(2)
        raise ValueError
    assert isinstance(rng.seed(), int)
