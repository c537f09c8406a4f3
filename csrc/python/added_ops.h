// Operations that Python adds, and calls of what anybody added.
#pragma once

#include "dispatch/op.h"
#include "python/pybase.h"

namespace flambeau::python {

// An argument whose type is `Object`; Error(Type) that names it where it is of another.
Value object_argument(const OpDesc& op, size_t i, PyObject* o);

extern PyMethodDef added_op_functions[];

}  // namespace flambeau::python
