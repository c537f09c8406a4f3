// UntypedStorage: bytes with a length. It exports the buffer protocol, through which x.numpy()
// shares memory.
#include "python/storage_object.h"

#include <cstddef>
#include <cstring>

#include "core/shared_memory.h"
#include "python/argparse.h"
#include "python/module.h"
#include "python/tensor_object.h"
#include "python/thunks.h"
#include "python/types.h"

namespace flambeau::python {

namespace {
Storage& storage_of(PyObject* o) {
  return *reinterpret_cast<StorageObject*>(o)->storage;
}
uint8_t* bytes_of(PyObject* o) {
  return static_cast<uint8_t*>(storage_of(o).data());
}

// A storage on the meta device has a length and no bytes.
bool is_meta(PyObject* o) {
  return storage_of(o).device().type() == DeviceType::Meta;
}
bool has_bytes(PyObject* o) {
  if (is_meta(o))
    PyErr_SetString(PyExc_NotImplementedError, "Not available for 'meta' device type");
  return !is_meta(o);
}

PyObject* no_data() {
  PyErr_SetString(PyExc_NotImplementedError, "Cannot copy out of meta tensor; no data!");
  return nullptr;
}

PyObject* storage_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"size", "device", nullptr};
  PyObject *size = nullptr, *device = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$O:UntypedStorage", const_cast<char**>(names),
                                   &size, &device))
    return nullptr;
  try {
    PyRef bytes;
    int64_t n = 0;
    if (size && PyIndex_Check(size)) {
      n = PyNumber_AsSsize_t(size, PyExc_OverflowError);
      if (n == -1 && PyErr_Occurred()) return nullptr;
    } else if (size) {
      bytes = checked(PyBytes_FromObject(size));
      n = PyBytes_GET_SIZE(bytes.get());
    }
    FB_CHECK(n >= 0, "UntypedStorage: expected a size of 0 or more, got ", n);
    Device on = device && device != Py_None ? to_usable_device(device) : Device{};
    auto* o = reinterpret_cast<StorageObject*>(checked(type->tp_alloc(type, 0)).release());
    new (&o->storage) Ref<Storage>(Storage::make(n, on));
    o->storage->pyobj = o;
    if (bytes && o->storage->data())
      std::memcpy(o->storage->data(), PyBytes_AS_STRING(bytes.get()), n);
    return reinterpret_cast<PyObject*>(o);
  } catch (...) {
    return raise_current();
  }
}

void storage_dealloc(PyObject* self) {
  auto* o = reinterpret_cast<StorageObject*>(self);
  if (o->weakrefs) PyObject_ClearWeakRefs(self);
  Py_CLEAR(o->dict);
  if (o->storage) {
    if (o->is_export) o->storage->drop_export();
    if (o->storage->pyobj == o) o->storage->pyobj = nullptr;
  }
  o->storage.~Ref<Storage>();
  Py_TYPE(self)->tp_free(self);
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  Storage& s = storage_of(self);
  static uint8_t nothing;
  if (is_meta(self)) {
    PyErr_SetString(PyExc_BufferError, "a storage on the meta device has no bytes");
    return -1;
  }
  if (PyBuffer_FillInfo(view, self, s.data() ? s.data() : &nothing, s.nbytes(), 0, flags) < 0)
    return -1;
  s.add_export();
  return 0;
}
void release_buffer(PyObject* self, Py_buffer*) {
  storage_of(self).drop_export();
}

Py_ssize_t length(PyObject* self) {
  return storage_of(self).nbytes();
}
PyObject* item(PyObject* self, Py_ssize_t i) {
  if (i < 0 || i >= length(self))
    return PyErr_Format(PyExc_IndexError, "index %zd out of range for storage of size %zd", i,
                        length(self));
  return has_bytes(self) ? PyLong_FromLong(bytes_of(self)[i]) : nullptr;
}
int set_item(PyObject* self, Py_ssize_t i, PyObject* value) {
  if (!value || i < 0 || i >= length(self)) {
    PyErr_Format(PyExc_IndexError, "index %zd out of range for storage of size %zd", i,
                 length(self));
    return -1;
  }
  long x = PyLong_AsLong(value);
  if ((x == -1 && PyErr_Occurred()) || !has_bytes(self)) return -1;
  bytes_of(self)[i] = static_cast<uint8_t>(x);
  return 0;
}


