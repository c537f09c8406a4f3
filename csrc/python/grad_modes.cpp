// no_grad, enable_grad, set_grad_enabled and inference_mode: one C type each, so that entering one
// costs little more than the two calls. As decorators they hand over to
// flambeau/utils/_contextlib.py.
#include "python/grad_modes.h"

#include "dispatch/modes.h"

namespace flambeau::python {

namespace {

enum class Kind : uint8_t { NoGrad, EnableGrad, SetGrad, Inference };

struct ModeObject {
  PyObject_HEAD Kind kind;
  bool mode;             // what was asked for
  bool grad, inference;  // as they were on entry
};

PyTypeObject *NoGradType, *EnableGradType, *SetGradType, *InferenceType;

Kind kind_of(PyTypeObject* type) {
  return PyType_IsSubtype(type, NoGradType)       ? Kind::NoGrad
         : PyType_IsSubtype(type, EnableGradType) ? Kind::EnableGrad
         : PyType_IsSubtype(type, SetGradType)    ? Kind::SetGrad
                                                  : Kind::Inference;
}

ModeObject* mode_of(PyObject* o) {
  return reinterpret_cast<ModeObject*>(o);
}

PyObject* make(PyTypeObject* type, Kind kind, bool mode) {
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  ModeObject* m = mode_of(self);
  m->kind = kind;
  m->mode = mode;
  m->grad = modes.grad;
  m->inference = modes.inference;
  if (kind == Kind::SetGrad) modes.grad = mode;  // also as a plain call, without `with`
  return self;
}

PyObject* decorate(PyObject* context, PyObject* function) {
  static PyObject* decorator = nullptr;
  if (!decorator) {
    PyObject* module = import_module("flambeau.utils._contextlib");
    if (!module) return nullptr;
    decorator = PyObject_GetAttrString(module, "context_decorator");
    Py_DECREF(module);
    if (!decorator) return nullptr;
  }
  return PyObject_CallFunctionObjArgs(decorator, context, function, nullptr);
}

// no_grad() and no_grad(function); set_grad_enabled(mode); inference_mode(), (mode), (function).
PyObject* construct(PyTypeObject* type, PyObject* argument) {
  Kind kind = kind_of(type);
  bool mode = kind == Kind::EnableGrad || kind == Kind::Inference;
  if (!argument) {
    if (kind != Kind::SetGrad) return make(type, kind, mode);
    PyErr_Format(PyExc_TypeError, "%s.__init__() missing 1 required positional argument: 'mode'",
                 type->tp_name);
    return nullptr;
  }
  if (PyCallable_Check(argument) && kind != Kind::SetGrad) {
    PyObject* context = make(type, kind, mode);
    if (!context) return nullptr;
    PyObject* result = decorate(context, argument);
    Py_DECREF(context);
    return result;
  }
  if (kind == Kind::NoGrad || kind == Kind::EnableGrad) {
    PyErr_Format(PyExc_TypeError, "%s: expected a function to decorate or nothing, got %s",
                 type->tp_name, Py_TYPE(argument)->tp_name);
    return nullptr;
  }
  int truth = PyObject_IsTrue(argument);
  return truth < 0 ? nullptr : make(type, kind, truth);
}

PyObject* mode_vectorcall(PyObject* type, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  Py_ssize_t n = PyVectorcall_NARGS(nargsf), keywords = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  auto* t = reinterpret_cast<PyTypeObject*>(type);
  if (n + keywords == 0) [[likely]]
    return construct(t, nullptr);
  if (n + keywords > 1 ||
      (keywords && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "mode") != 0 &&
       PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "orig_func") != 0)) {
    PyErr_Format(PyExc_TypeError, "%s() got unexpected arguments", t->tp_name);
    return nullptr;
  }
  return construct(t, args[0]);
}

// For subclasses, whose own __init__ may take other arguments.
PyObject* mode_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* argument = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : nullptr;
  if (!argument && kwargs) argument = PyDict_GetItemString(kwargs, "mode");
  return construct(type, argument);
}
int mode_init(PyObject*, PyObject*, PyObject*) {
  return 0;
}

void mode_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* mode_enter(PyObject* self, PyObject*) {
  ModeObject* m = mode_of(self);
  if (m->kind == Kind::SetGrad) {
    modes.grad = m->mode;  // what to go back to was noted when it was made
    Py_RETURN_NONE;
  }
  m->grad = modes.grad;
  m->inference = modes.inference;
  if (m->kind == Kind::Inference) {
    modes.inference = m->mode;
    modes.grad = !m->mode;
  } else {
    modes.grad = m->kind == Kind::EnableGrad;
  }
  Py_RETURN_NONE;
}

PyObject* mode_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  ModeObject* m = mode_of(self);
  modes.grad = m->grad;
  if (m->kind == Kind::Inference) modes.inference = m->inference;
  Py_RETURN_NONE;
}

PyObject* mode_clone(PyObject* self, PyObject*) {
  ModeObject* m = mode_of(self);
  bool grad = modes.grad;
  PyObject* copy = make(Py_TYPE(self), m->kind, m->mode);
  modes.grad = grad;  // a copy changes nothing until it is entered
  return copy;
}

