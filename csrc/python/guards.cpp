// See guards.h. The tree is described by nested tuples, see `Guards::parse`;
// flambeau/_capture/sources.py writes them, and the texts that name a failed check.
#include "python/guards.h"

#include <algorithm>
#include <bit>
#include <string>

#include "autograd/node.h"
#include "core/promotion.h"
#include "dispatch/modes.h"
#include "gen/enumerations.h"
#include "python/spec.h"
#include "python/tensor_object.h"
#include "python/tree.h"
#include "python/types.h"
#include "runtime/formula.h"

namespace flambeau::python {
namespace {

struct Name {
  PyRef key, value, text;  // value: null where the name is absent
};

struct TensorFacts {
  DType dtype;
  Device device;
  bool requires_grad;
  Ints sizes, strides;  // -1 (sizes) and kAny (strides): free
  int64_t offset;
};
constexpr int64_t kAny = INT64_MIN;

struct Check {
  CheckKind kind;
  PyRef value, text;
  int64_t number = 0;
  std::unique_ptr<TensorFacts> tensor;
  uint64_t version = 0;  // Absent, Names: of the dictionary when it was last looked at
  std::vector<Name> names;
};

// Its key: an index (Local, Closure, Item), the object (Constant), any hashable (Dict), a name
// (Attribute).
struct Place {
  Access access;
  int64_t index = 0;
  int slot = -1;
  PyRef key, text;
  std::vector<Check> checks;
  std::vector<Place> children;
  // Dict: what was found last, and in which state of which dictionary. A version is unique.
  uint64_t version = 0;
  PyObject* last = nullptr;
};

// Python 3.12 still keeps the tag, and says that 3.13 will not.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
uint64_t version_of(PyObject* dict) {
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
}
#pragma GCC diagnostic pop

// Where a symbol's value is found.
struct SymbolPlace {
  int slot;
  SymbolKind kind;
  int64_t dim;
};

}  // namespace

class Guards {
 public:
  // (roots, slots, same, distinct, symbols, relations, modes)
  explicit Guards(PyObject* spec);
  bool run(const FrameValues& frame, std::vector<PyRef>& slots);
  PyRef failed;  // what the last failed run stumbled over (borrowed by no one)

 private:
  static Place parse(PyObject* spec);
  bool visit(Place& place, PyObject* parent, const FrameValues& frame, std::vector<PyRef>& slots);
  bool check(Check& c, PyObject* value);
  bool related(const std::vector<PyRef>& slots);
  bool modes_match() const;

  std::vector<Place> roots_;
  int slots_;
  std::vector<std::pair<int, int>> same_;
  std::vector<int> distinct_;
  std::vector<SymbolPlace> symbols_;
  std::vector<runtime::Condition> relations_;
  Modes modes_;
  DType default_dtype_;
  std::vector<int64_t> values_;
};

namespace {

Ints optional_ints(PyObject* sequence, int64_t free) {
  Ints out;
  each(sequence, [&](PyObject* o) { out.push_back(o == Py_None ? free : integer(o)); });
  return out;
}

Check parse_check(PyObject* spec) {
  Check c;
  c.kind = static_cast<CheckKind>(integer(item(spec, 0)));
  PyObject* value = item(spec, 1);
  c.value = PyRef::borrow(value);
  c.text = PyRef::borrow(item(spec, 2));
  if (c.kind == CheckKind::Length) c.number = integer(value);
  if (c.kind == CheckKind::Names)  // (name, text), or (name, text, object)
    each(value, [&](PyObject* o) {
      PyObject* object = PyTuple_GET_SIZE(o) > 2 ? item(o, 2) : nullptr;
      c.names.push_back({PyRef::borrow(item(o, 0)), object ? PyRef::borrow(object) : PyRef(),
                         PyRef::borrow(item(o, 1))});
    });
  if (c.kind == CheckKind::Tensor) {  // (type, example, sizes, strides, offset, requires_grad)
    PyObject* example = item(value, 1);
    const Tensor& t = expect_tensor(example, "_Guards", "example");
    int64_t offset = item(value, 4) == Py_None ? kAny : integer(item(value, 4));
    c.tensor = std::make_unique<TensorFacts>(TensorFacts{
        t.dtype(), t.device(), item(value, 5) == Py_True, optional_ints(item(value, 2), -1),
        optional_ints(item(value, 3), kAny), offset});
    c.value = PyRef::borrow(item(value, 0));
  }
  return c;
}

bool constants_equal(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a))  // tells 0.0 from -0.0, and finds nan equal to itself
    return std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(a)) ==
           std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(b));
  return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
}

