#include "autograd/accumulate.h"

#include "autograd/grad_ops.h"

namespace flambeau {

AccumulateGrad::AccumulateGrad(const Tensor& leaf) : leaf(leaf) {
  sequence = UINT64_MAX;  // leaves go first: their gradients are complete once they are ready
  add_output(leaf);
}

AccumulateGrad::~AccumulateGrad() {
  AutogradMeta& meta = *leaf->autograd;
  std::lock_guard guard(meta.mutex);
  if (meta.accumulator == this) meta.accumulator = nullptr;
}

void AccumulateGrad::refresh() {
  OutputMeta& meta = outputs[0];
  if (meta.dtype == leaf.dtype() && meta.sizes == leaf.sizes()) [[likely]]
    return;
  meta.sizes = leaf.sizes();
  meta.dtype = leaf.dtype();
  meta.device = leaf.device();
}

TensorHooks* AccumulateGrad::leaf_hooks() {
  return leaf->autograd->hooks.get();
}

// May the gradient become `.grad` as it is? Nobody else may see its memory, and the layout must be
// the leaf's.
static bool can_keep(const Tensor& grad, const Tensor& leaf) {
  if (grad->use_count() != 1 || grad.storage()->use_count() != 1 || requires_grad(grad))
    return false;
  if (grad.sizes() != leaf.sizes() || grad.has_flag(kWrapper)) return false;
  return grad.strides() == leaf.strides() ? leaf.is_dense()
                                          : grad.is_contiguous() && !leaf.is_dense();
}

Tensors AccumulateGrad::apply(Tensors&& grads) {
  Tensor& grad = grads[0];
  if (!grad.defined() || !requires_grad(leaf)) return {};
  {
    std::lock_guard guard(adding_);
    Tensor old = grad_of(leaf);
    if (!old.defined()) {
      if (modes.grad || intercepted() || !can_keep(grad, leaf))
        grad = grad_ops::clone_for(grad, leaf);
      set_grad(leaf, grad);
    } else if (modes.grad || intercepted()) {
      set_grad(leaf, grad_ops::add(old, grad));
    } else {
      grad_ops::add_(old, grad);
    }
    grad = Tensor();
  }
  if (TensorHooks* hooks = leaf_hooks()) [[unlikely]] {
    auto post = snapshot(hooks->post_accumulate);  // a hook may remove itself
    for (auto& [id, hook] : post) hook(leaf);
  }
  return {};
}

TensorHook retain_hook(std::shared_ptr<RetainCell> cell) {
  return [cell](const Tensor& grad) -> Tensor {
    Tensor old, sum;
    {
      std::lock_guard guard(cell->mutex);
      if (!cell->meta) return {};
      old = cell->meta->grad;
    }
    sum = old.defined() ? grad_ops::add(old, grad) : grad_ops::clone(grad);
    std::lock_guard guard(cell->mutex);
    if (cell->meta) std::swap(cell->meta->grad, sum);
    return {};
  };
}

}  // namespace flambeau
