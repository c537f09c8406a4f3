// Node: one recorded operation. Edges lead to the nodes that made its inputs. Generated node types
// hold what their derivative needs in SavedTensor fields and implement `apply`. Owns recording
// (history, views, in-place); the traversal is engine.h's.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "autograd/inline_vector.h"
#include "autograd/saved_tensor.h"
#include "core/tensor.h"
#include "dispatch/modes.h"

namespace flambeau {

class Node;

struct Edge {
  Ref<Node> node;   // null: no gradient is wanted there
  uint32_t nr = 0;  // which output of that node
};

// Shape and dtype of an output, to make zeros for it and to check gradients that arrive.
struct OutputMeta {
  Ints sizes;
  DType dtype = DType::Float32;
  Device device;
  bool defined = false;
};

// Hooks. A handle id identifies each for removal.
using TensorHook = std::function<Tensor(const Tensor& grad)>;      // undefined result: unchanged
using NodePreHook = std::function<Tensors(const Tensors& grads)>;  // empty result: unchanged
using NodePostHook =
    std::function<Tensors(const Tensors& grad_inputs, const Tensors& grad_outputs)>;
using AccumulateHook = std::function<void(const Tensor& leaf)>;

struct TensorHooks {
  std::vector<std::pair<uint64_t, TensorHook>> pre;
  std::vector<std::pair<uint64_t, AccumulateHook>> post_accumulate;
};
struct NodeHooks {
  std::shared_ptr<void> metadata;  // the binding's: `grad_fn.metadata`
  std::vector<std::tuple<uint64_t, uint32_t, TensorHook>> tensor_pre;  // (id, output nr, hook)
  std::vector<std::tuple<uint32_t, TensorHook>> retain_grad;           // run after tensor_pre
  std::vector<std::pair<uint64_t, NodePreHook>> pre;
  std::vector<std::pair<uint64_t, NodePostHook>> post;
};
uint64_t next_hook_id() noexcept;

// What a registration hands back: removes the hook, if whatever it was registered on still exists.
struct HookHandle {
  uint64_t id = 0;
  std::weak_ptr<TensorHooks> leaf;
  std::weak_ptr<NodeHooks> node;
  void remove() const;
};
// A copy of a list of hooks, safe against other threads that register or remove meanwhile.
std::mutex& hooks_mutex() noexcept;
template <class List>
List snapshot(const List& list) {
  std::lock_guard guard(hooks_mutex());
  return list;
}

// Anomaly mode: where the forward call was, and the node during whose backward it happened.
struct NodeTrace {
  std::string text;
  Ref<Node> parent;
};

class Value;
// Sees what a node kept, by the names of its operation's parameters and results.
class SavedVisitor {
 public:
  virtual ~SavedVisitor() = default;
  virtual void tensor(const char* name, SavedTensor& x) = 0;
  virtual void list(const char* name, std::vector<SavedTensor>& xs) = 0;
  virtual void value(const char* name, const Value& x) = 0;
};

class Node {
 public:
  Node();
  virtual ~Node() = default;
  Node(const Node&) = delete;
  static void* operator new(size_t bytes);
  static void operator delete(void* p, size_t bytes) noexcept;
#ifdef FLAMBEAU_API  // of programs in C++, see flambeau/autograd.h
#include "api/node_members.h"
#endif
  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() const noexcept {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(const_cast<Node*>(this));
  }
  bool try_retain() const noexcept;  // false: it is being destroyed
  uint32_t use_count() const noexcept { return count_.load(std::memory_order_acquire); }
  static void destroy(Node*) noexcept;  // frees chains of any length without recursion

  virtual const char* name() const = 0;  // "MulBackward0" style
  // Cotangents of the outputs (undefined: zero) to those of the inputs, one per edge (undefined:
  // zero or unwanted).
  virtual Tensors apply(Tensors&& grads) = 0;
  virtual void release_saved() {}  // after backward without retain_graph; a later apply raises
  virtual void visit_saved(SavedVisitor&) {}
  virtual bool is_accumulator() const { return false; }
  // May two threads apply it at the same time? Nodes that call user code must say so, as they take
  // no lock.
  virtual bool is_shareable() const { return false; }
  virtual TensorHooks* leaf_hooks() { return nullptr; }  // an accumulator's: those of its leaf