// Are the keys these, in this order?
bool keys_equal(PyObject* dict, PyObject* keys) {
  if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(keys)) return false;
  Py_ssize_t at = 0, i = 0;
  PyObject* key;
  while (PyDict_Next(dict, &at, &key, nullptr))
    if (!constants_equal(key, PyTuple_GET_ITEM(keys, i++))) return false;
  return true;
}

bool facts_hold(const TensorFacts& f, PyObject* type, PyObject* o) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(o)) != type || !is_tensor(o)) return false;
  const Tensor& t = unwrap(o);
  if (t.dtype() != f.dtype || t.requires_grad() != f.requires_grad || t.device() != f.device ||
      t.sizes().size() != f.sizes.size() || t.has_flag(kWrapper) || is_dual(t))
    return false;
  for (size_t i = 0; i < f.sizes.size(); ++i)
    if ((f.sizes[i] >= 0 && t.sizes()[i] != f.sizes[i]) ||
        (f.strides[i] != kAny && t.strides()[i] != f.strides[i]))
      return false;
  return f.offset == kAny || t.offset() == f.offset;
}

}  // namespace

Place Guards::parse(PyObject* spec) {  // (access, key, slot, text, checks, children)
  Place p;
  p.access = static_cast<Access>(integer(item(spec, 0)));
  p.key = PyRef::borrow(item(spec, 1));
  if (p.access == Access::Local || p.access == Access::Closure || p.access == Access::Item)
    p.index = integer(p.key.get());
  p.slot = static_cast<int>(integer(item(spec, 2)));
  p.text = PyRef::borrow(item(spec, 3));
  each(item(spec, 4), [&](PyObject* c) { p.checks.push_back(parse_check(c)); });
  each(item(spec, 5), [&](PyObject* c) { p.children.push_back(parse(c)); });
  return p;
}

Guards::Guards(PyObject* spec) {
  each(item(spec, 0), [&](PyObject* p) { roots_.push_back(parse(p)); });
  slots_ = static_cast<int>(integer(item(spec, 1)));
  each(item(spec, 2),
       [&](PyObject* pair) { same_.emplace_back(integer(item(pair, 0)), integer(item(pair, 1))); });
  each(item(spec, 3), [&](PyObject* o) { distinct_.push_back(static_cast<int>(integer(o))); });
  each(item(spec, 4), [&](PyObject* s) {
    const auto kind = static_cast<SymbolKind>(integer(item(s, 1)));
    symbols_.push_back({static_cast<int>(integer(item(s, 0))), kind, integer(item(s, 2))});
  });
  each(item(spec, 5), [&](PyObject* r) { relations_.emplace_back(tree_of(r)); });
  modes_ = modes;
  default_dtype_ = default_dtype();
  values_.resize(symbols_.size());
}

bool Guards::modes_match() const {
  const Modes& now = modes;
  return now.grad == modes_.grad && now.inference == modes_.inference &&
         now.forward_grad == modes_.forward_grad && now.autocast_dtype == modes_.autocast_dtype &&
         now.autocast_cache == modes_.autocast_cache && now.active == modes_.active &&
         now.device == modes_.device && now.attention == modes_.attention &&
         default_dtype() == default_dtype_;
}

bool Guards::check(Check& c, PyObject* value) {
  switch (c.kind) {
    case CheckKind::Type:
      return reinterpret_cast<PyObject*>(Py_TYPE(value)) == c.value.get();
    case CheckKind::Identity:
      return value == c.value.get();
    case CheckKind::Constant:
      return constants_equal(value, c.value.get());
    case CheckKind::Length: {
      // Not what a method of a subclass says.
      Py_ssize_t n = PyTuple_Check(value)  ? PyTuple_GET_SIZE(value)
                     : PyList_Check(value) ? PyList_GET_SIZE(value)
                                           : PyObject_Size(value);
      return n == c.number;
    }
    case CheckKind::Keys:
      return keys_equal(value, c.value.get());
    case CheckKind::Absent:
      if (!PyDict_Check(value)) return false;
      if (version_of(value) == c.version) return true;
      if (PyDict_Contains(value, c.value.get()) != 0) return false;
      c.version = version_of(value);
      return true;
    case CheckKind::Names:
      if (!PyDict_Check(value)) return false;
      if (version_of(value) == c.version) return true;
      for (Name& n : c.names)
        if (PyDict_GetItemWithError(value, n.key.get()) != n.value.get()) {
          c.text = PyRef::borrow(n.text.get());
          return false;
        }
      c.version = version_of(value);
      return true;
    case CheckKind::Equal:
      return Py_TYPE(value) == Py_TYPE(c.value.get()) &&
             PyObject_RichCompareBool(value, c.value.get(), Py_EQ) == 1;
    case CheckKind::Tensor:
      return facts_hold(*c.tensor, c.value.get(), value);
    case CheckKind::Truth: {
      PyRef result = PyRef::steal(PyObject_CallOneArg(c.value.get(), value));
      return result && PyObject_IsTrue(result.get()) == 1;
    }
  }
  return false;
}

