// Function transforms as Python sees them: levels of vmap, and tensors put in and taken out. The
// transforms themselves are flambeau/func.
#include "autograd/accumulate.h"
#include "func/frames.h"
#include "func/vmap.h"

#include <algorithm>
#include <unordered_set>

#include "gen/ops.h"
#include "python/argparse.h"
#include "python/module.h"

namespace flambeau::python {

namespace {

using func::Level;

Level& level_of(PyObject* capsule) {
  auto* level = static_cast<Level*>(PyCapsule_GetPointer(capsule, "vmap level"));
  if (!level) throw PythonError();
  return *level;
}

func::Randomness randomness_of(const std::string& name) {
  if (name == "error") return func::Randomness::Error;
  if (name == "different") return func::Randomness::Different;
  FB_CHECK_VALUE(name == "same",
                 "vmap: expected randomness to be 'error', 'different' or 'same', got '", name,
                 "'");
  return func::Randomness::Same;
}

// _vmap_enter(batch, randomness) -> level
PyObject* enter(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    FB_CHECK_TYPE(n == 2, "_vmap_enter: expected a batch size and a randomness");
    Level& level = func::enter_level(to_int(args[0]), randomness_of(to_str(args[1])));
    return PyCapsule_New(&level, "vmap level", nullptr);
  });
}
PyObject* leave(PyObject*, PyObject* capsule) {
  return guarded([&] {
    func::leave_level(level_of(capsule));
    return Py_NewRef(Py_None);
  });
}
// _vmap_suspend() -> (level, batch, randomness); _vmap_resume(level)
PyObject* suspend(PyObject*, PyObject*) {
  return guarded([&] {
    Level& level = func::suspend_level();
    const char* names[] = {"error", "different", "same"};
    return Py_BuildValue("(NLs)", PyCapsule_New(&level, "vmap level", nullptr),
                         static_cast<long long>(level.batch),
                         names[static_cast<int>(level.randomness)]);
  });
}
PyObject* resume(PyObject*, PyObject* capsule) {
  return guarded([&] {
    func::resume_level(level_of(capsule));
    return Py_NewRef(Py_None);
  });
}
PyObject* is_innermost(PyObject*, PyObject* x) {
  return guarded([&] {
    Level* level = func::innermost_level();
    return PyBool_FromLong(level && level->wrapped(expect_tensor(x, "_vmap_info", "tensor")));
  });
}
// _vmap_add(level, tensor, dim)
PyObject* add(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    FB_CHECK_TYPE(n == 3, "_vmap_add: expected a level, a tensor and a dim");
    const Tensor& t = expect_tensor(args[1], "vmap", "tensor");
    return wrap(func::add_batch(level_of(args[0]), t, to_int(args[2])));
  });
}
// _vmap_remove(level, tensor, dim or None)
PyObject* remove(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    FB_CHECK_TYPE(n == 3, "_vmap_remove: expected a level, a tensor and a dim");
    Level& level = level_of(args[0]);
    const Tensor& t = expect_tensor(args[1], "vmap", "tensor");
    return wrap(args[2] == Py_None ? level.value(t)
                                   : func::remove_batch(level, t, to_int(args[2])));
  });
}
PyObject* is_batched(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    FB_CHECK_TYPE(n == 2, "_vmap_is_batched: expected a level and a tensor");
    const Tensor& t = expect_tensor(args[1], "_vmap_is_batched", "tensor");
    return PyBool_FromLong(level_of(args[0]).is_batched(t));
  });
}
// Inside vmap: the tensor as one that the innermost level records for. Outside: itself.
PyObject* lift(PyObject*, PyObject* x) {
  return guarded([&] {
    const Tensor& t = expect_tensor(x, "_func_lift", "tensor");
    Level* level = func::innermost_level();
    return level ? wrap(func::lift(*level, t)) : Py_NewRef(x);
  });
}
// Another handle on the same values, of which nothing is recorded yet where gradients of t are.
PyObject* fresh(PyObject*, PyObject* x) {
  return guarded([&] {
    const Tensor& t = expect_tensor(x, "_func_fresh", "tensor");
    return wrap(requires_grad(t) || is_dual(t) ? ops::alias(t) : alias(t));
  });
}
// Whether the values of the tensor, at any level, want gradients.
PyObject* wants_grad(PyObject*, PyObject* x) {
  return guarded([&] {
    return PyBool_FromLong(func::wants_gradients(expect_tensor(x, "_func_wants_grad", "tensor")));
  });
}
// Does something recorded in the innermost level depend on values that want gradients themselves?
PyObject* is_foreign(PyObject*, PyObject*) {
  Level* level = func::innermost_level();
  return PyBool_FromLong(level && level->foreign);
}
// Do the graphs of the outputs lead to leaves other than the inputs and those made inside?
bool leads_elsewhere(const Tensors& outputs, const Tensors& inputs) {
  std::vector<Node*> stack;
  std::vector<const Node*> ours;
  std::unordered_set<const Node*> seen;
  for (const Tensor& x : inputs)
    if (auto node = find_accumulator(x)) ours.push_back(node.get());
  for (const Tensor& y : outputs)
    if (auto node = grad_fn(y)) stack.push_back(node.get());
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    if (!seen.insert(node).second) continue;
    if (node->is_accumulator() && std::find(ours.begin(), ours.end(), node) == ours.end() &&
        !func::is_made_inside(static_cast<AccumulateGrad*>(node)->leaf))
      return true;
    for (const Edge& e : node->edges)
      if (e.node) stack.push_back(e.node.get());
  }
  return false;
}
PyObject* py_leads_elsewhere(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    FB_CHECK_TYPE(n == 2, "_func_leads_elsewhere: expected outputs and inputs");
    return PyBool_FromLong(leads_elsewhere(to_tensors(args[0]), to_tensors(args[1])));
  });
}
// _func_enter(tensors) -> frame; _func_leave(frame)
PyObject* enter_frame(PyObject*, PyObject* tensors) {
  return guarded(
      [&] { return PyCapsule_New(func::enter_frame(to_tensors(tensors)), "func frame", nullptr); });
}
PyObject* leave_frame(PyObject*, PyObject* capsule) {
  return guarded([&] {
    auto* frame = static_cast<func::Frame*>(PyCapsule_GetPointer(capsule, "func frame"));
    if (!frame) throw PythonError();
    func::leave_frame(frame);
    return Py_NewRef(Py_None);
  });
}
PyObject* inside_transform(PyObject*, PyObject*) {
  return PyBool_FromLong(func::inside_transform());
}
// _vmap_info(tensor) -> (depth, batched, value), or None for a tensor that is no wrapper
PyObject* info(PyObject*, PyObject* x) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = expect_tensor(x, "_vmap_info", "tensor");
    if (!t.has_flag(kWrapper)) return Py_NewRef(Py_None);
    const Wrapped& w = *t->autograd->wrapped;
    return Py_BuildValue("(LNN)", static_cast<long long>(w.depth), PyBool_FromLong(w.batched),
                         wrap(w.value));
  });
}

