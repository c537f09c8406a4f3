// Methods of Tensor that are no operations: geometry as Python values, elements as Python values,
// storage, subclasses.
#include <vector>

#include "autograd/meta.h"
#include "autograd/print.h"
#include "core/devices.h"
#include "core/shared_memory.h"
#include "gen/ops.h"
#include "python/argparse.h"
#include "python/factories.h"
#include "python/module.h"
#include "python/storage_object.h"
#include "python/torch_function.h"

namespace flambeau::python {

namespace {
const Tensor& self_of(const Args& a) {
  return unwrap(a[0]);
}

// A hand-written method with a signature: NAME(self, args…) { return call_binding(NAME_binding, …)
// }.
#define FB_METHOD(name, ...)                                                                      \
  Signature name##_signatures[] = {__VA_ARGS__};                                                  \
  const Binding name##_binding = {#name, "", name##_signatures, std::size(name##_signatures),     \
                                  true};                                                          \
  PyObject* name##_method(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) { \
    return call_binding(name##_binding, self, args, n, names);                                    \
  }

// Geometry
// ------------------------------------------------------------------------------------------------------------

Param size_params[] = {{"self", Arg::Tensor}, {"dim", Arg::Int, true, false}};
PyObject* call_size(const Args& a) {
  if (!a[1] || a[1] == Py_None) return wrap_size(self_of(a).sizes());
  return PyLong_FromLongLong(self_of(a).size(to_int(a[1])));
}
FB_METHOD(size, {size_params, 2, 2, "(Tensor self, int dim = None)", call_size})
PyObject* call_stride(const Args& a) {
  if (!a[1] || a[1] == Py_None) return wrap_ints(self_of(a).strides());
  return PyLong_FromLongLong(self_of(a).stride(to_int(a[1])));
}
FB_METHOD(stride, {size_params, 2, 2, "(Tensor self, int dim = None)", call_stride})

Param is_contiguous_params[] = {{"self", Arg::Tensor},
                                {"memory_format", Arg::MemoryFormat, false, false}};
PyObject* call_is_contiguous(const Args& a) {
  MemoryFormat f = a[1] ? to_memory_format(a[1]) : MemoryFormat::Contiguous;
  return PyBool_FromLong(self_of(a).is_contiguous(f));
}
FB_METHOD(is_contiguous,
          {is_contiguous_params, 2, 1,
           "(Tensor self, *, torch.memory_format memory_format = torch.contiguous_format)",
           call_is_contiguous})

Param view_dtype_params[] = {{"self", Arg::Tensor}, {"dtype", Arg::DType}};
PyObject* call_view_dtype(const Args& a) {
  return wrap(ops::view_dtype(self_of(a), to_dtype(a[1])));
}
Param view_params[] = {{"self", Arg::Tensor}, {"size", Arg::Ints}};
PyObject* call_view(const Args& a) {
  return wrap(ops::view(self_of(a), to_ints(a, 1)));
}
FB_METHOD(view, {view_dtype_params, 2, 2, "(Tensor self, torch.dtype dtype)", call_view_dtype},
          {view_params, 2, 2, "(Tensor self, tuple of ints size)", call_view})

PyObject* dim(PyObject* o, PyObject*) {
  return PyLong_FromLongLong(unwrap(o).dim());
}
PyObject* numel(PyObject* o, PyObject*) {
  return PyLong_FromLongLong(unwrap(o).numel());
}
PyObject* element_size(PyObject* o, PyObject*) {
  return PyLong_FromLongLong(unwrap(o).itemsize());
}
PyObject* storage_offset(PyObject* o, PyObject*) {
  return PyLong_FromLongLong(unwrap(o).offset());
}
PyObject* data_ptr(PyObject* o, PyObject*) {
  const Tensor& t = unwrap(o);
  return PyLong_FromVoidPtr(t.numel() && t.storage()->data() ? t.data_ptr() : nullptr);
}
PyObject* is_floating_point(PyObject* o, PyObject*) {
  return PyBool_FromLong(unwrap(o).is_floating_point());
}
PyObject* is_complex(PyObject* o, PyObject*) {
  return PyBool_FromLong(unwrap(o).is_complex());
}
PyObject* is_signed(PyObject* o, PyObject*) {
  return PyBool_FromLong(unwrap(o).is_signed());
}
PyObject* is_inference(PyObject* o, PyObject*) {
  return PyBool_FromLong(unwrap(o).has_flag(kInference));
}
PyObject* no(PyObject*, PyObject*) {
  Py_RETURN_FALSE;
}
PyObject* same_dense(PyObject* o, PyObject* const*, Py_ssize_t, PyObject*) {
  return Py_NewRef(o);
}
PyObject* get_device(PyObject* o, PyObject*) {
  return PyLong_FromLong(unwrap(o).device().type() == DeviceType::CPU ? -1
                                                                      : unwrap(o).device().index());
}
// Whether a check of the order is asked for, and of which memory formats the tensor may be one.
bool asks_for_order(PyObject* check, std::vector<MemoryFormat>& formats) {
  if (PyBool_Check(check)) return check == Py_True;
  const bool list = PyList_Check(check) || PyTuple_Check(check);
  constexpr const char* kWanted =
      "dim_order: expected ambiguity_check to be a bool or a list of memory formats, got ";
  FB_CHECK_TYPE(list, kWanted, Py_TYPE(check)->tp_name);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(check); ++i) {
    PyObject* format = PySequence_Fast_ITEMS(check)[i];
    FB_CHECK_TYPE(Py_IS_TYPE(format, &MemoryFormatType), kWanted, "one with a ",
                  Py_TYPE(format)->tp_name);
    formats.push_back(to_memory_format(format));
  }
  return true;
}
// dim_order(*, ambiguity_check=False)
PyObject* dim_order(PyObject* o, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  return guarded([&] {
    const Tensor& t = unwrap(o);
    const Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    FB_CHECK_TYPE(nargs == 0 && named <= 1, "dim_order: expected ambiguity_check=, by name, alone");
    if (named == 1 &&
        PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "ambiguity_check") != 0)
      fail(ErrorKind::Type, "dim_order: unexpected argument ",
           PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, 0)));
    Ints order(t.dim());
    for (int64_t i = 0; i < t.dim(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return t.strides()[a] > t.strides()[b]; });
    std::vector<MemoryFormat> formats;
    if (named == 1 && asks_for_order(args[0], formats)) {
      bool unique = true;
      for (int64_t i = 0; i < t.dim(); ++i) {
        unique &= t.sizes()[i] != 1 && t.strides()[i] != 0;
        unique &= i == 0 || t.strides()[order[i]] != t.strides()[order[i - 1]];
      }
      auto fits = [&](MemoryFormat f) { return t.is_contiguous(f); };
      FB_CHECK(unique || std::count_if(formats.begin(), formats.end(), fits) == 1,
               "dim_order: expected an order of dims that is the only one, or exactly one of the "
               "memory formats given, got shape ",
               t.sizes(), " and strides ", t.strides());
    }
    return wrap_ints(order);
  });
}

