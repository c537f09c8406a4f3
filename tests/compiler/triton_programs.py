"""Runs programs of the compiler with their nests launched from an emitted Triton module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as torch
from flambeau._aot import aot, callable_of
from flambeau._compiler import triton_module
from flambeau._compiler.decompose import decompose
from flambeau._compiler.execute import Executable
from flambeau._compiler.fuse import fuse
from flambeau._compiler.lower import Lowering
from flambeau._compiler.nest import Nest, Program
from flambeau._compiler.scratch import localise
from flambeau._ir.graph import Graph
from flambeau._ir.graph_run import bindings
from flambeau._trace import trace

Loader = Callable[[str], Any]  # text of a module -> the module


def program_of(graph: Graph) -> tuple[Program, Graph]:
    """A graph of primitives as loops."""
    written = decompose(graph)
    lowering = Lowering(written)
    return localise(fuse(lowering.run(), lowering.body), lowering.body), written


def empty(count: int, dtype: str) -> Any:
    return torch.empty(count, dtype=getattr(torch, dtype))


class Launched(Executable):
    """A program whose nests are launched by a module."""

    def __init__(self, program: Program, graph: Graph, loader: Loader) -> None:
        self.program, self.env = program, graph.env
        nests = [s for s in program.steps if isinstance(s, Nest)]
        self.text = triton_module.source(nests, program.symbols)
        self.module = loader(self.text)

    def __call__(self, inputs: Any) -> list[Any]:
        values = bindings(self.env, inputs)
        buffers = dict(zip(self.program.inputs, inputs, strict=True))
        for name, b in self.program.buffers.items():
            if b.kind != "input":
                buffers[name] = self.allocate(b, values)
        sizes = [values[s] for s in self.program.symbols]
        k = 0
        for step in self.program.steps:
            if isinstance(step, Nest):
                by_number = {int(n[1:]): x for n, x in buffers.items() if n}
                self.launch(k, by_number, sizes)
                k += 1
            else:
                ignored = {int(n[1:]): None for n in buffers if n}
                self.call(step, buffers, ignored, values)
        return [self.output(o, buffers, values) for o in self.program.outputs]

    def launch(self, k: int, buffers: Any, sizes: list[int]) -> None:
        self.module.run(k, buffers, sizes, empty)


def back_end(loader: Loader) -> Callable[[Graph], Callable[..., list[Any]]]:
    def made(graph: Graph) -> Callable[..., list[Any]]:
        program, written = program_of(graph)
        run = Launched(program, written, loader)
        return lambda *inputs: run([*inputs, *written.attached])

    return made


def compiled(f: Any, inputs: Any, loader: Loader, dynamic: bool = False) -> Callable[..., Any]:
    """f, forward and backward, with nests run by what the loader makes of their text."""
    graph = trace(f, inputs, "captured", dynamic)
    wanted = [bool(x.requires_grad) for x in (*inputs, *graph.attached)]
    return callable_of(aot(graph, wanted), back_end(loader))
