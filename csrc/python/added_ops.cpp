// Operations that are added at run time (dispatch/registry.h), as Python sees them: schemas as
// tuples, functions of Python as kernels and rules, and a builtin for each operation that binds
// arguments as those of the table do. What torch.library means is flambeau/_library.
#include "python/added_ops.h"

#include <unordered_map>

#include "autograd/inline_vector.h"
#include "dispatch/registry.h"
#include "func/vmap.h"
#include "python/argument_errors.h"
#include "python/call_entry.h"
#include "python/frame_eval.h"
#include "python/script_values.h"
#include "python/thunks.h"
#include "python/torch_function.h"
#include "python/trace_hook.h"
#include "script/custom_state.h"

namespace flambeau::python {

namespace {

// Values
// -----------------------------------------------------------------------------------------------

template <class List, class F>
PyObject* list_of(const List& items, F wrap_item) {
  PyRef out = checked(PyList_New(static_cast<Py_ssize_t>(items.size())));
  for (size_t i = 0; i < items.size(); ++i)
    PyList_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), checked(wrap_item(items[i])).release());
  return out.release();
}

// As functions of Python are given and give it: lists are lists.
PyObject* shown(const Value& v) {
  switch (v.tag()) {
    case ValueTag::Tensors:
      return list_of(v.get<Tensors>(), [](const Tensor& t) { return wrap(t); });
    case ValueTag::OptTensors:
      return list_of(v.get<OptTensors>(), [](const OptTensor& t) { return pack(t); });
    case ValueTag::Ints:
      return list_of(v.get<Ints>(), PyLong_FromLongLong);
    case ValueTag::Floats:
      return list_of(v.get<std::vector<double>>(), PyFloat_FromDouble);
    case ValueTag::Bools:
      return list_of(v.get<std::vector<bool>>(), [](bool b) { return PyBool_FromLong(b); });
    case ValueTag::Numbers:
      return list_of(v.get<std::vector<Scalar>>(), wrap_scalar);
    case ValueTag::Device:
      return wrap_device(v.get<Device>());
    case ValueTag::Layout:
      return wrap_layout(v.get<Layout>());
    case ValueTag::MemoryFormat:
      return wrap_memory_format(v.get<MemoryFormat>());
    case ValueTag::Generator:
      return wrap_generator(v.get<Generator>());
    default:
      return wrap_value(v);
  }
}

Arg arg_of(TypeBase base) {
  switch (base) {
    case TypeBase::Tensor:
      return Arg::Tensor;
    case TypeBase::Tensors:
      return Arg::Tensors;
    case TypeBase::OptTensors:
      return Arg::OptTensors;
    case TypeBase::Int:
      return Arg::Int;
    case TypeBase::Float:
      return Arg::Float;
    case TypeBase::Bool:
      return Arg::Bool;
    case TypeBase::Str:
      return Arg::Str;
    case TypeBase::Number:
      return Arg::Number;
    case TypeBase::Ints:
      return Arg::Ints;
    case TypeBase::Floats:
      return Arg::Floats;
    case TypeBase::Bools:
      return Arg::Bools;
    case TypeBase::Numbers:
      return Arg::Numbers;
    case TypeBase::DType:
      return Arg::DType;
    case TypeBase::Device:
      return Arg::Device;
    case TypeBase::Layout:
      return Arg::Layout;
    case TypeBase::MemoryFormat:
      return Arg::MemoryFormat;
    case TypeBase::Generator:
      return Arg::Generator;
    case TypeBase::Object:
      return Arg::Object;
  }
  return Arg::Object;
}

// Made once for each argument; the schemas live as long as the process.
const Conversion& conversion_of(const SchemaArgument& a) {
  static auto* all = new std::unordered_map<const SchemaArgument*, Conversion>();
  auto found = all->find(&a);
  if (found == all->end())
    found = all->emplace(&a, Conversion(script::script_type(a.type), nullptr)).first;
  return found->second;
}

