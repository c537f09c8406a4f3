"""The names of ``flambeau.cuda`` for a build without GPU support.

Queries answer truthfully (no device, nothing allocated); hints that need no device (seeding,
emptying a cache) do nothing; whatever would need one raises and says so. Invariant: nothing here
pretends to run on a GPU. Must not know the core.
"""

from __future__ import annotations

import importlib
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, NoReturn

from flambeau._device_modules import OutOfMemoryError

__all__ = [
    "CUDAGraph",
    "Event",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "amp",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]

default_generators: tuple[Any, ...] = ()
has_half = False
has_magma = False


def _refuse(what: str) -> NoReturn:
    raise AssertionError(
        f"flambeau.cuda.{what}: this build of flambeau has no GPU support; "
        "flambeau.cuda.is_available() is False"
    )


# ---- queries -------------------------------------------------------------------------------


def is_available() -> bool:
    """Whether a GPU can be used: never in this build."""
    return False


def device_count() -> int:
    """Number of GPUs that can be used."""
    return 0


# As programs read it that guard forks: no device was ever touched.
_initialized = False


def _is_in_bad_fork() -> bool:
    """Whether this process is a fork of one that had started the GPU runtime."""
    return False


def is_initialized() -> bool:
    """Whether the GPU runtime was started."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current GPU computes in bfloat16."""
    return False


def is_tf32_supported() -> bool:
    """Whether the current GPU computes in TF32."""
    return False


def is_current_stream_capturing() -> bool:
    """Whether a graph is being captured."""
    return False


def get_arch_list() -> list[str]:
    """GPU architectures this build has kernels for."""
    return []


def memory_allocated(device: Any = None) -> int:
    """Bytes held by tensors on the GPU."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """Most bytes ever held by tensors on the GPU."""
    return 0


def memory_reserved(device: Any = None) -> int:
    """Bytes held by the allocator on the GPU."""
    return 0


def max_memory_reserved(device: Any = None) -> int:
    """Most bytes ever held by the allocator on the GPU."""
    return 0


def memory_stats(device: Any = None) -> OrderedDict[str, Any]:
    """Counters of the GPU allocator: none."""
    return OrderedDict()


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The counters as text."""
    return "flambeau.cuda: no GPU support in this build, nothing is allocated"


def get_rng_state_all() -> list[Any]:
    """Generator states of all GPUs."""
    return []


# ---- what may be said to no GPU at all -----------------------------------------------------


def manual_seed(seed: int) -> None:
    """Seed the current GPU's generator, where there is one."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs."""
    int(seed)


def seed() -> None:
    """Seed the current GPU's generator from entropy."""


def seed_all() -> None:
    """Seed the generators of all GPUs from entropy."""


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Set the generator states of all GPUs."""
    if list(new_states):
        _refuse("set_rng_state_all")


def empty_cache() -> None:
    """Give unused GPU memory back."""


def ipc_collect() -> None:
    """Free GPU memory that other processes no longer use."""


def reset_peak_memory_stats(device: Any = None) -> None:
    """Start the peak counters anew."""


def reset_max_memory_allocated(device: Any = None) -> None:
    """Start the peak counters anew."""


class device:
    """Make a GPU the current one for a block; -1 and None change nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None or device == -1 else device

    def __enter__(self) -> None:
        if self.idx != -1:
            _refuse("device")

    def __exit__(self, *exc: object) -> None:
        return None


class device_of(device):
    """Make the GPU of a tensor the current one; a tensor elsewhere changes nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if getattr(obj, "is_cuda", False) else -1)


class StreamContext:
    """Make a stream the current one for a block; None changes nothing."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            _refuse("stream")

    def __exit__(self, *exc: object) -> None:
        return None


def stream(stream: Any) -> StreamContext:
    """The context that makes ``stream`` the current one."""
    return StreamContext(stream)


# ---- what needs a GPU ----------------------------------------------------------------------


def init() -> None:
    """Start the GPU runtime."""
    _refuse("init")


def current_device() -> int:
    """Index of the current GPU."""
    _refuse("current_device")


def set_device(device: Any) -> None:
    """Make a GPU the current one."""
    _refuse("set_device")


def synchronize(device: Any = None) -> None:
    """Wait for all work on a GPU."""
    _refuse("synchronize")


def get_device_name(device: Any = None) -> str:
    """Name of a GPU."""
    _refuse("get_device_name")


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Compute capability of a GPU."""
    _refuse("get_device_capability")


def get_device_properties(device: Any = None) -> Any:
    """Properties of a GPU."""
    _refuse("get_device_properties")


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total memory of a GPU."""
    _refuse("mem_get_info")


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Limit this process's share of a GPU's memory."""
    _refuse("set_per_process_memory_fraction")


def get_rng_state(device: Any = "cuda") -> Any:
    """State of a GPU's generator."""
    _refuse("get_rng_state")


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Set the state of a GPU's generator."""
    _refuse("set_rng_state")


def initial_seed() -> int:
    """Seed of the current GPU's generator."""
    _refuse("initial_seed")


def current_stream(device: Any = None) -> Any:
    """The current stream of a GPU."""
    _refuse("current_stream")


def default_stream(device: Any = None) -> Any:
    """The default stream of a GPU."""
    _refuse("default_stream")


def set_stream(stream: Any) -> None:
    """Make a stream the current one."""
    _refuse("set_stream")


class _NeedsGPU:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"flambeau.cuda.{type(self).__name__}: this build of flambeau has no GPU support"
        )


class Stream(_NeedsGPU):
    """A queue of GPU work."""


class Event(_NeedsGPU):
    """A mark in a stream."""


class CUDAGraph(_NeedsGPU):
    """Captured GPU work."""


def __getattr__(name: str) -> Any:
    if name in ("amp", "random", "memory"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
