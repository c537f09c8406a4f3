// Python callables as the hooks of autograd: the functors that TensorHooks and NodeHooks hold when
// Python registers one. Using these types lets tensor_object.cpp see the callables when Python
// looks for reference cycles.
#pragma once

#include "autograd/node.h"
#include "python/tensor_object.h"

namespace flambeau::python {

// hook(grad) -> Tensor or None (unchanged); anything else is a TypeError.
struct PyTensorHook {
  PyCallable callable;
  Tensor operator()(const Tensor& grad) const;
};
// hook(leaf) -> None; anything else is an error.
struct PyAccumulateHook {
  PyCallable callable;
  void operator()(const Tensor& leaf) const;
};

}  // namespace flambeau::python
