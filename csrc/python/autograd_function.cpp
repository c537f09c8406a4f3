#include "python/autograd_function.h"

#include <structmember.h>

#include <string>

#include "autograd/custom_function.h"
#include "autograd/generated.h"
#include "autograd/meta.h"
#include "profiler/events.h"
#include "python/function_outputs.h"
#include "python/node_object.h"
#include "python/saved_values.h"

namespace flambeau::python {

PyTypeObject* ContextType = nullptr;

// The node
// --------------------------------------------------------------------------------------------------------------

FunctionNode::FunctionNode(ContextObject* context)
    : context(context), name_(Py_TYPE(context)->tp_name) {
  if (size_t dot = name_.rfind('.'); dot != std::string::npos) name_ = name_.substr(dot + 1);
  Py_INCREF(context);
  context->node = this;
}

FunctionNode::~FunctionNode() {
  if (!Py_IsInitialized()) return;
  GilHeld gil;
  context->node = nullptr;
  Py_DECREF(context);
}

void FunctionNode::release_saved() {
  if (saved.empty()) return;
  GilHeld gil;  // apply reads them under it
  for (auto& s : saved) s.reset();
}

Tensors FunctionNode::apply(Tensors&& grads) {
  GilHeld gil;
  PyRef ctx = PyRef::borrow(reinterpret_cast<PyObject*>(context));
  PyRef args = checked(PyTuple_New(outputs.size()));
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    Tensor g = i < grads.size() ? grads[i] : Tensor();
    if (!g.defined() && context->materialize && outputs[i].defined) g = cotangent(*this, {}, i);
    PyTuple_SET_ITEM(args.get(), i, checked(wrap(g)).release());
  }
  PyRef backward = checked(PyObject_GetAttrString(ctx.get(), "apply"));
  PyRef result = checked(PyObject_CallObject(backward.get(), args.get()));
  return gradients(result.get());
}

Tensors FunctionNode::gradients(PyObject* result) const {
  PyRef items = PyTuple_Check(result) ? PyRef::borrow(result) : checked(PyTuple_Pack(1, result));
  size_t got = PyTuple_GET_SIZE(items.get()), want = is_tensor_input.size();
  for (; got > want && PyTuple_GET_ITEM(items.get(), got - 1) == Py_None; --got) {
  }
  FB_CHECK(got == want, "function ", name_, " returned an incorrect number of gradients (expected ",
           want, ", got ", got, ")");
  Tensors out;
  for (size_t i = 0; i < want; ++i) {
    PyObject* o = PyTuple_GET_ITEM(items.get(), i);
    if (!is_tensor_input[i]) {
      FB_CHECK(o == Py_None, "function ", name_,
               " returned a gradient different from None at position ", i + 1,
               ", but the corresponding forward input was not a Variable");
      continue;
    }
    FB_CHECK(o == Py_None || is_tensor(o), "expected Variable or None (got ", Py_TYPE(o)->tp_name,
             ")");
    out.push_back(o == Py_None ? Tensor() : unwrap(o));
  }
  return out;
}

bool is_context(PyObject* o) noexcept {
  return PyObject_TypeCheck(o, ContextType);
}
PyObject* context_of(const Node& node) noexcept {
  auto* f = dynamic_cast<const FunctionNode*>(&node);
  return f ? reinterpret_cast<PyObject*>(f->context) : nullptr;
}
Node* node_of_context(PyObject* context) noexcept {
  return reinterpret_cast<ContextObject*>(context)->node;
}

int visit_context(Node& node, visitproc visit, void* arg) {
  if (PyObject* context = context_of(node)) Py_VISIT(context);
  return 0;
}

// The context
// -------------------------------------------------------------------------------------------------------------

namespace {

ContextObject* self_of(PyObject* self) {
  return reinterpret_cast<ContextObject*>(self);
}

int context_traverse(PyObject* self, visitproc visit, void* arg) {
  ContextObject* c = self_of(self);
  Py_VISIT(Py_TYPE(self));
  for (PyObject* o :
       {c->to_save, c->for_forward, c->non_differentiable, c->dirty, c->needs_input_grad})
    Py_VISIT(o);
  return 0;
}

int context_clear(PyObject* self) {
  ContextObject* c = self_of(self);
  Py_CLEAR(c->to_save);
  Py_CLEAR(c->for_forward);
  Py_CLEAR(c->non_differentiable);
  Py_CLEAR(c->dirty);
  Py_CLEAR(c->needs_input_grad);
  return 0;
}

void context_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (self_of(self)->node) self_of(self)->node = nullptr;
  context_clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* context_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self) self_of(self)->materialize = true;
  return self;
}

