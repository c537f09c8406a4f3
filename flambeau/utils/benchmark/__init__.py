"""Timing small programs and comparing them: `torch.utils.benchmark`.

`Timer` measures, `Measurement` is what it found, `Compare` shows several as a table, `Fuzzer` draws
inputs. Figures are of processor-bound code: a statement is repeated until its time is far above
that of reading the clock, on as many threads as it is told.

>>> timer = Timer("x + 1", globals={"x": fb.ones(3)}, label="add")
>>> timer.timeit(100).number_per_run
100
"""

from __future__ import annotations

import flambeau as fb  # noqa: F401  the examples use it

from .compare import Colorize, Compare, optional_min
from .fuzzer import FuzzedParameter, FuzzedTensor, Fuzzer, ParameterAlias, dtype_size
from .measurement import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from .timer import Language, Timer, timer

__all__ = [
    "Colorize",
    "Compare",
    "FuzzedParameter",
    "FuzzedTensor",
    "Fuzzer",
    "Language",
    "Measurement",
    "ParameterAlias",
    "TaskSpec",
    "Timer",
    "dtype_size",
    "optional_min",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]
