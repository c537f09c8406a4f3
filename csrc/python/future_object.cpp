// A value that arrives later, and what is done with it then.
//
// Owns the order: callbacks run in the thread that sets the value, in the order in which they came,
// and what follows from one before the next. Python's lock guards all of it. A chain of futures
// takes no stack, however long it is. Must not know who computes.
#include "python/future_object.h"

#include <utility>
#include <vector>

namespace flambeau::python {

namespace {

PyTypeObject* FutureType = nullptr;

struct FutureObject;

struct Callback {
  PyObject* call;     // with the future; null: one less that `out` waits for
  FutureObject* out;  // gets what the call gives; null: nobody does
};

struct FutureObject {
  PyObject_HEAD PyObject* value;
  PyObject* error;
  PyObject* event;    // of threading: made by the first that waits
  PyObject* awaited;  // of `collect_all`: the futures, as long as some are not done
  Py_ssize_t left;    // how many these are
  Callback first;
  std::vector<Callback>* more;
  bool done;
};

FutureObject* as_future(PyObject* o) {
  return reinterpret_cast<FutureObject*>(o);
}
PyObject* as_object(FutureObject* f) {
  return reinterpret_cast<PyObject*>(f);
}

// A callback whose turn will come: the last one is the next.
struct Pending {
  PyRef future, call, out;
};
using Stack = std::vector<Pending>;

PyRef taken_error() {
  PyObject *type, *what, *trace;
  PyErr_Fetch(&type, &what, &trace);
  PyErr_NormalizeException(&type, &what, &trace);
  if (trace) PyException_SetTraceback(what, trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  return PyRef::steal(what);
}

PyObject* given_twice() {
  PyErr_SetString(PyExc_RuntimeError,
                  "Future can only be set once: it is marked completed already");
  return nullptr;
}

// Gives a future its value or error; its callbacks go on the stack.
void settle(FutureObject* f, PyRef value, PyRef error, Stack& stack) {
  f->value = value.release();
  f->error = error.release();
  f->done = true;
  if (f->event && !PyRef::steal(PyObject_CallMethod(f->event, "set", nullptr)))
    PyErr_WriteUnraisable(f->event);
  auto push = [&](Callback c) {
    stack.push_back(
        {PyRef::borrow(as_object(f)), PyRef::steal(c.call), PyRef::steal(as_object(c.out))});
  };
  if (f->more) {
    std::vector<Callback> more = std::move(*f->more);
    for (size_t i = more.size(); i-- > 0;) push(more[i]);
  }
  if (f->first.call || f->first.out) push(std::exchange(f->first, {}));
}

// Gives a future of `collect_all`, which waits for nothing more, the list or the first error in it.
void settle_all(FutureObject* f, Stack& stack) {
  PyRef futures = PyRef::steal(std::exchange(f->awaited, nullptr));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(futures.get()); ++i) {
    PyObject* one = PyList_GET_ITEM(futures.get(), i);
    if (PyObject_TypeCheck(one, FutureType) && as_future(one)->error)
      return settle(f, PyRef::borrow(Py_None), PyRef::borrow(as_future(one)->error), stack);
  }
  settle(f, std::move(futures), {}, stack);
}

// Runs callbacks until there are none; false with an error that ends more than one of them.
bool run(Stack& stack) {
  PyRef ending;
  while (!stack.empty()) {
    Pending p = std::move(stack.back());
    stack.pop_back();
    FutureObject* out = as_future(p.out.get());
    if (!p.call) {
      if (--out->left == 0 && !out->done) settle_all(out, stack);
      continue;
    }
    PyRef made = PyRef::steal(PyObject_CallOneArg(p.call.get(), p.future.get()));
    if (out) {
      PyRef error = made ? PyRef() : taken_error();
      if (out->done) {
        given_twice();
        PyErr_WriteUnraisable(p.out.get());
      } else {
        settle(out, made ? std::move(made) : PyRef::borrow(Py_None), std::move(error), stack);
      }
    } else if (!made) {
      if (PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_WriteUnraisable(p.call.get());
      else if (!ending)
        ending = taken_error();
      else
        PyErr_Clear();
    }
  }
  if (!ending) return true;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(ending.get())), ending.get());
  return false;
}

PyObject* finished(Stack& stack) {
  if (!run(stack)) return nullptr;
  Py_RETURN_NONE;
}

// Keeps a callback, or runs it where the future is done.
bool add(FutureObject* f, PyObject* call, FutureObject* out) {
  if (f->done) {
    Stack stack;
    stack.push_back(
        {PyRef::borrow(as_object(f)), PyRef::borrow(call), PyRef::borrow(as_object(out))});
    return run(stack);
  }
  Py_XINCREF(call);
  Py_XINCREF(as_object(out));
  if (!f->first.call && !f->first.out) {
    f->first = {call, out};
  } else {
    if (!f->more) f->more = new std::vector<Callback>;
    f->more->push_back({call, out});
  }
  return true;
}

PyObject* outcome(FutureObject* f) {
  if (!f->error) return Py_NewRef(f->value);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(f->error)), f->error);
  return nullptr;
}

