// Program: a compiled graph that runs without Python. It takes memory for its buffers, runs native
// loop nests and entries of the table on them in order, gives memory back at its last use, and
// makes the outputs. What is done when was decided when the graph was compiled
// (flambeau/_compiler/plan.py); this file does it, and refuses inputs that the program is not for.
#pragma once

#include "dispatch/op.h"
#include "python/geometry.h"
#include "python/library.h"

namespace flambeau::python {

// What runs a graph: its tensor outputs for inputs, which may be taken over. `numbers` are filled.
class Runner {
 public:
  virtual ~Runner() = default;
  virtual Tensors run(std::span<Input> inputs, Numbers& numbers) const = 0;
  // Is a result computed in the memory of the input whose new value it is?
  virtual bool in_place(size_t /*result*/) const { return false; }
};

// A part of an output: a tensor of the run, a constant, a number, or a tuple of these.
class Output {
 public:
  explicit Output(PyObject* spec);
  PyRef build(std::span<const Tensor> tensors, const Numbers& numbers) const;
  const Output& part(int64_t i) const { return items_[static_cast<size_t>(i)]; }
  int64_t length() const noexcept { return static_cast<int64_t>(items_.size()); }  // of a tuple
  int64_t tensors() const;  // one more than the highest index of a tensor in it

 private:
  enum Kind : uint8_t { TensorOf, Constant, Integer, Float, Tuple };
  Kind kind_;
  int64_t index_ = 0;
  PyRef constant_;
  std::vector<FloatFormula> formula_;  // one or none
  std::vector<Output> items_;
};

class Program final : public Runner {
 public:
  Program(PyObject* spec, PyObject* attached, LibraryFunction nests);
  Tensors run(std::span<Input> inputs, Numbers& numbers) const override;
  bool in_place(size_t result) const override {
    return result < results_.size() && changed_[results_[result].buffer];
  }
  size_t arity() const noexcept { return inputs_.size() - attached_.size(); }
  size_t tensors() const noexcept { return results_.size(); }
  const Output& output() const noexcept { return output_; }

 private:
  friend class Run;
  // What a nest found outside of its bounds: number of the check + 1, index, size; 0: nothing.
  using Fault = int64_t[3];
  using Function = void (*)(int k, void* const* buffers, const int64_t* symbols, int64_t* fault);
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Buffer {
    Geometry geometry;
    int64_t extent = -1;  // -1: known in a run alone
  };
  struct View {
    uint32_t buffer;
    Geometry geometry;
  };
  struct Argument {
    enum Kind : uint8_t { Constant, OneView, Views, Integer, Integers, Float } kind;
    uint32_t parameter;
    std::vector<View> views;  // a hole has the buffer kNone
    Geometry integers;        // as strides are none, its sizes
    int64_t number = 0;       // Integer: index
    std::vector<FloatFormula> formula;
  };
  struct Call {
    const OpDesc* op;
    BoxedCall function;  // the entry's, or one in its first argument's memory
    Values constants;    // of all parameters; those that vary are filled in
    std::vector<Argument> arguments;
    // Parameters that the entry changes: it is given copies, or what nothing else needs any more.
    struct Changed {
      uint32_t parameter, argument;  // argument: which of `arguments` it is
      bool last_use;
    };
    std::vector<Changed> changed;
    bool gives_changed;          // as results after its own
    bool spread;                 // its one result is a list
    std::vector<uint32_t> outs;  // none: it changes its first argument, a buffer
  };
  struct Check {
    ErrorKind kind;
    std::string text;  // {index} and {size} stand for what was found
  };
  struct Step {
    enum Kind : uint8_t { Allocate, Take, Free, Nest, Entry, Change } kind;
    uint32_t buffer = 0, other = 0;  // Take: the memory of `other`; Change: of an input, by a nest
    int64_t number = 0;              // Nest: its number in the library; Entry: index of the call
    std::vector<Check> checks = {};  // Nest: of indices that it computes
  };

  View view(PyObject* spec) const;
  Argument argument(const OpDesc& op, size_t i, PyObject* spec, Value& constant) const;
  Call call(PyObject* spec) const;
  Step step(PyObject* spec);
  static uint32_t changed_by(const Call& c);
  uint32_t buffer(PyObject* index) const;

  void run_nest(const Step& s, void* const* buffers, const int64_t* symbols) const {
    Fault fault = {};
    reinterpret_cast<Function>(const_cast<void*>(nests_.get()))(static_cast<int>(s.number), buffers,
                                                                symbols, fault);
    if (fault[0]) [[unlikely]]
      raise(s, fault);
  }
  [[noreturn]] static void raise(const Step& s, const Fault& fault);

  LibraryFunction nests_;  // null: there are none
  Sizes sizes_;
  std::vector<Input> attached_;  // the last inputs
  std::vector<Buffer> buffers_;
  std::vector<uint32_t> inputs_;  // buffer of each input; kNone: a number
  std::vector<bool> changed_;     // of each buffer: an input that the steps change
  std::vector<Step> steps_;
  std::vector<Call> calls_;
  std::vector<View> results_;
  Output output_;
};

// The runner that a Python object is: a `_Program`, or any callable.
std::shared_ptr<const Runner> runner_of(PyObject* object);
// An argument from Python; Error(Type) for what is neither tensor nor integer.
Input input_of(PyObject* o, size_t index);

bool init_program(PyObject* module);

}  // namespace flambeau::python
