"""Switches of the libraries behind the operations, and what this build has of them.

Owns the namespaces ``cudnn``, ``cuda``, ``mkldnn``, ``mkl``, ``openmp``, ``mps``, ``cpu`` and
``opt_einsum``. Invariant: ``is_available`` tells the truth; a switch of a library that is absent
can be set and read, as portable programs do, and has no effect. What the build holds, the core
says through ``_build_info()``, a dict.
"""

from __future__ import annotations

import sys
from typing import Any

from flambeau import _C

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

    _switches = {
        "flash_sdp": True,
        "mem_efficient_sdp": True,
        "math_sdp": True,
        "cudnn_sdp": True,
    }

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__dict__["matmul"] = MatmulFlags("cuda.matmul")

    def is_built(self) -> bool:
        """Whether this build knows the device at all."""
        return False

    def flash_sdp_enabled(self) -> bool:
        """The switch of flash attention."""
        return self.flash_sdp

    def enable_flash_sdp(self, enabled: bool) -> None:
        """Set the switch of flash attention."""
        self.flash_sdp = enabled

    def mem_efficient_sdp_enabled(self) -> bool:
        """The switch of memory-efficient attention."""
        return self.mem_efficient_sdp

    def enable_mem_efficient_sdp(self, enabled: bool) -> None:
        """Set the switch of memory-efficient attention."""
        self.mem_efficient_sdp = enabled

    def math_sdp_enabled(self) -> bool:
        """The switch of attention from its formula."""
        return self.math_sdp

    def enable_math_sdp(self, enabled: bool) -> None:
        """Set the switch of attention from its formula."""
        self.math_sdp = enabled

    def cudnn_sdp_enabled(self) -> bool:
        """The switch of cuDNN's attention."""
        return self.cudnn_sdp

    def enable_cudnn_sdp(self, enabled: bool) -> None:
        """Set the switch of cuDNN's attention."""
        self.cudnn_sdp = enabled


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
