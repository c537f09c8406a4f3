#include "autograd/grad_ops.h"

#include <cmath>

#include "autograd/generated.h"
#include "autograd/node.h"
#include "gen/ops.h"
#include "kernels/copy.h"

namespace flambeau::grad_ops {

Tensor add(const Tensor& a, const Tensor& b) {
  return ops::add(a, b);
}

void add_(const Tensor& a, const Tensor& b) {
  NoGradGuard no_grad;
  ops::add_(a, b);
}

Tensor ones_for(const Tensor& x) {
  if (x.has_flag(kWrapper)) return ops::ones_like(x);
  Tensor out = empty(x.sizes(), x.dtype(), MemoryFormat::Contiguous, x.device());
  kernels::fill(out, Scalar(int64_t{1}));
  return out;
}

Tensor zeros_for(const Tensor& x) {
  return x.has_flag(kWrapper) ? ops::zeros_like(x) : zeros(x.sizes(), x.dtype(), x.device());
}

Tensor empty_strided_for(const Tensor& x, const Ints& sizes, const Ints& strides) {
  if (intercepted()) return ops::new_empty_strided(x, sizes, strides);
  return empty_strided(sizes, strides, x.dtype(), x.device());
}

Tensor zeros(const Ints& sizes, DType dtype, Device device) {
  Tensor out = empty(sizes, dtype, MemoryFormat::Contiguous, device);
  kernels::fill_zero(out);
  return out;
}

Tensor sum_to(const Tensor& x, const Ints& shape) {
  return flambeau::sum_to(x, shape);
}

Tensor to_dtype(const Tensor& x, DType dtype) {
  const Tensor y = x.is_complex() && !is_complex(dtype) ? ops::real(x) : x;
  if (y.dtype() == dtype) return y;
  if (intercepted()) return ops::_to_copy(y, dtype);
  return ops::copy_(empty_like(y, dtype), y);
}

Tensor clone(const Tensor& x) {
  return ops::clone(x);
}

Tensor clone_for(const Tensor& x, const Tensor& leaf) {
  bool dense = leaf.is_dense() && leaf.sizes() == x.sizes() && !leaf.has_flag(kWrapper);
  return copy_strided(x, x.sizes(), dense ? leaf.strides() : contiguous_strides(x.sizes()));
}

Tensor copy_strided(const Tensor& x, const Ints& sizes, const Ints& strides) {
  return ops::copy_(empty_strided_for(x, sizes, strides), x);
}

// A view of another type over complex numbers sees them as pairs.
Tensor slice_of(const Tensor& base, DType dtype, const Ints& sizes, const Ints& strides,
                int64_t offset) {
  if (dtype == base.dtype()) return ops::as_strided(base, sizes, strides, base.offset() + offset);
  if (is_complex(base.dtype()) && dtype == to_real(base.dtype())) {
    Tensor pairs = ops::view_as_real(base);
    return ops::as_strided(pairs, sizes, strides, pairs.offset() + offset);
  }
  if (is_complex(dtype) && base.dtype() == to_real(dtype)) {
    Ints pair_sizes = sizes, pair_strides = strides;
    for (auto& s : pair_strides) s *= 2;
    pair_sizes.push_back(2);
    pair_strides.push_back(1);
    return ops::view_as_complex(
        ops::as_strided(base, pair_sizes, pair_strides, base.offset() + 2 * offset));
  }
  fail(ErrorKind::NotImplemented, "no gradient through a view of ", base.dtype(), " as ", dtype);
}

void copy_(const Tensor& dst, const Tensor& src) {
  ops::copy_(dst, src);
}
void zero_(const Tensor& dst) {
  ops::copy_(dst, zeros({}, dst.dtype(), dst.device()));
}

Tensor scatter_to_base(const Tensor& g, DType base_dtype, const Ints& base_sizes,
                       const Ints& base_strides, DType dtype, const Ints& sizes,
                       const Ints& strides, int64_t offset) {
  if (dtype == base_dtype)
    return ops::as_strided_backward(g, base_sizes, base_strides, 0, sizes, strides, offset);
  Tensor base = empty_strided(base_sizes, base_strides, base_dtype, g.device());
  kernels::fill_zero(base);
  ops::copy_(slice_of(base, dtype, sizes, strides, offset), g);
  return base;
}

bool has_nan(const Tensor& x) {
  if (!is_inexact(x.dtype())) return false;
  Tensor flat = kernels::contiguous(x);
  return visit(x.dtype(), [&]<class T>() {
    const T* p = flat.data<T>();
    for (int64_t i = 0; i < flat.numel(); ++i)
      if (p[i] != p[i]) return true;
    return false;
  });
}

}  // namespace flambeau::grad_ops
