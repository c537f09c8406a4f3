// What joins processes, as flambeau._C._distributed: stores here, process groups beside them. Owns
// the classes of errors and how blocking calls give up the GIL and listen to Ctrl-C.
#pragma once

#include "distributed/fault.h"
#include "python/pybase.h"

namespace flambeau::python {

bool init_distributed(PyObject* module);       // distributed_module.cpp
bool init_distributed_store(PyObject* space);
bool init_distributed_group(PyObject* space);  // distributed_group.cpp

// Sets the Python exception that stands for a Fault; returns null.
PyObject* raise_fault(const distributed::Fault& f) noexcept;

// `guarded` for functions that may raise a Fault.
template <class F>
PyObject* guarded_fault(F f) noexcept {
  try {
    return f();
  } catch (const distributed::Fault& fault) {
    return raise_fault(fault);
  } catch (...) {
    return raise_current();
  }
}

}  // namespace flambeau::python
