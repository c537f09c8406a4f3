// Matrix products for kernels: one call for every dtype, any strides, with the epilogues that
// layers need. Owns the choice of method (tiny, vector, packed, pairs of bfloat16, planes of
// complex numbers) and of the number of threads. Knows no Tensor shape rule and no autograd.
#pragma once

#include "core/dtype.h"

namespace flambeau::kernels {

// A matrix in memory: element (i, j) at data + (i * rs + j * cs) elements.
struct MatrixRef {
  const void* data;
  int64_t rs, cs;
};

// c = alpha * a b + beta * c + bias (per column) + row_bias; a: m x k, b: k x n. With beta 0, c is
// not read. c must not overlap a or b; its columns or its rows are dense (cs or rs is 1). Integers:
// alpha 1, beta 0 or 1, no rounding.
struct Gemm {
  DType dtype;
  int64_t m, n, k;
  MatrixRef a, b;
  void* c;
  int64_t c_rs, c_cs = 1;
  double alpha = 1, beta = 0;
  const void* bias = nullptr;
  const void* row_bias = nullptr;
};

void gemm(const Gemm& g);         // with all threads when it pays
void gemm_single(const Gemm& g);  // in the calling thread
// `batch` products; the strides (in elements) lead from one to the next.
void gemm_batch(const Gemm& first, int64_t batch, int64_t a_stride, int64_t b_stride,
                int64_t c_stride);

}  // namespace flambeau::kernels
