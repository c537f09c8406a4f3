// What autograd itself computes with: sums of gradients, zeros, ones, reduction to a shape, copies.
// In grad mode (a backward that is recorded) through recorded operations. The one place where
// autograd calls operations.
#pragma once

#include "core/tensor.h"

namespace flambeau::grad_ops {

Tensor add(const Tensor& a, const Tensor& b);
void add_(const Tensor& a, const Tensor& b);  // below autograd; bumps the version
// Constants for x: batched where x is.
Tensor ones_for(const Tensor& x);
Tensor zeros_for(const Tensor& x);
Tensor zeros(const Ints& sizes, DType dtype, Device device);
// Memory of that geometry for values like those of x.
Tensor empty_strided_for(const Tensor& x, const Ints& sizes, const Ints& strides);
Tensor sum_to(const Tensor& x, const Ints& shape);
Tensor to_dtype(const Tensor& x, DType dtype);  // complex to real takes the real part
Tensor clone(const Tensor& x);
// A copy with the layout that a leaf's gradient has: the leaf's own if that is dense, else
// row-major.
Tensor clone_for(const Tensor& x, const Tensor& leaf);
// A dense-in-storage tensor of that geometry with x's values.
Tensor copy_strided(const Tensor& x, const Ints& sizes, const Ints& strides);
// The part of `base` that a view with this geometry and dtype (relative to the base's first
// element) shows.
Tensor slice_of(const Tensor& base, DType dtype, const Ints& sizes, const Ints& strides,
                int64_t offset);
void copy_(const Tensor& dst, const Tensor& src);
void zero_(const Tensor& dst);
// Cotangent of a base of that geometry from one of such a view of it.
Tensor scatter_to_base(const Tensor& g, DType base_dtype, const Ints& base_sizes,
                       const Ints& base_strides, DType dtype, const Ints& sizes,
                       const Ints& strides, int64_t offset);
bool has_nan(const Tensor& x);  // below autograd

}  // namespace flambeau::grad_ops
