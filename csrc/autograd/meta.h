// AutogradMeta: what autograd knows of one tensor. A tensor without it is a plain value.
#pragma once

#include <memory>
#include <mutex>

#include "autograd/node.h"

namespace flambeau {

enum class ViewOrigin : uint8_t { Default, NoGrad, Multi, CustomFunction, Inference };  // why in-place on a view may be refused

struct ViewInfo {
  Tensor base;                  // never itself a view
  ViewOrigin origin = ViewOrigin::Default;
  uint32_t version = 0;         // of the base when grad_fn was made; older: grad_fn is regenerated
};

struct AutogradMeta {
  Tensor grad;
  Ref<Node> grad_fn;                       // null for leaves
  uint32_t output_nr = 0;
  bool requires_grad = false;              // asked for, on a leaf
  bool retains_grad = false;
  Node* accumulator = nullptr;             // weak: the leaf's AccumulateGrad, which clears it when it dies
  std::mutex mutex;                        // guards accumulator, grad and lazy regeneration of grad_fn
  std::unique_ptr<ViewInfo> view;
  std::unique_ptr<TensorHooks> hooks;      // hooks of a leaf, and post-accumulate hooks
  Tensor tangent;                          // forward mode
  int tangent_level = -1;
};

AutogradMeta& materialize_meta(const Tensor& t);

// The node and slot from which t's gradient comes: grad_fn, or the leaf's accumulator (made when missing).
Edge gradient_edge(const Tensor& t);
Ref<Node> grad_fn(const Tensor& t);        // regenerates it for a view whose base changed in place
void set_requires_grad(const Tensor& t, bool on);   // Error(Runtime) for non-leaves and non-float dtypes
bool is_leaf(const Tensor& t);
Tensor detach(const Tensor& t);            // alias without history, sharing the version counter
Tensor data_of(const Tensor& t);           // x.data: alias without history, own version counter

}  // namespace flambeau
