// Custom differentiable functions: the node that calls a user's `backward`, and the context object
// through which the user's code talks to it. The node owns the context; the context knows the node
// while it lives.
#pragma once

#include "autograd/node.h"
#include "python/tensor_object.h"

namespace flambeau::python {

bool is_context(PyObject* o) noexcept;
// The context of a custom Function's node (borrowed), null for other nodes.
PyObject* context_of(const Node& node) noexcept;
Node* node_of_context(PyObject* context) noexcept;
// Shows the garbage collector the context that the node alone keeps alive.
int visit_context(Node& node, visitproc visit, void* arg);

// _function_apply(cls, setup_context or None, args): runs forward and records it.
PyObject* apply_function(PyObject* module, PyObject* const* args, Py_ssize_t nargs);
bool init_function_type(PyObject* module);

}  // namespace flambeau::python
