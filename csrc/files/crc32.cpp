// By carry-less multiplication where the processor has it, 256 bytes at a time with AVX-512; by
// tables elsewhere. Gopal et al., "Fast CRC computation for generic polynomials using PCLMULQDQ",
// 2009.
#include "files/crc32.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace flambeau::files {

namespace {

constexpr uint32_t kPolynomial = 0xedb88320;
constexpr int kTables = 8;
using Tables = std::array<std::array<uint32_t, 256>, kTables>;

constexpr Tables make_tables() {
  Tables t{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = (c >> 1) ^ (c & 1 ? kPolynomial : 0);
    t[0][i] = c;
  }
  for (int j = 1; j < kTables; ++j)
    for (uint32_t i = 0; i < 256; ++i) t[j][i] = (t[j - 1][i] >> 8) ^ t[0][t[j - 1][i] & 255];
  return t;
}
constexpr Tables kTable = make_tables();

// `c` is the inverted checksum.
uint32_t by_tables(uint32_t c, const unsigned char* p, size_t n) {
  for (; n >= 8; p += 8, n -= 8) {
    uint32_t low, high;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + 4, 4);
    low ^= c;
    c = kTable[7][low & 255] ^ kTable[6][low >> 8 & 255] ^ kTable[5][low >> 16 & 255] ^
        kTable[4][low >> 24] ^ kTable[3][high & 255] ^ kTable[2][high >> 8 & 255] ^
        kTable[1][high >> 16 & 255] ^ kTable[0][high >> 24];
  }
  for (; n; ++p, --n) c = (c >> 8) ^ kTable[0][(c ^ *p) & 255];
  return c;
}

#if defined(__x86_64__)
__attribute__((target("pclmul,sse4.1"))) inline __m128i folded(__m128i x, __m128i by,
                                                               __m128i next) {
  __m128i low = _mm_clmulepi64_si128(x, by, 0x00), high = _mm_clmulepi64_si128(x, by, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

inline __m128i at(const unsigned char* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

// n is a multiple of 16 and at least 64. The constants are remainders of powers of x by the
// polynomial: of 544 and 480, of 160 and 96, of 64, then the polynomial and its inverse.
__attribute__((target("pclmul,sse4.1"))) uint32_t by_products(uint32_t c, const unsigned char* p,
                                                              size_t n) {
  const __m128i by64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4),
                by16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0),
                by8 = _mm_set_epi64x(0, 0x163cd6124),
                barrett = _mm_set_epi64x(0x1f7011641, 0x1db710641);
  __m128i x[4] = {_mm_xor_si128(at(p), _mm_cvtsi32_si128(static_cast<int>(c))), at(p + 16),
                  at(p + 32), at(p + 48)};
  for (p += 64, n -= 64; n >= 64; p += 64, n -= 64)
    for (int k = 0; k < 4; ++k) x[k] = folded(x[k], by64, at(p + 16 * k));
  __m128i y = folded(folded(folded(x[0], by16, x[1]), by16, x[2]), by16, x[3]);
  for (; n >= 16; p += 16, n -= 16) y = folded(y, by16, at(p));
  const __m128i low32 = _mm_setr_epi32(~0, 0, ~0, 0);
  y = _mm_xor_si128(_mm_srli_si128(y, 8), _mm_clmulepi64_si128(y, by16, 0x10));
  y = _mm_xor_si128(_mm_srli_si128(y, 4), _mm_clmulepi64_si128(_mm_and_si128(y, low32), by8, 0x00));
  __m128i z = _mm_clmulepi64_si128(_mm_and_si128(y, low32), barrett, 0x10);
  z = _mm_clmulepi64_si128(_mm_and_si128(z, low32), barrett, 0x00);
  return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(y, z), 1));
}

// The same by 256 bytes at a time; n is a multiple of 256 and at least 512. The constants are
// remainders of x to 2080 and 2016, then those of sixteen bytes.
__attribute__((target("vpclmulqdq,pclmul,avx512f,avx512vl,avx512dq,sse4.1"))) uint32_t
by_wide_products(uint32_t c, const unsigned char* p, size_t n) {
  constexpr long long kHigh = 0x1322d1430, kLow = 0x11542778a;
  const __m512i by256 = _mm512_set_epi64(kHigh, kLow, kHigh, kLow, kHigh, kLow, kHigh, kLow);
  __m512i x[4];
  for (size_t k = 0; k < 4; ++k) x[k] = _mm512_loadu_si512(p + 64 * k);
  x[0] = _mm512_xor_si512(x[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(c))));
  for (p += 256, n -= 256; n; p += 256, n -= 256)
    for (size_t k = 0; k < 4; ++k) {
      const __m512i low = _mm512_clmulepi64_epi128(x[k], by256, 0x00),
                    high = _mm512_clmulepi64_epi128(x[k], by256, 0x11);
      x[k] = _mm512_ternarylogic_epi64(low, high, _mm512_loadu_si512(p + 64 * k), 0x96);
    }
  alignas(64) unsigned char left[256];
  for (size_t k = 0; k < 4; ++k) _mm512_store_si512(left + 64 * k, x[k]);
  return by_products(0, left, sizeof left);
}

bool has_wide_products() {
  static const bool found =
      __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return found;
}

bool has_products() {
  static const bool found = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  return found;
}
#endif

}  // namespace

uint32_t crc32(uint32_t crc, const void* data, size_t size) {
  auto* p = static_cast<const unsigned char*>(data);
  uint32_t c = ~crc;
#if defined(__x86_64__)
  if (size >= 1024 && has_wide_products()) {
    const size_t whole = size & ~size_t{255};
    c = by_wide_products(c, p, whole);
    p += whole;
    size -= whole;
  }
  if (size >= 64 && has_products()) {
    const size_t whole = size & ~size_t{15};
    c = by_products(c, p, whole);
    p += whole;
    size -= whole;
  }
#endif
  return ~by_tables(c, p, size);
}

}  // namespace flambeau::files
