"""`aot_autograd`: a back end of forward and backward graphs of primitives; `prepare` runs a graph,
`bindings` gives the values of its symbols."""

from __future__ import annotations

from flambeau._capture.back_ends import aot_autograd
from flambeau._ir.graph_run import bindings, prepare

__all__ = ["aot_autograd", "bindings", "prepare"]
