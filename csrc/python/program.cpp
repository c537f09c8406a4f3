// See program.h.
#include "python/program.h"

#include <structmember.h>

#include <algorithm>

#include "python/frame_eval.h"
#include "python/library.h"
#include "python/spec.h"
#include "python/thunks.h"
#include "python/tree.h"

namespace flambeau::python {

// Outputs
// ------------------------------------------------------------------------------------------------

Output::Output(PyObject* spec) {
  int64_t kind = integer(spec, 0);
  FB_CHECK_VALUE(kind >= 0 && kind < kOutputKinds, "a program: no kind of output ", kind);
  kind_ = static_cast<OutputKind>(kind);
  PyObject* value = item(spec, 1);
  if (kind_ == TensorOf || kind_ == Integer) index_ = integer(value);
  FB_CHECK_VALUE(index_ >= 0, "a program: there is no output ", index_);
  if (kind_ == Constant) constant_ = PyRef::borrow(value);
  if (kind_ == Float) formula_.emplace_back(tree_of(value));
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
      FB_CHECK(formula_[0].highest() < static_cast<int64_t>(numbers.size()),
               "a program: a formula of a number that there is not");
      return checked(PyFloat_FromDouble(formula_[0].evaluate({numbers.data(), numbers.size()})));
    default:
      PyRef tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(items_.size())));
      for (size_t i = 0; i < items_.size(); ++i)
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                         items_[i].build(tensors, numbers).release());
      return tuple;
  }
}

Input input_of(PyObject* o, size_t index) {
  if (is_tensor(o)) return {unwrap(o), 0};
  FB_CHECK_TYPE(PyLong_Check(o), "compiled function: expected a Tensor or an int as input ", index,
                ", got ", Py_TYPE(o)->tp_name);
  return {Tensor(), integer(o)};
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
  PyObject_HEAD std::shared_ptr<const runtime::Program> program;
  Output output;
  vectorcallfunc call;
};
PyTypeObject* ProgramType = nullptr;

ProgramObject* object_of(PyObject* self) {
  return reinterpret_cast<ProgramObject*>(self);
}

// program(*inputs): a tuple of the outputs.
PyObject* call_program(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  try {
    const runtime::Program& p = *object_of(self)->program;
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
    return object_of(self)->output.build(results, numbers).release();
  } catch (...) {
    return raise_current();
  }
}

// (description, attached tensors, function that runs the nests or None): the description is that of
// runtime/program.h and, last, the output.
PyObject* program_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *spec, *attached, *nests;
  if (!PyArg_ParseTuple(args, "O!O!O:_Program", &PyTuple_Type, &spec, &PyTuple_Type, &attached,
                        &nests))
    return nullptr;
  try {
    std::vector<Input> given;
    each(attached, [&](PyObject* o) { given.push_back(input_of(o, given.size())); });
    Output output(item(spec, 5));
    PyRef described = checked(PyTuple_GetSlice(spec, 0, 5));
    auto program = std::make_shared<const runtime::Program>(
        tree_of(described.get()), std::move(given),
        nests == Py_None ? nullptr : library_function(nests));
    FB_CHECK_VALUE(output.tensors() <= static_cast<int64_t>(program->tensors()),
                   "a program: an output that it does not compute");
    PyRef self = checked(type->tp_alloc(type, 0));
    ProgramObject* o = object_of(self.get());
    new (&o->program) std::shared_ptr<const runtime::Program>(std::move(program));
    new (&o->output) Output(std::move(output));
    o->call = call_program;
    return self.release();
  } catch (...) {
    return raise_current();
  }
}

void program_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  std::destroy_at(&object_of(self)->output);
  std::destroy_at(&object_of(self)->program);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef program_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(ProgramObject, call), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

}  // namespace

std::shared_ptr<const Runner> runner_of(PyObject* object) {
  if (Py_TYPE(object) == ProgramType) return object_of(object)->program;
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
