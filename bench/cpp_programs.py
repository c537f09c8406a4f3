"""Programs in C++: small operations, a training step, compile time, beside PyTorch's.

    python bench/cpp_programs.py [--beside PYTHON]

One source is built against this package and, with `--beside`, against the PyTorch of another
interpreter; both run by turns. Times of operations are the smallest of many repeats, in ns.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import resource
import subprocess
import tempfile

import flambeau

SOURCE = r"""
#include <torch/torch.h>
#include <chrono>
#include <cstdio>

template <class F> void measure(const char* name, int count, F f) {
  double best = 1e30;
  for (int round = 0; round < 30; ++round) {
    auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) f();
    std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
    best = std::min(best, took.count() / count);
  }
  std::printf("%s %.0f\n", name, best);
}

int main() {
  torch::set_num_threads(1);
  auto x = torch::ones({4}), y = torch::ones({4}), w = torch::ones({4}, torch::requires_grad());
  auto m = torch::ones({8, 8});
  { torch::NoGradGuard off;
  measure("add", 2000, [&] { torch::add(x, y); });
  measure("add_number", 2000, [&] { x + 1; });
  measure("add_", 2000, [&] { x.add_(y); });
  measure("sum", 2000, [&] { x.sum(); });
  measure("view", 2000, [&] { x.view({2, 2}); });
  measure("index", 2000, [&] { m[1]; });
  measure("matmul", 2000, [&] { m.matmul(m); });
  }
  measure("add_recorded", 2000, [&] { torch::add(w, y); });
  torch::nn::Sequential net(torch::nn::Linear(8, 16), torch::nn::ReLU(), torch::nn::Linear(16, 1));
  torch::optim::SGD step(net->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  auto in = torch::randn({16, 8}), out = torch::randn({16, 1});
  measure("training_step", 200, [&] {
    step.zero_grad();
    torch::mse_loss(net->forward(in), out).backward();
    step.step();
  });
}
"""


def compiled(folder: pathlib.Path, name: str, flags: list[str]) -> tuple[pathlib.Path, float]:
    """The program, and the CPU seconds that compiling took."""
    (folder / "bench.cpp").write_text(SOURCE)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = ["g++", "-std=c++20", "-O2", "-w", "bench.cpp", "-o", name, *flags]
    subprocess.run(command, cwd=folder, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return folder / name, after.ru_utime - before.ru_utime


def ours() -> list[str]:
    package = pathlib.Path(flambeau.__file__).parent
    lib = package / "lib"
    return [f"-I{package / 'include'}", f"-L{lib}", "-lflambeau", f"-Wl,-rpath,{lib}"]


def theirs(python: str) -> list[str]:
    code = "import torch, pathlib; print(pathlib.Path(torch.__file__).parent)"
    run = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    home = pathlib.Path(run.stdout.strip())
    include = home / "include"
    return [
        f"-I{include}", f"-I{include / 'torch/csrc/api/include'}", f"-L{home / 'lib'}", "-ltorch",
        "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{home / 'lib'}",
    ]  # fmt: skip


def run(program: pathlib.Path, best: dict[str, float]) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    text = subprocess.run(
        [program], capture_output=True, text=True, check=True, env=environment
    ).stdout
    for line in text.splitlines():
        name, value = line.split()
        best[name] = min(best.get(name, 1e30), float(value))


def main() -> None:
    """Prints a line for each row: ours, theirs, the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--beside", help="a Python that has PyTorch")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        mine, seconds = compiled(folder, "ours", ours())
        a: dict[str, float] = {}
        b: dict[str, float] = {}
        other = None
        if given.beside:
            other, long = compiled(folder, "theirs", theirs(given.beside))
        for _ in range(given.rounds):
            run(mine, a)
            if other:
                run(other, b)
    for row, value in a.items():
        beside = f"{b[row]:10.0f}  {value / b[row]:.2f}" if row in b else ""
        print(f"{row:16}{value:10.0f}{beside}")
    beside = f"{long:10.1f}  {seconds / long:.2f}" if given.beside else ""
    print(f"{'compile, CPU s':16}{seconds:10.1f}{beside}")


if __name__ == "__main__":
    main()
