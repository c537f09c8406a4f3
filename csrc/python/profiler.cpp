// Profiles as Python sees them: opened, read once as tuples when they are closed; named ranges; and
// where a Python program is when it calls an operation.
#include "python/profiler.h"

#include <bit>
#include <map>
#include <mutex>

#include "profiler/events.h"
#include "profiler/inputs.h"
#include "python/argparse.h"
#include "python/thunks.h"

namespace flambeau::python {

namespace {

// Stacks
// -------------------------------------------------------------------------------------------------------

// Each place of a program that was seen, by its frames: codes and lines, innermost first. Under the
// GIL.
struct Stacks {
  using Frames = std::vector<std::pair<PyObject*, int>>;  // owned codes
  std::map<Frames, uint32_t> numbers;
  std::vector<const Frames*> all;
};
Stacks& stacks() {
  static auto* s = new Stacks;
  return *s;
}

uint32_t stack_here() noexcept {
  if (!PyGILState_GetThisThreadState()) return 0;  // a thread that Python does not know
  struct Gil {  // a large operation runs without it
    PyGILState_STATE state = PyGILState_Ensure();
    ~Gil() { PyGILState_Release(state); }
  } gil;
  try {
    Stacks::Frames frames;
    PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
    while (frame) {
      PyCodeObject* code = PyFrame_GetCode(frame);
      frames.emplace_back(reinterpret_cast<PyObject*>(code), PyFrame_GetLineNumber(frame));
      PyFrameObject* back = PyFrame_GetBack(frame);
      Py_DECREF(frame);
      frame = back;
    }
    Stacks& s = stacks();
    auto [it, fresh] = s.numbers.try_emplace(frames, static_cast<uint32_t>(s.all.size() + 1));
    if (fresh)
      s.all.push_back(&it->first);
    else
      for (auto& [code, line] : frames) Py_DECREF(code);
    return it->second;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

// A tuple of lists of (file, line, function), and no stacks are known any more.
PyRef take_stacks() {
  Stacks& s = stacks();
  PyRef out = checked(PyTuple_New(std::ssize(s.all)));
  for (size_t i = 0; i < s.all.size(); ++i) {
    const auto& frames = *s.all[i];
    PyObject* list = checked(PyList_New(std::ssize(frames))).release();
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), list);
    for (size_t k = 0; k < frames.size(); ++k) {
      auto* code = reinterpret_cast<PyCodeObject*>(frames[k].first);
      PyObject* frame =
          checked(Py_BuildValue("(OiO)", code->co_filename, frames[k].second, code->co_qualname))
              .release();
      PyList_SET_ITEM(list, static_cast<Py_ssize_t>(k), frame);
    }
  }
  for (const auto* frames : s.all)
    for (auto& [code, line] : *frames) Py_DECREF(code);
  s.all.clear();
  s.numbers.clear();
  return out;
}

// Arguments
// -----------------------------------------------------------------------------------------------------

using profiler::Input;

PyRef ints(const int64_t*& at, int64_t n) {
  PyRef out = checked(PyTuple_New(n));
  for (int64_t i = 0; i < n; ++i)
    PyTuple_SET_ITEM(out.get(), i, checked(PyLong_FromLongLong(*at++)).release());
  return out;
}

// One argument: None; (dtype, sizes, strides) of a tensor; a list of these; a number; a tuple of
// integers; Ellipsis for what has another type.
PyRef argument(const int64_t*& at) {
  switch (static_cast<Input>(*at++)) {
    case Input::None:
      return PyRef::borrow(Py_None);
    case Input::Tensor: {
      auto dtype = static_cast<DType>(*at++);
      int64_t dims = *at++;
      PyRef sizes = ints(at, dims), strides = ints(at, dims);
      return checked(Py_BuildValue("(NOO)", wrap_dtype(dtype), sizes.get(), strides.get()));
    }
    case Input::List: {
      int64_t n = *at++;
      PyRef out = checked(PyList_New(n));
      for (int64_t i = 0; i < n; ++i) PyList_SET_ITEM(out.get(), i, argument(at).release());
      return out;
    }
    case Input::Ints: {
      int64_t n = *at++;
      return ints(at, n);
    }
    case Input::Int:
      return checked(PyLong_FromLongLong(*at++));
    case Input::Bool:
      return PyRef::borrow(*at++ ? Py_True : Py_False);
    case Input::Float:
      return checked(PyFloat_FromDouble(std::bit_cast<double>(*at++)));
    default:
      return PyRef::borrow(Py_Ellipsis);
  }
}

PyRef arguments(const profiler::ThreadEvents& thread, const profiler::Event& e) {
  if (e.inputs < 0) return PyRef::borrow(Py_None);
  const int64_t* at = thread.inputs.data() + e.inputs;
  const int64_t n = *at++;
  PyRef out = checked(PyList_New(n));
  for (int64_t i = 0; i < n; ++i) PyList_SET_ITEM(out.get(), i, argument(at).release());
  return out;
}

// Events
// --------------------------------------------------------------------------------------------------------

std::string name_of(const profiler::Event& e) {
  if (e.op) return concat("aten::", e.op->name, e.form == profiler::Form::InPlace ? "_" : "");
  if (e.kind == profiler::Kind::Evaluation)
    return "autograd::engine::evaluate_function: " + e.text;
  return e.text;
}

PyRef text_of(const std::string& s) {
  return checked(PyUnicode_DecodeUTF8(s.data(), std::ssize(s), "replace"));
}

PyRef events_of(const profiler::ThreadEvents& thread) {
  PyRef out = checked(PyList_New(std::ssize(thread.events)));
  Py_ssize_t i = 0;
  for (const profiler::Event& e : thread.events) {
    PyRef name = text_of(name_of(e)), given = arguments(thread, e);
    PyRef args = e.args.empty() ? PyRef::borrow(Py_None) : text_of(e.args);
    PyObject* row = Py_BuildValue(
        "(OiiLLLLLOIO)", name.get(), static_cast<int>(e.kind), static_cast<int>(e.form),
        static_cast<long long>(e.begin), static_cast<long long>(e.end),
        static_cast<long long>(e.parent), static_cast<long long>(e.sequence),
        static_cast<long long>(e.bytes), given.get(), e.stack, args.get());
    PyList_SET_ITEM(out.get(), i++, checked(row).release());
  }
  return out;
}

PyRef memory_of(const profiler::ThreadEvents& thread) {
  PyRef out = checked(PyList_New(std::ssize(thread.memory)));
  Py_ssize_t i = 0;
  for (const profiler::MemoryEvent& e : thread.memory) {
    PyObject* row = Py_BuildValue("(LLLKL)", static_cast<long long>(e.at),
                                  static_cast<long long>(e.bytes), static_cast<long long>(e.total),
                                  static_cast<unsigned long long>(e.address),
                                  static_cast<long long>(e.event));
    PyList_SET_ITEM(out.get(), i++, checked(row).release());
  }
  return out;
}

// _profiler_start(records)
PyObject* profiler_start(PyObject*, PyObject* records) {
  return guarded([&] {
    profiler::set_stack_source(stack_here);
    profiler::start(static_cast<uint8_t>(to_int(records) & 0xff));
    return Py_NewRef(Py_None);
  });
}

// _profiler_stop() -> (begin, end, wall, [(ordinal, id, name, events, memory)], stacks)
PyObject* profiler_stop(PyObject*, PyObject*) {
  return guarded([&] {
    profiler::Profile profile = profiler::stop();
    PyRef threads = checked(PyList_New(std::ssize(profile.threads)));
    Py_ssize_t i = 0;
    for (const profiler::ThreadEvents& t : profile.threads) {
      PyRef name = text_of(t.name), events = events_of(t), memory = memory_of(t);
      PyObject* row = Py_BuildValue("(ILOOO)", t.ordinal, static_cast<long long>(t.id), name.get(),
                                    events.get(), memory.get());
      PyList_SET_ITEM(threads.get(), i++, checked(row).release());
    }
    PyRef seen = take_stacks();
    return Py_BuildValue("(LLLOO)", static_cast<long long>(profile.begin),
                         static_cast<long long>(profile.end), static_cast<long long>(profile.wall),
                         threads.get(), seen.get());
  });
}

PyObject* profiler_pause(PyObject*, PyObject* paused) {
  return guarded([&] {
    profiler::pause(to_bool(paused));
    return Py_NewRef(Py_None);
  });
}

PyObject* profiler_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(profiler::is_open());
}

// _record_enter(name, args) -> what _record_exit takes; None while no profile is open
PyObject* record_enter(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (!profiler::is_open()) Py_RETURN_NONE;
  return guarded([&] {
    FB_CHECK_TYPE(n == 2, "_record_enter: expected a name and arguments");
    std::string more = args[1] == Py_None ? std::string() : to_str(args[1]);
    profiler::Place p = profiler::open(profiler::Kind::Range, to_str(args[0]), more);
    if (!p.profile) return Py_NewRef(Py_None);
    return Py_BuildValue("(KII)", static_cast<unsigned long long>(p.profile), p.thread, p.event);
  });
}

PyObject* record_exit(PyObject*, PyObject* handle) {
  return guarded([&] {
    FB_CHECK_TYPE(PyTuple_Check(handle), "_record_exit: expected what _record_enter gave, got ",
                  Py_TYPE(handle)->tp_name);
    unsigned long long profile = 0;
    unsigned int thread = 0, event = 0;
    if (!PyArg_ParseTuple(handle, "KII", &profile, &thread, &event)) throw PythonError();
    profiler::close({profile, thread, event});
    return Py_NewRef(Py_None);
  });
}

}  // namespace

PyMethodDef profiler_functions[] = {
    {"_profiler_start", profiler_start, METH_O, nullptr},
    {"_profiler_stop", profiler_stop, METH_NOARGS, nullptr},
    {"_profiler_pause", profiler_pause, METH_O, nullptr},
    {"_profiler_enabled", profiler_enabled, METH_NOARGS, nullptr},
    {"_record_enter", fast(record_enter), METH_FASTCALL, nullptr},
    {"_record_exit", record_exit, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace flambeau::python
