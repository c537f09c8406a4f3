// Plain data of Python (numbers, strings, constants of the library, tensors, tuples and lists of
// these) as a tree.
#pragma once

#include "python/pybase.h"
#include "runtime/tree.h"

namespace flambeau::python {

// Error(Type) for what is no plain data.
runtime::Tree tree_of(PyObject* o);

}  // namespace flambeau::python
