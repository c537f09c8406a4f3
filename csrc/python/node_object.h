// The Python face of graph nodes: what `x.grad_fn` is. One object per node; its type is named after
// the operation. The node of a custom Function shows as that Function's context, see
// autograd_function.h.
#pragma once

#include "autograd/node.h"
#include "python/tensor_object.h"

namespace flambeau::python {

extern PyTypeObject* NodeType;  // base of the types of all nodes that C++ defines

PyObject* wrap_node(const Ref<Node>& node);  // a new reference; None for no node
// The node inside; Error(Type) when the object is none, Error(Runtime) when its graph is gone.
Node& unwrap_node(PyObject* o);
bool is_node(PyObject* o) noexcept;
// A tensor's (grad_fn or accumulator, output) or a GradientEdge's.
Edge edge_of(PyObject* o);

// Objects of hooks
// -----------------------------------------------------------------------------------------------

PyObject* wrap_handle(const HookHandle& handle);
PyObject* wrap_optional_tuple(const Tensors& ts);  // undefined as None

// What nodes of both kinds offer to Python: name, next_functions, hooks, metadata.
extern PyMethodDef node_methods[];
extern PyGetSetDef node_properties[];
bool init_node_types(PyObject* module);

}  // namespace flambeau::python
