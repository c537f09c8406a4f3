"""A Python module of Triton kernels as text, and its loading.

The module has `SIGNATURES` (kernel -> argument types and warps, for compilation ahead of time) and
`run(k, b, n, empty)`, which launches nest k: `b` are the program's buffers by number, `n` the sizes
in the order of the program's symbols, `empty(count, dtype)` makes what several kernels share.
Only loading imports Triton.
"""

from __future__ import annotations

import hashlib
import linecache
from collections.abc import Sequence
from concurrent.futures import Future
from types import ModuleType

from .emit_triton import Emitter, Kernel
from .nest import Nest
from .scalar import MEMORY
from .triton_scalar import function_text, functions

_HEAD = """\
import triton
import triton.language as tl
from triton.language.extra import libdevice


def cdiv(a, b):
    return -(-a // b)
"""
_RUN = '''\
def run(k, b, n, empty):
    """Launches nest k."""
    launch, buffers, sizes = NESTS[k]
    launch(empty, *(b[i] for i in buffers), *(n[i] for i in sizes))
'''
_NAMES = {memory: str(dtype).rpartition(".")[2] for dtype, memory in MEMORY.items()}


def _kernel_text(k: Kernel) -> str:
    sizes = ", ".join(f'"{s}"' for s in k.symbols)
    head = f"@triton.jit(do_not_specialize=[{sizes}])" if sizes else "@triton.jit"
    args = ", ".join([*k.pointers, *k.symbols])
    body = "\n".join(f"    {line}" for line in k.lines)
    return f"{head}\ndef {k.name}({args}):\n{body}\n"


def _launch_text(emitter: Emitter, kernels: Sequence[Kernel], sizes: Sequence[str]) -> str:
    buffers = [n for n in emitter.buffers.values() if n not in emitter.scratch]
    lines = [f"def launch_NEST({', '.join(['empty', *buffers, *sizes])}):"]
    for name, (count, memory) in emitter.scratch.items():
        lines.append(f'    {name} = empty({count}, "{_NAMES[memory]}")')
    for k in kernels:
        args = ", ".join([*k.pointers, *k.symbols, f"num_warps={k.warps}"])
        lines.append(f"    {k.name}[{k.grid}]({args})")
    return "\n".join(lines) + "\n"


def _signature_text(k: Kernel) -> str:
    types = {**k.pointers, **dict.fromkeys(k.symbols, "i64")}
    return f'    "{k.name}": ({types!r}, {k.warps}),\n'


def source(nests: Sequence[Nest], symbols: Sequence[str]) -> str:
    """The module's text. Nests that differ in their buffers alone share their kernels.

    Raises:
        Refused: a nest has what Triton's language cannot say.
    """
    known: dict[str, str] = {}
    parts: list[str] = []
    signatures = calls = ""
    for nest in nests:
        emitter = Emitter(nest, symbols)
        kernels = emitter.emit()
        needed = {s for k in kernels for s in k.symbols} | emitter.sizes_of_launch()
        sizes = [s for s in symbols if s in needed]
        text = "\n\n".join(map(_kernel_text, kernels))
        text += "\n\n" + _launch_text(emitter, kernels, sizes)
        if text not in known:
            known[text] = name = f"nest{len(known)}"
            where = "".join(f"# {w}\n" for w in nest.where)
            parts.append(where + text.replace("NEST", name))
            signatures += "".join(map(_signature_text, kernels)).replace("NEST", name)
        buffers = [int(b[1:]) for b, n in emitter.buffers.items() if n not in emitter.scratch]
        places = [list(symbols).index(s) for s in sizes]
        calls += f"    (launch_{known[text]}, {buffers}, {places}),\n"
    body = "\n\n".join(parts)
    own = "".join(f"\n\n{function_text(name)}\n" for name in functions(body))
    tables = f"SIGNATURES = {{\n{signatures}}}\nNESTS = [\n{calls}]\n"
    return f"{_HEAD}{own}\n\n{body}\n\n{tables}\n\n{_RUN}"


def load(text: str) -> ModuleType:
    """The module of a text. Triton reads kernels as source lines, which are given without a file.

    Raises:
        ModuleNotFoundError: Triton is not installed.
    """
    name = "kernels_" + hashlib.sha256(text.encode()).hexdigest()[:40]
    place = f"<{name}>"
    linecache.cache[place] = (len(text), None, text.splitlines(keepends=True), place)
    module = ModuleType(name)
    exec(compile(text, place, "exec"), module.__dict__)
    return module


def begin(text: str) -> Future[ModuleType]:
    """`load`, as `languages` wants it: Triton compiles a kernel when it is first launched."""
    done: Future[ModuleType] = Future()
    done.set_result(load(text))
    return done
