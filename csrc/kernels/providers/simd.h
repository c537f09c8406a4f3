// Vectors of the instruction set a file is compiled for, by the compilers' vector extension: the
// width, lanes, a register transpose. Included by *.isa.cpp files alone; everything is in the
// namespace of the set (FB_KERNEL_NS), so that the builds of one file for several sets never share
// an inline function.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#ifndef FB_KERNEL_NS
#define FB_KERNEL_NS FB_ISA
#endif
#ifndef FB_VECTOR_BYTES  // a file that sets its target by pragma says it itself
#if defined(__AVX512F__)
#define FB_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define FB_VECTOR_BYTES 32
#else
#define FB_VECTOR_BYTES 16
#endif
#endif

namespace flambeau::kernels::FB_KERNEL_NS::tiles {

inline constexpr int kVectorBytes = FB_VECTOR_BYTES;

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vec = typename VectorOf<T>::type;
template <class T>
inline constexpr int kLanes = kVectorBytes / sizeof(T);

template <class T>
[[gnu::always_inline]] inline Vec<T> load(const T* p) {
  Vec<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
[[gnu::always_inline]] inline void store(T* p, Vec<T> v) {
  std::memcpy(p, &v, sizeof v);
}
// Reads one value from anywhere.
template <class T>
[[gnu::always_inline]] inline T peek(const void* p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
template <class T>
[[gnu::always_inline]] inline Vec<T> splat(T x) {
  return Vec<T>{} + x;
}
// Lanes are added in pairs, halves, quarters: one after another would wait for each addition.
template <int S, class T, int... I>
[[gnu::always_inline]] inline Vec<T> lanes_crossed(Vec<T> v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (I ^ S)...);
}
template <class T, int S = kLanes<T> / 2>
[[gnu::always_inline]] inline T lane_sum(Vec<T> v) {
  if constexpr (S == 0)
    return v[0];
  else
    return lane_sum<T, S / 2>(v +
                              lanes_crossed<S, T>(v, std::make_integer_sequence<int, kLanes<T>>{}));
}

template <int S, class T, int... I>
[[gnu::always_inline]] inline void exchange(Vec<T>& a, Vec<T>& b,
                                            std::integer_sequence<int, I...>) {
  constexpr int n = sizeof...(I);
  Vec<T> low = __builtin_shufflevector(a, b, ((I & S) ? n + I - S : I)...);
  b = __builtin_shufflevector(a, b, ((I & S) ? n + I : I + S)...);
  a = low;
}

template <int S, class T>
[[gnu::always_inline]] inline void transpose_steps(Vec<T>* r) {
  constexpr int n = kLanes<T>;
  if constexpr (S < n) {
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i)
      if (!(i & S)) exchange<S, T>(r[i], r[i + S], std::make_integer_sequence<int, n>{});
    transpose_steps<2 * S, T>(r);
  }
}

// Transposes the square that kLanes<T> vectors make.
template <class T>
[[gnu::always_inline]] inline void transpose(Vec<T>* r) {
  transpose_steps<1, T>(r);
}

}  // namespace flambeau::kernels::FB_KERNEL_NS::tiles
