// _C._call_entry(uid, args): any entry of the table, or the in-place form of one, by its unique
// name, with all of its parameters in order. For back ends that run graphs; the public functions go
// through their own thunks.
#include "python/call_entry.h"

#include "autograd/inline_vector.h"
#include "python/added_ops.h"
#include "python/argparse.h"
#include "python/module.h"
#include "python/script_values.h"
#include "python/trace_hook.h"

namespace flambeau::python {

static Tensor tensor_or_number(PyObject* o) {
  return is_tensor(o) ? unwrap(o) : wrapped_number(to_number(o));
}

Value value_of(const ParamDesc& p, PyObject* o) {
  if (o == Py_None) return {};
  switch (p.type.base) {
    case TypeBase::Tensor:
      return tensor_or_number(o);
    case TypeBase::Tensors:
      return to_tensors(o);
    case TypeBase::OptTensors:
      return to_opt_tensors(o);
    case TypeBase::Int:
      return to_int(o);
    case TypeBase::Float:
      return to_float(o);
    case TypeBase::Bool:
      return to_bool(o);
    case TypeBase::Str:
      return to_str(o);
    case TypeBase::Number:
      return to_number(o);
    case TypeBase::Ints:
      return to_ints(o);
    case TypeBase::Floats:
      return to_floats(o);
    case TypeBase::Bools:
      return to_bools(o);
    case TypeBase::Numbers:
      return to_numbers(o);
    case TypeBase::DType:
      return to_dtype(o);
    case TypeBase::Device:
      return to_device(o);
    case TypeBase::Layout:
      return to_layout(o);
    case TypeBase::MemoryFormat:
      return to_memory_format(o);
    case TypeBase::Generator:
      return to_generator(o);
    case TypeBase::Object:  // see object_argument
      break;
  }
  fail(ErrorKind::Runtime, "a parameter of no type");
}

Callee callee_of(PyObject* uid) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_Check(uid) ? PyUnicode_AsUTF8AndSize(uid, &size) : nullptr;
  if (!text) PyErr_Clear();
  Callee found = text ? find_callee({text, static_cast<size_t>(size)}) : Callee{};
  FB_CHECK_VALUE(found.op, "_call_entry: the table has no entry ", to_str(uid));
  return found;
}

PyObject* wrap_value(const Value& x) {
  switch (x.tag()) {
    case Value::Tag::None:
      Py_RETURN_NONE;
    case Value::Tag::Tensor:
      return wrap(x.get<Tensor>());
    case Value::Tag::Tensors:
      return wrap_tuple(x.get<Tensors>());
    case Value::Tag::Bool:
    case Value::Tag::Int:
    case Value::Tag::UInt:
    case Value::Tag::Float:
    case Value::Tag::Complex:
      return wrap_scalar(x.number());
    case Value::Tag::Ints:
      return wrap_ints(x.get<Ints>());
    case Value::Tag::Str:
      return PyUnicode_FromString(x.get<std::string>().c_str());
    case Value::Tag::DType:
      return wrap_dtype(x.get<DType>());
    case Value::Tag::Object:
      return to_python(x);
    default:
      return PyErr_Format(PyExc_TypeError, "a value that has no Python form");
  }
}

namespace {
PyObject* call_entry(PyObject*, PyObject* const* args, Py_ssize_t n) {
  try {
    FB_CHECK_TYPE(n == 2 && PyUnicode_Check(args[0]) && PyTuple_Check(args[1]),
                  "_call_entry(uid, args): expected a name and a tuple");
    auto [op, function] = callee_of(args[0]);
    auto count = static_cast<size_t>(PyTuple_GET_SIZE(args[1]));
    FB_CHECK_TYPE(count == op->params.size(), "_call_entry: ", op->uid, " has ", op->params.size(),
                  " parameters, got ", count);
    InlineVector<Value, 8> values;
    values.reserve(static_cast<uint32_t>(count));
    SmallVector<const Value*, 8> places;
    for (size_t i = 0; i < count; ++i) {
      PyObject* given = PyTuple_GET_ITEM(args[1], static_cast<Py_ssize_t>(i));
      const bool object = op->params[i].type.base == TypeBase::Object && given != Py_None;
      places.push_back(&values.emplace_back(
          object ? object_argument(*op, i, given) : value_of(op->params[i], given)));
    }
    InlineVector<Value, 4> results;
    for (size_t i = 0; i < op->returns.size(); ++i) results.emplace_back();
    {
      GilFree free(true);
      function(*op, places.data(), results.begin());
    }
    PyRef tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
    for (size_t i = 0; i < results.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       checked(wrap_value(results[i])).release());
    return tuple.release();
  } catch (...) {
    return raise_current();
  }
}
}  // namespace

PyMethodDef entry_functions[] = {
    {"_call_entry", fast(call_entry), METH_FASTCALL,
     "Any entry of the table by its unique name: (uid, arguments) -> results."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace flambeau::python
