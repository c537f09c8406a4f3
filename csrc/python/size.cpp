// flambeau.Size: the tuple of ints that x.shape returns. Objects of the exact type come from free
// lists, because a shape is read far more often than it is kept; they hold ints only, so the gc
// need not track them.
#include "python/types.h"

namespace flambeau::python {

namespace {
constexpr int kLengths = 8, kKept = 16;
PyObject* kept[kLengths][kKept];
int kept_count[kLengths];

PyObject* allocate_size(Py_ssize_t n) {
  if (n < kLengths && kept_count[n] > 0) {
    PyObject* o = kept[n][--kept_count[n]];
    PyObject_Init(o, &SizeType);  // the length is still there
    return o;
  }
  return reinterpret_cast<PyObject*>(PyObject_GC_NewVar(PyTupleObject, &SizeType, n));
}

void size_dealloc(PyObject* self) {
  auto* tuple = reinterpret_cast<PyTupleObject*>(self);
  PyObject_GC_UnTrack(self);
  Py_ssize_t n = Py_SIZE(self);
  for (Py_ssize_t i = 0; i < n; ++i) Py_XDECREF(tuple->ob_item[i]);
  if (Py_TYPE(self) == &SizeType && n < kLengths && kept_count[n] < kKept)
    kept[n][kept_count[n]++] = self;
  else
    Py_TYPE(self)->tp_free(self);
}

PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyRef self = PyRef::steal(PyTuple_Type.tp_new(type, args, kwargs));
  if (!self) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(self.get(), i);
    if (PyLong_Check(item)) continue;
    PyObject* number = PyNumber_Index(item);
    if (!number)
      return PyErr_Format(PyExc_TypeError,
                          "torch.Size() takes an iterable of 'int' (item %zd is '%s')", i,
                          Py_TYPE(item)->tp_name);
    PyTuple_SET_ITEM(self.get(), i, number);
    Py_DECREF(item);
  }
  return self.release();
}

PyObject* size_repr(PyObject* self) {
  PyRef parts = PyRef::steal(PyUnicode_FromString(""));
  for (Py_ssize_t i = 0; parts && i < PyTuple_GET_SIZE(self); ++i)
    parts = PyRef::steal(
        PyUnicode_FromFormat(i ? "%U, %R" : "%U%R", parts.get(), PyTuple_GET_ITEM(self, i)));
  return parts ? PyUnicode_FromFormat("torch.Size([%U])", parts.get()) : nullptr;
}

PyObject* as_size(PyObject* tuple) {  // steals; null and other types pass through
  if (!tuple || !PyTuple_CheckExact(tuple)) return tuple;
  PyRef held = PyRef::steal(tuple);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i)
    if (!PyLong_Check(PyTuple_GET_ITEM(tuple, i))) return held.release();
  return PyObject_CallOneArg(reinterpret_cast<PyObject*>(&SizeType), tuple);
}

PyObject* size_concat(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(b))
    return PyErr_Format(PyExc_TypeError, "can only concatenate tuple (not %s) to torch.Size",
                        Py_TYPE(b)->tp_name);
  return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}
PyObject* size_add(PyObject* a,
                   PyObject* b) {  // either is a Size: a tuple before one is joined too
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
  const PyNumberMethods* theirs = Py_TYPE(b)->tp_as_number;
  if (theirs && theirs->nb_add && theirs->nb_add != size_add)
    Py_RETURN_NOTIMPLEMENTED;  // asked next
  return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}
PyObject* size_repeat(PyObject* a, Py_ssize_t n) {
  PyRef plain = PyRef::steal(PyTuple_GetSlice(a, 0, PyTuple_GET_SIZE(a)));
  return plain ? as_size(PyTuple_Type.tp_as_sequence->sq_repeat(plain.get(), n)) : nullptr;
}
PyObject* size_subscript(PyObject* a, PyObject* key) {
  PyObject* item = PyTuple_Type.tp_as_mapping->mp_subscript(a, key);
  if (!item || !PySlice_Check(key)) return item;
  if (Py_TYPE(item) == &SizeType) return item;
  return as_size(item);
}

PyObject* size_numel(PyObject* self, PyObject*) {
  PyRef product = PyRef::steal(PyLong_FromLong(1));
  for (Py_ssize_t i = 0; product && i < PyTuple_GET_SIZE(self); ++i)
    product = PyRef::steal(PyNumber_Multiply(product.get(), PyTuple_GET_ITEM(self, i)));
  return product.release();
}
PyObject* size_reduce(PyObject* self, PyObject*) {
  PyRef plain = PyRef::steal(PyTuple_GetSlice(self, 0, PyTuple_GET_SIZE(self)));
  PyRef copy = PyRef::steal(PyTuple_New(PyTuple_GET_SIZE(self)));
  if (!plain || !copy) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i)
    PyTuple_SET_ITEM(copy.get(), i, Py_NewRef(PyTuple_GET_ITEM(self, i)));
  return Py_BuildValue("(O(O))", &SizeType, copy.get());
}

PyMethodDef methods[] = {
    {"numel", size_numel, METH_NOARGS, "Number of elements of a tensor of this shape."},
    {"__reduce__", size_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PySequenceMethods sequence = {};
PyMappingMethods mapping = {};
PyNumberMethods number = {};
}  // namespace

PyTypeObject SizeType = static_type("flambeau.Size", 0, "The shape of a tensor: a tuple of ints.");

PyObject* wrap_size(const Ints& sizes) noexcept {
  auto n = static_cast<Py_ssize_t>(sizes.size());
  PyObject* o = allocate_size(n);
  if (!o) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) PyTuple_SET_ITEM(o, i, PyLong_FromLongLong(sizes[i]));
  return o;
}

bool init_size(PyObject* module) {
  sequence.sq_concat = size_concat;
  sequence.sq_repeat = size_repeat;
  mapping.mp_subscript = size_subscript;
  number.nb_add = size_add;
  SizeType.tp_base = &PyTuple_Type;
  SizeType.tp_flags |= Py_TPFLAGS_BASETYPE;  // collectable, as its base is
  SizeType.tp_dealloc = size_dealloc;
  SizeType.tp_new = size_new;
  SizeType.tp_repr = size_repr;
  SizeType.tp_methods = methods;
  SizeType.tp_as_sequence = &sequence;
  SizeType.tp_as_mapping = &mapping;
  SizeType.tp_as_number = &number;
  if (PyType_Ready(&SizeType) < 0) return false;
  return PyModule_AddObjectRef(module, "Size", reinterpret_cast<PyObject*>(&SizeType)) == 0;
}

}  // namespace flambeau::python
