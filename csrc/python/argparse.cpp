// Matching of call arguments to signatures. The hot path is `bind` for positional arguments of
// exact types: pointer copies and one comparison each. Messages of calls that match nothing are
// argument_errors.cpp's.
#include "python/argparse.h"

#include <cstring>

#include "python/argument_errors.h"
#include "python/module.h"
#include "python/trace_hook.h"

namespace flambeau::python {

namespace {

bool is_numpy_scalar(PyObject* o) {
  const char* name = Py_TYPE(o)->tp_name;
  return std::strncmp(name, "numpy.", 6) == 0 && std::strcmp(name + 6, "ndarray") != 0 &&
         Py_TYPE(o)->tp_as_number && Py_TYPE(o)->tp_as_number->nb_float;
}
bool is_numpy_bool(PyObject* o) {
  const char* name = Py_TYPE(o)->tp_name;
  return std::strcmp(name, "numpy.bool") == 0 || std::strcmp(name, "numpy.bool_") == 0;
}
bool has_index(PyObject* o) {
  return PyIndex_Check(o) && !is_tensor(o) && !is_numpy_bool(o);
}
bool is_single(PyObject* o) {
  return is_tensor(o) && unwrap(o).numel() == 1 && !unwrap(o).requires_grad();
}
// A tensor of one element with dims is no number to PyTorch, but a size it may be.
bool is_scalar(PyObject* o) {
  return is_single(o) && unwrap(o).dim() == 0;
}

bool is_size(PyObject* o) {
  if (PyLong_Check(o)) return !PyBool_Check(o);
  if (is_tensor(o)) return is_single(o) && unwrap(o).is_integral();
  return has_index(o);
}
bool is_int(PyObject* o) {
  return is_size(o) && (!is_tensor(o) || unwrap(o).dim() == 0);
}
bool is_float(PyObject* o) {
  return PyFloat_Check(o) || PyLong_Check(o) || is_scalar(o) || is_numpy_scalar(o) ||
         has_index(o) || is_symbolic(o);
}

template <class F>
bool all_items(PyObject* o, F accepts) {
  if (!PyList_Check(o) && !PyTuple_Check(o)) return false;
  PyObject** items = PySequence_Fast_ITEMS(o);
  for (Py_ssize_t i = 0, n = PySequence_Fast_GET_SIZE(o); i < n; ++i)
    if (!accepts(items[i])) return false;
  return true;
}

bool accepts_tensor(PyObject* o, bool& overridden) {
  if (is_exact_tensor(o)) [[likely]]
    return true;
  if (wants_torch_function(o)) return overridden = true;
  return is_tensor(o);
}

}  // namespace

bool is_number(PyObject* o) noexcept {
  return PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o) || is_numpy_scalar(o) ||
         is_numpy_bool(o) || is_symbolic(o);
}

bool accepts(const Param& p, PyObject* o, bool& overridden) {
  if (o == Py_None) return p.none;
  switch (p.type) {
    case Arg::Tensor:
      return accepts_tensor(o, overridden);
    case Arg::TensorOrNumber:
      return accepts_tensor(o, overridden) || is_number(o);
    case Arg::Tensors:
      return o == kVarargs ||
             all_items(o, [&](PyObject* x) { return accepts_tensor(x, overridden); });
    case Arg::OptTensors:
      return all_items(o,
                       [&](PyObject* x) { return x == Py_None || accepts_tensor(x, overridden); });
    case Arg::Int:
      return is_int(o);
    case Arg::Size:
      return is_size(o);
    case Arg::Float:
      return is_float(o);
    case Arg::Bool:
      return PyBool_Check(o) || is_numpy_bool(o);
    case Arg::Str:
      return PyUnicode_Check(o);
    case Arg::Number:
      return is_number(o) || is_scalar(o);
    case Arg::Ints:
      return o == kVarargs || is_size(o) || all_items(o, is_size);
    case Arg::Floats:
      return all_items(o, is_float) || is_float(o);
    case Arg::Bools:
      return all_items(o, [](PyObject* x) { return PyBool_Check(x); });
    case Arg::Numbers:
      return all_items(o, [](PyObject* x) { return is_number(x) || is_scalar(x); });
    case Arg::DType:
      return is_dtype(o) || o == reinterpret_cast<PyObject*>(&PyFloat_Type) ||
             o == reinterpret_cast<PyObject*>(&PyLong_Type) ||
             o == reinterpret_cast<PyObject*>(&PyBool_Type) ||
             o == reinterpret_cast<PyObject*>(&PyComplex_Type);
    case Arg::Device:
      return is_device(o) || PyUnicode_Check(o) || is_int(o);
    case Arg::Layout:
      return Py_TYPE(o) == &LayoutType;
    case Arg::MemoryFormat:
      return Py_TYPE(o) == &MemoryFormatType;
    case Arg::Generator:
      return Py_TYPE(o) == &GeneratorType;
    case Arg::Object:
      return true;
  }
  return false;
}

