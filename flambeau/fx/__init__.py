"""Programs as graphs of calls that Python code can read, change and run.

The face of captured graphs for back ends (`compile(backend=...)`), and `symbolic_trace` for modules
without control flow that depends on data. The compiler itself works on another graph and never
goes through this one.
"""

from __future__ import annotations

from ._symbolic_trace import Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph, PythonCode
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, map_arg
from .proxy import Proxy, TraceError
from .subgraph_rewriter import replace_pattern

__all__ = [
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "PythonCode",
    "TraceError",
    "Tracer",
    "Transformer",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
