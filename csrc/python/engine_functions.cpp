// Functions of the module around the engine: backward, callbacks, saved-tensor hooks, anomaly mode,
// dual numbers.
#include <string>
#include <thread>

#include "autograd/change_watch.h"
#include "autograd/forward_mode.h"
#include "autograd/meta.h"
#include "func/frames.h"
#include "python/autograd.h"
#include "python/node_object.h"
#include "python/saved_values.h"
#include "python/user_warning.h"

namespace flambeau::python {

namespace {

PyObject* none() {
  return Py_NewRef(Py_None);
}

// Backward
// --------------------------------------------------------------------------------------------------------------------

std::vector<Edge> input_edges(PyObject* inputs, bool accumulate) {
  std::vector<Edge> edges;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); ++i) {
    PyObject* o = PyTuple_GET_ITEM(inputs, i);
    if (is_tensor(o)) {
      FB_CHECK(requires_grad(unwrap(o)), "One of the differentiated Tensors does not require grad");
      if (accumulate) retain_grad(unwrap(o));
    }
    edges.push_back(edge_of(o));
  }
  return edges;
}

Tensor optional_tensor(PyObject* o, const char* what) {
  if (o == Py_None) return {};
  FB_CHECK_TYPE(is_tensor(o), what, ": expected a Tensor or None, got ", Py_TYPE(o)->tp_name);
  return unwrap(o);
}

bool truth(PyObject* o) {
  int t = PyObject_IsTrue(o);
  checked_int(t);
  return t;
}

void warn_of_cycle() {
  static bool warned = false;
  if (std::exchange(warned, true)) return;
  const char* text =
      "Using backward() with create_graph=True will create a reference cycle between the parameter "
      "and its gradient which "
      "can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid "
      "this. If you have to use "
      "this function, make sure to reset the .grad fields of your parameters to None after use to "
      "break the cycle and avoid "
      "the leak.";
  warn_user(text);
}

// _run_backward(roots, cotangents, keep_graph, create_graph, inputs, allow_unused, accumulate)
PyObject* run_backward_function(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    FB_CHECK_TYPE(
        n == 7 && PyTuple_Check(args[0]) && PyTuple_Check(args[1]) && PyTuple_Check(args[4]),
        "_run_backward: expected tuples of roots, cotangents and inputs");
    PyObject* inputs = PyTuple_GET_SIZE(args[4]) ? args[4] : nullptr;
    return call_backward(
        {args[0], args[1], truth(args[2]), truth(args[3]), inputs, truth(args[5]), truth(args[6])});
  });
}

PyObject* queue_callback_function(PyObject*, PyObject* f) {
  return guarded([&] {
    PyCallable callable(f);
    queue_callback([callable] {
      GilHeld gil;
      checked(PyObject_CallNoArgs(callable.get()));
    });
    return none();
  });
}

PyObject* current_task(PyObject*, PyObject*) {
  return PyLong_FromLongLong(running_task_id());
}
PyObject* current_node(PyObject*, PyObject*) {
  return guarded([&] { return wrap_node(Ref<Node>(running_node())); });
}
PyObject* keeps_graph(PyObject*, PyObject*) {
  return PyBool_FromLong(running_keeps_graph());
}
PyObject* is_restricted(PyObject*, PyObject*) {
  return PyBool_FromLong(running_is_restricted());
}
PyObject* will_engine_execute(PyObject*, PyObject* node) {
  return guarded([&] { return PyBool_FromLong(will_execute(&unwrap_node(node))); });
}

PyObject* gradient_edge_function(PyObject*, PyObject* o) {
  return guarded([&] {
    const Tensor& t = expect_tensor(o, "get_gradient_edge", "tensor");
    FB_CHECK(requires_grad(t),
             "It is not possible to get the gradient edge for a Tensor that does not require "
             "gradients.");
    Edge edge = gradient_edge(t);
    PyRef node = checked(wrap_node(edge.node));
    return Py_BuildValue("(OI)", node.get(), edge.nr);
  });
}

PyObject* bump_version(PyObject*, PyObject* o) {
  return guarded([&] {
    const Tensor& t = expect_tensor(o, "increment_version", "tensor");
    FB_CHECK(
        !t.has_flag(kInference),
        "increment_version can only be called on tensors that track versions, not on inference "
        "tensors");
    t.bump_version();
    return none();
  });
}

// Saved-tensor hooks
// --------------------------------------------------------------------------------------------------------------

PyObject* push_hooks(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    FB_CHECK_TYPE(n == 2 && PyCallable_Check(args[0]) && PyCallable_Check(args[1]),
                  "saved_tensors_hooks: expected pack_hook and unpack_hook to be callable");
    push_saved_tensor_hooks(pack_hook(args[0], args[1]));
    return none();
  });
}
// Change watches
// --------------------------------------------------------------------------------------------------------------
// watch(tensor) is called before each change in place on this thread.
class PyWatch final : public ChangeWatch {
 public:
  explicit PyWatch(PyObject* callable) : callable_(callable) {}
  void before(const Tensor& x, const char*) override {
    GilHeld gil;
    PyRef argument = checked(wrap(x));
    checked(PyObject_CallOneArg(callable_.get(), argument.get()));
  }

