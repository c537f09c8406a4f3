#include "autograd/forward_mode.h"

#include "autograd/generated.h"
#include "autograd/grad_ops.h"
#include "autograd/meta.h"
#include "autograd/transpose.h"
#include "gen/ops.h"

namespace flambeau {

namespace {

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
  const int64_t level = levels.fetch_add(1);
  ForwardMode* around = nullptr;             // the next level of the thread
  bool paused = false;                       // tangents of this level are not followed
  std::vector<std::weak_ptr<Tangent>> made;  // by this level

  Values call(const OpDesc& op, Values args) override;
  Tensor tangent_of(const Tensor& t) const noexcept;
  std::shared_ptr<Tangent> cell(const Tensor& t);
  void set(const Tensor& t, const Tensor& tangent);

 private:
  void change(const Tensor& t, const Tensor& tangent);
};

thread_local constinit ForwardMode* innermost = nullptr;

bool is_active(int64_t level) noexcept {
  for (ForwardMode* m = innermost; m; m = m->around)
    if (m->level == level) return true;
  return false;
}

Tensor ForwardMode::tangent_of(const Tensor& t) const noexcept {
  if (!t.has_flag(kHasTangent) || !t->autograd) return {};
  for (Tangent* cell = t->autograd->tangent.get(); cell; cell = cell->outer.get())
    if (cell->level == level) return cell->value;
  return {};
}

// Cells of a tensor are a list from the innermost level outwards; those of levels that are over
// leave it when it grows.
std::shared_ptr<Tangent> ForwardMode::cell(const Tensor& t) {
  std::shared_ptr<Tangent>* at = &materialize_meta(t).tangent;
  while (*at && ((*at)->level > level || !is_active((*at)->level))) {
    if (is_active((*at)->level))
      at = &(*at)->outer;
    else
      *at = std::shared_ptr<Tangent>((*at)->outer);
  }
  if (*at && (*at)->level == level) return *at;
  auto fresh = std::make_shared<Tangent>();
  fresh->level = level;
  fresh->outer = *at;
  made.push_back(fresh);
  return *at = std::move(fresh);
}

void ForwardMode::set(const Tensor& t, const Tensor& tangent) {
  if (!tangent.defined() && !t->autograd) return;
  cell(t)->value = tangent;
  t.set_flag(kHasTangent, has_live_tangent(*t->autograd->tangent));
}

// The tangent of a tensor that changed in place. A view's lies in its base's, which must change
// with it.
void ForwardMode::change(const Tensor& t, const Tensor& tangent) {
  Tensor old = tangent_of(t);
  AutogradMeta* meta = t->autograd;
  if (!meta || !meta->view) {
    set(t, tangent.defined() || !old.defined() ? tangent
                                               : grad_ops::zeros(t.sizes(), t.dtype(), t.device()));
    return;
  }
  if (!old.defined()) {
    if (!tangent.defined()) return;
    const Tensor& base = meta->view->base;
    Tensor whole = tangent_of(base);
    if (!whole.defined()) {
      // It must hold what differs between samples in the base or in the tangent.
      bool batched = t.has_flag(kWrapper) || tangent.has_flag(kWrapper);
      const Tensor like = batched ? ops::add(t, tangent) : tangent;
      whole = grad_ops::empty_strided_for(like, base.sizes(), base.strides());
      grad_ops::zero_(whole);
      set(base, whole);
    }
    old = grad_ops::slice_of(whole, t.dtype(), t.sizes(), t.strides(), t.offset() - base.offset());
    set(t, old);
  }
  if (tangent.defined())
    grad_ops::copy_(old, tangent);
  else
    grad_ops::zero_(old);
}

Values ForwardMode::call(const OpDesc& op, Values args) {
  Tensors inputs, tangents;
  bool any = false;
  if (modes.forward_grad && !modes.inference && !paused) {
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
      change(outputs[i], found[i]);
    else if (found[i].defined())
      set(outputs[i], found[i]);
  }
  return results;
}

}  // namespace

int64_t dual_level() noexcept {
  return innermost ? innermost->level : -1;
}

int64_t enter_dual_level(bool nested) {
  FB_CHECK(nested || !innermost, "Nested forward mode AD is not supported at the moment");
  auto* mode = new ForwardMode;
  mode->outer = modes.top;
  mode->around = innermost;
  modes.top = innermost = mode;
  modes.active += kIntercept;
  return mode->level;
}

void exit_dual_level(int64_t level) {
  FB_CHECK(innermost && level == innermost->level, "exit_dual_level: the level ", level,
           " is not the current one");
  FB_CHECK(modes.top == innermost,
           "exit_dual_level: a transform that was entered later is still active");
  std::unique_ptr<ForwardMode> mode(innermost);
  modes.top = mode->outer;
  modes.active -= kIntercept;
  innermost = mode->around;
  // Tangents may have a history that leads to who saved them: emptying them breaks the cycle.
  for (auto& weak : mode->made)
    if (auto tangent = weak.lock()) tangent->value = Tensor();
}

Tensor tangent_of(const Tensor& t) noexcept {
  return innermost ? innermost->tangent_of(t) : Tensor();
}

std::shared_ptr<Tangent> tangent_cell(const Tensor& t) {
  return innermost->cell(t);
}

void set_tangent(const Tensor& t, const Tensor& tangent) {
  if (innermost) innermost->set(t, tangent);
}

bool has_live_tangent(const Tangent& cell) noexcept {
  for (const Tangent* c = &cell; c; c = c->outer.get())
    if (c->value.defined() && is_active(c->level)) return true;
  return false;
}

Tensor primal_of(const Tensor& t) {
  if (!innermost) return ops::alias(t);
  struct Pause {
    ForwardMode* mode = innermost;
    bool before = std::exchange(innermost->paused, true);
    ~Pause() { mode->paused = before; }
  } pause;
  return ops::alias(t);
}

Tensor make_dual(const Tensor& primal, const Tensor& tangent) {
  FB_CHECK(innermost,
           "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
           "enter_dual_level() first.");
  FB_CHECK(primal.sizes() == tangent.sizes(),
           "Expected tangent to have the same shape as primal, but got: ", tangent.sizes(), " and ",
           primal.sizes());
  FB_CHECK(
      !innermost->tangent_of(primal).defined(),
      "make_dual: expected a primal without a tangent of this level, got a dual tensor; unpack "
      "it first");
  FB_CHECK(!innermost->tangent_of(tangent).defined(),
           "make_dual: expected a tangent that has none of this level itself, got a dual tensor; "
           "unpack it first");
  Tensor dual = primal_of(primal);
  innermost->set(dual, tangent.dtype() == primal.dtype()
                           ? tangent
                           : grad_ops::to_dtype(tangent, primal.dtype()));
  return dual;
}

}  // namespace flambeau
