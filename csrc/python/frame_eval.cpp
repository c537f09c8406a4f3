// See frame_eval.h. Owns, per code object, what was compiled for it, and per thread, which
// compilation is in force. Decides nothing about capture: a miss asks the Python object in force.
//
// A frame is seen in one of three states of its thread: nothing in force (it runs as always); a
// compilation in force (guards are tried, then capture is asked); strict (capture itself is calling
// C code that must not come back into the user's Python: such a frame raises).
#include "python/frame_eval.h"

#include "python/guards.h"
#include "python/trace_hook.h"

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030D0000
#define FB_HAVE_FRAME_EVAL 1
#define Py_BUILD_CORE 1
extern "C" {
#include <internal/pycore_frame.h>
}
#undef Py_BUILD_CORE
#endif

namespace flambeau::python {
namespace {

struct Local {
  PyObject* config = nullptr;  // what is in force; owned
  bool strict = false;
};
thread_local constinit Local local{};

struct Entry {
  PyRef config, guards, callable;
};

enum class Trust : uint8_t { Unknown, Yes, No };

struct CodeState {
  std::vector<Entry> entries;
  bool skip = false;
  Trust trust = Trust::Unknown;
  CodeState *previous = nullptr, *next = nullptr;  // all states, for reset
};

#if PY_VERSION_HEX < 0x030C0000  // the names that Python 3.12 gave them
#define PyUnstable_Code_GetExtra _PyCode_GetExtra
#define PyUnstable_Code_SetExtra _PyCode_SetExtra
#define PyUnstable_Eval_RequestCodeExtraIndex _PyEval_RequestCodeExtraIndex
#endif

CodeState all_states;  // head of the ring's list
Py_ssize_t extra_index = -1;
PyObject* strict_error = nullptr;    // class raised for a frame in strict state
PyObject* run_plainly = nullptr;     // what an entry returns for a frame that is to run as it is
PyObject* trust_question = nullptr;  // code -> bool, or None: yes, but ask again

void free_state(void* p) {
  auto* state = static_cast<CodeState*>(p);
  if (!state) return;
  if (state->previous) state->previous->next = state->next;
  if (state->next) state->next->previous = state->previous;
  delete state;
}

CodeState* state_of(PyObject* code, bool make) {
  void* found = nullptr;
  if (PyUnstable_Code_GetExtra(code, extra_index, &found) < 0) throw PythonError();
  if (found || !make) return static_cast<CodeState*>(found);
  auto* state = new CodeState;
  state->next = all_states.next;
  state->previous = &all_states;
  if (all_states.next) all_states.next->previous = state;
  all_states.next = state;
  if (PyUnstable_Code_SetExtra(code, extra_index, state) < 0) throw PythonError();
  return state;
}

}  // namespace

CapturePaused::CapturePaused() noexcept
    : config_(std::exchange(local.config, nullptr)), strict_(std::exchange(local.strict, false)) {}
CapturePaused::~CapturePaused() {
  Py_XDECREF(std::exchange(local.config, config_));
  local.strict = strict_;
}

namespace {

#ifdef FB_HAVE_FRAME_EVAL

PyObject* function_of(_PyInterpreterFrame* f) {
#if PY_VERSION_HEX < 0x030C0000
  return reinterpret_cast<PyObject*>(f->f_func);
#else
  return f->f_funcobj;
#endif
}

PyObject* run_default(PyThreadState* thread, _PyInterpreterFrame* f, int throwing) {
  return _PyEval_EvalFrameDefault(thread, f, throwing);
}

#if PY_VERSION_HEX >= 0x030C0000
// From 3.12 on the evaluation of a frame also disposes of it, with functions that are not exported.
// So the frame is finished by evaluating it after all, with code that only returns (or, when an
// exception is set, is thrown into).
PyObject* return_only = nullptr;  // made beforehand: where it is needed, an exception may be set

bool make_return_only() {
  PyRef empty = PyRef::steal(
      reinterpret_cast<PyObject*>(PyCode_NewEmpty("<flambeau.compile>", "compiled", 1)));
  PyRef bytes = PyRef::steal(PyBytes_FromStringAndSize("\x53\x00", 2));  // RETURN_VALUE
  PyRef replace = empty ? PyRef::steal(PyObject_GetAttrString(empty.get(), "replace")) : PyRef();
  PyRef none = PyRef::steal(PyTuple_New(0));
  PyRef names = PyRef::steal(PyDict_New());
  if (!replace || !none || !names || !bytes ||
      PyDict_SetItemString(names.get(), "co_code", bytes.get()) < 0)
    return false;
  return_only = PyObject_Call(replace.get(), none.get(), names.get());
  return return_only != nullptr;
}

PyObject* finish(PyThreadState* thread, _PyInterpreterFrame* f, PyObject* result) {
  PyCodeObject* old = f->f_code;
  for (int i = 0; i < old->co_nlocalsplus; ++i) Py_CLEAR(f->localsplus[i]);
  f->f_code = reinterpret_cast<PyCodeObject*>(Py_NewRef(return_only));
  f->prev_instr = _PyCode_CODE(f->f_code) - 1;
  f->stacktop = result ? 1 : 0;
  if (result) f->localsplus[0] = result;
  Py_DECREF(old);
  return run_default(thread, f, result == nullptr);
}
#else
bool make_return_only() {
  return true;
}

PyObject* finish(PyThreadState*, _PyInterpreterFrame*, PyObject* result) {
  return result;  // the caller disposes of the frame
}
#endif

FrameValues values_of(_PyInterpreterFrame* f) {
  return {function_of(f), f->f_globals, f->localsplus, f->f_code->co_nlocalsplus};
}

PyObject* call_entry(const Entry& entry, std::vector<PyRef>& slots) {
  static_assert(sizeof(PyRef) == sizeof(PyObject*));
  PyRef callable = entry.callable;  // the entry may go away while it runs
  return PyObject_Vectorcall(callable.get(), reinterpret_cast<PyObject* const*>(slots.data()),
                             slots.size(), nullptr);
}

// The entry whose guards hold, with its slots.
const Entry* find_entry(CodeState& state, PyObject* config, const FrameValues& frame,
                        std::vector<PyRef>& slots) {
  for (const Entry& e : state.entries)
    if (e.config.get() == config && run_guards(*guards_of(e.guards.get()), frame, slots)) return &e;
  return nullptr;
}

// A function whose arguments are all of its first locals needs no frame to be guarded. Null without
// an exception: it is no such function, or nothing that was compiled for it applies.
PyObject* call_without_frame(PyObject* config, PyObject* callable, PyObject* args,
                             PyObject* kwargs) {
  if (!PyFunction_Check(callable) || (kwargs != Py_None && PyDict_GET_SIZE(kwargs))) return nullptr;
  auto* function = reinterpret_cast<PyFunctionObject*>(callable);
  auto* code = reinterpret_cast<PyCodeObject*>(function->func_code);
  constexpr int other =
      CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_VARARGS | CO_VARKEYWORDS;
  if (code->co_flags & other || !(code->co_flags & CO_OPTIMIZED) || code->co_kwonlyargcount ||
      code->co_argcount != PyTuple_GET_SIZE(args))
    return nullptr;
  CodeState* state = state_of(function->func_code, false);
  if (!state || state->skip) return nullptr;
  FrameValues frame{callable, function->func_globals,
                    reinterpret_cast<PyTupleObject*>(args)->ob_item, code->co_argcount};
  std::vector<PyRef> slots;
  const Entry* entry;
  {
    CapturePaused paused;
    entry = find_entry(*state, config, frame, slots);
  }
  PyObject* result = entry ? call_entry(*entry, slots) : nullptr;
  if (result != run_plainly) return result;
  Py_DECREF(result);
  return nullptr;
}

// Asks for a compiled form: config.capture(code, function, globals, locals) gives (guards,
// callable) or None. Locals that are not set yet are NotImplemented there, which no argument ever
// is.
bool capture(PyObject* config, CodeState& state, _PyInterpreterFrame* f) {
  FrameValues frame = values_of(f);
  PyRef values = checked(PyTuple_New(frame.nlocals));
  for (Py_ssize_t i = 0; i < frame.nlocals; ++i)
    PyTuple_SET_ITEM(values.get(), i,
                     Py_NewRef(frame.locals[i] ? frame.locals[i] : Py_NotImplemented));
  PyRef result = checked(PyObject_CallMethod(config, "capture", "OOOO", f->f_code, frame.function,
                                             frame.globals, values.get()));
  if (result.get() == Py_None) return false;
  PyObject *guards, *callable;
  if (!PyArg_ParseTuple(result.get(), "OO", &guards, &callable) || !guards_of(guards))
    throw PythonError();
  state.entries.insert(state.entries.begin(), Entry{PyRef::borrow(config), PyRef::borrow(guards),
                                                    PyRef::borrow(callable)});
  return true;
}

PyObject* strict_frame(PyThreadState* thread, _PyInterpreterFrame* f, int throwing) {
  if (throwing) return run_default(thread, f, throwing);  // a generator that is closed
  auto* code = reinterpret_cast<PyObject*>(f->f_code);
  try {
    CodeState* state = state_of(code, true);
    if (state->trust == Trust::Unknown) {
      CapturePaused paused;
      PyRef answer = checked(PyObject_CallOneArg(trust_question, code));
      if (answer.get() == Py_None) return run_default(thread, f, throwing);  // this time
      state->trust = answer.get() == Py_True ? Trust::Yes : Trust::No;
    }
    if (state->trust == Trust::Yes) return run_default(thread, f, throwing);
    PyErr_Format(strict_error, "a call into C came back to the Python function %U",
                 f->f_code->co_qualname);
  } catch (...) {
    raise_current();
  }
  return finish(thread, f, nullptr);
}

PyObject* evaluate(PyThreadState* thread, _PyInterpreterFrame* f, int throwing) {
  if ((!local.config || in_function_mode()) && !local.strict) [[likely]]
    return run_default(thread, f, throwing);
  if (local.strict) return strict_frame(thread, f, throwing);
  constexpr int suspended = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
  if (throwing || (f->f_code->co_flags & suspended) || !(f->f_code->co_flags & CO_OPTIMIZED) ||
      f->prev_instr != _PyCode_CODE(f->f_code) - 1)
    return run_default(thread, f, throwing);
  PyObject* result;
  try {
    auto* code = reinterpret_cast<PyObject*>(f->f_code);
    CodeState& state = *state_of(code, true);
    if (state.skip) return run_default(thread, f, throwing);
    std::vector<PyRef> slots;
    const Entry* entry;
    {
      CapturePaused paused;
      entry = find_entry(state, paused.config(), values_of(f), slots);
      if (!entry && capture(paused.config(), state, f))
        entry = find_entry(state, paused.config(), values_of(f), slots);
    }
    if (!entry) return run_default(thread, f, throwing);
    result = call_entry(*entry, slots);
    if (result == run_plainly) {
      Py_DECREF(result);
      return run_default(thread, f, throwing);
    }
  } catch (...) {
    result = raise_current();
  }
  return finish(thread, f, result);
}

// The hook is installed while some thread needs it: with it, CPython's own calls are slower.
void install(bool on) {
  _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(),
                                       on ? evaluate : _PyEval_EvalFrameDefault);
}

#endif  // FB_HAVE_FRAME_EVAL

bool supported() {
#ifdef FB_HAVE_FRAME_EVAL
  return true;
#else
  PyErr_Format(PyExc_RuntimeError,
               "compile: capture is supported on CPython 3.11 and 3.12, this is %s; use the model "
               "without compile, or another Python",
               PY_VERSION);
  return false;
#endif
}

// Keeps the hook installed.
class Hooked {
 public:
  Hooked() {
#ifdef FB_HAVE_FRAME_EVAL
    if (count_++ == 0) install(true);
#endif
  }
  ~Hooked() {
#ifdef FB_HAVE_FRAME_EVAL
    if (--count_ == 0) install(false);
#endif
  }
  Hooked(const Hooked&) = delete;

