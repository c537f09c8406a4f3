// Number, mean and sum of squared deviations of some numbers; two such are joined by Chan's formula
// (Chan, Golub and LeVeque, 1979).
#pragma once

#include "kernels/isa.h"

namespace flambeau::kernels {

struct Moment {
  double n, mean, m2;
};

FB_INLINE Moment join(Moment a, Moment b) {
  if (a.n == 0) return b;
  double n = a.n + b.n, part = b.n / n, d = b.mean - a.mean;
  // Exact for equal means; but an infinite mean minus itself would not be one.
  double mean = d - d == 0 ? a.mean + d * part : a.mean * (1 - part) + b.mean * part;
  return {n, mean, a.m2 + b.m2 + d * d * (a.n * part)};
}

}  // namespace flambeau::kernels
