// _C._call_entry(uid, args): any entry of the table by its unique name, with all of its parameters
// in order. For back ends that run graphs; the public functions go through their own thunks.
#include "python/call_entry.h"

#include <cstring>

#include "python/argparse.h"
#include "python/module.h"
#include "python/trace_hook.h"

namespace flambeau::python {

bool is_type(const char* type, const char* base) {
  size_t n = std::strlen(base);
  if (std::strncmp(type, base, n) != 0) return false;
  char next = type[n];
  return !next || next == ' ' || (next >= '0' && next <= '9');
}

static Tensor tensor_or_number(PyObject* o) {
  return is_tensor(o) ? unwrap(o) : wrapped_number(to_number(o));
}

Value value_of(const ParamDesc& p, PyObject* o) {
  const char* t = p.type;
  if (o == Py_None) return {};
  if (is_type(t, "Tensor")) return tensor_or_number(o);
  if (is_type(t, "Tensors")) return to_tensors(o);
  if (is_type(t, "OptTensors")) return to_opt_tensors(o);
  if (is_type(t, "int")) return to_int(o);
  if (is_type(t, "float")) return to_float(o);
  if (is_type(t, "bool")) return to_bool(o);
  if (is_type(t, "str")) return to_str(o);
  if (is_type(t, "Number")) return to_number(o);
  if (is_type(t, "Ints")) return to_ints(o);
  if (is_type(t, "Floats")) return to_floats(o);
  if (is_type(t, "Bools")) return to_bools(o);
  if (is_type(t, "Numbers")) return to_numbers(o);
  if (is_type(t, "DType")) return to_dtype(o);
  if (is_type(t, "Device")) return to_device(o);
  if (is_type(t, "Layout")) return to_layout(o);
  if (is_type(t, "MemoryFormat")) return to_memory_format(o);
  if (is_type(t, "Generator")) return to_generator(o);
  fail(ErrorKind::Type, "_call_entry: parameter ", p.name, " has the type ", t,
       ", which has no Python form");
}

const OpDesc& entry_of(PyObject* uid) {
  const OpDesc* op = find_op(to_str(uid));
  FB_CHECK_VALUE(op, "_call_entry: the table has no entry ", to_str(uid));
  return *op;
}

namespace {

struct ToPython {
  PyObject* operator()(std::monostate) const { Py_RETURN_NONE; }
  PyObject* operator()(const Tensor& t) const { return wrap(t); }
  PyObject* operator()(const Tensors& ts) const { return wrap_tuple(ts); }
  PyObject* operator()(bool x) const { return PyBool_FromLong(x); }
  PyObject* operator()(int64_t x) const { return PyLong_FromLongLong(x); }
  PyObject* operator()(double x) const { return PyFloat_FromDouble(x); }
  PyObject* operator()(const Scalar& x) const { return wrap_scalar(x); }
  PyObject* operator()(const Ints& xs) const { return wrap_ints(xs); }
  PyObject* operator()(const std::string& x) const { return PyUnicode_FromString(x.c_str()); }
  PyObject* operator()(DType d) const { return wrap_dtype(d); }
  template <class T>
  PyObject* operator()(const T&) const {
    return PyErr_Format(PyExc_TypeError, "a value that has no Python form");
  }
};

}  // namespace

PyObject* wrap_value(const Value& x) {
  return std::visit(ToPython(), x);
}

namespace {
PyObject* call_entry(PyObject*, PyObject* const* args, Py_ssize_t n) {
  try {
    FB_CHECK_TYPE(n == 2 && PyUnicode_Check(args[0]) && PyTuple_Check(args[1]),
                  "_call_entry(uid, args): expected a name and a tuple");
    const OpDesc* op = &entry_of(args[0]);
    auto count = static_cast<size_t>(PyTuple_GET_SIZE(args[1]));
    FB_CHECK_TYPE(count == op->params.size(), "_call_entry: ", op->uid, " has ", op->params.size(),
                  " parameters, got ", count);
    Values values;
    for (size_t i = 0; i < count; ++i)
      values.push_back(
          value_of(op->params[i], PyTuple_GET_ITEM(args[1], static_cast<Py_ssize_t>(i))));
    Values results;
    {
      GilFree free(true);
      results = op->call(values);
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
