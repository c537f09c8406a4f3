// Stable sorting of keys with places: radix sort from the lowest digit (Knuth, TAOCP 3, 5.2.5),
// insertion for short runs.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "core/dtype.h"

namespace flambeau::kernels {

template <class T>
inline constexpr bool is_ordered = !std::is_same_v<T, complex64> && !std::is_same_v<T, complex128>;

// Unsigned key of the same width whose order is that of T.
template <class T>
struct KeyOf {
  using U = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<sizeof(T) == 2, uint16_t,
                         std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
  static constexpr U top = U(1) << (8 * sizeof(T) - 1);
  static U of(T x) {
    if constexpr (is_truth<T>)
      return x;
    else if constexpr (std::is_integral_v<T>)
      return std::is_signed_v<T> ? static_cast<U>(static_cast<U>(x) ^ top) : static_cast<U>(x);
    else {
      U bits;
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
        float f = x;
        if (f != f) return static_cast<U>(~U(0));
        bits = f == 0 ? U(0) : x.bits;
      } else {
        if (x != x) return ~U(0);
        bits = x == 0 ? U(0) : std::bit_cast<U>(x);
      }
      return static_cast<U>(bits & top ? ~bits : bits | top);
    }
  }
  static constexpr U nan = static_cast<U>(~U(0));
};

template <class U>
struct Keyed {
  U key;
  uint32_t place;
};

// Sorts xs[0..n) stably by key; scratch holds n entries. The result is in xs.
template <class U>
void radix_sort(Keyed<U>* xs, Keyed<U>* scratch, int64_t n) {
  if (n <= 48) {
    for (int64_t i = 1; i < n; ++i) {
      Keyed<U> x = xs[i];
      int64_t j = i;
      for (; j > 0 && xs[j - 1].key > x.key; --j) xs[j] = xs[j - 1];
      xs[j] = x;
    }
    return;
  }
  constexpr int digits = sizeof(U);
  std::array<std::array<uint32_t, 256>, digits> counts{};
  for (int64_t i = 0; i < n; ++i)
    for (int d = 0; d < digits; ++d) ++counts[d][(xs[i].key >> (8 * d)) & 255];
  Keyed<U>*from = xs, *to = scratch;
  for (int d = 0; d < digits; ++d) {
    auto& count = counts[d];
    if (count[(from[0].key >> (8 * d)) & 255] == static_cast<uint32_t>(n))
      continue;  // all the same digit
    uint32_t at = 0;
    for (auto& c : count) {
      uint32_t size = c;
      c = at;
      at += size;
    }
    for (int64_t i = 0; i < n; ++i) to[count[(from[i].key >> (8 * d)) & 255]++] = from[i];
    std::swap(from, to);
  }
  if (from != xs) std::copy(from, from + n, xs);
}

}  // namespace flambeau::kernels
