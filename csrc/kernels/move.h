// Moving of tiles and runs by one thread: conversion between dtypes, copies of strided tiles,
// stores past the caches. Built per instruction set in move.isa.cpp. Knows memory, not tensors.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace flambeau::kernels {

using ConvertFn = void (*)(const void* src, void* dst, int64_t n);

// Memory that will be read next: fetched while stores are on their way, for a burst of stores past
// the caches would leave the reading side of the memory bus idle.
struct Ahead {
  static constexpr int kMost = 4;
  const char* at[kMost];
  int64_t bytes[kMost];
  int count = 0;
  void add(const char* from, int64_t n) {
    if (count == kMost) return;
    at[count] = from;
    bytes[count++] = n;
  }
  Ahead part(int64_t i, int64_t parts) const {
    Ahead out = *this;
    for (int k = 0; k < count; ++k) {
      out.bytes[k] = bytes[k] / parts;
      out.at[k] = at[k] + i * out.bytes[k];
    }
    return out;
  }
};

// Two dims of bytes-strided memory.
struct Lattice {
  char* data;
  int64_t row, col;  // strides in bytes
};

FB_ISA_DECLARE(
    // Conversion of runs, by dtype numbers.
    ConvertFn converter(int from, int to);
    // dst[r, c] = src[r, c] for rows x cols elements.
    void move_tile(int itemsize, Lattice src, Lattice dst, int64_t rows, int64_t cols);
    // Stores that bypass the caches; finish with stream_fence().
    void stream(void* dst, const void* src, int64_t bytes, const Ahead& ahead = {});
    // Repeats the pattern.
    void fill_value(void* dst, const void* pattern16, int64_t bytes);)

inline void stream_fence() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace flambeau::kernels