void warn_user(const std::string& message) {
  GilHeld gil;
  if (PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1) < 0) throw PythonError();
}

}  // namespace

PyMethodDef func_functions[] = {
    {"_vmap_enter", fast(enter), METH_FASTCALL, nullptr},
    {"_vmap_leave", leave, METH_O, nullptr},
    {"_vmap_add", fast(add), METH_FASTCALL, nullptr},
    {"_vmap_remove", fast(remove), METH_FASTCALL, nullptr},
    {"_vmap_is_batched", fast(is_batched), METH_FASTCALL, nullptr},
    {"_vmap_suspend", suspend, METH_NOARGS, nullptr},
    {"_vmap_resume", resume, METH_O, nullptr},
    {"_vmap_is_innermost", is_innermost, METH_O, nullptr},
    {"_vmap_info", info, METH_O, nullptr},
    {"_func_lift", lift, METH_O, nullptr},
    {"_func_enter", enter_frame, METH_O, nullptr},
    {"_func_leave", leave_frame, METH_O, nullptr},
    {"_func_inside", inside_transform, METH_NOARGS, nullptr},
    {"_func_fresh", fresh, METH_O, nullptr},
    {"_func_wants_grad", wants_grad, METH_O, nullptr},
    {"_func_is_foreign", is_foreign, METH_NOARGS, nullptr},
    {"_func_leads_elsewhere", fast(py_leads_elsewhere), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

bool init_func(PyObject* module) {
  func::warn = warn_user;
  return PyModule_AddFunctions(module, func_functions) == 0;
}

}  // namespace flambeau::python
