#include "python/hooks.h"

namespace flambeau::python {

Tensor PyTensorHook::operator()(const Tensor& grad) const {
  GilHeld gil;
  PyRef argument = checked(wrap(grad));
  PyRef result = checked(PyObject_CallOneArg(callable.get(), argument.get()));
  if (result.get() == Py_None) return {};
  FB_CHECK_TYPE(is_tensor(result.get()), "expected a hook to return a Tensor or None, got ",
                Py_TYPE(result.get())->tp_name);
  return unwrap(result.get());
}

void PyAccumulateHook::operator()(const Tensor& leaf) const {
  GilHeld gil;
  PyRef argument = checked(wrap(leaf));
  PyRef result = checked(PyObject_CallOneArg(callable.get(), argument.get()));
  // `lambda p: p.add_(…)` gives the tensor itself.
  if (is_tensor(result.get()) && unwrap(result.get()).is_same(leaf)) return;
  constexpr const char* kRule = "a post-accumulate-grad hook: expected it to return None, got ";
  const char* given = Py_TYPE(result.get())->tp_name;
  FB_CHECK_TYPE(result.get() == Py_None || is_tensor(result.get()), kRule, given);
  FB_CHECK(result.get() == Py_None, kRule, given, "; change the tensor's grad in place");
}

}  // namespace flambeau::python
