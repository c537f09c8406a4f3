// The functions of csrc/kernels/vector_math.h on vectors of 16 floats, under the names that the
// vector ABI of x86-64 gives them: 16, 8 and 4 at a time, and one. All are one computation, so a
// result does not depend on where in a loop its element stands. Errors as in scalar_exp.h.
#define FB_DEFINES_VECTOR_FUNCTIONS
#include "kernels/vector_math.h"

#if defined(__AVX512F__)
#include <immintrin.h>

#include "kernels/vector_exp.h"

namespace flambeau::kernels::FB_ISA {
namespace {

using V = tiles::Vec<float>;
typedef int32_t I __attribute__((vector_size(tiles::kVectorBytes)));
using F = FloatTraits<float>;

constexpr int kAll = 0xffff, kSign = static_cast<int>(0x80000000u);

// The second operand of vminps is the result when one is NaN.
FB_INLINE V at_most(V x, float high) {
  return (V)_mm512_maskz_min_ps(kAll, _mm512_set1_ps(high), (__m512)x);
}
FB_INLINE V magnitude(V x) {
  return (V)((I)x & ~kSign);
}
FB_INLINE V with_sign(V size, V sign) {  // bits of `sign` where the mask has ones
  return (V)_mm512_ternarylogic_epi32(_mm512_set1_epi32(kSign), (__m512i)sign, (__m512i)size, 0xca);
}
FB_INLINE V choose(__mmask16 k, V yes, V no) {
  return (V)_mm512_mask_blend_ps(k, (__m512)no, (__m512)yes);
}

FB_INLINE V lanes_exp(V x) {
  return vexp<float>(at_most(x, F::kExpMax));
}

// tanh(|x|) = e / (e + 2) for e = exp(2 |x|) - 1 = 2^n p + (2^n - 1): errors of e cancel.
FB_INLINE V lanes_tanh(V x) {
  constexpr float rounder = F::kRounder + F::kBias;  // leaves the biased n in the low bits
  V a = at_most(magnitude(x), 10.0f), shifted = a * (2 * F::kLog2e) + rounder;
  V n = shifted - rounder, scale = (V)((I)shifted << F::kMantissa);
  V r = ((a + a) - n * F::kLn2High) - n * F::kLn2Low, p = r * r * exp_tail(r) + r;
  V e = scale * p + (scale - 1.0f);
  return with_sign(e / (e + 2.0f), x);
}

FB_INLINE V lanes_erf(V x) {
  V a = magnitude(x), far = 1.0f - vexp<float>(log_erfc(at_most(a, 4.0f)));
  __mmask16 inner = _mm512_cmp_ps_mask((__m512)a, _mm512_set1_ps(1.0f), _CMP_LE_OQ);
  return choose(inner, erf_near(x), with_sign(far, x));
}

// Angles: x = n pi/2 + r, pi/2 in three parts. The first difference is exact, the others round r.
// |r| is a little above pi/4 at most.
struct Angle {
  V r;
  I q;  // low two bits: the quadrant
};
FB_INLINE Angle angle(V x) {
  constexpr float p1 = 1.57079637e+00f, p2 = -4.37113883e-08f, p3 = -1.71512451e-15f;
  V shifted = x * 0.63661977236758134308f + F::kRounder, n = shifted - F::kRounder;
  return {((x - n * p1) - n * p2) - n * p3, (I)shifted};
}
FB_INLINE __mmask16 odd(I q) {
  return _mm512_test_epi32_mask((__m512i)q, _mm512_set1_epi32(1));
}
FB_INLINE V negated(V y, I q) {  // where bit 1 of q is set
  return (V)((I)y ^ ((q << 30) & kSign));
}

FB_INLINE V lanes_sin(V x) {
  auto [r, q] = angle(x);
  return negated(choose(odd(q), cos_poly(r), sin_poly(r)), q);
}
FB_INLINE V lanes_cos(V x) {
  auto [r, q] = angle(x);
  return negated(choose(odd(q), sin_poly(r), cos_poly(r)), q + 1);
}
FB_INLINE V lanes_tan(V x) {
  auto [r, q] = angle(x);
  V s = sin_poly(r), c = cos_poly(r);
  __mmask16 k = odd(q);
  return choose(k, -c, s) / choose(k, s, c);
}

// f on fewer lanes than a vector has.
template <class X>
FB_INLINE X part_of(__m512 (*f)(__m512), X x) {
  V v{};
  std::memcpy(&v, &x, sizeof x);
  v = (V)f((__m512)v);
  std::memcpy(&x, &v, sizeof x);
  return x;
}

}  // namespace
}  // namespace flambeau::kernels::FB_ISA

// NaN and infinite angles do not get here: loops run such chunks through the C library. Visible to
// what is compiled at run time, whose loops call them too.
#pragma GCC visibility push(default)
extern "C" {
#define FB_DEFINE(NAME)                                                           \
  __m512 _ZGVeN16v_flambeau_##NAME##_v4(__m512 x) {                               \
    namespace lanes = flambeau::kernels::FB_ISA;                                  \
    return (__m512)lanes::lanes_##NAME((lanes::V)x);                              \
  }                                                                               \
  __m256 _ZGVdN8v_flambeau_##NAME##_v4(__m256 x) {                                \
    return flambeau::kernels::FB_ISA::part_of(_ZGVeN16v_flambeau_##NAME##_v4, x); \
  }                                                                               \
  __m128 _ZGVbN4v_flambeau_##NAME##_v4(__m128 x) {                                \
    return flambeau::kernels::FB_ISA::part_of(_ZGVeN16v_flambeau_##NAME##_v4, x); \
  }                                                                               \
  float flambeau_##NAME##_v4(float x) {                                           \
    return flambeau::kernels::FB_ISA::part_of(_ZGVeN16v_flambeau_##NAME##_v4, x); \
  }
FB_VECTOR_FUNCTIONS(FB_DEFINE)
#undef FB_DEFINE
}
#pragma GCC visibility pop
#endif
