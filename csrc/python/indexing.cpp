// x[key] and x[key] = value: reads Python's keys into autograd/items.h, or for a trace into plain
// parts.
#include <cstring>

#include "autograd/items.h"
#include "gen/enumerations.h"
#include "gen/ops.h"
#include "python/argparse.h"
#include "python/factories.h"
#include "python/module.h"
#include "python/thunks.h"
#include "python/trace_hook.h"

namespace flambeau::python {

namespace {

bool is_ndarray(PyObject* o) {
  return std::strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") == 0;
}

// A key as the sequence of its parts: a tuple, or a list that holds more than numbers (as NumPy
// once did).
bool acts_as_tuple(PyObject* key) {
  if (PyTuple_Check(key)) return true;
  if (!PyList_Check(key) || PyList_GET_SIZE(key) >= 32) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(key); ++i) {
    PyObject* o = PyList_GET_ITEM(key, i);
    if (is_tensor(o) || PyList_Check(o) || PyTuple_Check(o) || PySlice_Check(o) ||
        o == Py_Ellipsis || o == Py_None)
      return true;
  }
  return false;
}

Tensor index_tensor(PyObject* sequence) {
  Tensor t = tensor_from_data(sequence, std::nullopt);
  return t.numel() == 0 && t.is_floating_point() ? empty(t.sizes(), DType::Int64) : t;
}

[[noreturn]] void no_index(PyObject* o) {
  fail(ErrorKind::Index,
       "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
       "indices (got ",
       Py_TYPE(o)->tp_name, ")");
}

// Reads one key of Python.
class KeyReader {
 public:
  KeyReader(const Tensor& x, PyObject* key) : indexer(x) {
    if (!acts_as_tuple(key)) {
      begin(key, dims_of(key));
      part(key);
      return;
    }
    // A tuple, for reading a part may run Python code that would change a list.
    PyRef parts = readable(checked(PySequence_Tuple(key)));
    Py_ssize_t n = PyTuple_GET_SIZE(parts.get());
    int64_t given = 0;
    for (Py_ssize_t i = 0; i < n; ++i) given += dims_of(PyTuple_GET_ITEM(parts.get(), i));
    begin(key, given);
    for (Py_ssize_t i = 0; i < n; ++i) part(PyTuple_GET_ITEM(parts.get(), i));
  }

  Indexer indexer;

 private:
  static bool is_array(PyObject* o) {
    return PyList_Check(o) || PyTuple_Check(o) || is_ndarray(o);
  }
  // The parts with arrays and lists as tensors where their dims count, which is beside `...`: a
  // mask stands for as many as it has.
  static PyRef readable(PyRef parts) {
    const Py_ssize_t n = PyTuple_GET_SIZE(parts.get());
    bool open = false, array = false;
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* o = PyTuple_GET_ITEM(parts.get(), i);
      if (o == Py_Ellipsis)
        open = true;
      else
        array |= is_array(o);
    }
    if (!open || !array) return parts;
    PyRef made = checked(PyTuple_New(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* o = PyTuple_GET_ITEM(parts.get(), i);
      PyRef part = !is_array(o)    ? PyRef::borrow(o)
                   : is_ndarray(o) ? checked(wrap(tensor_from_numpy(o, false)))
                                   : checked(wrap(index_tensor(o)));
      PyTuple_SET_ITEM(made.get(), i, part.release());
    }
    return made;
  }
  static int64_t dims_of(PyObject* o) {  // how many dims of x a part stands for
    if (o == Py_None || o == Py_Ellipsis || PyBool_Check(o)) return 0;
    if (is_tensor(o)) {
      const Tensor& t = unwrap(o);
      return is_mask(t) ? t.dim() : 1;
    }
    return 1;
  }
  void begin(PyObject* key, int64_t given) {
    bool number = PyIndex_Check(key) && !PyBool_Check(key);
    indexer.begin(given, number && !(is_tensor(key) && unwrap(key).dim() > 0));
  }

