// Scripts for Python: units of text as programs of the machine, and their functions as callables.
//
// Note [Two ways to run a script]
// A function that the machine has no code for runs as Python that the front end makes of it, and so
// does any call under a tracer or with a tensor of a class of the program's, which have to see each
// operation. Both ways mean the same. Which one a function takes is decided when it is compiled.
#include "python/script_futures.h"
#include "python/script_values.h"

#include <frameobject.h>
#include <structmember.h>

#include "python/argparse.h"
#include "python/module.h"
#include "python/trace_hook.h"
#include "script/future.h"
#include "script/lower.h"
#include "script/text.h"

namespace flambeau::python {

namespace {

PyTypeObject* ProgramType = nullptr;
PyTypeObject* CallType = nullptr;

// A function of Python that stands for a node, or makes the context of a `with`.
struct Stand {
  PyRef function;
  std::vector<Conversion> results;
};

// What a program leaves to Python.
class PythonHost final : public script::Host {
 public:
  explicit PythonHost(const ProgramNames& n)
      : classes_(PyRef::borrow(n.classes)), error_class_(PyRef::borrow(n.error_class)) {}
  ~PythonHost() override {  // by whichever thread is the last to run the program
    if (!Py_IsInitialized()) {  // their objects are gone
      stands.swap(*new std::vector<Stand>);
      classes_.release();
      error_class_.release();
      return;
    }
    GilHeld gil;
    stands.clear();
    classes_ = PyRef();
    error_class_ = PyRef();
  }
  std::vector<Stand> stands;

  void call(uint32_t number, const Value* const* args, size_t n, Value* results) override {
    GilHeld gil;
    Given own({classes_.get(), error_class_.get()});  // of a thread that Python has not called
    GivenScope scope(GivenScope::of_thread() ? GivenScope::of_thread() : &own);
    const Stand& s = stands[number];
    PyRef made = called(s, args, n);
    if (s.results.size() == 1) return take(s.results[0], made.get(), results);
    if (s.results.empty()) return;
    auto count = static_cast<Py_ssize_t>(s.results.size());
    PyRef items = checked(PySequence_Tuple(made.get()));
    FB_CHECK_VALUE(PyTuple_GET_SIZE(items.get()) == count, "expected ", count,
                   " values to unpack, got ", PyTuple_GET_SIZE(items.get()));
    for (Py_ssize_t i = 0; i < count; ++i)
      take(s.results[static_cast<size_t>(i)], PyTuple_GET_ITEM(items.get(), i), results + i);
  }
  Value enter(uint32_t number, const Value* const* args, size_t n) override {
    GilHeld gil;
    PyRef manager = called(stands[number], args, n);
    checked(PyObject_CallMethod(manager.get(), "__enter__", nullptr));
    return python_object(manager.get());
  }
  void leave(const Value& entered) override {
    GilHeld gil;
    PyObject* manager = object_of(entered);
    checked(PyObject_CallMethod(manager, "__exit__", "OOO", Py_None, Py_None, Py_None));
  }

 private:
  PyRef classes_, error_class_;

  static PyRef called(const Stand& s, const Value* const* args, size_t n) {
    Given* lists = GivenScope::of_thread();
    for (size_t i = 0; i < n && lists; ++i)
      if (is_held(*args[i])) {  // Python sees what the script has changed until now
        lists->write_back();
        break;
      }
    std::vector<PyRef> given;
    std::vector<PyObject*> places;
    for (size_t i = 0; i < n; ++i) {
      given.push_back(checked(to_python(*args[i])));
      places.push_back(given.back().get());
    }
    return checked(PyObject_Vectorcall(s.function.get(), places.data(), n, nullptr));
  }
  static bool is_held(const Value& v) {
    return script::is_list(v) || (v.object() && !script::box_of<script::Instance>(v));
  }
  static void take(const Conversion& c, PyObject* o, Value* out) {
    if (!from_python(c, o, out, nullptr))
      fail(ErrorKind::Type, "a script expected a value of type ", c.shown, ", got a ",
           Py_TYPE(o)->tp_name);
  }
};

struct ProgramObject {
  PyObject_HEAD std::shared_ptr<script::Program>* program;
  PyObject* classes;      // by name, for named tuples
  PyObject* error_class;  // gives the class of an exception
};

// Asks the front end for what the machine does not have.
class Asker final : public script::HostMaker {
 public:
  Asker(PyObject* maker, const ProgramNames& names, bool trusted, PythonHost& host)
      : maker_(maker), names_(names), trusted_(trusted), host_(host) {}

