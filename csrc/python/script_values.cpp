#include "python/script_values.h"

#include <mutex>

#include "python/argparse.h"
#include "python/custom_object.h"
#include "python/script_futures.h"
#include "python/tensor_object.h"
#include "python/types.h"
#include "script/code.h"
#include "script/text.h"

namespace flambeau::python {

namespace {

using Kind = Conversion::Kind;
thread_local Given* current = nullptr;
thread_local RunLock* lock_of_thread = nullptr;

// What objects of Python need to know of an attribute.
struct Prepared {
  Conversion conversion;
  PyRef name, place;  // no place: an attribute of the object itself
  PyRef classes, error_class, cls;  // of the program; `cls`: whose objects have the attribute
  bool trusted, fixed;

  // The object's class has the attribute: what made the object says which class it is of.
  void check(PyObject* o, const script::AttrRef& a) const {
    if (cls ? PyObject_TypeCheck(o, reinterpret_cast<PyTypeObject*>(cls.get())) : trusted) return;
    PyRef record = PyRef::steal(PyObject_GetAttrString(o, "_script_record"));
    PyRef found = record ? PyRef::steal(PyObject_GetAttrString(record.get(), "name")) : PyRef();
    if (!found) PyErr_Clear();
    FB_CHECK_TYPE(found && PyUnicode_Check(found.get()) &&
                      PyUnicode_CompareWithASCIIString(found.get(), a.owner->name.c_str()) == 0,
                  "a ", Py_TYPE(o)->tp_name, " has no attribute '", a.name, "' for scripts");
  }
};

// An object that Python has.
class PythonObject final : public script::Instance {
 public:
  explicit PythonObject(PyObject* o) : o_(Py_NewRef(o)) {}
  ~PythonObject() override {
    if (!Py_IsInitialized()) return;
    GilHeld gil;
    Py_DECREF(o_);
  }
  PyObject* get() const noexcept { return o_; }

  Value get(const script::AttrRef& a) const override {
    const Prepared& p = prepared(a);
    Value out;
    if (p.fixed && recall(a, &out)) return out;
    {
      GilHeld gil;
      p.check(o_, a);
      PyRef found;
      if (p.place) {
        PyRef table = checked(PyObject_GetAttr(o_, p.place.get()));
        found = checked(PyObject_GetItem(table.get(), p.name.get()));
      } else {
        found = checked(PyObject_GetAttr(o_, p.name.get()));
      }
      if (!from_python(p.conversion, found.get(), &out, current))
        fail(ErrorKind::Type, "attribute ", a.name, ": a script expected a value of type ",
             p.conversion.shown, ", got a ", Py_TYPE(found.get())->tp_name);
    }
    if (is_large(out)) RunLock::large();
    if (p.fixed) remember(a, out);
    return out;
  }
  void set(const script::AttrRef& a, const Value& x) override {
    const Prepared& p = prepared(a);
    GilHeld gil;
    p.check(o_, a);
    Given own({p.classes.get(), p.error_class.get()});  // of a thread that Python has not called
    GivenScope scope(current ? current : &own);
    PyRef value = checked(to_python(x));
    if (current && !current->find(x) &&
        (PyList_CheckExact(value.get()) || PyDict_CheckExact(value.get())))
      current->add(value.get(), x);
    if (!p.place) return checked_int(PyObject_SetAttr(o_, p.name.get(), value.get()));
    PyRef table = checked(PyObject_GetAttr(o_, p.place.get()));
    checked_int(PyObject_SetItem(table.get(), p.name.get(), value.get()));
  }
  bool same(const Instance& other) const override {
    auto* o = dynamic_cast<const PythonObject*>(&other.resolved());
    return o && o->o_ == o_;
  }
  bool equal(const Instance& other) const override {
    if (same(other)) return true;
    auto* o = dynamic_cast<const PythonObject*>(&other.resolved());
    if (!o) return false;
    GilHeld gil;
    int same = PyObject_RichCompareBool(o_, o->o_, Py_EQ);
    checked_int(same);
    return same;
  }
  size_t hash() const override {
    GilHeld gil;
    Py_hash_t h = PyObject_Hash(o_);
    if (h == -1 && PyErr_Occurred()) throw PythonError();
    return static_cast<size_t>(h);
  }
  bool truth() const override {
    GilHeld gil;
    int on = PyObject_IsTrue(o_);
    checked_int(on);
    return on;
  }

