// flambeau.UntypedStorage: a tensor's memory as bytes, shared with it; also how NumPy sees that
// memory.
#pragma once

#include "core/storage.h"
#include "python/pybase.h"

namespace flambeau::python {

struct StorageObject {
  PyObject_HEAD Ref<Storage> storage;
  bool is_export;  // counts as one that holds the address
};
extern PyTypeObject StorageType;
PyObject* wrap_storage(const Ref<Storage>& s) noexcept;
// For an array that keeps the object and the address, but gives the buffer back: as long as the
// object lives, the storage keeps its place.
PyObject* export_storage(const Ref<Storage>& s) noexcept;

}  // namespace flambeau::python
