// x[key] and x[key] = value. A key is read once, from left to right: numbers, slices, None and ...
// become views, and index tensors (also from lists and arrays) are collected by the dimension they
// stand for, for ops::index.
//
// Note [Views in one step]
// Several views of one key (x[1:3, ::2]) need no operation each when nothing is recorded: their
// geometry is worked out here and one alias is made, marked as a view of x. Otherwise each is a
// call of the table's operation.
#include <cstring>

#include "autograd/node.h"
#include "gen/ops.h"
#include "kernels/copy.h"
#include "python/argparse.h"
#include "profiler/events.h"
#include "python/factories.h"
#include "python/module.h"
#include "python/thunks.h"
#include "python/trace_hook.h"

namespace flambeau::python {

namespace {

// The result of the views of a key so far.
class ViewBuilder {
 public:
  explicit ViewBuilder(const Tensor& x) : base_(x), stepwise_(intercepted() || needs_grad(x) || profiler::is_open()) {
    if (stepwise_)
      current_ = x;
    else
      sizes_ = x.sizes(), strides_ = x.strides(), offset_ = x.offset();
  }
  int64_t ndim() const { return static_cast<int64_t>(sizes().size()); }
  int64_t size(int64_t d) const { return sizes()[d]; }
  // Masks that are no tensors yet (lists, arrays) turn out to cover more dims than were counted.
  void need(int64_t d) const {
    FB_CHECK_INDEX(d < ndim(), "too many indices for tensor of dimension ", base_.dim());
  }

  void select(int64_t d, int64_t i) {
    need(d);
    int64_t n = size(d);
    FB_CHECK_INDEX(i >= -n && i < n, "index ", i, " is out of bounds for dimension ", dim_shown(d),
                   " with size ", n);
    changed_ = true;
    if (stepwise_) {
      current_ = ops::select(current_, d, i);
    } else {
      offset_ += strides_[d] * (i < 0 ? i + n : i);
      sizes_.erase(&sizes_[d]);
      strides_.erase(&strides_[d]);
    }
    ++dropped_;
  }
  void slice(int64_t d, int64_t start, int64_t stop, int64_t step) {  // already within [0, size]
    if (start == 0 && stop == size(d) && step == 1) return;
    changed_ = true;
    if (stepwise_) {
      current_ = ops::slice(current_, d, start, stop, step);
      return;
    }
    offset_ += start * strides_[d];
    const int64_t by = ops::_step_among(step, sizes_[d]);
    sizes_[d] = stop > start ? (stop - start - 1) / by + 1 : 0;
    int64_t stride;  // of one entry when it overflows: never walked
    strides_[d] = __builtin_mul_overflow(strides_[d], by, &stride) ? 1 : stride;
  }
  void unsqueeze(int64_t d) {
    FB_CHECK_INDEX(d <= ndim(), "too many indices for tensor of dimension ", base_.dim());
    changed_ = true;
    --dropped_;
    if (stepwise_) {
      current_ = ops::unsqueeze(current_, d);
      return;
    }
    int64_t stride = d < ndim() ? sizes_[d] * strides_[d] : 1;
    sizes_.insert(sizes_.begin() + d, 1);
    strides_.insert(strides_.begin() + d, stride);
  }
  // The view; x itself when nothing was asked for and `same_allowed`.
  Tensor finish(bool same_allowed) {
    if (!changed_ && same_allowed) return base_;
    if (stepwise_) return changed_ ? current_ : ops::alias(base_);
    Tensor out = alias(base_, sizes_, strides_, offset_);
    mark_view(out, base_);
    return out;
  }

 private:
  const Ints& sizes() const { return stepwise_ ? current_.sizes() : sizes_; }
  int64_t dim_shown(int64_t d) const { return d + (dropped_ > 0 ? dropped_ : 0); }

  const Tensor& base_;
  bool stepwise_, changed_ = false;
  int64_t dropped_ = 0;  // dims of x that are gone, for messages
  Tensor current_;
  Ints sizes_, strides_;
  int64_t offset_ = 0;
};

bool is_ndarray(PyObject* o) {
  return std::strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") == 0;
}
bool is_bool_like(const Tensor& t) {
  return t.dtype() == DType::Bool || t.dtype() == DType::UInt8;
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

// One key applied to one tensor.
class Indexer {
 public:
  explicit Indexer(const Tensor& x) : x_(x), views_(x) {}

  void run(PyObject* key) {
    if (!acts_as_tuple(key)) {
      need(key, dims_of(key));
      part(key);
      return;
    }
    // A tuple, for reading a part may run Python code that would change a list.
    PyRef parts = readable(checked(PySequence_Tuple(key)));
    Py_ssize_t n = PyTuple_GET_SIZE(parts.get());
    int64_t given = 0;
    for (Py_ssize_t i = 0; i < n; ++i) given += dims_of(PyTuple_GET_ITEM(parts.get(), i));
    need(key, given);
    left_over_ = x_.dim() - given;
    for (Py_ssize_t i = 0; i < n; ++i) part(PyTuple_GET_ITEM(parts.get(), i));
  }
  bool advanced() const { return !indices_.empty(); }
  Tensor view(bool same_allowed) { return views_.finish(same_allowed || advanced()); }
  const OptTensors& indices() const { return indices_; }

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
      return is_bool_like(t) ? t.dim() : 1;
    }
    return 1;
  }
  void need(PyObject* key, int64_t given) {
    bool single_number =
        PyIndex_Check(key) && !PyBool_Check(key) && !(is_tensor(key) && unwrap(key).dim() > 0);
    if (x_.dim() == 0 && single_number && given > 0)
      fail(
          ErrorKind::Index,
          "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in "
          "C++ to convert a 0-dim tensor to a number");
    FB_CHECK_INDEX(given <= x_.dim(), "too many indices for tensor of dimension ", x_.dim());
  }

