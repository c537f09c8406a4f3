// Note [Tangents of views]
// A tangent is a value: nothing writes into one, for users, nodes and other tensors may hold it. A
// view made in a level has a share in the tangent of the tensor that it is a view of: it is cut out
// of that one when somebody asks, and a change of the view gives the other a new tangent. Tensors
// are told apart by where they lie in memory, so the layouts of tangents do not matter. What a
// level was given (make_dual) is a base of its own, though in memory it is a view of the primal.
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
    if (auto* t = args[i].get_if<Tensor>())
      out.push_back(*t);
    else if (auto* ts = args[i].get_if<Tensors>())
      out.insert(out.end(), ts->begin(), ts->end());
    else if (auto* os = args[i].get_if<OptTensors>())
      for (auto& o : *os) out.push_back(o.value_or(Tensor()));
    else if (op.params[i].type.base <= TypeBase::Tensors)
      out.emplace_back();
  }
  return out;
}

Tensors flat_results(const Values& results) {
  Tensors out;
  for (auto& r : results) {
    if (auto* t = r.get_if<Tensor>())
      out.push_back(*t);
    else if (auto* ts = r.get_if<Tensors>())
      out.insert(out.end(), ts->begin(), ts->end());
    else
      out.emplace_back();
  }
  return out;
}

bool is_view(const OpDesc& op) noexcept {
  return op.kind == OpKind::View;
}

bool is_defined(const Tangent& cell) noexcept {
  return (cell.base ? cell.base->value : cell.value).defined();
}

// A tangent laid out in memory as its tensor is; a copy that nobody else holds when asked for.
Tensor laid_out(const Tensor& tangent, const MemoryPlace& place, bool copy) {
  if (!copy && tangent.strides() == place.strides) return tangent;
  return grad_ops::copy_strided(tangent, place.sizes, place.strides);
}

Tensor cut_out(const Tensor& whole, const MemoryPlace& base, const MemoryPlace& view) {
  return grad_ops::slice_of(whole, view.dtype, view.sizes, view.strides, view.offset_in(base));
}

Tensor value_of(Tangent& cell) {
  if (!cell.base || cell.version == cell.base->version) return cell.value;
  const Tangent& base = *cell.base;
  cell.version = base.version;
  cell.value = base.value.defined()
                   ? cut_out(laid_out(base.value, *base.place, false), *base.place, *cell.place)
                   : Tensor();
  return cell.value;
}

// Does nobody else hold the tangent or look at its memory, so that it can be written into?
bool is_own(const Tangent& base) {
  const Tensor& x = base.value;
  return !intercepted() && x.defined() && x->use_count() == 1 && x.storage()->use_count() == 1 &&
         x.strides() == base.place->strides && !requires_grad(x);
}

// The tangent of a view put into that of its base. Undefined: zero.
void put_into(Tangent& base, const MemoryPlace& view, const Tensor& old, const Tensor& tangent) {
  Tensor whole;
  if (is_own(base) && !needs_grad(tangent)) {
    whole = base.value;
  } else if (base.value.defined() && !base.value.has_flag(kWrapper) &&
             !(tangent.defined() && tangent.has_flag(kWrapper))) {
    whole = laid_out(base.value, *base.place, true);
  } else {
    // It must hold what differs between samples in either.
    Tensor like = old.defined() && tangent.defined() ? ops::add(old, tangent)
                  : tangent.defined()                ? tangent
                                                     : base.value;
    if (like.dtype() != base.place->dtype) like = grad_ops::to_dtype(like, base.place->dtype);
    whole = grad_ops::empty_strided_for(like, base.place->sizes, base.place->strides);
    if (base.value.defined())
      grad_ops::copy_(whole, base.value);
    else
      grad_ops::zero_(whole);
  }
  Tensor part = cut_out(whole, *base.place, view);
  if (tangent.defined())
    grad_ops::copy_(part, tangent);
  else
    grad_ops::zero_(part);
  base.value = whole;
}

class ForwardMode final : public Interceptor {
 public:
  const int64_t level = levels.fetch_add(1);
  ForwardMode* around = nullptr;             // the next level of the thread
  bool paused = false;                       // tangents of this level are not followed
  std::vector<std::weak_ptr<Tangent>> made;  // by this level