// An object that may be of any type; `a` is the argument or result that it is to be.
Value checked_value(const OpDesc& op, const SchemaArgument& a, const TypeDesc& type, PyObject* o,
                    const char* what, size_t k) {
  Param p{"", arg_of(type.base), type.optional};
  bool overridden = false;
  Value made;
  const bool object = type.base == TypeBase::Object;
  FB_CHECK_TYPE(object ? from_python(conversion_of(a), o, &made, nullptr)
                       : accepts(p, o, overridden),
                op.uid, ": expected ", what, " of type ", to_text(a.type), ", got ",
                Py_TYPE(o)->tp_name, " (number ", k, ")");
  if (object) return made;
  return value_of({"", type, nullptr, false}, o);
}
Value result_value(const OpDesc& op, size_t k, PyObject* o) {
  return checked_value(op, op.added->schema.returns[k], op.returns[k], o, "a result", k);
}

void results_of(const OpDesc& op, PyObject* given, Value* results) {
  size_t n = op.returns.size();
  if (n == 0) {
    FB_CHECK_TYPE(given == Py_None, op.uid, ": expected a kernel that returns None, got ",
                  Py_TYPE(given)->tp_name);
    return;
  }
  if (n == 1) {
    results[0] = result_value(op, 0, given);
    return;
  }
  bool many = PyTuple_Check(given) || PyList_Check(given);
  FB_CHECK_TYPE(many && PySequence_Fast_GET_SIZE(given) == static_cast<Py_ssize_t>(n), op.uid,
                ": expected a tuple of ", n, " results, got ", Py_TYPE(given)->tp_name);
  for (size_t k = 0; k < n; ++k)
    results[k] = result_value(op, k, PySequence_Fast_ITEMS(given)[static_cast<Py_ssize_t>(k)]);
}

PyRef tuple_of_values(const Values& values) {
  PyRef out = checked(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); ++i)
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), checked(shown(values[i])).release());
  return out;
}

// Functions of Python as kernels and rules
// -----------------------------------------------------------------------------------------------

void run_python(const OpDesc& op, void* context, const Value* const* args, Value* results) {
  GilHeld gil;
  CapturePaused paused;  // what a kernel does is its own
  SmallVector<PyObject*, 8> given;
  struct Release {
    SmallVector<PyObject*, 8>& items;
    ~Release() {
      for (PyObject* o : items) Py_DECREF(o);
    }
  } release{given};
  size_t named = 0;
  for (size_t i = 0; i < op.params.size(); ++i) {
    given.push_back(checked(shown(*args[i])).release());
    named += op.params[i].kwonly;
  }
  PyRef names;
  if (named) {
    names = checked(PyTuple_New(static_cast<Py_ssize_t>(named)));
    for (size_t i = op.params.size() - named, k = 0; i < op.params.size(); ++i, ++k)
      PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(k),
                       checked(PyUnicode_InternFromString(op.params[i].name)).release());
  }
  PyObject* function = static_cast<PyCallable*>(context)->get();
  PyRef result = checked(
      PyObject_Vectorcall(function, given.data(), op.params.size() - named, names.get()));
  results_of(op, result.get(), results);
}

OpKernel kernel_of(PyObject* function) {
  if (function == Py_None) return {};
  return {run_python, std::make_shared<PyCallable>(function)};
}

// (arguments, cotangents, results, mask of the tensor parameters that are wanted) -> a list of
// cotangents, lists of tensors flattened
Tensors run_vjp(const PyCallable& rule, const Values& args, const Tensors& cotangents,
                const Values& results, uint32_t wanted) {
  GilHeld gil;
  PyRef given = tuple_of_values(args), got = checked(wrap_tuple(cotangents)),
        out = tuple_of_values(results);
  PyRef mask = checked(PyLong_FromUnsignedLong(wanted));
  PyRef found = checked(PyObject_CallFunctionObjArgs(rule.get(), given.get(), got.get(), out.get(),
                                                     mask.get(), nullptr));
  FB_CHECK_TYPE(PyList_Check(found.get()), "a derivative: expected a list of tensors");
  Tensors grads;
  for (OptTensor& t : to_opt_tensors(found.get())) grads.push_back(t ? *t : Tensor());
  return grads;
}

