// flambeau.UntypedStorage: a tensor's memory as bytes, shared with it; also how NumPy sees that
// memory.
#pragma once

#include "core/storage.h"
#include "python/pybase.h"

namespace flambeau::python {

struct StorageObject {
  PyObject_HEAD Ref<Storage> storage;
};
extern PyTypeObject StorageType;
PyObject* wrap_storage(const Ref<Storage>& s) noexcept;

}  // namespace flambeau::python