bool Guards::visit(Place& p, PyObject* parent, const FrameValues& frame,
                   std::vector<PyRef>& slots) {
  PyObject* value = nullptr;  // borrowed
  PyRef held;
  switch (p.access) {
    case Access::Local:
      if (p.index < frame.nlocals) value = frame.locals[p.index];
      break;
    case Access::Closure: {
      PyObject* closure = PyFunction_GET_CLOSURE(frame.function);
      if (closure && p.index < PyTuple_GET_SIZE(closure))
        value = PyTuple_GET_ITEM(closure, p.index);
      break;
    }
    case Access::Contents:
      if (PyCell_Check(parent)) value = PyCell_GET(parent);
      break;
    case Access::Globals:
      value = frame.globals;
      break;
    case Access::Constant:
      value = p.key.get();
      break;
    case Access::Dict:
      if (!PyDict_Check(parent)) break;
      if (p.last && version_of(parent) == p.version) {
        value = p.last;
        break;
      }
      value = PyDict_GetItemWithError(parent, p.key.get());
      p.last = value;
      p.version = version_of(parent);
      break;
    case Access::Instance:
      if (p.key.get() != Py_None) {  // of this thread, in a `threading.local`
        held = PyRef::steal(PyObject_GetAttr(parent, p.key.get()));
        value = held.get();
      } else if (PyType_Check(parent)) {
        value = reinterpret_cast<PyTypeObject*>(parent)->tp_dict;
      } else if (PyObject** dict = _PyObject_GetDictPtr(parent)) {
        value = *dict;
        if (!value) {  // nothing was stored yet
          held = PyRef::steal(PyObject_GenericGetDict(parent, nullptr));
          value = held.get();
        }
      }
      break;
    case Access::Item:
      if (PyTuple_Check(parent) && p.index < PyTuple_GET_SIZE(parent))
        value = PyTuple_GET_ITEM(parent, p.index);
      else if (PyList_Check(parent) && p.index < PyList_GET_SIZE(parent))
        value = PyList_GET_ITEM(parent, p.index);
      break;
    case Access::Attribute:
      // A slot; __getattr__ and the like of a program's class must not run.
      held = PyRef::steal(PyType_HasFeature(Py_TYPE(parent), Py_TPFLAGS_HEAPTYPE)
                              ? PyObject_GenericGetAttr(parent, p.key.get())
                              : PyObject_GetAttr(parent, p.key.get()));
      value = held.get();
      break;
  }
  if (!value) {
    failed = p.text;
    return false;
  }
  for (Check& c : p.checks)
    if (!check(c, value)) [[unlikely]] {
      failed = c.text;
      return false;
    }
  if (p.slot >= 0) slots[static_cast<size_t>(p.slot)] = PyRef::borrow(value);
  for (Place& child : p.children)
    if (!visit(child, value, frame, slots)) return false;
  return true;
}

