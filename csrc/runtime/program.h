// Program: a compiled graph that runs without Python. It takes memory for its buffers, runs native
// loop nests and entries of the table on them in order, gives memory back at its last use, and
// makes the outputs. What is done when was decided when the graph was compiled
// (flambeau/_compiler/plan.py); this file does it, and refuses inputs that the program is not for.
#pragma once

#include "dispatch/op.h"
#include "runtime/geometry.h"
#include "runtime/library.h"

namespace flambeau::runtime {

// What runs a graph: its tensor outputs for inputs, which may be taken over. `numbers` are filled.
class Runner {
 public:
  virtual ~Runner() = default;
  virtual Tensors run(std::span<Input> inputs, Numbers& numbers) const = 0;
  // Is a result computed in the memory of the input whose new value it is?
  virtual bool in_place(size_t /*result*/) const { return false; }
};

class Program final : public Runner {
 public:
  // (sizes, buffers, inputs, steps, outputs' views), the last inputs, what runs the nests (null:
  // there are none). Error(Type) and Error(Value) for what describes no program.
  Program(const Tree& spec, std::vector<Input> attached, LibraryFunction nests);
  Tensors run(std::span<Input> inputs, Numbers& numbers) const override;
  bool in_place(size_t result) const override {
    return result < results_.size() && results_[result].buffer != kNone &&
           changed_[results_[result].buffer];
  }
  size_t arity() const noexcept { return inputs_.size() - attached_.size(); }
  size_t tensors() const noexcept { return results_.size(); }

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
    bool whole = false;  // all of a buffer that an entry gives, as it gives it
  };
  struct Argument {
    using enum ArgumentKind;
    ArgumentKind kind;
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
    std::vector<const Value*> places;  // where the constants lie
    std::vector<Argument> arguments;
    // Parameters that the entry changes: it is given copies, or what nothing else needs any more.
    struct Changed {
      uint32_t parameter, argument;  // argument: which of `arguments` it is
      bool last_use;
    };
    std::vector<Changed> changed;
    bool gives_changed = false;  // as results after its own
    bool spread = false;         // its one result is a list
    bool direct = false;         // its one result is a tensor that goes into its buffer as it is
    std::vector<uint32_t> outs;  // none: it changes its first argument, a buffer
  };
  struct Check {
    ErrorKind kind;
    std::string text;  // {index} and {size} stand for what was found
  };
  struct Step {
    using enum StepKind;
    StepKind kind;
    uint32_t buffer = 0, other = 0;  // Take: the memory of `other`; Change: of an input, by a nest
    int64_t number = 0;              // Nest: its number in the library; Entry: index of the call
    std::vector<Check> checks = {};  // Nest: of indices that it computes
  };

  View view(const Tree& spec) const;
  Argument argument(const OpDesc& op, size_t i, const Tree& spec, Value& constant) const;
  Call call(const Tree& spec) const;
  Step step(const Tree& spec);
  static uint32_t changed_by(const Call& c);
  uint32_t buffer(const Tree& index) const;

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
};

}  // namespace flambeau::runtime
