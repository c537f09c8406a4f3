// Batches of matrices as LAPACK wants them: dense, column by column. Owns the passage between
// tensors of any strides and such batches, the choice of threads for small matrices, and the
// element types that factorisations have. Knows no routine of LAPACK.
#pragma once

#include <limits>

#include "core/parallel.h"
#include "core/tensor.h"
#include "kernels/copy.h"
#include "kernels/providers/lapack.h"

namespace flambeau::kernels {

// Calls f.operator()<T>() for the four element types of linear algebra.
template <class F>
decltype(auto) visit_inexact(DType d, const char* op, F&& f) {
  switch (d) {
    case DType::Float32:
      return f.template operator()<float>();
    case DType::Float64:
      return f.template operator()<double>();
    case DType::Complex64:
      return f.template operator()<complex64>();
    case DType::Complex128:
      return f.template operator()<complex128>();
    default:
      fail(ErrorKind::Runtime, op, ": expected float, double, cfloat or cdouble, got ",
           scalar_type_name(d));
  }
}

// Strides of a batch of matrices whose columns are dense.
inline Ints column_strides(const Ints& sizes) {
  Ints strides = contiguous_strides(sizes);
  const size_t n = sizes.size();
  strides[n - 2] = 1;
  strides[n - 1] = std::max<int64_t>(1, sizes[n - 2]);
  return strides;
}

// x itself when its columns are dense already, else a place of that layout (without values).
inline Tensor columns_of(const Tensor& x) {
  Ints strides = column_strides(x.sizes());
  return x.strides() == strides ? x : empty_strided(x.sizes(), strides, x.dtype());
}
// A copy of x (converted to `dtype`) with dense columns, broadcast to `batch`.
inline Tensor column_copy(const Tensor& x, DType dtype, const Ints& batch) {
  Ints sizes = batch;
  sizes.push_back(x.size(-2));
  sizes.push_back(x.size(-1));
  Tensor out = empty_strided(sizes, column_strides(sizes), dtype);
  copy(out, x);
  return out;
}
inline Tensor column_copy(const Tensor& x) {
  Ints batch = x.sizes();
  batch.resize(batch.size() - 2);
  return column_copy(x, x.dtype(), batch);
}
// x for reading, broadcast to `batch`: itself when it is laid out so already.
inline Tensor columns_read(const Tensor& x, const Ints& batch) {
  Ints sizes = batch;
  sizes.push_back(x.size(-2));
  sizes.push_back(x.size(-1));
  return x.sizes() == sizes && x.strides() == column_strides(sizes)
             ? x
             : column_copy(x, x.dtype(), batch);
}
// The same for vectors and for anything else that must be row-major.
inline Tensor dense_of(const Tensor& x) {
  return x.is_contiguous() ? x : empty(x.sizes(), x.dtype());
}
// Puts what was worked out in `work` where it belongs.
inline void settle(const Tensor& out, const Tensor& work) {
  if (!out.is_same(work)) copy(out, work);
}

// Number of matrices in a batch (sizes without the last `tail` ones).
inline int64_t batch_of(const Tensor& x, int64_t tail = 2) {
  int64_t n = 1;
  for (int64_t d = 0; d < x.dim() - tail; ++d) n *= x.sizes()[d];
  return n;
}
inline int small(int64_t n, const char* op) {
  FB_CHECK(n < std::numeric_limits<int>::max(), op,
           ": matrices of 2**31 rows and more are not supported");
  return static_cast<int>(n);
}

// f(i) for each matrix. Matrices are shared out over threads when they are small or many; a few
// large ones are each shared out by their factorisation.
template <class F>
void each_matrix(int64_t batch, int64_t n, const F& f) {
  const int64_t work = std::max<int64_t>(1, n * n * n);
  const int64_t grain =
      n > 128 && batch < num_threads() ? batch : std::max<int64_t>(1, (1 << 16) / work);
  lapack::available();  // looked for now: threads of a region do not look
  parallel_for(0, batch, std::max<int64_t>(1, grain), [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) f(i);
  });
}

}  // namespace flambeau::kernels
