// Guards of captured frames: a tree of places (local 0, its item 2, the attribute "weight" of that)
// with checks on what is found there, run natively on every call of a compiled frame. A place may
// be given a slot: what was found there is handed on to the compiled code, so nothing is looked up
// twice. Knows frames only as arrays of values.
#pragma once

#include <vector>

#include "python/pybase.h"

namespace flambeau::python {

// What a frame offers to guards. All borrowed.
struct FrameValues {
  PyObject* function;
  PyObject* globals;
  PyObject* const* locals;  // entries may be null
  Py_ssize_t nlocals;
};

class Guards;

// The tree inside a `_Guards` object, or null with TypeError set.
Guards* guards_of(PyObject* object);
// Runs all checks. On success `slots` holds new references, one per slot. No exception stays set.
bool run_guards(Guards& guards, const FrameValues& frame, std::vector<PyRef>& slots);

bool init_guards(PyObject* module);

}  // namespace flambeau::python
