// The __torch_function__ protocol: classes (subclasses of Tensor and foreign ones) that want to see
// the calls made with their instances. Owns who is asked, in which order, and the default
// implementation.
#include <cstring>
#include <vector>

#include "python/tensor_object.h"
#include "python/torch_function.h"
#include "python/trace_hook.h"

namespace flambeau::python {

thread_local constinit bool torch_function_enabled = true;

namespace {
PyObject* protocol_name() {
  static PyObject* name = PyUnicode_InternFromString("__torch_function__");
  return name;
}

PyObject* disabled_impl = nullptr;  // _disabled_torch_function_impl: "treat my class as plain"

// Arguments whose type is to be asked, subclasses before their bases, each type once.
class Candidates {
 public:
  void look_at(PyObject* o) {
    if (is_exact_tensor(o)) return;
    if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) {
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
        PyObject* item = PySequence_Fast_ITEMS(o)[i];
        if (!PyList_CheckExact(item) && !PyTuple_CheckExact(item)) look_at(item);
      }
      return;
    }
    if (!wants_torch_function(o)) return;
    for (PyObject* seen : found)
      if (Py_TYPE(seen) == Py_TYPE(o)) return;
    auto at = found.begin();
    while (at != found.end() && !PyType_IsSubtype(Py_TYPE(o), Py_TYPE(*at))) ++at;
    found.insert(at, o);
  }
  std::vector<PyObject*> found;
};

// A result of plain tensors as one of instances of `type`, inside lists and tuples too.
PyRef convert_result(PyRef result, PyTypeObject* type) {
  PyObject* o = result.get();
  if (is_tensor(o))
    return PyType_IsSubtype(Py_TYPE(o), type)
               ? result
               : checked(as_subclass(o, reinterpret_cast<PyObject*>(type)));
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    bool tuple = PyTuple_CheckExact(o);
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    PyRef out = checked(tuple ? PyTuple_New(n) : PyList_New(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyRef item = convert_result(PyRef::borrow(PySequence_Fast_ITEMS(o)[i]), type);
      if (tuple)
        PyTuple_SET_ITEM(out.get(), i, item.release());
      else
        PyList_SET_ITEM(out.get(), i, item.release());
    }
    return out;
  }
  return result;
}

struct Disabled {
  bool saved = std::exchange(torch_function_enabled, false);
  ~Disabled() { torch_function_enabled = saved; }
};

bool parse_protocol(PyObject* args, PyObject* kwargs, PyObject*& func, PyObject*& types,
                    PyObject*& a, PyObject*& k) {
  static const char* names[] = {"func", "types", "args", "kwargs", nullptr};
  a = k = nullptr;
  return PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OO:__torch_function__",
                                     const_cast<char**>(names), &func, &types, &a, &k);
}

PyObject* call_plain(PyObject* func, PyObject* args, PyObject* kwargs) {
  PyRef none = args ? PyRef::borrow(args) : PyRef::steal(PyTuple_New(0));
  PyRef tuple = none ? PyRef::steal(PySequence_Tuple(none.get())) : PyRef();
  if (!tuple) return nullptr;
  Disabled guard;
  return PyObject_Call(func, tuple.get(), kwargs == Py_None ? nullptr : kwargs);
}

PyObject* disabled_call(PyObject*, PyObject* args, PyObject* kwargs) {
  PyObject *func, *types, *a, *k;
  if (!parse_protocol(args, kwargs, func, types, a, k)) return nullptr;
  return call_plain(func, a, k);
}

// Context managers in which overrides are not looked for.
struct Disabling {
  PyObject_HEAD bool entered, before;
};

template <bool modes_too>
PyObject* enter(PyObject* o, PyObject*) {
  auto* self = reinterpret_cast<Disabling*>(o);
  if (self->entered) {
    PyErr_Format(PyExc_RuntimeError, "%s: expected one that is not entered yet",
                 Py_TYPE(o)->tp_name);
    return nullptr;
  }
  self->entered = true;
  self->before = std::exchange(torch_function_enabled, false);
  if (modes_too) hide_function_modes(1);
  return Py_NewRef(o);
}
template <bool modes_too>
PyObject* leave(PyObject* o, PyObject*) {
  auto* self = reinterpret_cast<Disabling*>(o);
  if (std::exchange(self->entered, false)) {
    torch_function_enabled = self->before;
    if (modes_too) hide_function_modes(-1);
  }
  Py_RETURN_NONE;
}

template <bool modes_too>
bool add_disabling(PyObject* module, const char* name, const char* doc) {
  static PyMethodDef methods[] = {{"__enter__", enter<modes_too>, METH_NOARGS, nullptr},
                                  {"__exit__", leave<modes_too>, METH_VARARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};
  PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>(doc)},
                         {Py_tp_methods, methods},
                         {Py_tp_new, reinterpret_cast<void*>(PyType_GenericNew)},
                         {0, nullptr}};
  PyType_Spec spec{name, sizeof(Disabling), 0, Py_TPFLAGS_DEFAULT, slots};
  PyRef type = PyRef::steal(PyType_FromSpec(&spec));
  return type && PyModule_AddObjectRef(module, std::strrchr(name, '.') + 1, type.get()) == 0;
}

