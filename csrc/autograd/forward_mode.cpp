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

// Tensors among the arguments, one per tensor parameter, lists flattened; undefined where none was given.
Tensors flat_tensors(const OpDesc& op, const Values& args) {
  Tensors out;
  for (size_t i = 0; i < args.size(); ++i) {
    if (auto* t = std::get_if<Tensor>(&args[i])) out.push_back(*t);
    else if (auto* ts = std::get_if<Tensors>(&args[i])) out.insert(out.end(), ts->begin(), ts->end());
    else if (auto* os = std::get_if<OptTensors>(&args[i]))
      for (auto& o : *os) out.push_back(o.value_or(Tensor()));
    else if (std::string_view(op.params[i].type).starts_with("Tensor")) out.emplace_back();
  }
  return out;
}

Tensors flat_results(const Values& results) {
  Tensors out;
  for (auto& r : results) {
    if (auto* t = std::get_if<Tensor>(&r)) out.push_back(*t);
    else if (auto* ts = std::get_if<Tensors>(&r)) out.insert(out.end(), ts->begin(), ts->end());
    else out.emplace_back();
  }
  return out;
}

// The tangent of a tensor that changed in place. A view's lies in its base's, which must change with it.
void change_tangent(const Tensor& t, const Tensor& tangent) {
  Tensor old = tangent_of(t);
  AutogradMeta* meta = t->autograd;
  if (!meta || !meta->view) {
    set_tangent(t, tangent.defined() || !old.defined() ? tangent : grad_ops::zeros(t.sizes(), t.dtype(), t.device()));
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
  if (tangent.defined()) grad_ops::copy_(old, tangent);
  else grad_ops::zero_(old);
}

class ForwardMode final : public Interceptor {
 public:
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
    Tensors made = jvp_of(op, args, tangents, results);
    for (size_t i = 0; i < outputs.size() && i < made.size(); ++i) {
      if (!outputs[i].defined() || !is_inexact(outputs[i].dtype())) continue;
      if (op.mutates) change_tangent(outputs[i], made[i]);
      else if (made[i].defined()) set_tangent(outputs[i], made[i]);
    }
    return results;
  }
};

thread_local std::unique_ptr<ForwardMode> forward_mode;

}  // namespace

int64_t dual_level() noexcept { return current_level; }

int64_t enter_dual_level() {
  FB_CHECK(current_level < 0, "Nested forward mode AD is not supported at the moment");
  if (!forward_mode) forward_mode = std::make_unique<ForwardMode>();
  forward_mode->outer = modes.top;
  modes.top = forward_mode.get();
  ++modes.active;
  return current_level = levels.fetch_add(1);
}

void exit_dual_level(int64_t level) {
  FB_CHECK(level == current_level && level >= 0, "exit_dual_level: the level ", level, " is not the current one");
  FB_CHECK(modes.top == forward_mode.get(), "exit_dual_level: a transform that was entered later is still active");
  modes.top = modes.top->outer;
  --modes.active;
  current_level = -1;
}

Tensor tangent_of(const Tensor& t) noexcept {
  if (current_level < 0 || !t.has_flag(kHasTangent)) return {};
  AutogradMeta* meta = t->autograd;
  return meta && meta->tangent_level == current_level ? meta->tangent : Tensor();
}

void set_tangent(const Tensor& t, const Tensor& tangent) {
  if (!tangent.defined() && !t->autograd) return;
  AutogradMeta& meta = materialize_meta(t);
  meta.tangent = tangent;
  meta.tangent_level = current_level;
  t.set_flag(kHasTangent, tangent.defined());
}

Tensor primal_of(const Tensor& t) {
  ModeGuard plain(&Modes::forward_grad, false);
  return ops::alias(t);
}

Tensor make_dual(const Tensor& primal, const Tensor& tangent) {
  FB_CHECK(current_level >= 0, "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
           "enter_dual_level() first.");
  FB_CHECK(primal.sizes() == tangent.sizes(), "Expected tangent to have the same shape as primal, but got: ", tangent.sizes(),
           " and ", primal.sizes());
  Tensor dual = primal_of(primal);
  set_tangent(dual, tangent.dtype() == primal.dtype() ? tangent : grad_ops::to_dtype(tangent, primal.dtype()));
  return dual;
}

}  // namespace flambeau
