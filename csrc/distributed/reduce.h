// Joining the values of several processes: one loop for every operator and element type. Ranks are
// joined in their order, so every process gets the same bits. Half formats are summed in float and
// rounded once. Knows memory alone.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace flambeau::distributed {

enum class ReduceOp : uint8_t { Sum, Avg, Product, Min, Max, BitAnd, BitOr, BitXor };

}  // namespace flambeau::distributed

namespace flambeau::kernels {

// out[i] = op over r of inputs[r][i]. `dtype` is a DType; out may be one of the inputs.
FB_ISA_DECLARE(void join_ranks(int op, int dtype, void* out, const void* const* inputs, int ranks,
                               int64_t n);)

}  // namespace flambeau::kernels