// A part of a storage's bytes: memory of its own that keeps the whole alive, and in its place.
void release_whole(void* context) {
  auto* whole = static_cast<Ref<Storage>*>(context);
  (*whole)->drop_export();
  delete whole;
}
PyObject* part(PyObject* self, Py_ssize_t start, Py_ssize_t count) {
  return guarded([&] {
    auto* whole = new Ref<Storage>(reinterpret_cast<StorageObject*>(self)->storage);
    (*whole)->add_export();
    uint8_t* data = bytes_of(self);
    return wrap_storage(Storage::wrap(data ? data + start : nullptr, count, release_whole, whole));
  });
}
// The part that a slice names; false with an error set.
bool resolve(PyObject* self, PyObject* slice, Py_ssize_t& start, Py_ssize_t& count) {
  Py_ssize_t stop, step;
  if (PySlice_Unpack(slice, &start, &stop, &step) < 0) return false;
  count = PySlice_AdjustIndices(length(self), &start, &stop, step);
  if (step != 1)
    PyErr_Format(PyExc_RuntimeError,
                 "Trying to slice with a step of %zd, but only a step of 1 is supported", step);
  return step == 1;
}
bool no_index(PyObject* key) {
  PyErr_Format(PyExc_TypeError, "can't index a torch.UntypedStorage with %s", Py_TYPE(key)->tp_name);
  return false;
}
bool resolve_index(PyObject* self, PyObject* key, Py_ssize_t& i) {
  if (!PyIndex_Check(key)) return no_index(key);
  i = PyNumber_AsSsize_t(key, PyExc_IndexError);
  if (i == -1 && PyErr_Occurred()) return false;
  if (i < 0) i += length(self);
  return true;
}
PyObject* subscript(PyObject* self, PyObject* key) {
  Py_ssize_t i, count;
  if (!PySlice_Check(key)) return resolve_index(self, key, i) ? item(self, i) : nullptr;
  return has_bytes(self) && resolve(self, key, i, count) ? part(self, i, count) : nullptr;
}
int set_subscript(PyObject* self, PyObject* key, PyObject* value) {
  Py_ssize_t i, count;
  if (!PySlice_Check(key)) return resolve_index(self, key, i) ? set_item(self, i, value) : -1;
  if (!value) {
    PyErr_SetString(PyExc_TypeError, "bytes of a storage cannot be deleted");
    return -1;
  }
  long x = PyLong_AsLong(value);
  if ((x == -1 && PyErr_Occurred()) || !has_bytes(self) || !resolve(self, key, i, count)) return -1;
  if (count) std::memset(bytes_of(self) + i, static_cast<int>(x & 255), count);
  return 0;
}

