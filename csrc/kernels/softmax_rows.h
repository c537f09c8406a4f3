// Inner loops of softmax, log_softmax, cross entropy and their derivatives over contiguous runs,
// per instruction set, for float and double. "Rows": the classes lie side by side. "Columns": a
// block of w columns, classes `stride` apart.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace flambeau::kernels {

template <class T>
struct SoftmaxFns {
  // Largest value and the sum of exp(x - largest); -inf and 0 (or NaN) for what has no sum.
  void (*row_stats)(const T* x, int64_t n, T* largest, double* sum);
  double (*row_sum)(const T* x, int64_t n);
  double (*row_dot)(const T* a, const T* b, int64_t n);
  // y = softmax(x); `work` holds n values (y itself unless y is streamed)
  void (*softmax)(const T* x, T* work, T* y, int64_t n, bool stream);
  // y = (x - a) - b
  void (*shift)(const T* x, T* y, int64_t n, T a, T b, bool stream);
  // out = exp(x - lse) * a + b; the gradient of cross entropy but for the target's entry
  void (*exp_affine)(const T* x, T* out, int64_t n, T lse, T a, T b, bool stream);
  // out = y * (g - dot)
  void (*softmax_backward)(const T* g, const T* y, T* out, int64_t n, T dot, bool stream);
  // out = g - exp(y) * sum
  void (*log_softmax_backward)(const T* g, const T* y, T* out, int64_t n, T sum, bool stream);

  // Columns: the same, w <= kColumns at a time.
  void (*column_stats)(const T* x, int64_t stride, int64_t n, int64_t w, T* largest, T* sum);
  void (*column_softmax)(const T* x, T* y, int64_t stride, int64_t n, int64_t w, const T* largest,
                         const T* scale, bool stream);
  void (*column_shift)(const T* x, T* y, int64_t stride, int64_t n, int64_t w, const T* a,
                       const T* b, bool stream);
  void (*column_sum)(const T* g, int64_t stride, int64_t n, int64_t w, T* sum);
  void (*column_dot)(const T* g, const T* y, int64_t stride, int64_t n, int64_t w, T* sum);
  void (*column_softmax_backward)(const T* g, const T* y, T* out, int64_t stride, int64_t n,
                                  int64_t w, const T* dot, bool stream);
  void (*column_log_softmax_backward)(const T* g, const T* y, T* out, int64_t stride, int64_t n,
                                      int64_t w, const T* sum, bool stream);
};

inline constexpr int64_t kColumns = 2048;

FB_ISA_DECLARE(SoftmaxFns<float> softmax_fns_float(); SoftmaxFns<double> softmax_fns_double();)

template <class T>
const SoftmaxFns<T>& softmax_fns();
template <>
inline const SoftmaxFns<float>& softmax_fns<float>() {
  static const SoftmaxFns<float> fns = FB_ISA_DISPATCH(softmax_fns_float)();
  return fns;
}
template <>
inline const SoftmaxFns<double>& softmax_fns<double>() {
  static const SoftmaxFns<double> fns = FB_ISA_DISPATCH(softmax_fns_double)();
  return fns;
}

}  // namespace flambeau::kernels
