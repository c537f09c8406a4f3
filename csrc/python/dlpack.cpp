// DLPack, both ways and without copying: Tensor.__dlpack__ makes capsules (of version 1 when the
// consumer knows it), from_dlpack takes those of others. The struct layouts are the standard's
// (dmlc.github.io/dlpack).
#include <iterator>

#include "autograd/meta.h"
#include "kernels/copy.h"
#include "python/argparse.h"
#include "python/factories.h"
#include "python/module.h"

namespace flambeau::python {

namespace {
struct DlDevice {
  int32_t type, id;
};
struct DlType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DlManaged {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManaged*);
};
struct DlVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DlVersioned*);
  uint64_t flags;
  DlTensor tensor;
};
constexpr int32_t kCpu = 1;
constexpr uint64_t kCopied = 2;
enum : uint8_t {
  kIntCode = 0,
  kUIntCode = 1,
  kFloatCode = 2,
  kBfloatCode = 4,
  kComplexCode = 5,
  kBoolCode = 6
};

template <class M>
constexpr const char* kName = "dltensor";
template <>
constexpr const char* kName<DlVersioned> = "dltensor_versioned";
template <class M>
constexpr const char* kUsed = "used_dltensor";
template <>
constexpr const char* kUsed<DlVersioned> = "used_dltensor_versioned";

DlType type_of(DType d) {
  auto bits = static_cast<uint8_t>(8 * itemsize(d));
  if (d == DType::Bool) return {kBoolCode, 8, 1};
  if (d == DType::BFloat16) return {kBfloatCode, 16, 1};
  if (is_complex(d)) return {kComplexCode, bits, 1};
  if (is_floating_point(d)) return {kFloatCode, bits, 1};
  return {is_signed(d) ? kIntCode : kUIntCode, bits, 1};
}
DType dtype_of_type(DlType t) {
  FB_CHECK(t.lanes == 1, "from_dlpack: expected one lane, got ", t.lanes);
  for (int i = 0; i < kDTypes; ++i) {
    auto d = static_cast<DType>(i);
    DlType mine = type_of(d);
    if (mine.code == t.code && mine.bits == t.bits) return d;
  }
  fail(ErrorKind::Runtime, "from_dlpack: unsupported type code ", int(t.code), " of ", int(t.bits),
       " bits");
}

// What an exported tensor keeps alive until its consumer is done.
template <class M>
struct Export {
  explicit Export(Tensor t) : tensor(std::move(t)) { tensor.storage()->add_export(); }
  ~Export() { tensor.storage()->drop_export(); }
  Tensor tensor;
  Ints shape, strides;
  M managed{};
};

template <class M>
void delete_export(M* m) {
  delete static_cast<Export<M>*>(m->context);
}

template <class M>
void capsule_destructor(PyObject* capsule) {  // nobody took it
  if (!PyCapsule_IsValid(capsule, kName<M>)) return;
  auto* m = static_cast<M*>(PyCapsule_GetPointer(capsule, kName<M>));
  if (m->deleter) m->deleter(m);
}

template <class M>
PyObject* exported(Tensor t, bool copied) {
  auto* e = new Export<M>(std::move(t));
  e->shape = e->tensor.sizes();
  e->strides = e->tensor.strides();
  for (size_t i = 0; i < e->shape.size(); ++i)
    if (e->shape[i] < 2) e->strides[i] = 1;  // some consumers read the strides of such dims
  DlTensor& d = e->managed.tensor;
  d.data = e->tensor.data_ptr();
  d.device = {kCpu, 0};
  d.ndim = static_cast<int32_t>(e->shape.size());
  d.dtype = type_of(e->tensor.dtype());
  d.shape = e->shape.data();
  d.strides = e->strides.data();
  e->managed.context = e;
  e->managed.deleter = delete_export<M>;
  if constexpr (std::is_same_v<M, DlVersioned>) {
    e->managed.major = 1;
    e->managed.minor = 0;
    e->managed.flags = copied ? kCopied : 0;
  }
  PyObject* capsule = PyCapsule_New(&e->managed, kName<M>, capsule_destructor<M>);
  if (!capsule) delete e;
  return capsule;
}

template <class M>
void release_import(void* context) {
  auto* m = static_cast<M*>(context);
  if (!m->deleter || !Py_IsInitialized()) return;
  GilHeld gil;  // producers written in Python need it
  m->deleter(m);
}

