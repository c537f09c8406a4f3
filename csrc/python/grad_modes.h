// Context managers of gradient recording, as types of the module.
#pragma once

#include "python/pybase.h"

namespace flambeau::python {

bool init_grad_modes(PyObject* module);

}  // namespace flambeau::python
