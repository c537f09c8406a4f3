"""Random programs, run eagerly here and by PyTorch: `python -m tools.parity_programs --count 2000`.

PyTorch has to be installed: it draws the programs (what it accepts is a step) in a process of its
own. Compared are results with strides and shared memory, arguments that were changed, gradients,
and the classes of errors. A program that differs is made smaller while it does, and printed.
"""

from __future__ import annotations

import argparse
import importlib.util
import pickle
import re
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import flambeau as torch

from ._agreement import Seen, difference
from ._program_draw import Program, shrunk

#: differences that are meant, by what is said of them and their program, with reasons
MEANT = Path(__file__).with_name("parity_programs.txt")


class Reference:
    """PyTorch, in a process that answers requests."""

    def __init__(self, length: int) -> None:
        if importlib.util.find_spec("torch") is None:
            raise SystemExit("parity_programs: expected PyTorch to be installed, found none")
        command = [sys.executable, "-m", "tools._program_reference", str(length)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, request: int | Program) -> tuple[Program, list[Seen]] | None:
        """The program of a seed, or the one given, and what PyTorch shows of it."""
        assert self.process.stdin and self.process.stdout
        pickle.dump(request, self.process.stdin)
        self.process.stdin.flush()
        answer = pickle.load(self.process.stdout)
        return answer and (answer[0], [_received(s) for s in answer[1]])

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def _ours(x: Any) -> Any:
    match x:
        case ("dtype", name):
            return getattr(torch, name)
        case ("tensor", name, array):
            return torch.from_numpy(array).to(getattr(torch, name))
    return x[1]


def _received(s: Seen) -> Seen:
    leaves, changed, grads = ([_ours(x) for x in xs] for xs in (s.leaves, s.changed, s.grads))
    facts = [(_ours(f[0]), *f[1:]) for f in s.facts]
    return replace(s, leaves=leaves, changed=changed, grads=grads, facts=facts)


def _kind_of_error(s: Seen) -> list[str]:
    """Where and of what class."""
    assert s.error is not None
    parts = s.error.split(":")
    return parts[: 2 if parts[0] == "backward" else 1]


def disagreement(program: Program, theirs: list[Seen]) -> str:
    """How the program differs here from what PyTorch shows of it, or an empty string."""
    for which, want in enumerate(theirs):
        got = program.seen(program.function(), which)
        why = difference(got, want, program.tolerance)
        if not why and want.error and _kind_of_error(got) != _kind_of_error(want):
            why = f"error: {got.error} where PyTorch has {want.error}"
        if why:
            return why.replace("where eager has", "where PyTorch has")
    return ""


def kind(why: str) -> str:
    """What stays the same while a program is made smaller."""
    return " ".join(x for x in why.split()[:9] if not any(c.isdigit() for c in x))


def small(program: Program, why: str, reference: Reference) -> Program:
    """A smaller program that differs like this."""

    def differs(p: Program) -> bool:
        answer = reference.ask(p)
        return answer is not None and kind(disagreement(*answer)) == kind(why)

    return shrunk(program, differs)


def script(program: Program) -> str:
    """The program with its arguments."""
    inputs = "\n".join(f"#   t{i}: {x}" for i, x in enumerate(program.inputs))
    return f"# seed {program.seed}, numbers {program.numbers}\n{inputs}\n{program.text()}"


def meant() -> list[re.Pattern[str]]:
    """What differences that are meant look like."""
    lines = MEANT.read_text().splitlines()
    return [re.compile(x.split("  # ")[0], re.S) for x in lines if not x.startswith("#")]


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--count", type=int, default=2000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--length", type=int, default=12, help="steps of a program")
    p.add_argument("--whole", action="store_true", help="do not make programs smaller")
    a = p.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    known = meant()
    reference = Reference(a.length)
    programs = found = allowed = 0
    for number in range(a.count):
        answer = reference.ask(a.seed * 1_000_000 + number)
        if answer is None:
            continue
        programs += 1
        program, theirs = answer
        why = disagreement(program, theirs)
        if not why:
            continue
        if not a.whole:
            program, theirs = reference.ask(small(program, why, reference)) or answer
            why = disagreement(program, theirs) or why
        text = f"{why}\n{script(program)}"
        if any(pattern.search(text) for pattern in known):
            allowed += 1
            continue
        found += 1
        print(text, flush=True)
    reference.close()
    print(f"{programs} programs: {found} differ from PyTorch's, {allowed} as they are meant to")
    return 1 if found or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