 private:
  const Prepared& prepared(const script::AttrRef& a) const {
    FB_CHECK_TYPE(a.data, "an object of Python has no attribute ", a.name, " for ", a.owner->name);
    return *static_cast<const Prepared*>(a.data.get());
  }
  // What has been read of it, by whichever thread of the run.
  bool recall(const script::AttrRef& a, Value* out) const {
    std::lock_guard lock(mutex_);
    for (auto& [of, x] : read_)
      if (of == &a) return *out = x, true;
    return false;
  }
  void remember(const script::AttrRef& a, const Value& x) const {
    std::lock_guard lock(mutex_);
    read_.emplace_back(&a, x);
  }

  mutable std::mutex mutex_;
  mutable std::vector<std::pair<const script::AttrRef*, Value>> read_;
  PyObject* o_;
};

bool whole(PyObject* o, Value* out) {
  int overflow;
  long long x = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow) return false;
  out->put(static_cast<int64_t>(x));
  return true;
}

bool text(PyObject* o, Value* out) {
  Py_ssize_t n;
  const char* s = PyUnicode_AsUTF8AndSize(o, &n);
  if (!s) {  // halves of a pair alone
    PyErr_Clear();
    return false;
  }
  *out = Value(std::string(s, static_cast<size_t>(n)));
  return true;
}

bool number(PyObject* o, Value* out) {
  if (PyBool_Check(o)) return out->put(o == Py_True), true;
  if (PyLong_CheckExact(o)) return whole(o, out);
  if (PyFloat_CheckExact(o)) return out->put(PyFloat_AS_DOUBLE(o)), true;
  if (!PyComplex_CheckExact(o)) return false;
  *out = Value(complex128(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)));
  return true;
}

const Conversion& anything() {
  static const Conversion* const c = new Conversion({"Any", false, 0, {}}, nullptr);
  return *c;
}

// While what a list, dict or tuple holds is converted: one may hold itself.
struct Deeper {
  Deeper() {
    if (Py_EnterRecursiveCall(" in a value of a script")) throw PythonError();
  }
  ~Deeper() { Py_LeaveRecursiveCall(); }
};

bool list(const Conversion& c, PyObject* o, Value* out, Given* given) {
  if (!PyList_CheckExact(o)) return false;
  Deeper deeper;
  if (const Value* known = given ? given->find(o) : nullptr) return *out = *known, true;
  Value made = script::empty_list(c.list);
  const Conversion& item = c.items.empty() ? anything() : c.items[0];
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i) {
    Value x;
    PyRef held = PyRef::borrow(PyList_GET_ITEM(o, i));
    if (!from_python(item, held.get(), &x, given)) return false;
    script::list_insert(made, i, x);
  }
  if (given) given->add(o, made);
  *out = std::move(made);
  return true;
}

bool dict(const Conversion& c, PyObject* o, Value* out, Given* given) {
  if (!PyDict_CheckExact(o)) return false;
  Deeper deeper;
  if (const Value* known = given ? given->find(o) : nullptr) return *out = *known, true;
  Value made = script::make_box<script::Dict>();
  const Conversion& key = c.items.empty() ? anything() : c.items[0];
  const Conversion& item = c.items.empty() ? anything() : c.items[1];
  PyRef pairs = checked(PyDict_Items(o));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pairs.get()); ++i) {
    PyObject* pair = PyList_GET_ITEM(pairs.get(), i);
    Value k, x;
    if (!from_python(key, PyTuple_GET_ITEM(pair, 0), &k, given) ||
        !from_python(item, PyTuple_GET_ITEM(pair, 1), &x, given))
      return false;
    script::box_of<script::Dict>(made)->set(k, std::move(x));
  }
  if (given) given->add(o, made);
  *out = std::move(made);
  return true;
}

