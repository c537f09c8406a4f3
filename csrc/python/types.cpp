// dtype, layout, memory_format and device objects. All but devices are singletons, named in the
// module.
#include "python/types.h"

#include <cstring>

#include "dispatch/modes.h"

namespace flambeau::python {

DTypeObject dtype_objects[kDTypes];

namespace {
LayoutObject layout_objects[3];
MemoryFormatObject format_objects[4];
constexpr const char* kLayoutNames[] = {"strided", "sparse_coo", "sparse_csr"};
constexpr const char* kFormatNames[] = {"contiguous_format", "preserve_format", "channels_last",
                                        "channels_last_3d"};

DType dtype_value(PyObject* o) {
  return reinterpret_cast<DTypeObject*>(o)->value;
}
Device device_value(PyObject* o) {
  return reinterpret_cast<DeviceObject*>(o)->value;
}

// dtype
// ---------------------------------------------------------------------------------------------------------------

PyObject* dtype_repr(PyObject* o) {
  return PyUnicode_FromFormat("torch.%s", dtype_name(dtype_value(o)));
}
PyObject* dtype_reduce(PyObject* o, PyObject*) {
  return PyUnicode_FromString(dtype_name(dtype_value(o)));
}
// The module that the type of a singleton is of, where its name is looked up by pickle.
PyObject* dtype_module(PyObject* o, void*) {
  const char* name = Py_TYPE(o)->tp_name;
  return PyUnicode_FromStringAndSize(name, std::strrchr(name, '.') - name);
}
PyObject* dtype_is_float(PyObject* o, void*) {
  return PyBool_FromLong(is_floating_point(dtype_value(o)));
}
PyObject* dtype_is_complex(PyObject* o, void*) {
  return PyBool_FromLong(is_complex(dtype_value(o)));
}
PyObject* dtype_is_signed(PyObject* o, void*) {
  return PyBool_FromLong(is_signed(dtype_value(o)));
}
PyObject* dtype_itemsize(PyObject* o, void*) {
  return PyLong_FromLongLong(itemsize(dtype_value(o)));
}
PyObject* dtype_to_real(PyObject* o, PyObject*) {
  return wrap_dtype(to_real(dtype_value(o)));
}
PyObject* dtype_to_complex(PyObject* o, PyObject*) {
  return wrap_dtype(to_complex(dtype_value(o)));
}

PyGetSetDef dtype_properties[] = {
    {"__module__", dtype_module, nullptr, nullptr, nullptr},
    {"is_floating_point", dtype_is_float, nullptr, "True for real floating-point types.", nullptr},
    {"is_complex", dtype_is_complex, nullptr, "True for complex types.", nullptr},
    {"is_signed", dtype_is_signed, nullptr, "True for types with negative values.", nullptr},
    {"itemsize", dtype_itemsize, nullptr, "Bytes of one element.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef dtype_methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, nullptr},
    {"to_real", dtype_to_real, METH_NOARGS, "The real type of the same precision."},
    {"to_complex", dtype_to_complex, METH_NOARGS, "The complex type of the same precision."},
    {nullptr, nullptr, 0, nullptr},
};

// layout, memory_format
// -----------------------------------------------------------------------------------------------

const char* layout_name(PyObject* o) {
  return kLayoutNames[int(reinterpret_cast<LayoutObject*>(o)->value)];
}
const char* format_name(PyObject* o) {
  return kFormatNames[int(reinterpret_cast<MemoryFormatObject*>(o)->value)];
}
PyObject* layout_repr(PyObject* o) {
  return PyUnicode_FromFormat("torch.%s", layout_name(o));
}
PyObject* format_repr(PyObject* o) {
  return PyUnicode_FromFormat("torch.%s", format_name(o));
}
PyObject* layout_reduce(PyObject* o, PyObject*) {
  return PyUnicode_FromString(layout_name(o));
}
PyObject* format_reduce(PyObject* o, PyObject*) {
  return PyUnicode_FromString(format_name(o));
}
PyMethodDef layout_methods[] = {{"__reduce__", layout_reduce, METH_NOARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
PyMethodDef format_methods[] = {{"__reduce__", format_reduce, METH_NOARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
PyGetSetDef singleton_properties[] = {
    {"__module__", dtype_module, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// device
// --------------------------------------------------------------------------------------------------------------

const char* type_name(Device d) {
  return d.type() == DeviceType::CPU ? "cpu" : d.type() == DeviceType::CUDA ? "cuda" : "meta";
}

PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"type", "index", nullptr};
  PyObject *type, *index = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names), &type,
                                   &index))
    return nullptr;
  try {
    if (is_device(type)) return Py_NewRef(type);
    if (PyLong_Check(type)) {  // an ordinal: of the accelerator
      int i = static_cast<int>(PyLong_AsLong(type));
      if (i == -1 && PyErr_Occurred()) return nullptr;
      FB_CHECK(i >= 0 && i < 128, "Device index must not be negative");
      return wrap_device({DeviceType::CUDA, static_cast<int8_t>(i)});
    }
    FB_CHECK_TYPE(PyUnicode_Check(type), "device(): argument 'type' must be str, not ",
                  Py_TYPE(type)->tp_name);
    const char* text = PyUnicode_AsUTF8(type);
    if (!text) return nullptr;
    Device d = Device(text);
    if (index != Py_None) {
      FB_CHECK(
          d.index() < 0,
          "type (string) must not include an index because index was passed explicitly: ", text);
      long i = PyLong_AsLong(index);
      if (i == -1 && PyErr_Occurred()) return nullptr;
      FB_CHECK(i >= 0 && i < 128, "Device index must not be negative");
      d = Device(d.type(), static_cast<int8_t>(i));
    }
    return wrap_device(d);
  } catch (...) {
    return raise_current();
  }
}

PyObject* device_repr(PyObject* o) {
  Device d = device_value(o);
  if (d.index() < 0) return PyUnicode_FromFormat("device(type='%s')", type_name(d));
  return PyUnicode_FromFormat("device(type='%s', index=%d)", type_name(d), int(d.index()));
}
PyObject* device_str(PyObject* o) {
  Device d = device_value(o);
  if (d.index() < 0) return PyUnicode_FromString(type_name(d));
  return PyUnicode_FromFormat("%s:%d", type_name(d), int(d.index()));
}
PyObject* device_type_of(PyObject* o, void*) {
  return PyUnicode_FromString(type_name(device_value(o)));
}
PyObject* device_index(PyObject* o, void*) {
  int i = device_value(o).index();
  if (i < 0) Py_RETURN_NONE;
  return PyLong_FromLong(i);
}
PyObject* device_reduce(PyObject* o, PyObject*) {
  Device d = device_value(o);
  if (d.index() < 0) return Py_BuildValue("(O(s))", &DeviceType_, type_name(d));
  return Py_BuildValue("(O(si))", &DeviceType_, type_name(d), int(d.index()));
}
Py_hash_t device_hash(PyObject* o) {
  Device d = device_value(o);
  return (static_cast<int>(d.type()) + 1) * 257 + d.index() + 2;
}
PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if (!is_device(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((device_value(a) == device_value(b)) == (op == Py_EQ));
}
// Factories that are not told a device take the one that was entered last.
PyObject* device_enter(PyObject* o, PyObject*) {
  Device d = device_value(o);
  try {
    FB_CHECK_IMPL(d.type() != DeviceType::CUDA, "Torch not compiled with CUDA enabled");
  } catch (...) {
    return raise_current();
  }
  modes.entered_device = new EnteredDevice{modes.device, modes.entered_device};
  modes.device = Device{d.type()};
  return Py_NewRef(o);
}
PyObject* device_exit(PyObject*, PyObject*) {
  if (EnteredDevice* last = modes.entered_device) {
    modes.device = last->before;
    modes.entered_device = last->outer;
    delete last;
  }
  Py_RETURN_NONE;
}
// @device: the function's factories take it.
PyObject* device_call(PyObject* o, PyObject* args, PyObject*) {
  PyObject* function;
  if (!PyArg_ParseTuple(args, "O:device", &function)) return nullptr;
  PyRef module = PyRef::steal(import_module("flambeau._config"));
  return module ? PyObject_CallMethod(module.get(), "on_device", "OO", o, function) : nullptr;
}
PyGetSetDef device_properties[] = {
    {"type", device_type_of, nullptr, "Kind of device, such as 'cpu'.", nullptr},
    {"index", device_index, nullptr, "Its ordinal, or None for the current one.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef device_methods[] = {
    {"__reduce__", device_reduce, METH_NOARGS, nullptr},
    {"__enter__", device_enter, METH_NOARGS, "Makes it the device of factories."},
    {"__exit__", device_exit, METH_VARARGS, "Goes back to the device before."},
    {nullptr, nullptr, 0, nullptr},
};

PyTypeObject make_type(const char* name, Py_ssize_t size, const char* doc, reprfunc repr,
                       PyMethodDef* methods, PyGetSetDef* properties) {
  PyTypeObject t = static_type(name, size, doc);
  t.tp_repr = repr;
  t.tp_methods = methods;
  t.tp_getset = properties;
  return t;
}

template <class T>
bool add_singleton(PyObject* module, T& o, PyTypeObject& type, const char* name) {
  PyObject_Init(reinterpret_cast<PyObject*>(&o), &type);
  return PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(&o)) == 0;
}

// The other names by which element types are known.
constexpr struct {
  const char* name;
  DType dtype;
} kDTypeAliases[] = {
    {"half", DType::Float16},     {"float", DType::Float32},      {"double", DType::Float64},
    {"short", DType::Int16},      {"int", DType::Int32},          {"long", DType::Int64},
    {"cfloat", DType::Complex64}, {"cdouble", DType::Complex128},
};
}  // namespace

PyTypeObject DTypeType =
    make_type("flambeau.dtype", sizeof(DTypeObject), "Type of a tensor's elements.", dtype_repr,
              dtype_methods, dtype_properties);
PyTypeObject LayoutType =
    make_type("flambeau.layout", sizeof(LayoutObject), "How a tensor's elements are stored.",
              layout_repr, layout_methods, singleton_properties);
PyTypeObject MemoryFormatType = make_type("flambeau.memory_format", sizeof(MemoryFormatObject),
                                          "Order of a dense tensor's dimensions in memory.",
                                          format_repr, format_methods, singleton_properties);
PyTypeObject DeviceType_ = make_type("flambeau.device", sizeof(DeviceObject),
                                     "Where a tensor lives: device('cpu'), device('cuda', 1).",
                                     device_repr, device_methods, device_properties);

PyObject* wrap_layout(Layout l) noexcept {
  return Py_NewRef(reinterpret_cast<PyObject*>(&layout_objects[static_cast<int>(l)]));
}
PyObject* wrap_memory_format(MemoryFormat f) noexcept {
  return Py_NewRef(reinterpret_cast<PyObject*>(&format_objects[static_cast<int>(f)]));
}
PyObject* wrap_device(Device d) noexcept {
  static PyObject* cpu = nullptr;
  bool is_cpu = d.type() == DeviceType::CPU && d.index() < 0;
  if (is_cpu && cpu) return Py_NewRef(cpu);
  auto* o = PyObject_New(DeviceObject, &DeviceType_);
  if (!o) return nullptr;
  o->value = d;
  if (is_cpu) cpu = Py_NewRef(reinterpret_cast<PyObject*>(o));
  return reinterpret_cast<PyObject*>(o);
}

PyObject* wrap_ints(const Ints& xs) noexcept {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(xs.size()));
  if (!tuple) return nullptr;
  for (size_t i = 0; i < xs.size(); ++i) PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(xs[i]));
  return tuple;
}

PyObject* wrap_scalar(const Scalar& x) noexcept {
  switch (x.kind()) {
    case Scalar::Kind::Bool:
      return PyBool_FromLong(x.to_int() != 0);
    case Scalar::Kind::Int:
      return PyLong_FromLongLong(x.to_int());
    case Scalar::Kind::UInt:
      return PyLong_FromUnsignedLongLong(static_cast<uint64_t>(x.to_int()));
    case Scalar::Kind::Float:
      return PyFloat_FromDouble(x.to_double());
    case Scalar::Kind::Complex: {
      complex128 z = x.to_complex();
      return PyComplex_FromDoubles(z.real(), z.imag());
    }
  }
  Py_RETURN_NONE;
}

bool init_size(PyObject* module);
bool init_generator(PyObject* module);
bool init_custom_object(PyObject* module);

bool init_types(PyObject* module) {
  DeviceType_.tp_new = device_new;
  DeviceType_.tp_str = device_str;
  DeviceType_.tp_hash = device_hash;
  DeviceType_.tp_call = device_call;
  DeviceType_.tp_richcompare = device_compare;
  for (auto* type : {&DTypeType, &LayoutType, &MemoryFormatType, &DeviceType_}) {
    if (PyType_Ready(type) < 0) return false;
    if (PyModule_AddObjectRef(module, std::strchr(type->tp_name, '.') + 1,
                              reinterpret_cast<PyObject*>(type)) < 0)
      return false;
  }
  for (int i = 0; i < kDTypes; ++i) {
    dtype_objects[i].value = static_cast<DType>(i);
    if (!add_singleton(module, dtype_objects[i], DTypeType, dtype_name(static_cast<DType>(i))))
      return false;
  }
  for (auto& [name, dtype] : kDTypeAliases) {
    PyRef o = PyRef::steal(wrap_dtype(dtype));
    if (PyModule_AddObjectRef(module, name, o.get()) < 0) return false;
  }
  for (int i = 0; i < 3; ++i) {
    layout_objects[i].value = static_cast<Layout>(i);
    if (!add_singleton(module, layout_objects[i], LayoutType, kLayoutNames[i])) return false;
  }
  for (int i = 0; i < 4; ++i) {
    format_objects[i].value = static_cast<MemoryFormat>(i);
    if (!add_singleton(module, format_objects[i], MemoryFormatType, kFormatNames[i])) return false;
  }
  return init_size(module) && init_generator(module) && init_custom_object(module);
}

}  // namespace flambeau::python
