// AutogradMeta: what autograd knows of one tensor. A tensor without it is a plain value.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "autograd/node.h"

namespace flambeau {

enum class ViewOrigin : uint8_t {
  Default,
  NoGrad,
  Multi,
  CustomFunction,
  Inference
};  // why in-place on a view may be refused

struct ViewInfo {
  Tensor base;  // never itself a view
  ViewOrigin origin = ViewOrigin::Default;
  uint32_t version = 0;  // of the base when grad_fn was made; older: grad_fn is regenerated
  const char* function = nullptr;  // of Multi: the node that messages name
  uint32_t place = 0;              // of Multi: which of the views it is
};

// Through which a node reaches a tensor that wants its gradient kept; null once the tensor is gone.
struct RetainCell {
  std::mutex mutex;
  AutogradMeta* meta = nullptr;
};

// Where a tensor lies in memory.
struct MemoryPlace {
  DType dtype;
  Ints sizes, strides;
  int64_t offset;  // in bytes
  explicit MemoryPlace(const Tensor& t)
      : dtype(t.dtype()),
        sizes(t.sizes()),
        strides(t.strides()),
        offset(t.offset() * t.itemsize()) {}
  // From the first element of another over the same memory, in elements of this one.
  int64_t offset_in(const MemoryPlace& base) const {
    return (offset - base.offset) / itemsize(dtype);
  }
};

// A tangent, shared by a tensor and by what nodes saved of it; emptied when its level ends. See
// Note [Tangents of views] in autograd/forward_mode.cpp.
struct Tangent final : Packed {
  Tensor value;  // of a view: what `base` held at `version`
  int64_t level = -1;
  std::shared_ptr<Tangent> outer;      // of a level further out
  std::shared_ptr<Tangent> base;       // of a view: that of the tensor that it is a view of
  std::unique_ptr<const MemoryPlace> place;  // of a view and of its base
  uint32_t version = 0;                // of a base: how often it changed
  bool apart = false;                  // of a view that has no share in its base's tangent
  Tensor unpack() override { return value; }
};

// What a wrapper of a transform (kWrapper) stands for: see func/vmap.h.
struct Wrapped {
  Tensor value;
  int64_t level;  // identifies the level that made it
  int64_t depth;  // how deep that level is nested
  bool batched;   // the value has a batch in dim 0
};

struct AutogradMeta {
  Tensor grad;
  Ref<Node> grad_fn;  // null for leaves
  uint32_t output_nr = 0;
  bool requires_grad = false;   // asked for, on a leaf
  Node* accumulator = nullptr;  // weak: the leaf's AccumulateGrad, which clears it when it dies
  std::mutex mutex;             // guards accumulator, grad and lazy regeneration of grad_fn
  std::optional<ViewInfo> view;
  std::shared_ptr<TensorHooks> hooks;      // hooks of a leaf, and post-accumulate hooks
  std::shared_ptr<RetainCell> retained;    // of a result that keeps its gradient
  std::shared_ptr<Tangent> tangent;        // forward mode: of the innermost level that gave one
  std::shared_ptr<const Wrapped> wrapped;  // of wrappers

  static void* operator new(size_t bytes) { return Node::operator new(bytes); }
  static void operator delete(void* p, size_t bytes) noexcept { Node::operator delete(p, bytes); }
};

AutogradMeta& materialize_meta(const Tensor& t);

// The node and slot from which t's gradient comes: grad_fn, or the leaf's accumulator (made when
// missing).
Edge gradient_edge(const Tensor& t);
Ref<Node> grad_fn(const Tensor& t);  // regenerates it for a view whose base changed in place
// The leaf's accumulator if it has one now.
Ref<Node> find_accumulator(const Tensor& t);
void set_requires_grad(const Tensor& t,
                       bool on);  // Error(Runtime) for non-leaves and non-float dtypes
bool is_leaf(const Tensor& t);
Tensor detach(const Tensor& t);   // alias without history, sharing the version counter
void detach_(const Tensor& t);    // drops t's own history; Error(Runtime) for views
Tensor data_of(const Tensor& t);  // x.data: alias without history, own version counter
Tensor grad_of(const Tensor& t);  // undefined: none
void set_grad(const Tensor& t, const Tensor& grad);
void mark_view_as(const Tensor& result, const Tensor& input, ViewOrigin origin);

HookHandle add_tensor_hook(const Tensor& t, TensorHook hook);
HookHandle add_accumulate_hook(const Tensor& t, AccumulateHook hook);
void retain_grad(const Tensor& t);

}  // namespace flambeau