  std::optional<uint32_t> node(const script::Function& f, size_t place,
                               const script::Node& n) override {
    PyRef found = asked("node", f, place);
    if (found.get() == Py_None) return std::nullopt;
    std::vector<Conversion> results;
    for (uint32_t v : n.outs) {
      const script::Type& t = f.values[v].type;
      results.emplace_back(n.target == "core.fork" && !t.items.empty() ? t.items[0] : t,
                           names_.classes);
    }
    host_.stands.push_back({std::move(found), std::move(results)});
    return static_cast<uint32_t>(host_.stands.size() - 1);
  }
  std::optional<uint32_t> context(const script::Function& f, size_t place,
                                  const script::Node&) override {
    PyRef found = asked("context", f, place);
    if (found.get() == Py_None) return std::nullopt;
    host_.stands.push_back({std::move(found), {}});
    return static_cast<uint32_t>(host_.stands.size() - 1);
  }
  bool attribute(script::AttrRef& a) override {
    if (a.owner->kind != "module" && a.owner->kind != "class") return false;
    PyRef found = checked(PyObject_CallMethod(maker_, "attribute", "ss", a.owner->name.c_str(),
                                              a.name.c_str()));
    if (PyLong_AsLong(found.get()) < 1) {
      if (PyErr_Occurred()) throw PythonError();
      return false;
    }
    prepare_attribute(a, names_, trusted_, PyLong_AsLong(found.get()) > 1);
    return true;
  }

 private:
  PyRef asked(const char* method, const script::Function& f, size_t place) {
    return checked(PyObject_CallMethod(maker_, method, "sn", f.name.c_str(),
                                       static_cast<Py_ssize_t>(place)));
  }
  PyObject* maker_;
  const ProgramNames names_;
  bool trusted_;
  PythonHost& host_;
};

// _Script(text, maker, classes, error_class, trusted)
PyObject* program_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *text, *maker, *classes, *error_class;
  int trusted;
  if (!PyArg_ParseTuple(args, "UOO!Op", &text, &maker, &PyDict_Type, &classes, &error_class,
                        &trusted))
    return nullptr;
  return guarded([&]() -> PyObject* {
    script::Unit unit = script::read(to_str(text));
    script::check(unit);
    const ProgramNames names{classes, error_class};
    auto host = std::make_unique<PythonHost>(names);
    Asker asker(maker, names, trusted, *host);
    std::shared_ptr<script::Program> program = script::lower(std::move(unit), &asker);
    program->host = std::move(host);
    PyRef self = checked(type->tp_alloc(type, 0));
    auto* p = reinterpret_cast<ProgramObject*>(self.get());
    p->program = new std::shared_ptr<script::Program>(std::move(program));
    p->classes = Py_NewRef(classes);
    p->error_class = Py_NewRef(error_class);
    return self.release();
  });
}

void program_dealloc(PyObject* self) {
  auto* p = reinterpret_cast<ProgramObject*>(self);
  PyTypeObject* type = Py_TYPE(self);
  delete p->program;
  Py_XDECREF(p->classes);
  Py_XDECREF(p->error_class);
  type->tp_free(self);
  Py_DECREF(type);
}

// reason(name): why the machine does not run a function; None where it does.
PyObject* program_reason(PyObject* self, PyObject* name) {
  return guarded([&]() -> PyObject* {
    auto& p = **reinterpret_cast<ProgramObject*>(self)->program;
    const std::string wanted = to_str(name);
    for (size_t i = 0; i < p.codes.size(); ++i) {
      if (p.unit.functions[i].name != wanted) continue;
      if (p.reasons[i].empty()) Py_RETURN_NONE;
      return PyUnicode_FromString(p.reasons[i].c_str());
    }
    fail(ErrorKind::Key, wanted);
  });
}

PyMethodDef program_methods[] = {{"reason", program_reason, METH_O, nullptr},
                                 {nullptr, nullptr, 0, nullptr}};

// -- calls ----------------------------------------------------------------------------------------

struct Callable {
  const script::Code* code;
  std::vector<Conversion> params;
  std::vector<Value> defaults;  // of the last parameters
  bool changes;                 // lists and dicts may come back changed
};

struct CallObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  Callable* callable;
  PyObject* program;
  PyObject* entry;      // makes the two below when they are first asked for
  PyObject* bind;       // arguments as given -> a tuple of them in order, checked
  PyObject* as_python;  // the function as it runs without the machine
  PyObject* tracers;   // a list; empty where nobody traces
};

ProgramNames names_of(const CallObject* self) {
  auto* p = reinterpret_cast<ProgramObject*>(self->program);
  return {p->classes, p->error_class};
}

