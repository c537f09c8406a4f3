// `flambeau._C._Future`, of which `flambeau.futures.Future` is the public class.
#pragma once

#include "python/pybase.h"

namespace flambeau::python {

PyObject* future_class();  // `flambeau.futures.Future`; borrowed, throws

bool init_futures(PyObject* module);

}  // namespace flambeau::python
