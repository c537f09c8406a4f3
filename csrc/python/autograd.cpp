// Tensor's methods and properties that autograd owns: history, gradients, hooks.
#include "python/autograd.h"

#include "autograd/forward_mode.h"
#include "autograd/meta.h"
#include "func/frames.h"
#include "gen/ops.h"
#include "python/autograd_function.h"
#include "python/grad_modes.h"
#include "python/hooks.h"
#include "python/module.h"
#include "python/node_object.h"
#include "python/types.h"
#include "python/user_warning.h"

namespace flambeau::python {

namespace {

template <class F>
int guarded_set(F f) noexcept {
  try {
    f();
    return 0;
  } catch (...) {
    raise_current();
    return -1;
  }
}

// Methods
// -----------------------------------------------------------------------------------------------------------------

PyObject* requires_grad_method(PyObject* self, PyObject* const* args, Py_ssize_t n,
                               PyObject* kwnames) {
  return guarded([&] {
    Py_ssize_t total = n + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    FB_CHECK_TYPE(total <= 1, "requires_grad_() takes at most 1 argument, got ", total);
    if (kwnames && PyTuple_GET_SIZE(kwnames))
      FB_CHECK_TYPE(
          PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "requires_grad") == 0,
          "requires_grad_() got an unexpected keyword argument '",
          PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, 0)), "'");
    FB_CHECK_TYPE(!total || PyBool_Check(args[0]),
                  "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not ",
                  Py_TYPE(args[0])->tp_name);
    func::refuse_inside("requires_grad_()", "use grad, vjp or jvp of the function");
    set_requires_grad(unwrap(self), !total || args[0] == Py_True);
    return Py_NewRef(self);
  });
}

// A level of a transform sees the detaching as an operation; there, too, nothing is recorded.
Tensor detached(const Tensor& t) {
  if (!intercepted()) return detach(t);
  NoGradGuard no_grad;
  ModeGuard no_tangents(&Modes::forward_grad, false);
  Tensor out = ops::alias(t);
  // What all samples share is no wrapper, and a view of a leaf, which says that it requires grad.
  bool shared = func::inside_transform() && !out.has_flag(kWrapper);
  return shared || dual_level() >= 0 ? detach(out) : out;
}

PyObject* detach_method(PyObject* self, PyObject*) {
  return guarded([&] { return wrap(detached(unwrap(self))); });
}
PyObject* detach_in_place(PyObject* self, PyObject*) {
  return guarded([&] {
    detach_(unwrap(self));
    return Py_NewRef(self);
  });
}
PyObject* register_hook(PyObject* self, PyObject* hook) {
  return guarded(
      [&] { return wrap_handle(add_tensor_hook(unwrap(self), PyTensorHook{PyCallable(hook)})); });
}
PyObject* register_post_accumulate_grad_hook(PyObject* self, PyObject* hook) {
  return guarded([&] {
    return wrap_handle(add_accumulate_hook(unwrap(self), PyAccumulateHook{PyCallable(hook)}));
  });
}
PyObject* retain_grad_method(PyObject* self, PyObject*) {
  return guarded([&] {
    func::refuse_inside("retain_grad()", "return the tensor and differentiate by it");
    retain_grad(unwrap(self));
    return Py_NewRef(Py_None);
  });
}
PyObject* is_view(PyObject* self, PyObject*) {
  return PyBool_FromLong(unwrap(self).has_flag(kIsView));
}

// Properties
// ----------------------------------------------------------------------------------------------------------------

PyObject* get_requires_grad(PyObject* self, void*) {
  return PyBool_FromLong(requires_grad(unwrap(self)));
}
int set_requires_grad_property(PyObject* self, PyObject* value, void*) {
  return guarded_set([&] {
    FB_CHECK(value && PyBool_Check(value), "requires_grad must be a bool");
    set_requires_grad(unwrap(self), value == Py_True);
  });
}