PyObject* nbytes(PyObject* self, PyObject*) {
  return PyLong_FromSsize_t(length(self));
}
PyObject* data_ptr(PyObject* self, PyObject*) {
  return PyLong_FromVoidPtr(storage_of(self).data());
}
PyObject* resize(PyObject* self, PyObject* size) {
  try {
    Py_ssize_t n = PyNumber_AsSsize_t(size, PyExc_OverflowError);
    if (n == -1 && PyErr_Occurred()) return nullptr;
    FB_CHECK(n >= 0, "resize_: expected a size of 0 or more, got ", n);
    storage_of(self).resize(n);
    return Py_NewRef(self);
  } catch (...) {
    return raise_current();
  }
}
PyObject* clone(PyObject* self, PyObject*) {
  try {
    auto copy = Storage::make(length(self), storage_of(self).device());
    if (length(self) && !is_meta(self)) std::memcpy(copy->data(), bytes_of(self), length(self));
    return wrap_storage(copy);
  } catch (...) {
    return raise_current();
  }
}
PyObject* fill(PyObject* self, PyObject* value) {
  long x = PyLong_AsLong(value);
  if (x == -1 && PyErr_Occurred()) return nullptr;
  if (length(self) && !is_meta(self))
    std::memset(bytes_of(self), static_cast<int>(x & 255), length(self));
  return Py_NewRef(self);
}
PyObject* copy_from(PyObject* self, PyObject* args) {
  PyObject *source, *non_blocking = nullptr;
  if (!PyArg_ParseTuple(args, "O!|O:copy_", &StorageType, &source, &non_blocking)) return nullptr;
  if (length(source) != length(self))
    return PyErr_Format(PyExc_RuntimeError, "copy_: expected a storage of %zd bytes, got %zd",
                        length(self), length(source));
  if (is_meta(self)) return Py_NewRef(self);
  if (is_meta(source)) return no_data();
  if (length(self)) std::memmove(bytes_of(self), bytes_of(source), length(self));
  return Py_NewRef(self);
}
PyObject* tolist(PyObject* self, PyObject*) {
  return PySequence_List(self);
}
// Sharing between processes
PyObject* is_shared(PyObject* self, PyObject*) {
  return PyBool_FromLong(flambeau::is_shared(storage_of(self)));
}
PyObject* share_memory(PyObject* self, PyObject*) {
  return guarded([&] {
    share(storage_of(self));
    return Py_NewRef(self);
  });
}
PyObject* resizable(PyObject* self, PyObject*) {
  return PyBool_FromLong(storage_of(self).resizable());
}
PyObject* new_shared(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"size", "device", nullptr};
  Py_ssize_t n = 0;
  PyObject* device = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "n|$O:_new_shared", const_cast<char**>(names), &n,
                                   &device))
    return nullptr;
  return guarded([&] {
    FB_CHECK(n >= 0, "_new_shared: expected a size of 0 or more, got ", n);
    return wrap_storage(make_shared_storage(n));
  });
}
PyObject* from_file(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"filename", "shared", "nbytes", nullptr};
  PyObject* name = nullptr;
  int shared = 0;
  Py_ssize_t n = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|pn:from_file", const_cast<char**>(names),
                                   PyUnicode_FSConverter, &name, &shared, &n))
    return nullptr;
  PyRef path = PyRef::steal(name);
  return guarded([&] {
    FB_CHECK(n >= 0, "from_file: expected a length of 0 or more, got ", n);
    return wrap_storage(map_file(PyBytes_AS_STRING(path.get()), shared, n));
  });
}
// _descriptor(): of shared memory, for as long as the storage lives; _from_descriptor(fd, nbytes).
PyObject* descriptor(PyObject* self, PyObject*) {
  return guarded([&] {
    const SharedMapping* m = mapping_of(storage_of(self));
    FB_CHECK(m && m->shared, "_descriptor: expected shared memory; call share_memory_() first");
    return PyLong_FromLong(m->descriptor);
  });
}
PyObject* from_descriptor(PyObject*, PyObject* args) {
  int fd;
  Py_ssize_t n;
  if (!PyArg_ParseTuple(args, "in:_from_descriptor", &fd, &n)) return nullptr;
  return guarded([&] { return wrap_storage(map_descriptor(fd, n)); });
}
PyObject* filename(PyObject* self, void*) {
  const SharedMapping* m = mapping_of(storage_of(self));
  if (!m || m->file_name.empty()) Py_RETURN_NONE;
  return PyUnicode_DecodeFSDefault(m->file_name.c_str());
}

