// What a node kept, as Python sees it: `grad_fn._saved_NAME`, and `_raw_saved_NAME`, through which
// hooks can be put on one saved tensor.
#pragma once

#include "autograd/node.h"
#include "python/pybase.h"

namespace flambeau::python {

// The attribute, or null without an error when the node kept nothing of that name.
PyObject* saved_attribute(Node& node, const std::string& name);
// Appends the names of all such attributes to a list; false with an error set.
bool append_saved_names(Node& node, PyObject* names);
PyObject* raw_saved_tensor(Node& node, SavedTensor& saved);
// pack(tensor) and unpack(object) of a user as a hook of saved tensors.
PackHook pack_hook(PyObject* pack, PyObject* unpack);
bool init_saved_values(PyObject* module);

}  // namespace flambeau::python
