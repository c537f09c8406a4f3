// Nested sequences of numbers as a tensor: shape from the first element of each level, dtype by
// promotion over all elements, then one pass that stores them.
#include <cstring>

#include "core/stored.h"
#include "core/warning.h"
#include "gen/ops.h"
#include "kernels/copy.h"
#include "python/argparse.h"
#include "python/factories.h"
#include "python/storage_object.h"

namespace flambeau::python {

namespace {
constexpr int kMaxDims = 64;

bool is_text(PyObject* o) {
  return PyUnicode_Check(o) || PyBytes_Check(o);
}
bool is_ndarray(PyObject* o) {
  return std::strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") == 0;
}
// An array without dims among the data is a number, as a tensor is.
bool is_zero_dim_array(PyObject* o) {
  if (!is_ndarray(o)) return false;
  PyRef ndim = checked(PyObject_GetAttrString(o, "ndim"));
  return PyLong_AsLong(ndim.get()) == 0;
}
bool is_sequence(PyObject* o) {
  if (PyList_Check(o) || PyTuple_Check(o)) return true;
  if (is_text(o) || PyDict_Check(o) || is_tensor(o)) return false;
  return PySequence_Check(o) && !is_zero_dim_array(o);
}

// The dtype of one number; nothing for what is none.
std::optional<DType> number_dtype(PyObject* o) {
  if (PyFloat_CheckExact(o)) return default_dtype();
  if (PyBool_Check(o)) return DType::Bool;
  if (PyLong_Check(o)) return DType::Int64;
  if (PyComplex_CheckExact(o)) return to_complex(default_dtype());
  if (is_tensor(o)) return unwrap(o).dtype();
  const char* name = Py_TYPE(o)->tp_name;
  if (std::strncmp(name, "numpy.", 6) == 0) {
    std::string type = name + 6;
    if (type == "bool_") return DType::Bool;
    if (type == "longlong" || type == "intc") return type == "intc" ? DType::Int32 : DType::Int64;
    if (type == "ulonglong") return DType::UInt64;
    for (int i = 0; i < kDTypes; ++i)
      if (type == dtype_name(static_cast<DType>(i))) return static_cast<DType>(i);
  }
  if (PyFloat_Check(o)) return default_dtype();
  if (PyComplex_Check(o)) return to_complex(default_dtype());
  return std::nullopt;
}

[[noreturn]] void no_dtype(PyObject* o) {
  if (is_text(o)) fail(ErrorKind::Type, "new(): invalid data type '", Py_TYPE(o)->tp_name, "'");
  fail(ErrorKind::Runtime, "Could not infer dtype of ", Py_TYPE(o)->tp_name);
}

// A sequence as list or tuple, so that its items can be read in place.
PyRef fast_items(PyObject* o) {
  return checked(PySequence_Fast(o, "not a sequence"));
}

Ints shape_of(PyObject* data) {
  Ints sizes;
  PyRef level = PyRef::borrow(data);
  while (is_sequence(level.get())) {
    Py_ssize_t n = PySequence_Size(level.get());
    checked_int(static_cast<int>(n < 0 ? -1 : 0));
    sizes.push_back(n);
    FB_CHECK_VALUE(sizes.size() <= kMaxDims, "too many dimensions '", Py_TYPE(data)->tp_name, "'");
    if (n == 0) return sizes;
    PyRef first = checked(PySequence_GetItem(level.get(), 0));
    FB_CHECK_VALUE(!PyUnicode_Check(first.get()), "too many dimensions 'str'");
    if (first.get() == level.get()) break;
    level = first;
  }
  return sizes;
}

// Number by number, where one copy of the memory would do.
void warn_of_arrays(PyObject* data, const Ints& sizes) {
  PyRef item = PyRef::borrow(data);
  for (size_t d = 0; d + 1 < sizes.size() && sizes[d] > 0; ++d) {
    item = checked(PySequence_GetItem(item.get(), 0));
    if (!is_ndarray(item.get())) continue;
    return warn(
        "A tensor is made of a list of NumPy arrays, which is slow: join them first, with "
        "numpy.array(list)");
  }
}

void infer(PyObject* o, std::optional<DType>& found, int depth) {
  std::optional<DType> d;
  if (is_tensor(o)) d = unwrap(o).dtype();
  if (!d && is_zero_dim_array(o)) d = tensor_from_numpy(o, false).dtype();
  if (!d && is_sequence(o)) {
    FB_CHECK_VALUE(depth < kMaxDims, "too many dimensions '", Py_TYPE(o)->tp_name, "'");
    PyRef items = fast_items(o);
    PyTypeObject* last = nullptr;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
      PyObject* item = PySequence_Fast_ITEMS(items.get())[i];
      if (Py_TYPE(item) == last && (last == &PyFloat_Type || last == &PyLong_Type)) continue;
      last = Py_TYPE(item);
      infer(PyRef::borrow(item).get(), found, depth + 1);
    }
    return;
  }
  if (!d) d = number_dtype(o);
  if (!d) no_dtype(o);
  found = found ? promote(*found, *d) : *d;
}

// A number for a dtype that is not whole: integers of any width.
Scalar real_or_complex(PyObject* o) {
  return PyLong_Check(o) && !PyBool_Check(o) ? Scalar(to_float(o)) : to_number(o);
}

template <class T>
void store(T* p, PyObject* o) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (PyFloat_CheckExact(o)) [[likely]] {
      *p = static_cast<T>(PyFloat_AS_DOUBLE(o));
      return;
    }
  }
  if (is_zero_dim_array(o)) {
    PyRef number = checked(PyObject_CallMethod(o, "item", nullptr));
    return store(p, number.get());
  }
  if (!is_number(o) && !is_tensor(o)) no_dtype(o);
  FB_CHECK_VALUE(!is_tensor(o) || unwrap(o).numel() == 1,
                 "only one element tensors can be converted to Python scalars, got shape ",
                 unwrap(o).sizes());
  if constexpr (is_truth<T>) {
    *p = to_bool(o);
  } else if constexpr (std::is_integral_v<T>) {
    if (!PyLong_Check(o) || PyBool_Check(o)) {
      *p = stored<T>(to_number(o));
      return;
    }
    int wide;
    long long x = PyLong_AsLongLongAndOverflow(o, &wide);
    unsigned long long u = wide > 0 ? PyLong_AsUnsignedLongLong(o) : 0;
    if (wide < 0 || (wide > 0 && (PyErr_Occurred() || !std::is_same_v<T, uint64_t>))) {
      PyErr_Clear();
      fail(ErrorKind::Value, "Overflow when unpacking long long");
    }
    *p = stored<T>(wide > 0 ? Scalar(static_cast<uint64_t>(u)) : Scalar(static_cast<int64_t>(x)));
  } else {
    *p = stored<T>(real_or_complex(o));
  }
}