  void add_next(
      const Tensor& input);  // edge to where the input's gradient goes (empty when none is wanted)
  void add_next(const OptTensor& input);
  void add_next(const Tensors& inputs);  // one edge each
  void add_next(const OptTensors& inputs);
  bool needs(size_t i) const { return i < edges.size() && edges[i].node && wanted(i); }
  bool wanted(size_t i) const;           // the running engine asks for it (true outside an engine)
  uint32_t add_output(const Tensor& t);  // notes its metadata, gives its number

  NodeHooks& hooks();
  HookHandle add_hook(uint32_t output,
                      TensorHook hook);  // on the gradient of an output, before the node is applied
  HookHandle add_pre_hook(NodePreHook hook);
  HookHandle add_post_hook(NodePostHook hook);

  InlineVector<Edge, 2> edges;
  InlineVector<OutputMeta, 1> outputs;
  uint64_t sequence;  // order of recording, per process
  std::shared_ptr<NodeHooks> hooks_;
  std::unique_ptr<NodeTrace> trace;   // anomaly mode
  std::atomic<void*> pyobj{nullptr};  // by the binding
  std::atomic<uint32_t> lock{0};      // held by the engine while it applies the node, see NodeLock
  bool released = false;
  bool held = false;  // another node applies it too, and says when what it saved may go

 private:
  mutable std::atomic<uint32_t> count_{1};  // weak pointers find accumulators: 0 must stay 0
};

// Recording
// ------------------------------------------------------------------------------------------------------

bool view_requires_grad(const Tensor& t) noexcept;
// Does a gradient flow to t? A view follows its base, which an in-place change may have given a
// history.
inline bool requires_grad(const Tensor& t) noexcept {
  uint16_t flags = t->flags & (kRequiresGrad | kIsView);
  return flags && (flags & kRequiresGrad || view_requires_grad(t));
}
bool view_is_dual(const Tensor& t);
// Does t have a tangent of any level? A view has one when its base got one.
inline bool is_dual(const Tensor& t) {
  return t.has_flag(kHasTangent) || (t.has_flag(kIsView) && view_is_dual(t));
}
inline bool needs_grad(const Tensor& t) noexcept {
  return modes.grad && t.defined() && requires_grad(t);
}
inline bool needs_grad(const OptTensor& t) noexcept {
  return t && needs_grad(*t);
}
inline bool needs_grad(const Tensors& ts) noexcept {
  if (modes.grad)
    for (auto& t : ts)
      if (needs_grad(t)) return true;
  return false;
}
inline bool needs_grad(const OptTensors& ts) noexcept {
  if (modes.grad)
    for (auto& t : ts)
      if (needs_grad(t)) return true;
  return false;
}

template <class N>
Ref<N> new_node() {
  return Ref<N>::adopt(new N());
}

// result becomes output of node (integral results stay out of the graph).
void set_history(const Tensor& result, const Ref<Node>& node);
void set_history(const Tensors& results, const Ref<Node>& node);
// Before an in-place change: refuses a leaf that requires grad, a view of one, an expanded tensor,
// an inference tensor outside inference mode. `recorded`: an input of the change requires grad;
// `overlap`: elements may share memory.
void check_inplace(const Tensor& self, bool recorded, const char* op, bool overlap = false);
// After one: self's gradient now comes through node; a view also changes its base's history
// (CopySlices).
void rebase_history(const Tensor& self, const Ref<Node>& node);
// Marks result as view of base (both tracked by autograd's view rules, whether or not gradients are
// wanted).
void mark_view(const Tensor& result, const Tensor& input);
// Views that one function returned together: none may be changed in place, under gradients.
Tensors multi_views(Tensors views, const char* function);
// A kernel without derivative was called on inputs that require grad: a node that raises in
// backward.
Ref<Node> not_differentiable(const char* op);

}  // namespace flambeau