  void part(PyObject* o) {
    if (PyLong_CheckExact(o)) return indexer.select(to_int(o));
    if (PySlice_Check(o)) return slice(o);
    if (o == Py_None) return indexer.none();
    if (o == Py_Ellipsis) return indexer.ellipsis();
    if (PyBool_Check(o)) return indexer.truth(o == Py_True);
    if (is_tensor(o)) return indexer.tensor(unwrap(o));
    if (is_ndarray(o)) return indexer.tensor(tensor_from_numpy(o, false));
    if (PyIndex_Check(o)) return indexer.select(to_int(checked(PyNumber_Index(o)).get()));
    if (PySequence_Check(o)) return indexer.tensor(index_tensor(o));
    no_index(o);
  }
  void slice(PyObject* o) {
    Py_ssize_t start, stop, step;
    checked_int(PySlice_Unpack(o, &start, &stop, &step));
    indexer.slice(start, stop, step);
  }
};

// A key as plain parts, for a trace, whose tensors have no data: views in order, and index tensors
// with their places. Numbers and ends of slices stay what they are: a trace's sizes may vary.
class KeyParts {
 public:
  // `seen`: of a tensor, array or list of the key, (what stands for it, its dims, its kind).
  KeyParts(PyObject* key, int64_t ndim, PyObject* seen) : list_(checked(PyList_New(0))) {
    PyRef parts = acts_as_tuple(key) ? checked(PySequence_Tuple(key)) : checked(PyTuple_Pack(1, key));
    const Py_ssize_t n = PyTuple_GET_SIZE(parts.get());
    std::vector<Part> read;
    int64_t given = 0;
    bool number = false;
    for (Py_ssize_t i = 0; i < n; ++i) {
      const Part& p = read.emplace_back(PyTuple_GET_ITEM(parts.get(), i), seen);
      given += p.dims();
      mixed_ |= PyBool_Check(p.object) || p.kind == Part::Array || p.kind == Part::Mask;
      number = n == 1 && p.is_number();
    }
    places_.begin(ndim, given, number);
    for (const Part& p : read) part(p);
  }

  // (parts, whether all index tensors there are select, being one whole number each)
  PyObject* result() const { return Py_BuildValue("OO", list_.get(), mixed_ ? Py_False : Py_True); }

 private:
  struct Part {
    using Kind = KeyKind;
    using enum KeyKind;
    Part(PyObject* o, PyObject* seen) : object(o) {
      if (is_ndarray(o) && has_no_dims(o)) {
        item = checked(PyObject_CallMethod(o, "item", nullptr));
        object = item.get();
        return;
      }
      if (!is_tensor(o) && !is_ndarray(o) && !PyList_Check(o) && !PyTuple_Check(o)) return;
      fake = checked(PyObject_CallOneArg(seen, o));
      int64_t k = 0;
      PyObject* x = nullptr;
      if (!PyArg_ParseTuple(fake.get(), "OLL", &x, &ndim, &k)) throw PythonError();
      FB_CHECK_VALUE(k > 0 && k < kKeyKinds, "a key: there is no kind of index ", k);
      kind = static_cast<Kind>(k);
      fake = PyRef::borrow(x);
    }
    int64_t dims() const {
      if (object == Py_None || object == Py_Ellipsis || PyBool_Check(object)) return 0;
      return kind == Mask ? ndim : 1;
    }
    bool is_number() const {
      return kind == Place || (kind == Plain && PyIndex_Check(object) && !PyBool_Check(object));
    }
    static bool has_no_dims(PyObject* array) {
      return PyObject_Size(checked(PyObject_GetAttrString(array, "shape")).get()) == 0;
    }
    PyObject* object;
    PyRef item = {}, fake = {};  // of an array without dims: the number
    int64_t ndim = 0;
    Kind kind = Plain;
  };

  void add(PyObject* made) {
    PyRef held = checked(made);
    checked_int(PyList_Append(list_.get(), held.get()));
  }
  void part(const Part& p) {
    PyObject* o = p.object;
    if (p.kind == Part::Place && mixed_)
      return add(Py_BuildValue("sLO", "place", places_.dim(), p.fake.get()));
    if (p.kind != Part::Plain)
      return add(Py_BuildValue("sLO", "index", places_.slot(p.kind == Part::Mask ? p.ndim : 1),
                               p.fake.get()));
    if (PySlice_Check(o)) return slice(reinterpret_cast<PySliceObject*>(o));
    if (o == Py_None) return add(Py_BuildValue("sL", "unsqueeze", places_.next()));
    if (o == Py_Ellipsis) return places_.ellipsis();
    if (PyBool_Check(o)) {
      const int64_t d = places_.dim();
      return add(Py_BuildValue("sLLO", "truth", d, places_.slot(1), o));
    }
    if (PyIndex_Check(o)) return add(Py_BuildValue("sLO", "select", places_.dim(), o));
    no_index(o);
  }
  void slice(PySliceObject* s) {
    const int64_t d = places_.next();
    const bool step = s->step != Py_None;
    if (step && PyLong_Check(s->step))
      FB_CHECK_VALUE(PyObject_RichCompareBool(s->step, checked(PyLong_FromLong(0)).get(), Py_GT) > 0,
                     "step must be greater than zero");
    if (s->start == Py_None && s->stop == Py_None && !step) return;
    PyRef one = checked(PyLong_FromLong(1));
    add(Py_BuildValue("sLOOO", "slice", d, s->start, s->stop, step ? s->step : one.get()));
  }

