// See library.h.
#include "python/library.h"

namespace flambeau::python {
namespace {

constexpr const char* kFunction = "flambeau library function";

using runtime::Library;
using runtime::LibraryFunction;

struct LibraryObject {
  PyObject_HEAD Library handle;
};

Library& handle_of(PyObject* self) {
  return reinterpret_cast<LibraryObject*>(self)->handle;
}

void destroy_function(PyObject* capsule) {
  delete static_cast<LibraryFunction*>(PyCapsule_GetPointer(capsule, kFunction));
}

// What `f` gives; OSError where it fails.
template <class F>
auto or_os_error(F&& f) {
  try {
    return f();
  } catch (const Error& e) {
    PyErr_SetString(PyExc_OSError, e.what());
    throw PythonError();
  }
}

PyObject* library_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* path;
  if (!PyArg_ParseTuple(args, "O&:_Library", PyUnicode_FSConverter, &path)) return nullptr;
  PyRef held = PyRef::steal(path);
  try {
    Library handle = or_os_error([&] {
      GilFree free;
      return runtime::open_library(PyBytes_AS_STRING(path));
    });
    PyRef self = checked(type->tp_alloc(type, 0));
    new (&handle_of(self.get())) Library(std::move(handle));
    return self.release();
  } catch (...) {
    return raise_current();
  }
}

// of(bytes): a library of which there are the bytes alone.
PyObject* library_of_bytes(PyObject* type, PyObject* data) {
  Py_buffer view;
  if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) return nullptr;
  struct Held {
    Py_buffer& view;
    ~Held() { PyBuffer_Release(&view); }
  } const held{view};
  try {
    const std::span bytes(static_cast<const std::byte*>(view.buf), static_cast<size_t>(view.len));
    Library handle = or_os_error([&] {
      GilFree free;
      return runtime::open_library(bytes);
    });
    auto* of = reinterpret_cast<PyTypeObject*>(type);
    PyRef self = checked(of->tp_alloc(of, 0));
    new (&handle_of(self.get())) Library(std::move(handle));
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
  try {
    auto made = std::make_unique<LibraryFunction>(
        or_os_error([&] { return runtime::function_of(handle_of(self), text); }));
    PyObject* capsule = PyCapsule_New(made.get(), kFunction, destroy_function);
    if (capsule) made.release();
    return capsule;
  } catch (...) {
    return raise_current();
  }
}

PyObject* library_handle(PyObject* self, void*) {
  return PyLong_FromVoidPtr(handle_of(self).get());
}

PyMethodDef library_methods[] = {
    {"of", library_of_bytes, METH_O | METH_CLASS, "A library of which there are the bytes alone."},
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
