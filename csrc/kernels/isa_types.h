// Element types inside *.isa.cpp files: plain structs in the set's own namespace instead of
// std::complex and the core's half types, see Note [One definition per set] in kernels/isa.h. Same
// layout in memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/isa.h"

namespace flambeau::kernels::FB_ISA {

struct Truth {  // true unless the byte is 0
  uint8_t byte;
};
struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};
template <class T>
struct Complex {
  using real_type = T;
  T re, im;
};
using C64 = Complex<float>;
using C128 = Complex<double>;

template <class T>
inline constexpr bool is_complex_v = std::is_same_v<T, C64> || std::is_same_v<T, C128>;
template <class T>
inline constexpr bool is_half_v = std::is_same_v<T, F16> || std::is_same_v<T, BF16>;

// X(C++ type), in the order of DType.
#define FB_ISA_TYPES(X)                                                                         \
  X(Truth)                                                                                      \
  X(uint8_t)                                                                                    \
  X(int8_t) X(int16_t) X(int32_t) X(int64_t) X(uint16_t) X(uint32_t) X(uint64_t) X(F16) X(BF16) \
      X(float) X(double) X(C64) X(C128)

template <class To, class From>
FB_INLINE To bits_as(From x) {
  return __builtin_bit_cast(To, x);
}

FB_INLINE float widen(F16 x) {
  return static_cast<float>(bits_as<_Float16>(x.bits));
}
FB_INLINE float widen(BF16 x) {
  return bits_as<float>(static_cast<uint32_t>(x.bits) << 16);
}
template <class H>
FB_INLINE H narrow(float x) {
  if constexpr (std::is_same_v<H, F16>) {
    return {bits_as<uint16_t>(static_cast<_Float16>(x))};
  } else {
    uint32_t u = bits_as<uint32_t>(x);
    uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;  // to nearest, ties to even
    return {static_cast<uint16_t>(x != x ? 0x7fc0u : rounded)};
  }
}

template <class To, class From>
FB_INLINE To cast(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<From, Truth>) {
    if constexpr (is_complex_v<To>)
      return {cast<typename To::real_type>(x), 0};
    else  // GCC vectorises choices, but not conversions of a test's result
      return x.byte != 0 ? cast<To>(1.0f) : cast<To>(0.0f);
  } else if constexpr (std::is_same_v<To, Truth>) {
    return {cast<bool>(x)};
  } else if constexpr (is_complex_v<From>) {
    if constexpr (is_complex_v<To>)
      return {static_cast<typename To::real_type>(x.re), static_cast<typename To::real_type>(x.im)};
    else if constexpr (std::is_same_v<To, bool>)
      return (x.re != 0) | (x.im != 0);
    else
      return cast<To>(x.re);
  } else if constexpr (is_half_v<From>) {
    return cast<To>(widen(x));
  } else if constexpr (is_half_v<To>) {
    return narrow<To>(static_cast<float>(x));
  } else if constexpr (is_complex_v<To>) {
    return {static_cast<typename To::real_type>(x), 0};
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != 0;
  } else if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, uint64_t>) {
    // By signed numbers, whose conversion is one instruction everywhere: that to unsigned ones gives
    // other numbers for what does not fit where AVX-512 has it.
    const From half = static_cast<From>(uint64_t{1} << 63);
    return x >= half ? static_cast<uint64_t>(static_cast<int64_t>(x - half)) + (uint64_t{1} << 63)
                     : static_cast<uint64_t>(static_cast<int64_t>(x));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && sizeof(To) < 4) {
    return static_cast<To>(static_cast<int32_t>(x));
  } else if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, uint32_t>) {
    return static_cast<To>(static_cast<int64_t>(x));
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace flambeau::kernels::FB_ISA