  PyRef list_;
  KeyPlaces places_;
  bool mixed_ = false;
};

// _key_parts(key, ndim, seen)
PyObject* key_parts(PyObject*, PyObject* const* args, Py_ssize_t n) {
  try {
    FB_CHECK_TYPE(n == 3, "_key_parts(key, ndim, seen): expected three arguments");
    return KeyParts(args[0], to_int(args[1]), args[2]).result();
  } catch (...) {
    return raise_current();
  }
}

PyObject* overridden_get(PyObject* self, PyObject* key) {
  PyRef method =
      checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(TensorType), "__getitem__"));
  PyObject* args[] = {self, key};
  return call_torch_function(method.get(), args, 2, nullptr);
}

PyObject* get(PyObject* self, PyObject* key) {
  try {
    if (tracer) [[unlikely]]
      return call_traced("__getitem__", {self, key});
    if (!is_exact_tensor(self) && torch_function_enabled && wants_torch_function(self)) [[unlikely]]
      return overridden_get(self, key);
    const Tensor& x = unwrap(self);
    KeyReader read(x, key);
    Indexer& indexer = read.indexer;
    Tensor view = indexer.view(false);
    if (!indexer.advanced()) return wrap(std::move(view));
    return wrap(unlocked(big(view), [&] { return ops::index(view, indexer.indices()); }));
  } catch (...) {
    return raise_current();
  }
}

int set(PyObject* self, PyObject* key, PyObject* value) {
  try {
    if (!value) {
      PyErr_SetString(PyExc_TypeError, "Tensor does not support deleting items");
      return -1;
    }
    if (tracer) [[unlikely]] {
      checked(call_traced("__setitem__", {self, key, value}));
      return 0;
    }
    if (torch_function_enabled && ((!is_exact_tensor(self) && wants_torch_function(self)) ||
                                   (!is_exact_tensor(value) && wants_torch_function(value))))
        [[unlikely]] {
      PyRef method =
          checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(TensorType), "__setitem__"));
      PyObject* args[] = {self, key, value};
      checked(call_torch_function(method.get(), args, 3, nullptr));
      return 0;
    }
    const Tensor& x = unwrap(self);
    bool number = !is_tensor(value);
    FB_CHECK_TYPE(!number || is_number(value), "can't assign a ", Py_TYPE(value)->tp_name,
                  " to a torch.", scalar_type_name(x.dtype()), "Tensor");
    KeyReader read(x, key);
    if (number)
      assign(x, read.indexer, to_number(value));
    else
      assign(x, read.indexer, unwrap(value));
    return 0;
  } catch (...) {
    raise_current();
    return -1;
  }
}

Py_ssize_t length(PyObject* self) {
  const Tensor& x = unwrap(self);
  if (x.dim() > 0) return static_cast<Py_ssize_t>(x.sizes()[0]);
  PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
  return -1;
}

PyObject* iterate(PyObject* self) {
  try {
    const Tensor& x = unwrap(self);
    FB_CHECK_TYPE(x.dim() > 0, "iteration over a 0-d tensor");
    if (!is_exact_tensor(self) && torch_function_enabled && wants_torch_function(self)) {
      PyRef items = checked(PyObject_CallMethod(self, "unbind", "i", 0));
      return PyObject_GetIter(items.get());
    }
    PyRef items = checked(wrap_tuple(ops::unbind(x, 0)));
    return PyObject_GetIter(items.get());
  } catch (...) {
    return raise_current();
  }
}

int contains(PyObject* self, PyObject* value) {
  if (!is_tensor(value) && !is_number(value)) {
    PyErr_Format(PyExc_RuntimeError,
                 "Tensor.__contains__ only supports Tensor or scalar, but you passed in a %R.",
                 Py_TYPE(value));
    return -1;
  }
  PyRef equal = PyRef::steal(PyObject_RichCompare(self, value, Py_EQ));
  PyRef any = equal ? PyRef::steal(PyObject_CallMethod(equal.get(), "any", nullptr)) : PyRef();
  return any ? PyObject_IsTrue(any.get()) : -1;
}

PyObject* item_at(PyObject* self, Py_ssize_t i) {
  PyRef index = PyRef::steal(PyLong_FromSsize_t(i));
  return index ? get(self, index.get()) : nullptr;
}
}  // namespace

PyMethodDef indexing_functions[] = {
    {"_key_parts", fast(key_parts), METH_FASTCALL,
     "The parts of a key: (key, ndim, seen) -> (parts, do all index tensors select)."},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot indexing_slots[] = {
    {Py_mp_length, reinterpret_cast<void*>(length)},
    {Py_mp_subscript, reinterpret_cast<void*>(get)},
    {Py_mp_ass_subscript, reinterpret_cast<void*>(set)},
    {Py_sq_length, reinterpret_cast<void*>(length)},
    {Py_sq_item, reinterpret_cast<void*>(item_at)},
    {Py_sq_contains, reinterpret_cast<void*>(contains)},
    {Py_tp_iter, reinterpret_cast<void*>(iterate)},
    {0, nullptr},
};

}  // namespace flambeau::python
