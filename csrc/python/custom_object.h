// Objects of classes of C++ (script/custom.h) as Python has them: `flambeau._C.ScriptObject` and,
// for each class, a class of Python derived from it, which flambeau/classes.py makes.
#pragma once

#include "python/pybase.h"
#include "script/custom.h"

namespace flambeau::python {

bool is_custom(PyObject* o) noexcept;
Value custom_value(PyObject* o);             // of one that is
PyObject* custom_to_python(const Value& v);  // a new reference, or null with an error

extern PyMethodDef custom_functions[];

}  // namespace flambeau::python