 private:
  static inline int count_ = 0;  // of all threads; under the GIL
};

// _call_captured(config, function, args, kwargs): the call with config in force.
PyObject* call_captured(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 4) {
    PyErr_Format(PyExc_TypeError, "_call_captured: expected 4 arguments, got %zd", n);
    return nullptr;
  }
  if (args[0] != Py_None && !supported()) return nullptr;
  Hooked hooked;
  bool strict = std::exchange(local.strict, false);
  const bool plain = args[0] == Py_None || in_function_mode();  // modes see each call
  PyObject* previous = std::exchange(local.config, plain ? nullptr : Py_NewRef(args[0]));
  PyObject* result = nullptr;
#ifdef FB_HAVE_FRAME_EVAL
  try {
    if (local.config) result = call_without_frame(args[0], args[1], args[2], args[3]);
  } catch (...) {
    raise_current();
  }
#endif
  if (!result && !PyErr_Occurred())
    result = PyObject_Call(args[1], args[2], args[3] == Py_None ? nullptr : args[3]);
  Py_XDECREF(std::exchange(local.config, previous));
  local.strict = strict;
  return result;
}

// _call_strict(function, args, kwargs): the call; a frame of untrusted code in it raises.
PyObject* call_strict(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n != 3) {
    PyErr_Format(PyExc_TypeError, "_call_strict: expected 3 arguments, got %zd", n);
    return nullptr;
  }
  if (!supported()) return nullptr;
  Hooked hooked;
  bool strict = std::exchange(local.strict, true);
  PyObject* result = PyObject_Call(args[0], args[1], args[2] == Py_None ? nullptr : args[2]);
  local.strict = strict;
  return result;
}