// Copies and pickles are made by flambeau/_tensor_pickle.py, with those of tensors.
PyObject* by_module(const char* function, PyObject* self, PyObject* argument) {
  PyRef module = PyRef::steal(import_module("flambeau._tensor_pickle"));
  return module ? PyObject_CallMethod(module.get(), function, "OO", self, argument) : nullptr;
}
PyObject* deepcopy(PyObject* self, PyObject* memo) {
  return by_module("deepcopy_storage", self, memo);
}
PyObject* reduce_ex(PyObject* self, PyObject* protocol) {
  return by_module("reduce_storage", self, protocol);
}
PyObject* size_of(PyObject* self, PyObject*) {
  return PyLong_FromSsize_t(Py_TYPE(self)->tp_basicsize + length(self));
}
PyObject* element_size(PyObject*, PyObject*) {
  return PyLong_FromLong(1);
}
PyObject* same(PyObject* self, PyObject*) {
  return Py_NewRef(self);
}
PyObject* cpu(PyObject* self, PyObject*) {
  return is_meta(self) ? no_data() : Py_NewRef(self);
}
PyObject* device(PyObject* self, void*) {
  return wrap_device(storage_of(self).device());
}
PyObject* cdata(PyObject* self, void*) {
  return PyLong_FromVoidPtr(&storage_of(self));
}
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (!PyObject_TypeCheck(b, &StorageType) || (op != Py_EQ && op != Py_NE))
    Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((&storage_of(a) == &storage_of(b)) == (op == Py_EQ));
}
Py_hash_t hash(PyObject* self) {
  return _Py_HashPointer(&storage_of(self));
}
PyObject* repr(PyObject* self) {
  PyRef values = PyRef::steal(is_meta(self) ? PyList_New(0) : PySequence_List(self));
  PyRef text = PyRef::steal(PyUnicode_FromString(is_meta(self) ? "...\n" : ""));
  for (Py_ssize_t i = 0; values && text && i < PyList_GET_SIZE(values.get()); ++i)
    text =
        PyRef::steal(PyUnicode_FromFormat("%U %R\n", text.get(), PyList_GET_ITEM(values.get(), i)));
  if (!values || !text) return nullptr;
  return PyUnicode_FromFormat("%U[torch.storage.UntypedStorage(device=%s) of size %zd]", text.get(),
                              is_meta(self) ? "meta" : "cpu", length(self));
}

