// Inner loops of normalisations over contiguous runs, per instruction set, for float and double.
#pragma once

#include <cstdint>

#include "kernels/isa.h"
#include "kernels/moments.h"

namespace flambeau::kernels {

template <class T>
struct NormFns {
  void (*moments)(Moment& acc, const T* x, int64_t n);
  // Sums of g and of g * (x - mean).
  void (*cross)(const T* g, const T* x, int64_t n, T mean, double* sum, double* product);
  // y = (x - mean) * a + b
  void (*affine)(const T* x, T* y, int64_t n, T mean, T a, T b);
  // y = g * a + (x - mean) * b + c
  void (*affine2)(const T* g, const T* x, T* y, int64_t n, T mean, T a, T b, T c);
  // y = ((x - mean) * rstd) * w + b; w and b may be null
  void (*normalise)(const T* x, T* y, int64_t n, T mean, T rstd, const T* w, const T* b);
  // One row of layer_norm backward: writes y, adds to gw and gb (null: not wanted).
  void (*layer_backward)(const T* g, const T* x, T* y, int64_t n, T mean, T rstd, const T* w, T* gw,
                         T* gb);
  // Channels last, rows of c values.
  void (*column_moments)(Moment* acc, const T* x, int64_t rows, int64_t c);
  void (*column_cross)(const T* g, const T* x, int64_t rows, int64_t c, const T* mean, T* sum,
                       T* product);
  void (*column_affine)(const T* x, T* y, int64_t rows, int64_t c, const T* mean, const T* a,
                        const T* b);
  void (*column_affine2)(const T* g, const T* x, T* y, int64_t rows, int64_t c, const T* mean,
                         const T* a, const T* b, const T* k);
};

FB_ISA_DECLARE(NormFns<float> norm_fns_float(); NormFns<double> norm_fns_double();)

template <class T>
const NormFns<T>& norm_fns();
template <>
inline const NormFns<float>& norm_fns<float>() {
  static const NormFns<float> fns = FB_ISA_DISPATCH(norm_fns_float)();
  return fns;
}
template <>
inline const NormFns<double>& norm_fns<double>() {
  static const NormFns<double> fns = FB_ISA_DISPATCH(norm_fns_double)();
  return fns;
}

}  // namespace flambeau::kernels
