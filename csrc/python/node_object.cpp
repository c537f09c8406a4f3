#include "python/node_object.h"

#include <structmember.h>

#include <string>
#include <unordered_map>

#include "autograd/accumulate.h"
#include "autograd/meta.h"
#include "python/autograd_function.h"
#include "python/hooks.h"
#include "python/saved_values.h"
#include "python/types.h"

namespace flambeau::python {

PyTypeObject* NodeType = nullptr;

namespace {

struct NodeObject {
  PyObject_HEAD Node* node;  // owned
  PyObject* weakrefs;
};
struct HandleObject {
  PyObject_HEAD HookHandle handle;
};
PyTypeObject* HandleType = nullptr;

void node_dealloc(PyObject* self) {
  auto* o = reinterpret_cast<NodeObject*>(self);
  PyTypeObject* type = Py_TYPE(self);
  if (o->weakrefs) PyObject_ClearWeakRefs(self);
  if (o->node) {
    o->node->pyobj = nullptr;
    o->node->release();
  }
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* node_repr(PyObject* self) {
  return PyUnicode_FromFormat("<%s object at %p>", unwrap_node(self).name(), self);
}

PyObject* node_getattr(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const char* text = PyUnicode_AsUTF8(name);
  try {
    if (text) found = saved_attribute(unwrap_node(self), text);
  } catch (...) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return raise_current();
  }
  if (!found) {
    PyErr_Restore(type, value, trace);
    return nullptr;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return found;
}

PyObject* node_dir(PyObject* self, PyObject*) {
  PyRef names = PyRef::steal(PyObject_Dir(reinterpret_cast<PyObject*>(Py_TYPE(self))));
  if (!names || !append_saved_names(unwrap_node(self), names.get())) return nullptr;
  return names.release();
}

PyMemberDef node_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(NodeObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

// The type for nodes of that name, made on first use. Names are those of operations: there are few.
PyTypeObject* type_of(const std::string& name) {
  static auto* types = new std::unordered_map<std::string, PyTypeObject*>;
  PyTypeObject*& type = (*types)[name];
  if (type) return type;
  auto* text = new std::string("flambeau.autograd.graph." + name);
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)}, {0, nullptr}};
  PyType_Spec spec = {text->c_str(), sizeof(NodeObject), 0, Py_TPFLAGS_DEFAULT, slots};
  type = reinterpret_cast<PyTypeObject*>(
      PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(NodeType)));
  return type;
}

// Methods
// --------------------------------------------------------------------------------------------------------------

PyObject* node_name(PyObject* self, PyObject*) {
  return guarded([&] { return PyUnicode_FromString(unwrap_node(self).name()); });
}

PyObject* sequence_nr(PyObject* self, PyObject*) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(unwrap_node(self).sequence); });
}

// Gradients between C++ and the hooks of a node.
Tensors gradients_from(PyObject* result, size_t count, const char* what) {
  PyRef items = PyTuple_Check(result) || PyList_Check(result) ? checked(PySequence_Tuple(result))
                                                              : checked(PyTuple_Pack(1, result));
  FB_CHECK(static_cast<size_t>(PyTuple_GET_SIZE(items.get())) == count, what,
           " has returned an incorrect number of values, expected ", count, ", got ",
           PyTuple_GET_SIZE(items.get()));
  Tensors out;
  for (size_t i = 0; i < count; ++i) {
    PyObject* o = PyTuple_GET_ITEM(items.get(), i);
    FB_CHECK_TYPE(o == Py_None || is_tensor(o), "expected Variable or None, but hook returned '",
                  Py_TYPE(o)->tp_name, "'");
    out.push_back(o == Py_None ? Tensor() : unwrap(o));
  }
  return out;
}

struct PyPreHook {
  PyCallable callable;
  Tensors operator()(const Tensors& grads) const {
    GilHeld gil;
    PyRef argument = checked(wrap_optional_tuple(grads));
    PyRef result = checked(PyObject_CallOneArg(callable.get(), argument.get()));
    return result.get() == Py_None ? Tensors()
                                   : gradients_from(result.get(), grads.size(), "a node's prehook");
  }
};
struct PyPostHook {
  PyCallable callable;
  Tensors operator()(const Tensors& inputs, const Tensors& outputs) const {
    GilHeld gil;
    PyRef in = checked(wrap_optional_tuple(inputs)), out = checked(wrap_optional_tuple(outputs));
    PyRef result =
        checked(PyObject_CallFunctionObjArgs(callable.get(), in.get(), out.get(), nullptr));
    return result.get() == Py_None ? Tensors()
                                   : gradients_from(result.get(), inputs.size(), "a node's hook");
  }
};

