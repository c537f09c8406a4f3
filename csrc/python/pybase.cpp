#include "python/pybase.h"

#include <new>

#include "python/user_warning.h"

namespace flambeau::python {

struct PythonError::State {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  ~State() {
    if (!Py_IsInitialized()) return;
    GilHeld gil;
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
  }
};

PythonError::PythonError() : state_(std::make_shared<State>()) {
  PyErr_Fetch(&state_->type, &state_->value, &state_->traceback);
}

void PythonError::restore() const {
  PyErr_Restore(Py_XNewRef(state_->type), Py_XNewRef(state_->value), Py_XNewRef(state_->traceback));
}

void warn_user(const std::string& message) {
  GilHeld gil;
  checked_int(PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1));
}

PyObject* linalg_error() {
  static PyObject* const error = PyErr_NewExceptionWithDoc(
      "flambeau.linalg.LinAlgError",
      "A matrix for which a routine of linear algebra has no answer, such as a singular one.",
      PyExc_RuntimeError, nullptr);
  return error;
}

PyObject* import_module(const char* name) noexcept {
  PyRef found = PyRef::steal(PyUnicode_FromString(name));
  if (!found) return nullptr;
  if (PyObject* module = PyImport_GetModule(found.get())) return module;
  if (PyErr_Occurred()) return nullptr;
  PyRef wanted = PyRef::steal(Py_BuildValue("(s)", "__name__"));  // the module, not its package
  if (!wanted) return nullptr;
  return PyImport_ImportModuleLevelObject(found.get(), nullptr, nullptr, wanted.get(), 0);
}

namespace {
PyObject* python_class(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Runtime:
      return PyExc_RuntimeError;
    case ErrorKind::Value:
      return PyExc_ValueError;
    case ErrorKind::Type:
      return PyExc_TypeError;
    case ErrorKind::Index:
      return PyExc_IndexError;
    case ErrorKind::NotImplemented:
      return PyExc_NotImplementedError;
    case ErrorKind::OutOfMemory:
      return PyExc_RuntimeError;  // as the allocator of PyTorch's CPU tensors raises
    case ErrorKind::Attribute:
      return PyExc_AttributeError;
    case ErrorKind::Key:
      return PyExc_KeyError;
    case ErrorKind::Assertion:
      return PyExc_AssertionError;
    case ErrorKind::LinAlg:
      return linalg_error();
    case ErrorKind::Overflow:
      return PyExc_OverflowError;
  }
  return PyExc_RuntimeError;
}
}  // namespace

PyObject* raise_current() noexcept {
  try {
    throw;
  } catch (const PythonError& e) {
    e.restore();
  } catch (const Error& e) {
    PyErr_SetString(python_class(e.kind), e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an unknown C++ exception");
  }
  return nullptr;
}

}  // namespace flambeau::python
