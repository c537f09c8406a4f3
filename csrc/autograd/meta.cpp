#include "autograd/meta.h"

#include "autograd/accumulate.h"
#include "autograd/views.h"

namespace flambeau {

AutogradMeta& materialize_meta(const Tensor& t) {
  if (!t->autograd) t->autograd = new AutogradMeta;
  return *t->autograd;
}

AutogradMeta* copy_wrapper(const AutogradMeta* meta) {
  auto* copy = new AutogradMeta;
  copy->wrapped = meta->wrapped;
  return copy;
}

void destroy_autograd_meta(AutogradMeta* meta) noexcept {
  if (meta->retained) {
    std::lock_guard guard(meta->retained->mutex);
    meta->retained->meta = nullptr;
  }
  delete meta;
}

// Where gradients come from
// -------------------------------------------------------------------------------------------

Ref<Node> grad_fn(const Tensor& t) {
  AutogradMeta* meta = t->autograd;
  if (!meta) return {};
  if (!meta->view) [[likely]]
    return meta->grad_fn;
  return view_grad_fn(t, *meta);
}

bool is_leaf(const Tensor& t) {
  return !grad_fn(t);
}

Ref<Node> find_accumulator(const Tensor& t) {
  AutogradMeta* meta = t->autograd;
  if (!meta) return {};
  std::lock_guard guard(meta->mutex);
  if (meta->accumulator && meta->accumulator->try_retain())
    return Ref<Node>::adopt(meta->accumulator);
  return {};
}

static Ref<Node> accumulator(const Tensor& leaf, AutogradMeta& meta) {
  std::lock_guard guard(meta.mutex);
  if (meta.accumulator && meta.accumulator->try_retain()) {
    auto found = Ref<Node>::adopt(meta.accumulator);
    static_cast<AccumulateGrad*>(found.get())->refresh();
    return found;
  }
  auto fresh = Ref<AccumulateGrad>::adopt(new AccumulateGrad(leaf));
  meta.accumulator = fresh.get();
  return fresh;
}

Edge gradient_edge(const Tensor& t) {
  AutogradMeta* meta = t->autograd;
  if (!meta) return {};
  if (auto fn = grad_fn(t)) return {std::move(fn), meta->output_nr};
  if (!meta->requires_grad) return {};
  return {accumulator(t, *meta), 0};
}

void set_requires_grad(const Tensor& t, bool on) {
  if (!is_leaf(t)) {
    FB_CHECK(on,
             "you can only change requires_grad flags of leaf variables. If you want to use a "
             "computed variable in a "
             "subgraph that doesn't require differentiation use var_no_grad = var.detach().");
    return;
  }
  if (on) {
    FB_CHECK(
        !t.has_flag(kInference) || modes.inference,
        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
    FB_CHECK(is_inexact(t.dtype()), "only Tensors of floating point dtype can require gradients");
  }
  if (!on && !t->autograd) return;
  materialize_meta(t).requires_grad = on;
  t.set_flag(kRequiresGrad, on);
}

// Detaching
// -----------------------------------------------------------------------------------------------------------

// Of a wrapper, the value is cut off as well: what is detached is so at every level.
static Tensor without_history(const Tensor& t, Tensor (*of_value)(const Tensor&)) {
  Tensor out = alias(t);
  if (!t.has_flag(kWrapper)) return out;
  Wrapped inner = *t->autograd->wrapped;
  inner.value = of_value(inner.value);
  out->autograd->wrapped = std::make_shared<const Wrapped>(std::move(inner));
  return out;
}

Tensor detach(const Tensor& t) {
  return without_history(t, detach);
}

void detach_(const Tensor& t) {
  AutogradMeta* meta = t->autograd;
  if (!meta) return;
  FB_CHECK(!meta->view,
           "Can't detach views in-place. Use detach() instead. If you are using "
           "DistributedDataParallel (DDP) "
           "for training, and gradient_as_bucket_view is set as True, gradients are views of DDP "
           "buckets, and hence "
           "detach_() cannot be called on these gradients.");
  meta->grad_fn = {};
  meta->output_nr = 0;
  meta->requires_grad = false;
  meta->tangent.reset();
  t.set_flag(kRequiresGrad, false);
  t.set_flag(kHasTangent, false);
}

Tensor data_of(const Tensor& t) {
  Tensor out = without_history(t, data_of);
  out->own_version = Ref<VersionCounter>::adopt(new VersionCounter);
  return out;
}

// Gradients kept on tensors
// -----------------------------------------------------------------------------------------------

Tensor grad_of(const Tensor& t) {
  AutogradMeta* meta = t->autograd;
  if (!meta) return {};
  std::lock_guard guard(meta->mutex);
  return meta->grad;
}

void set_grad(const Tensor& t, const Tensor& grad) {
  if (!grad.defined() && !t->autograd) return;
  AutogradMeta& meta = materialize_meta(t);
  Tensor old = grad;  // the replaced one dies after the lock is given back
  std::lock_guard guard(meta.mutex);
  std::swap(meta.grad, old);
}

// Hooks of tensors
// -----------------------------------------------------------------------------------------------------------------

static TensorHooks& leaf_hooks(AutogradMeta& meta) {
  if (!meta.hooks) meta.hooks = std::make_shared<TensorHooks>();
  return *meta.hooks;
}

HookHandle add_tensor_hook(const Tensor& t, TensorHook hook) {
  FB_CHECK(requires_grad(t), "cannot register a hook on a tensor that doesn't require gradient");
  AutogradMeta& meta = materialize_meta(t);
  if (auto fn = grad_fn(t)) return fn->add_hook(meta.output_nr, std::move(hook));
  std::lock_guard guard(hooks_mutex());
  HookHandle handle{next_hook_id(), {}, {}};
  leaf_hooks(meta).pre.emplace_back(handle.id, std::move(hook));
  handle.leaf = meta.hooks;
  return handle;
}

HookHandle add_accumulate_hook(const Tensor& t, AccumulateHook hook) {
  FB_CHECK(requires_grad(t), "cannot register a hook on a tensor that doesn't require gradient");
  FB_CHECK(is_leaf(t), "post accumulate grad hooks cannot be registered on non-leaf tensors");
  AutogradMeta& meta = materialize_meta(t);
  std::lock_guard guard(hooks_mutex());
  HookHandle handle{next_hook_id(), {}, {}};
  leaf_hooks(meta).post_accumulate.emplace_back(handle.id, std::move(hook));
  handle.leaf = meta.hooks;
  return handle;
}

void retain_grad(const Tensor& t) {
  FB_CHECK(requires_grad(t), "can't retain_grad on Tensor that has requires_grad=False");
  auto fn = grad_fn(t);
  AutogradMeta& meta = materialize_meta(t);
  if (!fn || meta.retained) return;
  meta.retained = std::make_shared<RetainCell>();
  meta.retained->meta = &meta;
  fn->hooks().retain_grad.emplace_back(meta.output_nr, retain_hook(meta.retained));
}

}  // namespace flambeau
