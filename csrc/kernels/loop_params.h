// Number parameters and rows of generated loops. Apart from scalar_math.h, which the run-time
// compiler includes without the tensor.
#pragma once

#include "kernels/pointwise.h"
#include "kernels/scalar_math.h"

namespace flambeau::kernels::FB_ISA {

template <class T>
FB_INLINE T number(const Param& p) {
  if constexpr (is_complex_v<T>)
    return {static_cast<real_of<T>>(p.re), static_cast<real_of<T>>(p.im)};
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(p.i);
  else
    return static_cast<T>(p.re);
}

// A loop of two inputs and one output over rows.
template <Loop F>
void by_rows(int64_t rows, int64_t n, const void* const* in, void* const* out, const int64_t* steps,
             const Param* params) {
  for (int64_t r = 0; r < rows; ++r) {
    const void* from[] = {static_cast<const char*>(in[0]) + r * steps[0],
                          static_cast<const char*>(in[1]) + r * steps[1]};
    void* to[] = {static_cast<char*>(out[0]) + r * steps[2]};
    F(n, from, to, params);
  }
}

}  // namespace flambeau::kernels::FB_ISA
