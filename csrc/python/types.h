// Small Python types of the core: dtype, layout, memory_format, device, Size, Generator. dtype,
// layout and memory_format objects are singletons, so a comparison is a pointer comparison.
#pragma once

#include "core/generator.h"
#include "core/tensor.h"
#include "python/pybase.h"

namespace flambeau::python {

struct DTypeObject {
  PyObject_HEAD DType value;
};
struct LayoutObject {
  PyObject_HEAD Layout value;
};
struct MemoryFormatObject {
  PyObject_HEAD MemoryFormat value;
};
struct DeviceObject {
  PyObject_HEAD Device value;
};
struct GeneratorObject {
  PyObject_HEAD Generator value;
};

extern PyTypeObject DTypeType, LayoutType, MemoryFormatType, DeviceType_, GeneratorType, SizeType;
extern DTypeObject dtype_objects[kDTypes];

// New references.
inline PyObject* wrap_dtype(DType d) noexcept {
  return Py_NewRef(reinterpret_cast<PyObject*>(&dtype_objects[static_cast<int>(d)]));
}
PyObject* wrap_layout(Layout l) noexcept;
PyObject* wrap_memory_format(MemoryFormat f) noexcept;
PyObject* wrap_device(Device d) noexcept;
PyObject* wrap_generator(const Generator& g) noexcept;
PyObject* wrap_size(const Ints& sizes) noexcept;  // flambeau.Size
PyObject* wrap_ints(const Ints& xs) noexcept;     // a plain tuple
PyObject* wrap_scalar(const Scalar& x) noexcept;  // bool, int, float or complex

inline bool is_dtype(PyObject* o) noexcept {
  return Py_TYPE(o) == &DTypeType;
}
inline bool is_device(PyObject* o) noexcept {
  return Py_TYPE(o) == &DeviceType_;
}

bool init_types(PyObject* module);

}  // namespace flambeau::python
