// Compiled libraries (runtime/library.h) as Python has them.
#pragma once

#include "python/pybase.h"
#include "runtime/library.h"

namespace flambeau::python {

// What `_Library.function` gave to Python; Error(Type) for anything else.
runtime::LibraryFunction library_function(PyObject* capsule);

bool init_library(PyObject* module);

}  // namespace flambeau::python
