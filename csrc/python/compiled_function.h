// CompiledFunction: what a captured graph is as the user wrote it. It runs the functional forward
// graph, records one node that runs the backward graph, writes back inputs that the function
// changes, and makes outputs that are views. The graphs themselves are Runners; the description is
// written by flambeau/_aot/runtime.py.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "autograd/node.h"
#include "python/program.h"

namespace flambeau::python {

class CompiledNode;

class CompiledFunction {
 public:
  explicit CompiledFunction(PyObject* spec);
  // The outputs; `only`: that one of a tuple of them.
  PyRef call(PyObject* const* args, size_t count, int64_t only) const;
  int64_t outputs() const noexcept { return output_.length(); }

 private:
  friend class CompiledNode;
  struct Alias {
    bool of_input;
    uint32_t index;
    bool whole;
    runtime::Geometry geometry;  // where it is not: of the view
  };

  Tensors forward(std::span<Input> inputs) const;
  // The results, with their history when `node` is given.
  void record(Tensors& results, const std::vector<Input>& inputs, const Ref<Node>& node) const;
  void save(CompiledNode& node, const std::vector<Input>& inputs, const Tensors& made,
            const Numbers& numbers) const;
  // Does an input lie in the storage of another that is changed? Functional graphs know nothing of
  // that: the function then runs as it was written.
  bool shares_what_changes(const std::vector<Input>& inputs) const;
  PyRef call_as_written(PyObject* const* args, size_t count, int64_t only) const;
  // May the inputs be changed? Asked before any of them is.
  void check_changes(const std::vector<Input>& inputs, bool recorded) const;
  void assign(const std::vector<Input>& inputs, const Tensors& results) const;
  Tensor alias_of(const Alias& a, const std::vector<Input>& inputs, const Tensors& results,
                  const Numbers& numbers) const;

  std::shared_ptr<const Runner> forward_;
  size_t given_;                 // inputs of a call
  std::vector<Input> attached_;  // those after them
  runtime::Sizes sizes_;
  std::vector<uint32_t> mutated_;  // inputs, in the order of the first results
  size_t results_;
  PyRef as_written_;           // null: there is none
  bool shows_inputs_ = false;  // an output lies in the memory of an input
  std::vector<Alias> aliases_;
  Output output_;
  // Backward: saved values, numbers, cotangents to gradients. `part` is the one for the cotangents
  // and the gradients of a call: some results may not have been used, others summed, so that all
  // elements are equal, and some gradients nobody asks for.
  struct Backward {
    struct Part {
      std::shared_ptr<const Runner> runner;
      std::vector<uint32_t> saved;
      std::vector<uint32_t> cotangents;
      std::vector<bool> spread;     // is the cotangent taken as a tensor without dims?
      std::vector<uint32_t> grads;  // inputs, in the order of the gradients
    };
    const Part& part(const Tensors& grads, const Node& node) const;
    // Of each gradient "1", or "0" where nobody asks for it; empty: all are asked for, or none.
    std::string wanted(const Node& node) const;

    std::vector<uint32_t> differentiable;  // results that have a cotangent
    std::vector<runtime::Geometry> cotangents;
    std::vector<uint32_t> numbers;  // symbols that it takes
    Part whole;
    std::vector<bool> reached;  // inputs that have a gradient: edges lead nowhere else
    // Makes the others, and where `whole` has no runner that too: of each cotangent "1", "0" where
    // there is none, "e" where its elements are equal, and behind a slash `wanted` -> a part.
    std::optional<PyCallable> make_part;
    // For backward through which gradients flow: inputs that are saved besides, after the values
    // that forward saves; and a maker: of each cotangent "1", or "0" where there is none, and
    // behind a slash `wanted`, to which of all these, of the numbers and of the cotangents it takes, a function of them that gives
    // pairs of an input and its gradient, and which saved values have cotangents, after those of
    // the results. Or to a str, why there is none.
    struct Recorded {
      std::vector<uint32_t> inputs;
      std::optional<PyCallable> make;
    } recorded;
    mutable std::mutex mutex;
    mutable std::map<std::string, std::unique_ptr<const Part>> parts;
  };
  std::shared_ptr<const Backward> backward_;  // null: there is none
};

// The node of one call.
class CompiledNode final : public Node {
 public:
  explicit CompiledNode(std::shared_ptr<const CompiledFunction::Backward> b) : b_(std::move(b)) {}
  const char* name() const override { return "CompiledFunctionBackward"; }
  Tensors apply(Tensors&& grads) override;
  void release_saved() override;
  bool is_shareable() const override { return true; }  // what it runs may be Python code

 private:
  friend class CompiledFunction;
  // `again`: what is saved is asked for once more.
  Tensors run(Tensors&& grads, bool again);
  Tensors of_samples(Tensors&& grads, bool again);
  // Recorded, where gradients are; none where that cannot be, and then `why`.
  std::optional<Tensors> run_recorded(Tensors& grads, bool again, std::string& why);
  // A saved value as a result of this node.
  Tensor as_result(const SavedTensor& saved, uint32_t nr) const;
  std::vector<Input> arguments(const CompiledFunction::Backward::Part& part, Tensors&& grads,
                               bool again);
  std::shared_ptr<const CompiledFunction::Backward> b_;
  std::mutex mutex_;  // of saved_
  std::vector<SavedTensor> saved_;
  bool values_are_outputs_ = false;
  Numbers numbers_;
};

bool init_compiled_function(PyObject* module);

}  // namespace flambeau::python
