// Recording inside a vmap level: the node of an operation on the level's wrappers. One node type
// for all operations, since it works through descriptors: it keeps the arguments and calls the
// boxed vjp.
#include "autograd/forward_mode.h"
#include "autograd/generated.h"
#include "autograd/views.h"
#include "func/vmap.h"
#include "gen/ops.h"

namespace flambeau::func {

namespace {

std::string node_name(const OpDesc& op) {
  std::string out;
  bool upper = true;
  for (const char* c = op.name; *c; ++c) {
    if (*c == '_')
      upper = true;
    else
      out += std::exchange(upper, false) ? static_cast<char>(toupper(*c)) : *c;
  }
  return out + "Backward0";
}

// What a wrapper is before it changes in place, with its history.
Tensor as_before(const Level& level, const Tensor& x) {
  Tensor out = level.wrap(ops::clone(level.value(x)), level.is_batched(x));
  if (Ref<Node> fn = grad_fn(x)) {
    AutogradMeta& meta = *out->autograd;
    meta.grad_fn = std::move(fn);
    meta.output_nr = x->autograd->output_nr;
    out.set_flag(kRequiresGrad);
  }
  copy_tangents(x, out);
  return out;
}

class BatchedBackward final : public Node {
 public:
  BatchedBackward(Level& level, const OpDesc& op, const Values& args)
      : op_(op),
        level_(level.id),
        name_(node_name(op)),
        args_(args),
        keeps_(op.keeps & ~updated_by(op, args)) {
    for (size_t i = 0; i < args.size(); ++i) {
      if (!op.params[i].type.holds_tensors()) continue;
      size_t before = edges.size();
      size_t count = 0;
      for_each_tensor(args_[i], [&](Tensor& x) {
        ++count;
        if (level.wrapped(x))
          add_next(x);
        else
          edges.push_back({});
        if (keeps_ >> i & 1)
          kept_.emplace_back(op.mutates && i == 0 ? as_before(level, x) : x, false);
        level.foreign |= wants_gradients(level.value(x));
        x = alias(x);
      });
      if (!args_[i].is<Tensors>() && !args_[i].is<OptTensors>() && count == 0) edges.push_back({});
      if (auto* list = args_[i].get_if<OptTensors>())
        while (edges.size() - before < list->size()) edges.push_back({});
      slots_.push_back({before, edges.size() - before});
    }
  }

  const char* name() const override { return name_.c_str(); }

  void keep_results(const Values& results) {
    results_ = results;
    for (size_t k = 0; k < results_.size(); ++k)
      for_each_tensor(results_[k], [&](Tensor& y) {
        if (op_.keeps_results >> k & 1) kept_results_.emplace_back(y, true, this, output_number(y));
        y = alias(y);
      });
  }

  Tensors apply(Tensors&& grads) override {
    if (none_defined(grads)) return Tensors(edges.size());
    Level* level = innermost_level();
    while (level && level->id != level_) level = level->around;
    FB_CHECK(level, name_, ": the vmap in which it was recorded is over");
    Values args = args_, results = results_;
    size_t next = 0;
    for (size_t i = 0; i < args.size(); ++i)
      if (op_.params[i].type.holds_tensors() && keeps_ >> i & 1)
        for_each_tensor(args[i], [&](Tensor& x) { x = kept_[next++].unpack(*this); });
    next = 0;
    for (size_t k = 0; k < results.size(); ++k)
      if (op_.keeps_results >> k & 1)
        for_each_tensor(results[k], [&](Tensor& y) { y = kept_results_[next++].unpack(*this); });
    uint32_t wanted = 0;
    for (size_t k = 0; k < slots_.size(); ++k)
      for (size_t e = 0; e < slots_[k].count; ++e)
        if (needs(slots_[k].first + e)) wanted |= 1u << k;
    Tensors out = op_.vjp(op_, args, grads, results, wanted);
    for (size_t e = 0; e < out.size() && e < edges.size(); ++e)
      if (!edges[e].node) out[e] = Tensor();
    return out;
  }

  void release_saved() override {
    for (auto* list : {&kept_, &kept_results_})
      for (SavedTensor& s : *list) s.reset();
  }

 private:
  struct Slot {
    size_t first, count;
  };
  uint32_t output_number(const Tensor& y) const { return y->autograd ? y->autograd->output_nr : 0; }

  const OpDesc& op_;
  const int64_t level_;
  std::string name_;
  Values args_, results_;  // without history: for shapes and dtypes, unless kept
  uint32_t keeps_;         // parameters that are kept: those of op.keeps that the call leaves alone
  std::vector<SavedTensor> kept_, kept_results_;
  std::vector<Slot> slots_;  // edges of each tensor parameter
};

Tensors flat(const Values& results) {
  Tensors out;
  for (const Value& r : results) {
    if (auto* x = r.get_if<Tensor>())
      out.push_back(*x);
    else if (auto* xs = r.get_if<Tensors>())
      out.insert(out.end(), xs->begin(), xs->end());
  }
  return out;
}

}  // namespace

Ref<Node> begin_record(Level& level, const OpDesc& op, const Values& args) {
  if (!modes.grad || !op.differentiable) return {};
  bool any = false;
  for (const Value& v : args)
    for_each_tensor(v, [&](const Tensor& x) { any |= level.wrapped(x) && requires_grad(x); });
  if (!any) return {};
  if (op.mutates && !level.wrapped(args[0].get<Tensor>())) level.adopt(args[0].get<Tensor>());
  if (op.mutates) check_inplace(args[0].get<Tensor>(), true, op.name);
  if (!op.vjp) {
    // Linked to the inputs, so that a derivative asked of them is refused, not left out.
    Ref<Node> node = not_differentiable(op.name);
    for (const Value& v : args)
      for_each_tensor(v, [&](const Tensor& x) {
        if (level.wrapped(x)) node->add_next(x);
      });
    return node;
  }
  return Ref<Node>::adopt(new BatchedBackward(level, op, args));
}

void end_record(const Ref<Node>& node, const OpDesc& op, const Values& results) {
  if (op.mutates)
    rebase_history(results[0].get<Tensor>(), node);
  else
    set_history(flat(results), node);
  if (op.vjp) static_cast<BatchedBackward*>(node.get())->keep_results(results);
}

}  // namespace flambeau::func
