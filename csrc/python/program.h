// Programs of compiled graphs (runtime/program.h) as Python has them: made of a description, called
// with tensors and numbers.
#pragma once

#include "python/pybase.h"
#include "runtime/program.h"

namespace flambeau::python {

using runtime::Input;
using runtime::Numbers;
using runtime::Runner;

// A part of an output: a tensor of the run, a constant, a number, or a tuple of these.
class Output {
 public:
  explicit Output(PyObject* spec);
  PyRef build(std::span<const Tensor> tensors, const Numbers& numbers) const;
  const Output& part(int64_t i) const { return items_[static_cast<size_t>(i)]; }
  int64_t length() const noexcept { return static_cast<int64_t>(items_.size()); }  // of a tuple
  int64_t tensors() const;  // one more than the highest index of a tensor in it

 private:
  using enum OutputKind;
  OutputKind kind_;
  int64_t index_ = 0;
  PyRef constant_;
  std::vector<runtime::FloatFormula> formula_;  // one or none
  std::vector<Output> items_;
};

// The runner that a Python object is: a `_Program`, or any callable.
std::shared_ptr<const Runner> runner_of(PyObject* object);
// An argument from Python; Error(Type) for what is neither tensor nor integer.
Input input_of(PyObject* o, size_t index);

bool init_program(PyObject* module);

}  // namespace flambeau::python
