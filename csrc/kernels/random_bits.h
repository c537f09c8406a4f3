// Bulk drawing from mt19937 and the vector forms of its transforms, built per instruction set.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace flambeau::kernels {

FB_ISA_DECLARE(
    // One recurrence of the whole state of 624 words.
    void mt_twist(uint32_t* state);
    // out[i] = tempered state[i].
    void mt_temper(const uint32_t* state, uint32_t* out, int64_t n);
    // Uniform numbers in [from, to) from a word each, or two; what rounding takes to `to` becomes
    // `from`.
    void uniform_floats(const uint32_t* words, float* out, int64_t n, float from, float to);
    void uniform_doubles(const uint32_t* words, double* out, int64_t n, double from, double to);
    // Groups of 16 uniform floats become 16 normal ones: Box-Muller on the pairs (i, i + 8).
    void normal_groups(float* data, int64_t groups, float mean, float std);
    // out[i] = (bits[2i] << 32 | bits[2i + 1]) mod 2**53 < bound: Bernoulli draws of 53 bits.
    void bernoulli_bytes(const uint32_t* bits, uint8_t* out, int64_t n, uint64_t bound);)

}  // namespace flambeau::kernels