 private:
  PyCallable callable_;
};
PyObject* push_change_watch(PyObject*, PyObject* callable) {
  return guarded([&] {
    FB_CHECK_TYPE(PyCallable_Check(callable), "_push_change_watch: expected a function");
    auto* watch = new PyWatch(callable);
    push_watch(*watch);
    return PyCapsule_New(watch, "change watch", nullptr);
  });
}
PyObject* remove_change_watch(PyObject*, PyObject* capsule) {
  auto* watch = static_cast<PyWatch*>(PyCapsule_GetPointer(capsule, "change watch"));
  if (!watch) return nullptr;
  remove_watch(*watch);
  delete watch;
  Py_RETURN_NONE;
}

PyObject* pop_hooks(PyObject*, PyObject*) {
  return guarded([&] {
    pop_saved_tensor_hooks();
    return none();
  });
}
PyObject* disable_hooks(PyObject*, PyObject* message) {
  return guarded([&] {
    const char* text = message == Py_None ? "" : PyUnicode_AsUTF8(message);
    if (!text) throw PythonError();
    disable_saved_tensor_hooks(text);
    return none();
  });
}
PyObject* hooks_disabled(PyObject*, PyObject*) {
  std::string text = saved_tensor_hooks_disabled();
  return text.empty() ? none() : PyUnicode_FromString(text.c_str());
}

// Anomaly mode
// ------------------------------------------------------------------------------------------------------------------------

std::string trace_of_python() {
  if (!Py_IsInitialized()) return "";
  GilHeld gil;
  PyRef traceback = PyRef::steal(import_module("traceback"));
  PyRef lines = PyRef::steal(
      traceback ? PyObject_CallMethod(traceback.get(), "format_stack", nullptr) : nullptr);
  PyRef empty = PyRef::steal(PyUnicode_FromString(""));
  PyRef text = PyRef::steal(lines && empty ? PyUnicode_Join(empty.get(), lines.get()) : nullptr);
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!utf8) PyErr_Clear();
  return utf8 ? utf8 : "";
}

void warn_of_anomaly(const std::string& text) {
  GilHeld gil;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0) PyErr_WriteUnraisable(nullptr);
  PyErr_Restore(type, value, traceback);
}

PyObject* set_anomaly(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    FB_CHECK_TYPE(n == 1 || n == 2, "set_anomaly_enabled: expected (enabled, check_nan=True)");
    Anomaly::enabled = truth(args[0]);
    Anomaly::check_nan = n == 1 || truth(args[1]);
    return none();
  });
}
PyObject* is_anomaly_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(Anomaly::enabled);
}
PyObject* is_anomaly_check_nan_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(Anomaly::check_nan);
}

// Dual numbers
// --------------------------------------------------------------------------------------------------------------------------

PyObject* enter_level(PyObject*, PyObject*) {
  return guarded([&] { return PyLong_FromLongLong(enter_dual_level()); });
}
PyObject* enter_nested_level(PyObject*, PyObject*) {
  return guarded([&] { return PyLong_FromLongLong(enter_dual_level(/*nested=*/true)); });
}
PyObject* exit_level(PyObject*, PyObject* level) {
  return guarded([&] {
    exit_dual_level(PyLong_AsLongLong(level));
    return none();
  });
}
PyObject* make_dual_function(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    FB_CHECK_TYPE(n == 2, "_make_dual: expected (primal, tangent)");
    return wrap(make_dual(expect_tensor(args[0], "make_dual", "tensor"),
                          expect_tensor(args[1], "make_dual", "tangent")));
  });
}
PyObject* unpack_dual_function(PyObject*, PyObject* o) {
  return guarded([&] {
    const Tensor& t = expect_tensor(o, "unpack_dual", "tensor");
    Tensor tangent = tangent_of(t);
    PyRef primal = tangent.defined() ? checked(wrap(primal_of(t))) : PyRef::borrow(o);
    PyRef second = checked(wrap(tangent));
    return PyTuple_Pack(2, primal.get(), second.get());
  });
}

void on_python_thread(const std::function<void()>& f) {
  auto run = [&] {
    std::thread([&] {
      GilHeld gil;  // one thread state for all hooks that run there
      GilFree free;
      f();
    }).join();
  };
  if (PyGILState_Check()) {
    GilFree free;
    run();
  } else {
    run();
  }
}

}  // namespace

