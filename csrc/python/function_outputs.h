// Custom Functions, among their own files: node and context, and how a forward's results join the
// graph.
#pragma once

#include <string>

#include "autograd/node.h"
#include "python/autograd_function.h"

namespace flambeau::python {

class FunctionNode;

struct ContextObject {
  PyObject_HEAD FunctionNode*
      node;  // borrowed; null when nothing was recorded or the graph is gone
  PyObject *to_save, *for_forward, *non_differentiable, *dirty, *needs_input_grad;
  bool materialize;
};

class FunctionNode final : public Node {
 public:
  explicit FunctionNode(ContextObject* context);
  ~FunctionNode() override;
  const char* name() const override { return name_.c_str(); }
  Tensors apply(Tensors&& grads) override;
  void release_saved() override;
  bool is_shareable() const override { return true; }  // the GIL orders its users

  ContextObject* const context;  // owned
  std::vector<SavedTensor> saved;
  std::vector<bool> is_tensor_input;

 private:
  Tensors gradients(PyObject* result) const;
  std::string name_;
};

// The tuple that apply returns, from the one that forward returned. Tensors become outputs of node
// (null: nothing is recorded): inputs handed through as they are come back as views, dirty ones get
// their history changed.
PyRef wrap_outputs(PyObject* raw, const Tensors& inputs, const Ref<FunctionNode>& node,
                   ContextObject& context);
// Forward mode: tangents of the outputs by the class's jvp.
void push_tangents(PyObject* cls, PyObject* ctx, PyObject* inputs, PyObject* outputs);

}  // namespace flambeau::python
