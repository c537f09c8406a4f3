#include "autograd/forward_mode.h"

#include "autograd/generated.h"
#include "autograd/grad_ops.h"
#include "autograd/meta.h"
#include "autograd/transpose.h"
#include "gen/ops.h"

namespace flambeau {

namespace {

thread_local constinit int64_t current_level = -1;
std::atomic<int64_t> levels{0};

// Tensors among the arguments, one per tensor parameter, lists flattened; undefined where none was
// given.
Tensors flat_tensors(const OpDesc& op, const Values& args) {
  Tensors out;
  for (size_t i = 0; i < args.size(); ++i) {
    if (auto* t = std::get_if<Tensor>(&args[i]))
      out.push_back(*t);
    else if (auto* ts = std::get_if<Tensors>(&args[i]))
      out.insert(out.end(), ts->begin(), ts->end());
    else if (auto* os = std::get_if<OptTensors>(&args[i]))
      for (auto& o : *os) out.push_back(o.value_or(Tensor()));
    else if (std::string_view(op.params[i].type).starts_with("Tensor"))
      out.emplace_back();
  }
  return out;
}

Tensors flat_results(const Values& results) {
  Tensors out;
  for (auto& r : results) {
    if (auto* t = std::get_if<Tensor>(&r))
      out.push_back(*t);
    else if (auto* ts = std::get_if<Tensors>(&r))
      out.insert(out.end(), ts->begin(), ts->end());
    else
      out.emplace_back();
  }
  return out;
}

// The tangent of a tensor that changed in place. A view's lies in its base's, which must change
// with it.
void change_tangent(const Tensor& t, const Tensor& tangent) {
  Tensor old = tangent_of(t);
  AutogradMeta* meta = t->autograd;
  if (!meta || !meta->view) {
    set_tangent(t, tangent.defined() || !old.defined()
                       ? tangent
                       : grad_ops::zeros(t.sizes(), t.dtype(), t.device()));
    return;
  }
  if (!old.defined()) {
    if (!tangent.defined()) return;
    const Tensor& base = meta->view->base;
    Tensor whole = tangent_of(base);
    if (!whole.defined()) {
      whole = empty_strided(base.sizes(), base.strides(), base.dtype(), base.device());
      grad_ops::zero_(whole);
      set_tangent(base, whole);
    }
    old = grad_ops::slice_of(whole, t.dtype(), t.sizes(), t.strides(), t.offset() - base.offset());
    set_tangent(t, old);
  }
  if (tangent.defined())
    grad_ops::copy_(old, tangent);
  else
    grad_ops::zero_(old);
}

// The tangent of a view is the same view of the tangent, so that changes in place reach both; null
// when the tangent is laid out in another way.
std::optional<Values> view_of_tangent(const OpDesc& op, const Values& args, const Tensor& x,
                                      const Tensor& tangent) {
  if (std::string_view(op.kind) != "view" || !tangent.defined()) return {};
  if (x.strides() != tangent.strides() || x.offset() != tangent.offset()) return {};
  Values same = args;
  for (auto& value : same)
    if (auto* t = std::get_if<Tensor>(&value); t && t->is_same(x)) *t = tangent;
  return op.call(same);
}

class ForwardMode final : public Interceptor {
 public:
  std::vector<std::weak_ptr<Tangent>> made;  // in the current level
  Values call(const OpDesc& op, Values args) override {
    Tensors inputs, tangents;
    bool any = false;
    if (modes.forward_grad) {
      inputs = flat_tensors(op, args);
      tangents.reserve(inputs.size());
      for (auto& x : inputs) {
        tangents.push_back(x.defined() ? tangent_of(x) : Tensor());
        any |= tangents.back().defined();
      }
    }
    if (!any) return op.call(args);
    Values results = op.call(args);
    Tensors outputs = flat_results(results);
    bool inexact = false;
    for (auto& y : outputs) inexact |= y.defined() && is_inexact(y.dtype());
    if (!inexact || !(op.jvp || op.vjp)) return results;
    auto view = view_of_tangent(op, args, inputs[0], tangents[0]);
    Tensors found = view ? flat_results(*view) : jvp_of(op, args, tangents, results);
    for (size_t i = 0; i < outputs.size() && i < found.size(); ++i) {
      if (!outputs[i].defined() || !is_inexact(outputs[i].dtype())) continue;
      if (op.mutates)
        change_tangent(outputs[i], found[i]);
      else if (found[i].defined())
        set_tangent(outputs[i], found[i]);
    }
    return results;
  }
};

thread_local std::unique_ptr<ForwardMode> forward_mode;

}  // namespace

int64_t dual_level() noexcept {
  return current_level;
}

int64_t enter_dual_level() {
  FB_CHECK(current_level < 0, "Nested forward mode AD is not supported at the moment");
  if (!forward_mode) forward_mode = std::make_unique<ForwardMode>();
  forward_mode->outer = modes.top;
  modes.top = forward_mode.get();
  ++modes.active;
  return current_level = levels.fetch_add(1);
}

void exit_dual_level(int64_t level) {
  FB_CHECK(level == current_level && level >= 0, "exit_dual_level: the level ", level,
           " is not the current one");
  FB_CHECK(modes.top == forward_mode.get(),
           "exit_dual_level: a transform that was entered later is still active");
  modes.top = modes.top->outer;
  --modes.active;
  current_level = -1;
  // Tangents may have a history that leads to who saved them: emptying them breaks the cycle.
  for (auto& weak : std::exchange(forward_mode->made, {}))
    if (auto tangent = weak.lock()) tangent->value = Tensor();
}

Tensor tangent_of(const Tensor& t) noexcept {
  if (current_level < 0 || !t.has_flag(kHasTangent)) return {};
  AutogradMeta* meta = t->autograd;
  return meta && meta->tangent && meta->tangent->level == current_level ? meta->tangent->value
                                                                        : Tensor();
}

std::shared_ptr<Tangent> tangent_cell(const Tensor& t) {
  AutogradMeta& meta = materialize_meta(t);
  if (!meta.tangent || meta.tangent->level != current_level) {
    meta.tangent = std::make_shared<Tangent>();
    meta.tangent->level = current_level;
    forward_mode->made.push_back(meta.tangent);
  }
  return meta.tangent;
}

void set_tangent(const Tensor& t, const Tensor& tangent) {
  if (!tangent.defined() && !t->autograd) return;
  if (current_level < 0) return;
  tangent_cell(t)->value = tangent;
  t.set_flag(kHasTangent, tangent.defined());
}

Tensor primal_of(const Tensor& t) {
  ModeGuard plain(&Modes::forward_grad, false);
  return ops::alias(t);
}

Tensor make_dual(const Tensor& primal, const Tensor& tangent) {
  FB_CHECK(current_level >= 0,
           "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
           "enter_dual_level() first.");
  FB_CHECK(primal.sizes() == tangent.sizes(),
           "Expected tangent to have the same shape as primal, but got: ", tangent.sizes(), " and ",
           primal.sizes());
  Tensor dual = primal_of(primal);
  set_tangent(dual, tangent.dtype() == primal.dtype()
                        ? tangent
                        : grad_ops::to_dtype(tangent, primal.dtype()));
  return dual;
}

}  // namespace flambeau
