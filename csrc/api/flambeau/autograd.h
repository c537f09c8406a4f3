// Derivatives in C++: backward and grad, guards, hooks through Tensor, functions with a derivative
// of their own.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "autograd/node.h"
#include "flambeau/ivalue.h"

namespace flambeau {

using Edges = std::vector<Edge>;

// Guards: what they say holds until the end of the block, on this thread.
// (NoGradGuard: dispatch/modes.h)
struct AutoGradMode : ModeGuard<bool> {
  explicit AutoGradMode(bool on) : ModeGuard(&Modes::grad, on) {}
};
class InferenceMode {
 public:
  explicit InferenceMode(bool on = true)
      : grad_(&Modes::grad, on ? false : modes.grad), inference_(&Modes::inference, on) {}
  static bool is_enabled() { return modes.inference; }

 private:
  ModeGuard<bool> grad_, inference_;
};
struct GradMode {
  static bool is_enabled() { return modes.grad; }
  static void set_enabled(bool on) { modes.grad = on; }
};

// Inside, operations are not recorded, and those of the program's run below their kernels for
// `Autograd`: what such a kernel calls its operation under.
class AutoDispatchBelowAutograd {
 public:
  AutoDispatchBelowAutograd();
  ~AutoDispatchBelowAutograd();
  AutoDispatchBelowAutograd(const AutoDispatchBelowAutograd&) = delete;

 private:
  NoGradGuard no_grad_;
  std::shared_ptr<void> below_;
};
using AutoDispatchBelowADInplaceOrView = AutoDispatchBelowAutograd;
using AutoNonVariableTypeMode = AutoDispatchBelowAutograd;

namespace autograd {

using Variable = Tensor;
using variable_list = std::vector<Tensor>;
using tensor_list = std::vector<Tensor>;
using Node = flambeau::Node;
using Edge = Node::NextEdge;
using edge_list = std::vector<Edge>;
using flambeau::AutoGradMode;
using flambeau::GradMode;

// Gradients of `tensors` (each of one element, or with its own in `grad_tensors`) are added to the
// leaves, or to `inputs` alone.
void backward(const variable_list& tensors, const variable_list& grad_tensors = {},
              std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
              const variable_list& inputs = {});
// The gradients of `outputs` with respect to `inputs`. Error(Runtime) when one was not used, unless
// `allow_unused`: then it is undefined.
variable_list grad(const variable_list& outputs, const variable_list& inputs,
                   const variable_list& grad_outputs = {},
                   std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                   bool allow_unused = false);

// What a function of the program's keeps between its forward and its backward.
class AutogradContext {
 public:
  AutogradContext() = default;
  AutogradContext(const AutogradContext&) = delete;

  // Tensors for backward: inputs or outputs of forward, kept so that a change in place is noticed.
  void save_for_backward(variable_list tensors) { to_save_ = std::move(tensors); }
  variable_list get_saved_variables() const;
  // Inputs that forward changed in place; outputs that have no derivative.
  void mark_dirty(const variable_list& inputs) { dirty_ = inputs; }
  void mark_non_differentiable(const variable_list& outputs) { fixed_ = outputs; }
  // Are gradients of outputs that were not used zeros (the default) or undefined?
  void set_materialize_grads(bool on) { materialize_ = on; }
  // Does the running backward ask for the gradient of argument i of forward?
  bool needs_input_grad(size_t i) const;

  // Anything else
  std::map<std::string, IValue> saved_data;

 private:
  friend class FunctionNode;
  friend struct FunctionCall;
  variable_list to_save_, dirty_, fixed_;
  std::vector<SavedTensor> saved_;
  bool materialize_ = true;
  flambeau::Node* node_ = nullptr;
  std::vector<std::pair<size_t, size_t>> places_;  // of each argument: its first edge, how many
};

// The node of a function of the program's.
class FunctionNode final : public flambeau::Node {
 public:
  using Backward = variable_list (*)(AutogradContext*, variable_list);
  FunctionNode(std::string name, Backward backward) : name_(std::move(name)), backward_(backward) {
    context.node_ = this;
  }
  const char* name() const override { return name_.c_str(); }
  Tensors apply(Tensors&& grads) override;
  void release_saved() override;

  AutogradContext context;

 private:
  std::string name_;
  Backward backward_;
};

// One call of a function of the program's: which of its arguments are tensors, and its results.
struct FunctionCall {
  FunctionCall(const std::type_info& type, FunctionNode::Backward backward);

  template <class A>
  void argument(const A& x) {
    using T = std::decay_t<A>;
    const size_t first = inputs_.size();
    if constexpr (std::is_same_v<T, Tensor>)
      inputs_.push_back(x);
    else if constexpr (std::is_same_v<T, std::optional<Tensor>>)
      inputs_.push_back(x.value_or(Tensor()));
    else if constexpr (std::is_same_v<T, variable_list> || std::is_same_v<T, TensorList>)
      inputs_.insert(inputs_.end(), x.begin(), x.end());
    node_->context.places_.emplace_back(first, inputs_.size() - first);
  }
  AutogradContext* begin();  // records the edges; forward runs after it
  variable_list end(variable_list results);

 private:
  Ref<FunctionNode> node_;
  Tensors inputs_;
  bool recorded_ = false;
};

// A function with a derivative of its own:
//
//   struct Double : torch::autograd::Function<Double> {
//     static Tensor forward(AutogradContext* ctx, Tensor x) { return x * 2; }
//     static tensor_list backward(AutogradContext* ctx, tensor_list grads) { return {grads[0] * 2};
//     }
//   };
//   Double::apply(x);
//
// backward returns one gradient for each argument of forward, undefined for those that are no
// tensors; forward returns a tensor or a list of them.
template <class T>
struct Function {
  template <class X = T, class... Args>
  static auto apply(Args&&... args)
      -> decltype(X::forward(static_cast<AutogradContext*>(nullptr), std::forward<Args>(args)...)) {
    FunctionCall call(typeid(X), &X::backward);
    (call.argument(args), ...);
    AutogradContext* context = call.begin();
    using Result =
        decltype(X::forward(static_cast<AutogradContext*>(nullptr), std::forward<Args>(args)...));
    auto run = [&]() -> Result {
      NoGradGuard no_grad;
      ModeGuard<bool> no_tangents(&Modes::forward_grad, false);
      return X::forward(context, std::forward<Args>(args)...);
    };
    if constexpr (std::is_same_v<std::decay_t<Result>, Tensor>)
      return call.end({run()})[0];
    else
      return call.end(run());
  }
};

bool any_variable_requires_grad(const variable_list& tensors);

// Anomaly mode: errors of backward say where the forward call was.
struct AnomalyMode {
  static bool is_enabled();
  static void set_enabled(bool on, bool check_nan = true);
};
class DetectAnomalyGuard {
 public:
  explicit DetectAnomalyGuard(bool check_nan = true);
  ~DetectAnomalyGuard();
  DetectAnomalyGuard(const DetectAnomalyGuard&) = delete;

 private:
  bool enabled_, check_nan_;
};

// Forward mode: tensors that have a tangent inside of a level.
namespace forward_ad {
uint64_t enter_dual_level();
void exit_dual_level(uint64_t level);
Tensor make_dual(const Tensor& primal, const Tensor& tangent);
// The value and its tangent; undefined: it has none.
std::tuple<Tensor, Tensor> unpack_dual(const Tensor& dual);
}  // namespace forward_ad

}  // namespace autograd
}  // namespace flambeau