// Adds the lines that an error passed through to its traceback.
void add_lines(const std::vector<script::Passed>& passed) {
  for (const script::Passed& p : passed) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    const std::string& file = p.function->file;
    const std::string& name = p.function->name;
    std::string last = name.substr(name.rfind('.') + 1);
    PyRef code = PyRef::steal(reinterpret_cast<PyObject*>(
        PyCode_NewEmpty(file.empty() ? "<script>" : file.c_str(), last.c_str(),
                        static_cast<int>(p.line))));
    PyRef globals = PyRef::steal(PyDict_New());
    PyFrameObject* frame =
        code && globals
            ? PyFrame_New(PyThreadState_Get(), reinterpret_cast<PyCodeObject*>(code.get()),
                          globals.get(), nullptr)
            : nullptr;
    PyErr_Restore(type, value, trace);
    if (!frame) return;
    PyTraceBack_Here(frame);
    Py_DECREF(frame);
  }
}

}  // namespace

void raise_script(PyObject* error_class) noexcept {
  std::vector<script::Passed> passed = script::take_passed();
  try {
    throw;
  } catch (const script::MissingKey& e) {
    PyRef key = PyRef::steal(to_python(e.key));
    if (key) PyErr_SetObject(PyExc_KeyError, key.get());
  } catch (const script::Raised& e) {
    PyRef cls = PyRef::steal(PyObject_CallFunction(error_class, "s", e.cls.c_str()));
    if (cls && *e.what())
      PyErr_SetString(cls.get(), e.what());
    else if (cls)
      PyErr_SetNone(cls.get());
  } catch (...) {
    raise_current();
  }
  add_lines(passed);
}

namespace {

PyObject* run(CallObject* self, script::Invocation& call, Given& given) {
  const Callable& c = *self->callable;
  GivenScope scope(&given);
  try {
    Value result;
    {
      RunLock lock(c.code->lasts || given.large);
      result = call.run();
    }
    if (c.changes && !given.empty()) given.write_back();
    return to_python(std::move(result));
  } catch (...) {
    raise_script(given.names.error_class);
  }
  if (c.changes && !given.empty()) {  // as far as it came
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    try {
      given.write_back();
    } catch (...) {
      PyErr_Clear();
    }
    PyErr_Restore(type, value, trace);
  }
  return nullptr;
}

PyObject* made_entry(CallObject* self, bool bind) {  // borrowed
  PyObject*& to = bind ? self->bind : self->as_python;
  if (!to) {
    PyObject* made = checked(PyObject_CallOneArg(self->entry, bind ? Py_True : Py_False)).release();
    if (to)
      Py_DECREF(made);  // another thread's
    else
      to = made;
  }
  return to;
}

// The function as it runs without the machine.
PyObject* call_as_python(CallObject* self, PyObject* const* args, size_t nargsf, PyObject* names) {
  PyRef bound = checked(PyObject_Vectorcall(made_entry(self, true), args, nargsf, names));
  return PyObject_Call(made_entry(self, false), bound.get(), nullptr);
}

// Arguments that need more than a look: by name, of other types, missing.
[[gnu::noinline]] PyObject* call_slowly(CallObject* self, PyObject* const* args, size_t nargsf,
                                        PyObject* names) {
  PyRef bound = checked(PyObject_Vectorcall(made_entry(self, true), args, nargsf, names));
  const Callable& c = *self->callable;
  auto n = static_cast<size_t>(PyTuple_GET_SIZE(bound.get()));
  {
    Given given(names_of(self));
    script::Invocation call(*c.code);
    given.large = true;  // lists of tensors are not looked through
    size_t j = 0;
    while (j < n && from_python(c.params[j], PyTuple_GET_ITEM(bound.get(), j), &call[j], &given))
      ++j;
    if (j == n) return run(self, call, given);
  }
  return PyObject_Call(made_entry(self, false), bound.get(), nullptr);
}

PyObject* call_script(PyObject* o, PyObject* const* args, size_t nargsf, PyObject* names) {
  auto* self = reinterpret_cast<CallObject*>(o);
  try {
    if (tracer || PyList_GET_SIZE(self->tracers)) [[unlikely]]
      return call_as_python(self, args, nargsf, names);
    const Callable& c = *self->callable;
    auto n = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
    size_t count = c.params.size();
    if (names || n > count || n + c.defaults.size() < count) [[unlikely]]
      return call_slowly(self, args, nargsf, names);
    script::Invocation call(*c.code);
    Given given(names_of(self));
    for (size_t j = 0; j < n; ++j) {
      if (!plain_from_python(c.params[j], args[j], &call[j])) [[unlikely]]
        return call_slowly(self, args, nargsf, names);
      given.large |= is_large(call[j]);
    }
    for (size_t j = n; j < count; ++j) call[j] = c.defaults[j + c.defaults.size() - count];
    return run(self, call, given);
  } catch (...) {
    return raise_current();
  }
}

// _ScriptCall(program, name, entry, tracers, defaults, changes)
PyObject* call_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *program, *entry, *tracers, *defaults;
  const char* name;
  int changes;
  if (!PyArg_ParseTuple(args, "O!sOO!O!p", ProgramType, &program, &name, &entry, &PyList_Type,
                        &tracers, &PyTuple_Type, &defaults, &changes))
    return nullptr;
  return guarded([&]() -> PyObject* {
    auto* owner = reinterpret_cast<ProgramObject*>(program);
    const script::Program& p = **owner->program;
    const script::Code* code = p.find(name);
    FB_CHECK_VALUE(code, "the machine does not run ", name);
    auto made = std::make_unique<Callable>();
    made->code = code;
    made->changes = changes;
    for (uint32_t v : code->source->body.inputs)
      made->params.emplace_back(code->source->values[v].type, owner->classes);
    if (!made->params.empty()) made->params[0].known = code->source->values[0].name == "self";
    auto n = static_cast<size_t>(PyTuple_GET_SIZE(defaults));
    FB_CHECK_VALUE(n <= made->params.size(), "too many defaults");
    for (size_t i = 0; i < n; ++i) {
      Value x;
      // One that is no plain value, such as a list, goes the slow way with all before it.
      if (!plain_from_python(made->params[made->params.size() - n + i],
                             PyTuple_GET_ITEM(defaults, static_cast<Py_ssize_t>(i)), &x)) {
        made->defaults.clear();
        continue;
      }
      made->defaults.push_back(std::move(x));
    }
    PyRef self = checked(type->tp_alloc(type, 0));
    auto* c = reinterpret_cast<CallObject*>(self.get());
    c->vectorcall = call_script;
    c->callable = made.release();
    c->program = Py_NewRef(program);
    c->entry = Py_NewRef(entry);
    c->tracers = Py_NewRef(tracers);
    return self.release();
  });
}

