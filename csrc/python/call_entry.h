// Python values as the parameters of an entry of the table.
#pragma once

#include "dispatch/op.h"
#include "python/pybase.h"

namespace flambeau::python {

// The value of a parameter whose type the table spells so; Error(Type) where there is none.
Value value_of(const ParamDesc& p, PyObject* o);
// A value as Python has it; null with a TypeError for one that has no Python form.
PyObject* wrap_value(const Value& x);
// The entry of that name, or in-place form of one; Error(Value) where there is none.
Callee callee_of(PyObject* uid);

}  // namespace flambeau::python
