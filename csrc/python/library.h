// Compiled libraries that programs run. A library is closed when the last program that has a
// function of it is gone, so that compiling and forgetting leaves nothing in memory.
#pragma once

#include <memory>

#include "python/pybase.h"

namespace flambeau::python {

// Note [Closing libraries]
// A library's code may run only while somebody holds one of its functions: a program holds them,
// and whoever calls a program (a frame's entry, a node of the graph) holds the program until it
// has returned. The threads of a parallel region have left the region's function when the region
// ends: the caller passes its last barrier after all of them. Generated code has no thread-local
// objects and no static ones, so nothing of it is run at the end of a thread or process.
using LibraryFunction = std::shared_ptr<const void>;  // its address; keeps the library open

// What `_Library.function` gave to Python; Error(Type) for anything else.
LibraryFunction library_function(PyObject* capsule);

bool init_library(PyObject* module);

}  // namespace flambeau::python
