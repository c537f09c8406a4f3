"""Compiles the kernels of an emitted module to machine code of a GPU that need not be there."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget

TARGET = GPUTarget("cuda", 90, 32)


@dataclass(frozen=True)
class Compiled:
    """A kernel's machine code, and what a thread of it takes."""

    name: str
    cubin: bytes
    registers: int
    spilled: int  # bytes of local memory


def compiled(module: Any) -> list[Compiled]:
    """All kernels of a module; pointers are taken to be aligned, as allocations are."""
    return [_one(module, name, *what) for name, what in module.SIGNATURES.items()]


def _one(module: Any, name: str, signature: dict[str, str], warps: int) -> Compiled:
    aligned = {
        (i,): [["tt.divisibility", 16]] for i, t in enumerate(signature.values()) if t[0] == "*"
    }
    source = triton.compiler.ASTSource(getattr(module, name), signature, attrs=aligned)
    made = triton.compile(source, target=TARGET, options={"num_warps": warps})
    return Compiled(name, made.asm["cubin"], *_usage(made.asm["cubin"]))


def _usage(cubin: bytes) -> tuple[int, int]:
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".cubin") as f:
        f.write(cubin)
        f.flush()
        text = subprocess.run(
            [tool, "-res-usage", f.name], capture_output=True, text=True, check=True
        ).stdout
    words = dict(w.split(":", 1) for w in text.split() if ":" in w and w.split(":", 1)[1].isdigit())
    return int(words["REG"]), int(words["STACK"])
