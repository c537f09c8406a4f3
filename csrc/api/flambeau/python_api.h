// What an extension module needs of Python's side of the library, as a table behind the capsule
// flambeau._C._C_API: an extension is linked to libflambeau alone. Include it behind Python.h.
#pragma once

#include "flambeau/flambeau.h"

namespace flambeau {

inline constexpr uint32_t kPythonApiVersion = 1;

struct PythonApi {
  uint32_t version;  // kPythonApiVersion
  uint32_t
      tensor_size;  // of what a tensor refers to: differs where the headers are another build's
  PyObject* (*wrap)(const Tensor& x);  // new reference; None of an undefined tensor
  bool (*is_tensor)(PyObject* o);
  const Tensor* (*unwrap)(PyObject* o);  // of a tensor
  PyObject* (*wrap_dtype)(DType d);
  bool (*to_dtype)(PyObject* o, DType* d);  // false: it is none; no exception is set
  PyObject* (*wrap_device)(Device d);
  bool (*to_device)(PyObject* o, Device* d);
  void (*raise)();  // inside of a handler: the exception of C++ becomes one of Python
};

// Loads the table once. Error(Runtime) when the extension was built for another version.
inline const PythonApi& python_api() {
  static const PythonApi* const api = [] {
    auto* table = static_cast<const PythonApi*>(PyCapsule_Import("flambeau._C._C_API", 0));
    if (!table) {
      PyErr_Clear();
      fail(ErrorKind::Runtime, "the extension was built for Flambeau, which is not imported");
    }
    FB_CHECK(table->version == kPythonApiVersion && table->tensor_size == sizeof(TensorImpl),
             "the extension was built for another version of Flambeau (interface ",
             kPythonApiVersion, ", the package has ", table->version, "); build it again");
    return table;
  }();
  return *api;
}

}  // namespace flambeau