static PyObject varargs_mark{};
PyObject* const kVarargs = &varargs_mark;

namespace {
// NumPy's spellings that are understood beside PyTorch's.
constexpr struct {
  const char *alias, *name;
} kAliases[] = {
    {"axis", "dim"}, {"keepdims", "keepdim"}, {"x", "input"},
    {"a", "input"},  {"x1", "input"},         {"x2", "other"},
};
}  // namespace

int find_keyword(Signature& s, PyObject* key) {
  for (int i = 0; i < s.count; ++i) {
    Param& p = s.params[i];
    if (!p.key) p.key = PyUnicode_InternFromString(p.name);
    if (p.key == key) return i;
  }
  for (int i = 0; i < s.count; ++i)
    if (PyUnicode_Compare(s.params[i].key, key) == 0) return i;
  for (auto& [alias, name] : kAliases)
    if (PyUnicode_CompareWithASCIIString(key, alias) == 0)
      for (int i = 0; i < s.count; ++i)
        if (std::strcmp(s.params[i].name, name) == 0) return i;
  // The first parameter answers to both its names.
  if (s.count &&
      (std::strcmp(s.params[0].name, "self") == 0 || std::strcmp(s.params[0].name, "input") == 0) &&
      (PyUnicode_CompareWithASCIIString(key, "self") == 0 ||
       PyUnicode_CompareWithASCIIString(key, "input") == 0))
    return 0;
  return -1;
}

bool takes_varargs(const Signature& s, int base) {
  return s.positional == base + 1 && s.params[base].type == Arg::Ints;
}

bool spreads_tensors(const Signature& s, PyObject* const* args, int base, Py_ssize_t nargs) {
  int last = s.positional - 1;
  if (last < 0 || s.params[last].type != Arg::Tensors || !s.params[last].length) [[likely]]
    return false;
  if (base + nargs <= last) return false;
  PyObject* first = args[last - base];
  return base + nargs > last + 1 || !(PyList_Check(first) || PyTuple_Check(first));
}

namespace {
bool bind(Signature& s, PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
          Args& out, bool& overridden) {
  PyObject** slot = out.slot;
  int base = 0;
  if (self) {
    slot[0] = self;
    base = 1;
    if (!is_exact_tensor(self) && wants_torch_function(self)) [[unlikely]]
      overridden = true;
  }
  int count = s.count;
  int given = base + static_cast<int>(nargs);
  if (spreads_tensors(s, args, base, nargs)) [[unlikely]] {
    int last = s.positional - 1;
    for (int i = base; i < last; ++i) slot[i] = args[i - base];
    out.varargs = args + (last - base);
    out.nvarargs = nargs - (last - base);
    for (Py_ssize_t i = 0; i < out.nvarargs; ++i)
      if (!accepts_tensor(out.varargs[i], overridden)) return false;
    slot[last] = kVarargs;
    given = s.positional;
  } else if (given > s.positional) [[unlikely]] {
    if (!takes_varargs(s, base)) return false;
    for (Py_ssize_t i = 0; i < nargs; ++i)
      if (!is_size(args[i])) return false;
    slot[base] = kVarargs;
    out.varargs = args;
    out.nvarargs = nargs;
    given = base + 1;
  } else {
    for (Py_ssize_t i = 0; i < nargs; ++i) slot[base + i] = args[i];
  }
  for (int i = given; i < count; ++i) slot[i] = nullptr;
  if (kwnames) {
    for (Py_ssize_t k = 0, n = PyTuple_GET_SIZE(kwnames); k < n; ++k) {
      int i = find_keyword(s, PyTuple_GET_ITEM(kwnames, k));
      if (i < 0 || slot[i]) return false;
      slot[i] = args[nargs + k];
    }
  }
  for (int i = base; i < count; ++i) {
    PyObject* o = slot[i];
    if (!o) {
      if (s.params[i].required) return false;
    } else if (!accepts(s.params[i], o, overridden)) {
      return false;
    }
  }
  if (s.needs_tensor && !self) {
    int i = 0;
    while (i < count && !(s.params[i].type == Arg::TensorOrNumber && !is_number(slot[i]))) ++i;
    return i < count;
  }
  return true;
}

[[gnu::cold, gnu::noinline]] PyObject* hand_over(const Binding& b, PyObject* self,
                                                 PyObject* const* args, Py_ssize_t nargs,
                                                 PyObject* kwnames) {
  PyRef function = PyRef::steal(function_of(b, self != nullptr));
  if (!function) return nullptr;
  if (!self) return call_torch_function(function.get(), args, nargs, kwnames);
  std::vector<PyObject*> all{self};
  all.insert(all.end(), args, args + nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0));
  return call_torch_function(function.get(), all.data(), nargs + 1, kwnames);
}
}  // namespace

