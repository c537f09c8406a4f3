// Note [Views and changes in place]
// A view remembers its base. A change through a view is a change of the base: the base's new
// history is a CopySlices node, which cuts the view's part out of the base's gradient, hands it to
// the node of the change and puts the answer back. Other views notice by the version counter, which
// they share with the base, that their history is old, and get a new one (AsStridedBackward0 of the
// base as it is now) when somebody asks for it.
#include "autograd/views.h"

#include <string>

#include "autograd/change_watch.h"
#include "autograd/grad_ops.h"
#include "autograd/wanted.h"

namespace flambeau {

namespace {

struct AsStridedBackward final : Node {
  MemoryPlace base, view;
  AsStridedBackward(const Tensor& base, const Tensor& view) : base(base), view(view) {}
  const char* name() const override { return "AsStridedBackward0"; }
  Tensors apply(Tensors&& grads) override {
    if (!grads[0].defined() || !needs(0)) return Tensors(1);
    return {grad_ops::scatter_to_base(grads[0], base.dtype, base.sizes, base.strides, view.dtype,
                                      view.sizes, view.strides, view.offset_in(base))};
  }
};

class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& base, const Tensor& view, const Ref<Node>& change)
      : base_(base), view_(view), change_(change) {
    edges.push_back(gradient_edge(base));
    for (uint32_t i = 1; i < change->edges.size(); ++i) edges.push_back(change->edges[i]);
    add_output(base);
    change->held = true;
  }
  const char* name() const override { return "CopySlices"; }

  Tensors apply(Tensors&& grads) override {
    Tensors out(edges.size());
    if (!grads[0].defined()) return out;
    Tensor whole = grad_ops::copy_strided(grads[0], base_.sizes, base_.strides);
    Tensor part = grad_ops::slice_of(whole, view_.dtype, view_.sizes, view_.strides,
                                     view_.offset_in(base_));
    Tensors inner = apply_change(grad_ops::clone(part));
    if (needs(0)) {
      if (!inner.empty() && inner[0].defined())
        grad_ops::copy_(part, inner[0]);
      else
        grad_ops::zero_(part);
      out[0] = whole;
    }
    for (size_t i = 1; i < inner.size() && i < out.size(); ++i)
      if (needs(i)) out[i] = inner[i];
    return out;
  }

  // A second derivative reaches the change by what it saved of its own results: such a graph may
  // still have to run through it.
  void release_saved() override {
    if (change_->use_count() > 1) return;
    change_->release_saved();
    change_->released = true;
  }

 private:
  // The change's first edge leads to the view's old history, which the engine does not visit: its
  // part is the base's.
  Tensors apply_change(Tensor grad) {
    Node* old = change_->edges.empty() ? nullptr : change_->edges[0].node.get();
    WantedAlias alias(old, edges[0].node.get());
    Tensors grads;
    grads.push_back(std::move(grad));
    return change_->apply(std::move(grads));
  }

  MemoryPlace base_, view_;
  Ref<Node> change_;
};

// Refuses a change of a view whose history could not follow it. `indirect`: it was changed through
// another tensor.
void refuse_by_origin(AutogradMeta& meta, bool indirect) {
  ViewOrigin origin = meta.view->origin;
  if (origin == ViewOrigin::Default) return;
  std::string what =
      indirect ? " is a view and its base or another view of its base has been modified inplace."
               : " is a view and is being modified inplace.";
  if (origin == ViewOrigin::NoGrad || origin == ViewOrigin::Inference) {
    const char* mode = origin == ViewOrigin::NoGrad ? "no_grad" : "inference";
    fail(ErrorKind::Runtime, "A view was created in ", mode, " mode and ",
         indirect ? "its base or another view of its base has been" : "is being",
         " modified inplace ",
         origin == ViewOrigin::NoGrad ? "with grad mode enabled" : "in normal mode",
         ". Given that this use case is ambiguous and error-prone, it is forbidden. You can "
         "clarify your code by moving "
         "both the view and the inplace either both inside the ",
         mode, origin == ViewOrigin::NoGrad ? "" : "_mode",
         " block (if you don't want the inplace to be tracked) or both outside (if you want the "
         "inplace to be tracked).");
  }
  bool multi = meta.view->function != nullptr;
  std::string name = multi ? meta.view->function : meta.grad_fn ? meta.grad_fn->name() : "a view";
  if (!multi) name = name.substr(0, name.rfind("Backward"));
  uint32_t place = multi ? meta.view->place : meta.output_nr;
  std::string head = concat("Output ", place, " of ", name, what);
  FB_CHECK(origin != ViewOrigin::Multi, head,
           " This view is the output of a function that returns multiple views. Such "
           "functions do not allow the output views to be modified inplace. You should replace the "
           "inplace operation by an "
           "out-of-place one.");
  fail(ErrorKind::Runtime, head,
       " This view was created inside a custom Function (or because an input was returned as-is) "
       "and the autograd logic to handle view+inplace would override the custom backward "
       "associated with the custom "
       "Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by "
       "cloning the output of "
       "the custom Function.");
}