PyObject* set_strict(PyObject*, PyObject* on) {
  return PyBool_FromLong(std::exchange(local.strict, on == Py_True));
}

PyObject* set_callbacks(PyObject*, PyObject* args) {
  PyObject *error, *question;
  if (!PyArg_ParseTuple(args, "OO:_set_capture_callbacks", &error, &question)) return nullptr;
  Py_XSETREF(strict_error, Py_NewRef(error));
  Py_XSETREF(trust_question, Py_NewRef(question));
  Py_RETURN_NONE;
}

bool is_code(PyObject* o, const char* function) {
  if (PyCode_Check(o)) return true;
  PyErr_Format(PyExc_TypeError, "%s: expected a code object, got %s", function,
               Py_TYPE(o)->tp_name);
  return false;
}

PyObject* skip_code(PyObject*, PyObject* code) {
  if (!is_code(code, "_skip_code")) return nullptr;
  try {
    state_of(code, true)->skip = true;
  } catch (...) {
    return raise_current();
  }
  Py_RETURN_NONE;
}

// _code_entries(code): a list of (config, guards, callable), the one tried first first.
PyObject* code_entries(PyObject*, PyObject* code) {
  if (!is_code(code, "_code_entries")) return nullptr;
  try {
    PyRef out = checked(PyList_New(0));
    if (CodeState* state = state_of(code, false))
      for (const Entry& e : state->entries) {
        PyRef row = checked(PyTuple_Pack(3, e.config.get(), e.guards.get(), e.callable.get()));
        checked_int(PyList_Append(out.get(), row.get()));
      }
    return out.release();
  } catch (...) {
    return raise_current();
  }
}

