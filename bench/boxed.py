"""Calls below Python: a boxed call of an entry, and a step of a compiled program that is one.

    python bench/boxed.py [--rounds N]

Prints the least time of many repeats in ns: `add` of two tensors of 4 floats as a C++ program calls
its entry with boxed arguments, as a step of a program of 200 of them, and from Python beside them.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import tempfile
import time
from collections.abc import Callable

import flambeau
from flambeau import _C
from flambeau._ir.enumerations import ArgumentKind, OutputKind, StepKind

SOURCE = r"""
#include <flambeau/flambeau.h>
#include <flambeau/dispatch/registry.h>
#include <algorithm>
#include <chrono>
#include <cstdio>

int main() {
  using namespace flambeau;
  const OpDesc& add = *find_op("add");
  NoGradGuard off;
  const Value x(torch::ones({4})), y(torch::ones({4})), one(int64_t(1));
  const Value* args[] = {&x, &y, &one};
  double best = 1e30;
  for (int round = 0; round < 2000; ++round) {
    auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < 200; ++i) {
      Value result;
      add.call(add, args, &result);
    }
    std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
    best = std::min(best, took.count() / 200);
  }
  std::printf("%.0f\n", best);
}
"""
STEPS = 200


def boxed(folder: pathlib.Path) -> float:
    """A boxed call from C++."""
    root = pathlib.Path(flambeau.__file__).parent
    source, program = folder / "boxed.cpp", folder / "boxed"
    source.write_text(SOURCE)
    lib = root / "lib"
    flags = ["-O2", "-std=c++20", f"-I{root / 'include'}", f"-L{lib}", f"-Wl,-rpath,{lib}"]
    subprocess.run(["g++", str(source), "-o", str(program), *flags, "-lflambeau"], check=True)
    return float(subprocess.run([program], check=True, capture_output=True, text=True).stdout)


def least(f: Callable[[], object], rounds: int) -> float:
    """The least time of one step, in ns."""
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter_ns()
        f()
        best = min(best, time.perf_counter_ns() - began)
    return best / STEPS


def step(x: flambeau.Tensor, rounds: int) -> float:
    """A step of a program whose steps are entries, each with the memory of the last but one."""
    like = (flambeau.float32, (4,), (1,), 0)
    steps: list[tuple[object, ...]] = []
    for k in range(STEPS):
        view = (ArgumentKind.OneView, (k, like))
        args = (view, view, (ArgumentKind.Constant, 1))
        steps.append((StepKind.Entry, "add", args, (k + 1,), (), False, False, ()))
        if k:
            steps.append((StepKind.Free, k))
    output = (OutputKind.TensorOf, 0)
    spec = (((), (), ()), (like,) * (STEPS + 1), (0,), tuple(steps), ((STEPS, like),), output)
    program = _C._Program(spec, (), None)
    return least(lambda: program(x), rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5000)
    rounds = parser.parse_args().rounds
    flambeau.set_num_threads(1)
    x = flambeau.zeros(4)

    def from_python() -> None:
        for _ in range(STEPS):
            x + x

    with tempfile.TemporaryDirectory() as folder:
        print(f"boxed call            {boxed(pathlib.Path(folder)):.0f} ns")
    print(f"step of a program     {step(x, rounds):.0f} ns")
    print(f"the same from Python  {least(from_python, rounds):.0f} ns")


if __name__ == "__main__":
    main()