// Elements as Python values
// -------------------------------------------------------------------------------------------

PyObject* item(PyObject* o, PyObject*) {
  try {
    const Tensor& t = unwrap(o);
    if (t.numel() == 1 && t.dtype() == DType::Float32 && !t.has_flag(kWrapper) && on_cpu(t))
        [[likely]]
      return PyFloat_FromDouble(*t.data<float>());
    return wrap_scalar(item_of(t));
  } catch (...) {
    return raise_current();
  }
}

template <class T>
PyObject* python_value(T x) {
  if constexpr (is_truth<T>)
    return PyBool_FromLong(x);
  else if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>)
    return PyComplex_FromDoubles(x.real(), x.imag());
  else if constexpr (std::is_same_v<T, uint64_t>)
    return PyLong_FromUnsignedLongLong(x);
  else if constexpr (std::is_integral_v<T>)
    return PyLong_FromLongLong(x);
  else if constexpr (std::is_same_v<T, double>)
    return PyFloat_FromDouble(x);
  else
    return PyFloat_FromDouble(static_cast<float>(x));
}

template <class T>
PyRef nested_list(const Tensor& t, int64_t d, const T* p) {
  int64_t n = t.sizes()[d], step = t.strides()[d];
  PyRef list = checked(PyList_New(n));
  for (int64_t i = 0; i < n; ++i, p += step) {
    PyRef value = d + 1 < t.dim() ? nested_list(t, d + 1, p) : checked(python_value(*p));
    PyList_SET_ITEM(list.get(), i, value.release());
  }
  return list;
}