// A result that keeps its gradient goes on doing so under its new node.
void move_retained(AutogradMeta& meta, const Ref<Node>& to, uint32_t nr) {
  if (!meta.retained || !meta.grad_fn || !meta.grad_fn->hooks_) return;
  auto& from = meta.grad_fn->hooks_->retain_grad;
  for (auto it = from.begin(); it != from.end(); ++it) {
    if (std::get<0>(*it) != meta.output_nr) continue;
    to->hooks().retain_grad.emplace_back(nr, std::move(std::get<1>(*it)));
    from.erase(it);
    return;
  }
}

void follow(const Tensor& t, AutogradMeta& meta, const Ref<Node>& node, uint32_t nr) {
  move_retained(meta, node, nr);
  meta.grad_fn = node;
  meta.output_nr = nr;
  meta.requires_grad = false;
  t.set_flag(kRequiresGrad);
}

}  // namespace

bool view_requires_grad(const Tensor& t) noexcept {
  return t->autograd && t->autograd->view && t->autograd->view->base.requires_grad();
}

Ref<Node> view_grad_fn(const Tensor& t, AutogradMeta& meta) {
  std::lock_guard guard(meta.mutex);
  const Tensor& base = meta.view->base;
  if (!meta.grad_fn && !base.requires_grad()) return {};
  uint32_t now = t.version();
  if (meta.view->version == now) [[likely]]
    return meta.grad_fn;
  refuse_by_origin(meta, true);
  auto node = Ref<AsStridedBackward>::adopt(new AsStridedBackward(base, t));
  node->edges.push_back(gradient_edge(base));
  follow(t, meta, node, node->add_output(t));
  meta.view->version = now;
  return meta.grad_fn;
}

void mark_view_as(const Tensor& result, const Tensor& input, ViewOrigin origin) {
  if (result.has_flag(kInference) || result.is_same(input)) return;
  AutogradMeta* from = input->autograd;
  bool chained = from && from->view;
  if (origin == ViewOrigin::Default && chained) origin = from->view->origin;
  AutogradMeta& meta = materialize_meta(result);
  meta.view.emplace(ViewInfo{chained ? from->view->base : input, origin, result.version()});
  result.set_flag(kIsView);
}

void mark_view(const Tensor& result, const Tensor& input) {
  ViewOrigin origin = modes.inference ? ViewOrigin::Inference
                      : !modes.grad   ? ViewOrigin::NoGrad
                                      : ViewOrigin::Default;
  mark_view_as(result, input, origin);
}

Tensors multi_views(Tensors views, const char* function) {
  for (size_t i = 0; i < views.size(); ++i) {
    AutogradMeta* meta = views[i]->autograd;
    if (!meta || !meta->view || meta->view->origin != ViewOrigin::Default) continue;
    meta->view->origin = ViewOrigin::Multi;
    meta->view->function = function;
    meta->view->place = static_cast<uint32_t>(i);
  }
  return views;
}

void check_inplace(const Tensor& self, bool recorded, const char* op, bool overlap) {
  before_change(self, op);
  FB_CHECK(!self.has_flag(kInference) || modes.inference,
           "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a "
           "clone to get a normal "
           "tensor before doing inplace update.");
  FB_CHECK(overlap || self.is_contiguous() || !has_internal_overlap(self),
           "unsupported operation: more than one element of the written-to tensor refers to a "
           "single memory location. "
           "Please clone() the tensor before performing the operation.");
  AutogradMeta* meta = self->autograd;
  if (!meta || !modes.grad || !(recorded || requires_grad(self))) return;
  if (meta->view) {
    refuse_by_origin(*meta, false);
    FB_CHECK(
        !requires_grad(self) || !is_leaf(meta->view->base),
        "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  }
  FB_CHECK(!meta->requires_grad || !is_leaf(self),
           "a leaf Variable that requires grad is being used in an in-place operation.");
}

void rebase_history(const Tensor& self, const Ref<Node>& node) {
  uint32_t nr = node->add_output(self);
  if (!is_inexact(self.dtype())) return;
  AutogradMeta& meta = materialize_meta(self);
  if (!meta.view) {
    follow(self, meta, node, nr);
    return;
  }
  const Tensor& base = meta.view->base;
  auto slices = Ref<CopySlices>::adopt(new CopySlices(base, self, node));
  follow(base, materialize_meta(base), slices, 0);
  self.set_flag(kRequiresGrad);
  meta.view->version = self.version() - 1;  // old: the history is made anew when asked for
}

}  // namespace flambeau
