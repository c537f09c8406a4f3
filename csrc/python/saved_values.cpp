#include "python/saved_values.h"

#include <string>
#include <string_view>

#include "dispatch/op.h"
#include "python/call_entry.h"
#include "python/tensor_object.h"

namespace flambeau::python {

namespace {

constexpr std::string_view kSaved = "_saved_", kRaw = "_raw_saved_";
PyTypeObject* RawType = nullptr;

struct RawObject {
  PyObject_HEAD Node* node;  // owned, and with it what `saved` points to
  SavedTensor* saved;
};

void raw_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (Node* node = reinterpret_cast<RawObject*>(self)->node) node->release();
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* register_hooks(PyObject* self, PyObject* args) {
  PyObject *pack, *unpack;
  if (!PyArg_ParseTuple(args, "OO:register_hooks", &pack, &unpack)) return nullptr;
  return guarded([&] {
    FB_CHECK_TYPE(PyCallable_Check(pack) && PyCallable_Check(unpack),
                  "register_hooks: expected pack_hook and unpack_hook to be callable");
    reinterpret_cast<RawObject*>(self)->saved->set_hook(pack_hook(pack, unpack));
    return Py_NewRef(Py_None);
  });
}

PyMethodDef raw_methods[] = {
    {"register_hooks", register_hooks, METH_VARARGS,
     "register_hooks(pack_hook, unpack_hook): hands the tensor to the first now, and what it "
     "returns to the second when backward needs the tensor."},
    {nullptr, nullptr, 0, nullptr},
};

struct PyPacked final : Packed {
  PyPacked(PyObject* object, const PyCallable& unpack_hook)
      : object(object), unpack_hook(unpack_hook) {}
  Tensor unpack() override {
    GilHeld gil;
    PyRef result = checked(PyObject_CallOneArg(unpack_hook.get(), object.get()));
    FB_CHECK_TYPE(
        is_tensor(result.get()),
        "Output of saved tensor unpack_hook expected to be a Tensor but got result of type ",
        Py_TYPE(result.get())->tp_name);
    return unwrap(result.get());
  }
  PyCallable object, unpack_hook;
};

// Looks for one name.
class Find final : public SavedVisitor {
 public:
  Find(Node& node, std::string_view name)
      : node_(node), raw_(name.starts_with(kRaw)), wanted_(name) {
    wanted_.remove_prefix(raw_ ? kRaw.size() : kSaved.size());
  }
  void tensor(const char* name, SavedTensor& x) override {
    if (name == wanted_) found = one(x);
  }
  void list(const char* name, std::vector<SavedTensor>& xs) override {
    if (name != wanted_) return;
    PyRef tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(xs.size())));
    for (size_t i = 0; i < xs.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), one(xs[i]).release());
    found = std::move(tuple);
  }
  void value(const char* name, const Value& x) override {
    if (name == wanted_ && !raw_) found = checked(wrap_value(x));
  }
  PyRef found;

 private:
  PyRef one(SavedTensor& x) {
    return checked(raw_ ? raw_saved_tensor(node_, x) : wrap(x.unpack(node_, true)));
  }
  Node& node_;
  bool raw_;
  std::string_view wanted_;
};

class Names final : public SavedVisitor {
 public:
  explicit Names(PyObject* names) : names_(names) {}
  void tensor(const char* name, SavedTensor&) override { add(name, true); }
  void list(const char* name, std::vector<SavedTensor>&) override { add(name, true); }
  void value(const char* name, const Value&) override { add(name, false); }

 private:
  void add(const char* name, bool raw) {
    for (std::string_view prefix : {kSaved, kRaw}) {
      if (prefix == kRaw && !raw) continue;
      PyRef text = checked(PyUnicode_FromString((std::string(prefix) + name).c_str()));
      if (PyList_Append(names_, text.get()) < 0) throw PythonError();
    }
  }
  PyObject* names_;
};

}  // namespace

PackHook pack_hook(PyObject* pack, PyObject* unpack) {
  return [pack = PyCallable(pack),
          unpack = PyCallable(unpack)](const Tensor& t) -> std::shared_ptr<Packed> {
    GilHeld gil;
    PyRef argument = checked(wrap(t));
    PyRef packed = checked(PyObject_CallOneArg(pack.get(), argument.get()));
    return std::make_shared<PyPacked>(packed.get(), unpack);
  };
}

PyObject* raw_saved_tensor(Node& node, SavedTensor& saved) {
  auto* o = reinterpret_cast<RawObject*>(RawType->tp_alloc(RawType, 0));
  if (!o) return nullptr;
  node.retain();
  o->node = &node;
  o->saved = &saved;
  return reinterpret_cast<PyObject*>(o);
}

PyObject* saved_attribute(Node& node, const std::string& name) {
  if (!name.starts_with(kSaved) && !name.starts_with(kRaw)) return nullptr;
  Find find(node, name);
  node.visit_saved(find);
  return find.found.release();
}

bool append_saved_names(Node& node, PyObject* names) {
  try {
    Names all(names);
    node.visit_saved(all);
    return true;
  } catch (...) {
    raise_current();
    return false;
  }
}

bool init_saved_values(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>("A tensor that a node kept for backward.")},
      {Py_tp_dealloc, reinterpret_cast<void*>(raw_dealloc)},
      {Py_tp_methods, raw_methods},
      {0, nullptr},
  };
  PyType_Spec spec = {"flambeau._C.SavedTensor", sizeof(RawObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  RawType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return RawType &&
         PyModule_AddObjectRef(module, "_SavedTensor", reinterpret_cast<PyObject*>(RawType)) == 0;
}

}  // namespace flambeau::python