PyObject* saved_tensors(PyObject* self, void*) {
  try {
    FunctionNode* node = self_of(self)->node;
    if (!node) {  // not recorded: what was given is still there during the call
      PyObject* given = self_of(self)->to_save;
      return given && given != Py_None ? PySequence_Tuple(given) : PyTuple_New(0);
    }
    PyRef out = checked(PyTuple_New(node->saved.size()));
    for (size_t i = 0; i < node->saved.size(); ++i)
      PyTuple_SET_ITEM(out.get(), i, checked(wrap(node->saved[i].unpack(*node, true))).release());
    return out.release();
  } catch (...) {
    return raise_current();
  }
}

PyObject* raw_saved_tensors(PyObject* self, void*) {
  return guarded([&] {
    FunctionNode* node = self_of(self)->node;
    PyRef out = checked(PyTuple_New(node ? static_cast<Py_ssize_t>(node->saved.size()) : 0));
    for (size_t i = 0; node && i < node->saved.size(); ++i)
      PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i),
                       checked(raw_saved_tensor(*node, node->saved[i])).release());
    return out.release();
  });
}

PyMemberDef context_members[] = {
    {"to_save", T_OBJECT, offsetof(ContextObject, to_save), 0, nullptr},
    {"saved_for_forward", T_OBJECT, offsetof(ContextObject, for_forward), 0, nullptr},
    {"non_differentiable", T_OBJECT, offsetof(ContextObject, non_differentiable), 0, nullptr},
    {"dirty_tensors", T_OBJECT, offsetof(ContextObject, dirty), 0, nullptr},
    {"needs_input_grad", T_OBJECT, offsetof(ContextObject, needs_input_grad), 0, nullptr},
    {"materialize_grads", T_BOOL, offsetof(ContextObject, materialize), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef context_properties[] = {
    node_properties[0],
    node_properties[1],
    node_properties[2],
    {"_raw_saved_tensors", raw_saved_tensors, nullptr,
     "The same as objects on which hooks can be registered.", nullptr},
    {"saved_tensors", saved_tensors, nullptr, "The tensors given to save_for_backward.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// Apply
// -------------------------------------------------------------------------------------------------------------------

// What a call was given.
struct Inputs {
  Tensors tensors;
  std::vector<bool> is_tensor_input;
  bool any_grad = false, any_tangent = false, any_wrapper = false;
};

Inputs read_inputs(PyObject* args, ContextObject* c) {
  Inputs in;
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  PyRef needs = checked(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = PyTuple_GET_ITEM(args, i);
    bool tensor = is_tensor(o), grad = tensor && requires_grad(unwrap(o));
    in.is_tensor_input.push_back(tensor);
    if (tensor) in.tensors.push_back(unwrap(o));
    in.any_grad |= grad;
    in.any_tangent |= tensor && is_dual(unwrap(o));
    in.any_wrapper |= tensor && unwrap(o).has_flag(kWrapper);
    PyTuple_SET_ITEM(needs.get(), i, Py_NewRef(grad ? Py_True : Py_False));
  }
  Py_XSETREF(c->needs_input_grad, needs.release());
  return in;
}

// The result for batched arguments; NotImplemented where the function runs over them as it is.
PyRef apply_batched(PyObject* cls, PyObject* args) {
  PyRef module = checked(import_module("flambeau.func._functions"));
  return checked(PyObject_CallMethod(module.get(), "apply", "OO", cls, args));
}

PyRef call_forward(PyObject* cls, PyObject* setup, PyObject* ctx, PyObject* args) {
  NoGradGuard no_grad;
  ModeGuard no_tangents(&Modes::forward_grad, false);
  PyRef forward = checked(PyObject_GetAttrString(cls, "forward"));
  if (setup == Py_None) {
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyRef all = checked(PyTuple_New(n + 1));
    PyTuple_SET_ITEM(all.get(), 0, Py_NewRef(ctx));
    for (Py_ssize_t i = 0; i < n; ++i)
      PyTuple_SET_ITEM(all.get(), i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
    return checked(PyObject_CallObject(forward.get(), all.get()));
  }
  PyRef result = checked(PyObject_CallObject(forward.get(), args));
  checked(PyObject_CallFunctionObjArgs(setup, ctx, args, result.get(), nullptr));
  return result;
}

void save_for_backward(FunctionNode& node) {
  ContextObject* c = node.context;
  if (!c->to_save || c->to_save == Py_None) return;
  FB_CHECK_TYPE(PyTuple_Check(c->to_save), "saved tensors: expected a tuple, got ",
                Py_TYPE(c->to_save)->tp_name);
  Py_ssize_t n = PyTuple_GET_SIZE(c->to_save);
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = PyTuple_GET_ITEM(c->to_save, i);
    FB_CHECK_TYPE(o == Py_None || is_tensor(o),
                  "save_for_backward can only save variables, but argument ", i, " is of type ",
                  Py_TYPE(o)->tp_name);
    if (o == Py_None) {
      node.saved.emplace_back();
      continue;
    }
    node.saved.push_back(save_of_user(unwrap(o), node));
  }
  Py_CLEAR(c->to_save);
}

// The event of a call in the profile that is open, if one is.
profiler::Place event_of(PyObject* cls, const FunctionNode* node) {
  if (!profiler::is_open()) [[likely]]
    return {};
  const char* name = reinterpret_cast<PyTypeObject*>(cls)->tp_name;
  return profiler::open(profiler::Kind::Operation, name, {},
                        node ? static_cast<int64_t>(node->sequence) : -1);
}

}  // namespace

PyObject* apply_function(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  try {
    FB_CHECK_TYPE(nargs == 3 && PyTuple_Check(args[2]),
                  "_function_apply: expected a class, a function and a tuple");
    PyObject *cls = args[0], *setup = args[1], *inputs = args[2];
    PyRef context_class = checked(PyObject_GetAttrString(cls, "_backward_cls"));
    PyRef ctx = checked(PyObject_CallNoArgs(context_class.get()));
    FB_CHECK_TYPE(is_context(ctx.get()),
                  "_function_apply: expected a subclass of autograd.Function");
    auto* c = self_of(ctx.get());
    Inputs in = read_inputs(inputs, c);
    if (in.any_wrapper) [[unlikely]] {
      PyRef batched = apply_batched(cls, inputs);
      if (batched.get() != Py_NotImplemented) return batched.release();
    }
    Ref<FunctionNode> node;
    if (modes.grad && in.any_grad) {
      node = Ref<FunctionNode>::adopt(new FunctionNode(c));
      node->is_tensor_input = in.is_tensor_input;
      node->add_next(in.tensors);  // before forward: it may change inputs in place
      c->node = nullptr;           // saved_tensors answers from to_save until they are saved
    }
    profiler::Scope event(event_of(cls, node.get()));
    PyRef result = call_forward(cls, setup, ctx.get(), inputs);
    bool tuple = PyTuple_Check(result.get());
    PyRef raw = tuple ? std::move(result) : checked(PyTuple_Pack(1, result.get()));
    PyRef outputs = wrap_outputs(raw.get(), in.tensors, node, *c);
    if (in.any_tangent && modes.forward_grad) push_tangents(cls, ctx.get(), inputs, outputs.get());
    if (node) {
      c->node = node.get();
      save_for_backward(*node);
    }
    Py_CLEAR(c->dirty);
    Py_CLEAR(c->non_differentiable);
    if (!node) {
      Py_CLEAR(c->to_save);
      Py_CLEAR(c->for_forward);
    }
    return tuple ? outputs.release() : Py_NewRef(PyTuple_GET_ITEM(outputs.get(), 0));
  } catch (...) {
    return raise_current();
  }
}

bool init_function_type(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_doc,
       const_cast<char*>(
           "State of one call of a custom Function, shared by its forward and its backward.")},
      {Py_tp_new, reinterpret_cast<void*>(context_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(context_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(context_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(context_clear)},
      {Py_tp_members, context_members},
      {Py_tp_methods, node_methods},
      {Py_tp_getset, context_properties},
      {0, nullptr},
  };
  PyType_Spec spec = {"flambeau._C._FunctionBase", sizeof(ContextObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  ContextType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return ContextType && PyModule_AddObjectRef(module, "_FunctionBase",
                                              reinterpret_cast<PyObject*>(ContextType)) == 0;
}

}  // namespace flambeau::python
