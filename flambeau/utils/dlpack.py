"""Tensors from and for other libraries, without a copy (the DLPack protocol)."""

from .._C import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
