"""Names that packages use beside tensors: modules of devices, result types, weak dictionaries."""

from __future__ import annotations

import copy
import gc
import pickle

import pytest

import flambeau as torch


def test_result_types_are_those_of_results() -> None:
    x = torch.eye(2)
    assert isinstance(torch.max(x, 0), torch.return_types.max)
    assert isinstance(x.sort(), torch.return_types.sort)
    assert isinstance(torch.linalg.svd(x), torch.return_types.linalg_svd)
    assert not isinstance(torch.min(x, 0), torch.return_types.max)
    for name in dir(torch.return_types):
        if name in torch.return_types._RESULTS:
            assert getattr(torch.return_types, name).__name__.rpartition(".")[2] == name
    with pytest.raises(AttributeError, match="no attribute 'minimum'"):
        torch.return_types.minimum  # noqa: B018
    again = pickle.loads(pickle.dumps(torch.topk(x, 1)))
    assert type(again) is torch.return_types.topk and again.values.tolist() == [[1.0], [1.0]]
    assert type(copy.deepcopy(torch.mode(x, 0))) is torch.return_types.mode


def test_device_modules() -> None:
    assert torch.get_device_module() is torch.get_device_module("cpu") is torch.cpu
    assert torch.get_device_module(torch.device("cuda", 0)) is torch.cuda
    with pytest.raises(RuntimeError, match="a kind of device that has a module, got 'meta'"):
        torch.get_device_module("meta")
    assert torch.cpu.device_count() == 1 and torch.cpu.current_device() == "cpu"
    torch.cpu.synchronize()
    torch.cpu.set_device("cpu")
    with pytest.raises(ValueError, match="a device of the CPU, got 'cuda'"):
        torch.cpu.set_device("cuda")
    stream = torch.cpu.Stream()
    with torch.cpu.stream(stream):
        assert torch.cpu.current_stream() is stream
        assert stream.record_event().query()
    assert torch.cpu.current_stream() is not stream
    with pytest.warns(FutureWarning, match="amp.autocast"), torch.cpu.amp.autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16


def test_errors_of_devices_can_be_named() -> None:
    assert torch.cuda.OutOfMemoryError is torch.OutOfMemoryError
    assert issubclass(torch.OutOfMemoryError, RuntimeError)
    with pytest.raises(RuntimeError, match="not enough memory"):
        try:
            torch.empty(1 << 44)
        except torch.cuda.OutOfMemoryError:
            pytest.fail("it is the CPU's memory")


def test_autocast_of_gpus_by_its_former_names() -> None:
    torch.set_autocast_gpu_dtype(torch.bfloat16)  # of a device that there is not
    assert torch.get_autocast_gpu_dtype() == torch.get_autocast_dtype("cuda") == torch.float16


def test_weak_dictionaries_go_by_identity() -> None:
    weak = torch.utils.weak
    x, y = torch.ones(2), torch.ones(2)
    seen = weak.WeakTensorKeyDictionary({x: 1})
    seen[y] = 2
    seen[x] = 3
    assert seen[x] == 3 and seen[y] == 2 and len(seen) == 2 and set(seen.values()) == {2, 3}
    ref = weak.WeakIdRef(x)
    assert ref == weak.WeakIdRef(x) and ref != weak.WeakIdRef(y) and ref() is x
    del x
    gc.collect()
    assert len(seen) == 1 and list(seen)[0] is y and ref() is None
    del seen[y]
    with pytest.raises(KeyError):
        seen[y]
    assert 3 not in seen


def test_contexts_of_programs_decorate() -> None:
    from flambeau.utils._contextlib import (
        _DecoratorContextManager,
        _NoParamDecoratorContextManager,
    )

    log: list[str] = []

    class Named(_DecoratorContextManager):
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> None:
            log.append(f"+{self.name}")

        def __exit__(self, *error: object) -> None:
            log.append(f"-{self.name}")

        def clone(self) -> Named:
            return Named(self.name)

    class Plain(_NoParamDecoratorContextManager):
        def __enter__(self) -> None:
            log.append("+")

        def __exit__(self, *error: object) -> None:
            log.append("-")

    @Named("a")
    def f(x: int) -> int:
        log.append("f")
        return x

    @Plain
    def g() -> None:
        log.append("g")

    assert f(3) == 3
    g()
    with Plain():
        log.append("in")
    assert log == ["+a", "f", "-a", "+", "g", "-", "+", "in", "-"]


def test_helpers_of_optimisers_and_shapes() -> None:
    from flambeau.optim.optimizer import (
        _default_to_fused_or_foreach,
        _get_capturable_supported_devices,
    )

    params = [torch.nn.Parameter(torch.ones(2))]
    assert _default_to_fused_or_foreach(params, differentiable=False) == (False, True)
    assert _default_to_fused_or_foreach(params, differentiable=True) == (False, False)
    assert _default_to_fused_or_foreach(params, False, use_fused=True) == (True, False)
    whole = [torch.ones(2, dtype=torch.int64)]
    assert _default_to_fused_or_foreach(whole, False, use_fused=True) == (False, True)
    assert "cuda" in _get_capturable_supported_devices(supports_xla=False)
    assert torch._shape_as_tensor(torch.ones(2, 3)).tolist() == [2, 3]
    assert torch.random.default_generator is torch.default_generator
    assert torch.overrides.get_default_nowrap_functions() == set()
    assert not isinstance(True, torch.SymBool)

    @torch._disable_dynamo
    def plain(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    assert plain(torch.ones(1)).item() == 2.0
