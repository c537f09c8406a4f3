"""Operations that a program in C++ adds: found, called, differentiated, batched, taken away."""

from __future__ import annotations

import subprocess

PROGRAM = r"""
#include <cstdio>
#include <thread>

#include "autograd/engine.h"
#include "core/error.h"
#include "dispatch/registry.h"
#include "func/vmap.h"
#include "gen/ops.h"

using namespace flambeau;

#define CHECK(...) if (!(__VA_ARGS__)) std::printf("line %d: %s\n", __LINE__, #__VA_ARGS__)

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

static bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// The context is the number to multiply by.
static void scale(const OpDesc&, void* context, const Value* const* args, Value* results) {
  double by = args[1]->get<double>() * *static_cast<double*>(context);
  results[0] = ops::mul(args[0]->get<Tensor>(), wrapped_number(by));
}

static Tensor call(const OpDesc& op, const Tensor& x, double by) {
  return call_op(op, {x, by})[0].get<Tensor>();
}

static double first(const Tensor& x) {
  return ops::select(ops::flatten(x, 0, -1), 0, 0).item().to_double();
}

static void added_and_called() {
  const OpDesc& op = add_op("space::scale(Tensor x, float by=2.) -> Tensor", KernelFor::CPU,
                            {scale, std::make_shared<double>(10)});
  CHECK(find_op("space::scale") == &op && find_callee("space::scale").call == op.call);
  CHECK(!find_op("space::nope") && !find_op("scale"));
  CHECK(op.params.size() == 2 && op.params[0].type.base == TypeBase::Tensor);
  CHECK(std::string_view(op.params[1].default_text) == "2.");
  CHECK(to_text(op.added->schema) == "space::scale(Tensor x, float by=2.) -> Tensor");
  Tensor x = ops::ones(Ints{3});
  CHECK(first(call(op, x, 3)) == 30);
  CHECK(contains(error_of([&] { add_op("space::scale(Tensor x) -> Tensor"); }), "already"));
  CHECK(contains(error_of([&] { add_op("scale(Tensor x) -> Tensor"); }), "with a namespace"));
  CHECK(contains(error_of([&] { add_op("space::f(t x) -> Tensor"); }), "got t x"));
  const OpDesc& ours = *find_op("add");
  CHECK(contains(error_of([&] { set_kernel(ours, KernelFor::CPU, {}); }), "of the table"));

  // What the kernel does is recorded, unless it is opaque.
  set_requires_grad(x, true);
  CHECK(grad_fn(call(op, x, 3))->name() == std::string("MulBackward0"));
  set_kernel(op, KernelFor::CPU, {scale, std::make_shared<double>(1), false, true});
  Tensor y = call(op, x, 3);
  CHECK(contains(error_of([&] { run_backward({y}, {ops::ones(Ints{3})}, false, false, {}, true); }),
                 "backward through space::scale but no autograd formula"));

  // Batched: one call for each sample, or the rule.
  func::Level& level = func::enter_level(3, func::Randomness::Error);
  Tensor sample = func::add_batch(level, detach(x), 0);
  Tensor looped = func::remove_batch(level, call(op, sample, 5), 0);
  CHECK(looped.sizes() == Ints{3} && first(looped) == 5);
  set_vmap(op, [&](const Values& args, uint32_t batched, int64_t batch) {
    CHECK(batched == 1 && batch == 3);
    return Values{Value(ops::add(args[0].get<Tensor>(), wrapped_number(100)))};
  });
  CHECK(first(func::remove_batch(level, call(op, sample, 5), 0)) == 101);
  func::leave_level(level);

  remove_op(op);
  CHECK(!find_op("space::scale") && contains(error_of([&] { call(op, x, 1); }), "is gone"));
  add_op("space::scale(Tensor x) -> Tensor");
  CHECK(contains(error_of([&] { call_op(*find_op("space::scale"), {x}); }), "it has no kernel"));
}

static void threads() {
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t)
    all.emplace_back([t] {
      for (int i = 0; i < 100; ++i) {
        std::string name = concat("threads::f", t, "_", i);
        const OpDesc& op = add_op(name + "(Tensor x, float by) -> Tensor", KernelFor::AnyDevice,
                                  {scale, std::make_shared<double>(i)});
        CHECK(find_op(name) == &op && first(call(op, ops::ones(Ints{2}), 1)) == i);
      }
    });
  for (std::thread& t : all) t.join();
  CHECK(added_ops().size() >= 400);
}

int main() {
  added_and_called();
  threads();
}
"""


def test_a_program_adds_operations(compile_program):
    done = subprocess.run([compile_program(PROGRAM)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
