"""From a graph of primitives to the program that is emitted: all passes, in their order."""

from __future__ import annotations

from .._ir.graph import Graph
from .collapse import collapse
from .fuse import fuse
from .lower import Lowering
from .nest import Program
from .scratch import localise


def schedule(graph: Graph) -> Program:
    """The program of a graph whose fused operations are written out."""
    lowering = Lowering(graph)
    program = fuse(lowering.run(), lowering.body)
    program = collapse(program, lowering.body)
    return localise(program, lowering.body)
