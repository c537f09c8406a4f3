// Functions of 16 floats at a time for AVX-512, by hand: clamps that keep NaN, scaling by powers of
// two and choice of signs are single instructions there, which the compiler does not find in scalar
// code. Loops over them alone are made of lanes as a whole (FB_LANES, see _build/emit_kernels.py);
// others call them out of line (kernels/vector_math.h). Errors as in scalar_exp.h. Included by
// *.isa.cpp files alone.
#pragma once

#if defined(__AVX512F__)
#define FB_LANES 1

#include "kernels/scalar_math.h"
#include "kernels/vector_exp.h"

namespace flambeau::kernels::FB_ISA {

using Lanes = tiles::Vec<float>;
typedef int32_t IntLanes __attribute__((vector_size(tiles::kVectorBytes)));

constexpr int kEveryLane = 0xffff, kSign = static_cast<int>(0x80000000u);

// The second operand of vminps is the result when one is NaN.
FB_INLINE Lanes at_most(Lanes x, float high) {
  return (Lanes)_mm512_maskz_min_ps(kEveryLane, _mm512_set1_ps(high), (__m512)x);
}
FB_INLINE Lanes magnitude(Lanes x) {
  return (Lanes)((IntLanes)x & ~kSign);
}
FB_INLINE Lanes with_sign(Lanes size, Lanes sign) {  // bits of `sign` where the mask has ones
  return (Lanes)_mm512_ternarylogic_epi32(_mm512_set1_epi32(kSign), (__m512i)sign, (__m512i)size,
                                          0xca);
}
FB_INLINE Lanes choose(__mmask16 k, Lanes yes, Lanes no) {
  return (Lanes)_mm512_mask_blend_ps(k, (__m512)no, (__m512)yes);
}

FB_INLINE Lanes lanes_exp(Lanes x) {
  return vexp<float>(at_most(x, FloatTraits<float>::kExpMax));
}

// tanh(|x|) = e / (e + 2) for e = exp(2 |x|) - 1 = 2^n p + (2^n - 1): errors of e cancel.
FB_INLINE Lanes lanes_tanh(Lanes x) {
  constexpr float rounder = FloatTraits<float>::kRounder +
                            FloatTraits<float>::kBias;  // leaves the biased n in the low bits
  Lanes a = at_most(magnitude(x), 10.0f), shifted = a * (2 * FloatTraits<float>::kLog2e) + rounder;
  Lanes n = shifted - rounder, scale = (Lanes)((IntLanes)shifted << FloatTraits<float>::kMantissa);
  Lanes r = ((a + a) - n * FloatTraits<float>::kLn2High) - n * FloatTraits<float>::kLn2Low,
        p = r * r * exp_tail(r) + r;
  Lanes e = scale * p + (scale - 1.0f);
  return with_sign(e / (e + 2.0f), x);
}

FB_INLINE Lanes lanes_erf(Lanes x) {
  Lanes a = magnitude(x), far = 1.0f - vexp<float>(log_erfc(at_most(a, 4.0f)));
  __mmask16 inner = _mm512_cmp_ps_mask((__m512)a, _mm512_set1_ps(1.0f), _CMP_LE_OQ);
  return choose(inner, erf_near(x), with_sign(far, x));
}

// Angles: x = n pi/2 + r, pi/2 in three parts. The first difference is exact, the others round r.
// |r| is a little above pi/4 at most.
struct Angle {
  Lanes r;
  IntLanes q;  // low two bits: the quadrant
};
FB_INLINE Angle angle(Lanes x) {
  constexpr float p1 = 1.57079637e+00f, p2 = -4.37113883e-08f, p3 = -1.71512451e-15f;
  Lanes shifted = x * 0.63661977236758134308f + FloatTraits<float>::kRounder,
        n = shifted - FloatTraits<float>::kRounder;
  return {((x - n * p1) - n * p2) - n * p3, (IntLanes)shifted};
}
FB_INLINE __mmask16 odd(IntLanes q) {
  return _mm512_test_epi32_mask((__m512i)q, _mm512_set1_epi32(1));
}
FB_INLINE Lanes negated(Lanes y, IntLanes q) {  // where bit 1 of q is set
  return (Lanes)((IntLanes)y ^ ((q << 30) & kSign));
}

FB_INLINE Lanes lanes_sin(Lanes x) {
  auto [r, q] = angle(x);
  return negated(choose(odd(q), cos_poly(r), sin_poly(r)), q);
}
FB_INLINE Lanes lanes_cos(Lanes x) {
  auto [r, q] = angle(x);
  return negated(choose(odd(q), sin_poly(r), cos_poly(r)), q + 1);
}
FB_INLINE Lanes lanes_tan(Lanes x) {
  auto [r, q] = angle(x);
  Lanes s = sin_poly(r), c = cos_poly(r);
  __mmask16 k = odd(q);
  return choose(k, -c, s) / choose(k, s, c);
}

// The scalar primitives that plain operators on vectors do not give.
template <class To>
FB_INLINE Lanes lanes_of(To x) {
  if constexpr (std::is_same_v<To, Lanes>)
    return x;
  else
    return (Lanes)_mm512_set1_ps(static_cast<float>(x));
}
namespace s {
FB_INLINE Lanes reciprocal(Lanes x) {
  return 1.0f / x;
}
FB_INLINE Lanes sqrt(Lanes x) {
  return (Lanes)_mm512_maskz_sqrt_ps(kEveryLane, (__m512)x);
}
FB_INLINE Lanes rsqrt(Lanes x) {
  return 1.0f / sqrt(x);
}
FB_INLINE Lanes exp(Lanes x) {
  return lanes_exp(x);
}
FB_INLINE Lanes sigmoid(Lanes x) {
  return 1.0f / (1.0f + lanes_exp(-x));
}
FB_INLINE Lanes tanh(Lanes x) {
  return lanes_tanh(x);
}
FB_INLINE Lanes erf(Lanes x) {
  return lanes_erf(x);
}
template <bool>
FB_INLINE Lanes sin(Lanes x) {
  return lanes_sin(x);
}
template <bool>
FB_INLINE Lanes cos(Lanes x) {
  return lanes_cos(x);
}
template <bool>
FB_INLINE Lanes tan(Lanes x) {
  return lanes_tan(x);
}
}  // namespace s

// Which lanes of a vector lie in an array: all, or the first ones at its end.
struct AllLanes {
  FB_INLINE Lanes read(const float* p) const { return tiles::load<float>(p); }
  FB_INLINE void write(float* p, Lanes x) const { tiles::store<float>(p, x); }
};
struct SomeLanes {
  __mmask16 mask;
  FB_INLINE Lanes read(const float* p) const { return (Lanes)_mm512_maskz_loadu_ps(mask, p); }
  FB_INLINE void write(float* p, Lanes x) const { _mm512_mask_storeu_ps(p, mask, (__m512)x); }
};

// step(i, lanes) for [from, to), 16 at a time.
template <class Step>
FB_INLINE void by_lanes(int64_t from, int64_t to, const Step& step) {
  constexpr int64_t W = tiles::kLanes<float>;
  int64_t i = from;
  for (; i + W <= to; i += W) step(i, AllLanes{});
  if (i < to) step(i, SomeLanes{static_cast<__mmask16>((1u << (to - i)) - 1)});
}

}  // namespace flambeau::kernels::FB_ISA
#endif
