// The built-in matrix product as the providers' front (blas.cpp) calls it: real element types, one
// call, strided operands. Complex products and the choice of method are not known here.
#pragma once

#include "core/dtype.h"
#include "kernels/isa.h"

namespace flambeau::kernels {

// c = alpha * a b + beta * c + bias, with a: m x k, b: k x n, c: m x n of row stride ldc; all of
// one dtype.
struct GemmCall {
  DType dtype;
  int64_t m, n, k;
  const void* a;
  int64_t a_rs, a_cs;  // strides in elements between rows and columns
  const void* b;
  int64_t b_rs, b_cs;
  void* c;
  int64_t ldc;
  double alpha = 1, beta = 0;
  const void* bias = nullptr;      // one per column, of the dtype
  const void* row_bias = nullptr;  // one per row, of the dtype
  int threads = 1;
};

// y[i * y_stride] = alpha * sum_k a[i, k] x[k] + beta * y (+ bias[i * bias_stride]); x dense. float
// and double.
struct GemvCall {
  DType dtype;
  int64_t m, k;
  const void* a;
  int64_t a_rs, a_cs;  // one of them is 1
  const void* x;
  void* y;
  int64_t y_stride;
  double alpha = 1, beta = 0;
  const void* bias = nullptr;
  int64_t bias_stride = 0;
};

FB_ISA_DECLARE(void gemm_real(const GemmCall& call);)
FB_ISA_DECLARE(void gemm_integer(const GemmCall& call);)
FB_ISA_DECLARE(void gemv_rows(const GemvCall& call, int64_t from, int64_t to);)  // rows [from, to)

// Dot products of bfloat16 pairs (AVX512_BF16): false when the machine or the build has none.
bool has_bf16_dot();
void gemm_bf16_dot(const GemmCall& call);
// The same by the tiles of AMX; k is not 0.
bool has_amx();
inline constexpr int64_t kTileLanes = 16;  // rows or columns of a tile: with fewer it does not pay
void gemm_amx(const GemmCall& call);
// In parts, for kernels that use an operand several times. A right operand is `lanes` columns of
// `values` numbers, at data + lane * column + along * number, packed into so many words.
int64_t amx_words(int64_t lanes, int64_t values);
void amx_pack(const BFloat16* data, int64_t lane, int64_t along, int64_t lanes, int64_t values,
              uint32_t* to);
// c = alpha * a b + beta * c in float, in the calling thread; b is packed.
struct AmxProduct {
  int64_t m, n, k;
  const BFloat16* a;
  int64_t a_rs, a_cs;
  const uint32_t* b;
  int64_t b_values;  // that b was packed for, at least k
  float* c;
  int64_t ldc;
  float alpha = 1, beta = 0;
};
void amx_product(const AmxProduct& p);
void amx_round(const float* x, int64_t n, BFloat16* to);

}  // namespace flambeau::kernels