  Values call(const OpDesc& op, Values args) override;
  std::shared_ptr<Tangent> find(const Tensor& t);  // null: no tangent
  std::shared_ptr<Tangent> cell(const Tensor& t);  // made when missing
  Tensor tangent_of(const Tensor& t);
  void set(const Tensor& t, const Tensor& tangent);
  void set_view(const Tensor& t, const Tensor& tangent, const std::shared_ptr<Tangent>& base);

 private:
  std::shared_ptr<Tangent> own(const Tensor& t) const noexcept;
  bool is_apart(const Tensor& t) const noexcept {
    std::shared_ptr<Tangent> found = t.has_flag(kIsView) ? own(t) : nullptr;
    return found && found->apart;
  }
  std::shared_ptr<Tangent> base_of(const Tensor& t, const std::shared_ptr<Tangent>& found);
  void change(const Tensor& t, const Tensor& tangent);
  Tensors of_results(const OpDesc& op, const Values& args, const Tensors& inputs,
                     const Tensors& tangents, const Values& results);
};

thread_local constinit ForwardMode* innermost = nullptr;

bool is_active(int64_t level) noexcept {
  for (ForwardMode* m = innermost; m; m = m->around)
    if (m->level == level) return true;
  return false;
}

std::shared_ptr<Tangent> ForwardMode::own(const Tensor& t) const noexcept {
  if (!t->autograd) return {};
  for (const std::shared_ptr<Tangent>* at = &t->autograd->tangent; *at; at = &(*at)->outer)
    if ((*at)->level == level) return *at;
  return {};
}

// A view of memory whose tensor got a tangent later has a share in it from then on.
std::shared_ptr<Tangent> ForwardMode::find(const Tensor& t) {
  if (!(t->flags & (kHasTangent | kIsView)) || !t->autograd) return {};
  std::shared_ptr<Tangent> found = own(t);
  if (found && (found->apart || is_defined(*found))) return found->apart ? nullptr : found;
  if (!t->autograd->view || !is_inexact(t.dtype())) return {};
  const Tensor& whole = t->autograd->view->base;
  std::shared_ptr<Tangent> base = own(whole);
  if (!base || !base->value.defined()) return {};
  if (!base->place) base->place = std::make_unique<const MemoryPlace>(whole);
  set_view(t, Tensor(), base);
  return own(t);
}

Tensor ForwardMode::tangent_of(const Tensor& t) {
  std::shared_ptr<Tangent> found = find(t);
  return found ? value_of(*found) : Tensor();
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
  std::shared_ptr<Tangent> to = cell(t);
  to->base.reset();
  to->apart = false;
  to->value = tangent;
  ++to->version;
  t.set_flag(kHasTangent, has_live_tangent(*t->autograd->tangent));
}

// Undefined: cut out of the base's when it is asked for.
void ForwardMode::set_view(const Tensor& t, const Tensor& tangent,
                           const std::shared_ptr<Tangent>& base) {
  std::shared_ptr<Tangent> to = cell(t);
  if (to == base) return;
  to->base = base;
  to->apart = false;
  to->place = std::make_unique<const MemoryPlace>(t);
  to->value = tangent;
  to->version = tangent.defined() ? base->version : base->version - 1;
  t.set_flag(kHasTangent);
}

// The tangent in which t, a view, has a share; null when t is none.
std::shared_ptr<Tangent> ForwardMode::base_of(const Tensor& t,
                                              const std::shared_ptr<Tangent>& found) {
  if (found) return found->base;
  const AutogradMeta* meta = t->autograd;
  std::shared_ptr<Tangent> mine = own(t);
  if (!meta || !meta->view || (mine && mine->apart)) return {};
  std::shared_ptr<Tangent> base = cell(meta->view->base);
  if (!base->place) base->place = std::make_unique<const MemoryPlace>(meta->view->base);
  return base;
}

// The tangent of a tensor that changed in place.
void ForwardMode::change(const Tensor& t, const Tensor& tangent) {
  std::shared_ptr<Tangent> found = find(t);
  if (!found && !tangent.defined()) return;
  std::shared_ptr<Tangent> base = base_of(t, found);
  if (!base) {
    set(t, tangent.defined() ? tangent : grad_ops::zeros_for(t));
    return;
  }
  put_into(*base, MemoryPlace(t), found ? value_of(*found) : Tensor(), tangent);
  ++base->version;
  if (!found) t->autograd->view->base.set_flag(kHasTangent);
  set_view(t, tangent, base);
}

