#include "python/custom_object.h"

#include <unordered_map>

#include "python/thunks.h"
#include "python/types.h"

namespace flambeau::python {

namespace {

struct Object {
  PyObject_HEAD Value value;
};
Object* cast(PyObject* o) noexcept {
  return reinterpret_cast<Object*>(o);
}
script::CustomObject& custom(PyObject* o) {
  return *script::box_of<script::CustomObject>(cast(o)->value);
}

void dealloc(PyObject* self) {
  cast(self)->value.~Value();
  Py_TYPE(self)->tp_free(self);
}
PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("<torch.ScriptObject %s at %p>",
                              custom(self).cls->full_name().c_str(), &custom(self));
}
Py_hash_t hash(PyObject* self) {
  return static_cast<Py_hash_t>(reinterpret_cast<size_t>(&custom(self)) >> 4);
}
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if ((op != Py_EQ && op != Py_NE) || !is_custom(b)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((&custom(a) == &custom(b)) == (op == Py_EQ));
}
PyObject* no_new(PyTypeObject* type, PyObject*, PyObject*) {
  return PyErr_Format(PyExc_TypeError,
                      "%s has no constructor for Python: its C++ says no "
                      ".def(torch::init<...>())",
                      type->tp_name);
}

PyTypeObject ScriptObjectType = static_type("flambeau.ScriptObject", sizeof(Object),
                                            "An object of a class of C++ (torch.classes).");

// The classes of Python, which live as long as the process.
std::unordered_map<const script::CustomClass*, PyObject*>& python_classes() {
  static auto* all = new std::unordered_map<const script::CustomClass*, PyObject*>();
  return *all;
}

PyTypeObject* python_class(const script::CustomClass* c) {
  auto& all = python_classes();
  auto found = all.find(c);
  if (found == all.end()) {
    PyRef module = checked(PyImport_ImportModule("flambeau.classes"));
    PyRef made =
        checked(PyObject_CallMethod(module.get(), "class_named", "s", c->full_name().c_str()));
    found = all.emplace(c, made.release()).first;
  }
  return reinterpret_cast<PyTypeObject*>(found->second);
}

PyObject* op_of(const OpDesc* op) {
  return op ? pack(std::string(op->uid)) : Py_NewRef(Py_None);
}

// _custom_class(full name) -> (space, name, doc, [(method, doc, operation, static)],
//                             [(property, doc, getter, setter or None)]), or None
PyObject* describe(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    const script::CustomClass* c = script::find_custom_class(to_str(name));
    if (!c) Py_RETURN_NONE;
    PyRef methods = checked(PyList_New(0)), properties = checked(PyList_New(0));
    for (const script::CustomMethod& m : c->methods) {
      PyRef item =
          checked(tuple_of({pack(m.name), pack(m.doc), op_of(m.op), PyBool_FromLong(m.of_class)}));
      checked_int(PyList_Append(methods.get(), item.get()));
    }
    for (const script::CustomProperty& p : c->properties) {
      PyRef item = checked(tuple_of({pack(p.name), pack(p.doc), op_of(p.get), op_of(p.set)}));
      checked_int(PyList_Append(properties.get(), item.get()));
    }
    return tuple_of(
        {pack(c->space), pack(c->name), pack(c->doc), methods.release(), properties.release()});
  });
}

PyObject* names(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyRef out = checked(PyList_New(0));
    for (const script::CustomClass* c : script::custom_classes()) {
      PyRef name = checked(pack(c->full_name()));
      checked_int(PyList_Append(out.get(), name.get()));
    }
    return out.release();
  });
}

}  // namespace

PyMethodDef custom_functions[] = {
    {"_custom_class", describe, METH_O, "What a class of C++ has, as tuples; None: there is none."},
    {"_custom_classes", names, METH_NOARGS, "Full names of the classes of C++."},
    {nullptr, nullptr, 0, nullptr},
};

bool is_custom(PyObject* o) noexcept {
  return PyObject_TypeCheck(o, &ScriptObjectType);
}

Value custom_value(PyObject* o) {
  return cast(o)->value;
}

PyObject* custom_to_python(const Value& v) {
  try {
    auto* object = script::box_of<script::CustomObject>(v);
    PyTypeObject* type = python_class(object->cls);
    PyRef made = checked(type->tp_alloc(type, 0));
    new (&cast(made.get())->value) Value(v);
    return made.release();
  } catch (...) {
    return raise_current();
  }
}

bool init_custom_object(PyObject* module) {
  ScriptObjectType.tp_flags |= Py_TPFLAGS_BASETYPE;
  ScriptObjectType.tp_new = no_new;
  ScriptObjectType.tp_dealloc = dealloc;
  ScriptObjectType.tp_repr = repr;
  ScriptObjectType.tp_hash = hash;
  ScriptObjectType.tp_richcompare = compare;
  if (PyType_Ready(&ScriptObjectType) < 0) return false;
  return PyModule_AddObjectRef(module, "ScriptObject",
                               reinterpret_cast<PyObject*>(&ScriptObjectType)) == 0;
}

}  // namespace flambeau::python
