"""Programs compiled and held against eager: captured, functional, in native code; sizes fixed and
varying; forward and backward.

Programs are compiled many at a time. The first call of each makes its graphs and runs them node by
node; its native code is compiled with that of the others, and runs from the second call on.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import flambeau as torch
from flambeau._capture import back_ends
from flambeau._compiler import toolchain

from ._agreement import difference
from ._batch import Batch
from ._program_draw import Program

MODES = ("aot_eager", "inductor")


class Stages:
    """A back end whose functions run as far compiled as `mode` says; graphs are captured once."""

    takes_graph = True  # the captured graph itself, without a face

    def __init__(self) -> None:
        self.mode = "eager"
        self.count = 0  # graphs compiled so far

    def __call__(self, graph: Any, examples: Any) -> Callable[..., Any]:
        self.count += 1
        ways = {
            "eager": back_ends.run_eagerly(graph, examples),
            "aot_eager": back_ends.run_ahead_of_time(graph, examples),
            "inductor": back_ends.run_compiled(graph, examples),
        }
        return lambda *inputs: ways[self.mode](*inputs)


class Trial:
    """One program, compiled with sizes fixed or varying."""

    def __init__(self, program: Program, dynamic: bool) -> None:
        self.program, self.dynamic = program, dynamic
        self.stages = Stages()
        self.compiled = torch.compile(program.function(), backend=self.stages, dynamic=dynamic)
        self.want = {0: program.seen(program.function())}
        if dynamic:
            self.want[1] = program.seen(program.function(), 1)
        self.failure = ""
        self.recompiled = False

    def fail(self, mode: str, why: str) -> None:
        if not self.failure:
            sizes = "varying" if self.dynamic else "fixed"
            self.failure = f"{mode}, sizes {sizes}: {why}"

    def begin(self) -> None:
        """Captures; what that gives, run as it is, is compared too."""
        self.check("eager", 0)

    def check(self, mode: str, which: int) -> None:
        if self.failure:
            return
        self.stages.mode = mode
        before = self.stages.count
        try:
            got = self.program.seen(self.compiled, which)
            why = difference(got, self.want[which], self.program.tolerance)
        except Exception:
            why = f"exception\n{traceback.format_exc(limit=-6)}"
        if why:
            self.fail(mode, why + (", at other sizes" if which else ""))
        if which and self.stages.count > before:
            self.recompiled = True

    def end(self) -> None:
        """The functional graphs, and native code."""
        for mode in MODES:
            for which in self.want:
                self.check(mode, which)
        self.compiled._flambeau_config.forget()


@contextmanager
def optimised(level: str) -> Iterator[None]:
    """Native code compiled at another level: -O1 takes less than half the time of -O3."""
    before = toolchain.flags
    given = tuple(level if x.startswith("-O") else x for x in before())
    toolchain.flags = lambda: given  # type: ignore[assignment]
    toolchain._fixed_digest.cache_clear()
    try:
        yield
    finally:
        toolchain.flags = before
        toolchain._fixed_digest.cache_clear()


def check(programs: Sequence[Program], dynamic: Sequence[bool] = (False, True)) -> list[Trial]:
    """Trials of all programs, ended."""
    with warnings.catch_warnings(), Batch():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", message="a batch did not")
        trials = [Trial(p, d) for p in programs for d in dynamic]
        for t in trials:
            t.begin()
        for t in trials:
            t.end()
    return trials


def failure(program: Program, dynamic: Sequence[bool] = (False, True)) -> str:
    """How a program fails, or an empty string."""
    return next((t.failure for t in check([program], dynamic) if t.failure), "")
