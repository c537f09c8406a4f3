// Who sees the calls of a thread. While a tracer is set, every call of a binding is handed to it,
// with its arguments bound to a signature, instead of being run; while modes are entered
// (`overrides.TorchFunctionMode`), to the innermost of them. Knows no operation but `full`, which
// comes before one that is given numbers alone.
#pragma once

#include "python/argparse.h"

namespace flambeau::python {

extern thread_local constinit PyObject* tracer;  // null: nobody looks on

// Are calls handed to modes? A tracer comes before them.
bool in_function_mode() noexcept;
// By +1: modes see nothing until as many calls by -1.
void hide_function_modes(int by) noexcept;
// Calls `tracer(name, target, {parameter: argument})` with the tracer off meanwhile. The target is
// None for functions that are no entries of the table.
PyObject* call_traced(const Binding& b, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                      PyObject* kwnames);
// The same for a special method of a tensor: `tracer(name, None, {"0": first, "1": ...})`.
PyObject* call_traced(const char* name, std::initializer_list<PyObject*> args);
// Is it one of the numbers that a tracer has in the place of ints and floats?
bool is_symbolic(PyObject* o) noexcept;

extern PyMethodDef trace_functions[];
extern PyMethodDef entry_functions[];  // call_entry.cpp
extern PyMethodDef indexing_functions[];  // indexing.cpp

}  // namespace flambeau::python
