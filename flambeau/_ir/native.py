"""Native functions described by plain data, so that they can be kept and made again.

`_aot.runtime` describes a function (csrc/python/compiled_function.h), `_compiler.assemble` the
programs that it runs (csrc/python/program.h). Must not know how either came about.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flambeau import _C, Tensor

from .graph import Graph
from .graph_run import prepare

PARTS = 8  # backwards of one function that are compiled, each for some of its results

#: (function, of each cotangent whether it is there, see `narrow.narrowed`, whether to compile) to
#: the backward, and to which saved values, cotangents and gradients it has
Part = Callable[["Function", str, bool], tuple[Any, ...]]


@dataclass(frozen=True)
class Function:
    """What the native `_CompiledFunction` is made of, but for the two graphs' callables."""

    given: int  # inputs of a call
    head: tuple[Any, ...]  # numbers, mutated inputs, results, aliases, output
    # None, or: results with a cotangent, these, gradients, sizes, how many values are saved
    backward: tuple[Any, ...] | None
    detached: tuple[int, ...]  # outputs that come without their source's history
    whole: str | None  # the backward graph's text, where it can do with some of the cotangents

    def made(
        self,
        forward: Any,
        backward: Any,
        captured: Graph,
        part: Part,
        attached: tuple[Any, ...] = (),
    ) -> Any:
        """The function of these callables; it runs `captured` itself where inputs share memory.

        Args:
            backward: None where there is none, and where `part` may make the whole one, too.
            part: makes backward of some of the cotangents.
        """
        parts = None if self.whole is None else self._parts(part)
        back = None if self.backward is None else (backward, *self.backward, parts)
        mutated = self.head[1]
        made: Callable[..., tuple[Any, ...]] = _C._CompiledFunction((
            _apart(forward), self.given, attached, *self.head, back,
            _as_written(captured) if mutated else None,
        ))  # fmt: skip
        apart = frozenset(self.detached)
        if not apart:
            return made
        return lambda *inputs: tuple(
            x.detach() if k in apart else x for k, x in enumerate(made(*inputs))
        )

    def _parts(self, part: Part) -> Callable[[str], tuple[Any, ...]]:
        met: list[str] = []

        def make(there: str) -> tuple[Any, ...]:
            met.append(there)
            return part(self, there, len(met) <= PARTS)

        return make

    def plain(self) -> tuple[Any, ...]:
        """As plain data; `Function(*f.plain())` is `f`."""
        return (self.given, self.head, self.backward, self.detached, self.whole)


def _as_written(captured: Graph) -> Callable[..., Any]:
    """For inputs that share memory while one changes: the captured graph, node by node."""
    made: list[Callable[..., Any]] = []

    def call(*inputs: Any) -> Any:
        if not made:
            made.append(prepare(captured))
        return made[0](*inputs)

    return call


def _apart(run: Callable[..., Any]) -> Callable[..., Any]:
    """The function with results that are no views: one that is made without gradients may not be
    changed in place with them, which users of the result may do."""
    if isinstance(run, _C._Program):
        return run
    return lambda *inputs: tuple(
        x.detach() if isinstance(x, Tensor) and x._is_view() else x for x in run(*inputs)
    )


@dataclass(frozen=True)
class Program:
    """A native program, and what it is made of."""

    run: Callable[..., tuple[Any, ...]]
    spec: tuple[Any, ...]
    code: str | None  # the digest of its library's text; None: it has no library
    kept: bool = True  # its library is in the cache, if it has one

    def plain(self) -> tuple[Any, ...]:
        """As plain data, without the program itself."""
        return (self.spec, self.code)