PyObject* is_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(torch_function_enabled);
}
PyObject* set_enabled(PyObject*, PyObject* on) {
  int truth = PyObject_IsTrue(on);
  if (truth < 0) return nullptr;
  return PyBool_FromLong(std::exchange(torch_function_enabled, truth != 0));
}
PyObject* py_has_torch_function(PyObject*, PyObject* args) {
  PyRef items = PyRef::steal(PySequence_Fast(args, "has_torch_function expects a sequence"));
  if (!items) return nullptr;
  for (Py_ssize_t i = 0; torch_function_enabled && i < PySequence_Fast_GET_SIZE(items.get()); ++i)
    if (wants_torch_function(PySequence_Fast_ITEMS(items.get())[i])) Py_RETURN_TRUE;
  Py_RETURN_FALSE;
}
PyObject* py_has_torch_function_unary(PyObject*, PyObject* o) {
  return PyBool_FromLong(torch_function_enabled && wants_torch_function(o));
}
}  // namespace

PyMethodDef torch_function_functions[] = {
    {"_disabled_torch_function_impl", fast(disabled_call), METH_VARARGS | METH_KEYWORDS,
     "As a class's __torch_function__: its instances act as plain tensors."},
    {"_is_torch_function_enabled", is_enabled, METH_NOARGS,
     "Are overrides looked for on this thread?"},
    {"_set_torch_function_enabled", set_enabled, METH_O,
     "Turns overrides on or off; returns what was."},
    {"_has_torch_function", py_has_torch_function, METH_O,
     "Does one of the arguments override calls?"},
    {"_has_torch_function_unary", py_has_torch_function_unary, METH_O,
     "Does the argument override calls?"},
    {nullptr, nullptr, 0, nullptr},
};

bool init_torch_function(PyObject* module) {
  disabled_impl = PyObject_GetAttrString(module, "_disabled_torch_function_impl");
  return disabled_impl &&
         add_disabling<false>(module, "flambeau._C.DisableTorchFunctionSubclass",
                              "Tensors of subclasses act as plain ones in a block.") &&
         add_disabling<true>(module, "flambeau._C.DisableTorchFunction",
                             "The same, and modes see nothing.");
}

bool wants_torch_function(PyObject* o) noexcept {
  PyTypeObject* type = Py_TYPE(o);
  if (is_exact_tensor(o) || type == &PyFloat_Type || type == &PyLong_Type || type == &PyBool_Type ||
      type == &PyList_Type || type == &PyTuple_Type || o == Py_None)
    return false;
  PyObject* attribute = _PyType_Lookup(type, protocol_name());
  return attribute && attribute != disabled_impl;
}

PyObject* call_torch_function(PyObject* func, PyObject* const* args, Py_ssize_t nargs,
                              PyObject* kwnames) {
  Py_ssize_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  Candidates candidates;
  for (Py_ssize_t i = 0; i < nargs + nkw; ++i) candidates.look_at(args[i]);

  auto n = static_cast<Py_ssize_t>(candidates.found.size());
  PyRef types = checked(PyTuple_New(n)), positional = checked(PyTuple_New(nargs)),
        keywords = checked(PyDict_New());
  for (Py_ssize_t i = 0; i < n; ++i)
    PyTuple_SET_ITEM(types.get(), i,
                     Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(candidates.found[i]))));
  for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; i < nkw; ++i)
    checked_int(PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(kwnames, i), args[nargs + i]));
  for (PyObject* o : candidates.found) {
    // Looked up on the object, so that instance methods of foreign classes work as well as class
    // methods.
    PyRef method = checked(PyObject_GetAttr(o, protocol_name()));
    PyRef result = checked(PyObject_CallFunctionObjArgs(method.get(), func, types.get(),
                                                        positional.get(), keywords.get(), nullptr));
    if (result.get() != Py_NotImplemented) return result.release();
  }
  PyRef name = PyRef::steal(PyObject_GetAttrString(func, "__name__"));
  if (!name) PyErr_Clear();
  PyErr_Format(PyExc_TypeError,
               "no implementation found for '%S' on types that implement __torch_function__: %R",
               name ? name.get() : func, types.get());
  return nullptr;
}

PyRef overriding_types(PyObject* args, PyObject* kwargs) {
  Candidates candidates;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
    candidates.look_at(PyTuple_GET_ITEM(args, i));
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &key, &value);) candidates.look_at(value);
  auto n = static_cast<Py_ssize_t>(candidates.found.size());
  PyRef types = checked(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i)
    PyTuple_SET_ITEM(
        types.get(), i,
        Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(candidates.found[static_cast<size_t>(i)]))));
  return types;
}

PyObject* tensor_torch_function(PyObject* cls, PyObject* args, PyObject* kwargs) {
  PyObject *func, *types, *a, *k;
  if (!parse_protocol(args, kwargs, func, types, a, k)) return nullptr;
  try {
    PyRef all = checked(PySequence_Fast(types, "__torch_function__: types must be a sequence"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(all.get()); ++i) {
      int related = PyObject_IsSubclass(cls, PySequence_Fast_ITEMS(all.get())[i]);
      checked_int(related);
      if (!related) Py_RETURN_NOTIMPLEMENTED;
    }
    PyRef result = checked(call_plain(func, a, k));
    auto* type = reinterpret_cast<PyTypeObject*>(cls);
    if (type == TensorType) return result.release();
    return convert_result(std::move(result), type).release();
  } catch (...) {
    return raise_current();
  }
}

}  // namespace flambeau::python
