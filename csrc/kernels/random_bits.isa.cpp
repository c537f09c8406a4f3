// The single-precision logarithm, sine and cosine here are those of Moshier's Cephes library, with
// fused multiply-adds: their last bits are part of the stream that users compare with, so they are
// not to be "improved".
#include "kernels/random_bits.h"

#include <cmath>
#include <cstring>

namespace flambeau::kernels::FB_ISA {
namespace {

FB_INLINE uint32_t recur(uint32_t far, uint32_t u, uint32_t v) {
  uint32_t y = (u & 0x80000000u) | (v & 0x7fffffffu);
  return far ^ (y >> 1) ^ ((0u - (v & 1u)) & 0x9908b0dfu);
}

FB_INLINE float log_cephes(float x) {
  uint32_t u;
  std::memcpy(&u, &x, 4);
  float e = static_cast<float>(static_cast<int>(u >> 23) - 127) + 1.0f;
  u = (u & 0x7fffffu) | 0x3f000000u;
  std::memcpy(&x, &u, 4);
  bool small = x < 0.707106781186547524f;
  float extra = small ? x : 0.0f;
  e -= small ? 1.0f : 0.0f;
  x = (x - 1.0f) + extra;
  float z = x * x;
  float y = 7.0376836292E-2f;
  y = std::fma(y, x, -1.1514610310E-1f);
  y = std::fma(y, x, 1.1676998740E-1f);
  y = std::fma(y, x, -1.2420140846E-1f);
  y = std::fma(y, x, 1.4249322787E-1f);
  y = std::fma(y, x, -1.6668057665E-1f);
  y = std::fma(y, x, 2.0000714765E-1f);
  y = std::fma(y, x, -2.4999993993E-1f);
  y = std::fma(y, x, 3.3333331174E-1f);
  y = std::fma(y * x, z, e * -2.12194440e-4f);
  y = std::fma(-z, 0.5f, y);
  return std::fma(e, 0.693359375f, x + y);
}

FB_INLINE void sincos_cephes(float x, float& s, float& c) {
  int j = (static_cast<int>(x * 1.27323954473516f) + 1) & ~1;
  float y = static_cast<float>(j);
  x = std::fma(y, -0.78515625f, x);
  x = std::fma(y, -2.4187564849853515625e-4f, x);
  x = std::fma(y, -3.77489497744594108e-8f, x);
  float z = x * x;
  float p = 2.443315711809948E-005f;
  p = std::fma(p, z, -1.388731625493765E-003f);
  p = std::fma(p, z, 4.166664568298827E-002f);
  p = std::fma(p * z, z, -0.5f * z) + 1.0f;
  float q = -1.9515295891E-4f;
  q = std::fma(q, z, 8.3321608736E-3f);
  q = std::fma(q, z, -1.6666654611E-1f);
  q = std::fma(q * z, x, x);
  bool swap = j & 2;
  float sine = swap ? p : q, cosine = swap ? q : p;
  s = j & 4 ? -sine : sine;
  c = (j - 2) & 4 ? cosine : -cosine;
}

}  // namespace

void mt_twist(uint32_t* s) {
#pragma GCC ivdep
  for (int i = 0; i < 227; ++i) s[i] = recur(s[i + 397], s[i], s[i + 1]);
#pragma GCC ivdep
  for (int i = 227; i < 454; ++i) s[i] = recur(s[i - 227], s[i], s[i + 1]);
#pragma GCC ivdep
  for (int i = 454; i < 623; ++i) s[i] = recur(s[i - 227], s[i], s[i + 1]);
  s[623] = recur(s[396], s[623], s[0]);
}

void mt_temper(const uint32_t* state, uint32_t* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    uint32_t y = state[i];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    out[i] = y ^ (y >> 18);
  }
}

void uniform_floats(const uint32_t* words, float* out, int64_t n, float from, float to) {
  const float width = to - from;
  for (int64_t i = 0; i < n; ++i) {
    float x = std::fma(uniform24(words[i]), width, from);
    out[i] = x == to ? from : x;
  }
}

void uniform_doubles(const uint32_t* words, double* out, int64_t n, double from, double to) {
  const double width = to - from;
  for (int64_t i = 0; i < n; ++i) {
    double x = std::fma(uniform53(words[2 * i], words[2 * i + 1]), width, from);
    out[i] = x == to ? from : x;
  }
}

void normal_groups(float* data, int64_t groups, float mean, float std) {
  for (int64_t g = 0; g < groups; ++g) {
    float* d = data + 16 * g;
    for (int i = 0; i < 8; ++i) {
      float u1 = 1.0f - d[i], u2 = d[i + 8];
      float radius = std::sqrt(-2.0f * log_cephes(u1)), s, c;
      sincos_cephes(6.283185307179586f * u2, s, c);
      d[i] = std::fma(radius * c, std, mean);
      d[i + 8] = std::fma(radius * s, std, mean);
    }
  }
}

void bernoulli_bytes(const uint32_t* bits, uint8_t* out, int64_t n, uint64_t bound) {
  for (int64_t i = 0; i < n; ++i) out[i] = bits53(bits[2 * i], bits[2 * i + 1]) < bound;
}

}  // namespace flambeau::kernels::FB_ISA
