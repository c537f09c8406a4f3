// Tensors as other tensors (to, float, type, cpu, …) and as NumPy arrays. Nothing is copied where
// nothing changes.
#include <cstring>
#include <iterator>

#include "dispatch/modes.h"
#include "gen/ops.h"
#include "python/argparse.h"
#include "python/factories.h"
#include "python/module.h"
#include "python/storage_object.h"
#include "python/thunks.h"

namespace flambeau::python {

namespace {
#define FB_METHOD(name, ...)                                                                      \
  Signature name##_signatures[] = {__VA_ARGS__};                                                  \
  const Binding name##_binding = {#name, "", name##_signatures, std::size(name##_signatures),     \
                                  true};                                                          \
  PyObject* name##_method(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) { \
    return call_binding(name##_binding, self, args, n, names);                                    \
  }

PyObject* converted(PyObject* self, std::optional<DType> dtype, std::optional<Device> device,
                    bool copy, std::optional<MemoryFormat> format) {
  const Tensor& x = unwrap(self);
  bool same_dtype = !dtype || *dtype == x.dtype();
  bool same_device = !device || device->type() == x.device().type();
  bool same_layout =
      !format || *format == MemoryFormat::Preserve || x.suggest_memory_format() == *format;
  if (same_dtype && same_device && same_layout && !copy) return Py_NewRef(self);
  return wrap(unlocked(big(x), [&] { return ops::to(x, dtype, copy, format, device); }));
}

Param to_device_params[] = {{"self", Arg::Tensor},
                            {"device", Arg::Device, true, false},
                            {"dtype", Arg::DType, true, false},
                            {"non_blocking", Arg::Bool, false, false},
                            {"copy", Arg::Bool, false, false},
                            {"memory_format", Arg::MemoryFormat, true, false}};
PyObject* call_to_device(const Args& a) {
  return converted(a[0], optional(a[2], to_dtype), optional(a[1], to_usable_device),
                   a[4] && to_bool(a[4]), optional(a[5], to_memory_format));
}
Param to_dtype_params[] = {{"self", Arg::Tensor},
                           {"dtype", Arg::DType},
                           {"non_blocking", Arg::Bool, false, false},
                           {"copy", Arg::Bool, false, false},
                           {"memory_format", Arg::MemoryFormat, true, false}};
PyObject* call_to_dtype(const Args& a) {
  return converted(a[0], to_dtype(a[1]), std::nullopt, a[3] && to_bool(a[3]),
                   optional(a[4], to_memory_format));
}
Param to_other_params[] = {{"self", Arg::Tensor},
                           {"tensor", Arg::Tensor},
                           {"non_blocking", Arg::Bool, false, false},
                           {"copy", Arg::Bool, false, false},
                           {"memory_format", Arg::MemoryFormat, true, false}};
PyObject* call_to_other(const Args& a) {
  const Tensor& other = unwrap(a[1]);
  return converted(a[0], other.dtype(), other.device(), a[3] && to_bool(a[3]),
                   optional(a[4], to_memory_format));
}
// A tensor before a device, for whole numbers name devices and 0-d tensors can be numbers.
FB_METHOD(
    to,
    {to_dtype_params, 5, 4,
     "(Tensor self, torch.dtype dtype, bool non_blocking = False, bool copy = False, *, "
     "torch.memory_format memory_format = None)",
     call_to_dtype},
    {to_other_params, 5, 4,
     "(Tensor self, Tensor tensor, bool non_blocking = False, bool copy = False, *, "
     "torch.memory_format memory_format = None)",
     call_to_other},
    {to_device_params, 6, 5,
     "(Tensor self, torch.device device = None, torch.dtype dtype = None, bool non_blocking = "
     "False, bool copy = False, *, torch.memory_format memory_format = None)",
     call_to_device})

// x.float(), x.long(), …: one method per element type.
Param format_params[] = {{"self", Arg::Tensor}, {"memory_format", Arg::MemoryFormat, true, false}};
template <DType d>
PyObject* call_as(const Args& a) {
  return converted(a[0], d, std::nullopt, false, optional(a[1], to_memory_format));
}
#define FB_AS(name, dtype)                                                                      \
  FB_METHOD(as_##name,                                                                          \
            {format_params, 2, 1, "(Tensor self, *, torch.memory_format memory_format = None)", \
             call_as<DType::dtype>})
#define FB_FOR_EACH_AS(X)                                                             \
  X(float, Float32)                                                                   \
  X(double, Float64)                                                                  \
  X(half, Float16) X(bfloat16, BFloat16) X(long, Int64) X(int, Int32) X(short, Int16) \
      X(char, Int8) X(byte, UInt8) X(bool, Bool) X(cfloat, Complex64) X(cdouble, Complex128)
FB_FOR_EACH_AS(FB_AS)

PyObject* call_cpu(const Args& a) {
  return converted(a[0], std::nullopt, Device{DeviceType::CPU}, false,
                   optional(a[1], to_memory_format));
}
FB_METHOD(cpu, {format_params, 2, 1, "(Tensor self, *, torch.memory_format memory_format = None)",
                call_cpu})
Param cuda_params[] = {{"self", Arg::Tensor},
                       {"device", Arg::Device, true, false},
                       {"non_blocking", Arg::Bool, false, false},
                       {"memory_format", Arg::MemoryFormat, true, false}};
PyObject* call_cuda(const Args&) {
  refuse_cuda();
}
FB_METHOD(cuda, {cuda_params, 4, 3,
                 "(Tensor self, torch.device device = None, bool non_blocking = False, *, "
                 "torch.memory_format memory_format = None)",
                 call_cuda})
PyObject* call_pin_memory(const Args&) {
  fail(ErrorKind::Runtime, "Cannot access accelerator device when none is available.");
}
FB_METHOD(pin_memory,
          {cuda_params, 2, 2, "(Tensor self, torch.device device = None)", call_pin_memory})

// "torch.FloatTensor" and back.
DType legacy_dtype(const std::string& name) {
  for (int i = 0; i < kDTypes; ++i) {
    auto d = static_cast<DType>(i);
    std::string legacy = concat("torch.", scalar_type_name(d), "Tensor");
    if (name == legacy || name == concat("flambeau.", scalar_type_name(d), "Tensor")) return d;
  }
  if (name == "torch.Tensor" || name == "flambeau.Tensor") return default_dtype();
  fail(ErrorKind::Value, "invalid type: '", name, "'");
}
Param type_params[] = {{"self", Arg::Tensor},
                       {"dtype", Arg::Object, true, false},
                       {"non_blocking", Arg::Bool, false, false}};
PyObject* call_type(const Args& a) {
  if (!given(a[1])) return pack(concat("torch.", scalar_type_name(unwrap(a[0]).dtype()), "Tensor"));
  if (a[1] == reinterpret_cast<PyObject*>(TensorType))
    return converted(a[0], default_dtype(), std::nullopt, false, std::nullopt);
  FB_CHECK_TYPE(is_dtype(a[1]) || PyUnicode_Check(a[1]) || PyType_Check(a[1]),
                "type(): expected dtype to be a type, str or torch.dtype, got ",
                Py_TYPE(a[1])->tp_name);
  PyRef dtype = PyRef::borrow(a[1]);
  if (PyType_Check(a[1])) {  // torch.FloatTensor and its like tell their dtype
    dtype = PyRef::steal(PyObject_GetAttrString(a[1], "dtype"));
    PyErr_Clear();
    FB_CHECK_VALUE(dtype && is_dtype(dtype.get()), "invalid type: '",
                   reinterpret_cast<PyTypeObject*>(a[1])->tp_name, "'");
  }
  DType d =
      PyUnicode_Check(dtype.get()) ? legacy_dtype(to_str(dtype.get())) : to_dtype(dtype.get());
  return converted(a[0], d, std::nullopt, false, std::nullopt);
}
FB_METHOD(type,
          {type_params, 3, 3, "(Tensor self, dtype = None, bool non_blocking = False)", call_type})
Param type_as_params[] = {{"self", Arg::Tensor}, {"other", Arg::Tensor}};
PyObject* call_type_as(const Args& a) {
  return converted(a[0], unwrap(a[1]).dtype(), std::nullopt, false, std::nullopt);
}
FB_METHOD(type_as, {type_as_params, 2, 2, "(Tensor self, Tensor other)", call_type_as})

// NumPy
// ---------------------------------------------------------------------------------------------------------------

struct NumPy {
  PyRef ndarray, dtypes[kDTypes];
};
NumPy& numpy_names() {
  static NumPy* names = [] {
    auto* n = new NumPy;
    PyRef module = checked(import_module("numpy"));
    n->ndarray = checked(PyObject_GetAttrString(module.get(), "ndarray"));
    for (int i = 0; i < kDTypes; ++i) {
      auto d = static_cast<DType>(i);
      if (d == DType::BFloat16) continue;
      n->dtypes[i] = checked(PyObject_CallMethod(module.get(), "dtype", "s", dtype_name(d)));
    }
    return n;
  }();
  return *names;
}

PyRef array_of(const Tensor& t) {
  FB_CHECK_TYPE(t.device().type() == DeviceType::CPU, "can't convert ", t.device(),
                " device type tensor to numpy. Use "
                "Tensor.cpu() to copy the tensor to host memory first.");
  FB_CHECK(!t.has_flag(kWrapper),
           "numpy(): a tensor inside vmap or another transform has no array");
  FB_CHECK_TYPE(t.dtype() != DType::BFloat16, "Got unsupported ScalarType BFloat16");
  NumPy& np = numpy_names();
  Ints strides = t.strides();
  // The step of a dim of one entry may be as large as there are numbers: it wraps around.
  for (auto& s : strides)
    s = static_cast<int64_t>(static_cast<uint64_t>(s) * static_cast<uint64_t>(t.itemsize()));
  PyRef shape = checked(wrap_ints(t.sizes())), steps = checked(wrap_ints(strides));
  PyRef memory = checked(export_storage(t.storage()));
  PyRef offset = checked(PyLong_FromLongLong(t.numel() ? t.offset() * t.itemsize() : 0));
  PyObject* args[] = {shape.get(), np.dtypes[static_cast<int>(t.dtype())].get(), memory.get(),
                      offset.get(), steps.get()};
  return checked(PyObject_Vectorcall(np.ndarray.get(), args, 5, nullptr));
}

Param numpy_params[] = {{"self", Arg::Tensor}, {"force", Arg::Bool, false, false}};
PyObject* call_numpy(const Args& a) {
  const Tensor& t = unwrap(a[0]);
  if (!(a[1] && to_bool(a[1])))
    FB_CHECK(
        !(t.requires_grad() && modes.grad),
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
  return array_of(t).release();
}
FB_METHOD(numpy, {numpy_params, 2, 1, "(Tensor self, *, bool force = False)", call_numpy})

Param array_params[] = {
    {"self", Arg::Tensor}, {"dtype", Arg::Object, true, false}, {"copy", Arg::Object, true, false}};
PyObject* call_array(const Args& a) {
  const Tensor& t = unwrap(a[0]);
  FB_CHECK(!(t.requires_grad() && modes.grad),
           "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
  PyRef array = array_of(t);
  if (given(a[1])) {  // astype(dtype, copy=False)
    PyRef astype = checked(PyObject_GetAttrString(array.get(), "astype"));
    PyRef names = checked(Py_BuildValue("(s)", "copy"));
    PyObject* both[] = {a[1], Py_False};
    array = checked(PyObject_Vectorcall(astype.get(), both, 1, names.get()));
  }
  if (given(a[2]) && PyObject_IsTrue(a[2]) == 1)
    array = checked(PyObject_CallMethod(array.get(), "copy", nullptr));
  return array.release();
}
Signature array_signatures[] = {
    {array_params, 3, 3, "(Tensor self, dtype = None, copy = None)", call_array}};
const Binding array_binding = {"__array__", "", array_signatures, 1, true};
PyObject* array_method(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call_binding(array_binding, self, args, n, names);
}

// What NumPy makes of tensors in its own calls becomes a tensor again.
PyObject* array_wrap(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (n < 1) return PyErr_Format(PyExc_TypeError, "__array_wrap__ expects an array"), nullptr;
  try {
    if (std::strcmp(Py_TYPE(args[0])->tp_name, "numpy.ndarray") != 0) return Py_NewRef(args[0]);
    return wrap(tensor_from_numpy(args[0], false));
  } catch (...) {
    return raise_current();
  }
}
}  // namespace

PyMethodDef conversion_methods[] = {
    {"to", fast(to_method), kFast,
     "The tensor with another dtype, device or layout; itself when nothing changes."},
#define X(name, dtype) \
  {#name, fast(as_##name##_method), kFast, "The tensor with elements of this type."},
    FB_FOR_EACH_AS(X)
#undef X
        {"cpu", fast(cpu_method), kFast, "The tensor in main memory."},
    {"cuda", fast(cuda_method), kFast, "The tensor on a CUDA device."},
    {"pin_memory", fast(pin_memory_method), kFast, "The tensor in memory that a device can read."},
    {"type", fast(type_method), kFast,
     "Name of the legacy type, or the tensor converted to a type."},
    {"type_as", fast(type_as_method), kFast, "The tensor with the dtype of another."},
    {"numpy", fast(numpy_method), kFast, "An array over the same memory."},
    {"__array__", fast(array_method), kFast, nullptr},
    {"__array_wrap__", fast(array_wrap), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace flambeau::python
