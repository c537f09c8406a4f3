#include "python/function_outputs.h"

#include "autograd/custom_function.h"
#include "autograd/forward_mode.h"
#include "autograd/generated.h"
#include "autograd/meta.h"
#include "gen/ops.h"

namespace flambeau::python {

namespace {

// The tensors of a tuple that the user gave to mark_dirty or mark_non_differentiable.
Tensors marked(PyObject* given, const char* what) {
  Tensors out;
  if (!given || given == Py_None) return out;
  PyRef items = checked(PySequence_Tuple(given));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); ++i) {
    PyObject* o = PyTuple_GET_ITEM(items.get(), i);
    FB_CHECK_TYPE(is_tensor(o), what, " can only accept variables, but argument ", i,
                  " is of type ", Py_TYPE(o)->tp_name);
    out.push_back(unwrap(o));
  }
  return out;
}

}  // namespace

PyRef wrap_outputs(PyObject* raw, const Tensors& inputs, const Ref<FunctionNode>& node,
                   ContextObject& context) {
  Py_ssize_t n = PyTuple_GET_SIZE(raw);
  Tensors tensors;
  for (Py_ssize_t i = 0; i < n; ++i)
    if (PyObject* o = PyTuple_GET_ITEM(raw, i); is_tensor(o)) tensors.push_back(unwrap(o));
  const FunctionResults results{
      inputs, marked(context.dirty, "mark_dirty"),
      marked(context.non_differentiable, "mark_non_differentiable"), tensors.size(), node};
  results.check(tensors);
  PyRef out = checked(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = PyTuple_GET_ITEM(raw, i);
    if (!is_tensor(o)) {
      if (node) node->add_output(Tensor());
      PyTuple_SET_ITEM(out.get(), i, Py_NewRef(o));
      continue;
    }
    const Tensor& t = unwrap(o);
    Tensor result = results.join(t);
    // A view of an input that was returned is of the input's class, as other views are.
    bool same_class = result.has_flag(kIsView) && !is_exact_tensor(o) && torch_function_enabled &&
                      wants_torch_function(o);
    PyTypeObject* type = same_class ? Py_TYPE(o) : TensorType;
    PyTuple_SET_ITEM(
        out.get(), i,
        result.is_same(t) ? Py_NewRef(o) : checked(wrap_as(type, Tensor(result))).release());
  }
  return out;
}

void push_tangents(PyObject* cls, PyObject* ctx, PyObject* inputs, PyObject* outputs) {
  Py_ssize_t n = PyTuple_GET_SIZE(inputs);
  bool zeros = reinterpret_cast<ContextObject*>(ctx)->materialize;
  PyRef args = checked(PyTuple_New(n + 1));
  PyTuple_SET_ITEM(args.get(), 0, Py_NewRef(ctx));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = PyTuple_GET_ITEM(inputs, i);
    Tensor tangent = is_tensor(o) ? tangent_of(unwrap(o)) : Tensor();
    if (is_tensor(o) && zeros && is_inexact(unwrap(o).dtype()))
      tangent = tangent_like(tangent, unwrap(o));
    PyTuple_SET_ITEM(args.get(), i + 1, checked(wrap(tangent)).release());
  }
  const FunctionResults results{
      {}, {}, marked(reinterpret_cast<ContextObject*>(ctx)->non_differentiable,
                     "mark_non_differentiable"), 0, nullptr};
  PyRef jvp = checked(PyObject_GetAttrString(cls, "jvp"));
  PyRef result = checked(PyObject_CallObject(jvp.get(), args.get()));
  PyRef tangents =
      PyTuple_Check(result.get()) ? std::move(result) : checked(PyTuple_Pack(1, result.get()));
  FB_CHECK(PyTuple_GET_SIZE(tangents.get()) == PyTuple_GET_SIZE(outputs),
           "jvp of a custom Function: expected ", PyTuple_GET_SIZE(outputs),
           " tangents, one per output of forward, got ", PyTuple_GET_SIZE(tangents.get()));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(outputs); ++i) {
    PyObject *out = PyTuple_GET_ITEM(outputs, i), *tangent = PyTuple_GET_ITEM(tangents.get(), i);
    if (!is_tensor(out) || tangent == Py_None) continue;
    FB_CHECK(results.differentiable(unwrap(out)),
             "jvp of a custom Function: expected None as tangent ", i,
             ", for that output is not differentiable, got a Tensor");
    FB_CHECK_TYPE(is_tensor(tangent),
                  "jvp of a custom Function: expected a Tensor or None as tangent ", i, ", got ",
                  Py_TYPE(tangent)->tp_name);
    FB_CHECK(unwrap(tangent).sizes() == unwrap(out).sizes(), "jvp of a custom Function: tangent ",
             i, " has shape ", unwrap(tangent).sizes(), ", the output has ", unwrap(out).sizes());
    set_tangent(unwrap(out), unwrap(tangent));
  }
}

}  // namespace flambeau::python