PyObject* register_hook(PyObject* self, PyObject* hook) {
  return guarded(
      [&] { return wrap_handle(unwrap_node(self).add_post_hook(PyPostHook{PyCallable(hook)})); });
}
PyObject* register_prehook(PyObject* self, PyObject* hook) {
  return guarded(
      [&] { return wrap_handle(unwrap_node(self).add_pre_hook(PyPreHook{PyCallable(hook)})); });
}

PyObject* next_functions(PyObject* self, void*) {
  return guarded([&] {
    Node& node = unwrap_node(self);
    PyRef out = checked(PyTuple_New(node.edges.size()));
    for (uint32_t i = 0; i < node.edges.size(); ++i) {
      PyRef next = checked(wrap_node(node.edges[i].node));
      PyTuple_SET_ITEM(out.get(), i,
                       checked(Py_BuildValue("(OI)", next.get(), node.edges[i].nr)).release());
    }
    return out.release();
  });
}

PyObject* metadata(PyObject* self, void*) {
  return guarded([&] {
    auto& held = unwrap_node(self).hooks().metadata;
    if (!held) held = std::make_shared<PyCallable>(checked(PyDict_New()).get());
    return Py_NewRef(static_cast<PyCallable*>(held.get())->get());
  });
}

PyObject* variable(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    Node& node = unwrap_node(self);
    if (node.is_accumulator()) return wrap(static_cast<AccumulateGrad&>(node).leaf);
    fail(ErrorKind::Attribute, "'", node.name(), "' object has no attribute 'variable'");
  });
}

PyObject* input_metadata(PyObject* self, void*) {
  return guarded([&] {
    Node& node = unwrap_node(self);
    PyRef out = checked(PyTuple_New(node.outputs.size()));
    for (uint32_t i = 0; i < node.outputs.size(); ++i) {
      const OutputMeta& meta = node.outputs[i];
      PyRef shape = checked(wrap_ints(meta.sizes));
      PyTuple_SET_ITEM(
          out.get(), i,
          checked(Py_BuildValue("(ON)", shape.get(), wrap_dtype(meta.dtype))).release());
    }
    return out.release();
  });
}

}  // namespace