Tensors ForwardMode::of_results(const OpDesc& op, const Values& args, const Tensors& inputs,
                                const Tensors& tangents, const Values& results) {
  // The view of a tangent that is laid out as its tensor: no copy, and no rule to run.
  if (is_view(op) && tangents[0].defined() && inputs[0].strides() == tangents[0].strides() &&
      inputs[0].offset() == tangents[0].offset()) {
    Values same = args;
    for (auto& value : same)
      if (auto* t = value.get_if<Tensor>(); t && t->is_same(inputs[0])) *t = tangents[0];
    return flat_results(call_op(op, same));
  }
  return jvp_of(op, args, tangents, results);
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
  if (!any) {
    Values results = call_op(op, args);
    if (!inputs.empty() && is_view(op) && is_apart(inputs[0]))
      for (const Tensor& y : flat_results(results))
        if (y.has_flag(kIsView)) cell(y)->apart = true;
    return results;
  }
  Values results = call_op(op, args);
  Tensors outputs = flat_results(results);
  bool inexact = false;
  for (auto& y : outputs) inexact |= y.defined() && is_inexact(y.dtype());
  if (!inexact || !op.differentiable) return results;
  Tensors found = of_results(op, args, inputs, tangents, results);
  bool view = is_view(op) && tangents[0].defined();
  for (size_t i = 0; i < outputs.size() && i < found.size(); ++i) {
    if (!outputs[i].defined() || !is_inexact(outputs[i].dtype())) continue;
    if (op.mutates) {
      change(outputs[i], found[i]);
    } else if (!found[i].defined()) {
      continue;
    } else if (view) {
      std::shared_ptr<Tangent> of = find(inputs[0]), base = of->base ? of->base : of;
      if (!base->place) base->place = std::make_unique<const MemoryPlace>(inputs[0]);
      set_view(outputs[i], found[i], base);
    } else {
      set(outputs[i], found[i]);
    }
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
    if (auto tangent = weak.lock()) {
      tangent->value = Tensor();
      tangent->base.reset();
    }
}

Tensor tangent_of(const Tensor& t) {
  return innermost ? innermost->tangent_of(t) : Tensor();
}

bool has_tangent(const Tensor& t) {
  return innermost && innermost->find(t);
}

bool view_is_dual(const Tensor& t) {
  if (!t->autograd->view->base.has_flag(kHasTangent)) return false;
  for (ForwardMode* m = innermost; m; m = m->around) m->find(t);
  return t.has_flag(kHasTangent);
}

std::shared_ptr<Tangent> tangent_cell(const Tensor& t) {
  std::shared_ptr<Tangent> found = innermost->find(t);
  return found ? found : innermost->cell(t);
}

void set_tangent(const Tensor& t, const Tensor& tangent) {
  if (innermost) innermost->set(t, tangent);
}

void copy_tangents(const Tensor& from, const Tensor& to) {
  for (ForwardMode* m = innermost; m; m = m->around)
    if (m->find(from)) m->set(to, m->tangent_of(from));
}

bool has_live_tangent(const Tangent& cell) noexcept {
  for (const Tangent* c = &cell; c; c = c->outer.get())
    if (is_defined(*c) && is_active(c->level)) return true;
  return false;
}

Tensor primal_of(const Tensor& t) {
  if (!innermost) return ops::alias(t);
  struct Pause {
    ForwardMode* mode = innermost;
    bool before = std::exchange(innermost->paused, true);
    ~Pause() { mode->paused = before; }
  } pause;
  Tensor out = ops::alias(t);
  if (out.has_flag(kIsView)) innermost->cell(out)->apart = true;
  return out;
}

Tensor make_dual(const Tensor& primal, const Tensor& tangent) {
  FB_CHECK(innermost,
           "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
           "enter_dual_level() first.");
  FB_CHECK(primal.sizes() == tangent.sizes(),
           "Expected tangent to have the same shape as primal, but got: ", tangent.sizes(), " and ",
           primal.sizes());
  FB_CHECK(
      !innermost->find(primal),
      "make_dual: expected a primal without a tangent of this level, got a dual tensor; unpack "
      "it first");
  FB_CHECK(!innermost->find(tangent),
           "make_dual: expected a tangent that has none of this level itself, got a dual tensor; "
           "unpack it first");
  Tensor dual = primal_of(primal);
  innermost->set(dual, tangent.dtype() == primal.dtype()
                           ? tangent
                           : grad_ops::to_dtype(tangent, primal.dtype()));
  return dual;
}

}  // namespace flambeau