// (arguments, mask of those with a batch in front, batch, randomness) -> the results, with a batch
// in front
Values run_vmap(const PyCallable& rule, const OpDesc& op, const Values& args, uint32_t batched,
                int64_t batch) {
  GilHeld gil;
  PyRef given = tuple_of_values(args), mask = checked(PyLong_FromUnsignedLong(batched)),
        size = checked(PyLong_FromLongLong(batch));
  static constexpr const char* names[] = {"error", "different", "same"};
  const func::Level* level = func::innermost_level();
  PyRef randomness =
      checked(PyUnicode_FromString(names[level ? static_cast<int>(level->randomness) : 0]));
  PyRef found = checked(PyObject_CallFunctionObjArgs(rule.get(), given.get(), mask.get(),
                                                     size.get(), randomness.get(), nullptr));
  Values results(op.returns.size());
  results_of(op, found.get(), results.data());
  return results;
}

// Calls
// -----------------------------------------------------------------------------------------------

// An operation with the signature that the binding matches arguments to.
struct Shown {
  const OpDesc* op;
  std::vector<Param> params;
  std::string text;
  Signature signature;
  Binding binding;
  PyRef overload;  // the object that programs see: what __torch_function__ is given

  Shown(const OpDesc& o, PyObject* public_object)
      : op(&o), overload(PyRef::borrow(public_object)) {
    uint8_t positional = 0;
    for (const ParamDesc& p : o.params) {
      Param made{p.name, arg_of(p.type.base), p.type.optional, p.default_text == nullptr};
      if (p.type.base == TypeBase::Ints) made.length = p.type.length;
      params.push_back(made);
      positional += !p.kwonly;
    }
    text = to_text(o.added->schema);
    text = text.substr(text.find('('), text.rfind(" -> ") - text.find('('));
    signature = {params.data(), static_cast<uint8_t>(params.size()), positional, text.c_str(),
                 nullptr};
    signature.target = o.uid;
    binding = {o.name, "", &signature, 1, false};
  }
};

Value argument(const OpDesc& op, const Args& a, int i) {
  const ParamDesc& p = op.params[static_cast<size_t>(i)];
  if (a[i] == Py_None) return {};
  if (p.type.base == TypeBase::Object) return object_argument(op, static_cast<size_t>(i), a[i]);
  if (p.type.base == TypeBase::Ints) return to_ints(a, i, p.type.length);
  return value_of(p, a[i]);
}

constexpr const char* kCapsule = "flambeau operation";

PyObject* call_shown(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&]() -> PyObject* {
    auto* s = static_cast<Shown*>(PyCapsule_GetPointer(self, kCapsule));
    if (!s) throw PythonError();
    if (tracer) [[unlikely]]
      return call_traced(s->binding, nullptr, args, nargs, kwnames);
    const OpDesc& op = *s->op;
    Args a;
    int found = match(s->binding, nullptr, args, nargs, kwnames, a);
    if (found == -1) return nullptr;
    if (found == -2) return call_torch_function(s->overload.get(), args, nargs, kwnames);
    InlineVector<Value, 8> values;
    values.reserve(static_cast<uint32_t>(op.params.size()));
    SmallVector<const Value*, 8> places;
    bool large = false;
    for (size_t i = 0; i < op.params.size(); ++i) {
      int k = static_cast<int>(i);
      if (!a[k]) {
        places.push_back(&*op.added->schema.arguments[i].value);
        continue;
      }
      places.push_back(&values.emplace_back(argument(op, a, k)));
      if (auto* t = values.back().get_if<Tensor>()) large = large || big(*t);
    }
    InlineVector<Value, 4> results;
    for (size_t i = 0; i < op.returns.size(); ++i) results.emplace_back();
    {
      GilFree free(large);
      op.call(op, places.data(), results.begin());
    }
    if (results.size() == 0) return Py_NewRef(Py_None);
    if (results.size() == 1) return shown(results[0]);
    PyRef tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
    for (size_t i = 0; i < results.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       checked(shown(results[i])).release());
    return tuple.release();
  });
}

PyMethodDef shown_method = {"_operator", fast(call_shown), kFast, "Calls an added operation."};

// Functions of the module
// -----------------------------------------------------------------------------------------------

const OpDesc& op_of(PyObject* uid) {
  const OpDesc* op = PyUnicode_Check(uid) ? find_added_op(to_str(uid)) : nullptr;
  FB_CHECK(op, "operator ", to_str(PyRef(checked(PyObject_Str(uid))).get()), " does not exist");
  return *op;
}

