"""Runs a program: memory for its buffers, nests in native code, calls as eager does them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import flambeau

from .._ir.graph import Graph
from .._ir.graph_run import _caller, bindings
from .._ir.symbols import ShapeEnv
from .._ir.symexpr import Expr
from . import emit_cpp, toolchain
from .decompose import decompose
from .fuse import fuse
from .lower import Lowering
from .nest import Buffer, Nest, Program, View
from .scalar import MEMORY
from .scratch import localise


class Executable:
    """A program with its library."""

    def __init__(self, program: Program, env: ShapeEnv) -> None:
        self.program, self.env = program, env
        self.names = list(program.buffers)
        self.nests = [s for s in program.steps if isinstance(s, Nest)]
        memory = {name: MEMORY[b.dtype] for name, b in program.buffers.items()}
        self.text = emit_cpp.source(self.nests, memory, program.symbols)
        self.library = toolchain.load(self.text) if self.nests else None
        self.highest = 1 + max((int(n[1:]) for n in self.names), default=0)

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs for tensors of the types that the program was made for."""
        values = bindings(self.env, inputs)
        buffers: dict[str, Any] = {}
        for name, x in zip(self.program.inputs, inputs, strict=True):
            if name is not None:
                buffers[name] = x
        for name, b in self.program.buffers.items():
            if b.kind != "input":
                buffers[name] = self.allocate(b, values)
        pointers = (ctypes.c_void_p * self.highest)()
        for name, x in buffers.items():
            pointers[int(name[1:])] = x.data_ptr()
        sizes = (ctypes.c_int64 * max(1, len(values)))(*values.values())
        k = 0
        for step in self.program.steps:
            if isinstance(step, Nest):
                assert self.library is not None
                self.library.run(k, pointers, sizes)
                k += 1
            else:
                self.call(step, buffers, pointers, values)
        return [self.output(o, buffers, values) for o in self.program.outputs]

    def allocate(self, b: Buffer, values: dict[str, int]) -> Any:
        shape, strides = (tuple(_int(n, values) for n in x) for x in (b.shape, b.strides))
        return flambeau.empty_strided(shape, strides, dtype=b.dtype)

    def call(self, step: Any, buffers: dict[str, Any], pointers: Any, values: Any) -> None:
        args = tuple(self.output(a, buffers, values) for a in step.args)
        for name, x in zip(step.outs, _caller(step.node, False)(args), strict=True):
            buffers[name] = x
            pointers[int(name[1:])] = x.data_ptr()

    def output(self, o: Any, buffers: dict[str, Any], values: dict[str, int]) -> Any:
        if isinstance(o, View):
            x = buffers[o.buffer]
            shape, strides = (tuple(_int(n, values) for n in y) for y in (o.shape, o.strides))
            offset = _int(o.offset, values)
            if tuple(x.shape) == shape and x.stride() == strides and not offset:
                return x
            return x.as_strided(shape, strides, x.storage_offset() + offset)
        if isinstance(o, tuple):
            return tuple(self.output(a, buffers, values) for a in o)
        return _int(o, values) if isinstance(o, Expr) else o


def _int(n: Any, values: dict[str, int]) -> int:
    return n.evaluate(values) if isinstance(n, Expr) else n


def back_end(graph: Graph) -> Callable[..., list[Any]]:
    """A graph of primitives as a function of its inputs, in native code."""
    written = decompose(graph)
    lowering = Lowering(written)
    program = localise(fuse(lowering.run(), lowering.body), lowering.body)
    run = Executable(program, written.env)
    return lambda *inputs: run([*inputs, *written.attached])
