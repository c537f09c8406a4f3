"""Scripts in programs of C++: a text is read, held to its structure and run without Python."""

from __future__ import annotations

import importlib
import subprocess

import flambeau as torch
from flambeau._script import text

PROGRAM = r"""
#include <cstdio>
#include <thread>

#include "autograd/meta.h"
#include "core/error.h"
#include "gen/ops.h"
#include "script/lower.h"
#include "script/run.h"
#include "script/text.h"

using namespace flambeau;

#define CHECK(...) if (!(__VA_ARGS__)) std::printf("line %d: %s\n", __LINE__, #__VA_ARGS__)

static const char* const kText = R"(@TEXT@)";

static Value call(const script::Code& code, Values args) {
  script::Invocation run(code);
  for (size_t i = 0; i < args.size(); ++i) run[i] = std::move(args[i]);
  return run.run();
}

int main() {
  script::Unit unit = script::read(kText);
  script::check(unit);
  CHECK(script::write(unit) == kText);
  auto program = script::lower(std::move(unit), nullptr);
  for (auto& why : program->reasons)
    if (!why.empty()) std::printf("%s\n", why.c_str());

  const script::Code* fibonacci = program->find("script_program.fibonacci");
  CHECK(fibonacci && call(*fibonacci, {Value(int64_t{20})}).get<int64_t>() == 6765);
  CHECK(program->find("nowhere") == nullptr);

  const script::Code* steps = program->find("script_program.steps");
  Tensor w = ops::ones(Ints{3});
  set_requires_grad(w, true);
  Value out = call(*steps, {w, int64_t{4}});
  auto& parts = script::expect_box<script::Tuple>(out).items;
  CHECK(parts[0].get<Tensor>().requires_grad() && script::list_size(parts[1]) == 4);
  CHECK(parts[2].get<std::string>() == "n=4, 2.5");

  try {
    call(*program->find("script_program.fails"), {Value(Ints{1, 2}), int64_t{5}});
    CHECK(false);
  } catch (const Error& e) {
    CHECK(std::string(e.what()) == "list index out of range" && e.kind == ErrorKind::Index);
  }
  auto passed = script::take_passed();
  CHECK(passed.size() == 2 && passed[0].function->name == "script_program.item" &&
        passed[1].function->name == "script_program.fails");

  // A module whose objects are made here.
  const script::Class* net = program->unit.find_class("script_program.Net");
  const script::Class* linear = program->unit.find_class("flambeau.nn.modules.linear.Linear");
  CHECK(net && linear);
  Value layer = script::make_box<script::Object>(*linear), module =
      script::make_box<script::Object>(*net);
  auto at = [](const Value& o, const char* n) -> Value& {
    return static_cast<script::Object&>(script::expect_box<script::Instance>(o)).at(n);
  };
  at(layer, "weight") = ops::full(Ints{2, 3}, 0.5);
  at(layer, "bias") = ops::ones(Ints{2});
  at(module, "layer") = layer;
  at(module, "scale") = w;
  at(module, "seen") = Value(Ints{});
  const script::Code* forward = program->find("script_program.Net.forward");
  Tensor y = call(*forward, {module, Value(ops::ones(Ints{3}))}).get<Tensor>();
  CHECK(y.requires_grad() && ops::select(y, 0, 1).item().to_double() == 2.5);
  CHECK(at(module, "seen").get<Ints>() == Ints{3});

  // None where a tensor is wanted is an error, whatever the types say.
  try {
    call(*steps, {Value(), int64_t{4}});
    CHECK(false);
  } catch (const Error& e) {
    CHECK(std::string(e.what()) == "mul(): argument 'input' must be Tensor, not None");
  }

  std::vector<std::thread> threads;
  for (int k = 0; k < 8; ++k)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i)
        CHECK(call(*fibonacci, {Value(int64_t{15})}).get<int64_t>() == 610);
    });
  for (auto& t : threads) t.join();

  try {
    call(*program->find("script_program.deep"), {Value(int64_t{0})});
    CHECK(false);
  } catch (const script::Raised& e) {
    CHECK(e.cls == "RecursionError");
  }
}
"""


SOURCE = """
from typing import List, Tuple
import flambeau as torch
from flambeau import Tensor, nn

class Counter:
    def __init__(self, n: int):
        self.n = n
        self.seen: List[int] = []

    def add(self, k: int) -> int:
        self.seen.append(k)
        self.n += k
        return self.n

def fibonacci(n: int) -> int:
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)

def steps(w: Tensor, n: int) -> Tuple[Tensor, List[int], str]:
    c = Counter(1)
    with torch.no_grad():
        x = torch.zeros(3)
    for i in range(n):
        x = torch.tanh(x + w * c.add(i))[None, :][0]
    assert n < 100, f"too many: {n} for {c.seen}"
    return x, c.seen, f"n={n}, {2.5}"

def item(xs: List[int], i: int) -> int:
    return xs[i]

def fails(xs: List[int], n: int) -> int:
    total = 0
    for i in range(n):
        total += item(xs, i)
    return total

def deep(n: int) -> int:
    return deep(n + 1)

class Net(nn.Module):
    seen: List[int]

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.scale = nn.Parameter(torch.ones(3))
        self.seen = []

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x.size(0))
        return self.layer(x * self.scale)

def main(w: Tensor, n: int) -> Tuple[int, Tensor, List[int], str, int, int]:
    x, xs, s = steps(w, n)
    return fibonacci(n), x, xs, s, fails(xs, n), deep(n)
"""


def test_scripts_run_without_python(compile_program, tmp_path, monkeypatch):
    (tmp_path / "script_program.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("script_program")
    unit = torch.jit.script(module.main)._program.unit
    net = torch.jit.script(module.Net())._script_program.unit
    unit.functions.update(net.functions)
    unit.classes.update(net.classes)
    written = text.write(unit)
    program = compile_program(PROGRAM.replace("@TEXT@", written))
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