bool tuple(const Conversion& c, PyObject* o, Value* out, Given* given) {
  bool named = c.kind == Kind::Named;
  if (named ? reinterpret_cast<PyObject*>(Py_TYPE(o)) != c.cls : !PyTuple_CheckExact(o))
    return false;
  if (!PyTuple_Check(o)) return false;
  Deeper deeper;
  auto n = static_cast<size_t>(PyTuple_GET_SIZE(o));
  bool typed = !named && c.kind == Kind::Tuple;
  if (typed && n != c.items.size()) return false;
  Values items;
  for (size_t i = 0; i < n; ++i) {
    Value x;
    if (!from_python(typed ? c.items[i] : anything(), PyTuple_GET_ITEM(o, i), &x, given))
      return false;
    items.push_back(std::move(x));
  }
  *out = script::make_box<script::Tuple>(std::move(items), named ? c.name : std::string());
  return true;
}

bool any(PyObject* o, Value* out, Given* given) {
  const Conversion& c = anything();
  if (o == Py_None) return out->clear(), true;
  if (is_exact_tensor(o)) return *out = Value(unwrap(o)), true;
  if (number(o, out)) return true;
  if (PyUnicode_CheckExact(o)) return text(o, out);
  if (PyList_CheckExact(o)) return list(c, o, out, given);
  if (PyDict_CheckExact(o)) return dict(c, o, out, given);
  if (PyTuple_CheckExact(o)) return tuple(c, o, out, given);
  if (is_dtype(o)) return out->put(to_dtype(o)), true;
  if (is_device(o)) return out->put(to_device(o)), true;
  if (is_custom(o)) return *out = custom_value(o), true;
  return false;
}

PyObject* list_to_python(const Value& v) {
  int64_t n = script::list_size(v);
  PyRef out = checked(PyList_New(n));
  for (int64_t i = 0; i < n; ++i)
    PyList_SET_ITEM(out.get(), i, checked(to_python(script::list_item(v, i))).release());
  return out.release();
}

PyObject* tuple_to_python(const script::Tuple& t) {
  PyRef out = checked(PyTuple_New(static_cast<Py_ssize_t>(t.items.size())));
  for (size_t i = 0; i < t.items.size(); ++i)
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i),
                     checked(to_python(t.items[i])).release());
  if (t.name.empty() || !current) return out.release();
  PyObject* cls = PyDict_GetItemString(current->names.classes, t.name.c_str());
  FB_CHECK_TYPE(cls, "there is no class ", t.name);
  return PyObject_Call(cls, out.get(), nullptr);
}

PyObject* dict_to_python(const script::Dict& d) {
  PyRef out = checked(PyDict_New());
  d.each([&](const Value& k, const Value& x) {
    PyRef key = checked(to_python(k)), item = checked(to_python(x));
    checked_int(PyDict_SetItem(out.get(), key.get(), item.get()));
  });
  return out.release();
}

PyObject* box_to_python(const Value& v) {
  if (auto* t = script::box_of<script::Tuple>(v)) return tuple_to_python(*t);
  if (auto* d = script::box_of<script::Dict>(v)) return dict_to_python(*d);
  if (script::box_of<script::List>(v)) return list_to_python(v);
  if (script::box_of<script::Ellipsis>(v)) return Py_NewRef(Py_Ellipsis);
  if (auto* s = script::box_of<script::Slice>(v)) {
    PyRef a = checked(to_python(s->start)), b = checked(to_python(s->stop)),
          c = checked(to_python(s->step));
    return PySlice_New(a.get(), b.get(), c.get());
  }
  if (script::box_of<script::Future>(v)) return future_to_python(v);
  if (script::box_of<script::CustomObject>(v)) return custom_to_python(v);
  return Py_NewRef(object_of(v));
}

