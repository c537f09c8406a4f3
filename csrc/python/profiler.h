// Functions of the module: profiles and named ranges, profiler.cpp.
#pragma once

#include "python/pybase.h"

namespace flambeau::python {

extern PyMethodDef profiler_functions[];

}  // namespace flambeau::python