PyRef class_of(const char* module, const char* name) {
  PyRef found = checked(import_module(module));
  return checked(PyObject_GetAttrString(found.get(), name));
}

FutureObject* new_future() {
  auto* cls = reinterpret_cast<PyTypeObject*>(future_class());
  return as_future(checked(cls->tp_alloc(cls, 0)).release());
}

// -- methods

// The only argument of a method, by position or name; null with an error.
PyObject* only(const char* method, const char* name, PyObject* const* args, Py_ssize_t n,
               PyObject* names) {
  const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
  if (n + named == 1 &&
      (n == 1 || PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), name) == 0))
    return args[0];
  return PyErr_Format(PyExc_TypeError, "Future.%s: expected one argument, %s, got %zd", method,
                      name, n + named);
}

PyObject* only_function(const char* method, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  PyObject* found = only(method, "callback", args, n, names);
  if (found && !PyCallable_Check(found))
    return PyErr_Format(PyExc_TypeError, "Future.%s: expected a function as callback, got %s",
                        method, Py_TYPE(found)->tp_name);
  return found;
}

PyObject* future_done(PyObject* self, PyObject*) {
  return PyBool_FromLong(as_future(self)->done);
}

PyObject* future_wait(PyObject* self, PyObject*) {
  auto* f = as_future(self);
  if (f->done) return outcome(f);
  return guarded([&]() -> PyObject* {
    if (!f->event) {
      // No guard of C++'s: a thread that waits at one would hold Python's lock.
      static PyObject* cls = nullptr;
      if (!cls) cls = class_of("threading", "Event").release();
      PyRef made = checked(PyObject_CallNoArgs(cls));
      if (!f->event) f->event = made.release();
    }
    if (!f->done) {
      PyRef event = PyRef::borrow(f->event);
      checked(PyObject_CallMethod(event.get(), "wait", nullptr));
    }
    return outcome(f);
  });
}

PyObject* future_value(PyObject* self, PyObject*) {
  if (as_future(self)->done) return outcome(as_future(self));
  PyErr_SetString(PyExc_RuntimeError, "Future.value: expected a future that is done; call wait()");
  return nullptr;
}

PyObject* future_set_result(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  PyObject* result = only("set_result", "result", args, n, names);
  if (!result) return nullptr;
  if (as_future(self)->done) return given_twice();
  Stack stack;
  settle(as_future(self), PyRef::borrow(result), {}, stack);
  return finished(stack);
}

PyObject* future_set_exception(PyObject* self, PyObject* const* args, Py_ssize_t n,
                               PyObject* names) {
  PyObject* error = only("set_exception", "result", args, n, names);
  if (!error) return nullptr;
  if (!PyExceptionInstance_Check(error))
    return PyErr_Format(PyExc_AssertionError, "%S is of type %S, not an Exception.", error,
                        Py_TYPE(error));
  if (as_future(self)->done) return given_twice();
  Stack stack;
  settle(as_future(self), PyRef::borrow(Py_None), PyRef::borrow(error), stack);
  return finished(stack);
}

PyObject* future_add(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  PyObject* call = only_function("add_done_callback", args, n, names);
  if (!call || !add(as_future(self), call, nullptr)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* future_then(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  PyObject* call = only_function("then", args, n, names);
  if (!call) return nullptr;
  return guarded([&]() -> PyObject* {
    PyRef out = PyRef::steal(as_object(new_future()));
    return add(as_future(self), call, as_future(out.get())) ? out.release() : nullptr;
  });
}

PyObject* collect(PyObject*, PyObject* futures) {
  return guarded([&]() -> PyObject* {
    PyRef list = PyList_Check(futures) ? PyRef::borrow(futures) : checked(PySequence_List(futures));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
      PyObject* one = PyList_GET_ITEM(list.get(), i);
      if (!PyObject_TypeCheck(one, FutureType))
        return PyErr_Format(PyExc_TypeError,
                            "collect_all: expected a list of Futures, got %s at position %zd",
                            Py_TYPE(one)->tp_name, i);
    }
    PyRef made = PyRef::steal(as_object(new_future()));
    auto* out = as_future(made.get());
    out->awaited = Py_NewRef(list.get());
    out->left = 1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
      auto* one = as_future(PyList_GET_ITEM(list.get(), i));
      if (one->done) continue;
      ++out->left;
      if (!add(one, nullptr, out)) return nullptr;
    }
    Stack stack;
    if (--out->left == 0) settle_all(out, stack);
    return made.release();
  });
}