PyObject* get_grad_fn(PyObject* self, void*) {
  return guarded([&] { return wrap_node(grad_fn(unwrap(self))); });
}
int set_grad_fn(PyObject* self, PyObject* value, void*) {
  return guarded_set([&] {
    FB_CHECK(value == Py_None, "_grad_fn can be only set to None");
    detach_(unwrap(self));
  });
}
PyObject* get_is_leaf(PyObject* self, void*) {
  return guarded([&] { return PyBool_FromLong(is_leaf(unwrap(self))); });
}
PyObject* get_output_nr(PyObject* self, void*) {
  AutogradMeta* meta = unwrap(self)->autograd;
  return PyLong_FromUnsignedLong(meta ? meta->output_nr : 0);
}
PyObject* get_retains_grad(PyObject* self, void*) {
  AutogradMeta* meta = unwrap(self)->autograd;
  return PyBool_FromLong(meta && meta->retained);
}
PyObject* get_version(PyObject* self, void*) {
  return PyLong_FromUnsignedLong(unwrap(self).version());
}
PyObject* get_base(PyObject* self, void*) {
  AutogradMeta* meta = unwrap(self)->autograd;
  return meta && meta->view ? wrap(meta->view->base) : Py_NewRef(Py_None);
}

PyObject* get_grad(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = unwrap(self);
    Tensor grad = grad_of(t);
    if (!grad.defined() && requires_grad(t) && !t->autograd->retained && !is_leaf(t)) {
      const char* text =
          "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
          "attribute won't be "
          "populated during autograd.backward(). If you indeed want the .grad field to be "
          "populated for a non-leaf Tensor, "
          "use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by "
          "mistake, make sure you access "
          "the leaf Tensor instead.";
      warn_user(text);
    }
    return wrap(grad);
  });
}

int set_grad_property(PyObject* self, PyObject* value, void*) {
  return guarded_set([&] {
    const Tensor& t = unwrap(self);
    if (!value || value == Py_None) return set_grad(t, Tensor());
    FB_CHECK_TYPE(is_tensor(value),
                  "assigned grad expected to be a Tensor or None but got grad of type ",
                  Py_TYPE(value)->tp_name);
    const Tensor& grad = unwrap(value);
    FB_CHECK(!grad.is_same(t), "can't assign Variable as its own grad");
    FB_CHECK(grad.dtype() == t.dtype(), "attempting to assign a gradient with dtype '",
             dtype_name(grad.dtype()), "' to a tensor with grad_dtype '",
             scalar_type_name(t.dtype()),
             "'. The gradient must match the tensor's grad_dtype "
             "(defaults to the tensor's dtype). You can set the tensor's grad_dtype attribute with "
             "a specific dtype, or None to "
             "allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and "
             "its gradient may break "
             "downstream systems that assume they match.");
    FB_CHECK(grad.device().type() == t.device().type(),
             "attempting to assign a gradient with device type '", grad.device(),
             "' to a tensor with device type '", t.device(),
             "'. Please ensure that the gradient and the tensor are on the same "
             "device");
    FB_CHECK(grad.sizes() == t.sizes(), "attempting to assign a gradient of size '", grad.sizes(),
             "' to a tensor of size '", t.sizes(),
             "'. Please ensure that the gradient and the tensor are the same size");
    set_grad(t, grad);
  });
}

PyObject* get_data(PyObject* self, void*) {
  return guarded([&] { return wrap(data_of(unwrap(self))); });
}
int set_data_property(PyObject* self, PyObject* value, void*) {
  return guarded_set([&] {
    FB_CHECK(value, "Deleting tensor data is not allowed. Delete tensor instead!");
    FB_CHECK_TYPE(is_tensor(value), "Variable data has to be a tensor, but got ",
                  Py_TYPE(value)->tp_name);
    const Tensor &t = unwrap(self), &with = unwrap(value);
    FB_CHECK(
        !requires_grad(t) || is_inexact(with.dtype()),
        "data: expected a floating point or complex tensor, for the tensor requires grad, got ",
        dtype_name(with.dtype()));
    // The count of changes goes on, together with the views': who saved one of them must notice.
    Ref<VersionCounter> versions = t->own_version ? t->own_version : t.storage()->version_counter();
    set_data(t, with);
    t->own_version = std::move(versions);
    if (auto node = find_accumulator(t))
      gradient_edge(t);  // refreshes what the accumulator expects
  });
}