// _reset_captures(): forgets all that was compiled.
PyObject* reset(PyObject*, PyObject*) {
  std::vector<Entry> doomed;  // destroyed last: that may run Python
  for (CodeState* s = all_states.next; s; s = s->next) {
    for (Entry& e : s->entries) doomed.push_back(std::move(e));
    s->entries.clear();
  }
  Py_RETURN_NONE;
}

// _drop_captures(config): forgets what was compiled for one config.
PyObject* drop(PyObject*, PyObject* config) {
  std::vector<Entry> doomed;
  for (CodeState* s = all_states.next; s; s = s->next) {
    auto& entries = s->entries;
    for (size_t i = entries.size(); i-- > 0;)
      if (entries[i].config.get() == config) {
        doomed.push_back(std::move(entries[i]));
        entries.erase(entries.begin() + static_cast<ptrdiff_t>(i));
      }
  }
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"_call_captured", fast(call_captured), METH_FASTCALL, "A call with a compilation in force."},
    {"_call_strict", fast(call_strict), METH_FASTCALL, "A call that may not run user code."},
    {"_set_strict", set_strict, METH_O, "Turns the strict state on or off; returns what was."},
    {"_set_capture_callbacks", set_callbacks, METH_VARARGS, "(error class, code -> bool)"},
    {"_skip_code", skip_code, METH_O, "Never capture frames of this code."},
    {"_code_entries", code_entries, METH_O, "What was compiled for a code object."},
    {"_reset_captures", reset, METH_NOARGS, "Forgets all that was compiled."},
    {"_drop_captures", drop, METH_O, "Forgets what was compiled for one config."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool init_frame_eval(PyObject* module) {
  extra_index = PyUnstable_Eval_RequestCodeExtraIndex(free_state);
  if (extra_index < 0 || PyModule_AddFunctions(module, functions) != 0) return false;
  run_plainly = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  if (!run_plainly || PyModule_AddObjectRef(module, "_run_plainly", run_plainly) != 0) return false;
#ifdef FB_HAVE_FRAME_EVAL
  return make_return_only();
#else
  return true;
#endif
}

}  // namespace flambeau::python
