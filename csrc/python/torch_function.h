// What the Tensor type needs of the __torch_function__ protocol; the rest is in tensor_object.h.
#pragma once

#include "python/tensor_object.h"

namespace flambeau::python {

extern PyMethodDef torch_function_functions[];
bool init_torch_function(PyObject* module);
// Tensor.__torch_function__(func, types, args=(), kwargs=None): runs func plainly, results become
// instances of cls.
PyObject* tensor_torch_function(PyObject* cls, PyObject* args, PyObject* kwargs);
// x.as_subclass(cls): the same data and history as an instance of cls (tensor_methods.cpp).
PyObject* as_subclass(PyObject* self, PyObject* cls);

}  // namespace flambeau::python