PyObject* tolist(PyObject* o, PyObject*) {
  try {
    const Tensor& t = unwrap(o);
    FB_CHECK(!t.has_flag(kWrapper),
             "tolist(): the values of a tensor inside vmap or another transform are not known");
    FB_CHECK_IMPL(t.device().type() != DeviceType::Meta, "tolist(): a meta tensor has no data");
    if (t.dim() == 0) return wrap_scalar(t.item());
    return visit(t.dtype(), [&]<class T>() { return nested_list<T>(t, 0, t.data<T>()).release(); });
  } catch (...) {
    return raise_current();
  }
}

// x._values_text(indent, precision, threshold, edgeitems, linewidth, sci_mode)
PyObject* py_values_text(PyObject* o, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    FB_CHECK_TYPE(n == 6, "_values_text: expected 6 arguments, got ", n);
    const Tensor& t = unwrap(o);
    FB_CHECK(!t.has_flag(kWrapper) && !t.device().is_meta(), "_values_text: there are no values");
    PrintOptions options;
    options.precision = to_int(args[1]);
    options.threshold = PyFloat_AsDouble(args[2]);
    options.edgeitems = to_int(args[3]);
    options.linewidth = to_int(args[4]);
    if (args[5] != Py_None) options.scientific = PyObject_IsTrue(args[5]) == 1;
    if (PyErr_Occurred()) throw PythonError();
    const std::string text = values_text(t, to_int(args[0]), options);
    return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  });
}

PyObject* to_complex_number(PyObject* o, PyObject*) {
  try {
    FB_CHECK_VALUE(unwrap(o).numel() == 1,
                   "only one element tensors can be converted to Python scalars");
    warn_of_number(unwrap(o));
    complex128 z = item_of(unwrap(o)).to_complex();
    return PyComplex_FromDoubles(z.real(), z.imag());
  } catch (...) {
    return raise_current();
  }
}

// Storage
// -------------------------------------------------------------------------------------------------------------

PyObject* untyped_storage(PyObject* o, PyObject*) {
  return wrap_storage(unwrap(o).storage());
}

PyObject* storage(PyObject* o, PyObject*) {
  PyRef module = PyRef::steal(import_module("flambeau.storage"));
  return module ? PyObject_CallMethod(module.get(), "storage_of", "O", o) : nullptr;
}

// The strides of a format over the sizes that resize_ gave.
void lay_out(const char* op, const Tensor& t, MemoryFormat format) {
  FB_CHECK(format != MemoryFormat::Preserve, op,
           ": Unsupported memory format Preserve: a tensor that is resized has no layout to keep");
  const int64_t rank = format == MemoryFormat::ChannelsLast     ? 4
                       : format == MemoryFormat::ChannelsLast3d ? 5
                                                                : t.dim();
  FB_CHECK(t.dim() == rank, op, ": required rank ", rank, " tensor to use channels_last",
           rank == 5 ? "_3d" : "", " format, got shape ", t.sizes());
  t->strides = format_strides(t.sizes(), format);
  t->refresh();
}

Param resize_params[] = {
    {"self", Arg::Tensor}, {"size", Arg::Ints}, {"memory_format", Arg::MemoryFormat, true, false}};
PyObject* call_resize_(const Args& a) {
  const Tensor& t = self_of(a);
  FB_CHECK(!t.requires_grad(), "cannot resize variables that require grad");
  resize(t, to_ints(a, 1));
  if (a[2] && a[2] != Py_None) lay_out("resize_", t, to_memory_format(a[2]));
  return Py_NewRef(a[0]);
}
FB_METHOD(resize_,
          {resize_params, 3, 2,
           "(Tensor self, tuple of ints size, *, torch.memory_format memory_format = None)",
           call_resize_})
Param resize_as_params[] = {{"self", Arg::Tensor},
                            {"the_template", Arg::Tensor},
                            {"memory_format", Arg::MemoryFormat, true, false}};
PyObject* call_resize_as_(const Args& a) {
  FB_CHECK(!self_of(a).requires_grad(), "cannot resize variables that require grad");
  const Tensor &t = self_of(a), &like = unwrap(a[1]);
  resize(t, like.sizes());
  if (a[2] && a[2] != Py_None) {
    MemoryFormat format = to_memory_format(a[2]);
    if (format == MemoryFormat::Preserve) format = like.suggest_memory_format();
    lay_out("resize_as_", t, format);
  }
  return Py_NewRef(a[0]);
}
FB_METHOD(resize_as_, {resize_as_params, 3, 2,
                       "(Tensor self, Tensor the_template, *, torch.memory_format memory_format"
                       " = None)",
                       call_resize_as_})

