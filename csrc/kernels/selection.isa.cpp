// Loops of csrc/kernels/selection.h. AVX-512 packs a vector's kept lanes in one instruction; the
// plain form writes every element and moves on by the mask's value, without branches to mispredict.
#include "kernels/selection.h"

#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/isa_types.h"

namespace flambeau::kernels::FB_ISA {
namespace {

struct Wide {
  uint64_t lo, hi;
};

template <class F>
FB_INLINE void by_size(int itemsize, const F& f) {
  switch (itemsize) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    default:
      return f.template operator()<Wide>();
  }
}

#if defined(__AVX512F__)
// The next 16 (or 8) entries of a mask as bits.
FB_INLINE __mmask16 bits16(const uint8_t* mask) {
  __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(mask));
  return _mm_test_epi8_mask(v, v);
}
FB_INLINE __mmask8 bits8(const uint8_t* mask) {
  __m128i v = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(mask));
  return static_cast<__mmask8>(_mm_test_epi8_mask(v, v));
}
#endif

// Packs f(i) for the true i from `from` on.
template <class T, class F>
FB_INLINE void pack_plain(const uint8_t* mask, int64_t from, int64_t n, T* out, T* stop,
                          const F& f) {
  for (int64_t i = from; i < n && out < stop; ++i) {
    *out = f(i);
    out += mask[i] != 0;
  }
}

template <class T>
void pack(const void* data, const uint8_t* mask, int64_t n, void* to, int64_t kept) {
  auto* x = static_cast<const T*>(data);
  auto* out = static_cast<T*>(to);
  T* stop = out + kept;
  int64_t i = 0;
#if defined(__AVX512F__)
  // Whole vectors are stored, beyond what was kept, as long as they end before `stop`.
  if constexpr (sizeof(T) == 4) {
    for (; i + 16 <= n && out + 16 <= stop; i += 16) {
      __mmask16 k = bits16(mask + i);
      _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(k, _mm512_loadu_si512(x + i)));
      out += __builtin_popcount(k);
    }
  } else if constexpr (sizeof(T) == 8) {
    for (; i + 8 <= n && out + 8 <= stop; i += 8) {
      __mmask8 k = bits8(mask + i);
      _mm512_storeu_si512(out, _mm512_maskz_compress_epi64(k, _mm512_loadu_si512(x + i)));
      out += __builtin_popcount(k);
    }
  }
#endif
  pack_plain<T>(mask, i, n, out, stop, [&](int64_t j) { return x[j]; });
}

template <class T>
void gather_any(const T* x, int64_t stride, const int64_t* at, int64_t n, T* out) {
  int64_t i = 0;
#if defined(__AVX512F__)
  // Eight loads and one store per step. Storing one by one, loads that follow are held up by
  // stores to the same place of another page.
  if constexpr (sizeof(T) == 4 || sizeof(T) == 8) {
    const __m512i step = _mm512_set1_epi64(stride);
    for (; i + 8 <= n; i += 8) {
      __m512i places = _mm512_loadu_si512(at + i);
      if (stride != 1) places = _mm512_mullo_epi64(places, step);
      if constexpr (sizeof(T) == 4)
        _mm256_storeu_si256(
            reinterpret_cast<__m256i*>(out + i),
            _mm512_mask_i64gather_epi32(_mm256_setzero_si256(), 0xff, places, x, 4));
      else
        _mm512_storeu_si512(
            out + i, _mm512_mask_i64gather_epi64(_mm512_setzero_si512(), 0xff, places, x, 8));
    }
  }
#endif
  for (; i + 16 <= n; i += 16) {
    T block[16];
    for (int k = 0; k < 16; ++k) block[k] = x[at[i + k] * stride];
    std::memcpy(static_cast<void*>(out + i), block, sizeof block);
  }
  for (; i < n; ++i) out[i] = x[at[i] * stride];
}

template <class T, bool less>
void best_of_groups(const T* x, int64_t n, int64_t groups, T* best) {
  constexpr T kEnd = std::numeric_limits<T>::infinity();
  auto take = [](T a, T b) { return (less ? a < b : a > b) ? a : b; };
  if (groups == 16) {
    T b[16];
    for (int g = 0; g < 16; ++g) b[g] = less ? kEnd : -kEnd;
    for (int64_t i = 0; i + 16 <= n; i += 16)
      for (int g = 0; g < 16; ++g) b[g] = take(x[i + g], b[g]);
    for (int g = 0; g < 16; ++g) best[g] = b[g];
  } else {
    for (int64_t g = 0; g < groups; ++g) best[g] = less ? kEnd : -kEnd;
    for (int64_t i = 0; i + groups <= n; i += groups)
      for (int64_t g = 0; g < groups; ++g) best[g] = take(x[i + g], best[g]);
  }
}

template <class T, bool less>
int64_t places_beyond(const T* x, int64_t n, T bound, uint32_t* places) {
  uint32_t* out = places;
  int64_t i = 0;
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    const __m512 edge = _mm512_set1_ps(bound);
    __m512i at = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (; i + 16 <= n; i += 16) {  // what is stored behind the kept ends before places + n
      __m512 v = _mm512_loadu_ps(x + i);
      __mmask16 keep = less ? _mm512_cmp_ps_mask(v, edge, _CMP_NGT_UQ)
                            : _mm512_cmp_ps_mask(v, edge, _CMP_NLT_UQ);
      _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(keep, at));
      out += __builtin_popcount(keep);
      at = _mm512_add_epi32(at, _mm512_set1_epi32(16));
    }
  }
