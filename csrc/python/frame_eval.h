// The hook on the evaluation of Python frames (PEP 523), under which compile() captures functions.
// Supported on CPython 3.11 and 3.12; elsewhere turning it on is an error.
#pragma once

#include "python/pybase.h"

namespace flambeau::python {

bool init_frame_eval(PyObject* module);

}  // namespace flambeau::python