PyObject* mode_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (PyTuple_GET_SIZE(args) != 1 || (kwargs && PyDict_GET_SIZE(kwargs))) {
    PyErr_Format(PyExc_TypeError, "%s: expected one function to decorate", Py_TYPE(self)->tp_name);
    return nullptr;
  }
  ModeObject* m = mode_of(self);
  if (m->kind == Kind::SetGrad) modes.grad = m->grad;  // a decorator acts inside the function alone
  return decorate(self, PyTuple_GET_ITEM(args, 0));
}

PyObject* mode_asked(PyObject* self, void*) {
  return PyBool_FromLong(mode_of(self)->mode);
}
PyObject* mode_prev(PyObject* self, void*) {
  return PyBool_FromLong(mode_of(self)->grad);
}

PyMethodDef mode_methods[] = {
    {"__enter__", mode_enter, METH_NOARGS, nullptr},
    {"__exit__", fast(mode_exit), METH_FASTCALL, nullptr},
    {"clone", mode_clone, METH_NOARGS, "A context manager like this one."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef mode_properties[] = {
    {"mode", mode_asked, nullptr, "What was asked for.", nullptr},
    {"prev", mode_prev, nullptr, "Whether gradients were recorded before.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyTypeObject* make_type(const char* name, const char* doc) {
  PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>(doc)},
      {Py_tp_new, reinterpret_cast<void*>(mode_new)},
      {Py_tp_init, reinterpret_cast<void*>(mode_init)},
      {Py_tp_dealloc, reinterpret_cast<void*>(mode_dealloc)},
      {Py_tp_call, reinterpret_cast<void*>(mode_call)},
      {Py_tp_methods, mode_methods},
      {Py_tp_getset, mode_properties},
      {0, nullptr},
  };
  PyType_Spec spec = {name, sizeof(ModeObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (type) type->tp_vectorcall = mode_vectorcall;
  return type;
}

// Functions
// ------------------------------------------------------------------------------------------------------------

template <bool Modes::*Field>
PyObject* get_mode(PyObject*, PyObject*) {
  return PyBool_FromLong(modes.*Field);
}
template <bool Modes::*Field>
PyObject* set_mode(PyObject*, PyObject* on) {
  int truth = PyObject_IsTrue(on);
  if (truth < 0) return nullptr;
  modes.*Field = truth;
  Py_RETURN_NONE;
}

}  // namespace

PyMethodDef grad_mode_functions[] = {
    {"is_grad_enabled", get_mode<&Modes::grad>, METH_NOARGS,
     "Are operations recorded for backward?"},
    {"_set_grad_enabled", set_mode<&Modes::grad>, METH_O,
     "Sets whether operations are recorded for backward."},
    {"is_inference_mode_enabled", get_mode<&Modes::inference>, METH_NOARGS,
     "Is inference mode on?"},
    {"_is_fwd_grad_enabled", get_mode<&Modes::forward_grad>, METH_NOARGS, "Are tangents followed?"},
    {"_set_fwd_grad_enabled", set_mode<&Modes::forward_grad>, METH_O,
     "Sets whether tangents are followed."},
    {"_is_multithreading_enabled", get_mode<&Modes::multithreading>, METH_NOARGS, nullptr},
    {"_set_multithreading_enabled", set_mode<&Modes::multithreading>, METH_O, nullptr},
    {"_is_view_replay_enabled", get_mode<&Modes::view_replay>, METH_NOARGS, nullptr},
    {"_set_view_replay_enabled", set_mode<&Modes::view_replay>, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

bool init_grad_modes(PyObject* module) {
  NoGradType = make_type(
      "flambeau.autograd.grad_mode.no_grad",
      "Operations are not recorded for backward: a context manager and a decorator.\n\n"
      ">>> x = torch.ones(1, requires_grad=True)\n>>> with torch.no_grad():\n...     y = x * 2\n"
      ">>> y.requires_grad\nFalse");
  EnableGradType = make_type("flambeau.autograd.grad_mode.enable_grad",
                             "Operations are recorded for backward, also inside no_grad: a context "
                             "manager and a decorator.");
  SetGradType = make_type(
      "flambeau.autograd.grad_mode.set_grad_enabled",
      "Turns recording for backward on or off: a function, a context manager and a decorator.");
  InferenceType = make_type(
      "flambeau.autograd.grad_mode.inference_mode",
      "Nothing is recorded and results can never take part in recording: a context manager and a "
      "decorator.");
  if (!NoGradType || !EnableGradType || !SetGradType || !InferenceType) return false;
  auto add = [&](const char* name, PyTypeObject* type) {
    return PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(type)) == 0;
  };
  return PyModule_AddFunctions(module, grad_mode_functions) == 0 && add("no_grad", NoGradType) &&
         add("enable_grad", EnableGradType) && add("set_grad_enabled", SetGradType) &&
         add("inference_mode", InferenceType);
}

}  // namespace flambeau::python
