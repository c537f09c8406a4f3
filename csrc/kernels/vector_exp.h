// exp on vectors of the instruction set, for kernels that sum exponentials of differences to a
// maximum: arguments are at most a little above 0. Included by *.isa.cpp files alone. Error
// below 1.5 units in the last place; results in the denormal range are kept, NaN propagates.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/isa.h"
#include "kernels/providers/simd.h"

namespace flambeau::kernels::FB_ISA {

using tiles::kLanes;
using tiles::load;
using tiles::splat;
using tiles::store;
using tiles::Vec;

template <class T>
struct IntVecOf;
template <>
struct IntVecOf<float> {
  typedef int32_t type __attribute__((vector_size(tiles::kVectorBytes)));
};
template <>
struct IntVecOf<double> {
  typedef int64_t type __attribute__((vector_size(tiles::kVectorBytes)));
};

// 2^n for integral n (given as floats) within the exponent range of normal numbers; `magic` moves n
// into the low bits.
template <class T>
FB_INLINE Vec<T> exp2_of_integer(Vec<T> n) {
  using I = typename IntVecOf<T>::type;
  constexpr T magic = sizeof(T) == 4 ? T(12582912.0 + 127) : T(6755399441055744.0 + 1023);
  return (Vec<T>)((I)(n + magic) << (sizeof(T) == 4 ? 23 : 52));
}

// x * 2^n
template <class T>
FB_INLINE Vec<T> scale_by_power(Vec<T> x, Vec<T> n) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return (Vec<T>)_mm512_maskz_scalef_ps(0xffff, (__m512)x, (__m512)n);
  else
    return (Vec<T>)_mm512_maskz_scalef_pd(0xff, (__m512d)x, (__m512d)n);
#else
  constexpr T magic = sizeof(T) == 4 ? T(12582912.0) : T(6755399441055744.0);
  Vec<T> half = (n * T(0.5) + magic) - magic;
  return x * exp2_of_integer<T>(half) * exp2_of_integer<T>(n - half);
#endif
}

// Lanes that are not below `low` (NaN is not), and x where they are, else 0.
template <class T>
FB_INLINE auto not_below(Vec<T> x, T low) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return _mm512_cmp_ps_mask((__m512)x, (__m512)splat<T>(low), _CMP_NLT_UQ);
  else
    return _mm512_cmp_pd_mask((__m512d)x, (__m512d)splat<T>(low), _CMP_NLT_UQ);
#else
  return ~(x < low);
#endif
}
template <class T, class Mask>
FB_INLINE Vec<T> where_kept(Mask kept, Vec<T> x) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return (Vec<T>)_mm512_maskz_mov_ps(kept, (__m512)x);
  else
    return (Vec<T>)_mm512_maskz_mov_pd(kept, (__m512d)x);
#else
  return (Vec<T>)((Mask)x & kept);
#endif
}

template <class T>
FB_INLINE Vec<T> vexp(Vec<T> x) {
  constexpr bool single = sizeof(T) == 4;
  constexpr T magic = single ? T(12582912.0) : T(6755399441055744.0);
  constexpr T ln2_high = single ? T(0.693359375) : T(6.93147180369123816490e-01);
  constexpr T ln2_low = single ? T(-2.12194440e-4) : T(1.90821492927058770002e-10);
  // What is 0 is not computed: results below the normal range take a processor a hundred times as
  // long.
  const auto kept = not_below<T>(x, single ? T(-104.0) : T(-746.0));
  x = where_kept<T>(kept, x);
  Vec<T> n = (x * T(1.44269504088896340736) + magic) - magic;
  Vec<T> r = x - n * ln2_high;
  r = r - n * ln2_low;
  Vec<T> p;
  if constexpr (single) {  // minimax for |r| <= ln(2) / 2, relative error 3e-9
    p = splat<T>(T(0.00138144644));
    p = p * r + T(0.00836878044);
    p = p * r + T(0.0416683943);
    p = p * r + T(0.166665201);
    p = p * r + T(0.499999934);
  } else {  // Taylor: the next term is below 2^-55
    p = splat<T>(T(1.0 / 6227020800.0));
    p = p * r + T(1.0 / 479001600.0);
    p = p * r + T(1.0 / 39916800.0);
    p = p * r + T(1.0 / 3628800.0);
    p = p * r + T(1.0 / 362880.0);
    p = p * r + T(1.0 / 40320.0);
    p = p * r + T(1.0 / 5040.0);
    p = p * r + T(1.0 / 720.0);
    p = p * r + T(1.0 / 120.0);
    p = p * r + T(1.0 / 24.0);
    p = p * r + T(1.0 / 6.0);
    p = p * r + T(0.5);
  }
  p = p * r + T(1);
  p = p * r + T(1);
  return where_kept<T>(kept, scale_by_power<T>(p, n));
}

