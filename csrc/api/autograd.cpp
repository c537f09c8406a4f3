#define FLAMBEAU_API
#include "flambeau/flambeau.h"

#include <cxxabi.h>

#include "autograd/anomaly.h"
#include "autograd/custom_function.h"
#include "autograd/engine.h"
#include "autograd/forward_mode.h"
#include "autograd/generated.h"
#include "autograd/meta.h"
#include "gen/ops.h"

namespace flambeau::autograd {

static Edges edges_of(const variable_list& inputs, bool retained) {
  Edges edges;
  for (const Tensor& x : inputs) {
    FB_CHECK(x.defined() && flambeau::requires_grad(x),
             "One of the differentiated Tensors does not require grad");
    if (retained) flambeau::retain_grad(x);
    edges.push_back(gradient_edge(x));
  }
  return edges;
}

static variable_list cotangents(const variable_list& roots, const variable_list& given) {
  FB_CHECK(given.empty() || given.size() == roots.size(), "got ", roots.size(), " tensors and ",
           given.size(), " gradients");
  return given.empty() ? variable_list(roots.size()) : given;
}

void backward(const variable_list& tensors, const variable_list& grad_tensors,
              std::optional<bool> retain_graph, bool create_graph, const variable_list& inputs) {
  run_backward(tensors, cotangents(tensors, grad_tensors), retain_graph.value_or(create_graph),
               create_graph, edges_of(inputs, true), true);
}

variable_list grad(const variable_list& outputs, const variable_list& inputs,
                   const variable_list& grad_outputs, std::optional<bool> retain_graph,
                   bool create_graph, bool allow_unused) {
  FB_CHECK_VALUE(!inputs.empty(), "grad requires non-empty inputs.");
  Tensors found =
      run_backward(outputs, cotangents(outputs, grad_outputs), retain_graph.value_or(create_graph),
                   create_graph, edges_of(inputs, false), false);
  for (size_t i = 0; i < found.size(); ++i)
    FB_CHECK(allow_unused || found[i].defined(),
             "One of the differentiated Tensors appears to not have been used in the graph. Set "
             "allow_unused=True if this is the desired behavior.");
  return found;
}

variable_list AutogradContext::get_saved_variables() const {
  if (!node_ || saved_.empty()) return to_save_;
  variable_list out;
  for (const SavedTensor& s : saved_) out.push_back(s.unpack(*node_, true));
  return out;
}

bool AutogradContext::needs_input_grad(size_t i) const {
  FB_CHECK_INDEX(i < places_.size(), "needs_input_grad: forward has ", places_.size(),
                 " arguments, got the index ", i);
  auto [first, count] = places_[i];
  for (size_t k = first; k < first + count; ++k)
    if (node_ && node_->needs(k)) return true;
  return false;
}

Tensors FunctionNode::apply(Tensors&& grads) {
  variable_list given(outputs.size());
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    if (i < grads.size()) given[i] = grads[i];
    if (!given[i].defined() && context.materialize_ && outputs[i].defined)
      given[i] = cotangent(*this, {}, i);
  }
  variable_list found = backward_(&context, std::move(given));
  size_t want = 0;
  for (auto [first, count] : context.places_) want += count ? count : 1;
  while (found.size() > want && !found.back().defined()) found.pop_back();
  FB_CHECK(found.size() == want, "function ", name_,
           " returned an incorrect number of gradients (expected ", want, ", got ", found.size(),
           ")");
  Tensors out;
  size_t at = 0;
  for (auto [first, count] : context.places_) {
    if (count == 0) {
      FB_CHECK(!found[at].defined(), "function ", name_,
               " returned a gradient different than None at position ", at + 1,
               ", but the corresponding forward input was not a Variable");
      ++at;
    }
    for (size_t k = 0; k < count; ++k) out.push_back(found[at++]);
  }
  return out;
}

void FunctionNode::release_saved() {
  for (auto& s : context.saved_) s.reset();
}

static std::string name_of(const std::type_info& type) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  return "torch::autograd::CppNode<" + std::string(text ? text.get() : type.name()) + ">";
}

FunctionCall::FunctionCall(const std::type_info& type, FunctionNode::Backward backward)
    : node_(Ref<FunctionNode>::adopt(new FunctionNode(name_of(type), backward))) {}

AutogradContext* FunctionCall::begin() {
  for (const Tensor& x : inputs_) {
    FB_CHECK_IMPL(!x.defined() || !x.has_flag(kWrapper), node_->name(),
                  " was called inside of a transform, which functions of C++ do not take part in");
    FB_CHECK_IMPL(!x.defined() || !modes.forward_grad || !is_dual(x), node_->name(),
                  " has no forward derivative, but an argument has a tangent");
    recorded_ |= needs_grad(x);
  }
  if (recorded_) node_->add_next(inputs_);  // before forward: it may change inputs in place
  return &node_->context;
}

variable_list FunctionCall::end(variable_list results) {
  AutogradContext& c = node_->context;
  Tensors made;
  for (const Tensor& t : results)
    if (t.defined()) made.push_back(t);
  const FunctionResults rules{inputs_, c.dirty_, c.fixed_, made.size(),
                              recorded_ ? Ref<flambeau::Node>(node_) : nullptr};
  rules.check(made);
  for (Tensor& t : results) {
    if (t.defined())
      t = rules.join(t);
    else if (recorded_)
      node_->add_output(Tensor());
  }
  if (recorded_)
    for (const Tensor& t : c.to_save_) c.saved_.push_back(save_of_user(t, *node_));
  c.to_save_.clear();
  c.dirty_.clear();
  c.fixed_.clear();
  return results;
}

bool any_variable_requires_grad(const variable_list& tensors) {
  for (const Tensor& x : tensors)
    if (x.defined() && flambeau::requires_grad(x)) return true;
  return false;
}

bool AnomalyMode::is_enabled() {
  return Anomaly::enabled;
}
void AnomalyMode::set_enabled(bool on, bool check_nan) {
  Anomaly::enabled = on;
  Anomaly::check_nan = check_nan;
}
DetectAnomalyGuard::DetectAnomalyGuard(bool check_nan)
    : enabled_(Anomaly::enabled), check_nan_(Anomaly::check_nan) {
  AnomalyMode::set_enabled(true, check_nan);
}
DetectAnomalyGuard::~DetectAnomalyGuard() {
  AnomalyMode::set_enabled(enabled_, check_nan_);
}

namespace forward_ad {
uint64_t enter_dual_level() {
  return static_cast<uint64_t>(flambeau::enter_dual_level());
}
void exit_dual_level(uint64_t level) {
  flambeau::exit_dual_level(static_cast<int64_t>(level));
}
Tensor make_dual(const Tensor& primal, const Tensor& tangent) {
  return flambeau::make_dual(primal, tangent);
}
std::tuple<Tensor, Tensor> unpack_dual(const Tensor& dual) {
  return {primal_of(dual), tangent_of(dual)};
}
}  // namespace forward_ad

}  // namespace flambeau::autograd

namespace flambeau {

Node::NextEdge Node::next_edge(size_t i) const {
  FB_CHECK_INDEX(i < edges.size(), name(), ": next_edge: index ", i, " is out of range for ",
                 edges.size(), " edges");
  return {edges[i].node, edges[i].nr};
}
std::vector<Node::NextEdge> Node::next_edges() const {
  std::vector<NextEdge> found;
  for (size_t i = 0; i < edges.size(); ++i) found.push_back(next_edge(i));
  return found;
}

}  // namespace flambeau
