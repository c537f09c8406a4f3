"""From a graph of primitives to the program that is emitted: all passes, in their order."""

from __future__ import annotations

from .._ir.graph import Graph
from .collapse import collapse
from .fuse import fuse
from .languages import Language
from .lower import Lowering
from .nest import Program
from .scratch import localise


def schedule(graph: Graph, language: Language | None = None) -> Program:
    """The program of a graph whose fused operations are written out, for C++ if nothing is said."""
    lowering = Lowering(graph, language)
    program = fuse(lowering.run(), lowering.body)
    program = collapse(program, lowering.body)
    return localise(program, lowering.body)