PyObject* call_backward(const BackwardCall& call) {
  Py_ssize_t n = PyTuple_GET_SIZE(call.roots);
  std::vector<Edge> roots, inputs;
  Tensors cotangents;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = PyTuple_GET_ITEM(call.roots, i);
    Tensor given = i < PyTuple_GET_SIZE(call.cotangents)
                       ? optional_tensor(PyTuple_GET_ITEM(call.cotangents, i), "backward")
                       : Tensor();
    roots.push_back(edge_of(o));
    if (is_tensor(o)) {
      given = root_cotangent(unwrap(o), given, static_cast<size_t>(i), call.create_graph);
      FB_CHECK(roots.back().node, "element ", i,
               " of tensors does not require grad and does not have a grad_fn");
    } else {
      FB_CHECK(given.defined(),
               "grad can be implicitly created only for scalar outputs; a GradientEdge needs its "
               "cotangent");
    }
    cotangents.push_back(std::move(given));
  }
  if (call.inputs) inputs = input_edges(call.inputs, call.accumulate);
  if (call.accumulate) func::refuse_inside("backward()", "use grad or vjp of the function");
  if (call.create_graph && call.accumulate) warn_of_cycle();
  Tensors results;
  {
    GilFree free;
    results = run_backward(roots, std::move(cotangents), call.keep_graph, call.create_graph, inputs,
                           call.accumulate);
  }
  if (!call.inputs || call.accumulate) return Py_NewRef(Py_None);
  for (size_t i = 0; i < results.size(); ++i)
    FB_CHECK(results[i].defined() || call.allow_unused, "The differentiated Tensor at index ", i,
             " appears to not have been used "
             "in the graph. Set allow_unused=True if this is the desired behavior.");
  return wrap_optional_tuple(results);
}

PyObject* tensor_backward(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  return guarded([&] {
    static const char* const names[] = {"gradient", "retain_graph", "create_graph", "inputs"};
    PyObject* slot[4] = {Py_None, Py_None, Py_False, Py_None};
    FB_CHECK_TYPE(n <= 4, "backward() takes at most 4 arguments, got ", n);
    for (Py_ssize_t i = 0; i < n; ++i) slot[i] = args[i];
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); ++k) {
      PyObject* key = PyTuple_GET_ITEM(kwnames, k);
      int i = 0;
      while (i < 4 && PyUnicode_CompareWithASCIIString(key, names[i]) != 0) ++i;
      FB_CHECK_TYPE(i < 4, "backward() got an unexpected keyword argument '", PyUnicode_AsUTF8(key),
                    "'");
      slot[i] = args[n + k];
    }
    bool create = truth(slot[2]), keep = slot[1] == Py_None ? create : truth(slot[1]);
    PyRef roots = checked(PyTuple_Pack(1, self)), grads = checked(PyTuple_Pack(1, slot[0])), inputs;
    if (slot[3] != Py_None) {
      inputs = is_tensor(slot[3]) ? checked(PyTuple_Pack(1, slot[3]))
                                  : checked(PySequence_Tuple(slot[3]));
      FB_CHECK(PyTuple_GET_SIZE(inputs.get()) > 0,
               "`inputs` argument to `backward()` cannot be empty.");
    }
    return call_backward({roots.get(), grads.get(), keep, create, inputs.get(), true, true});
  });
}

PyMethodDef engine_functions[] = {
    {"_run_backward", fast(run_backward_function), METH_FASTCALL, nullptr},
    {"_queue_callback", queue_callback_function, METH_O, nullptr},
    {"_current_graph_task_id", current_task, METH_NOARGS, nullptr},
    {"_current_autograd_node", current_node, METH_NOARGS, nullptr},
    {"_current_graph_task_keep_graph", keeps_graph, METH_NOARGS, nullptr},
    {"_backward_is_restricted", is_restricted, METH_NOARGS, nullptr},
    {"_will_engine_execute_node", will_engine_execute, METH_O, nullptr},
    {"_gradient_edge", gradient_edge_function, METH_O, nullptr},
    {"_bump_version", bump_version, METH_O, nullptr},
    {"_push_saved_tensors_hooks", fast(push_hooks), METH_FASTCALL, nullptr},
    {"_push_change_watch", push_change_watch, METH_O, nullptr},
    {"_remove_change_watch", remove_change_watch, METH_O, nullptr},
    {"_pop_saved_tensors_hooks", pop_hooks, METH_NOARGS, nullptr},
    {"_disable_saved_tensors_hooks", disable_hooks, METH_O, nullptr},
    {"_saved_tensors_hooks_disabled", hooks_disabled, METH_NOARGS, nullptr},
    {"_set_anomaly_enabled", fast(set_anomaly), METH_FASTCALL, nullptr},
    {"is_anomaly_enabled", is_anomaly_enabled, METH_NOARGS, "Is anomaly mode on?"},
    {"is_anomaly_check_nan_enabled", is_anomaly_check_nan_enabled, METH_NOARGS,
     "Does anomaly mode look for NaN?"},
    {"_enter_dual_level", enter_level, METH_NOARGS, nullptr},
    {"_enter_nested_dual_level", enter_nested_level, METH_NOARGS, nullptr},
    {"_exit_dual_level", exit_level, METH_O, nullptr},
    {"_make_dual", fast(make_dual_function), METH_FASTCALL, nullptr},
    {"_unpack_dual", unpack_dual_function, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

bool init_engine() {
  python_trace = trace_of_python;
  anomaly_report = warn_of_anomaly;
  run_elsewhere = on_python_thread;
  return true;
}

}  // namespace flambeau::python
