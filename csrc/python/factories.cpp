// Functions that make tensors of Python data: tensor, as_tensor, asarray, from_numpy, frombuffer,
// scalar_tensor, the constructor Tensor(...), and the methods new_tensor and new.
#include "python/factories.h"

#include <cstring>
#include <iterator>

#include "autograd/meta.h"
#include "core/warning.h"
#include "gen/ops.h"
#include "kernels/copy.h"
#include "python/argparse.h"
#include "python/module.h"
#include "python/storage_object.h"
#include "python/thunks.h"

namespace flambeau::python {

namespace {
#define FB_FUNCTION(name, ...)                                                                 \
  Signature name##_signatures[] = {__VA_ARGS__};                                               \
  const Binding name##_binding = {#name, "", name##_signatures, std::size(name##_signatures),  \
                                  false};                                                      \
  PyObject* name##_function(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) { \
    return call_binding(name##_binding, nullptr, args, n, names);                              \
  }

bool is_ndarray(PyObject* o) {
  return std::strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") == 0;
}
void check_pinned(PyObject* o) {
  FB_CHECK(!given(o) || !to_bool(o), "Cannot access accelerator device when none is available.");
}
PyObject* finished(Tensor t, PyObject* device, PyObject* requires_grad) {
  // Data goes where the caller says, else to the default device; tensors stay where they are.
  Device d = given(device)                          ? to_usable_device(device)
             : modes.device.type() == DeviceType::CPU ? t.device()
                                                    : modes.device;
  if (d.type() != t.device().type()) t = ops::to(t, std::nullopt, false, std::nullopt, d);
  if (given(requires_grad) && to_bool(requires_grad)) set_requires_grad(t, true);
  return wrap(std::move(t));
}

#define FB_DATA_PARAMS                                                      \
  {"dtype", Arg::DType, true, false}, {"device", Arg::Device, true, false}, \
      {"requires_grad", Arg::Bool, true, false}, {                          \
    "pin_memory", Arg::Bool, true, false                                    \
  }

void warn_of_copy(PyObject* data, const char* function) {
  if (is_tensor(data))
    warn(
        concat("To copy a tensor, write sourceTensor.detach().clone() or "
               "sourceTensor.detach().clone().requires_grad_(True) rather than ",
               function, "(sourceTensor)."));
}

Param tensor_params[] = {{"data", Arg::Object, true}, FB_DATA_PARAMS};
PyObject* call_tensor(const Args& a) {
  check_pinned(a[4]);
  warn_of_copy(a[0], "tensor");
  return finished(tensor_from_data(a[0], optional(a[1], to_dtype)), a[2], a[3]);
}
FB_FUNCTION(tensor, {tensor_params, 5, 1,
                     "(object data, *, torch.dtype dtype = None, torch.device device = None, bool "
                     "requires_grad = False, bool pin_memory = False)",
                     call_tensor})

// The object's own memory where it is a tensor or an array of the right dtype, else a copy.
Tensor shared_or_copied(PyObject* o, std::optional<DType> dtype) {
  if (is_tensor(o)) return dtype ? ops::to(unwrap(o), *dtype) : unwrap(o);
  if (is_ndarray(o)) {
    Tensor t = tensor_from_numpy(o);
    return dtype ? kernels::to_dtype(t, *dtype) : t;
  }
  return tensor_from_data(o, dtype);
}
Param as_tensor_params[] = {{"data", Arg::Object, true},
                            {"dtype", Arg::DType, true, false},
                            {"device", Arg::Device, true, false}};
PyObject* call_as_tensor(const Args& a) {
  return finished(shared_or_copied(a[0], optional(a[1], to_dtype)), a[2], nullptr);
}
FB_FUNCTION(as_tensor,
            {as_tensor_params, 3, 3,
             "(object data, torch.dtype dtype = None, torch.device device = None)", call_as_tensor})

Param asarray_params[] = {{"obj", Arg::Object, true},
                          {"dtype", Arg::DType, true, false},
                          {"device", Arg::Device, true, false},
                          {"copy", Arg::Bool, true, false},
                          {"requires_grad", Arg::Bool, true, false}};
PyObject* call_asarray(const Args& a) {
  std::optional<DType> dtype = optional(a[1], to_dtype);
  bool must_copy = given(a[3]) && to_bool(a[3]), must_share = given(a[3]) && !to_bool(a[3]);
  Tensor shared;
  if (is_tensor(a[0]))
    shared = unwrap(a[0]);
  else if (is_ndarray(a[0]))
    shared = tensor_from_numpy(a[0]);
  else if (Tensor whole = tensor_from_storage(a[0], dtype); whole.defined())
    shared = std::move(whole);
  else if (PyObject_HasAttrString(a[0], "__dlpack__") || PyCapsule_CheckExact(a[0]))
    shared = tensor_from_dlpack(a[0]);
  else if (PyObject_CheckBuffer(a[0]) && !is_number(a[0]))
    shared = tensor_from_bytes(a[0], dtype.value_or(default_dtype()), -1, 0);
  if (!shared.defined()) {
    FB_CHECK_VALUE(!must_share, "can't alias arbitrary sequence into a tensor.");
    return finished(tensor_from_data(a[0], dtype), a[2], a[4]);
  }
  bool same = !dtype || *dtype == shared.dtype();
  FB_CHECK_VALUE(same || !must_share, "can't alias tensor with dtype '",
                 scalar_type_name(shared.dtype()), "' into dtype '",
                 scalar_type_name(dtype.value_or(shared.dtype())), "'.");
  Tensor result = same && !must_copy ? shared : ops::to(shared, dtype, true);
  // Nothing said: a tensor's history stays.
  if (given(a[4]) && !to_bool(a[4]) && result.requires_grad()) result = detach(result);
  return finished(std::move(result), a[2], a[4]);
}
FB_FUNCTION(asarray,
            {asarray_params, 5, 1,
             "(object obj, *, torch.dtype dtype = None, torch.device device = None, bool copy "
             "= None, bool requires_grad = False)",
             call_asarray})

PyObject* from_numpy(PyObject*, PyObject* array) {
  try {
    FB_CHECK_TYPE(is_ndarray(array) || PyObject_HasAttrString(array, "__array_interface__"),
                  "expected np.ndarray (got ", Py_TYPE(array)->tp_name, ")");
    return wrap(tensor_from_numpy(array));
  } catch (...) {
    return raise_current();
  }
}

Param frombuffer_params[] = {{"buffer", Arg::Object},
                             {"dtype", Arg::DType},
                             {"count", Arg::Int, false, false},
                             {"offset", Arg::Int, false, false},
                             {"requires_grad", Arg::Bool, false, false}};
PyObject* call_frombuffer(const Args& a) {
  Tensor t =
      tensor_from_bytes(a[0], to_dtype(a[1]), a[2] ? to_int(a[2]) : -1, a[3] ? to_int(a[3]) : 0);
  return finished(std::move(t), nullptr, a[4]);
}
FB_FUNCTION(frombuffer,
            {frombuffer_params, 5, 1,
             "(object buffer, *, torch.dtype dtype, int count = -1, int offset = 0, bool "
             "requires_grad = False)",
             call_frombuffer})

Param scalar_params[] = {{"s", Arg::Number},
                         {"dtype", Arg::DType, true, false},
                         {"layout", Arg::Layout, true, false},
                         {"device", Arg::Device, true, false},
                         {"pin_memory", Arg::Bool, true, false},
                         {"requires_grad", Arg::Bool, true, false}};
PyObject* call_scalar_tensor(const Args& a) {
  Scalar s = to_number(a[0]);
  DType d = a[1] && a[1] != Py_None ? to_dtype(a[1])
            : s.is_complex()        ? to_complex(default_dtype())
                                    : default_dtype();
  return finished(scalar_tensor(s, d), a[3], a[5]);
}
FB_FUNCTION(scalar_tensor,
            {scalar_params, 6, 1,
             "(Number s, *, torch.dtype dtype = None, torch.layout layout = None, "
             "torch.device device = None, bool pin_memory = False, bool requires_grad = False)",
             call_scalar_tensor})

// x.new_tensor(data)
Param new_tensor_params[] = {{"self", Arg::Tensor}, {"data", Arg::Object, true}, FB_DATA_PARAMS};
PyObject* call_new_tensor(const Args& a) {
  check_pinned(a[5]);
  warn_of_copy(a[1], "new_tensor");
  DType d = a[2] && a[2] != Py_None ? to_dtype(a[2]) : unwrap(a[0]).dtype();
  PyRef device = PyRef::borrow(a[3]);
  if (!given(a[3])) device = checked(wrap_device(unwrap(a[0]).device()));
  return finished(tensor_from_data(a[1], d), device.get(), a[4]);
}
Signature new_tensor_signatures[] = {
    {new_tensor_params, 6, 2,
     "(Tensor self, object data, *, torch.dtype dtype = None, "
     "torch.device device = None, bool requires_grad = False, bool pin_memory = False)",
     call_new_tensor}};
const Binding new_tensor_binding = {"new_tensor", "", new_tensor_signatures, 1, true};
PyObject* new_tensor(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call_binding(new_tensor_binding, self, args, n, names);
}

// The legacy constructor: nothing, sizes, data, a storage or a tensor.
Tensor legacy_new(PyObject* args, DType dtype) {
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  if (n == 0) return empty({0}, dtype);
  auto unset = [&](const Ints& sizes) {
    Tensor made = empty(sizes, dtype);
    if (asked.fills_new_memory) fill_new_memory(made);
    return made;
  };
  PyObject* first = PyTuple_GET_ITEM(args, 0);
  if (n == 1 && is_tensor(first)) return ops::alias(unwrap(first));
  if (Ref<Storage> storage = n == 1 ? storage_from(first, dtype, "new()") : Ref<Storage>()) {
    Tensor whole = empty({0}, dtype);
    whole->storage = std::move(storage);
    Ints size{whole->storage->nbytes() / itemsize(dtype)};
    return alias(whole, size, {1}, 0);
  }
  if (n == 1 && Py_TYPE(first) == &SizeType) return unset(to_ints(first));
  if (PyLong_Check(first) && !PyBool_Check(first)) return unset(to_ints(args));
  FB_CHECK_TYPE(n == 1, "new(): expected sizes, or one sequence of data, got ", n, " arguments");
  FB_CHECK_TYPE(!PyUnicode_Check(first) && !PyBytes_Check(first), "new(): invalid data type '",
                Py_TYPE(first)->tp_name, "'");
  FB_CHECK_TYPE(PySequence_Check(first), "new(): data must be a sequence (got ",
                Py_TYPE(first)->tp_name, ")");
  return tensor_from_data(first, dtype);
}
// The arguments of a legacy constructor with `size=` and `data=` in their place.
PyRef legacy_arguments(PyObject* args, PyObject* kwargs) {
  if (!kwargs) return PyRef::borrow(args);
  PyObject *name, *value;
  PyRef out = PyRef::borrow(args);
  for (Py_ssize_t i = 0; PyDict_Next(kwargs, &i, &name, &value);) {
    const std::string given = to_str(name);
    if (given == "device") continue;
    FB_CHECK_TYPE((given == "size" || given == "data") && PyTuple_GET_SIZE(out.get()) == 0,
                  "new() received an invalid combination of arguments - got an unexpected keyword "
                  "argument '",
                  given, "'");
    if (given == "size") {
      PyRef size = checked(PyObject_CallOneArg(reinterpret_cast<PyObject*>(&SizeType), value));
      out = checked(PyTuple_Pack(1, size.get()));
    } else {
      out = checked(PyTuple_Pack(1, value));
    }
  }
  return out;
}

PyObject* legacy_method_new(PyObject* self, PyObject* args, PyObject* kwargs) {
  try {
    const Tensor& x = unwrap(self);
    Tensor made = legacy_new(legacy_arguments(args, kwargs).get(), x.dtype());
    return wrap(ops::to(made, std::nullopt, false, std::nullopt, x.device()));
  } catch (...) {
    return raise_current();
  }
}
Param legacy_params[] = {{"dtype", Arg::DType}, {"args", Arg::Object}};
PyObject* call_legacy(const Args& a) {
  return wrap(legacy_new(a[1], to_dtype(a[0])));
}
FB_FUNCTION(_legacy_new, {legacy_params, 2, 2, "(torch.dtype dtype, tuple args)", call_legacy})
}  // namespace

