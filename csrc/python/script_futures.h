// Futures of scripts in Python and back. A task that goes out becomes a `futures.Future` that waits
// for it, and comes back as the task; a future of Python's comes in as what asks Python.
#pragma once

#include "python/script_values.h"
#include "script/future.h"

namespace flambeau::python {

bool is_future(PyObject* o);  // a `flambeau.futures.Future`
Value future_from_python(const Conversion& c, PyObject* o);
PyObject* future_to_python(const Value& v);  // a new reference; throws

bool init_script_futures(PyObject* module);

}  // namespace flambeau::python
