// Autograd's part of the Tensor type and of the module, among its own files.
#pragma once

#include "autograd/engine.h"
#include "python/pybase.h"

namespace flambeau::python {

// backward() from Python objects: roots and inputs are tensors or gradient edges, cotangents
// tensors or None.
struct BackwardCall {
  PyObject *roots, *cotangents;  // tuples
  bool keep_graph, create_graph;
  PyObject* inputs;  // a tuple, or null for all leaves
  bool allow_unused, accumulate;
};
PyObject* call_backward(const BackwardCall& call);

PyObject* tensor_backward(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                          PyObject* kwnames);
extern PyMethodDef
    engine_functions[];  // run_backward, callbacks, saved-tensor hooks, anomaly mode, dual numbers
bool init_engine();

}  // namespace flambeau::python
