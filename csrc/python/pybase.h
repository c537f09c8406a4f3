// Bottom of the binding layer: owned Python references, the GIL, and exceptions between the two
// worlds. Every C function of the module is `try { … } catch (...) { return raise_current(); }`.
// Knows no tensor.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <exception>
#include <memory>
#include <utility>

#include "core/error.h"

namespace flambeau::python {

// An owned reference. Copies and destruction need the GIL.
class PyRef {
 public:
  PyRef() noexcept = default;
  static PyRef steal(PyObject* p) noexcept {
    PyRef r;
    r.p_ = p;
    return r;
  }
  static PyRef borrow(PyObject* p) noexcept {
    Py_XINCREF(p);
    return steal(p);
  }
  PyRef(const PyRef& o) noexcept : p_(o.p_) { Py_XINCREF(p_); }
  PyRef(PyRef&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  PyRef& operator=(PyRef o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~PyRef() { Py_XDECREF(p_); }
  PyObject* get() const noexcept { return p_; }
  PyObject* release() noexcept { return std::exchange(p_, nullptr); }
  explicit operator bool() const noexcept { return p_ != nullptr; }

 private:
  PyObject* p_ = nullptr;
};

// A Python exception on its way through C++ frames: raised again, unchanged, by raise_current().
class PythonError : public std::exception {
 public:
  PythonError();  // takes the exception that is set; needs the GIL
  const char* what() const noexcept override { return "a Python exception"; }
  void restore() const;  // sets it again

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// A module by its name, without asking the running frame how to import: scripts have frames whose
// built-ins are a closed list. A new reference, or null with an error.
PyObject* import_module(const char* name) noexcept;

// In a catch (...): sets the Python exception that stands for the one in flight, returns null.
PyObject* raise_current() noexcept;
// Runs f for Python: what it throws becomes Python's error.
template <class F>
PyObject* guarded(F f) noexcept {
  try {
    return f();
  } catch (...) {
    return raise_current();
  }
}

// A function as a table of methods takes it; the flags tell how it is called.
template <class F>
PyCFunction fast(F* f) noexcept {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}
inline constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;
// flambeau.linalg.LinAlgError, a RuntimeError; borrowed.
PyObject* linalg_error();

// A new reference or an exception: for calls whose null means that an exception is set.
inline PyRef checked(PyObject* p) {
  if (!p) [[unlikely]]
    throw PythonError();
  return PyRef::steal(p);
}
inline void checked_int(int status) {
  if (status < 0) [[unlikely]]
    throw PythonError();
}

// A static type, to be completed and made ready.
inline PyTypeObject static_type(const char* name, Py_ssize_t size, const char* doc) {
  PyTypeObject t{};
  Py_SET_REFCNT(reinterpret_cast<PyObject*>(&t), 1);
  t.tp_name = name;
  t.tp_basicsize = size;
  t.tp_doc = doc;
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  return t;
}

// Holds the GIL for a scope (from any thread, any number of times).
class GilHeld {
 public:
  GilHeld() : state_(PyGILState_Ensure()) {}
  ~GilHeld() { PyGILState_Release(state_); }
  GilHeld(const GilHeld&) = delete;

 private:
  PyGILState_STATE state_;
};

// Gives the GIL up for a scope when the work is worth it.
class GilFree {
 public:
  explicit GilFree(bool worth_it = true) : state_(worth_it ? PyEval_SaveThread() : nullptr) {}
  ~GilFree() {
    if (state_) PyEval_RestoreThread(state_);
  }
  GilFree(const GilFree&) = delete;

 private:
  PyThreadState* state_;
};

// A Python callable kept by C++ (hooks): copied and destroyed under the GIL, wherever that happens.
class PyCallable {
 public:
  explicit PyCallable(PyObject* callable) : ref_(std::make_shared<Held>(callable)) {}
  PyObject* get() const noexcept { return ref_->callable; }
  bool unique() const noexcept { return ref_.use_count() == 1; }

 private:
  struct Held {
    explicit Held(PyObject* c) : callable(c) { Py_INCREF(c); }
    ~Held() {
      if (!Py_IsInitialized()) return;
      GilHeld gil;
      Py_DECREF(callable);
    }
    PyObject* callable;
  };
  std::shared_ptr<Held> ref_;
};

}  // namespace flambeau::python
