// Matrix times vector, float and double: dot products along dense rows, or sums of scaled dense
// columns. One pass over the matrix, which is what the time goes to: rows are read one after
// another, as they lie. Four at a time would read x once for all of them, but memory at a third of
// the speed.
#include "kernels/providers/gemm.h"
#include "kernels/providers/simd.h"

namespace flambeau::kernels::FB_ISA {
using namespace tiles;
namespace {

template <class T>
void write(const GemvCall& g, int64_t i, T sum) {
  T* y = static_cast<T*>(g.y) + i * g.y_stride;
  T v = static_cast<T>(g.alpha) * sum;
  if (g.bias) v += static_cast<const T*>(g.bias)[i * g.bias_stride];
  if (g.beta != 0) v += static_cast<T>(g.beta) * *y;
  *y = v;
}

template <class T>
T dot(const T* a, const T* x, int64_t k) {
  constexpr int W = kLanes<T>;
  Vec<T> s0{}, s1{}, s2{}, s3{};
  int64_t p = 0;
  for (; p + 4 * W <= k; p += 4 * W) {
    s0 += load<T>(a + p) * load<T>(x + p);
    s1 += load<T>(a + p + W) * load<T>(x + p + W);
    s2 += load<T>(a + p + 2 * W) * load<T>(x + p + 2 * W);
    s3 += load<T>(a + p + 3 * W) * load<T>(x + p + 3 * W);
  }
  for (; p + W <= k; p += W) s0 += load<T>(a + p) * load<T>(x + p);
  T total = tiles::lane_sum<T>((s0 + s1) + (s2 + s3));
  for (; p < k; ++p) total += a[p] * x[p];
  return total;
}

template <class T>
void along_rows(const GemvCall& g, int64_t from, int64_t to) {
  const T* a = static_cast<const T*>(g.a);
  const T* x = static_cast<const T*>(g.x);
  for (int64_t i = from; i < to; ++i) write<T>(g, i, dot<T>(a + i * g.a_rs, x, g.k));
}

// Dense columns: a strip of rows stays in registers while the columns pass.
template <class T>
void along_columns(const GemvCall& g, int64_t from, int64_t to) {
  constexpr int W = kLanes<T>;
  constexpr int S = 8;
  const T* a = static_cast<const T*>(g.a);
  const T* x = static_cast<const T*>(g.x);
  int64_t i = from;
  for (; i + S * W <= to; i += S * W) {
    Vec<T> s[S] = {};
    for (int64_t p = 0; p < g.k; ++p) {
      const T* column = a + p * g.a_cs + i;
#pragma GCC unroll 8
      for (int r = 0; r < S; ++r) s[r] += load<T>(column + r * W) * x[p];
    }
    for (int r = 0; r < S; ++r)
      for (int l = 0; l < W; ++l) write<T>(g, i + r * W + l, s[r][l]);
  }
  for (; i + W <= to; i += W) {
    Vec<T> s{};
    for (int64_t p = 0; p < g.k; ++p) s += load<T>(a + p * g.a_cs + i) * x[p];
    for (int l = 0; l < W; ++l) write<T>(g, i + l, s[l]);
  }
  for (; i < to; ++i) {
    T s = 0;
    for (int64_t p = 0; p < g.k; ++p) s += a[p * g.a_cs + i] * x[p];
    write<T>(g, i, s);
  }
}

}  // namespace

void gemv_rows(const GemvCall& g, int64_t from, int64_t to) {
  const bool rows = g.a_cs == 1;
  if (g.dtype == DType::Float32)
    return rows ? along_rows<float>(g, from, to) : along_columns<float>(g, from, to);
  return rows ? along_rows<double>(g, from, to) : along_columns<double>(g, from, to);
}

}  // namespace flambeau::kernels::FB_ISA