// Makes an object of a script one of Python's, without its `__init__`. What its attributes hold
// comes after it, however deep that is and whether or not it holds the object.
class Leaving {
 public:
  Leaving() : outer_(open_) { open_ = this; }
  ~Leaving() { open_ = outer_; }
  Leaving(const Leaving&) = delete;

  static void begin(script::Object& o) {
    FB_CHECK_TYPE(current, "an object of a script cannot be handed to Python here");
    PyObject* cls = PyDict_GetItemString(current->names.classes, o.owner->name.c_str());
    FB_CHECK_TYPE(cls && PyType_Check(cls), "there is no class ", o.owner->name);
    PyRef empty = checked(PyTuple_New(0));
    PyRef made = checked(
        PyBaseObject_Type.tp_new(reinterpret_cast<PyTypeObject*>(cls), empty.get(), nullptr));
    o.go_out(Ref<script::Instance>::adopt(new PythonObject(made.get())));
    if (open_) return open_->left_.push_back({std::move(made), &o});
    Leaving all;
    all.left_.push_back({std::move(made), &o});
    while (!all.left_.empty()) {
      auto [to, from] = std::move(all.left_.back());
      all.left_.pop_back();
      fill(to.get(), *from);
    }
  }

 private:
  static void fill(PyObject* to, script::Object& from) {
    for (size_t i = 0; i < from.owner->attributes.size(); ++i) {
      const script::Attribute& a = from.owner->attributes[i];
      Value x = from.at(i);
      if (x.is_none() && !a.type.optional && a.type.base != "None" && a.type.base != "Any" &&
          a.type.base != "Union")
        continue;  // not set yet
      PyRef name = checked(PyUnicode_InternFromString(a.name.c_str()));
      PyRef value = checked(to_python(x));
      if ((script::is_list(x) || script::box_of<script::Dict>(x)) && !current->find(x))
        current->add(value.get(), x);
      checked_int(PyObject_GenericSetAttr(to, name.get(), value.get()));
    }
  }
  static thread_local Leaving* open_;
  Leaving* outer_;
  std::vector<std::pair<PyRef, script::Object*>> left_;
};
thread_local Leaving* Leaving::open_ = nullptr;

}  // namespace

Conversion::Conversion(const script::Type& t, PyObject* classes)
    : optional(t.optional), shown(script::show(t)) {
  static constexpr std::pair<std::string_view, Kind> plain[] = {
      {"Tensor", Kind::Tensor}, {"int", Kind::Int},       {"float", Kind::Float},
      {"bool", Kind::Bool},     {"str", Kind::Str},       {"complex", Kind::Complex},
      {"Number", Kind::Number}, {"None", Kind::None},     {"DType", Kind::DType},
      {"Device", Kind::Device}, {"Layout", Kind::Layout}, {"MemoryFormat", Kind::MemoryFormat},
      {"Generator", Kind::Generator}, {"Any", Kind::Any}, {"Union", Kind::Union},
      {"Tuple", Kind::Tuple},   {"Dict", Kind::Dict},     {"Future", Kind::Future}};
  for (auto& [n, k] : plain)
    if (t.base == n) kind = k;
  name = t.base;
  if (t.is_list()) {
    kind = Kind::List;
    list = script::list_kind(t);
    items.emplace_back(t.element(), classes);
    return;
  }
  for (const script::Type& item : t.items) items.emplace_back(item, classes);
  if (kind == Kind::Dict && items.size() != 2) kind = Kind::Nothing;
  if (t.base.find('.') == t.base.npos) return;
  kind = Kind::Object;
  native = t.base.starts_with(kCustomClasses);
  if (classes) cls = PyDict_GetItemString(classes, t.base.c_str());
  if (cls && PyType_Check(cls) &&
      PyType_FastSubclass(reinterpret_cast<PyTypeObject*>(cls), Py_TPFLAGS_TUPLE_SUBCLASS))
    kind = Kind::Named;
}

