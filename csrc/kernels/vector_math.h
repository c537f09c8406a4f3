// Functions of float that loops call most, written by hand for AVX-512: clamps that keep NaN,
// scaling by powers of two and choice of signs are single instructions there, which the compiler
// does not find in scalar code. Loops stay scalar: a function is declared with its vector form
// (attribute simd, as C libraries declare theirs), and the vectoriser calls that one. Other sets
// have the branch-free scalar code of scalar_exp.h. Included by *.isa.cpp files alone.
#pragma once

#include "kernels/scalar_exp.h"

#define FB_VECTOR_FUNCTIONS(X) X(exp) X(tanh) X(erf) X(sin) X(cos) X(tan)

#if defined(__AVX512F__)
extern "C" {
#ifdef FB_DEFINES_VECTOR_FUNCTIONS  // there the compiler would make vector forms of its own
#define FB_SIMD
#else
#define FB_SIMD [[gnu::simd("notinbranch")]]
#endif
#define FB_DECLARE(NAME) FB_SIMD [[gnu::const, gnu::nothrow]] float flambeau_##NAME##_v4(float x);
FB_VECTOR_FUNCTIONS(FB_DECLARE)
#undef FB_DECLARE
#undef FB_SIMD
}
#define FB_CALL(NAME) flambeau_##NAME##_v4(x)
#else
#define FB_CALL(NAME) NAME##_of(x)
#endif

namespace flambeau::kernels::FB_ISA::by_hand {
#define FB_DEFINE(NAME)           \
  FB_INLINE float NAME(float x) { \
    return FB_CALL(NAME);         \
  }
FB_VECTOR_FUNCTIONS(FB_DEFINE)
#undef FB_DEFINE
#undef FB_CALL
}  // namespace flambeau::kernels::FB_ISA::by_hand