PyObject* get_grad_dtype(PyObject* self, void*) {
  return wrap_dtype(unwrap(self).dtype());
}

// Functions
// -----------------------------------------------------------------------------------------------------------------

PyObject* detach_function(PyObject*, PyObject* o) {
  return guarded([&] { return wrap(detached(expect_tensor(o, "detach", "input"))); });
}
PyObject* detach_in_place_function(PyObject*, PyObject* o) {
  return guarded([&] {
    detach_(expect_tensor(o, "detach_", "input"));
    return Py_NewRef(o);
  });
}
PyObject* is_inference_function(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&] {
    PyObject* o = only_argument("is_inference", args, n, names);
    return PyBool_FromLong(expect_tensor(o, "is_inference", "input").has_flag(kInference));
  });
}

}  // namespace

PyMethodDef autograd_methods[] = {
    {"backward", fast(tensor_backward), kFast,
     "backward(gradient=None, retain_graph=None, create_graph=False, inputs=None)\n\n"
     "Adds the gradients of this tensor with respect to the leaves to their `grad`."},
    {"requires_grad_", fast(requires_grad_method), kFast,
     "Sets in place whether operations on the tensor are recorded."},
    {"detach", detach_method, METH_NOARGS, "The same data without history, sharing memory."},
    {"detach_", detach_in_place, METH_NOARGS, "Drops the history of the tensor in place."},
    {"register_hook", register_hook, METH_O,
     "Calls hook(grad) whenever the gradient of the tensor is computed."},
    {"register_post_accumulate_grad_hook", register_post_accumulate_grad_hook, METH_O,
     "Calls hook(tensor) after a gradient was added to the `grad` of a leaf."},
    {"retain_grad", retain_grad_method, METH_NOARGS,
     "Makes backward fill `grad` of a tensor that is no leaf."},
    {"_is_view", is_view, METH_NOARGS, "Is it a view that autograd follows?"},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef autograd_properties[] = {
    {"requires_grad", get_requires_grad, set_requires_grad_property,
     "Are operations on the tensor recorded?", nullptr},
    {"grad", get_grad, set_grad_property, "The gradient that backward accumulated, or None.",
     nullptr},
    {"_grad", get_grad, set_grad_property, nullptr, nullptr},
    {"grad_fn", get_grad_fn, nullptr, "The node that computed the tensor; None for leaves.",
     nullptr},
    {"_grad_fn", get_grad_fn, set_grad_fn, nullptr, nullptr},
    {"is_leaf", get_is_leaf, nullptr, "Was it made by the user and not by a recorded operation?",
     nullptr},
    {"output_nr", get_output_nr, nullptr, "Which output of its grad_fn it is.", nullptr},
    {"retains_grad", get_retains_grad, nullptr, "Does backward fill `grad` though it is no leaf?",
     nullptr},
    {"_version", get_version, nullptr, "Number of changes in place so far.", nullptr},
    {"_base", get_base, nullptr, "The tensor of which this is a view, or None.", nullptr},
    {"data", get_data, set_data_property, "The same data outside autograd's view.", nullptr},
    {"grad_dtype", get_grad_dtype, nullptr, "The dtype of `grad`.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef autograd_functions[] = {
    {"detach", detach_function, METH_O, "The same data without history, sharing memory."},
    {"detach_", detach_in_place_function, METH_O, "Drops the history of a tensor in place."},
    {"is_inference", fast(is_inference_function), kFast,
     "Was the tensor made under inference_mode?"},
    {"_function_apply", fast(apply_function), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

bool init_autograd(PyObject* module) {
  return init_engine() && PyModule_AddFunctions(module, engine_functions) == 0 &&
         init_node_types(module) && init_function_type(module) && init_grad_modes(module);
}

}  // namespace flambeau::python