PyObject* new_tensor_object(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  try {
    PyRef data = legacy_arguments(args, kwargs);
    return wrap_as(type, legacy_new(data.get(), default_dtype()));
  } catch (...) {
    return raise_current();
  }
}

PyMethodDef factory_methods[] = {
    {"new_tensor", fast(new_tensor), kFast,
     "A tensor with a copy of `data`, by default of this tensor's dtype."},
    {"new", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(legacy_method_new)),
     METH_VARARGS | METH_KEYWORDS, "The legacy constructor with this tensor's dtype."},
    {nullptr, nullptr, 0, nullptr},
};

PyMethodDef factory_functions[] = {
    {"tensor", fast(tensor_function), kFast,
     "A tensor with a copy of `data`: numbers, nested sequences, arrays."},
    {"as_tensor", fast(as_tensor_function), kFast,
     "`data` as a tensor; arrays and tensors are shared where possible."},
    {"asarray", fast(asarray_function), kFast,
     "`obj` as a tensor; shared where possible unless `copy`."},
    {"from_numpy", from_numpy, METH_O, "A tensor over the memory of an array."},
    {"frombuffer", fast(frombuffer_function), kFast, "A 1-d tensor over the bytes of a buffer."},
    {"scalar_tensor", fast(scalar_tensor_function), kFast, "A 0-d tensor of a number."},
    {"_legacy_new", fast(_legacy_new_function), kFast, "Tensor(*args) of a dtype."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace flambeau::python
