"""Loads emitted modules for Triton's interpreter, with what the interpreter lacks.

It has no libdevice: NumPy's functions take its place. It cuts float32s to bfloat16 where a GPU
rounds: they are rounded here too.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter
from triton_standin import LIBDEVICE, rounded

from flambeau._compiler import triton_module


def _lifted(f: Any) -> Any:
    """A function of arrays as one of the interpreter's tensors."""

    def called(*xs: tl.tensor) -> tl.tensor:
        dtype = xs[0].handle.data.dtype
        data = np.asarray(f(*(x.handle.data for x in xs))).astype(dtype)
        handle = interpreter.TensorHandle(data, xs[0].handle.dtype)
        tiles = any(x.type.is_block() for x in xs)
        return tl.tensor(
            handle, tl.block_type(xs[0].dtype, list(data.shape)) if tiles else xs[0].type
        )

    return called


def _cast(
    self: Any, src: Any, dst_type: Any, plain: Any = interpreter.InterpreterBuilder.cast_impl
) -> Any:
    if src.dtype.scalar == tl.float32 and dst_type.scalar == tl.bfloat16:
        bits = rounded(src.data).view(np.uint32) >> 16
        return interpreter.TensorHandle(bits.astype(np.uint16), tl.bfloat16)
    return plain(self, src, dst_type)


interpreter.InterpreterBuilder.cast_impl = _cast


def load_module(text: str) -> types.ModuleType:
    module = triton_module.load(text)
    module.libdevice = types.SimpleNamespace(**{n: _lifted(f) for n, f in LIBDEVICE.items()})
    return module