#endif
  for (; i < n; ++i) {
    *out = static_cast<uint32_t>(i);
    out += less ? !(x[i] > bound) : !(x[i] < bound);
  }
  return out - places;
}

}  // namespace

void best_of_groups_float(const float* x, int64_t n, int64_t groups, bool less, float* best) {
  less ? best_of_groups<float, true>(x, n, groups, best)
       : best_of_groups<float, false>(x, n, groups, best);
}
void best_of_groups_double(const double* x, int64_t n, int64_t groups, bool less, double* best) {
  less ? best_of_groups<double, true>(x, n, groups, best)
       : best_of_groups<double, false>(x, n, groups, best);
}
int64_t places_beyond_float(const float* x, int64_t n, float bound, bool less, uint32_t* places) {
  return less ? places_beyond<float, true>(x, n, bound, places)
              : places_beyond<float, false>(x, n, bound, places);
}
int64_t places_beyond_double(const double* x, int64_t n, double bound, bool less,
                             uint32_t* places) {
  return less ? places_beyond<double, true>(x, n, bound, places)
              : places_beyond<double, false>(x, n, bound, places);
}

int64_t count_true(const uint8_t* mask, int64_t n) {
  constexpr uint64_t kOnes = 0x0101010101010101, kEven = 0x00ff00ff00ff00ff;
  constexpr uint64_t kLow = 0x7f7f7f7f7f7f7f7f;
  int64_t total = 0, i = 0;
  while (i + 8 <= n) {  // eight counters of a byte each, emptied before they can run over
    int64_t words = (n - i) / 8 < 255 ? (n - i) / 8 : 255;
    uint64_t bytes = 0;
    for (int64_t k = 0; k < words; ++k) {
      uint64_t word;
      std::memcpy(&word, mask + i + 8 * k, 8);
      bytes += (((word & kLow) + kLow) | word) >> 7 & kOnes;  // the top bit of bytes that are not 0
    }
    uint64_t pairs = (bytes & kEven) + (bytes >> 8 & kEven);
    total += static_cast<int64_t>((pairs * 0x0001000100010001) >> 48);
    i += 8 * words;
  }
  for (; i < n; ++i) total += mask[i] != 0;
  return total;
}

void pack_masked(int itemsize, const void* x, const uint8_t* mask, int64_t n, void* out,
                 int64_t kept) {
  by_size(itemsize, [&]<class T>() { pack<T>(x, mask, n, out, kept); });
}

void spread_masked(int itemsize, const void* from, const uint8_t* mask, int64_t n, void* x) {
  by_size(itemsize, [&]<class T>() {
    auto* next = static_cast<const T*>(from);
    auto* to = static_cast<T*>(x);
    for (int64_t i = 0; i < n; ++i)
      if (mask[i]) to[i] = *next++;
  });
}

void true_places(const uint8_t* mask, int64_t n, int64_t base, int64_t* out, int64_t kept) {
  int64_t* stop = out + kept;
  int64_t i = 0;
#if defined(__AVX512F__)
  __m512i places =
      _mm512_add_epi64(_mm512_set1_epi64(base), _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
  for (; i + 8 <= n && out + 8 <= stop; i += 8) {
    __mmask8 k = bits8(mask + i);
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi64(k, places));
    out += __builtin_popcount(k);
    places = _mm512_add_epi64(places, _mm512_set1_epi64(8));
  }
#endif
  pack_plain<int64_t>(mask, i, n, out, stop, [&](int64_t j) { return base + j; });
}

void split_places(int64_t* at, int64_t* rest, int64_t n, int64_t size) {
  const double inverse = 1.0 / static_cast<double>(size);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    // The rounded quotient is at most one off.
    auto q = static_cast<int64_t>(static_cast<double>(at[i]) * inverse);
    int64_t r = at[i] - q * size;
    int64_t up = r >= size, down = r < 0;
    q += up - down;
    rest[i] = q;
    at[i] = r - (up - down) * size;
  }
}

int64_t first_outside(const int64_t* at, int64_t n, int64_t limit) {
  uint64_t outside = 0;  // a sign bit is set once an index is negative or too large
  for (int64_t i = 0; i < n; ++i)
    outside |= static_cast<uint64_t>(at[i]) |
               (static_cast<uint64_t>(limit) - 1 - static_cast<uint64_t>(at[i]));
  if (!(outside >> 63)) return -1;
  for (int64_t i = 0; i < n; ++i)
    if (at[i] < 0 || at[i] >= limit) return i;
  return -1;
}

void gather_line(int itemsize, IndexedLine line, const int64_t* at, int64_t n, void* out) {
  by_size(itemsize, [&]<class T>() {
    gather_any<T>(static_cast<const T*>(line.data), line.stride, at, n, static_cast<T*>(out));
  });
}

}  // namespace flambeau::kernels::FB_ISA
