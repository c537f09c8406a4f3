"""From a graph of primitives to the program that is emitted: all passes, in their order."""

from __future__ import annotations

from collections.abc import Sequence

from .._ir.graph import Graph
from .collapse import collapse
from .fuse import fuse
from .in_place import in_place
from .languages import Language
from .lower import Lowering
from .nest import Program
from .scratch import localise


def schedule(
    graph: Graph, language: Language | None = None, replaced: Sequence[tuple[int, int]] = ()
) -> Program:
    """The program of a graph whose fused operations are written out, for C++ if nothing is said.

    Args:
        graph: of primitives.
        language: what its nests are written in.
        replaced: results and the inputs whose new values they are, which may be changed.
    """
    lowering = Lowering(graph, language)
    program = fuse(lowering.run(), lowering.body)
    program = collapse(program, lowering.body)
    program = localise(program, lowering.body)
    return in_place(program, lowering.body, graph, replaced)
