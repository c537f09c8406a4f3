// Inner loops of reductions, built per instruction set in reduce.isa.cpp: runs and rows of numbers
// go into accumulators, accumulators are joined, accumulators become results. Knows memory, not
// tensors; splitting work is the caller's.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace flambeau::kernels {

enum class Reduction : int {
  Sum,
  Mean,
  NanSum,
  Prod,
  Max,
  Min,
  ArgMax,
  ArgMin,
  Any,
  All,
  Count,
  Norm1,
  Norm2,
  NormP,
  NormMax,
  NormMin,
  Moments,
  Deviation,  // variance or its root, and mean; `p`: the correction
  LogSumExp,
};
inline constexpr int kReductions = static_cast<int>(Reduction::LogSumExp) + 1;

// Results are numbers of the compute types of kernels/pointwise.h; result2 is -1 when there is one
// result only.
struct ReduceLoops {
  int64_t acc_size;                        // bytes of an accumulator
  void (*init)(void* acc, int64_t count);  // accumulators of nothing
  // `rows` runs, `stride` bytes apart, of n numbers side by side, each into an accumulator of its
  // own; `base`: position of the first number along what is reduced.
  void (*runs)(void* acc, const void* x, int64_t stride, int64_t rows, int64_t n, int64_t base,
               double p);
  // Rows, `stride` bytes apart, of `cols` numbers into `cols` accumulators.
  void (*rows)(void* acc, const void* x, int64_t stride, int64_t rows, int64_t cols, int64_t base,
               double p);
  void (*combine)(void* acc, const void* other, int64_t count);
  // Results of accumulators that each took n numbers.
  void (*finish)(const void* acc, int64_t count, int64_t n, double p, void* out, void* out2);
  int result, result2;
};

FB_ISA_DECLARE(const ReduceLoops& reduce_loops(int reduction, int compute);)

}  // namespace flambeau::kernels