int call_traverse(PyObject* self, visitproc visit, void* arg) {
  auto* c = reinterpret_cast<CallObject*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(c->program);
  Py_VISIT(c->entry);
  Py_VISIT(c->bind);
  Py_VISIT(c->as_python);
  return 0;
}
int call_clear(PyObject* self) {
  auto* c = reinterpret_cast<CallObject*>(self);
  Py_CLEAR(c->entry);
  Py_CLEAR(c->bind);
  Py_CLEAR(c->as_python);
  return 0;
}
void call_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  auto* c = reinterpret_cast<CallObject*>(self);
  PyTypeObject* type = Py_TYPE(self);
  delete c->callable;
  Py_XDECREF(c->program);
  Py_XDECREF(c->entry);
  Py_XDECREF(c->bind);
  Py_XDECREF(c->as_python);
  Py_XDECREF(c->tracers);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef call_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CallObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyObject* get_as_python(PyObject* self, void*) {
  return guarded([&] { return Py_NewRef(made_entry(reinterpret_cast<CallObject*>(self), false)); });
}
PyGetSetDef call_properties[] = {{"as_python", get_as_python, nullptr, nullptr, nullptr},
                                 {nullptr, nullptr, nullptr, nullptr, nullptr}};

// -- the face of a function -----------------------------------------------------------------------

// What programs call: `ScriptFunction` is a subclass. Forwards to `_call`, or to `_traced` where
// somebody traces.
struct FaceObject {
  PyObject_HEAD PyObject *call, *tracers;
};

PyObject* face_call(PyObject* o, PyObject* args, PyObject* kwargs) {
  auto* self = reinterpret_cast<FaceObject*>(o);
  if (!self->call || !self->tracers) {
    PyErr_SetString(PyExc_TypeError, "a script that has not been made");
    return nullptr;
  }
  if (!PyList_Check(self->tracers) || PyList_GET_SIZE(self->tracers)) [[unlikely]] {
    PyRef method = PyRef::steal(PyObject_GetAttrString(o, "_traced"));
    return method ? PyObject_Call(method.get(), args, kwargs) : nullptr;
  }
  if (kwargs && PyDict_GET_SIZE(kwargs)) return PyObject_Call(self->call, args, kwargs);
  return PyObject_Vectorcall(self->call, reinterpret_cast<PyTupleObject*>(args)->ob_item,
                             static_cast<size_t>(PyTuple_GET_SIZE(args)), nullptr);
}