bool plain_from_python(const Conversion& c, PyObject* o, Value* out) {
  switch (c.kind) {
    case Kind::Tensor:
      if (!is_exact_tensor(o)) break;
      *out = Value(unwrap(o));
      return true;
    case Kind::Int:
      if (!PyLong_CheckExact(o)) break;
      return whole(o, out);
    case Kind::Float:
      if (!PyFloat_CheckExact(o)) break;
      out->put(PyFloat_AS_DOUBLE(o));
      return true;
    case Kind::Bool:
      if (!PyBool_Check(o)) break;
      out->put(o == Py_True);
      return true;
    case Kind::Str:
      if (!PyUnicode_CheckExact(o)) break;
      return text(o, out);
    case Kind::Number:
      if (number(o, out)) return true;
      break;
    case Kind::Object:
      if (!c.known && reinterpret_cast<PyObject*>(Py_TYPE(o)) != c.cls) break;
      *out = python_object(o);
      return true;
    default:
      break;
  }
  if (o != Py_None || !c.optional) return false;
  out->clear();
  return true;
}

bool from_python(const Conversion& c, PyObject* o, Value* out, Given* given) {
  if (plain_from_python(c, o, out)) return true;
  switch (c.kind) {
    case Kind::None:
      out->clear();
      return o == Py_None;
    case Kind::Complex:
      return PyComplex_CheckExact(o) && number(o, out);
    case Kind::DType:
      return is_dtype(o) && (out->put(to_dtype(o)), true);
    case Kind::Device:
      return is_device(o) && (out->put(to_device(o)), true);
    case Kind::Layout:
      return Py_TYPE(o) == &LayoutType && (out->put(to_layout(o)), true);
    case Kind::MemoryFormat:
      return Py_TYPE(o) == &MemoryFormatType && (out->put(to_memory_format(o)), true);
    case Kind::Generator:
      if (Py_TYPE(o) != &GeneratorType) return false;
      *out = Value(to_generator(o));
      return true;
    case Kind::List:
      return list(c, o, out, given);
    case Kind::Tuple:
    case Kind::Named:
      return tuple(c, o, out, given);
    case Kind::Dict:
      return dict(c, o, out, given);
    case Kind::Object:  // looked at by whoever gives it
      if (o == Py_None || (c.native && !is_custom(o))) return false;
      *out = python_object(o);
      return true;
    case Kind::Future:
      return is_future(o) && (*out = future_from_python(c, o), true);
    case Kind::Any:
      return any(o, out, given);
    case Kind::Union:
      for (bool objects : {false, true})  // which take anything
        for (const Conversion& member : c.items)
          if ((member.kind == Kind::Object) == objects && from_python(member, o, out, given))
            return true;
      return false;
    default:
      return false;
  }
}

PyObject* to_python(Value v) {
  try {
    switch (v.tag()) {
      case ValueTag::None:
        Py_RETURN_NONE;
      case ValueTag::Bool:
        return PyBool_FromLong(*v.get_if<bool>());
      case ValueTag::Int:
        return PyLong_FromLongLong(*v.get_if<int64_t>());
      case ValueTag::Float:
        return PyFloat_FromDouble(*v.get_if<double>());
      case ValueTag::UInt:
      case ValueTag::Complex:
        return wrap_scalar(v.number());
      case ValueTag::Tensor:
        return wrap(std::move(*v.get_if<Tensor>()));
      case ValueTag::DType:
        return wrap_dtype(v.get<DType>());
      case ValueTag::Device:
        return wrap_device(v.get<Device>());
      case ValueTag::Layout:
        return wrap_layout(v.get<Layout>());
      case ValueTag::MemoryFormat:
        return wrap_memory_format(v.get<MemoryFormat>());
      case ValueTag::Generator:
        return wrap_generator(v.get<Generator>());
      case ValueTag::Str: {
        const auto& s = std::as_const(v).get<std::string>();
        return PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), nullptr);
      }
      default:
        if (PyObject* known = current ? current->find(v) : nullptr) return Py_NewRef(known);
        return v.object() ? box_to_python(v) : list_to_python(v);
    }
  } catch (...) {
    return raise_current();
  }
}

