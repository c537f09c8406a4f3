// Number parameters of generated loops. Apart from scalar_math.h, which the run-time compiler
// includes without the tensor.
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

}  // namespace flambeau::kernels::FB_ISA