Param set_tensor_params[] = {{"self", Arg::Tensor}, {"source", Arg::Tensor}};
Param set_storage_params[] = {{"self", Arg::Tensor},
                              {"source", Arg::Object},
                              {"storage_offset", Arg::Int, false, false},
                              {"size", Arg::Ints, false, false},
                              {"stride", Arg::Ints, false, false}};
Param only_self[] = {{"self", Arg::Tensor}};
void become(const Tensor& t, const Tensor& source) {
  FB_CHECK(t.dtype() == source.dtype(), "set_: expected a source of dtype ", t.dtype(), ", got ",
           source.dtype());
  FB_CHECK(!t.requires_grad() || is_leaf(t),
           "set_: expected a leaf or a tensor that does not require grad");
  set_data(t, source);
}
PyObject* call_set_nothing(const Args& a) {
  become(self_of(a), empty({0}, self_of(a).dtype()));
  return Py_NewRef(a[0]);
}
PyObject* call_set_tensor(const Args& a) {
  become(self_of(a), unwrap(a[1]));
  return Py_NewRef(a[0]);
}
PyObject* call_set_storage(const Args& a) {
  const Tensor& t = self_of(a);
  Ref<Storage> storage = storage_from(a[1], t.dtype(), "set_");
  FB_CHECK_TYPE(storage, "set_(): argument 'source' (position 1) must be Tensor or storage, not ",
                Py_TYPE(a[1])->tp_name);
  FB_CHECK(storage->device() == t.device(), "set_: Attempted to set the storage of a tensor on ",
           "device \"", t.device(), "\" to a storage on different device \"", storage->device(),
           "\"; the devices must match");
  Ints size = a[3] ? to_ints(a, 3) : Ints{storage->nbytes() / t.itemsize()};
  Ints strides = a[4] ? to_ints(a, 4) : contiguous_strides(size);
  Tensor whole = empty({0}, t.dtype(), MemoryFormat::Contiguous, t.device());
  whole->storage = storage;
  become(t, alias(whole, size, strides, a[2] ? to_int(a[2]) : 0));
  return Py_NewRef(a[0]);
}
FB_METHOD(set_, {only_self, 1, 1, "(Tensor self)", call_set_nothing},
          {set_tensor_params, 2, 2, "(Tensor self, Tensor source)", call_set_tensor},
          {set_storage_params, 5, 5,
           "(Tensor self, Storage source, int storage_offset, tuple of ints size, tuple of ints "
           "stride)",
           call_set_storage})

PyObject* is_set_to(PyObject* o, PyObject* other) {
  try {
    const Tensor &a = unwrap(o), &b = expect_tensor(other, "is_set_to", "tensor");
    return PyBool_FromLong(a.shares_storage(b) && a.offset() == b.offset() &&
                           a.sizes() == b.sizes() && a.strides() == b.strides());
  } catch (...) {
    return raise_current();
  }
}

// What only other layouts have.
PyObject* sparse_only(const char* what) {
  return PyErr_Format(PyExc_RuntimeError, "%s tensor layout but got Strided", what);
}
PyObject* values(PyObject*, PyObject*) {
  return sparse_only("values expected sparse");
}
PyObject* indices(PyObject*, PyObject*) {
  return sparse_only("indices expected sparse coordinate");
}

// Subclasses
// ----------------------------------------------------------------------------------------------------------

Param subclass_params[] = {
    {"cls", Arg::Object}, {"data", Arg::Tensor}, {"require_grad", Arg::Bool, false, false}};