// -- the type

PyObject* future_new(PyTypeObject* type, PyObject*, PyObject*) {
  return type->tp_alloc(type, 0);
}

int future_init(PyObject*, PyObject* args, PyObject* named) {
  if (!named && PyTuple_GET_SIZE(args) == 0) return 0;
  static const char* names[] = {"devices", nullptr};
  PyObject* devices;
  return PyArg_ParseTupleAndKeywords(args, named, "|$O:Future", const_cast<char**>(names),
                                     &devices)
             ? 0
             : -1;
}

int future_traverse(PyObject* self, visitproc visit, void* arg) {
  auto* f = as_future(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(f->value);
  Py_VISIT(f->error);
  Py_VISIT(f->event);
  Py_VISIT(f->awaited);
  Py_VISIT(f->first.call);
  Py_VISIT(as_object(f->first.out));
  if (f->more) {
    for (Callback& c : *f->more) {
      Py_VISIT(c.call);
      Py_VISIT(as_object(c.out));
    }
  }
  return 0;
}

int future_clear(PyObject* self) {
  auto* f = as_future(self);
  Py_CLEAR(f->value);
  Py_CLEAR(f->error);
  Py_CLEAR(f->event);
  Py_CLEAR(f->awaited);
  std::vector<Callback> callbacks;
  if (f->more) callbacks = std::move(*f->more);
  callbacks.push_back(std::exchange(f->first, {}));
  for (Callback& c : callbacks) {
    Py_XDECREF(c.call);
    Py_XDECREF(as_object(c.out));
  }
  return 0;
}

void future_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Py_TRASHCAN_BEGIN(self, future_dealloc) PyTypeObject* type = Py_TYPE(self);
  future_clear(self);
  delete as_future(self)->more;
  type->tp_free(self);
  Py_DECREF(type);
  Py_TRASHCAN_END
}

template <class F>
PyCFunction method(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}
constexpr int kNamed = METH_FASTCALL | METH_KEYWORDS;

PyMethodDef future_methods[] = {
    {"done", future_done, METH_NOARGS,
     "done($self, /)\n--\n\nWhether the value, or an error, is there."},
    {"wait", future_wait, METH_NOARGS,
     "wait($self, /)\n--\n\nWait for the value; raise its error."},
    {"value", future_value, METH_NOARGS,
     "value($self, /)\n--\n\nThe value, which must be there."},
    {"set_result", method(future_set_result), kNamed,
     "set_result($self, result)\n--\n\nGive the value, once."},
    {"set_exception", method(future_set_exception), kNamed,
     "set_exception($self, result)\n--\n\nGive the error, once."},
    {"add_done_callback", method(future_add), kNamed,
     "add_done_callback($self, callback)\n--\n\n"
     "Call a function with this future once it is done. Its errors are reported, not raised."},
    {"then", method(future_then), kNamed,
     "then($self, callback)\n--\n\n"
     "The future of what a function makes of this future once it is done."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef collect_method = {"_collect_futures", collect, METH_O,
                              "The future of a list of futures."};

}  // namespace

PyObject* future_class() {
  static PyObject* cls = nullptr;
  if (!cls) cls = class_of("flambeau.futures", "Future").release();
  return cls;
}

bool init_futures(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>("A value that arrives later.")},
                         {Py_tp_new, reinterpret_cast<void*>(future_new)},
                         {Py_tp_init, reinterpret_cast<void*>(future_init)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(future_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(future_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(future_clear)},
                         {Py_tp_methods, future_methods},
                         {0, nullptr}};
  PyType_Spec spec = {"flambeau._C._Future", sizeof(FutureObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  PyRef type = PyRef::steal(PyType_FromSpec(&spec));
  if (!type || PyModule_AddObjectRef(module, "_Future", type.get()) < 0) return false;
  FutureType = reinterpret_cast<PyTypeObject*>(type.release());
  PyRef collect_all = PyRef::steal(PyCFunction_New(&collect_method, nullptr));
  return collect_all &&
         PyModule_AddObjectRef(module, "_collect_futures", collect_all.get()) == 0;
}

}  // namespace flambeau::python
