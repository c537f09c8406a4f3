"""The language that loops are written in, chosen by device, and what it cannot say.

Lowering asks what is beyond the language and leaves that to calls; so an emitter meets only nests
that it can write. A new device is a line here. Loading a language's emitter imports no compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from .._ir.graph import Graph, TensorType
from .nest import Nest


class Pending(Protocol):
    """A library in the making."""

    def result(self) -> Any: ...


@dataclass(frozen=True)
class Language:
    """An emitter: `source(nests, memory types by buffer, symbols)` is text.

    `begin` starts to compile it, and gives what waits for the library.
    """

    name: str
    source: Callable[[Sequence[Nest], dict[str, str], Sequence[str]], str]
    begin: Callable[[str], Pending]
    refused: frozenset[str] = frozenset()  # primitives that it has no equal of
    complex: bool = True  # has complex numbers
    checks: bool = True  # tells of indices out of bounds
    code: Callable[[str], str] | None = None  # the digest by which the cache finds a library


@cache
def of(device: str) -> Language:
    """The language for a type of device.

    Raises:
        NotImplementedError: there is none.

    >>> from flambeau._compiler import languages
    >>> languages.of("cpu").name, languages.of("cuda").name
    ('C++', 'Triton')
    """
    if device == "cpu":
        from . import emit_cpp, toolchain

        return Language("C++", emit_cpp.source, toolchain.begin, code=toolchain.code_of)
    if device == "cuda":
        from . import triton_module, triton_scalar

        return Language(
            "Triton",
            lambda nests, memory, symbols: triton_module.source(nests, symbols),
            triton_module.begin,
            triton_scalar.unsupported(),
            complex=False,
            checks=False,
        )
    raise NotImplementedError(f"compile: expected tensors on cpu or cuda, got {device}")


def of_graph(graph: Graph) -> Language:
    """The language for the device that a graph's inputs are on."""
    types = [v.type for v in graph.inputs if isinstance(v.type, TensorType)]
    return of(next((t.device.type for t in types), "cpu"))
