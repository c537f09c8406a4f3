// flambeau.UntypedStorage: a tensor's memory as bytes, shared with it; also how NumPy sees that
// memory.
#pragma once

#include "core/dtype.h"
#include "core/storage.h"
#include "python/pybase.h"

namespace flambeau::python {

struct StorageObject {
  PyObject_HEAD Ref<Storage> storage;
  bool is_export;  // counts as one that holds the address
  PyObject* dict;
  PyObject* weakrefs;
};
extern PyTypeObject StorageType;
// The object of a storage: the same one as long as somebody holds it.
PyObject* wrap_storage(const Ref<Storage>& s) noexcept;
// The memory of a storage with or without a type; null for other objects. Error(Runtime) for one of
// another type than `dtype`.
Ref<Storage> storage_from(PyObject* o, DType dtype, const char* op);
// For an array that keeps the object and the address, but gives the buffer back: as long as the
// object lives, the storage keeps its place.
PyObject* export_storage(const Ref<Storage>& s) noexcept;

}  // namespace flambeau::python
