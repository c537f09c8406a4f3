// What a discrete Fourier transform of one length needs, and the transform of a block of lines as
// fft.isa.cpp does it. A block is as many lines as a vector has lanes: every lane works on its own
// line, so all lengths and strides are vectorised alike. Plans are made, kept and shared out in
// fft.cpp.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace flambeau::kernels {

// Stockham stages for a length whose prime factors are small, or Bluestein's convolution for any
// length.
template <class T>
struct FftPlan {
  int64_t n = 0;
  const int* radices = nullptr;  // one per stage
  int stages = 0;
  const T* twiddles = nullptr;  // per stage, for each p < m: w^(p), ... w^(p (radix - 1)) as pairs
  const FftPlan* padded = nullptr;  // Bluestein: the plan of the convolution's length
  const T* chirp = nullptr;         // exp(-i pi k^2 / n), n pairs
  const T* kernel = nullptr;  // transform of the conjugated chirp, padded->n pairs, over padded->n
  const T* halves = nullptr;  // exp(-i pi k / n), k <= n, pairs: for real lines of length 2 n
};

enum class FftKind : int { Complex, RealEven, RealOdd, HermitianEven, HermitianOdd };

// Lines `first`... of a transform: `count` of them, at most the lanes of a vector. Strides are in
// elements of `in` and `out` (complex ones, or real where the kind says so; RealEven reads, and
// HermitianEven writes, pairs of reals as complex elements). For the even kinds the plan has half
// the length of the line.
template <class T>
struct FftBlock {
  FftKind kind;
  bool inverse;
  T scale;
  int count;
  const T* in;
  const int64_t* in_at;  // where each line begins
  int64_t in_step;
  T* out;
  const int64_t* out_at;
  int64_t out_step;
  // Factors between the two halves of a long transform, or null: element k of line j is multiplied
  // by coarse[k / 32][j] * fine[k % 32][j]; planes of real and imaginary parts, `twist_row` apart.
  const T* coarse;
  const T* fine;
  int64_t twist_row;
  T* scratch;  // fft_scratch(plan) values
};

FB_ISA_DECLARE(int fft_lanes(bool is_double);)
FB_ISA_DECLARE(void fft_block_f32(const FftPlan<float>& plan, const FftBlock<float>& block);)
FB_ISA_DECLARE(void fft_block_f64(const FftPlan<double>& plan, const FftBlock<double>& block);)
// The spectrum of a real line of length 2 h from the transform z of its pairs: entries k and h - k
// for k in [from, to).
FB_ISA_DECLARE(void fft_unpack_f32(float* out, const float* z, const float* halves, int64_t h,
                                   float scale, int64_t from, int64_t to);)
FB_ISA_DECLARE(void fft_unpack_f64(double* out, const double* z, const double* halves, int64_t h,
                                   double scale, int64_t from, int64_t to);)
// And back: pairs from the spectrum, unscaled.
FB_ISA_DECLARE(void fft_pack_f32(float* z, const float* in, const float* halves, int64_t h,
                                 int64_t from, int64_t to);)
FB_ISA_DECLARE(void fft_pack_f64(double* z, const double* in, const double* halves, int64_t h,
                                 int64_t from, int64_t to);)

}  // namespace flambeau::kernels