PyCFunction keyword_method(PyCFunctionWithKeywords f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyMethodDef methods[] = {
    {"nbytes", nbytes, METH_NOARGS, "Length in bytes."},
    {"size", nbytes, METH_NOARGS, "Length in bytes."},
    {"data_ptr", data_ptr, METH_NOARGS, "Address of the first byte."},
    {"resize_", resize, METH_O, "Changes the length, keeping the common part."},
    {"clone", clone, METH_NOARGS, "A copy."},
    {"fill_", fill, METH_O, "Sets every byte."},
    {"copy_", copy_from, METH_VARARGS, "Copies the bytes of a storage of the same length."},
    {"tolist", tolist, METH_NOARGS, "The bytes as a list of ints."},
    {"cpu", cpu, METH_NOARGS, "The storage itself: it lives on the CPU."},
    {"untyped", same, METH_NOARGS, "The storage itself."},
    {"is_shared", is_shared, METH_NOARGS, "Is the memory shared between processes?"},
    {"share_memory_", share_memory, METH_NOARGS,
     "Moves the bytes, in place, to memory that processes started later, or that the storage is "
     "sent to, share."},
    {"resizable", resizable, METH_NOARGS, "Can resize_ change the length?"},
    {"element_size", element_size, METH_NOARGS, "1: a storage without type counts bytes."},
    {"_new_shared", keyword_method(new_shared), METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "A storage in shared memory."},
    {"from_file", keyword_method(from_file), METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "from_file(filename, shared=False, nbytes=0): the bytes of a file. If shared, writes go to "
     "the file, which is made when it is missing."},
    {"_descriptor", descriptor, METH_NOARGS, nullptr},
    {"_from_descriptor", from_descriptor, METH_VARARGS | METH_STATIC, nullptr},
    {"__deepcopy__", deepcopy, METH_O, nullptr},
    {"__copy__", clone, METH_NOARGS, nullptr},
    {"__reduce_ex__", reduce_ex, METH_O, nullptr},
    {"__sizeof__", size_of, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
// _extend_storage(names): the methods that are written in Python (flambeau/storage.py).
PyObject* extend(PyObject*, PyObject* names) {
  if (!PyDict_Check(names) || PyDict_Update(StorageType.tp_dict, names) < 0) return nullptr;
  PyType_Modified(&StorageType);
  Py_RETURN_NONE;
}
PyMethodDef module_functions[] = {
    {"_extend_storage", extend, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef properties[] = {
    {"device", device, nullptr, "Where the memory is.", nullptr},
    {"filename", filename, nullptr, "The file that it maps, or None.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"_cdata", cdata, nullptr, "Identity of the memory.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PySequenceMethods sequence = {};
PyMappingMethods mapping = {};
PyBufferProcs buffer = {get_buffer, release_buffer};
}  // namespace

PyTypeObject StorageType = static_type("flambeau.UntypedStorage", sizeof(StorageObject),
                                       "The memory of a tensor as bytes: UntypedStorage(size).");

static PyObject* make_object(const Ref<Storage>& s) noexcept {
  auto* o = PyObject_New(StorageObject, &StorageType);
  if (!o) return nullptr;
  new (&o->storage) Ref<Storage>(s);
  o->is_export = false;
  o->dict = o->weakrefs = nullptr;
  return reinterpret_cast<PyObject*>(o);
}

PyObject* wrap_storage(const Ref<Storage>& s) noexcept {
  if (s->pyobj) return Py_NewRef(static_cast<PyObject*>(s->pyobj));
  PyObject* o = make_object(s);
  s->pyobj = o;
  return o;
}

Ref<Storage> storage_from(PyObject* o, DType dtype, const char* op) {
  if (PyObject_TypeCheck(o, &StorageType)) return reinterpret_cast<StorageObject*>(o)->storage;
  if (is_tensor(o) || !PyObject_HasAttrString(o, "_untyped_storage")) return {};
  PyRef untyped = checked(PyObject_CallMethod(o, "untyped", nullptr));
  PyRef type = checked(PyObject_GetAttrString(o, "dtype"));
  if (!PyObject_TypeCheck(untyped.get(), &StorageType)) return {};
  DType given = to_dtype(type.get());
  FB_CHECK(given == dtype, op, ": expected a storage of dtype ", dtype_name(dtype),
           " or one without dtype, got ", dtype_name(given));
  return reinterpret_cast<StorageObject*>(untyped.get())->storage;
}

PyObject* export_storage(const Ref<Storage>& s) noexcept {
  PyObject* o = make_object(s);
  if (!o) return nullptr;
  reinterpret_cast<StorageObject*>(o)->is_export = true;
  s->add_export();
  return o;
}

bool init_storage(PyObject* module) {
  sequence.sq_length = length;
  sequence.sq_item = item;
  sequence.sq_ass_item = set_item;
  mapping.mp_length = length;
  mapping.mp_subscript = subscript;
  mapping.mp_ass_subscript = set_subscript;
  StorageType.tp_as_mapping = &mapping;
  StorageType.tp_flags |= Py_TPFLAGS_BASETYPE;
  StorageType.tp_new = storage_new;
  StorageType.tp_dealloc = storage_dealloc;
  StorageType.tp_as_sequence = &sequence;
  StorageType.tp_as_buffer = &buffer;
  StorageType.tp_repr = repr;
  StorageType.tp_hash = hash;
  StorageType.tp_richcompare = compare;
  StorageType.tp_methods = methods;
  StorageType.tp_getset = properties;
  StorageType.tp_dictoffset = offsetof(StorageObject, dict);
  StorageType.tp_weaklistoffset = offsetof(StorageObject, weakrefs);
  if (PyType_Ready(&StorageType) < 0) return false;
  if (PyModule_AddFunctions(module, module_functions) < 0) return false;
  return PyModule_AddObjectRef(module, "UntypedStorage",
                               reinterpret_cast<PyObject*>(&StorageType)) == 0;
}

}  // namespace flambeau::python
