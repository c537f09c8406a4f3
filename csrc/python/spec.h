// Reading the nested tuples by which Python code describes what holds Python objects: guards, outputs,
// compiled functions. Plain data is read as a tree (tree.h). A description that
// is not as expected is a TypeError, never a read out of bounds.
#pragma once

#include <cstdint>

#include "core/small_vector.h"
#include "python/pybase.h"

namespace flambeau::python {

inline PyObject* item(PyObject* tuple, Py_ssize_t i) {
  if (!PyTuple_Check(tuple) || i >= PyTuple_GET_SIZE(tuple)) [[unlikely]] {
    PyErr_SetString(PyExc_TypeError, "a description from Python: expected a longer tuple");
    throw PythonError();
  }
  return PyTuple_GET_ITEM(tuple, i);
}

inline int64_t integer(PyObject* o) {
  int64_t v = PyLong_AsLongLong(o);
  if (v == -1 && PyErr_Occurred()) throw PythonError();
  return v;
}
inline int64_t integer(PyObject* tuple, Py_ssize_t i) {
  return integer(item(tuple, i));
}

template <class F>
void each(PyObject* sequence, F&& f) {
  PyRef fast = checked(PySequence_Fast(sequence, "a description from Python: expected a sequence"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i)
    f(PySequence_Fast_GET_ITEM(fast.get(), i));
}

}  // namespace flambeau::python
