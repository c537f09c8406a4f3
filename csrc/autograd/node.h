// Node: one recorded operation. Edges lead to the nodes that made its inputs. Generated node types hold what their
// derivative needs in SavedTensor fields and implement `apply`. Owns recording (history, views, in-place); the
// traversal is engine.h's.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/tensor.h"
#include "dispatch/modes.h"

namespace flambeau {

class Node;

struct Edge {
  Ref<Node> node;       // null: no gradient is wanted there
  uint32_t nr = 0;      // which output of that node
};

// Shape and dtype of an output, to make zeros for it and to check gradients that arrive.
struct OutputMeta {
  Ints sizes;
  DType dtype = DType::Float32;
  Device device;
  bool defined = false;
};

// Hooks. A handle id identifies each for removal.
using TensorHook = std::function<Tensor(const Tensor& grad)>;            // undefined result: unchanged
using NodePreHook = std::function<Tensors(const Tensors& grads)>;        // empty result: unchanged
using NodePostHook = std::function<Tensors(const Tensors& grad_inputs, const Tensors& grad_outputs)>;
using AccumulateHook = std::function<void(const Tensor& leaf)>;

struct TensorHooks {
  std::vector<std::pair<uint64_t, TensorHook>> pre;
  std::vector<std::pair<uint64_t, AccumulateHook>> post_accumulate;
};
struct NodeHooks {
  std::vector<std::tuple<uint64_t, uint32_t, TensorHook>> tensor_pre;    // (id, output nr, hook)
  std::vector<std::tuple<uint32_t, TensorHook>> retain_grad;             // run after tensor_pre
  std::vector<std::pair<uint64_t, NodePreHook>> pre;
  std::vector<std::pair<uint64_t, NodePostHook>> post;
};

class Node : public Counted<Node> {
 public:
  Node();
  virtual ~Node() = default;
  static void destroy(Node*) noexcept;      // frees chains of any length without recursion

  virtual const char* name() const = 0;     // "MulBackward0" style
  // Cotangents of the outputs (undefined: zero) to those of the inputs, one per edge (undefined: zero or unwanted).
  virtual Tensors apply(Tensors&& grads) = 0;
  virtual void release_saved() {}           // after backward without retain_graph; a later apply raises
  virtual bool is_accumulator() const { return false; }

  void add_next(const Tensor& input);       // edge to where the input's gradient goes (empty when none is wanted)
  void add_next(const OptTensor& input);
  void add_next(const Tensors& inputs);     // one edge each
  void add_next(const OptTensors& inputs);
  bool needs(size_t i) const { return i < edges.size() && edges[i].node && wanted(i); }
  bool wanted(size_t i) const;              // the running engine asks for it (true outside an engine)
  uint32_t add_output(const Tensor& t);     // notes its metadata, gives its number

  NodeHooks& hooks();

  std::vector<Edge> edges;
  std::vector<OutputMeta> outputs;
  uint64_t sequence;                        // order of recording, per process
  std::unique_ptr<NodeHooks> hooks_;
  std::string trace;                        // anomaly mode: where the forward call was
  void* pyobj = nullptr;                    // borrowed, by the binding
  bool released = false;
};

// A tensor kept for the derivative. Outputs are kept without their history (no cycle) and get it back on unpacking.
// Unpacking checks the version counter: a change in place since then is an error that names the node.
class SavedTensor {
 public:
  SavedTensor() = default;
  SavedTensor(const Tensor& t, bool is_output, Node* owner = nullptr, uint32_t output_nr = 0);
  SavedTensor(const OptTensor& t, bool is_output, Node* owner = nullptr, uint32_t output_nr = 0);
  Tensor unpack(const Node& owner) const;   // undefined if none was saved; Error(Runtime) after release
  void reset();

 private:
  Tensor data_;
  uint32_t version_ = 0, output_nr_ = 0;
  bool is_output_ = false, saved_ = false, leaf_ = false;
  std::shared_ptr<void> packed_;            // result of a saved-tensor pack hook
};

// Recording ------------------------------------------------------------------------------------------------------

inline bool needs_grad(const Tensor& t) noexcept { return modes.grad && t.defined() && t.requires_grad(); }
inline bool needs_grad(const OptTensor& t) noexcept { return t && needs_grad(*t); }
inline bool needs_grad(const Tensors& ts) noexcept {
  if (modes.grad)
    for (auto& t : ts)
      if (t.requires_grad()) return true;
  return false;
}
inline bool needs_grad(const OptTensors& ts) noexcept {
  if (modes.grad)
    for (auto& t : ts)
      if (needs_grad(t)) return true;
  return false;
}

template <class N>
Ref<N> new_node() { return Ref<N>::adopt(new N()); }

// result becomes output of node (integral results stay out of the graph).
void set_history(const Tensor& result, const Ref<Node>& node);
void set_history(const Tensors& results, const Ref<Node>& node);
// Before an in-place change: refuses a leaf that requires grad, a view of one, an expanded tensor, an inference tensor
// outside inference mode. `recorded`: an input of the change requires grad.
void check_inplace(const Tensor& self, bool recorded, const char* op);
// After one: self's gradient now comes through node; a view also changes its base's history (CopySlices).
void rebase_history(const Tensor& self, const Ref<Node>& node);
// Marks result as view of base (both tracked by autograd's view rules, whether or not gradients are wanted).
void mark_view(const Tensor& result, const Tensor& input, bool multi = false);
// A kernel without derivative was called on inputs that require grad: a node that raises in backward.
Ref<Node> not_differentiable(const char* op);

}  // namespace flambeau
