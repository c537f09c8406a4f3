#include "python/script_futures.h"

#include "python/argparse.h"
#include "python/future_object.h"

namespace flambeau::python {

namespace {

PyTypeObject* HandleType = nullptr;

// A task in Python: what `_script.forks.Forked` holds.
struct HandleObject {
  PyObject_HEAD Ref<script::Task>* task;
  PyObject* classes;  // of the program
};

PyObject* forked_class() {
  static PyObject* const cls = [] {
    PyRef module = checked(import_module("flambeau._script.forks"));
    return checked(PyObject_GetAttrString(module.get(), "Forked")).release();
  }();
  return cls;
}

// A future that Python has.
class PythonFuture final : public script::Future {
 public:
  PythonFuture(const Conversion& c, PyObject* o) : conversion_(c), o_(Py_NewRef(o)) {}
  ~PythonFuture() override {
    if (!Py_IsInitialized()) return;
    GilHeld gil;
    Py_DECREF(o_);
  }
  PyObject* get() const noexcept { return o_; }

  Value wait() override {
    GilHeld gil;
    PyRef found = checked(PyObject_CallMethod(o_, "wait", nullptr));
    Value out;
    if (!from_python(conversion_, found.get(), &out, GivenScope::of_thread()))
      fail(ErrorKind::Type, "wait: a script expected a future of type ", conversion_.shown,
           ", got one of a ", Py_TYPE(found.get())->tp_name);
    return out;
  }
  bool done() const override {
    GilHeld gil;
    PyRef found = checked(PyObject_CallMethod(o_, "done", nullptr));
    int on = PyObject_IsTrue(found.get());
    checked_int(on);
    return on;
  }

 private:
  const Conversion conversion_;
  PyObject* o_;
};

// Hands what became of a task to the future that stands for it.
void arrive(script::Task& task, PyObject* future, const ProgramNames& names) noexcept {
  Given own(names);
  GivenScope scope(&own);
  PyRef value, error;
  try {
    value = PyRef::steal(to_python(task.wait()));
  } catch (...) {
    raise_script(names.error_class);
  }
  if (!value) {
    PyObject *type, *what, *trace;
    PyErr_Fetch(&type, &what, &trace);
    PyErr_NormalizeException(&type, &what, &trace);
    if (trace) PyException_SetTraceback(what, trace);
    value = PyRef::borrow(Py_None);
    error = PyRef::steal(what);
    Py_XDECREF(type);
    Py_XDECREF(trace);
  }
  PyRef done = PyRef::steal(PyObject_CallMethod(future, "_arrive", "OO", value.get(),
                                                error ? error.get() : Py_None));
  if (!done) PyErr_WriteUnraisable(future);
}

PyObject* handle_join(PyObject* self, PyObject*) {
  Ref<script::Task> task = *reinterpret_cast<HandleObject*>(self)->task;
  return guarded([&] {
    {
      GilFree free;
      task->join();
    }
    return Py_NewRef(Py_None);
  });
}

void handle_dealloc(PyObject* self) {
  auto* h = reinterpret_cast<HandleObject*>(self);
  PyTypeObject* type = Py_TYPE(self);
  delete h->task;
  Py_XDECREF(h->classes);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMethodDef handle_methods[] = {{"join", handle_join, METH_NOARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

// The task of a future that a program has handed out.
HandleObject* handle_of(PyObject* o) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(o)) != forked_class()) return nullptr;
  PyRef handle = checked(PyObject_GetAttrString(o, "_handle"));
  if (Py_TYPE(handle.get()) != HandleType) return nullptr;
  return reinterpret_cast<HandleObject*>(handle.get());  // the future holds it
}

PyObject* task_to_python(script::Task& task) {
  if (task.face) {
    PyObject* known = PyWeakref_GetObject(static_cast<PyObject*>(task.face.get()));
    if (known && known != Py_None) return Py_NewRef(known);
  }
  Given* given = GivenScope::of_thread();
  FB_CHECK_TYPE(given, "a task of a script cannot be handed to Python here");
  const ProgramNames& names = given->names;
  PyRef handle = checked(HandleType->tp_alloc(HandleType, 0));
  auto* h = reinterpret_cast<HandleObject*>(handle.get());
  h->task = new Ref<script::Task>(&task);
  h->classes = Py_NewRef(names.classes);
  PyRef made = checked(PyObject_CallOneArg(forked_class(), handle.get()));
  task.face = std::shared_ptr<void>(checked(PyWeakref_NewRef(made.get(), nullptr)).release(),
                                    [](void* p) {
                                      if (!Py_IsInitialized()) return;
                                      GilHeld gil;
                                      Py_DECREF(static_cast<PyObject*>(p));
                                    });
  // Held until the task is done, by the task.
  struct Held {
    PyRef future, classes, error_class;
  };
  auto held = std::shared_ptr<Held>(
      new Held{made, PyRef::borrow(names.classes), PyRef::borrow(names.error_class)}, [](Held* h) {
        if (!Py_IsInitialized()) return;
        GilHeld gil;
        delete h;
      });
  task.when_done([held = std::move(held), t = &task] {
    if (!Py_IsInitialized()) return;
    GilHeld gil;
    arrive(*t, held->future.get(), {held->classes.get(), held->error_class.get()});
  });
  return made.release();
}

}  // namespace

bool is_future(PyObject* o) {
  int is = PyObject_IsInstance(o, future_class());
  checked_int(is);
  return is;
}

Value future_from_python(const Conversion& c, PyObject* o) {
  // One of another program has objects of that one.
  Given* given = GivenScope::of_thread();
  HandleObject* h = handle_of(o);
  if (h && given && given->names.classes == h->classes)
    return Value(Ref<ValueObject>(*h->task));
  static const Conversion anything({"Any", false, 0, {}}, nullptr);
  return script::make_box<PythonFuture>(c.items.empty() ? anything : c.items[0], o);
}

PyObject* future_to_python(const Value& v) {
  auto& f = *script::box_of<script::Future>(v);
  if (auto* o = dynamic_cast<PythonFuture*>(&f)) return Py_NewRef(o->get());
  return task_to_python(static_cast<script::Task&>(f));
}

bool init_script_futures(PyObject* module) {
  if (!init_futures(module)) return false;
  PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>("A task of a script.")},
                         {Py_tp_dealloc, reinterpret_cast<void*>(handle_dealloc)},
                         {Py_tp_methods, handle_methods},
                         {0, nullptr}};
  PyType_Spec spec = {"flambeau._C._ScriptTask", sizeof(HandleObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  PyRef type = PyRef::steal(PyType_FromSpec(&spec));
  if (!type || PyModule_AddObjectRef(module, "_ScriptTask", type.get()) < 0) return false;
  HandleType = reinterpret_cast<PyTypeObject*>(type.release());
  return true;
}

}  // namespace flambeau::python
