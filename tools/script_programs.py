"""Random programs as scripts: eager = scripted = saved and loaded: `python -m tools.script_programs --count 5000`.

Each program is run as Python, by the machine, by the Python that a script is also written as, and
from a file. Results, arguments afterwards and classes of errors are those of Python. A program that
is refused must be refused with a line. One that fails is made smaller while it fails, and printed.
"""

from __future__ import annotations

import argparse
import copy
import io
import linecache
import re
import resource
import subprocess
import sys
import types
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import flambeau as torch

from ._script_draw import Program, arguments, generate, shrunk

#: programs of one process
CHUNK = 500
#: bytes of one process
MEMORY = 8 << 30
#: errors of programs whose numbers grow beyond what scripts hold
LIMITS = ("does not fit in 64 bits",)


def same(a: Any, b: Any) -> bool:
    """Equal values of equal types."""
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and bool(
            a.shape == b.shape and ((a == b) | (a.isnan() & b.isnan())).all()
        )  # fmt: skip
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and (a == b or a != a and b != b)


def loaded(program: Program) -> types.ModuleType:
    """The module of a program, whose source can be found."""
    text = program.text()
    name = f"script_program_{program.seed}"
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    module = types.ModuleType(name)
    module.__file__ = file
    sys.modules[name] = module
    exec(compile(text, file, "exec"), module.__dict__)
    return module


def outcome(f: Callable[..., Any], given: list[Any]) -> tuple[Any, Any]:
    """What a call gives, or its error's class; and its arguments afterwards."""
    given = copy.deepcopy(given)
    try:
        return ("value", f(*given)), given
    except Exception as error:
        return ("error", type(error).__name__, str(error)), given


def agree(a: tuple[Any, Any], b: tuple[Any, Any]) -> bool:
    (x, left), (y, right) = a, b
    if x[0] == "error" or y[0] == "error":
        return x[:2] == y[:2]
    return same(x[1], y[1]) and same(left, right)


def check(program: Program) -> tuple[str, str]:
    """(kind, why): agreed, refused, or failed."""
    module = loaded(program)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            script = torch.jit.script(module.program)
        except RuntimeError as error:
            lines = str(error).splitlines()
            return "refused", re.sub(r"v\d+i?|'[^']*'|\d+", "_", lines[0].split("error: ")[-1])
        except Exception as error:
            return "failed", f"script: {type(error).__name__}: {error}"
        try:
            again = torch.jit.load(io.BytesIO(script.save_to_buffer()))
        except Exception as error:
            return "failed", f"file: {type(error).__name__}: {error}"
        ways = {"machine": script, "file": again}
        if hasattr(script._call, "as_python"):
            ways["python"] = script._call.as_python
        for k in range(3):
            given = arguments(program.seed * 3 + k, torch)
            want = outcome(module.program, given)
            for name, f in ways.items():
                got = outcome(f, given)
                if got[0][0] == "error" and any(x in got[0][2] for x in LIMITS):
                    continue
                if not agree(want, got):
                    return "failed", f"{name}: {shown(want, got)}"
    return "agreed", ""


def shown(want: tuple[Any, Any], got: tuple[Any, Any]) -> str:
    """Where two outcomes differ, in short."""
    (x, left), (y, right) = want, got
    if x[0] == "error" or y[0] == "error":
        a, b = (str(o[1:])[:150] for o in (x, y))
        return f"{x[0]} {a} became {y[0]} {b}"
    if isinstance(x[1], tuple) and isinstance(y[1], tuple):
        for i, (p, q) in enumerate(zip(x[1], y[1], strict=False)):
            if not same(p, q):
                return f"result {i}: {p!r} became {q!r}"
    if not same(left, right):
        return f"arguments: {left!r} became {right!r}"
    return f"{x[1]!r} became {y[1]!r}"


def kind(why: str) -> str:
    return " ".join(re.findall(r"[a-zA-Z]+", why)[:3])


def small(program: Program, why: str) -> Program:
    """A smaller program that fails like this."""

    def fails(p: Program) -> bool:
        try:
            compile(p.text(), "<p>", "exec")
        except SyntaxError:
            return False
        what, said = check(p)
        return what == "failed" and kind(said) == kind(why)

    return shrunk(program, fails)


def run(seed: int, start: int, count: int, length: int, show: int) -> Counter[str]:
    """Programs of a seed; prints those that fail."""
    counts: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for k in range(start, start + count):
        program = generate(seed * 1_000_000 + k, length)
        what, why = check(program)
        counts[what] += 1
        if what == "refused":
            refused[why] += 1
        if what == "failed" and counts[what] <= show:
            made = small(program, why)
            print(f"# seed {program.seed}: {check(made)[1]}\n{made.text()}", flush=True)
    for why, n in refused.most_common(12):
        print(f"refused {n}: {why}")
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--length", type=int, default=14)
    parser.add_argument("--show", type=int, default=5, help="failures that are printed")
    a = parser.parse_args()
    counts: Counter[str] = Counter()
    if a.count <= CHUNK:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        counts = run(a.seed, a.start, a.count, a.length, a.show)
        print(", ".join(f"{n} {k}" for k, n in sorted(counts.items())))
        return 1 if counts["failed"] else 0
    for start in range(a.start, a.start + a.count, CHUNK):  # scripts stay in memory
        count = min(CHUNK, a.start + a.count - start)
        options = {"count": count, "start": start, "seed": a.seed, "length": a.length,
                   "show": a.show}  # fmt: skip
        command = [sys.executable, "-m", "tools.script_programs"]
        command += [x for k, v in options.items() for x in (f"--{k}", str(v))]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        *said, last = done.stdout.splitlines() or [""]
        print("".join(f"{line}\n" for line in said if not line.startswith("refused ")), end="")
        parts = [x.split() for x in last.split(", ") if x]
        found = {k: int(n) for n, k in (p for p in parts if len(p) == 2 and p[0].isdigit())}
        counts.update(found)
        if sum(found.values()) != count:
            counts["failed"] += 1
            print(f"programs {start} to {start + count}: the process ended by {done.returncode}")
    print(", ".join(f"{n} {k}" for k, n in sorted(counts.items())))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
