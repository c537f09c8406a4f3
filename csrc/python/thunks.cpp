#include "python/thunks.h"

#include <structmember.h>
#include <structseq.h>

#include <cstring>

#include "autograd/meta.h"

namespace flambeau::python {

Tensors to_outputs(PyObject* o, size_t count, const char* op) {
  Tensors out = to_tensors(o);
  FB_CHECK_TYPE(out.size() == count, op, "(): argument 'out' must be tuple of ", count,
                " Tensors, not of ", out.size());
  return out;
}

void refuse_cuda() {
  PyErr_SetString(PyExc_AssertionError, "Torch not compiled with CUDA enabled");
  throw PythonError();
}

Device to_usable_device(PyObject* o) {
  Device d = to_device(o);
  if (d.type() == DeviceType::CUDA) [[unlikely]]
    refuse_cuda();
  return Device{d.type()};  // there is one of each
}

PyObject* pack_factory(Tensor&& t, const Args& a, int extras) {
  if (given(a[extras]))
    FB_CHECK_IMPL(to_layout(a[extras]) == Layout::Strided,
                  "only layout torch.strided is supported by factories");
  if (given(a[extras + 1]))
    FB_CHECK(!to_bool(a[extras + 1]), "Cannot access accelerator device when none is available.");
  if (given(a[extras + 2]) && to_bool(a[extras + 2])) set_requires_grad(t, true);
  return wrap(std::move(t));
}

PyObject* pack(const OptTensors& ts) {
  PyRef tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(ts.size())));
  for (size_t i = 0; i < ts.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), i, checked(pack(ts[i])).release());
  return tuple.release();
}

PyObject* pack(const std::string& s) {
  return PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()));
}

PyObject* tuple_of(std::initializer_list<PyObject*> items) {
  PyRef tuple = PyRef::steal(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
  bool good = bool(tuple);
  Py_ssize_t i = 0;
  for (PyObject* item : items) {
    good &= item != nullptr;
    if (tuple)
      PyTuple_SET_ITEM(tuple.get(), i++, item);
    else
      Py_XDECREF(item);
  }
  return good ? tuple.release() : nullptr;
}

namespace {
// torch.return_types.max(
// values=tensor(2),
// indices=tensor(0))
PyObject* result_repr(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  const char* dot = std::strrchr(type->tp_name, '.');
  PyRef text =
      PyRef::steal(PyUnicode_FromFormat("torch.return_types.%s(\n", dot ? dot + 1 : type->tp_name));
  for (Py_ssize_t i = 0; text && i < PyTuple_GET_SIZE(self); ++i) {
    const char* end = i + 1 < PyTuple_GET_SIZE(self) ? ",\n" : ")";
    text = PyRef::steal(PyUnicode_FromFormat("%U%s=%R%s", text.get(), type->tp_members[i].name,
                                             PyTuple_GET_ITEM(self, i), end));
  }
  return text.release();
}
}  // namespace

PyObject* asked_of(std::initializer_list<PyObject*> items, std::initializer_list<bool> asked) {
  PyObject* kept[8];
  Py_ssize_t n = 0;
  bool good = true;
  const bool* wanted = asked.begin();
  for (PyObject* item : items) {
    good &= item != nullptr;
    if (*wanted++)
      kept[n++] = item;
    else
      Py_XDECREF(item);
  }
  if (good && n == 1) return kept[0];
  PyObject* tuple = good ? PyTuple_New(n) : nullptr;
  for (Py_ssize_t i = 0; i < n; ++i)
    if (tuple)
      PyTuple_SET_ITEM(tuple, i, kept[i]);
    else
      Py_XDECREF(kept[i]);
  return tuple;
}

PyObject* ResultType::make(std::initializer_list<PyObject*> items) {
  if (!type_) {
    // The description must outlive the type, as the type does the process.
    auto* members = new PyStructSequence_Field[fields_.size() + 1]{};
    size_t i = 0;
    for (const char* f : fields_) members[i++].name = f;
    auto* name = new std::string(concat("flambeau.return_types.", name_));
    PyStructSequence_Desc desc = {name->c_str(), nullptr, members,
                                  static_cast<int>(fields_.size())};
    type_ = PyStructSequence_NewType(&desc);
    if (type_) {
      type_->tp_repr = result_repr;
      type_->tp_str = result_repr;
    }
  }
  PyObject* result = type_ ? PyStructSequence_New(type_) : nullptr;
  bool good = result != nullptr;
  Py_ssize_t i = 0;
  for (PyObject* item : items) {
    good &= item != nullptr;
    if (result)
      PyStructSequence_SET_ITEM(result, i++, item);
    else
      Py_XDECREF(item);
  }
  if (good) return result;
  Py_XDECREF(result);
  return nullptr;
}

}  // namespace flambeau::python
