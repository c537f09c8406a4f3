// Single draws from a generator, for kernels whose number of draws depends on what was drawn.
#pragma once

#include <cmath>
#include <optional>

#include "core/generator.h"
#include "kernels/random_bits.h"

namespace flambeau::kernels {

constexpr double kTwoPi = 6.283185307179586476925286766559;

using OptGenerator = std::optional<Generator>;

inline double next_uniform53(GeneratorImpl& g) {
  uint32_t high = g.engine(), low = g.engine();
  return uniform53(high, low);
}

// Box & Muller 1958; the second number of a pair waits in the generator.
inline double normal_double(GeneratorImpl& g) {
  if (g.next_normal_double) {
    double x = *g.next_normal_double;
    g.next_normal_double.reset();
    return x;
  }
  double u1 = next_uniform53(g), u2 = next_uniform53(g);
  double r = std::sqrt(-2.0 * std::log1p(-u2)), theta = kTwoPi * u1;
  g.next_normal_double = r * std::sin(theta);
  return r * std::cos(theta);
}

}  // namespace flambeau::kernels
