"""Native functions described by plain data, so that they can be kept and made again.

`_aot.runtime` describes a function (csrc/python/compiled_function.h), `_compiler.assemble` the
programs that it runs (csrc/runtime/program.h). Must not know how either came about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from flambeau import _C, Tensor

from .graph import Graph
from .graph_run import prepare
from .symbols import Guard, ShapeEnv

PARTS = 8  # backwards of one function that are compiled, each for some of its results

#: (function, which cotangents are there and which gradients are asked for, see `partial_backward`,
#: whether to compile) to the backward, and to which saved values, cotangents and gradients it has
Part = Callable[["Function", str, bool], tuple[Any, ...]]


@dataclass(frozen=True)
class Recorded:
    """A backward for some of the cotangents through which gradients flow."""

    kept: tuple[int, ...]  # of what forward saved, and then of `Function.kept`, what it takes
    numbers: tuple[int, ...]  # of the function's numbers, which follow
    cotangents: tuple[int, ...]  # which follow these
    grads: tuple[int, ...]  # inputs of the function whose gradients it gives
    values: tuple[int, ...]  # saved ones with cotangents, which stand after those of the results
    #: of what it is given first, a function of this, and the guards on it that hold
    compile: Callable[[Sequence[Any]], tuple[Callable[..., Any], ShapeEnv, Sequence[Guard]]]


@dataclass(frozen=True)
class Makers:
    """Make backwards of a function when they are asked for."""

    part: Part
    #: of each cotangent "1", or "0" where it is not there, and of gradients as in `part`, to a
    #: backward or why there is none; cotangents of `Recorded.values` may be left out
    recorded: Callable[[str], Recorded | str]


@dataclass(frozen=True)
class Function:
    """What the native `_CompiledFunction` is made of, but for the two graphs' callables."""

    given: int  # inputs of a call
    head: tuple[Any, ...]  # numbers, mutated inputs, results, aliases, output
    # None, or: results with a cotangent, these, gradients, sizes, how many values are saved
    backward: tuple[Any, ...] | None
    detached: tuple[int, ...]  # outputs that come without their source's history
    whole: str | None  # the backward graph's text, where it can do with some of the cotangents
    kept: tuple[int, ...] = ()  # inputs that are kept for gradients that are differentiated again

    def made(
        self,
        forward: Any,
        backward: Any,
        captured: Graph,
        makers: Makers,
        attached: tuple[Any, ...] = (),
    ) -> Any:
        """The function of these callables; it runs `captured` itself where inputs share memory.

        Args:
            backward: None where there is none, and where `part` may make the whole one, too.
            makers: make backward of some of the cotangents, and what is differentiated again.
        """
        parts = None if self.whole is None else self._parts(makers.part)
        again = (self.kept, _recorded(makers.recorded))
        back = None if self.backward is None else (backward, *self.backward, parts, again)
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
        return (self.given, self.head, self.backward, self.detached, self.whole, self.kept)


def _recorded(make: Callable[[str], Recorded | str]) -> Callable[[str], tuple[Any, ...] | str]:
    """For the native function: what a backward takes of what is saved, of the numbers and of the
    cotangents, and a function of all that to pairs of an input's place and its gradient."""

    @cache
    def recorded(there: str) -> tuple[Any, ...] | str:
        r = make(there)
        if isinstance(r, str):
            return r
        made: dict[tuple[bool, ...], list[Any]] = {}
        first = len(r.kept)

        def run(*given: Any) -> Any:
            known = made.setdefault(tuple(getattr(x, "requires_grad", False) for x in given), [])
            numbers = given[first : first + len(r.numbers)]
            found = next((m for m in known if _holds(m[2], m[1], numbers)), None)
            if found is None:
                found = r.compile(given)
                known.append(found)
            return tuple(zip(r.grads, found[0](*given), strict=True))

        return r.kept, r.numbers, r.cotangents, run, r.values

    return recorded


def _holds(guards: Sequence[Guard], env: ShapeEnv, numbers: Sequence[int]) -> bool:
    """Whether guards are true for the values of the first symbols."""
    values = dict(zip(env.symbols, numbers, strict=False))
    return all(g.holds(values) for g in guards)


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