// The first k lanes from memory, `fill` in the others.
template <class T>
FB_INLINE Vec<T> load_part(const T* p, int64_t k, T fill) {
  Vec<T> v = splat<T>(fill);
  for (int64_t i = 0; i < k; ++i) v[i] = p[i];
  return v;
}
template <class T>
FB_INLINE void store_part(T* p, Vec<T> v, int64_t k) {
  for (int64_t i = 0; i < k; ++i) p[i] = v[i];
}

// Store past the caches; p is aligned to the vector. A thread ends its stores with fence().
template <class T>
FB_INLINE void store_streaming(T* p, Vec<T> v) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(p), (__m512i)v);
#elif defined(__AVX2__)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), (__m256i)v);
#elif defined(__x86_64__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(p), (__m128i)v);
#else
  store(p, v);
#endif
}
FB_INLINE void fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// y[i, i + k) = f(i, k) for all i < n; k is the vector's length but at the ends.
template <class T, class F>
FB_INLINE void produce(T* y, int64_t n, bool stream, const F& f) {
  constexpr int64_t L = kLanes<T>;
  int64_t i = 0;
  if (stream) {
    int64_t head = -(reinterpret_cast<intptr_t>(y) / static_cast<intptr_t>(sizeof(T))) & (L - 1);
    if (head && head < n) store_part<T>(y, f(0, head), i = head);
    if (head < n)
      for (; i + L <= n; i += L) store_streaming<T>(y + i, f(i, L));
    fence();
  }
  for (; i + L <= n; i += L) store<T>(y + i, f(i, L));
  if (i < n) store_part<T>(y + i, f(i, n - i), n - i);
}

// What f reads with: k values from p, a whole vector when k says so.
template <class T>
FB_INLINE Vec<T> load_some(const T* p, int64_t k, T fill = 0) {
  return k == kLanes<T> ? load<T>(p) : load_part<T>(p, k, fill);
}

template <class T>
FB_INLINE Vec<T> vmax(Vec<T> a, Vec<T> b) {  // a where b is NaN
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4)
    return (Vec<T>)_mm512_maskz_max_ps(0xffff, (__m512)b, (__m512)a);
  else
    return (Vec<T>)_mm512_maskz_max_pd(0xff, (__m512d)b, (__m512d)a);
#else
  return b > a ? b : a;
#endif
}

// One value out of all lanes, by halves.
template <int S, class T, int... I>
FB_INLINE Vec<T> exchanged(Vec<T> v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (I ^ S)...);
}
template <class T, int S = kLanes<T> / 2>
FB_INLINE T lane_max(Vec<T> v) {
  if constexpr (S == 0)
    return v[0];
  else
    return lane_max<T, S / 2>(
        vmax<T>(v, exchanged<S, T>(v, std::make_integer_sequence<int, kLanes<T>>{})));
}
template <class T, int S = kLanes<T> / 2>
FB_INLINE T lane_sum(Vec<T> v) {
  if constexpr (S == 0)
    return v[0];
  else
    return lane_sum<T, S / 2>(v + exchanged<S, T>(v, std::make_integer_sequence<int, kLanes<T>>{}));
}

}  // namespace flambeau::kernels::FB_ISA
