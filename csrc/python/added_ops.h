// Operations that Python adds, and calls of what anybody added.
#pragma once

#include "python/pybase.h"

namespace flambeau::python {

extern PyMethodDef added_op_functions[];

}  // namespace flambeau::python