bool Guards::related(const std::vector<PyRef>& slots) {
  auto at = [&](int i) { return slots[static_cast<size_t>(i)].get(); };
  for (auto [a, b] : same_)
    if (at(a) != at(b)) {
      failed = checked(PyUnicode_FromString("two places that held one object hold two"));
      return false;
    }
  if (distinct_.size() > 1) {
    SmallVector<PyObject*, 64> found;
    for (int i : distinct_) found.push_back(at(i));
    std::sort(found.begin(), found.end());
    bool repeated = std::adjacent_find(found.begin(), found.end()) != found.end();
    if (repeated) {
      failed = checked(PyUnicode_FromString("two places that held different objects hold one"));
      return false;
    }
  }
  for (size_t i = 0; i < symbols_.size(); ++i) {
    const SymbolPlace& s = symbols_[i];
    PyObject* o = at(s.slot);
    switch (s.kind) {
      case SymbolKind::Size:
        values_[i] = unwrap(o).size(s.dim);
        break;
      case SymbolKind::Stride:
        values_[i] = unwrap(o).stride(s.dim);
        break;
      case SymbolKind::Offset:
        values_[i] = unwrap(o).offset();
        break;
      case SymbolKind::Value:
        values_[i] = PyLong_AsLongLong(o);
        if (values_[i] == -1 && PyErr_Occurred()) {
          failed = checked(PyUnicode_FromString("an integer is too large"));
          return false;
        }
        break;
      case SymbolKind::Unknown:
        break;
    }
  }
  for (const runtime::Condition& r : relations_)
    if (!r.holds(values_)) {
      failed = checked(PyUnicode_FromString(r.text.c_str()));
      return false;
    }
  return true;
}

bool Guards::run(const FrameValues& frame, std::vector<PyRef>& slots) {
  if (!modes_match()) {
    failed = checked(PyUnicode_FromString(
        "gradient, inference or autocast mode, default device or default dtype, or the "
        "implementations of attention"));
    return false;
  }
  slots.resize(static_cast<size_t>(slots_));
  for (Place& p : roots_)
    if (!visit(p, nullptr, frame, slots)) return false;
  return related(slots);
}

namespace {

struct GuardsObject {
  PyObject_HEAD Guards* guards;
};
PyTypeObject* GuardsType = nullptr;

PyObject* guards_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* spec;
  if (!PyArg_ParseTuple(args, "O!:_Guards", &PyTuple_Type, &spec)) return nullptr;
  try {
    auto guards = std::make_unique<Guards>(spec);
    PyRef self = checked(type->tp_alloc(type, 0));
    reinterpret_cast<GuardsObject*>(self.get())->guards = guards.release();
    return self.release();
  } catch (...) {
    return raise_current();
  }
}

void guards_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<GuardsObject*>(self)->guards;
  type->tp_free(self);
  Py_DECREF(type);
}

// run(function, globals, locals): the slots as a tuple, or the text of what failed.
PyObject* guards_run(PyObject* self, PyObject* args) {
  PyObject *function, *globals, *locals;
  if (!PyArg_ParseTuple(args, "OOO!:run", &function, &globals, &PyTuple_Type, &locals))
    return nullptr;
  try {
    FrameValues frame{function, globals, reinterpret_cast<PyTupleObject*>(locals)->ob_item,
                      PyTuple_GET_SIZE(locals)};
    Guards& guards = *reinterpret_cast<GuardsObject*>(self)->guards;
    std::vector<PyRef> slots;
    if (!run_guards(guards, frame, slots)) return PyRef(guards.failed).release();
    PyRef out = checked(PyTuple_New(static_cast<Py_ssize_t>(slots.size())));
    for (size_t i = 0; i < slots.size(); ++i)
      PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i),
                       slots[i] ? slots[i].release() : Py_NewRef(Py_None));
    return out.release();
  } catch (...) {
    return raise_current();
  }
}

PyMethodDef guards_methods[] = {
    {"run", guards_run, METH_VARARGS,
     "run(function, globals, locals): the slots, or the text of the check that failed."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

Guards* guards_of(PyObject* object) {
  if (Py_TYPE(object) == GuardsType) return reinterpret_cast<GuardsObject*>(object)->guards;
  PyErr_Format(PyExc_TypeError, "expected _Guards, got %s", Py_TYPE(object)->tp_name);
  return nullptr;
}

bool run_guards(Guards& guards, const FrameValues& frame, std::vector<PyRef>& slots) {
  bool ok = guards.run(frame, slots);
  if (PyErr_Occurred()) {  // looking may fail in user code: that is a failed guard
    PyErr_Clear();
    ok = false;
  }
  return ok;
}

bool init_guards(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>("Checks on a frame's values, run natively.")},
      {Py_tp_new, reinterpret_cast<void*>(guards_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(guards_dealloc)},
      {Py_tp_methods, guards_methods},
      {0, nullptr},
  };
  PyType_Spec spec = {"flambeau._C._Guards", sizeof(GuardsObject), 0, Py_TPFLAGS_DEFAULT, slots};
  GuardsType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return GuardsType &&
         PyModule_AddObjectRef(module, "_Guards", reinterpret_cast<PyObject*>(GuardsType)) == 0;
}

}  // namespace flambeau::python
