"""The clock inside of a worker: builds a part of a case once, then runs rounds of it when asked.

A part is `infer` (the call, in evaluation without gradients) or `train` (loss, backward, step of
the optimiser). A case that names float64 for the sake of equal digits is built in the dtype asked
for. Runs under either library and must not know which.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable
from typing import Any

import torch

from .measure import Run, seed
from .registry import Case

#: calls before the clock: compiled code, caches and lazy state have settled by then
WARM = 3


class Timing:
    """The case being timed. `answer` takes a request and gives what is sent back."""

    def __init__(self, cases: dict[str, Case]) -> None:
        self.cases = cases
        self.call: Callable[[], Any] | None = None

    def answer(self, line: str) -> dict[str, Any]:
        request: dict[str, Any] = json.loads(line)
        try:
            if "round" in request:
                return self.round(request["round"])
            return self.build(**request)
        except Exception as error:  # whatever a client raises is a result of the run
            self.call = None
            return {"error": "".join(traceback.format_exception(error))[-3000:]}

    def build(self, name: str, part: str, dtype: str, compiled: bool) -> dict[str, float]:
        """Seconds of the first calls together, and of one call after them."""
        self.call = None
        torch.compiler.reset()
        case = self.cases[name]
        torch.set_default_dtype(getattr(torch, dtype))
        run = Run(case, dtype=dtype)
        call = torch.compile(run.program.call) if compiled else run.program.call
        seed(name)
        self.call = run.inference(call) if part == "infer" else run.training(call)
        begin = time.perf_counter()
        for _ in range(WARM):
            self.call()
        middle = time.perf_counter()
        self.call()
        return {"first": middle - begin, "call": time.perf_counter() - middle}

    def round(self, count: int) -> dict[str, float]:
        """Seconds of a call, on the clock and of the processor, over `count` calls."""
        assert self.call is not None
        call = self.call
        wall, processor = time.perf_counter(), time.process_time()
        for _ in range(count):
            call()
        spent = time.process_time() - processor
        return {"wall": (time.perf_counter() - wall) / count, "processor": spent / count}