PyObject* function_of(const Binding& b, bool method) {
  if (method) return PyObject_GetAttrString(reinterpret_cast<PyObject*>(TensorType), b.name);
  PyRef module = PyRef::steal(import_module(module_of(b.module).c_str()));
  return module ? PyObject_GetAttrString(module.get(), b.name) : nullptr;
}

static bool warn_of_old_order(const Binding& b, const OldOrder& old) {
  const char* now = b.signatures[old.stands_for].text;
  return PyErr_WarnFormat(PyExc_UserWarning, 1,
                          "%s: this order of arguments is deprecated, write %s%s", b.name, b.name,
                          now) == 0;
}

namespace {
// The reduction that two old arguments name, None counting as True, with a warning; what was given
// where there are none. "elementwise_mean" is "mean".
PyObject* reduction_of(PyObject* average, PyObject* reduce, PyObject* given) {
  static PyObject* const names[] = {PyUnicode_InternFromString("none"),
                                    PyUnicode_InternFromString("mean"),
                                    PyUnicode_InternFromString("sum")};
  bool old = (average && average != Py_None) || (reduce && reduce != Py_None);
  if (old) {
    given = reduce == Py_False ? names[0] : average == Py_False ? names[2] : names[1];
    checked_int(PyErr_WarnFormat(PyExc_UserWarning, 1,
                                 "size_average and reduce args will be deprecated, please use "
                                 "reduction='%U' instead.",
                                 given));
  } else if (given && PyUnicode_CompareWithASCIIString(given, "elementwise_mean") == 0) {
    given = names[1];
    checked_int(PyErr_WarnEx(PyExc_UserWarning,
                             "reduction='elementwise_mean' is deprecated. Please use "
                             "reduction='mean' instead.",
                             1));
  }
  return given;
}

int match_front(const Binding& b, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames,
                Args& out) {
  Front& f = *b.front;
  bool overridden = false;
  Args given;
  if (!bind(f.given, nullptr, args, nargs, kwnames, given, overridden)) [[unlikely]] {
    if (!PyErr_Occurred())
      raise_mismatch({b.name, b.module, &f.given, 1, false}, nullptr, args, nargs, kwnames);
    return -1;
  }
  if (overridden && torch_function_enabled) return -2;
  PyObject* flag = f.flag == Front::none ? nullptr : given[f.flag];
  int chosen = flag && flag != Py_False ? to_bool(flag) : 0;
  const Signature& s = b.signatures[chosen];
  for (int k = 0; k < s.count; ++k)
    out.slot[k] = f.place[k] == Front::none ? nullptr : given[f.place[k]];
  if (f.reduction != Front::none) {
    auto at = [&](uint8_t i) { return i == Front::none ? nullptr : given[i]; };
    PyObject* reduction = reduction_of(at(f.average), at(f.reduce), given[f.reduction]);
    for (int k = 0; k < s.count; ++k)
      if (f.place[k] == f.reduction) out.slot[k] = reduction;
  }
  out.varargs = given.varargs, out.nvarargs = given.nvarargs;
  return chosen;
}
}  // namespace