int face_traverse(PyObject* o, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<FaceObject*>(o);
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(self->call);
  return 0;
}
int face_clear(PyObject* o) {
  Py_CLEAR(reinterpret_cast<FaceObject*>(o)->call);
  return 0;
}
void face_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  auto* self = reinterpret_cast<FaceObject*>(o);
  PyTypeObject* type = Py_TYPE(o);
  Py_XDECREF(self->call);
  Py_XDECREF(self->tracers);
  type->tp_free(o);
  Py_DECREF(type);
}
PyMemberDef face_members[] = {
    {"_call", T_OBJECT_EX, offsetof(FaceObject, call), 0, nullptr},
    {"_tracers", T_OBJECT_EX, offsetof(FaceObject, tracers), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

// _script_text(text): the unit of a text, checked, written again.
PyObject* script_text(PyObject*, PyObject* text) {
  return guarded([&] {
    const std::string given = to_str(text);
    script::Unit unit = script::read(given);
    script::check(unit);
    std::string made = script::write(unit);
    return PyUnicode_DecodeUTF8(made.data(), static_cast<Py_ssize_t>(made.size()), nullptr);
  });
}

PyTypeObject* make_type(PyObject* module, const char* name, PyType_Spec& spec) {
  PyRef type = PyRef::steal(PyType_FromSpec(&spec));
  if (!type || PyModule_AddObjectRef(module, name, type.get()) < 0) return nullptr;
  return reinterpret_cast<PyTypeObject*>(type.release());
}

}  // namespace

namespace {
PyObject* end_tasks(PyObject*, PyObject*) {
  {
    GilFree free;  // they may want it
    script::end_tasks();
  }
  Py_RETURN_NONE;
}
PyMethodDef end_method = {"_end_tasks", end_tasks, METH_NOARGS, nullptr};
}  // namespace

PyMethodDef script_functions[] = {
    {"_script_text", script_text, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};

bool init_script(PyObject* module) {
  script::poll = [] {
    GilHeld gil;
    if (PyErr_CheckSignals() < 0) throw PythonError();
  };
  PyType_Slot program_slots[] = {
      {Py_tp_doc, const_cast<char*>("A unit as the machine runs it.")},
      {Py_tp_new, reinterpret_cast<void*>(program_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(program_dealloc)},
      {Py_tp_methods, program_methods},
      {0, nullptr}};
  PyType_Spec program_spec = {"flambeau._C._Script", sizeof(ProgramObject), 0, Py_TPFLAGS_DEFAULT,
                              program_slots};
  PyType_Slot call_slots[] = {{Py_tp_doc, const_cast<char*>("A function that the machine runs.")},
                              {Py_tp_new, reinterpret_cast<void*>(call_new)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(call_dealloc)},
                              {Py_tp_traverse, reinterpret_cast<void*>(call_traverse)},
                              {Py_tp_clear, reinterpret_cast<void*>(call_clear)},
                              {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                              {Py_tp_members, call_members},
                              {Py_tp_getset, call_properties},
                              {0, nullptr}};
  PyType_Spec call_spec = {
      "flambeau._C._ScriptCall", sizeof(CallObject), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC, call_slots};
  PyType_Slot face_slots[] = {{Py_tp_doc, const_cast<char*>("What forwards calls to a script.")},
                              {Py_tp_dealloc, reinterpret_cast<void*>(face_dealloc)},
                              {Py_tp_traverse, reinterpret_cast<void*>(face_traverse)},
                              {Py_tp_clear, reinterpret_cast<void*>(face_clear)},
                              {Py_tp_call, reinterpret_cast<void*>(face_call)},
                              {Py_tp_members, face_members},
                              {0, nullptr}};
  PyType_Spec face_spec = {"flambeau._C._ScriptFace", sizeof(FaceObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                           face_slots};
  if (!make_type(module, "_ScriptFace", face_spec)) return false;
  // Before Python ends, which threads that want its lock would not outlive.
  PyRef atexit = PyRef::steal(import_module("atexit"));
  PyRef end = PyRef::steal(PyCFunction_New(&end_method, nullptr));
  if (!atexit || !end) return false;
  PyRef registered = PyRef::steal(PyObject_CallMethod(atexit.get(), "register", "O", end.get()));
  if (!registered) return false;
  if (!init_script_futures(module)) return false;
  ProgramType = make_type(module, "_Script", program_spec);
  CallType = make_type(module, "_ScriptCall", call_spec);
  return ProgramType && CallType;
}

}  // namespace flambeau::python
