#include "python/trace_hook.h"

#include <utility>
#include <vector>

namespace flambeau::python {

thread_local constinit PyObject* tracer = nullptr;

namespace {
PyTypeObject* symbolic_int = nullptr;  // set with the first tracer, for good
PyTypeObject* symbolic_float = nullptr;

// Stands in `tracer` while modes are entered and nothing traces.
PyObject* modes_look_on() noexcept {
  return Py_Ellipsis;
}
// The innermost last. A thread that ends within a mode leaks it: it has no GIL to give it back.
thread_local std::vector<PyObject*> function_modes;
thread_local constinit int hidden = 0;

void look_on() noexcept {
  if (tracer && tracer != modes_look_on()) return;
  tracer = function_modes.empty() || hidden ? nullptr : modes_look_on();
}

// The innermost mode, which is not in force for a scope: what it does goes to the one around it.
class Innermost {
 public:
  Innermost() : mode(PyRef::steal(function_modes.back())) {
    function_modes.pop_back();
    look_on();
  }
  ~Innermost() {
    function_modes.push_back(mode.release());
    look_on();
  }
  PyRef mode;
};

// The call as the innermost mode answers it; where it declines, as there were no such mode.
PyObject* ask_mode(PyObject* function, PyObject* types, PyObject* args, PyObject* kwargs) {
  Innermost innermost;
  PyRef method = checked(PyObject_GetAttrString(innermost.mode.get(), "__torch_function__"));
  PyRef result =
      checked(PyObject_CallFunctionObjArgs(method.get(), function, types, args, kwargs, nullptr));
  if (result.get() != Py_NotImplemented) return result.release();
  FB_CHECK_TYPE(!function_modes.empty() || PyTuple_GET_SIZE(types),
                Py_TYPE(innermost.mode.get())->tp_name,
                ".__torch_function__ returned NotImplemented, and there is nobody else to ask");
  return PyObject_Call(function, args, kwargs);
}

PyObject* ask_mode(PyObject* function, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                   PyObject* kwnames) {
  const Py_ssize_t first = self ? 1 : 0, named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  PyRef all = checked(PyTuple_New(first + nargs)), keywords = checked(PyDict_New());
  if (self) PyTuple_SET_ITEM(all.get(), 0, Py_NewRef(self));
  for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(all.get(), first + i, Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; i < named; ++i)
    checked_int(PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(kwnames, i), args[nargs + i]));
  PyRef types = overriding_types(all.get(), keywords.get());
  return ask_mode(function, types.get(), all.get(), keywords.get());
}

// Of a property what reads it, else the method.
PyRef special_method(const char* name) {
  PyRef found = checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(TensorType), name));
  if (!Py_IS_TYPE(found.get(), &PyGetSetDescr_Type)) return found;
  return checked(PyObject_GetAttrString(found.get(), "__get__"));
}

PyObject* enter_mode(PyObject*, PyObject* mode) {
  function_modes.push_back(Py_NewRef(mode));
  look_on();
  Py_RETURN_NONE;
}
PyObject* leave_mode(PyObject*, PyObject*) {
  if (function_modes.empty()) {
    PyErr_SetString(PyExc_RuntimeError, "no mode of functions is entered");
    return nullptr;
  }
  PyObject* mode = function_modes.back();
  function_modes.pop_back();
  look_on();
  return mode;
}
PyObject* entered_modes(PyObject*, PyObject*) {
  auto n = hidden ? 0 : static_cast<Py_ssize_t>(function_modes.size());
  PyObject* out = PyTuple_New(n);
  for (Py_ssize_t i = 0; out && i < n; ++i)
    PyTuple_SET_ITEM(out, i, Py_NewRef(function_modes[static_cast<size_t>(i)]));
  return out;
}
// _ask_function_mode(function, types, args, kwargs)
PyObject* py_ask_mode(PyObject*, PyObject* args) {
  PyObject *function, *types, *given, *named;
  if (!PyArg_ParseTuple(args, "OO!O!O!:_ask_function_mode", &function, &PyTuple_Type, &types,
                        &PyTuple_Type, &given, &PyDict_Type, &named))
    return nullptr;
  try {
    FB_CHECK(!function_modes.empty(), "no mode of functions is entered");
    return ask_mode(function, types, given, named);
  } catch (...) {
    return raise_current();
  }
}

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
  if (before == modes_look_on()) before = nullptr;
  look_on();
  return before ? before : Py_NewRef(Py_None);
}
}  // namespace

bool in_function_mode() noexcept {
  return tracer == modes_look_on();
}

void hide_function_modes(int by) noexcept {
  hidden += by;
  look_on();
}

PyObject* call_traced(const Binding& b, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                      PyObject* kwnames) {
  if (in_function_mode()) {
    PyRef function = checked(function_of(b, self != nullptr));
    return ask_mode(function.get(), self, args, nargs, kwnames);
  }
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
  if (in_function_mode()) {
    PyRef method = special_method(name);
    return ask_mode(method.get(), nullptr, args.begin(), static_cast<Py_ssize_t>(args.size()),
                    nullptr);
  }
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
    {"_enter_function_mode", enter_mode, METH_O, "Hands all calls of this thread to a mode."},
    {"_leave_function_mode", leave_mode, METH_NOARGS, "Leaves the innermost mode; returns it."},
    {"_function_modes", entered_modes, METH_NOARGS, "The modes in force, outermost first."},
    {"_ask_function_mode", py_ask_mode, METH_VARARGS, "A call as the innermost mode answers it."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace flambeau::python