int match(const Binding& b, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
          PyObject* kwnames, Args& out) {
  if (b.front) return match_front(b, args, nargs, kwnames, out);
  for (int i = 0; i < b.count; ++i) {
    bool overridden = false;
    if (bind(b.signatures[i], self, args, nargs, kwnames, out, overridden)) [[likely]]
      return overridden && torch_function_enabled ? -2 : i;
  }
  for (int i = 0; i < b.old_count; ++i) {
    OldOrder& old = b.old_orders[i];
    bool overridden = false;
    Args given;
    if (PyErr_Occurred() || !bind(old.given, self, args, nargs, kwnames, given, overridden))
      continue;
    for (int k = 0; k < old.given.count; ++k) out.slot[k] = given[old.place[k]];
    if (!warn_of_old_order(b, old)) return -1;
    return overridden && torch_function_enabled ? -2 : old.stands_for;
  }
  if (!PyErr_Occurred()) raise_mismatch(b, self, args, nargs, kwnames);
  return -1;
}

PyObject* call_binding(const Binding& b, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                       PyObject* kwnames) noexcept {
  try {
    if (tracer) [[unlikely]]
      return call_traced(b, self, args, nargs, kwnames);
    Args a;
    int i = match(b, self, args, nargs, kwnames, a);
    if (i >= 0) [[likely]]
      return b.signatures[i].call(a);
    return i == -1 ? nullptr : hand_over(b, self, args, nargs, kwnames);
  } catch (...) {
    return raise_current();
  }
}

// Conversions
// ---------------------------------------------------------------------------------------------------------

void TensorArg::convert(PyObject* o) {
  if (is_tensor(o)) {
    p_ = &unwrap(o);
    return;
  }
  own_ = wrapped_number(to_number(o));
  p_ = &own_;
}

OptTensor to_opt_tensor(PyObject* o) {
  if (!o || o == Py_None) return std::nullopt;
  return unwrap(o);
}

namespace {
// Items of a list or tuple. Converting one may run Python code that changes the list: each is
// looked up anew and held meanwhile.
template <class F>
void each_item(PyObject* o, F f) {
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
    PyRef item = PyRef::borrow(PySequence_Fast_ITEMS(o)[i]);
    f(item.get());
  }
}
}  // namespace

Tensors to_tensors(PyObject* o) {
  Tensors out;
  out.reserve(PySequence_Fast_GET_SIZE(o));
  each_item(o, [&](PyObject* x) {
    FB_CHECK_TYPE(is_tensor(x), "expected a list of tensors, got an item of type ",
                  Py_TYPE(x)->tp_name);
    out.push_back(unwrap(x));
  });
  return out;
}

Tensors to_tensors(const Args& a, int i) {
  if (a.slot[i] != kVarargs) return to_tensors(a.slot[i]);
  Tensors out;
  out.reserve(a.nvarargs);
  for (Py_ssize_t k = 0; k < a.nvarargs; ++k) out.push_back(unwrap(a.varargs[k]));
  return out;
}

OptTensors to_opt_tensors(PyObject* o) {
  OptTensors out;
  out.reserve(PySequence_Fast_GET_SIZE(o));
  each_item(o, [&](PyObject* x) {
    FB_CHECK_TYPE(x == Py_None || is_tensor(x), "expected a list of tensors, got an item of type ",
                  Py_TYPE(x)->tp_name);
    out.push_back(to_opt_tensor(x));
  });
  return out;
}

namespace {
[[noreturn, gnu::cold]] void too_wide(PyObject* o, ErrorKind kind) {
  PyErr_Clear();
  PyRef bits = checked(PyObject_CallMethod(o, "bit_length", nullptr));
  fail(kind, "Overflow when unpacking long long: int too big to convert, it has ",
       PyLong_AsLong(bits.get()), " bits");
}

int64_t to_int(PyObject* o, ErrorKind error) {
  if (PyLong_CheckExact(o)) [[likely]] {
    long long x = PyLong_AsLongLong(o);
    if (x == -1 && PyErr_Occurred()) [[unlikely]]
      too_wide(o, error);
    return x;
  }
  PyRef index = checked(PyNumber_Index(o));
  int overflow;
  long long x = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (overflow) too_wide(index.get(), error);
  return x;
}
}  // namespace

int64_t to_int(PyObject* o) {
  return to_int(o, ErrorKind::Value);
}

double to_float(PyObject* o) {
  double x = PyFloat_AsDouble(o);
  if (x == -1.0 && PyErr_Occurred()) throw PythonError();
  return x;
}

bool to_bool(PyObject* o) {
  if (o == Py_True) return true;
  if (o == Py_False) return false;
  int truth = PyObject_IsTrue(o);
  checked_int(truth);
  return truth;
}

