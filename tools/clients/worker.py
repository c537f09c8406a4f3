"""A process that measures the cases whose names it reads, one answer a line.

In mode `speed` the lines are requests to the clock (`timing`) instead of names. Started by `pool`
and `speed`, under the library that its command chooses. What a case prints goes to standard error,
so that the answers stay readable; a crash or a hang is the parent's to see.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any


def answer(name: str, mode: str, cases: dict[str, Any]) -> dict[str, Any]:
    from . import measure, registry

    start = time.perf_counter()
    case = cases[name]
    if mode == "breaks":
        record = measure.graph_breaks(case)
    else:
        record = measure.measure(case, compiled=mode == "compiled")
    if mode == "reference" and not record["errors"]:
        mixed = case.dtype != "float64" or measure.rounds_to_single(case)
        moved = [
            measure.measure(case, nudge=registry.NUDGE[mixed], wave=wave) for wave in registry.WAVES
        ]
        record["nudged"] = [
            {key: run[key] for key in ("infer", "train") if key in run} for run in moved
        ]
        record["mixed"] = mixed
    record["seconds"] = round(time.perf_counter() - start, 3)
    return record


def without_native_vision() -> None:
    """Declares what torchvision expects of its native part where that part cannot be loaded.

    Wheels of torchvision belong to one build of PyTorch; packages import it for its transforms.
    """
    import torch

    for name in ("nms", "qnms"):
        try:
            torch.library.define(
                f"torchvision::{name}", "(Tensor dets, Tensor scores, float threshold) -> Tensor"
            )
        except (AttributeError, RuntimeError):
            continue


def main() -> None:
    mode = sys.argv[1]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    import torch

    from . import registry

    without_native_vision()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    # A package that cannot be imported is the result of its cases, not the end of all.
    cases = {entry.name: entry for entry in registry.load()}
    print(json.dumps({"ready": torch.__version__}), file=out, flush=True)

    respond: Callable[[str], dict[str, Any]]
    if mode == "speed":
        from .timing import Timing

        respond = Timing(cases).answer
    else:
        respond = lambda name: {"name": name, "record": answer(name, mode, cases)}  # noqa: E731
    for line in sys.stdin:
        print(json.dumps(respond(line.strip())), file=out, flush=True)


if __name__ == "__main__":
    main()
