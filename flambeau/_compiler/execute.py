"""The native back end: a graph of primitives as a program that runs without Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._ir.graph import Graph
from .._ir.logs import log
from . import emit_cpp, toolchain
from .assemble import assemble
from .decompose import decompose
from .listing import listing
from .nest import Nest
from .scalar import MEMORY
from .schedule import schedule


def back_end(graph: Graph) -> Callable[..., tuple[Any, ...]]:
    """A graph of primitives as a function of its inputs (but for attached ones)."""
    written = decompose(graph)
    program = schedule(written)
    nests = [s for s in program.steps if isinstance(s, Nest)]
    memory = {name: MEMORY[b.dtype] for name, b in program.buffers.items()}
    text = emit_cpp.source(nests, memory, program.symbols)
    log("output_code", lambda: listing(written, text))
    library = toolchain.load(text) if nests else None
    made: Callable[..., tuple[Any, ...]] = assemble(program, written.env, library, written.attached)
    return made