  void part(PyObject* o) {
    if (PyLong_CheckExact(o)) return views_.select(dim_, to_int(o));
    if (PySlice_Check(o)) return slice(o);
    if (o == Py_None) return views_.unsqueeze(dim_++);
    if (o == Py_Ellipsis) {
      dim_ += left_over_;
      left_over_ = 0;
      return;
    }
    if (PyBool_Check(o)) return truth(o == Py_True);
    if (is_tensor(o)) return tensor(unwrap(o));
    if (is_ndarray(o)) return tensor(tensor_from_numpy(o, false));
    if (PyIndex_Check(o)) return views_.select(dim_, to_int(checked(PyNumber_Index(o)).get()));
    if (PySequence_Check(o)) return tensor(index_tensor(o));
    fail(ErrorKind::Index,
         "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
         "indices (got ",
         Py_TYPE(o)->tp_name, ")");
  }
  void slice(PyObject* o) {
    Py_ssize_t start, stop, step;
    checked_int(PySlice_Unpack(o, &start, &stop, &step));
    FB_CHECK_VALUE(step > 0, "step must be greater than zero");
    views_.need(dim_);
    PySlice_AdjustIndices(views_.size(dim_), &start, &stop, step);
    if (stop < start) stop = start;
    views_.slice(dim_++, start, stop, step);
  }
  void truth(bool on) {
    views_.unsqueeze(dim_);
    Tensor t = on ? scalar_tensor(0, DType::Int64) : empty({0}, DType::Int64);
    if (on) t = alias(t, {1}, {1}, 0);
    at(dim_++, t);
  }
  void tensor(const Tensor& t) {
    if (t.dim() == 0 && !t.has_flag(kWrapper)) {
      if (is_bool_like(t)) return truth(t.item().to_int() != 0);
      if (t.is_integral()) return views_.select(dim_, t.item().to_int());
    }
    int64_t covered = is_bool_like(t) ? t.dim() : 1;
    at(dim_, t);
    dim_ += covered;
    extra_ += covered - 1;
  }
  // Masks of several dims take one entry: ops::index counts their dims itself.
  void at(int64_t d, const Tensor& t) {
    indices_.resize(static_cast<size_t>(d - extra_));
    indices_.push_back(t);
  }

  const Tensor& x_;
  ViewBuilder views_;
  OptTensors indices_;
  int64_t dim_ = 0, left_over_ = 0, extra_ = 0;
};

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
    Indexer indexer(x);
    indexer.run(key);
    Tensor view = indexer.view(false);
    if (!indexer.advanced()) return wrap(std::move(view));
    return wrap(unlocked(big(view), [&] { return ops::index(view, indexer.indices()); }));
  } catch (...) {
    return raise_current();
  }
}

// The value's leading dims of size 1 do not count: x[0:2] = ones(1, 1, 1, 3) works.
Tensor without_leading_ones(const Tensor& value, int64_t ndim) {
  Ints sizes = value.sizes();
  int64_t drop = 0;
  while (static_cast<int64_t>(sizes.size()) - drop > ndim && sizes[drop] == 1) ++drop;
  if (drop == 0) return value;
  return ops::view(value, Ints(sizes.begin() + drop, sizes.end()));
}

// A number as an entry of a dtype: in half formats too large a one becomes an infinity.
Scalar assigned(PyObject* value, DType d) {
  Scalar x = to_number(value);
  return is_reduced_float(d) && !x.is_complex() ? Scalar(kernels::held(d, x.to_double())) : x;
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
    Indexer indexer(x);
    indexer.run(key);
    Tensor view = indexer.view(true);
    if (indexer.advanced()) {
      Tensor v = number ? scalar_tensor(assigned(value, x.dtype()), x.dtype()) : unwrap(value);
      ops::index_put_(view, indexer.indices(), v, false);
    } else if (number) {
      ops::fill_(view, assigned(value, x.dtype()));
    } else {
      ops::copy_(view, without_leading_ones(unwrap(value), view.dim()));
    }
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
