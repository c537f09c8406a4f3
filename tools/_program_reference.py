"""The process that runs programs in PyTorch: `_program_draw`, whose tensors are PyTorch's here.

Reads requests from standard input and answers on standard output, both pickled: a number draws the
program of that seed, a `Program` is run. The answer is a program and what each set of sizes left to
see, or None. Tensors travel as NumPy arrays, for the asking process has tensors of another library.
"""

from __future__ import annotations

import pickle
import sys
import warnings
from dataclasses import replace
from typing import Any, BinaryIO

import torch

sys.modules["flambeau"] = torch

from . import _program_draw as draw  # noqa: E402
from ._agreement import Seen  # noqa: E402


def drawn(seed: int, length: int) -> draw.Program | None:
    """The program of that seed, which may be an error."""
    try:
        return draw.generate(seed, length, errors=True)
    except RuntimeError:
        return None


def portable(x: Any) -> Any:
    """A tensor as its dtype's name and an array, a dtype as its name."""
    if isinstance(x, torch.dtype):
        return ("dtype", str(x).rpartition(".")[2])
    if not isinstance(x, torch.Tensor):
        return ("value", x)
    name = str(x.dtype).rpartition(".")[2]
    x = x.detach().resolve_conj().resolve_neg()
    if name in ("bfloat16", "float16"):  # NumPy has no bfloat16
        x = x.float()
    return ("tensor", name, x.contiguous().numpy().copy())


def sent(s: Seen) -> Seen:
    """What was seen, without tensors of this library."""
    leaves, changed, grads = ([portable(x) for x in xs] for xs in (s.leaves, s.changed, s.grads))
    facts = [(portable(f[0]), *f[1:]) for f in s.facts]
    return replace(s, leaves=leaves, changed=changed, grads=grads, facts=facts)


def answer(program: draw.Program) -> Any:
    seen = [program.seen(program.function(), which) for which in (0, 1)]
    if any(
        x.dtype == torch.complex32 for s in seen for x in (*s.leaves, *s.grads) if x is not None
    ):
        return None  # a type that NumPy and we have not
    return program, [sent(s) for s in seen]


def serve(requests: BinaryIO, answers: BinaryIO, length: int) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    while True:
        try:
            asked = pickle.load(requests)
        except EOFError:
            return
        program = drawn(asked, length) if isinstance(asked, int) else asked
        pickle.dump(program and answer(program), answers)
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer, int(sys.argv[1]))