std::string to_str(PyObject* o) {
  Py_ssize_t n;
  const char* text = PyUnicode_AsUTF8AndSize(o, &n);
  if (!text) throw PythonError();
  return std::string(text, n);
}

namespace {
Scalar integer_scalar(PyObject* o) {
  int overflow;
  long long x = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (!overflow) return Scalar(static_cast<int64_t>(x));
  if (overflow > 0) {
    unsigned long long u = PyLong_AsUnsignedLongLong(o);
    if (!PyErr_Occurred()) return Scalar(static_cast<uint64_t>(u));
  }
  too_wide(o, ErrorKind::Overflow);
}
}  // namespace

Scalar to_number(PyObject* o) {
  if (PyFloat_Check(o)) return Scalar(PyFloat_AS_DOUBLE(o));
  if (PyBool_Check(o)) return Scalar(o == Py_True);
  if (PyLong_Check(o)) return integer_scalar(o);
  if (PyComplex_Check(o))
    return Scalar(complex128(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)));
  if (is_tensor(o)) return unwrap(o).item();
  if (is_numpy_bool(o)) return Scalar(to_bool(o));
  if (PyIndex_Check(o)) return integer_scalar(checked(PyNumber_Index(o)).get());
  if (std::strncmp(Py_TYPE(o)->tp_name, "numpy.c", 7) == 0) {
    Py_complex z = PyComplex_AsCComplex(o);
    if (PyErr_Occurred()) throw PythonError();
    return Scalar(complex128(z.real, z.imag));
  }
  return Scalar(to_float(o));
}

Ints to_ints(PyObject* o, int length) {
  Ints out;
  if (PyList_Check(o) || PyTuple_Check(o)) {
    out.reserve(PySequence_Fast_GET_SIZE(o));
    each_item(o, [&](PyObject* x) { out.push_back(to_int(x, ErrorKind::Type)); });
    if (length > 1 && out.size() == 1) out.resize(length, out[0]);  // as an int would
  } else {
    out.resize(length ? length : 1, to_int(o));
  }
  return out;
}

Ints to_ints(const Args& a, int i, int length) {
  if (a.slot[i] != kVarargs) return to_ints(a.slot[i], length);
  Ints out;
  out.reserve(a.nvarargs);
  for (Py_ssize_t k = 0; k < a.nvarargs; ++k) out.push_back(to_int(a.varargs[k], ErrorKind::Type));
  return out;
}

std::optional<Ints> optional_ints(const Args& a, int i, int length) {
  if (!a[i] || a[i] == Py_None) return std::nullopt;
  return to_ints(a, i, length);
}

std::vector<double> to_floats(PyObject* o) {
  if (!PyList_Check(o) && !PyTuple_Check(o)) return {to_float(o)};
  std::vector<double> out;
  each_item(o, [&](PyObject* x) { out.push_back(to_float(x)); });
  return out;
}

std::vector<bool> to_bools(PyObject* o) {
  std::vector<bool> out;
  each_item(o, [&](PyObject* x) { out.push_back(to_bool(x)); });
  return out;
}

std::vector<Scalar> to_numbers(PyObject* o) {
  std::vector<Scalar> out;
  each_item(o, [&](PyObject* x) { out.push_back(to_number(x)); });
  return out;
}

DType to_dtype(PyObject* o) {
  if (is_dtype(o)) [[likely]]
    return reinterpret_cast<DTypeObject*>(o)->value;
  if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::Float64;
  if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::Int64;
  if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::Bool;
  if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) return DType::Complex128;
  fail(ErrorKind::Type, "dtype must be torch.dtype, not ", Py_TYPE(o)->tp_name);
}

Device to_device(PyObject* o) {
  if (is_device(o)) return reinterpret_cast<DeviceObject*>(o)->value;
  if (PyUnicode_Check(o)) return to_str(o);
  int64_t i = to_int(o);
  FB_CHECK(i >= 0 && i < 128, "Device index must not be negative");
  return {DeviceType::CUDA, static_cast<int8_t>(i)};
}

Layout to_layout(PyObject* o) {
  return reinterpret_cast<LayoutObject*>(o)->value;
}
MemoryFormat to_memory_format(PyObject* o) {
  return reinterpret_cast<MemoryFormatObject*>(o)->value;
}
Generator to_generator(PyObject* o) {
  return reinterpret_cast<GeneratorObject*>(o)->value;
}

}  // namespace flambeau::python
