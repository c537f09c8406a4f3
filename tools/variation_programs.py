"""Compiled functions whose inputs vary, held against eager, and their compilations counted:
`python -m tools.variation_programs --count 2000 [--beside PYTHON]`.

Each program makes ten calls. It fails when a value differs, when it compiles more often than what
varies explains, when compiling is given up, and, beside a Python that has PyTorch, when it compiles
more often than there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from ._known import known
from ._variation_draw import Program, generate

KNOWN = Path(__file__).with_name("variation_programs.txt")
CALLS = 10
#: runs in a process of its own, with PyTorch: counts of compilations
COUNTER = """
import json, sys, warnings
import numpy as np
import torch
from torch import nn
F = nn.functional
warnings.simplefilter("ignore")
for line in sys.stdin:
    count = 0
    def backend(gm, inputs):
        global count
        count += 1
        return gm.forward
    space = {"torch": torch, "nn": nn, "F": F, "np": np}
    try:
        exec(json.loads(line), space)
        torch._dynamo.reset()
        f = torch.compile(space["f"], backend=backend)
        for k in range(CALLS):
            f(*space["call"](k))
    except Exception as e:
        count = -1
    print(json.dumps(count), flush=True)
"""


def counted(program: Program) -> tuple[int, str]:
    """Compilations of ten calls, and what is wrong."""
    import numpy as np

    import flambeau as torch

    space: dict[str, Any] = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "np": np}
    exec(program.text(), space)
    count = 0

    def backend(graph: Any, inputs: Any) -> Any:
        nonlocal count
        count += 1
        return graph.forward

    compiled = torch.compile(space["f"], backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(CALLS):
            args = space["call"](k)
            try:
                want = space["f"](*args)
            except Exception as error:
                return count, f"program: {error}"
            try:
                got = compiled(*args)
            except Exception as error:
                return count, f"call {k}: {type(error).__name__}: {error}"
            if got.dtype is not want.dtype or got.shape != want.shape:
                return count, f"call {k}: {got.dtype} {got.shape} for {want.dtype} {want.shape}"
            if not torch.allclose(got, want, rtol=1e-5, atol=1e-6, equal_nan=True):
                return count, f"call {k}: differs"
            if got.requires_grad != want.requires_grad:
                return count, f"call {k}: requires_grad is {got.requires_grad}"
    return count, ""


def failure(program: Program, theirs: int = -1) -> str:
    """What is wrong, "" when nothing is. `theirs`: compilations with PyTorch; -1: not known."""
    count, why = counted(program)
    if not why and count > program.most:
        return f"{count} compilations, expected at most {program.most}"
    if not why and 0 <= theirs < count:
        return f"{count} compilations, {theirs} with PyTorch"
    return why


def beside(python: str, programs: list[Program]) -> list[int]:
    """Compilations with PyTorch; -1 where it fails."""
    code = COUNTER.replace("CALLS", str(CALLS))
    given = "".join(json.dumps(p.text()) + "\n" for p in programs)
    out = subprocess.run([python, "-c", code], input=given, capture_output=True, text=True)
    return [json.loads(line) for line in out.stdout.splitlines()]


def script(p: Program, why: str) -> str:
    return (
        f"# seed {p.seed}: {why}\n"
        "from tools._variation_draw import generate\nfrom tools.variation_programs import counted\n"
        f"print(counted(generate({p.seed})))\n"
        + "".join(f"#   {line}\n" for line in p.text().splitlines()[-5:])
    )


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--count", type=int, default=300)
    p.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    p.add_argument(
        "--beside", metavar="PYTHON", help="one that has PyTorch, to count there as well"
    )
    a = p.parse_args()
    begun = time.monotonic()
    programs = [generate(a.seed * 1_000_000 + k) for k in range(a.count)]
    theirs = beside(a.beside, programs) if a.beside else [-1] * a.count
    patterns, ends = known(KNOWN), Counter[str]()
    for program, count in zip(programs, theirs, strict=True):
        why = failure(program, count)
        text = script(program, why)
        end = "void" if why.startswith("program:") else "fail" if why else "agree"
        if end == "fail" and any(x.search(text) for x in patterns):
            end = "known"
        ends[end] += 1
        if end == "fail":
            print(text, flush=True)
    print(
        f"{a.count} functions of varying inputs in {time.monotonic() - begun:.0f} s: "
        f"{ends['fail']} fail, {ends['known']} in known ways, {ends['void']} are no program"
    )
    return 1 if ends["fail"] else 0


if __name__ == "__main__":
    sys.exit(main())