template <class M>
Tensor imported(PyObject* capsule) {
  auto* m = static_cast<M*>(PyCapsule_GetPointer(capsule, kName<M>));
  if (!m) throw PythonError();
  DlTensor& d = m->tensor;
  FB_CHECK(d.device.type == kCpu, "from_dlpack: expected a CPU tensor, got device type ",
           d.device.type);
  FB_CHECK(d.ndim >= 0 && d.ndim <= 64, "from_dlpack: unsupported number of dimensions ", d.ndim);
  DType dtype = dtype_of_type(d.dtype);
  Ints shape(d.shape, d.shape + d.ndim);
  Ints strides = d.strides ? Ints(d.strides, d.strides + d.ndim) : contiguous_strides(shape);
  int64_t last = 0;
  for (int i = 0; i < d.ndim; ++i) {
    if (shape[i] < 2) strides[i] = std::max<int64_t>(strides[i], 0);
    FB_CHECK(strides[i] >= 0, "from_dlpack: negative strides are not supported");
    last += std::max<int64_t>(shape[i] - 1, 0) * strides[i];
  }
  if constexpr (std::is_same_v<M, DlVersioned>)
    FB_CHECK(m->major <= 1, "from_dlpack: expected version 1 of DLPack, got ", m->major);
  if (checked_numel(shape) == 0) {
    PyCapsule_SetName(capsule, kUsed<M>);
    if (m->deleter) m->deleter(m);
    return empty(shape, dtype);
  }
  Tensor t = empty({0}, dtype);
  char* data = static_cast<char*>(d.data) + d.byte_offset;
  t->storage = Storage::wrap(data, (last + 1) * itemsize(dtype), release_import<M>, m);
  checked_int(PyCapsule_SetName(capsule, kUsed<M>));
  t->sizes = shape;
  t->strides = strides;
  t->refresh();
  return t;
}

Tensor from_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kName<DlVersioned>)) return imported<DlVersioned>(capsule);
  FB_CHECK(PyCapsule_IsValid(capsule, kName<DlManaged>),
           "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed "
           "only once, so you might have "
           "already constructed a tensor from it once.");
  return imported<DlManaged>(capsule);
}

Param dlpack_params[] = {{"self", Arg::Tensor},
                         {"stream", Arg::Object, true, false},
                         {"max_version", Arg::Object, true, false},
                         {"dl_device", Arg::Object, true, false},
                         {"copy", Arg::Bool, true, false}};
PyObject* call_dlpack(const Args& a) {
  Tensor t = unwrap(a[0]);
  FB_CHECK_AS(Runtime, !t.requires_grad(),
              "Can't export tensors that require gradient, use tensor.detach()");
  FB_CHECK(t.device().type() == DeviceType::CPU && !t.has_flag(kWrapper),
           "__dlpack__: only CPU tensors can be exported");
  FB_CHECK(!a[1] || a[1] == Py_None, "__dlpack__: expected stream=None for a CPU tensor");
  bool copied = a[4] && a[4] != Py_None && to_bool(a[4]);
  if (copied) t = kernels::clone(t);
  bool versioned = false;
  if (a[2] && PyTuple_Check(a[2]) && PyTuple_GET_SIZE(a[2]) > 0)
    versioned = to_int(PyTuple_GET_ITEM(a[2], 0)) >= 1;
  return versioned ? exported<DlVersioned>(t, copied) : exported<DlManaged>(t, copied);
}
Signature dlpack_signatures[] = {
    {dlpack_params, 5, 1,
     "(Tensor self, *, stream = None, max_version = None, dl_device = None, "
     "bool copy = None)",
     call_dlpack}};
const Binding dlpack_binding = {"__dlpack__", "", dlpack_signatures, 1, true};
PyObject* dlpack_method(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call_binding(dlpack_binding, self, args, n, names);
}
PyObject* dlpack_device(PyObject*, PyObject*) {
  return Py_BuildValue("(ii)", int(kCpu), 0);
}

Param from_params[] = {{"ext_tensor", Arg::Object},
                       {"device", Arg::Device, true, false},
                       {"copy", Arg::Bool, true, false}};
PyObject* call_from_dlpack(const Args& a) {
  if (a[1] && a[1] != Py_None) to_usable_device(a[1]);
  Tensor t = tensor_from_dlpack(a[0]);
  return wrap(a[2] && a[2] != Py_None && to_bool(a[2]) ? kernels::clone(t) : t);
}
Signature from_signatures[] = {
    {from_params, 3, 1, "(object ext_tensor, *, torch.device device = None, bool copy = None)",
     call_from_dlpack}};
const Binding from_binding = {"from_dlpack", "", from_signatures, 1, false};
PyObject* from_dlpack_function(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call_binding(from_binding, nullptr, args, n, names);
}
PyObject* to_dlpack(PyObject*, PyObject* o) {
  return PyObject_CallMethod(o, "__dlpack__", nullptr);
}
}  // namespace

Tensor tensor_from_dlpack(PyObject* o) {
  if (PyCapsule_CheckExact(o)) return from_capsule(o);
  PyRef method = checked(PyObject_GetAttrString(o, "__dlpack__"));
  PyRef names = checked(Py_BuildValue("(s)", "max_version")),
        version = checked(Py_BuildValue("(ii)", 1, 0));
  PyObject* args[] = {version.get()};
  PyRef capsule = PyRef::steal(PyObject_Vectorcall(method.get(), args, 0, names.get()));
  if (!capsule) {  // producers of before version 1
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError();
    PyErr_Clear();
    capsule = checked(PyObject_CallNoArgs(method.get()));
  }
  return from_capsule(capsule.get());
}

PyMethodDef dlpack_methods[] = {
    {"__dlpack__", fast(dlpack_method), kFast, "A DLPack capsule of the tensor's memory."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS,
     "Device type and ordinal as DLPack numbers them."},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef dlpack_functions[] = {
    {"from_dlpack", fast(from_dlpack_function), kFast,
     "A tensor over the memory of an object that speaks DLPack."},
    {"to_dlpack", to_dlpack, METH_O, "A DLPack capsule of a tensor."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace flambeau::python
