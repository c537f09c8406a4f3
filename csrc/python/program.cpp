// See program.h. Reads the description; program_run.cpp runs it.
#include "python/program.h"

#include <structmember.h>

#include <algorithm>

#include "python/call_entry.h"
#include "python/frame_eval.h"
#include "python/thunks.h"

namespace flambeau::python {

// Outputs
// ------------------------------------------------------------------------------------------------

Output::Output(PyObject* spec) {
  int64_t kind = integer(spec, 0);
  FB_CHECK_VALUE(kind >= TensorOf && kind <= Tuple, "a program: no kind of output ", kind);
  kind_ = static_cast<Kind>(kind);
  PyObject* value = item(spec, 1);
  if (kind_ == TensorOf || kind_ == Integer) index_ = integer(value);
  FB_CHECK_VALUE(index_ >= 0, "a program: there is no output ", index_);
  if (kind_ == Constant) constant_ = PyRef::borrow(value);
  if (kind_ == Float) formula_.emplace_back(value);
  if (kind_ == Tuple) each(value, [&](PyObject* o) { items_.emplace_back(o); });
}

int64_t Output::tensors() const {
  int64_t n = kind_ == TensorOf ? index_ + 1 : 0;
  for (const Output& o : items_) n = std::max(n, o.tensors());
  return n;
}

PyRef Output::build(std::span<const Tensor> tensors, const Numbers& numbers) const {
  switch (kind_) {
    case TensorOf:
      return checked(wrap(tensors[static_cast<size_t>(index_)]));
    case Constant:
      return constant_;
    case Integer:
      FB_CHECK(static_cast<size_t>(index_) < numbers.size(), "a program: no number ", index_);
      return checked(PyLong_FromLongLong(numbers[static_cast<size_t>(index_)]));
    case Float:
      return checked(PyFloat_FromDouble(formula_[0].evaluate({numbers.data(), numbers.size()})));
    default:
      PyRef tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(items_.size())));
      for (size_t i = 0; i < items_.size(); ++i)
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                         items_[i].build(tensors, numbers).release());
      return tuple;
  }
}

// The description
// ------------------------------------------------------------------------------------------------

Input input_of(PyObject* o, size_t index) {
  if (is_tensor(o)) return {unwrap(o), 0};
  FB_CHECK_TYPE(PyLong_Check(o), "compiled function: expected a Tensor or an int as input ", index,
                ", got ", Py_TYPE(o)->tp_name);
  return {Tensor(), integer(o)};
}

// (sizes, buffers, inputs, steps, outputs' views, output)
Program::Program(PyObject* spec, PyObject* attached, LibraryFunction nests)
    : nests_(std::move(nests)), sizes_(item(spec, 0)), output_(item(spec, 5)) {
  each(item(spec, 1), [&](PyObject* b) {
    Buffer made{Geometry(b, sizes_.count())};
    if (made.geometry.fixed()) made.extent = made.geometry.extent();
    buffers_.push_back(std::move(made));
  });
  changed_.resize(buffers_.size());
  each(item(spec, 2), [&](PyObject* b) { inputs_.push_back(b == Py_None ? kNone : buffer(b)); });
  each(attached, [&](PyObject* o) { attached_.push_back(input_of(o, attached_.size())); });
  FB_CHECK_VALUE(attached_.size() <= inputs_.size(), "a program: more tensors than inputs");
  each(item(spec, 3), [&](PyObject* s) { steps_.push_back(step(s)); });
  each(item(spec, 4), [&](PyObject* v) { results_.push_back(view(v)); });
  FB_CHECK_VALUE(output_.tensors() <= static_cast<int64_t>(results_.size()),
                 "a program: an output that it does not compute");
}

uint32_t Program::buffer(PyObject* index) const {
  int64_t i = integer(index);
  FB_CHECK_VALUE(i >= 0 && static_cast<size_t>(i) < buffers_.size(),
                 "a program: there is no buffer ", i);
  return static_cast<uint32_t>(i);
}

Program::View Program::view(PyObject* spec) const {  // (buffer, geometry), or None
  if (spec == Py_None) return {kNone, {}};
  return {buffer(item(spec, 0)), Geometry(item(spec, 1), sizes_.count())};
}

