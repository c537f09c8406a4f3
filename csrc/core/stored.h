// A number as an element of a tensor that is made of data: as it is, or an error. Who reads data
// (Python's, a script's) finds the numbers.
#pragma once

#include <cmath>
#include <limits>

#include "core/dtype.h"
#include "core/error.h"
#include "core/scalar.h"

namespace flambeau {

[[noreturn, gnu::cold]] inline void overflows(DType d) {
  fail(ErrorKind::Runtime, "value cannot be converted to type ", dtype_name(d),
       " without overflow");
}

template <class T>
T stored(const Scalar& s) {
  if constexpr (is_truth<T>) {
    return T(s.to_bool());
  } else if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
    return T(s.to_complex());
  } else if constexpr (std::is_integral_v<T>) {
    if (s.is_complex() || s.is_floating_point()) {
      double x = std::trunc(s.to_double());
      if (!(x >= static_cast<double>(std::numeric_limits<T>::min()) &&
            x <= static_cast<double>(std::numeric_limits<T>::max())))
        overflows(dtype_of<T>);
      return static_cast<T>(x);
    }
    int64_t x = s.to_int();
    // Small negative numbers wrap around in unsigned types, as C converts them.
    if constexpr (sizeof(T) < 8) {
      auto top = static_cast<int64_t>(std::numeric_limits<T>::max());
      int64_t bottom =
          std::is_signed_v<T> ? static_cast<int64_t>(std::numeric_limits<T>::min()) : -top - 1;
      if (x > top || x < bottom) overflows(dtype_of<T>);
    }
    return static_cast<T>(x);
  } else {
    FB_CHECK_TYPE(!s.is_complex(), "must be real number, not complex");
    if constexpr (std::is_same_v<T, double>)
      return s.to_double();
    else
      return T(static_cast<float>(s.to_double()));
  }
}

}  // namespace flambeau
