"""Runs programs of the compiler with their nests launched from an emitted Triton module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as torch
from flambeau._aot import aot, callable_of
from flambeau._compiler import languages, triton_module
from flambeau._compiler.decompose import decompose
from flambeau._compiler.nest import Buffer, Call, Nest, Program, View
from flambeau._compiler.schedule import schedule
from flambeau._ir.graph import Graph
from flambeau._ir.graph_run import _caller, bindings
from flambeau._ir.symexpr import Expr
from flambeau._trace import trace

Loader = Callable[[str], Any]  # text of a module -> the module


def program_of(graph: Graph) -> tuple[Program, Graph]:
    """A graph of primitives as loops for Triton."""
    written = decompose(graph)
    return schedule(written, languages.of("cuda")), written


def empty(count: int, dtype: str) -> Any:
    return torch.empty(count, dtype=getattr(torch, dtype))


class Launched:
    """A program whose nests are launched by a module; calls are made as eager makes them."""

    def __init__(self, program: Program, graph: Graph, loader: Loader) -> None:
        self.program, self.env = program, graph.env
        nests = [s for s in program.steps if isinstance(s, Nest)]
        self.text = triton_module.source(nests, program.symbols)
        self.module = loader(self.text)

    def __call__(self, inputs: Any) -> list[Any]:
        self.sizes = bindings(self.env, inputs)
        self.buffers = dict(zip(self.program.inputs, inputs, strict=True))
        for name, b in self.program.buffers.items():
            if b.kind != "input":
                self.buffers[name] = self.allocate(b)
        k = 0
        for step in self.program.steps:
            if isinstance(step, Nest):
                by_number = {int(n[1:]): x for n, x in self.buffers.items() if n}
                self.launch(k, by_number, [self.sizes[s] for s in self.program.symbols])
                k += 1
            else:
                self.call(step)
        return [self.actual(o) for o in self.program.outputs]

    def launch(self, k: int, buffers: Any, sizes: list[int]) -> None:
        self.module.run(k, buffers, sizes, empty)

    def call(self, step: Call) -> None:
        made = _caller(step.node, False)(tuple(map(self.actual, step.args)))
        self.buffers.update(zip(step.outs, made, strict=True))

    def allocate(self, b: Buffer) -> Any:
        return torch.empty_strided(self.actual(b.shape), self.actual(b.strides), dtype=b.dtype)

    def actual(self, a: Any) -> Any:
        """An argument, output or shape with buffers and sizes put in."""
        if isinstance(a, View):
            x = self.buffers[a.buffer]
            offset = x.storage_offset() + self.actual(a.offset)
            return x.as_strided(self.actual(a.shape), self.actual(a.strides), offset)
        if isinstance(a, tuple):
            return tuple(map(self.actual, a))
        return a.evaluate(self.sizes) if isinstance(a, Expr) else a


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
