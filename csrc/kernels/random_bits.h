// Bulk drawing from mt19937 and the vector forms of its transforms, built per instruction set.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace flambeau::kernels {

// What words of 32 bits say: 53 bits of two, and numbers in [0, 1).
FB_INLINE uint64_t bits53(uint32_t high, uint32_t low) {
  return static_cast<uint64_t>(high & 0x1fffffu) << 32 | low;
}
FB_INLINE double uniform53(uint32_t high, uint32_t low) {
  return static_cast<double>(static_cast<int64_t>(bits53(high, low))) * 0x1p-53;
}
FB_INLINE float uniform24(uint32_t x) {
  return static_cast<float>(x & 0xffffffu) * 0x1p-24f;
}

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
    // out[i] = bits53(bits[2i], bits[2i + 1]) < bound: Bernoulli draws.
    void bernoulli_bytes(const uint32_t* bits, uint8_t* out, int64_t n, uint64_t bound);)

}  // namespace flambeau::kernels
