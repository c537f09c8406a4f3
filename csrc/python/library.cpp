// See library.h.
#include "python/library.h"

#include <dlfcn.h>

namespace flambeau::python {
namespace {

constexpr const char* kFunction = "flambeau library function";

using Handle = std::shared_ptr<void>;

struct LibraryObject {
  PyObject_HEAD Handle handle;
};

Handle& handle_of(PyObject* self) {
  return reinterpret_cast<LibraryObject*>(self)->handle;
}

void destroy_function(PyObject* capsule) {
  delete static_cast<LibraryFunction*>(PyCapsule_GetPointer(capsule, kFunction));
}

Handle open(const char* path) {
  void* opened;
  {
    GilFree free;
    opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  if (!opened) {
    PyErr_SetString(PyExc_OSError, dlerror());
    throw PythonError();
  }
  return Handle(opened, dlclose);
}

PyObject* library_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* path;
  if (!PyArg_ParseTuple(args, "O&:_Library", PyUnicode_FSConverter, &path)) return nullptr;
  PyRef held = PyRef::steal(path);
  try {
    Handle handle = open(PyBytes_AS_STRING(path));
    PyRef self = checked(type->tp_alloc(type, 0));
    new (&handle_of(self.get())) Handle(std::move(handle));
    return self.release();
  } catch (...) {
    return raise_current();
  }
}

void library_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  std::destroy_at(&handle_of(self));
  type->tp_free(self);
  Py_DECREF(type);
}

// function(name): a function of the library, which keeps it open.
PyObject* library_find(PyObject* self, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) return nullptr;
  const Handle& handle = handle_of(self);
  const void* address = dlsym(handle.get(), text);
  if (!address) return PyErr_Format(PyExc_OSError, "a library: there is no function %s", text);
  auto made = std::make_unique<LibraryFunction>(handle, address);
  PyObject* capsule = PyCapsule_New(made.get(), kFunction, destroy_function);
  if (capsule) made.release();
  return capsule;
}

PyObject* library_handle(PyObject* self, void*) {
  return PyLong_FromVoidPtr(handle_of(self).get());
}

PyMethodDef library_methods[] = {
    {"function", library_find, METH_O, "A function, which keeps the library open."},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef library_properties[] = {
    {"handle", library_handle, nullptr, "The handle of the dynamic linker.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace

LibraryFunction library_function(PyObject* capsule) {
  auto* found = static_cast<LibraryFunction*>(PyCapsule_GetPointer(capsule, kFunction));
  if (!found) {
    PyErr_Format(PyExc_TypeError, "a program: expected a function of a library, got %s",
                 Py_TYPE(capsule)->tp_name);
    throw PythonError();
  }
  return *found;
}

bool init_library(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>("A compiled library, open while it or a function is held.")},
      {Py_tp_new, reinterpret_cast<void*>(library_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(library_dealloc)},
      {Py_tp_methods, library_methods},
      {Py_tp_getset, library_properties},
      {0, nullptr},
  };
  PyType_Spec spec = {"flambeau._C._Library", sizeof(LibraryObject), 0, Py_TPFLAGS_DEFAULT, slots};
  PyRef type = PyRef::steal(PyType_FromSpec(&spec));
  return type && PyModule_AddObjectRef(module, "_Library", type.get()) == 0;
}

}  // namespace flambeau::python