template <class T>
T* fill(T* p, PyObject* o, const Ints& sizes, size_t level) {
  if (level == sizes.size()) {
    store(p, o);
    return p + 1;
  }
  if (!is_sequence(o) && !is_tensor(o) && !is_zero_dim_array(o))
    fail(ErrorKind::Type, "not a sequence");
  PyRef items = fast_items(o);
  Py_ssize_t n = PySequence_Fast_GET_SIZE(items.get());
  FB_CHECK_VALUE(n == sizes[level], "expected sequence of length ", sizes[level], " at dim ", level,
                 " (got ", n, ")");
  for (Py_ssize_t i = 0; i < n; ++i) {
    FB_CHECK(PySequence_Fast_GET_SIZE(items.get()) == n, "a list changed while it was read");
    PyRef held = PyRef::borrow(PySequence_Fast_ITEMS(items.get())[i]);
    PyObject* item = held.get();
    if (level + 1 == sizes.size() && is_sequence(item) && !is_number(item))
      fail(ErrorKind::Value, "expected sequence of length ", sizes[level], " at dim ", level + 1,
           " (got ", PySequence_Size(item), ")");
    p = fill(p, item, sizes, level + 1);
  }
  return p;
}

// [1.0, 2.0, …]: the common case in one pass.
Tensor flat_floats(PyObject* data, DType dtype) {
  Py_ssize_t n = PySequence_Fast_GET_SIZE(data);
  PyObject** items = PySequence_Fast_ITEMS(data);
  if (n == 0 || dtype != DType::Float32) return {};
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!PyFloat_CheckExact(items[i])) return {};
  Tensor t = empty({n}, dtype);
  for (Py_ssize_t i = 0; i < n; ++i)
    t.data<float>()[i] = static_cast<float>(PyFloat_AS_DOUBLE(items[i]));
  return t;
}
}  // namespace

