// Running sums and products of lines and of columns, built per instruction set in scan.isa.cpp.
// Sums of float32 run in double precision, those of half formats in float32. Knows memory, not
// tensors.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace flambeau::kernels {

enum class Scan : int { Sum, Prod };

inline constexpr int64_t kScanLanes = 4;       // lines that one call walks side by side
inline constexpr int64_t kScanColumns = 1024;  // columns that one call walks side by side

struct ScanLoops {
  // At most kScanLanes lines of n entries, `stride` entries apart; line i starts from start[i]
  // (null: from nothing; only sums of floats take other starts). `stream`: results go past the
  // caches.
  void (*lines)(const void* x, void* out, int64_t count, int64_t stride, int64_t n,
                const double* start, bool stream);
  // n rows, `stride` entries apart, of at most kScanColumns columns; a result is what the rows up
  // to it give.
  void (*columns)(const void* x, void* out, int64_t width, int64_t stride, int64_t n, bool stream);
};

FB_ISA_DECLARE(
    // False: there are no loops for this type.
    bool scan_loops(Scan op, int dtype, ScanLoops& loops);
    double sum_floats(const float* x, int64_t n); double sum_doubles(const double* x, int64_t n);)

}  // namespace flambeau::kernels
