"""Switches of the libraries behind the operations, and what this build has of them.

Owns the namespaces ``cudnn``, ``cuda``, ``mkldnn``, ``mkl``, ``openmp``, ``mps``, ``cpu`` and
``opt_einsum``. Invariant: ``is_available`` tells the truth; a switch of a library that is absent
can be set and read, as portable programs do, and has no effect. What the build holds, the core
says through ``_build_info()``, a dict.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from flambeau import _C

from ._attention import SDPAParams, SDPBackend, allowed, sdpa_kernel, set_allowed
from ._flags import Backend, MatmulFlags

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]


def _build(key: str, default: Any = False) -> Any:
    return _C._build_info().get(key, default)


class _Cudnn(Backend):
    """cuDNN: never in this build."""

    _switches = {
        "enabled": True,
        "benchmark": False,
        "benchmark_limit": 10,
        "deterministic": False,
        "allow_tf32": True,
    }

    def version(self) -> int | None:
        """Version of the library, or None."""
        return None

    def is_acceptable(self, tensor: Any) -> bool:
        """Whether the library can take ``tensor``."""
        return False


class _Mkldnn(Backend):
    """oneDNN, for matrix products and convolutions on the CPU."""

    _switches = {"enabled": True, "deterministic": False, "allow_tf32": False}

    def is_available(self) -> bool:
        """Whether this build uses oneDNN, and finds it now."""
        return bool(_build("onednn"))


class _Mkl(Backend):
    """MKL: this project uses OpenBLAS or its own kernels in its place."""


class _Openmp(Backend):
    """OpenMP, for parallel loops."""

    def is_available(self) -> bool:
        """Whether this build uses OpenMP."""
        return bool(_build("openmp"))


class _Mps(Backend):
    """Apple's GPUs: never in this build."""

    def is_built(self) -> bool:
        """Whether this build knows the device at all."""
        return False


class _Cuda(Backend):
    """NVIDIA's GPUs: never in this build."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__dict__["matmul"] = MatmulFlags("cuda.matmul")
        self.__dict__.update(SDPAParams=SDPAParams, SDPBackend=SDPBackend)

    def is_built(self) -> bool:
        """Whether this build knows the device at all."""
        return False

    def flash_sdp_enabled(self) -> bool:
        """Whether this thread allows the one-kernel implementation of attention."""
        return SDPBackend.FLASH_ATTENTION in allowed()

    def enable_flash_sdp(self, enabled: bool) -> None:
        """Allow the one-kernel implementation of attention in this thread, or forbid it."""
        set_allowed(SDPBackend.FLASH_ATTENTION, enabled)

    def mem_efficient_sdp_enabled(self) -> bool:
        """Whether this thread allows memory-efficient attention, which no CPU has."""
        return SDPBackend.EFFICIENT_ATTENTION in allowed()

    def enable_mem_efficient_sdp(self, enabled: bool) -> None:
        """Allow memory-efficient attention in this thread, or forbid it."""
        set_allowed(SDPBackend.EFFICIENT_ATTENTION, enabled)

    def math_sdp_enabled(self) -> bool:
        """Whether this thread allows attention in plain operations."""
        return SDPBackend.MATH in allowed()

    def enable_math_sdp(self, enabled: bool) -> None:
        """Allow attention in plain operations in this thread, or forbid it."""
        set_allowed(SDPBackend.MATH, enabled)

    def cudnn_sdp_enabled(self) -> bool:
        """Whether this thread allows cuDNN's attention, which no CPU has."""
        return SDPBackend.CUDNN_ATTENTION in allowed()

    def enable_cudnn_sdp(self, enabled: bool) -> None:
        """Allow cuDNN's attention in this thread, or forbid it."""
        set_allowed(SDPBackend.CUDNN_ATTENTION, enabled)

    def sdp_kernel(
        self,
        enable_flash: bool = True,
        enable_math: bool = True,
        enable_mem_efficient: bool = True,
        enable_cudnn: bool = True,
    ) -> sdpa_kernel:
        """The older form of `torch.nn.attention.sdpa_kernel`: a context manager."""
        warnings.warn(
            "torch.backends.cuda.sdp_kernel: use torch.nn.attention.sdpa_kernel, which replaces it",
            FutureWarning,
            stacklevel=2,
        )
        flags = {
            SDPBackend.FLASH_ATTENTION: enable_flash,
            SDPBackend.EFFICIENT_ATTENTION: enable_mem_efficient,
            SDPBackend.MATH: enable_math,
            SDPBackend.CUDNN_ATTENTION: enable_cudnn,
        }
        return sdpa_kernel([b for b, enabled in flags.items() if enabled])

    def is_flash_attention_available(self) -> bool:
        """Whether this build has flash attention for GPUs."""
        return False

    def can_use_flash_attention(self, params: SDPAParams, debug: bool = False) -> bool:
        """Whether a GPU's flash attention could do a call."""
        return False

    def can_use_efficient_attention(self, params: SDPAParams, debug: bool = False) -> bool:
        """Whether a GPU's memory-efficient attention could do a call."""
        return False

    def can_use_cudnn_attention(self, params: SDPAParams, debug: bool = False) -> bool:
        """Whether cuDNN's attention could do a call."""
        return False


class _Cpu(Backend):
    """The CPU itself."""

    def is_available(self) -> bool:
        """Always."""
        return True

    def get_cpu_capability(self) -> str:
        """The instruction set that kernels were chosen for, e.g. ``"AVX512"``."""
        return {"v3": "AVX2", "v4": "AVX512"}.get(_build("isa"), "DEFAULT")


class _OptEinsum(Backend):
    """Order of contraction in ``einsum``."""

    _switches = {"enabled": False, "strategy": None}


cudnn = _Cudnn("cudnn")
mkldnn = _Mkldnn("mkldnn")
mkl = _Mkl("mkl")
openmp = _Openmp("openmp")
mps = _Mps("mps")
cuda = _Cuda("cuda")
cpu = _Cpu("cpu")
opt_einsum = _OptEinsum("opt_einsum")

for _module in (cudnn, mkldnn, mkl, openmp, mps, cuda, cpu, opt_einsum):
    sys.modules[_module.__name__] = _module
