"""The native back end: a graph of primitives as a program that runs without Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._ir import native
from .._ir.graph import Graph
from .._ir.logs import log
from . import assemble, languages
from .decompose import decompose
from .listing import listing
from .nest import Nest
from .scalar import MEMORY
from .schedule import schedule


def programs(graphs: Sequence[Graph]) -> list[native.Program]:
    """Graphs of primitives as functions of their inputs (but for attached ones).

    The C++ compiler works on one graph while the next is lowered.
    """
    begun = [_begin(g) for g in graphs]
    return [finish() for finish in begun]


def back_end(graph: Graph) -> Callable[..., tuple[Any, ...]]:
    """One graph as a function of its inputs."""
    return programs([graph])[0].run


def _begin(graph: Graph) -> Callable[[], native.Program]:
    """Starts compiling; what is returned waits for the end of it."""
    written = decompose(graph)
    language = languages.of_graph(written)
    replaced = graph.replaced if language.code else ()  # in C++ a nest may read what it writes
    program = schedule(written, language, replaced)
    nests = [s for s in program.steps if isinstance(s, Nest)]
    memory = {name: MEMORY[b.dtype] for name, b in program.buffers.items()}
    text = language.source(nests, memory, program.symbols)
    log("output_code", lambda: listing(written, text))
    pending = language.begin(text) if nests else None

    def finish() -> native.Program:
        spec = assemble.describe(program, written.env)
        library = pending.result() if pending else None
        run = assemble.assemble(spec, library, written.attached)
        code = language.code(text) if nests and language.code else None
        return native.Program(run, spec, code, kept=code is not None or not nests)

    return finish