KernelFor kernel_for(PyObject* name) {
  static constexpr const char* names[] = {"CPU",       "CUDA",     "Meta",    "AnyDevice",
                                          "Composite", "Autograd", "Autocast"};
  std::string given = to_str(name);
  for (size_t i = 0; i < kKernels; ++i)
    if (given == names[i]) return static_cast<KernelFor>(i);
  fail(ErrorKind::Value, "_op_kernel: no kernels of the kind ", given);
}

PyObject* sets(const std::vector<std::string>& names) {
  return list_of(names, [](const std::string& s) { return pack(s); });
}

// (name, type, default or Ellipsis, kwonly, None or (before, after, write))
PyObject* argument_tuple(const SchemaArgument& a) {
  PyRef alias = PyRef::borrow(Py_None), value = PyRef::borrow(Py_Ellipsis);
  if (a.alias)
    alias = checked(tuple_of({sets(a.alias->before), sets(a.alias->after), pack(a.alias->write)}));
  if (a.value) value = checked(shown(*a.value));
  return tuple_of({pack(a.name), pack(to_text(a.type)), value.release(), pack(a.kwonly),
                   alias.release()});
}

// (name, overload, arguments, results, text)
PyObject* schema_tuple(const Schema& s) {
  return tuple_of({pack(s.name), pack(s.overload), list_of(s.arguments, argument_tuple),
                   list_of(s.returns, argument_tuple), pack(to_text(s))});
}

PyObject* py_parse_schema(PyObject*, PyObject* text) {
  return guarded([&] { return schema_tuple(parse_schema(to_str(text))); });
}
PyObject* py_op_schema(PyObject*, PyObject* uid) {
  return guarded([&] { return schema_tuple(op_of(uid).added->schema); });
}
PyObject* py_op_add(PyObject*, PyObject* text) {
  return guarded([&] { return pack(std::string(add_op(to_str(text)).uid)); });
}
PyObject* py_op_remove(PyObject*, PyObject* uid) {
  return guarded([&] {
    remove_op(op_of(uid));
    return Py_NewRef(Py_None);
  });
}
// _op_kernel(uid, kind, function or None, when_recording, opaque)
PyObject* py_op_kernel(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    FB_CHECK_TYPE(n == 5, "_op_kernel: expected five arguments");
    OpKernel kernel = kernel_of(args[2]);
    kernel.when_recording = to_bool(args[3]);
    kernel.opaque = to_bool(args[4]);
    set_kernel(op_of(args[0]), kernel_for(args[1]), std::move(kernel));
    return Py_NewRef(Py_None);
  });
}
// _op_has_kernel(uid, kind)
PyObject* py_op_has_kernel(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    FB_CHECK_TYPE(n == 2, "_op_has_kernel: expected a name and a kind");
    return PyBool_FromLong(bool(op_of(args[0]).added->kernel(kernel_for(args[1]))));
  });
}
// _op_call_kernel(uid, kind, args): the kernel itself, with all arguments in order
PyObject* py_op_call_kernel(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    FB_CHECK_TYPE(n == 3 && PyTuple_Check(args[2]),
                  "_op_call_kernel: expected a name, a kind and a tuple");
    const OpDesc& op = op_of(args[0]);
    OpKernel kernel = op.added->kernel(kernel_for(args[1]));
    FB_CHECK(kernel, op.uid, ": there is no kernel for ", to_str(args[1]));
    size_t count = op.params.size();
    FB_CHECK_TYPE(static_cast<size_t>(PyTuple_GET_SIZE(args[2])) == count, op.uid, ": expected ",
                  count, " arguments, got ", PyTuple_GET_SIZE(args[2]));
    Values values(count), results(op.returns.size());
    SmallVector<const Value*, 8> places;
    for (size_t i = 0; i < count; ++i) {
      values[i] = checked_value(op, op.added->schema.arguments[i], op.params[i].type,
                                PyTuple_GET_ITEM(args[2], static_cast<Py_ssize_t>(i)),
                                "an argument", i);
      places.push_back(&values[i]);
    }
    kernel.call(op, kernel.context.get(), places.data(), results.data());
    if (results.size() == 0) return Py_NewRef(Py_None);
    return results.size() == 1 ? shown(results[0]) : tuple_of_values(results).release();
  });
}
PyObject* py_op_vjp(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    FB_CHECK_TYPE(n == 2, "_op_vjp: expected a name and a function");
    AddedVjp rule;
    if (args[1] != Py_None)
      rule = [f = PyCallable(args[1])](const Values& given, const Tensors& cotangents,
                                       const Values& results, uint32_t wanted) {
        return run_vjp(f, given, cotangents, results, wanted);
      };
    set_vjp(op_of(args[0]), std::move(rule));
    return Py_NewRef(Py_None);
  });
}
PyObject* py_op_vmap(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    FB_CHECK_TYPE(n == 2, "_op_vmap: expected a name and a function");
    const OpDesc& op = op_of(args[0]);
    AddedVmap rule;
    if (args[1] != Py_None)
      rule = [f = PyCallable(args[1]), &op](const Values& given, uint32_t batched, int64_t batch) {
        return run_vmap(f, op, given, batched, batch);
      };
    set_vmap(op, std::move(rule));
    return Py_NewRef(Py_None);
  });
}
// _op_function(uid, overload): a builtin that calls the operation
PyObject* py_op_function(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    FB_CHECK_TYPE(n == 2, "_op_function: expected a name and the object that shows the operation");
    auto made = std::make_unique<Shown>(op_of(args[0]), args[1]);
    PyRef capsule = checked(PyCapsule_New(made.get(), kCapsule, [](PyObject* self) {
      delete static_cast<Shown*>(PyCapsule_GetPointer(self, kCapsule));
    }));
    made.release();
    return PyCFunction_NewEx(&shown_method, capsule.get(), nullptr);
  });
}
PyObject* py_ops_added(PyObject*, PyObject*) {
  return guarded([] {
    return list_of(added_ops(), [](const OpDesc* op) { return PyUnicode_FromString(op->uid); });
  });
}
PyObject* py_ops_version(PyObject*, PyObject*) {
  return PyLong_FromUnsignedLongLong(added_ops_version());
}
// _below_autograd() -> what ends it when it goes away
PyObject* py_below_autograd(PyObject*, PyObject*) {
  return guarded([] {
    return PyCapsule_New(new BelowAutograd, kCapsule, [](PyObject* self) {
      delete static_cast<BelowAutograd*>(PyCapsule_GetPointer(self, kCapsule));
    });
  });
}

}  // namespace