Tensor tensor_from_storage(PyObject* o, std::optional<DType> dtype) {
  const bool untyped = PyObject_TypeCheck(o, &StorageType);
  if (!untyped && !PyObject_HasAttrString(o, "_untyped_storage")) return {};
  // Without a type its bytes are ints, as for a sequence of them.
  DType wanted = dtype                ? *dtype
                 : !untyped           ? default_dtype()
                 : PyObject_Length(o) ? DType::Int64
                                      : default_dtype();
  Ref<Storage> storage = storage_from(o, wanted, "tensor");
  if (!storage) return {};
  FB_CHECK_VALUE(storage->device().type() != DeviceType::Meta,
                 "tensor: expected a storage with bytes, got one on the meta device");
  const Ints sizes{storage->nbytes() / itemsize(wanted)};
  Tensor whole = empty({0}, wanted);
  whole->storage = std::move(storage);
  return alias(whole, sizes, {1}, 0);
}

Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype) {
  if (is_tensor(data)) {
    const Tensor& t = unwrap(data);
    return dtype && *dtype != t.dtype() ? kernels::to_dtype(t, *dtype) : kernels::clone(t);
  }
  if (PyList_CheckExact(data) || PyTuple_CheckExact(data)) {
    Tensor t = flat_floats(data, dtype.value_or(default_dtype()));
    if (t.defined()) return t;
  } else if (is_number(data)) {
    if (!dtype) dtype = number_dtype(data);
    if (!dtype) no_dtype(data);
    Tensor t = empty({}, *dtype);
    visit(*dtype, [&]<class T>() { store(t.data<T>(), data); });
    return t;
  } else if (is_text(data)) {
    no_dtype(data);
  } else if (is_ndarray(data)) {
    Tensor t = tensor_from_numpy(data, false);
    return dtype && *dtype != t.dtype() ? kernels::to_dtype(t, *dtype)
                                        : kernels::clone(t, MemoryFormat::Contiguous);
  } else if (!PyByteArray_Check(data)) {
    Tensor t = tensor_from_storage(data, dtype);
    if (t.defined()) return t;
    t = tensor_from_interface(data);
    if (t.defined())
      return dtype && *dtype != t.dtype() ? kernels::to_dtype(t, *dtype) : kernels::clone(t);
  }
  if (!is_sequence(data)) no_dtype(data);
  Ints sizes = shape_of(data);
  warn_of_arrays(data, sizes);
  if (!dtype) {
    infer(data, dtype, 0);
    if (!dtype) dtype = default_dtype();
  }
  Tensor t = empty(sizes, *dtype);
  if (t.numel() > 0)
    visit(*dtype, [&]<class T>() { fill(t.data<T>(), data, sizes, 0); });
  else {  // still must be well formed
    Tensor none = empty({0}, *dtype);
    if (sizes.size() > 1) visit(*dtype, [&]<class T>() { fill(none.data<T>(), data, sizes, 0); });
  }
  return t;
}

}  // namespace flambeau::python