PyTypeObject* subclass(PyObject* cls) {
  FB_CHECK_TYPE(PyType_Check(cls), "cls must be a type (got ", Py_TYPE(cls)->tp_name, ")");
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  FB_CHECK_TYPE(PyType_IsSubtype(type, TensorType),
                "Creating a Tensor subclass from a class that does not inherit from "
                "Tensor is not possible. Make sure your class inherits from Tensor.");
  return type;
}
PyObject* call_make_subclass(const Args& a) {
  const Tensor& data = unwrap(a[1]);
  Tensor plain = data.has_flag(kInference) ? alias(data) : detach(data);
  PyRef made = checked(wrap_as(subclass(a[0]), std::move(plain)));
  if (a[2] && to_bool(a[2])) set_requires_grad(unwrap(made.get()), true);
  return made.release();
}
Signature make_subclass_signatures[] = {{subclass_params, 3, 3,
                                         "(type cls, Tensor data, bool require_grad = False)",
                                         call_make_subclass}};
const Binding make_subclass_binding = {"_make_subclass", "", make_subclass_signatures, 1, false};
PyObject* make_subclass(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  bool saved =
      std::exchange(torch_function_enabled, false);  // whatever the data's class thinks of it
  PyObject* result = call_binding(make_subclass_binding, nullptr, args, n, names);
  torch_function_enabled = saved;
  return result;
}

PyObject* reduce_ex(PyObject* o, PyObject* protocol) {
  PyRef module = PyRef::steal(import_module("flambeau._tensor_pickle"));
  return module ? PyObject_CallMethod(module.get(), "reduce_tensor", "OO", o, protocol) : nullptr;
}
PyObject* deepcopy(PyObject* o, PyObject* memo) {
  PyRef module = PyRef::steal(import_module("flambeau._tensor_pickle"));
  return module ? PyObject_CallMethod(module.get(), "deepcopy_tensor", "OO", o, memo) : nullptr;
}
PyObject* copy(PyObject* o, PyObject*) {
  PyRef module = PyRef::steal(import_module("flambeau._tensor_pickle"));
  return module ? PyObject_CallMethod(module.get(), "copy_tensor", "O", o) : nullptr;
}
PyObject* reversed(PyObject* o, PyObject*) {
  return unwrap(o).dim() == 0 ? Py_NewRef(o) : PyObject_CallMethod(o, "flip", "i", 0);
}
PyObject* is_shared(PyObject* o, PyObject*) {
  return PyBool_FromLong(flambeau::is_shared(*unwrap(o).storage()));
}
PyObject* share_memory(PyObject* o, PyObject*) {
  return guarded([&] {
    FB_CHECK(!unwrap(o).has_flag(kWrapper),
             "share_memory_: expected a tensor with memory of its own, got a batched one; call it "
             "outside of vmap");
    share(*unwrap(o).storage());
    return Py_NewRef(o);
  });
}
PyObject* format(PyObject* o, PyObject* spec) {
  const Tensor& t = unwrap(o);
  if (t.dim() == 0 && t.device().type() != DeviceType::Meta && !t.has_flag(kWrapper)) {
    PyRef value = PyRef::steal(item(o, nullptr));
    return value ? PyObject_Format(value.get(), spec) : nullptr;
  }
  if (PyUnicode_Check(spec) && PyUnicode_GET_LENGTH(spec) == 0) return PyObject_Str(o);
  return PyErr_Format(PyExc_TypeError, "unsupported format string passed to %s.__format__",
                      Py_TYPE(o)->tp_name);
}
PyObject* dir(PyObject* o, PyObject*) {
  PyRef names = PyRef::steal(PyObject_Dir(reinterpret_cast<PyObject*>(Py_TYPE(o))));
  PyRef own = PyRef::steal(PyObject_GetAttrString(o, "__dict__"));
  if (!names || !own) return nullptr;
  PyRef keys = PyRef::steal(PyDict_Keys(own.get()));
  if (!keys || PyList_SetSlice(names.get(), PyList_GET_SIZE(names.get()),
                               PyList_GET_SIZE(names.get()), keys.get()) < 0)
    return nullptr;
  return names.release();
}
}  // namespace

PyObject* tensor_repr(PyObject* o) {
  PyRef module = PyRef::steal(import_module("flambeau._tensor_str"));
  return module ? PyObject_CallMethod(module.get(), "_str", "O", o) : nullptr;
}

PyObject* as_subclass(PyObject* self, PyObject* cls) {
  try {
    return wrap_as(subclass(cls), ops::alias(unwrap(self)));
  } catch (...) {
    return raise_current();
  }
}

