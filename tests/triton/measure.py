"""How many nests of known graphs are emitted, compile to machine code, and agree when interpreted.

    python tests/triton/measure.py compile  # full sizes; needs Triton, no GPU
    TRITON_INTERPRET=1 python tests/triton/measure.py interpret  # small, beside C++ and eager

Nests are those of forward and backward together, in float32 and again in float64. A nest agrees
if every buffer that it writes is what its C++ writes from the same inputs, to 1e-5 (1e-13 in
float64) of the largest number that it reads or writes, times the root of how many are summed.

Results are the outputs and gradients. In float64 they are eager's, to 1e-10 of the largest entry
(`as eager`). In float32 a graph may magnify roundings: the small ResNet-18 normalises over two
numbers, and eager's own gradients are wrong by 1%. There (`as exact`) the error is held against
that of eager: at most four times eager's largest, and 1e-5, both of the largest entry.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "compiler")]

import graphs  # noqa: E402
from triton_programs import Launched, empty, program_of  # noqa: E402

import flambeau as torch  # noqa: E402
from flambeau._aot import aot, callable_of  # noqa: E402
from flambeau._compiler import emit_cpp, toolchain, triton_module  # noqa: E402
from flambeau._compiler.nest import Nest  # noqa: E402
from flambeau._compiler.scalar import MEMORY  # noqa: E402
from flambeau._compiler.triton_scalar import Refused  # noqa: E402
from flambeau._compiler.triton_tiles import plan  # noqa: E402
from flambeau._trace import trace  # noqa: E402


class Counts(dict):
    """Figures of one graph by name."""

    def more(self, name: str, n: int = 1) -> None:
        self[name] = self.get(name, 0) + n


def ahead(case: graphs.Case) -> Any:
    graph = trace(case.f, case.inputs, "captured", False)
    return aot(graph, [bool(x.requires_grad) for x in (*case.inputs, *graph.attached)])


def compiled(case: graphs.Case, counts: Counts) -> None:
    """Emits and compiles every nest of a graph."""
    import compiling

    def back_end(graph: Any) -> Any:
        program, _ = program_of(graph)
        nests = [s for s in program.steps if isinstance(s, Nest)]
        counts.more("calls", len(program.steps) - len(nests))
        for nest in nests:
            counts.more("nests")
            try:
                text = triton_module.source([nest], program.symbols)
            except Refused as e:
                print(f"    refused: {e}")
                continue
            counts.more("emitted")
            counts.more(plan(nest).strategy)
            made = compiling.compiled(triton_module.load(text))
            counts.more("compiled")
            counts["registers"] = max(counts.get("registers", 0), *(k.registers for k in made))
            for k in made:
                if k.spilled:
                    counts.more("with a stack")
                    print("    stack", k.spilled, nest.domain, nest.reduced, plan(nest).strategy)
        return lambda *inputs: None

    callable_of(ahead(case), back_end)


class Compared(Launched):
    """Nests run both ways from the same inputs."""

    counts: Counts

    def __init__(self, program: Any, graph: Any, loader: Any) -> None:
        super().__init__(program, graph, loader)
        self.nests = [s for s in program.steps if isinstance(s, Nest)]
        memory = {name: MEMORY[b.dtype] for name, b in program.buffers.items()}
        source = emit_cpp.source(self.nests, memory, program.symbols)
        self.library = toolchain.load(source) if self.nests else None
        if self.library is not None:
            self.cpp = ctypes.CDLL(None, handle=self.library.handle)

    def allocate(self, b: Any) -> Any:
        return super().allocate(b).zero_()  # nests may write a part of a buffer

    def launch(self, k: int, buffers: Any, sizes: list[int]) -> None:
        written = sorted(int(b[1:]) for b in self.nests[k].writes if b.startswith("b"))
        before = {i: buffers[i].clone() for i in written}
        pointers = (ctypes.c_void_p * (max(buffers) + 1))()
        for i, x in buffers.items():
            pointers[i] = x.data_ptr()
        self.cpp.run(k, pointers, (ctypes.c_int64 * max(1, len(sizes)))(*sizes))
        theirs = {i: buffers[i].clone() for i in written}
        for i in written:
            buffers[i].copy_(before[i])
        self.module.run(k, buffers, sizes, empty)
        self.counts.more("nests")
        touched = {int(b[1:]) for b in self.nests[k].reads if b.startswith("b")} | set(written)
        nest = self.nests[k]
        summed = math.prod(n for d, n in enumerate(nest.domain) if d in nest.reduced)
        scale = max(largest(buffers[i]) for i in touched) * math.sqrt(summed)  # sums may cancel
        wide = any(buffers[i].dtype is torch.float64 for i in touched)
        bound = (1e-13 if wide else 1e-5) * scale
        same = all(close(buffers[i], theirs[i], bound) for i in written)
        self.counts.more("agree", same)
        if not same:
            print("    differs:", self.nests[k])


def largest(x: Any) -> float:
    """The largest entry, 1 at least."""
    x = x.detach().to(torch.float64).abs()
    finite = x[x.isfinite()]
    return max(1.0, finite.max().item()) if finite.numel() else 1.0


def close(a: Any, b: Any, bound: float) -> bool:
    a, b = (x.detach().to(torch.float64) for x in (a, b))
    return bool(torch.allclose(a, b, rtol=0, atol=bound, equal_nan=True))


def interpreted(case: graphs.Case, counts: Counts) -> None:
    """Runs a graph forward and backward, nest by nest, in both precisions."""
    wide = case.doubled()
    exact, short = results(wide, wide.f), results(case, case.f)
    counts.more("results", len(exact))
    ours = results(wide, launched(wide, counts))
    counts.more("as eager", sum(e <= 1e-10 for e in errors(ours, exact)))
    bound = 1e-5 + 4 * max(errors(short, exact))
    ours = results(case, launched(case, counts))
    counts.more("as exact", sum(e <= bound for e in errors(ours, exact)))


def results(case: graphs.Case, f: Any) -> list[Any]:
    """What `f` makes of a case's inputs, and the gradients of its leaves."""
    y = f(*case.inputs)
    weights = torch.linspace(0.5, 1.5, y.numel(), dtype=torch.float64).to(y.dtype).view(y.shape)
    return [y.detach(), *torch.autograd.grad((y * weights).sum(), case.leaves)]


def errors(given: list[Any], exact: list[Any]) -> list[float]:
    """The largest error of each, in parts of the largest entry; NaN and infinities differ."""
    pairs = zip(given, exact, strict=True)
    return [(a.double() - b).abs().max().item() / largest(b) for a, b in pairs]


def launched(case: graphs.Case, counts: Counts) -> Any:
    """The function of a case with nests run by Triton's interpreter, and beside it by C++."""
    import interpreting

    def back_end(graph: Any) -> Any:
        program, written = program_of(graph)
        run = Compared(program, written, interpreting.load_module)
        run.counts = counts
        return lambda *inputs: run([*inputs, *written.attached])

    run = callable_of(ahead(case), back_end)
    return lambda *inputs: run(*inputs)[0]


def main(what: str, only: list[str]) -> None:
    full = what == "compile"
    if full == (os.environ.get("TRITON_INTERPRET") == "1"):
        sys.exit("measure: TRITON_INTERPRET=1 goes with `interpret`, and with it alone")
    torch.manual_seed(0)
    for name, make in graphs.cases(full).items():
        if only and name not in only:
            continue
        start, counts = time.monotonic(), Counts()
        (compiled if full else interpreted)(make(), counts)
        took = f"{time.monotonic() - start:.0f} s"
        print(name, *(f"{k}={v}" for k, v in counts.items()), took, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