PyMethodDef node_methods[] = {
    {"name", node_name, METH_NOARGS, "Name of the node, after the operation."},
    {"register_hook", register_hook, METH_O,
     "Calls hook(grad_inputs, grad_outputs) after each run of the node."},
    {"register_prehook", register_prehook, METH_O,
     "Calls hook(grad_outputs) before each run of the node."},
    {"_sequence_nr", sequence_nr, METH_NOARGS, "Place in the order of recording."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef node_properties[] = {
    {"next_functions", next_functions, nullptr,
     "Nodes to which the gradients go, with the number of their output.", nullptr},
    {"metadata", metadata, nullptr, "A dict for the user.", nullptr},
    {"_input_metadata", input_metadata, nullptr,
     "Shape and dtype of each gradient that the node takes.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

namespace {

PyGetSetDef type_properties[] = {
    node_properties[0],
    node_properties[1],
    node_properties[2],
    {"variable", variable, nullptr, "The leaf, of an accumulator.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// Handles
// --------------------------------------------------------------------------------------------------------------

void handle_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<HandleObject*>(self)->handle.~HookHandle();
  type->tp_free(self);
  Py_DECREF(type);
}
PyObject* handle_remove(PyObject* self, PyObject*) {
  return guarded([&] {
    reinterpret_cast<HandleObject*>(self)->handle.remove();
    return Py_NewRef(Py_None);
  });
}
PyObject* handle_enter(PyObject* self, PyObject*) {
  return Py_NewRef(self);
}
PyObject* handle_exit(PyObject* self, PyObject*) {
  return handle_remove(self, nullptr);
}
PyObject* handle_id(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(reinterpret_cast<HandleObject*>(self)->handle.id);
}
PyMethodDef handle_methods[] = {
    {"remove", handle_remove, METH_NOARGS, "Removes the hook; a second time does nothing."},
    {"__enter__", handle_enter, METH_NOARGS, nullptr},
    {"__exit__", handle_exit, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef handle_properties[] = {
    {"id", handle_id, nullptr, "Number of the registration, ascending.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef type_methods[] = {
    node_methods[0],
    node_methods[1],
    node_methods[2],
    node_methods[3],
    {"__dir__", node_dir, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

// A user's function that only this hook keeps alive.
template <class Hook, class Function>
int visit_hook(const Function& hook, visitproc visit, void* arg) {
  if (auto* h = hook.template target<Hook>(); h && h->callable.unique())
    Py_VISIT(h->callable.get());
  return 0;
}

int visit_node(void* p, visitproc visit, void* arg) {
  Node& node = *static_cast<Node*>(p);
  if (int r = visit_context(node, visit, arg)) return r;
  if (!node.hooks_ || node.hooks_.use_count() != 1) return 0;
  NodeHooks& hooks = *node.hooks_;
  for (auto& [id, output, hook] : hooks.tensor_pre)
    if (int r = visit_hook<PyTensorHook>(hook, visit, arg)) return r;
  for (auto& [id, hook] : hooks.pre)
    if (int r = visit_hook<PyPreHook>(hook, visit, arg)) return r;
  for (auto& [id, hook] : hooks.post)
    if (int r = visit_hook<PyPostHook>(hook, visit, arg)) return r;
  if (hooks.metadata.use_count() == 1)
    Py_VISIT(static_cast<PyCallable*>(hooks.metadata.get())->get());
  return 0;
}

}  // namespace

PyObject* wrap_node(const Ref<Node>& node) {
  if (!node) Py_RETURN_NONE;
  if (PyObject* context = context_of(*node)) return Py_NewRef(context);
  if (void* known = node->pyobj) return Py_NewRef(static_cast<PyObject*>(known));
  PyTypeObject* type = type_of(node->name());
  if (!type) return nullptr;
  auto* o = reinterpret_cast<NodeObject*>(type->tp_alloc(type, 0));
  if (!o) return nullptr;
  node->retain();
  o->node = node.get();
  node->pyobj = o;
  return reinterpret_cast<PyObject*>(o);
}

bool is_node(PyObject* o) noexcept {
  return PyObject_TypeCheck(o, NodeType) || is_context(o);
}

Node& unwrap_node(PyObject* o) {
  if (PyObject_TypeCheck(o, NodeType)) return *reinterpret_cast<NodeObject*>(o)->node;
  FB_CHECK_TYPE(is_context(o), "expected a node of the graph, got ", Py_TYPE(o)->tp_name);
  Node* node = node_of_context(o);
  FB_CHECK(node,
           "the graph that this autograd Function was part of is gone, or was never recorded");
  return *node;
}

Edge edge_of(PyObject* o) {
  if (is_tensor(o)) return gradient_edge(unwrap(o));
  FB_CHECK_TYPE(PyTuple_Check(o) && PyTuple_GET_SIZE(o) >= 2 && is_node(PyTuple_GET_ITEM(o, 0)),
                "expected a Tensor or a GradientEdge, got ", Py_TYPE(o)->tp_name);
  long nr = PyLong_AsLong(PyTuple_GET_ITEM(o, 1));
  if (nr == -1 && PyErr_Occurred()) throw PythonError();
  Node& node = unwrap_node(PyTuple_GET_ITEM(o, 0));
  FB_CHECK_INDEX(nr >= 0 && static_cast<uint32_t>(nr) < node.outputs.size(),
                 "GradientEdge: expected an output of ", node.name(), " from 0 to ",
                 static_cast<int64_t>(node.outputs.size()) - 1, ", got ", nr);
  return {Ref<Node>(&node), static_cast<uint32_t>(nr)};
}

PyObject* wrap_handle(const HookHandle& handle) {
  auto* o = reinterpret_cast<HandleObject*>(HandleType->tp_alloc(HandleType, 0));
  if (!o) return nullptr;
  new (&o->handle) HookHandle(handle);
  return reinterpret_cast<PyObject*>(o);
}

PyObject* wrap_optional_tuple(const Tensors& ts) {
  PyRef tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(ts.size())));
  for (size_t i = 0; i < ts.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), i, checked(wrap(ts[i])).release());
  return tuple.release();
}

bool init_node_types(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_doc,
       const_cast<char*>("A recorded operation: a node of the graph that backward runs.")},
      {Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
      {Py_tp_repr, reinterpret_cast<void*>(node_repr)},
      {Py_tp_getattro, reinterpret_cast<void*>(node_getattr)},
      {Py_tp_members, node_members},
      {Py_tp_methods, type_methods},
      {Py_tp_getset, type_properties},
      {0, nullptr},
  };
  PyType_Spec spec = {"flambeau._C._Node", sizeof(NodeObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      slots};
  NodeType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  PyType_Slot handle_slots[] = {
      {Py_tp_doc, const_cast<char*>("Handle of a registered hook.")},
      {Py_tp_dealloc, reinterpret_cast<void*>(handle_dealloc)},
      {Py_tp_methods, handle_methods},
      {Py_tp_getset, handle_properties},
      {0, nullptr},
  };
  PyType_Spec handle_spec = {"flambeau._C._HookHandle", sizeof(HandleObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, handle_slots};
  HandleType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&handle_spec));
  traverse_node = visit_node;
  return NodeType && HandleType && init_saved_values(module) &&
         PyModule_AddObjectRef(module, "_Node", reinterpret_cast<PyObject*>(NodeType)) == 0 &&
         PyModule_AddObjectRef(module, "_HookHandle", reinterpret_cast<PyObject*>(HandleType)) == 0;
}

}  // namespace flambeau::python
