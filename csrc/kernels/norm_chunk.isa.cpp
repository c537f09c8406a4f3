#include "kernels/norm_chunk.h"

#include "kernels/providers/simd.h"

namespace flambeau::kernels::FB_ISA {
namespace {

using tiles::kLanes;
using tiles::load;
using tiles::splat;
using tiles::Vec;

template <NormPart P, class V>
FB_INLINE V join(V a, V b) {
  if constexpr (P == NormPart::Largest)
    return (b > a) | (b != b) ? b : a;
  else if constexpr (P == NormPart::Least)
    return (b < a) | (b != b) ? b : a;
  else
    return a + b;
}
template <NormPart P, class V>
FB_INLINE V step(V a, V x) {
  if constexpr (P == NormPart::Squares)
    return a + x * x;
  else
    return join<P>(a, x < 0 ? -x : x);
}

template <NormPart P, class T>
double chunk(const T* x, int64_t n) {
  constexpr int W = kLanes<T>, kRows = 4;
  const T init = P == NormPart::Least ? static_cast<T>(__builtin_inf()) : T(0);
  Vec<T> a[kRows];
  for (auto& v : a) v = splat<T>(init);
  int64_t i = 0;
  for (; i + kRows * W <= n; i += kRows * W)
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) a[r] = step<P>(a[r], load<T>(x + i + r * W));
  for (; i + W <= n; i += W) a[0] = step<P>(a[0], load<T>(x + i));
  T last = init;
  for (; i < n; ++i) last = step<P>(last, x[i]);
  double total = last;
  for (const auto& v : a)
    for (int j = 0; j < W; ++j) total = join<P>(total, static_cast<double>(v[j]));
  return total;
}

template <class T>
double of(const T* x, int64_t n, NormPart part) {
  switch (part) {
    case NormPart::Sum:
      return chunk<NormPart::Sum>(x, n);
    case NormPart::Squares:
      return chunk<NormPart::Squares>(x, n);
    case NormPart::Largest:
      return chunk<NormPart::Largest>(x, n);
    default:
      return chunk<NormPart::Least>(x, n);
  }
}

}  // namespace

double norm_chunk_f32(const float* x, int64_t n, NormPart part) {
  return of(x, n, part);
}
double norm_chunk_f64(const double* x, int64_t n, NormPart part) {
  return of(x, n, part);
}

}  // namespace flambeau::kernels::FB_ISA
