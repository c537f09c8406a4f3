// Why no signature accepts a call, in PyTorch's words. Only reached when a TypeError is certain.
#pragma once

#include "python/argparse.h"

namespace flambeau::python {

// Sets the TypeError of a call that match() refuses.
void raise_mismatch(const Binding& b, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                    PyObject* kwnames);

// Shared with the matcher.
bool accepts(const Param& p, PyObject* o, bool& overridden);
int find_keyword(Signature& s, PyObject* key);  // -1: no such parameter
bool takes_varargs(const Signature& s, int base);
bool spreads_tensors(const Signature& s, PyObject* const* args, int base, Py_ssize_t nargs);

}  // namespace flambeau::python
