// The inner loop of vector norms for each instruction set: a run of real numbers to one value.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace flambeau::kernels {

enum class NormPart : int {
  Sum,
  Squares,
  Largest,
  Least
};  // of sizes; the last two let NaN through

FB_ISA_DECLARE(double norm_chunk_f32(const float* x, int64_t n, NormPart part);)
FB_ISA_DECLARE(double norm_chunk_f64(const double* x, int64_t n, NormPart part);)

}  // namespace flambeau::kernels
