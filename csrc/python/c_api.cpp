// The table behind the capsule _C_API, see flambeau/python_api.h.
#define FLAMBEAU_API
#include "python/module.h"
#include "python/tensor_object.h"
#include "python/types.h"

#include "flambeau/library.h"
#include "flambeau/python_api.h"

namespace flambeau::python {

namespace {

PyObject* wrap_copy(const Tensor& x) {
  return wrap(Tensor(x));
}
bool tensor_check(PyObject* o) {
  return is_tensor(o);
}
const Tensor* tensor_of(PyObject* o) {
  return &unwrap(o);
}
bool to_dtype(PyObject* o, DType* d) {
  if (!is_dtype(o)) return false;
  *d = reinterpret_cast<DTypeObject*>(o)->value;
  return true;
}
bool to_device(PyObject* o, Device* d) {
  if (!is_device(o)) return false;
  *d = reinterpret_cast<DeviceObject*>(o)->value;
  return true;
}
void raise_it() {
  raise_current();
}

const PythonApi kTable = {
    kPythonApiVersion, sizeof(TensorImpl), wrap_copy,   tensor_check, tensor_of,
    wrap_dtype,        to_dtype,           wrap_device, to_device,    raise_it,
};

PyObject* take_errors(PyObject*, PyObject*) {
  return guarded([] {
    const std::string text = take_library_errors();
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  });
}
PyMethodDef functions[] = {
    {"_take_library_errors", take_errors, METH_NOARGS,
     "What went wrong when libraries of operators were loaded since the last call."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool init_c_api(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) return false;
  PyRef capsule =
      PyRef::steal(PyCapsule_New(const_cast<PythonApi*>(&kTable), "flambeau._C._C_API", nullptr));
  return capsule && PyModule_AddObjectRef(module, "_C_API", capsule.get()) == 0;
}

}  // namespace flambeau::python