Program::Step Program::step(
    PyObject* spec) {  // (kind, buffer, other), (kind, nest, checks) or (kind, ...) of a call
  int64_t kind = integer(spec, 0);
  FB_CHECK_VALUE(kind >= Step::Allocate && kind <= Step::Change, "a program: no kind of step ",
                 kind);
  Step s{static_cast<Step::Kind>(kind)};
  switch (s.kind) {
    case Step::Nest:
      FB_CHECK_VALUE(nests_, "a program: a nest, but no library");
      s.number = integer(spec, 1);
      each(item(spec, 2), [&](PyObject* check) {  // (error is an IndexError, text)
        const char* text = PyUnicode_AsUTF8(item(check, 1));
        FB_CHECK_VALUE(text, "a program: expected the text of an error");
        s.checks.push_back({integer(check, 0) ? ErrorKind::Index : ErrorKind::Runtime, text});
      });
      break;
    case Step::Entry:
      s.number = static_cast<int64_t>(calls_.size());
      calls_.push_back(call(spec));
      if (const Call& c = calls_.back(); c.outs.empty()) changed_[changed_by(c)] = true;
      break;
    case Step::Take:
      s.other = buffer(item(spec, 2));
      [[fallthrough]];
    default:
      s.buffer = buffer(item(spec, 1));
      if (s.kind == Step::Change) changed_[s.buffer] = true;
  }
  return s;
}

void Program::raise(const Step& s, const Fault& fault) {
  const Check& check = s.checks.at(static_cast<size_t>(fault[0] - 1));
  std::string text = check.text;
  const std::pair<std::string_view, int64_t> found[] = {{"{index}", fault[1]},
                                                        {"{size}", fault[2]}};
  for (auto [name, value] : found)
    if (size_t at = text.find(name); at != std::string::npos)
      text.replace(at, name.size(), std::to_string(value));
  fail(check.kind, text);
}

// The buffer that a call without results changes.
uint32_t Program::changed_by(const Call& c) {
  FB_CHECK_VALUE(!c.arguments.empty() && c.arguments[0].parameter == 0 &&
                     c.arguments[0].kind == Argument::OneView &&
                     (c.op->mutates || c.function != c.op->call),
                 "a program: ", c.op->uid, " gives nothing");
  return c.arguments[0].views[0].buffer;
}

// (kind, uid, arguments, outs, parameters that it changes, are these results too, is the result a
// list, parameters that it changes whose memory nothing needs afterwards)
Program::Call Program::call(PyObject* spec) const {
  auto [op, function] = callee_of(item(spec, 1));
  Call c{op, function, {}, {}, {}, false, false, {}};
  PyObject* args = item(spec, 2);
  auto count = static_cast<size_t>(PyTuple_Check(args) ? PyTuple_GET_SIZE(args) : 0);
  FB_CHECK_TYPE(count == c.op->params.size(), "a program: ", c.op->uid, " has ",
                c.op->params.size(), " parameters, got ", count);
  for (size_t i = 0; i < count; ++i) {
    Value constant;
    Argument a = argument(*c.op, i, item(args, static_cast<Py_ssize_t>(i)), constant);
    c.constants.push_back(std::move(constant));
    if (a.kind != Argument::Constant) c.arguments.push_back(std::move(a));
  }
  each(item(spec, 3), [&](PyObject* b) { c.outs.push_back(buffer(b)); });
  each(item(spec, 4), [&](PyObject* i) {
    auto k = static_cast<uint32_t>(integer(i));
    FB_CHECK_VALUE(k < count, "a program: ", c.op->uid, " has no parameter ", k);
    auto at = std::find_if(c.arguments.begin(), c.arguments.end(),
                           [&](const Argument& a) { return a.parameter == k; });
    FB_CHECK_VALUE(at != c.arguments.end() && at->kind == Argument::OneView,
                   "a program: ", c.op->uid, " changes parameter ", k, ", which is no buffer");
    c.changed.push_back({k, static_cast<uint32_t>(at - c.arguments.begin()), false});
  });
  if (PyTuple_GET_SIZE(spec) > 7)
    each(item(spec, 7), [&](PyObject* i) {
      for (Call::Changed& x : c.changed) x.last_use |= x.parameter == integer(i);
    });
  c.gives_changed = item(spec, 5) == Py_True;
  c.spread = item(spec, 6) == Py_True;
  return c;
}

// (0, object), (1, view), (2, views), (3, number), (4, numbers), (5, formula)
Program::Argument Program::argument(const OpDesc& op, size_t i, PyObject* spec,
                                    Value& constant) const {
  int64_t kind = integer(spec, 0);
  FB_CHECK_VALUE(kind >= Argument::Constant && kind <= Argument::Float,
                 "a program: no kind of argument ", kind);
  Argument a{static_cast<Argument::Kind>(kind), static_cast<uint32_t>(i), {}, {}, 0, {}};
  PyObject* value = item(spec, 1);
  switch (a.kind) {
    case Argument::Constant:
      constant = value_of(op.params[i], value);
      break;
    case Argument::OneView:
      a.views.push_back(view(value));
      break;
    case Argument::Views:
      each(value, [&](PyObject* v) { a.views.push_back(view(v)); });
      break;
    case Argument::Integer:
      a.number = integer(value);
      FB_CHECK_VALUE(a.number >= 0 && static_cast<size_t>(a.number) < sizes_.count(),
                     "a program: there is no number ", a.number);
      break;
    case Argument::Integers:
      a.integers = Geometry(value, sizes_.count());
      break;
    case Argument::Float:
      a.formula.emplace_back(value);
      break;
  }
  return a;
}

