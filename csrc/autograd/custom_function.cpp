#include "autograd/custom_function.h"

#include <algorithm>

#include "autograd/generated.h"
#include "autograd/meta.h"

namespace flambeau {

static bool contains(const Tensors& ts, const Tensor& t) {
  return std::any_of(ts.begin(), ts.end(), [&](const Tensor& x) { return x.is_same(t); });
}

static Tensor view_of(const Tensor& t, const Tensor& input) {
  Tensor view = alias(t);
  mark_view_as(view, input, ViewOrigin::CustomFunction);
  return view;
}

static void record_dirty(const Tensor& t, const Ref<Node>& node, size_t outputs) {
  AutogradMeta* meta = t->autograd;
  FB_CHECK(!requires_grad(t) || !is_leaf(t),
           "a leaf Variable that requires grad has been used in an in-place operation.");
  if (meta && meta->view) {
    FB_CHECK(outputs == 1,
             "If your Function modifies inplace an input that is a view of another Tensor, your "
             "Function cannot "
             "return more than one Tensor. This is not supported by the current autograd engine.");
    FB_CHECK(node->edges.size() > 0,
             "a Function that changes a view in place must take it as its first tensor");
  }
  rebase_history(t, node);
}

void FunctionResults::check(const Tensors& results) const {
  const auto returned = std::count_if(results.begin(), results.end(),
                                      [&](const Tensor& t) { return contains(dirty, t); });
  FB_CHECK(static_cast<size_t>(returned) >= dirty.size(),
           "Some elements marked as dirty during the forward method were not returned as output. "
           "The inputs that are modified inplace must all be outputs of the Function.");
}

bool FunctionResults::differentiable(const Tensor& t) const {
  return is_inexact(t.dtype()) && !contains(fixed, t);
}

Tensor FunctionResults::join(const Tensor& t) const {
  const bool input = contains(inputs, t), changed = contains(dirty, t);
  if (!node) {
    if (!input || changed) return t;
    return requires_grad(t) ? detach(t) : view_of(t, t);
  }
  if (!differentiable(t)) {
    node->add_output(t);
    return requires_grad(t) ? detach(t) : t;
  }
  if (changed) {
    record_dirty(t, node, count);
    return t;
  }
  Tensor out = input ? view_of(t, t) : t;
  if (AutogradMeta* meta = out->autograd; meta && meta->view && !input)
    meta->view->origin = ViewOrigin::CustomFunction;
  set_history(out, node);
  return out;
}

SavedTensor save_of_user(const Tensor& t, Node& node) {
  AutogradMeta* meta = t.defined() ? t->autograd : nullptr;
  const bool output = meta && meta->grad_fn.get() == &node;
  return {t, output, &node, output ? meta->output_nr : 0, /*itself=*/true};
}

}  // namespace flambeau