RunLock::RunLock(bool give_up) : outer_(std::exchange(lock_of_thread, this)) {
  if (give_up) state_ = PyEval_SaveThread();
}
RunLock::~RunLock() {
  lock_of_thread = outer_;
  if (state_) PyEval_RestoreThread(state_);
}
void RunLock::large() {
  if (lock_of_thread && !lock_of_thread->state_) lock_of_thread->state_ = PyEval_SaveThread();
}

void prepare_attribute(script::AttrRef& a, const ProgramNames& names, bool trusted, bool fixed) {
  auto text = [](const std::string& s) { return checked(PyUnicode_InternFromString(s.c_str())); };
  PyRef cls;
  if (a.owner->kind == "class") {
    cls = PyRef::borrow(PyDict_GetItemString(names.classes, a.owner->name.c_str()));
    FB_CHECK_TYPE(cls && PyType_Check(cls.get()), "there is no class ", a.owner->name);
  }
  auto made = new Prepared{Conversion(a.type, names.classes),
                           text(a.name),
                           a.place.empty() ? PyRef() : text(a.place),
                           PyRef::borrow(names.classes),
                           PyRef::borrow(names.error_class),
                           std::move(cls),
                           trusted,
                           fixed};
  a.data = std::shared_ptr<void>(made, [](void* p) {
    if (!Py_IsInitialized()) return;
    GilHeld gil;
    delete static_cast<Prepared*>(p);
  });
}

Value python_object(PyObject* o) {
  if (is_custom(o)) return custom_value(o);
  return script::make_box<PythonObject>(o);
}

PyObject* object_of(const Value& v) {
  auto* x = script::box_of<script::Instance>(v);
  if (!x) fail(ErrorKind::Type, "a ", script::kind_name(v), " cannot be handed to Python");
  if (auto* own = dynamic_cast<script::Object*>(x); own && !own->outside()) Leaving::begin(*own);
  return dynamic_cast<const PythonObject&>(x->resolved()).get();
}

const Value* Given::find(PyObject* o) const {
  for (const Item& i : items_)
    if (i.object.get() == o) return &i.value;
  return nullptr;
}
PyObject* Given::find(const Value& v) const {
  for (const Item& i : items_)
    if (i.value.same_as(v)) return i.object.get();
  return nullptr;
}
void Given::add(PyObject* o, const Value& v) {
  items_.push_back({PyRef::borrow(o), v});
}

void Given::write_back() const {
  for (const Item& i : items_) {
    if (auto* d = script::box_of<script::Dict>(i.value)) {
      PyRef made = PyRef::steal(dict_to_python(*d));
      PyDict_Clear(i.object.get());
      checked_int(PyDict_Update(i.object.get(), made.get()));
    } else {
      PyRef made = PyRef::steal(list_to_python(i.value));
      checked_int(PyList_SetSlice(i.object.get(), 0, PyList_GET_SIZE(i.object.get()), made.get()));
    }
  }
}

GivenScope::GivenScope(Given* g) : outer_(std::exchange(current, g)) {}
Given* GivenScope::of_thread() noexcept {
  return current;
}
GivenScope::~GivenScope() {
  current = outer_;
}

}  // namespace flambeau::python