Value object_argument(const OpDesc& op, size_t i, PyObject* o) {
  const SchemaArgument& a = op.added->schema.arguments[i];
  Value out;
  const Conversion& c = conversion_of(a);
  if (from_python(c, o, &out, nullptr)) return out;
  PyRef shown = checked(PyObject_Repr(o));
  std::string text = to_str(shown.get());
  if (text.size() > 60) text.replace(57, std::string::npos, "...");
  fail(ErrorKind::Type, op.uid, "(): argument '", a.name, "' (position ", i + 1, ") must be ",
       to_text(a.type), ", not ", Py_TYPE(o)->tp_name, ": ", text);
}

PyMethodDef added_op_functions[] = {
    {"_parse_schema", py_parse_schema, METH_O, "A schema as tuples."},
    {"_op_schema", py_op_schema, METH_O, "The schema of an added operation, as tuples."},
    {"_op_add", py_op_add, METH_O, "Adds an operation by its schema: its name."},
    {"_op_remove", py_op_remove, METH_O, "Takes the name of an added operation away."},
    {"_op_kernel", fast(py_op_kernel), METH_FASTCALL, "Gives an operation a kernel."},
    {"_op_has_kernel", fast(py_op_has_kernel), METH_FASTCALL, "Whether it has one of a kind."},
    {"_op_call_kernel", fast(py_op_call_kernel), METH_FASTCALL, "Calls one kernel."},
    {"_op_vjp", fast(py_op_vjp), METH_FASTCALL, "Gives an operation a derivative."},
    {"_op_vmap", fast(py_op_vmap), METH_FASTCALL, "Gives an operation a batching rule."},
    {"_op_function", fast(py_op_function), METH_FASTCALL, "A function that calls an operation."},
    {"_ops_added", py_ops_added, METH_NOARGS, "Names of the operations that were added."},
    {"_ops_version", py_ops_version, METH_NOARGS, "Another number when names came or went."},
    {"_below_autograd", py_below_autograd, METH_NOARGS,
     "While the result lives, calls of added operations go past their autograd kernels."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace flambeau::python
