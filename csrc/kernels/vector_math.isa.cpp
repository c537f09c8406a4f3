// The functions of csrc/kernels/vector_math.h on vectors of 16 floats, under the names that the
// vector ABI of x86-64 gives them: 16, 8 and 4 at a time, and one. All are one computation, so a
// result does not depend on where in a loop its element stands. Errors as in scalar_exp.h.
#define FB_DEFINES_VECTOR_FUNCTIONS
#include "kernels/vector_math.h"

#if defined(__AVX512F__)
#include "kernels/vector_lanes.h"

namespace flambeau::kernels::FB_ISA {
namespace {

// f on fewer lanes than a vector has.
template <class X>
FB_INLINE X part_of(__m512 (*f)(__m512), X x) {
  Lanes v{};
  std::memcpy(&v, &x, sizeof x);
  v = (Lanes)f((__m512)v);
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
    return (__m512)lanes::lanes_##NAME((lanes::Lanes)x);                          \
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
