// The module flambeau._C._distributed: its errors, and what interrupts a wait.
#include "python/distributed.h"

namespace flambeau::python {

namespace {

PyObject* errors[4];  // by FaultKind

void listen_to_signals() {
  GilHeld gil;
  checked_int(PyErr_CheckSignals());
}

bool add_error(PyObject* space, const char* name, PyObject* base, const char* doc,
               PyObject** out) {
  *out = PyErr_NewExceptionWithDoc(concat("flambeau.distributed.", name).c_str(), doc, base,
                                   nullptr);
  return *out && PyModule_AddObjectRef(space, name, *out) == 0;
}

bool add_errors(PyObject* space) {
  using distributed::FaultKind;
  auto slot = [](FaultKind kind) { return &errors[static_cast<int>(kind)]; };
  PyObject* base = nullptr;
  return add_error(space, "DistError", PyExc_RuntimeError,
                   "Something went wrong between the processes of a job.", &base) &&
         add_error(space, "DistBackendError", base,
                   "A process group failed: another process died, did not come or disagrees.",
                   slot(FaultKind::Backend)) &&
         add_error(space, "DistNetworkError", base, "A connection failed or was refused.",
                   slot(FaultKind::Network)) &&
         add_error(space, "DistStoreError", base,
                   "A store did not have the keys in time, or refused what was asked.",
                   slot(FaultKind::Store)) &&
         add_error(space, "QueueEmptyError", *slot(FaultKind::Store),
                   "A queue of a store has no entry, and was not to be waited for.",
                   slot(FaultKind::QueueEmpty));
}

}  // namespace

PyObject* raise_fault(const distributed::Fault& f) noexcept {
  PyErr_SetString(errors[static_cast<int>(f.kind)], f.what());
  return nullptr;
}

bool init_distributed(PyObject* module) {
  distributed::check_interrupt = listen_to_signals;
  PyRef space = PyRef::steal(PyModule_New("flambeau._C._distributed"));
  if (!space || !add_errors(space.get()) || !init_distributed_store(space.get()) ||
      !init_distributed_group(space.get()))
    return false;
  return PyDict_SetItemString(PyImport_GetModuleDict(), "flambeau._C._distributed", space.get()) ==
             0 &&
         PyModule_AddObjectRef(module, "_distributed", space.get()) == 0;
}

}  // namespace flambeau::python
