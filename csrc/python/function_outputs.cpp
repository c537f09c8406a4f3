#include "python/function_outputs.h"

#include <algorithm>

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

bool contains(const Tensors& ts, const Tensor& t) {
  return std::any_of(ts.begin(), ts.end(), [&](const Tensor& x) { return x.is_same(t); });
}

Tensor view_of(const Tensor& t, const Tensor& input) {
  Tensor view = alias(t);
  mark_view_as(view, input, ViewOrigin::CustomFunction);
  return view;
}

void record_dirty(const Tensor& t, const Ref<FunctionNode>& node, size_t outputs) {
  AutogradMeta* meta = t->autograd;
  FB_CHECK(!requires_grad(t) || !is_leaf(t),
           "a leaf Variable that requires grad has been used in an in-place operation.");
  if (meta && meta->view) {
    FB_CHECK(outputs == 1,
             "If your Function modifies inplace an input that is a view of another Tensor, your "
             "Function cannot "
             "return more than one Tensor. This is not supported by the current autograd engine.");
    FB_CHECK(node->edges.size() > 0,
             "a Function that changes a view in place must take it as its first tensor");
  }
  rebase_history(t, node);
}

Tensor record_output(const Tensor& t, bool input, bool dirty, bool differentiable, size_t outputs,
                     const Ref<FunctionNode>& node) {
  if (!differentiable) {
    node->add_output(t);
    return requires_grad(t) ? detach(t) : t;
  }
  if (dirty) {
    record_dirty(t, node, outputs);
    return t;
  }
  Tensor out = input ? view_of(t, t) : t;
  if (AutogradMeta* meta = out->autograd; meta && meta->view && !input)
    meta->view->origin = ViewOrigin::CustomFunction;
  set_history(out, node);
  return out;
}

}  // namespace

PyRef wrap_outputs(PyObject* raw, const Tensors& inputs, const Ref<FunctionNode>& node,
                   ContextObject& context) {
  Tensors dirty = marked(context.dirty, "mark_dirty"),
          fixed = marked(context.non_differentiable, "mark_non_differentiable");
  Py_ssize_t n = PyTuple_GET_SIZE(raw);
  size_t tensors = 0, dirty_returned = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = PyTuple_GET_ITEM(raw, i);
    if (!is_tensor(o)) continue;
    ++tensors;
    dirty_returned += contains(dirty, unwrap(o));
  }
  FB_CHECK(dirty_returned >= dirty.size(),
           "Some elements marked as dirty during the forward method were not returned as output. "
           "The inputs that are modified inplace must all be outputs of the Function.");
  PyRef out = checked(PyTuple_New(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = PyTuple_GET_ITEM(raw, i);
    if (!is_tensor(o)) {
      if (node) node->add_output(Tensor());
      PyTuple_SET_ITEM(out.get(), i, Py_NewRef(o));
      continue;
    }
    const Tensor& t = unwrap(o);
    bool input = contains(inputs, t), changed = contains(dirty, t);
    Tensor result = t;
    if (node) {
      bool differentiable = is_inexact(t.dtype()) && !contains(fixed, t);
      result = record_output(t, input, changed, differentiable, tensors, node);
    } else if (input && !changed) {
      result = requires_grad(t) ? detach(t) : view_of(t, t);
    }
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
  Tensors fixed =
      marked(reinterpret_cast<ContextObject*>(ctx)->non_differentiable, "mark_non_differentiable");
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
    FB_CHECK(is_inexact(unwrap(out).dtype()) && !contains(fixed, unwrap(out)),
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