PyMethodDef tensor_methods[] = {
    {"size", fast(size_method), kFast, "The shape, or the size of one dimension."},
    {"_values_text", fast(py_values_text), METH_FASTCALL,
     "Nested brackets of the values, as the print options show them."},
    {"stride", fast(stride_method), kFast,
     "Steps in memory of the dimensions, in elements, or of one."},
    {"is_contiguous", fast(is_contiguous_method), kFast,
     "Are the elements in order in memory, without gaps?"},
    {"view", fast(view_method), kFast,
     "The same memory in another shape, or as elements of another type."},
    {"dim", dim, METH_NOARGS, "Number of dimensions."},
    {"ndimension", dim, METH_NOARGS, "Number of dimensions."},
    {"numel", numel, METH_NOARGS, "Number of elements."},
    {"nelement", numel, METH_NOARGS, "Number of elements."},
    {"element_size", element_size, METH_NOARGS, "Bytes of one element."},
    {"storage_offset", storage_offset, METH_NOARGS,
     "Where in the storage the first element is, in elements."},
    {"data_ptr", data_ptr, METH_NOARGS, "Address of the first element."},
    {"const_data_ptr", data_ptr, METH_NOARGS, "Address of the first element."},
    {"dim_order", fast(dim_order), kFast,
     "Dimensions from the largest stride to the smallest; ambiguity_check=True refuses tensors "
     "that "
     "have several such orders, a list of memory formats those that are not of exactly one."},
    {"is_floating_point", is_floating_point, METH_NOARGS,
     "Are the elements real floating-point numbers?"},
    {"is_complex", is_complex, METH_NOARGS, "Are the elements complex?"},
    {"is_signed", is_signed, METH_NOARGS, "Can the elements be negative?"},
    {"is_inference", is_inference, METH_NOARGS, "Was it made under inference_mode?"},
    {"is_conj", no, METH_NOARGS, "Always False: conjugation is never postponed."},
    {"is_neg", no, METH_NOARGS, "Always False: negation is never postponed."},
    {"is_shared", is_shared, METH_NOARGS, "Is the memory shared between processes?"},
    {"is_pinned", no, METH_NOARGS, "Always False: there is no device to pin memory for."},
    {"is_coalesced", no, METH_NOARGS, "Always False for dense tensors."},
    {"share_memory_", share_memory, METH_NOARGS,
     "Moves the data, in place, to memory that processes started later, or that the tensor is sent "
     "to, share."},
    {"get_device", get_device, METH_NOARGS, "Ordinal of the device, -1 for the CPU."},
    {"item", item, METH_NOARGS, "The only element as a Python number."},
    {"tolist", tolist, METH_NOARGS, "The elements as nested lists of Python numbers."},
    {"__complex__", to_complex_number, METH_NOARGS, nullptr},
    {"untyped_storage", untyped_storage, METH_NOARGS, "The memory, as bytes."},
    {"storage", storage, METH_NOARGS, "The memory, as numbers of the tensor's dtype."},
    {"resize_", fast(resize__method), kFast,
     "Changes the shape in place; new elements hold whatever was there."},
    {"resize_as_", fast(resize_as__method), kFast, "Resizes to the shape of another tensor."},
    {"set_", fast(set__method), kFast, "Makes the tensor stand for other memory."},
    {"is_set_to", is_set_to, METH_O, "Do both stand for the same memory in the same way?"},
    {"values", values, METH_NOARGS,
     "Of sparse tensors: their stored values. Dense tensors have none: RuntimeError."},
    {"indices", indices, METH_NOARGS,
     "Of sparse tensors: where their values are. Dense tensors have none: RuntimeError."},
    {"to_dense", fast(same_dense), kFast, "The tensor itself: it is dense."},
    {"as_subclass", as_subclass, METH_O,
     "The same tensor as an instance of a subclass; gradients flow through."},
    {"_make_subclass", fast(make_subclass), kFast | METH_STATIC,
     "Instance of a subclass over the data of a tensor."},
    {"__torch_function__", fast(tensor_torch_function), METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "Default override: runs the function; results become instances of the class."},
    {"__reduce_ex__", reduce_ex, METH_O, nullptr},
    {"__deepcopy__", deepcopy, METH_O, nullptr},
    {"__copy__", copy, METH_NOARGS, nullptr},
    {"__reversed__", reversed, METH_NOARGS, nullptr},
    {"__format__", format, METH_O, nullptr},
    {"__dir__", dir, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace flambeau::python
