#include "kernels/norm_rows.h"

#include <cmath>

#include "kernels/moments_loops.h"

namespace flambeau::kernels::FB_ISA {
namespace {

constexpr int64_t kChunk = 2048;  // partial sums in T stay short; the total is in double

template <class T>
void run_moments(Moment& acc, const T* x, int64_t n) {
  moments::add_run(acc, x, n);
}
template <class T>
void column_moments(Moment* acc, const T* x, int64_t rows, int64_t c) {
  moments::add_rows(acc, x, c * static_cast<int64_t>(sizeof(T)), rows, c);
}

template <class T>
void cross(const T* g, const T* x, int64_t n, T mean, double* sum, double* product) {
  double total = 0, total2 = 0;
  for (int64_t i = 0; i < n; i += kChunk) {
    int64_t end = i + kChunk < n ? i + kChunk : n;
    T a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
    for (int64_t j = i; j < end; ++j) {
      a += g[j];
      b += g[j] * (x[j] - mean);
    }
    total += a;
    total2 += b;
  }
  *sum = total;
  *product = total2;
}

template <class T>
void affine(const T* x, T* y, int64_t n, T mean, T a, T b) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * a + b;
}

template <class T>
void affine2(const T* g, const T* x, T* y, int64_t n, T mean, T a, T b, T c) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = g[i] * a + (x[i] - mean) * b + c;
}

template <class T>
void normalise(const T* x, T* y, int64_t n, T mean, T rstd, const T* w, const T* b) {
  if (w && b) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd * w[i] + b[i];
  } else if (w) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd * w[i];
  } else if (b) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd + b[i];
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd;
  }
}

template <class T, bool weighted>
void layer_backward_as(const T* g, const T* x, T* y, int64_t n, T mean, T rstd, const T* w, T* gw,
                       T* gb) {
  double c1 = 0, c2 = 0;
  for (int64_t i = 0; i < n; i += kChunk) {
    int64_t end = i + kChunk < n ? i + kChunk : n;
    T a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
    for (int64_t j = i; j < end; ++j) {
      T h = weighted ? g[j] * w[j] : g[j];
      a += h;
      b += h * (x[j] - mean);
    }
    c1 += a;
    c2 += b;
  }
  T k1 = static_cast<T>(c1 / static_cast<double>(n));
  T k2 = static_cast<T>(c2 * rstd / static_cast<double>(n));
  if (gw) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      T hat = (x[i] - mean) * rstd;
      gw[i] += g[i] * hat;
      gb[i] += g[i];
    }
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    T hat = (x[i] - mean) * rstd, h = weighted ? g[i] * w[i] : g[i];
    y[i] = (h - k1 - hat * k2) * rstd;
  }
}

template <class T>
void layer_backward(const T* g, const T* x, T* y, int64_t n, T mean, T rstd, const T* w, T* gw,
                    T* gb) {
  if (w)
    layer_backward_as<T, true>(g, x, y, n, mean, rstd, w, gw, gb);
  else
    layer_backward_as<T, false>(g, x, y, n, mean, rstd, w, gw, gb);
}

template <class T>
void column_cross(const T* g, const T* x, int64_t rows, int64_t c, const T* mean, T* sum,
                  T* product) {
  for (int64_t r = 0; r < rows; ++r, x += c, g += c) {
#pragma GCC ivdep
    for (int64_t j = 0; j < c; ++j) {
      sum[j] += g[j];
      product[j] += g[j] * (x[j] - mean[j]);
    }
  }
}

template <class T>
void column_affine(const T* x, T* y, int64_t rows, int64_t c, const T* mean, const T* a,
                   const T* b) {
  for (int64_t r = 0; r < rows; ++r, x += c, y += c) {
#pragma GCC ivdep
    for (int64_t j = 0; j < c; ++j) y[j] = (x[j] - mean[j]) * a[j] + b[j];
  }
}

template <class T>
void column_affine2(const T* g, const T* x, T* y, int64_t rows, int64_t c, const T* mean,
                    const T* a, const T* b, const T* k) {
  for (int64_t r = 0; r < rows; ++r, x += c, y += c, g += c) {
#pragma GCC ivdep
    for (int64_t j = 0; j < c; ++j) y[j] = g[j] * a[j] + (x[j] - mean[j]) * b[j] + k[j];
  }
}

template <class T>
NormFns<T> fns() {
  return {run_moments<T>,   cross<T>,          affine<T>,         affine2<T>,
          normalise<T>,     layer_backward<T>, column_moments<T>, column_cross<T>,
          column_affine<T>, column_affine2<T>};
}

}  // namespace

NormFns<float> norm_fns_float() {
  return fns<float>();
}
NormFns<double> norm_fns_double() {
  return fns<double>();
}

}  // namespace flambeau::kernels::FB_ISA
