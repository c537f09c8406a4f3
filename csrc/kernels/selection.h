// Loops of masks and index tensors by one thread: counting, packing and spreading what a mask
// keeps, reading and adding along a line at checked indices. Built per instruction set in
// selection.isa.cpp. Knows memory, not tensors.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace flambeau::kernels {

// A line of a tensor that is addressed through indices: `limit` entries, `stride` elements apart.
struct IndexedLine {
  void* data;
  int64_t stride, limit;
};

FB_ISA_DECLARE(
    // How many of n bools are true.
    int64_t count_true(const uint8_t* mask, int64_t n);
    // The elements under the `kept` true entries, side by side from `out` on, and nothing behind.
    void pack_masked(int itemsize, const void* x, const uint8_t* mask, int64_t n, void* out,
                     int64_t kept);
    // Elements of `from`, in order, to the true entries of x.
    void spread_masked(int itemsize, const void* from, const uint8_t* mask, int64_t n, void* x);
    // Positions of the `kept` true entries, counted from `base`.
    void true_places(const uint8_t* mask, int64_t n, int64_t base, int64_t* out, int64_t kept);
    // Splits positions by the size of the last dim: at[i] becomes at[i] % size, rest[i] the
    // quotient. Positions are below 2^52.
    void split_places(int64_t* at, int64_t* rest, int64_t n, int64_t size);
    // The first place of at[0..n) that is not in [0, limit), or -1.
    int64_t first_outside(const int64_t* at, int64_t n, int64_t limit);
    // The greatest number (the least, with `less`) of each of `groups`, a multiple of 16 and at
    // most n; number i is in group i % groups, but for those behind the last whole round, which are
    // in none. A NaN is passed over.
    void best_of_groups_float(const float* x, int64_t n, int64_t groups, bool less, float* best);
    void best_of_groups_double(const double* x, int64_t n, int64_t groups, bool less, double* best);
    // The places, in order, of numbers that are not less (not greater, with `less`) than the
    // bound, and of NaNs; how many. There is room for n.
    int64_t places_beyond_float(const float* x, int64_t n, float bound, bool less,
                                uint32_t* places);
    int64_t places_beyond_double(const double* x, int64_t n, double bound, bool less,
                                 uint32_t* places);
    // out[i] = line[at[i]]. Indices are in range.
    void gather_line(int itemsize, IndexedLine line, const int64_t* at, int64_t n, void* out);)

}  // namespace flambeau::kernels
