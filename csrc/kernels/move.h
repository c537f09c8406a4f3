// Moving of tiles and runs by one thread: conversion between dtypes, copies of strided tiles,
// stores past the caches. Built per instruction set in move.isa.cpp. Knows memory, not tensors.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace flambeau::kernels {

using ConvertFn = void (*)(const void* src, void* dst, int64_t n);

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
    void stream(void* dst, const void* src, int64_t bytes);
    void stream_value(void* dst, const void* pattern16, int64_t bytes);
    // Repeats the pattern with ordinary stores.
    void fill_value(void* dst, const void* pattern16, int64_t bytes);)

inline void stream_fence() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace flambeau::kernels
