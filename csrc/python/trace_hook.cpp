#include "python/trace_hook.h"

#include <utility>

namespace flambeau::python {

thread_local constinit PyObject* tracer = nullptr;

namespace {
PyTypeObject* symbolic_int = nullptr;  // set with the first tracer, for good
PyTypeObject* symbolic_float = nullptr;

// Off for a scope: what a tracer does itself is not traced.
struct Untraced {
  PyObject* saved = std::exchange(tracer, nullptr);
  ~Untraced() { tracer = saved; }
};

PyObject* call(PyObject* callable, const char* name, PyObject* target, PyObject* args) {
  PyRef text = checked(PyUnicode_FromString(name));
  return PyObject_CallFunctionObjArgs(callable, text.get(), target, args, nullptr);
}

PyRef bound(const Args& a, int i) {
  if (a[i] != kVarargs) return PyRef::borrow(a[i]);
  PyRef all = checked(PyTuple_New(a.nvarargs));
  for (Py_ssize_t k = 0; k < a.nvarargs; ++k)
    PyTuple_SET_ITEM(all.get(), k, Py_NewRef(a.varargs[k]));
  return all;
}

// _set_tracer(callable or None, int type, float type): the tracer that was.
PyObject* set_tracer(PyObject*, PyObject* args) {
  PyObject *callable, *ints, *floats;
  if (!PyArg_ParseTuple(args, "OO!O!:_set_tracer", &callable, &PyType_Type, &ints, &PyType_Type,
                        &floats))
    return nullptr;
  Py_XSETREF(symbolic_int, reinterpret_cast<PyTypeObject*>(Py_NewRef(ints)));
  Py_XSETREF(symbolic_float, reinterpret_cast<PyTypeObject*>(Py_NewRef(floats)));
  PyObject* before = std::exchange(tracer, callable == Py_None ? nullptr : Py_NewRef(callable));
  return before ? before : Py_NewRef(Py_None);
}
}  // namespace

PyObject* call_traced(const Binding& b, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                      PyObject* kwnames) {
  Args a;
  bool overrides = std::exchange(torch_function_enabled, false);  // a tracer comes before them
  int i = match(b, self, args, nargs, kwnames, a);
  torch_function_enabled = overrides;
  if (i < 0) return nullptr;
  const Signature& s = b.signatures[i];
  PyRef named = checked(PyDict_New());
  for (int k = 0; k < s.count; ++k)
    if (a[k]) checked_int(PyDict_SetItemString(named.get(), s.params[k].name, bound(a, k).get()));
  PyRef target = s.target ? checked(PyUnicode_FromString(s.target)) : PyRef::borrow(Py_None);
  PyRef callable = PyRef::borrow(tracer);
  Untraced off;
  if (s.all_numbers && is_number(a[0]) && is_number(a[1])) {
    PyRef full = checked(PyUnicode_FromString("full"));
    PyRef how = checked(Py_BuildValue("{s:(), s:O}", "size", "fill_value", a[0]));
    PyRef first = checked(call(callable.get(), "full", full.get(), how.get()));
    checked_int(PyDict_SetItemString(named.get(), s.params[0].name, first.get()));
  }
  return call(callable.get(), b.name, target.get(), named.get());
}

PyObject* call_traced(const char* name, std::initializer_list<PyObject*> args) {
  PyRef numbered = checked(PyDict_New());
  int k = 0;
  for (PyObject* o : args)
    checked_int(PyDict_SetItemString(numbered.get(), std::to_string(k++).c_str(), o));
  PyRef callable = PyRef::borrow(tracer);
  Untraced off;
  return call(callable.get(), name, Py_None, numbered.get());
}

bool is_symbolic(PyObject* o) noexcept {
  return symbolic_int && (Py_TYPE(o) == symbolic_int || Py_TYPE(o) == symbolic_float);
}

PyMethodDef trace_functions[] = {
    {"_set_tracer", set_tracer, METH_VARARGS, "Hands all calls of this thread to a function."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace flambeau::python