// Other runners
// ------------------------------------------------------------------------------------------------

namespace {

// A Python callable that takes and gives tensors.
class PythonRunner final : public Runner {
 public:
  explicit PythonRunner(PyObject* callable) : callable_(callable) {}
  Tensors run(std::span<Input> inputs, Numbers&) const override {
    GilHeld gil;
    CapturePaused paused;
    PyRef args = checked(PyTuple_New(static_cast<Py_ssize_t>(inputs.size())));
    for (size_t i = 0; i < inputs.size(); ++i) {
      Input& x = inputs[i];
      PyObject* o = x.tensor.defined() ? wrap(std::move(x.tensor)) : PyLong_FromLongLong(x.number);
      PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(i), checked(o).release());
      x.tensor = Tensor();
    }
    PyRef result = checked(PyObject_CallObject(callable_.get(), args.get()));
    args = PyRef();
    Tensors out;
    each(result.get(), [&](PyObject* o) {
      out.push_back(o == Py_None ? Tensor() : expect_tensor(o, "a back end's function", "result"));
    });
    return out;
  }

 private:
  PyCallable callable_;
};

struct ProgramObject {
  PyObject_HEAD std::shared_ptr<const Program> program;
  vectorcallfunc call;
};
PyTypeObject* ProgramType = nullptr;

// The last to hold it may be a node, on a thread without the GIL.
void destroy_program(const Program* p) {
  if (!Py_IsInitialized()) return;
  GilHeld gil;
  delete p;
}

const std::shared_ptr<const Program>& program_of(PyObject* self) {
  return reinterpret_cast<ProgramObject*>(self)->program;
}

// program(*inputs): a tuple of the outputs.
PyObject* call_program(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  try {
    const Program& p = *program_of(self);
    auto n = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
    FB_CHECK_TYPE(n == p.arity() && !kwnames, "compiled function: expected ", p.arity(),
                  " inputs, got ", n);
    std::vector<Input> inputs;
    inputs.reserve(n);
    int64_t elements = 0;
    for (size_t i = 0; i < n; ++i) {
      inputs.push_back(input_of(args[i], i));
      if (inputs[i].tensor.defined()) elements += inputs[i].tensor.numel();
    }
    Numbers numbers;
    Tensors results;
    {
      GilFree free(elements > kUnlockedElements);
      results = p.run(inputs, numbers);
    }
    return p.output().build(results, numbers).release();
  } catch (...) {
    return raise_current();
  }
}

PyObject* program_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *spec, *attached, *nests;
  if (!PyArg_ParseTuple(args, "O!O!O:_Program", &PyTuple_Type, &spec, &PyTuple_Type, &attached,
                        &nests))
    return nullptr;
  try {
    std::shared_ptr<const Program> program(
        new Program(spec, attached, nests == Py_None ? nullptr : library_function(nests)),
        destroy_program);
    PyRef self = checked(type->tp_alloc(type, 0));
    auto* o = reinterpret_cast<ProgramObject*>(self.get());
    new (&o->program) std::shared_ptr<const Program>(std::move(program));
    o->call = call_program;
    return self.release();
  } catch (...) {
    return raise_current();
  }
}

void program_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  std::destroy_at(&reinterpret_cast<ProgramObject*>(self)->program);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef program_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(ProgramObject, call), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

}  // namespace

std::shared_ptr<const Runner> runner_of(PyObject* object) {
  if (Py_TYPE(object) == ProgramType) return program_of(object);
  FB_CHECK_TYPE(PyCallable_Check(object), "expected what a back end returns to be callable, got ",
                Py_TYPE(object)->tp_name);
  return std::make_shared<const PythonRunner>(object);
}

bool init_program(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>("A compiled graph that runs without Python.")},
      {Py_tp_new, reinterpret_cast<void*>(program_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(program_dealloc)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_members, program_members},
      {0, nullptr},
  };
  PyType_Spec spec = {"flambeau._C._Program", sizeof(ProgramObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  ProgramType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return ProgramType &&
         PyModule_AddObjectRef(module, "_Program", reinterpret_cast<PyObject*>(ProgramType)) == 0;
}

}  // namespace flambeau::python
