// Arrays of other libraries as tensors, through the buffer protocol: no header of NumPy is needed
// and none is imported. The tensor's storage holds the exported buffer, and with it the array,
// until it dies.
#include <cstring>

#include "python/argparse.h"
#include "python/factories.h"

namespace flambeau::python {

namespace {
void release_buffer(void* context) {
  auto* view = static_cast<Py_buffer*>(context);
  if (Py_IsInitialized()) {
    GilHeld gil;
    PyBuffer_Release(view);
  }
  delete view;
}

struct Buffer {
  explicit Buffer(PyObject* o) : view(new Py_buffer) {
    if (PyObject_GetBuffer(o, view, PyBUF_FULL_RO) < 0) {
      delete view;
      throw PythonError();
    }
  }
  ~Buffer() {
    if (view) release_buffer(view);
  }
  Buffer(const Buffer&) = delete;
  Py_buffer* view;
};

// Element type of a struct-module format; nothing for what tensors cannot hold.
std::optional<DType> dtype_of_format(const char* format, Py_ssize_t size) {
  if (!format) return DType::UInt8;
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  std::string f = format;
  if (f == "?") return DType::Bool;
  if (f == "e") return DType::Float16;
  if (f == "f") return DType::Float32;
  if (f == "d") return DType::Float64;
  if (f == "Zf") return DType::Complex64;
  if (f == "Zd") return DType::Complex128;
  bool is_signed = f.size() == 1 && std::strchr("bhilq", f[0]);
  bool is_unsigned = f.size() == 1 && std::strchr("BHILQ", f[0]);
  if (!is_signed && !is_unsigned) return std::nullopt;
  switch (size) {
    case 1:
      return is_signed ? DType::Int8 : DType::UInt8;
    case 2:
      return is_signed ? DType::Int16 : DType::UInt16;
    case 4:
      return is_signed ? DType::Int32 : DType::UInt32;
    case 8:
      return is_signed ? DType::Int64 : DType::UInt64;
  }
  return std::nullopt;
}

void warn_readonly() {
  static bool warned = false;
  if (std::exchange(warned, true)) return;
  checked_int(PyErr_WarnEx(
      PyExc_UserWarning,
      "The given NumPy array is not writable, and tensors do not know read-only memory: writing to "
      "the tensor is undefined. Copy the array first to protect it. (Shown once per process.)",
      1));
}

std::string array_dtype_name(PyObject* array) {
  PyRef dtype = PyRef::steal(PyObject_GetAttrString(array, "dtype"));
  PyRef type = dtype ? PyRef::steal(PyObject_GetAttrString(dtype.get(), "type")) : PyRef();
  PyErr_Clear();
  return type && PyType_Check(type.get()) ? reinterpret_cast<PyTypeObject*>(type.get())->tp_name
                                          : "object";
}

Tensor from_buffer(PyObject* array, bool warn) {
  Buffer buffer(array);
  Py_buffer& v = *buffer.view;
  FB_CHECK_VALUE(!v.format || (*v.format != '>' && *v.format != '!') || v.itemsize == 1,
                 "given numpy array has byte order different from the native byte order. "
                 "Conversion between byte orders is "
                 "currently not supported.");
  std::optional<DType> dtype = dtype_of_format(v.format, v.itemsize);
  FB_CHECK_TYPE(dtype, "can't convert np.ndarray of type ", array_dtype_name(array),
                ". The only supported types are: "
                "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, "
                "uint64, uint32, uint16, "
                "uint8, and bool.");
  if (warn && v.readonly) warn_readonly();
  Ints sizes, strides;
  int64_t bytes = v.itemsize;
  bool none = false;
  for (int d = 0; d < v.ndim; ++d) {
    FB_CHECK_VALUE(v.strides[d] >= 0 || v.shape[d] < 2,
                   "At least one stride in the given numpy array is negative, and tensors "
                   "with negative strides are not currently supported. (You can probably work "
                   "around this by making a "
                   "copy of your array  with array.copy().) ");
    FB_CHECK_VALUE(v.strides[d] % v.itemsize == 0 || v.shape[d] < 2,
                   "given numpy array strides not a multiple of the "
                   "element byte size. Copy array to reallocate the memory.");
    sizes.push_back(v.shape[d]);
    strides.push_back(v.shape[d] < 2 ? std::max<int64_t>(v.strides[d] / v.itemsize, 0)
                                     : v.strides[d] / v.itemsize);
    if (v.shape[d] == 0)
      none = true;
    else
      bytes += (v.shape[d] - 1) * strides.back() * v.itemsize;
  }
  if (none) return empty(sizes, *dtype);
  auto address = reinterpret_cast<uintptr_t>(v.buf);
  auto storage = Storage::wrap(v.buf, bytes, release_buffer, buffer.view);
  buffer.view = nullptr;
  Tensor t = empty({0}, *dtype);
  t->storage = std::move(storage);
  t->sizes = std::move(sizes);
  t->strides = std::move(strides);
  t->refresh();
  // Kernels read whole elements: an array that is not aligned to them is copied into one that is.
  return address % static_cast<uintptr_t>(itemsize(*dtype) / (is_complex(*dtype) ? 2 : 1)) == 0
             ? t
             : aligned_copy(t);
}
}  // namespace

Tensor aligned_copy(const Tensor& t) {
  Tensor out = empty(t.sizes(), t.dtype());
  char* to = static_cast<char*>(out.data_ptr());
  const char* from = static_cast<const char*>(t.data_ptr());
  Ints at(t.dim());
  for (int64_t i = 0, step = t.itemsize(); i < t.numel(); ++i, to += step) {
    int64_t offset = 0;
    for (int64_t d = 0; d < t.dim(); ++d) offset += at[d] * t.strides()[d];
    std::memcpy(to, from + offset * step, step);
    for (int64_t d = t.dim(); d-- > 0 && ++at[d] == t.sizes()[d];) at[d] = 0;
  }
  return out;
}

Tensor tensor_from_numpy(PyObject* array, bool warn) {
  FB_CHECK_TYPE(PyObject_CheckBuffer(array), "expected np.ndarray (got ", Py_TYPE(array)->tp_name,
                ")");
  try {
    return from_buffer(array, warn);
  } catch (const PythonError&) {  // NumPy refuses to export what has no format: datetimes, objects
                                  // with references
    fail(ErrorKind::Type, "can't convert np.ndarray of type ", array_dtype_name(array),
         ". The only supported types are: "
         "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, "
         "uint32, uint16, uint8, "
         "and bool.");
  }
}

Tensor tensor_from_interface(PyObject* o) {
  if (PyObject_HasAttrString(o, "__array__")) {
    PyRef array = checked(PyObject_CallMethod(o, "__array__", nullptr));
    return tensor_from_numpy(array.get(), false);
  }
  return {};
}

Tensor tensor_from_bytes(PyObject* o, DType dtype, int64_t count, int64_t offset) {
  FB_CHECK_VALUE(PyObject_CheckBuffer(o), "object does not implement Python buffer protocol.");
  auto* view = new Py_buffer;
  if (PyObject_GetBuffer(o, view, PyBUF_WRITABLE) < 0) {
    PyErr_Clear();
    if (PyObject_GetBuffer(o, view, PyBUF_SIMPLE) < 0) {
      delete view;
      throw PythonError();
    }
  }
  struct Guard {
    Py_buffer* view;
    ~Guard() {
      if (view) release_buffer(view);
    }
  } guard{view};
  int64_t length = view->len, size = itemsize(dtype);
  if (view->readonly) warn_readonly();
  FB_CHECK_VALUE(length > 0 && count != 0, "both buffer length (", length, ") and count (", count,
                 ") must not be 0");
  FB_CHECK_VALUE(offset >= 0 && offset < length, "offset (", offset,
                 " bytes) must be non-negative and no greater than "
                 "buffer length (",
                 length, " bytes) minus 1");
  FB_CHECK_VALUE(count > 0 || (length - offset) % size == 0, "buffer length (", length - offset,
                 " bytes) after offset (", offset, " bytes) must be a multiple of element size (",
                 size, ")");
  int64_t n = count < 0 ? (length - offset) / size : count;
  FB_CHECK_VALUE(n <= (length - offset) / size, "requested buffer length (", n, " * ", size,
                 " bytes) after offset (", offset,
                 " bytes) must not be greater than actual buffer length (", length, " bytes)");
  char* start = static_cast<char*>(view->buf) + offset;
  Tensor t = empty({0}, dtype);
  t->storage = Storage::wrap(start, n * size, release_buffer, view);
  guard.view = nullptr;
  t->sizes = {n};
  t->strides = {1};
  t->refresh();
  return reinterpret_cast<uintptr_t>(start) % static_cast<uintptr_t>(size) == 0 ? t
                                                                                : aligned_copy(t);
}

}  // namespace flambeau::python
