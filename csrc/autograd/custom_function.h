// How the results of a function of the user's join the graph: its forward ran without recording,
// its derivative is the user's own. Python's autograd.Function and that of C++ keep these rules.
#pragma once

#include "autograd/node.h"

namespace flambeau {

// What a forward was given and said of its results.
struct FunctionResults {
  Tensors inputs;
  Tensors dirty;  // inputs that it changed in place
  Tensors fixed;  // results without derivative
  size_t count;   // of tensors among the results
  Ref<Node> node;  // null: nothing is recorded

  // Error(Runtime) when a dirty input is not among the results.
  void check(const Tensors& results) const;
  bool differentiable(const Tensor& t) const;
  // The result as the caller gets it, an output of the node. Inputs handed through as they are come
  // back as views, dirty ones get their history changed.
  Tensor join(const Tensor& t) const;
};

// Keeps what a forward saved: a tensor, or one of the node's outputs.
SavedTensor save_of_user(const Tensor& t, Node& node);

}  // namespace flambeau
