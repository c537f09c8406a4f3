#include "kernels/softmax_rows.h"

#include "kernels/vector_exp.h"

#define FB_LAMBDA __attribute__((always_inline))

namespace flambeau::kernels::FB_ISA {
namespace {

constexpr int64_t kChunk =
    4096;  // values that stay in the first-level cache between two passes; sums in T stay short
constexpr int64_t kLongRow = 65536;  // rows that do not: exponentials are taken twice
template <class T>
constexpr T kLowest = -__builtin_inff();

// Rows
// ------------------------------------------------------------------------------------------------------------------

template <class T>
T largest_of(const T* x, int64_t n) {
  constexpr int64_t L = kLanes<T>;
  Vec<T> a = splat<T>(kLowest<T>), b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    a = vmax<T>(a, load<T>(x + i));
    b = vmax<T>(b, load<T>(x + i + L));
    c = vmax<T>(c, load<T>(x + i + 2 * L));
    d = vmax<T>(d, load<T>(x + i + 3 * L));
  }
  for (; i < n; i += L) a = vmax<T>(a, load_some<T>(x + i, n - i < L ? n - i : L, kLowest<T>));
  return lane_max<T>(vmax<T>(vmax<T>(a, b), vmax<T>(c, d)));
}

// Sum of exp(x - m) over a chunk; the exponentials go to `out` unless it is null.
template <class T, bool keep>
T exp_sum(const T* x, T* out, int64_t n, T m) {
  constexpr int64_t L = kLanes<T>;
  Vec<T> s = splat<T>(0), t = s;
  int64_t i = 0;
  for (; i + 2 * L <= n; i += 2 * L) {
    Vec<T> a = vexp<T>(load<T>(x + i) - m), b = vexp<T>(load<T>(x + i + L) - m);
    if constexpr (keep) store<T>(out + i, a), store<T>(out + i + L, b);
    s += a;
    t += b;
  }
  for (; i < n; i += L) {
    int64_t k = n - i < L ? n - i : L;
    Vec<T> a = vexp<T>(load_some<T>(x + i, k, kLowest<T>) - m);
    if constexpr (keep) k == L ? store<T>(out + i, a) : store_part<T>(out + i, a, k);
    if (k < L)
      for (int64_t j = k; j < L; ++j) a[j] = 0;
    s += a;
  }
  return lane_sum<T>(s + t);
}

template <class T>
void row_stats(const T* x, int64_t n, T* largest, double* sum) {
  T m = kLowest<T>;
  double total = 0;
  for (int64_t i = 0; i < n; i += kChunk) {
    int64_t k = n - i < kChunk ? n - i : kChunk;
    T top = largest_of(x + i, k);
    if (top > m) {
      if (total != 0) total *= __builtin_exp(static_cast<double>(m) - static_cast<double>(top));
      m = top;
    }
    // Nothing above -inf so far: the chunk adds nothing, or a NaN.
    total += exp_sum<T, false>(x + i, nullptr, k, m == kLowest<T> ? T(0) : m);
  }
  *largest = m;
  *sum = m == kLowest<T> ? __builtin_nan("") : total;
}

template <class T>
double row_sum(const T* x, int64_t n) {
  constexpr int64_t L = kLanes<T>;
  double total = 0;
  for (int64_t i = 0; i < n; i += kChunk) {
    int64_t end = n - i < kChunk ? n : i + kChunk, j = i;
    Vec<T> a = splat<T>(0), b = a;
    for (; j + 2 * L <= end; j += 2 * L) a += load<T>(x + j), b += load<T>(x + j + L);
    for (; j < end; j += L) a += load_some<T>(x + j, end - j < L ? end - j : L);
    total += lane_sum<T>(a + b);
  }
  return total;
}

template <class T>
double row_dot(const T* x, const T* y, int64_t n) {
  constexpr int64_t L = kLanes<T>;
  double total = 0;
  for (int64_t i = 0; i < n; i += kChunk) {
    int64_t end = n - i < kChunk ? n : i + kChunk, j = i;
    Vec<T> a = splat<T>(0), b = a;
    for (; j + 2 * L <= end; j += 2 * L) {
      a += load<T>(x + j) * load<T>(y + j);
      b += load<T>(x + j + L) * load<T>(y + j + L);
    }
    for (; j < end; j += L) {
      int64_t k = end - j < L ? end - j : L;
      a += load_some<T>(x + j, k) * load_some<T>(y + j, k);
    }
    total += lane_sum<T>(a + b);
  }
  return total;
}

template <class T>
void exp_affine(const T* x, T* out, int64_t n, T lse, T a, T b, bool stream) {
  produce<T>(out, n, stream, [&](int64_t i, int64_t k) FB_LAMBDA {
    return vexp<T>(load_some<T>(x + i, k) - lse) * a + b;
  });
}

template <class T>
void softmax(const T* x, T* work, T* y, int64_t n, bool stream) {
  if (n > kLongRow) {
    T m;
    double sum;
    row_stats(x, n, &m, &sum);
    return exp_affine<T>(x, y, n, m, static_cast<T>(1 / sum), T(0), stream);
  }
  T m = largest_of(x, n);
  double sum = 0;
  for (int64_t i = 0; i < n; i += kChunk)
    sum += exp_sum<T, true>(x + i, work + i, n - i < kChunk ? n - i : kChunk, m);
  T scale = static_cast<T>(1 / sum);
  produce<T>(y, n, stream,
             [&](int64_t i, int64_t k) FB_LAMBDA { return load_some<T>(work + i, k) * scale; });
}

template <class T>
void shift(const T* x, T* y, int64_t n, T a, T b, bool stream) {
  produce<T>(y, n, stream,
             [&](int64_t i, int64_t k) FB_LAMBDA { return load_some<T>(x + i, k) - a - b; });
}

template <class T>
void softmax_backward(const T* g, const T* y, T* out, int64_t n, T dot, bool stream) {
  produce<T>(out, n, stream, [&](int64_t i, int64_t k) FB_LAMBDA {
    return load_some<T>(y + i, k) * (load_some<T>(g + i, k) - dot);
  });
}

template <class T>
void log_softmax_backward(const T* g, const T* y, T* out, int64_t n, T sum, bool stream) {
  produce<T>(out, n, stream, [&](int64_t i, int64_t k) FB_LAMBDA {
    return load_some<T>(g + i, k) - vexp<T>(load_some<T>(y + i, k)) * sum;
  });
}

// Columns
// ---------------------------------------------------------------------------------------------------------------

// Running maximum and sum of R rows of a block of columns.
template <class T, int R>
void column_stats_step(const T* x, int64_t stride, int64_t w, T* largest, T* sum) {
  constexpr int64_t L = kLanes<T>;
  for (int64_t j = 0; j < w; j += L) {
    int64_t k = w - j < L ? w - j : L;
    Vec<T> rows[R], m = load_some<T>(largest + j, k), top = m;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
      rows[r] = load_some<T>(x + r * stride + j, k), top = vmax<T>(top, rows[r]);
    // A column of -inf alone stays at 0 here, and becomes NaN when it is divided by its sum.
    Vec<T> safe = top == kLowest<T> ? splat<T>(0) : top;
    Vec<T> s = load_some<T>(sum + j, k) * vexp<T>(m - safe), t = splat<T>(0);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) t += vexp<T>(rows[r] - safe);
    s += t;
    if (k == L)
      store<T>(sum + j, s), store<T>(largest + j, top);
    else
      store_part<T>(sum + j, s, k), store_part<T>(largest + j, top, k);
  }
}

template <class T>
void column_stats(const T* x, int64_t stride, int64_t n, int64_t w, T* largest, T* sum) {
  for (int64_t j = 0; j < w; ++j) largest[j] = kLowest<T>, sum[j] = 0;
  int64_t r = 0;
  for (; r + 8 <= n; r += 8) column_stats_step<T, 8>(x + r * stride, stride, w, largest, sum);
  for (; r < n; ++r) column_stats_step<T, 1>(x + r * stride, stride, w, largest, sum);
}

template <class T>
void column_softmax(const T* x, T* y, int64_t stride, int64_t n, int64_t w, const T* largest,
                    const T* scale, bool stream) {
  for (int64_t r = 0; r < n; ++r, x += stride, y += stride)
    produce<T>(y, w, stream, [&](int64_t i, int64_t k) FB_LAMBDA {
      return vexp<T>(load_some<T>(x + i, k) - load_some<T>(largest + i, k)) *
             load_some<T>(scale + i, k);
    });
}

template <class T>
void column_shift(const T* x, T* y, int64_t stride, int64_t n, int64_t w, const T* a, const T* b,
                  bool stream) {
  for (int64_t r = 0; r < n; ++r, x += stride, y += stride)
    produce<T>(y, w, stream, [&](int64_t i, int64_t k) FB_LAMBDA {
      return load_some<T>(x + i, k) - load_some<T>(a + i, k) - load_some<T>(b + i, k);
    });
}

template <class T>
void column_sum(const T* g, int64_t stride, int64_t n, int64_t w, T* sum) {
  for (int64_t j = 0; j < w; ++j) sum[j] = 0;
  for (int64_t r = 0; r < n; ++r, g += stride)
    produce<T>(sum, w, false, [&](int64_t i, int64_t k) FB_LAMBDA {
      return load_some<T>(sum + i, k) + load_some<T>(g + i, k);
    });
}

template <class T>
void column_dot(const T* g, const T* y, int64_t stride, int64_t n, int64_t w, T* sum) {
  for (int64_t j = 0; j < w; ++j) sum[j] = 0;
  for (int64_t r = 0; r < n; ++r, g += stride, y += stride)
    produce<T>(sum, w, false, [&](int64_t i, int64_t k) FB_LAMBDA {
      return load_some<T>(sum + i, k) + load_some<T>(g + i, k) * load_some<T>(y + i, k);
    });
}

template <class T>
void column_softmax_backward(const T* g, const T* y, T* out, int64_t stride, int64_t n, int64_t w,
                             const T* dot, bool stream) {
  for (int64_t r = 0; r < n; ++r, g += stride, y += stride, out += stride)
    produce<T>(out, w, stream, [&](int64_t i, int64_t k) FB_LAMBDA {
      return load_some<T>(y + i, k) * (load_some<T>(g + i, k) - load_some<T>(dot + i, k));
    });
}

template <class T>
void column_log_softmax_backward(const T* g, const T* y, T* out, int64_t stride, int64_t n,
                                 int64_t w, const T* sum, bool stream) {
  for (int64_t r = 0; r < n; ++r, g += stride, y += stride, out += stride)
    produce<T>(out, w, stream, [&](int64_t i, int64_t k) FB_LAMBDA {
      return load_some<T>(g + i, k) - vexp<T>(load_some<T>(y + i, k)) * load_some<T>(sum + i, k);
    });
}

template <class T>
SoftmaxFns<T> fns() {
  return {row_stats<T>,
          row_sum<T>,
          row_dot<T>,
          softmax<T>,
          shift<T>,
          exp_affine<T>,
          softmax_backward<T>,
          log_softmax_backward<T>,
          column_stats<T>,
          column_softmax<T>,
          column_shift<T>,
          column_sum<T>,
          column_dot<T>,
          column_softmax_backward<T>,
          column_log_softmax_backward<T>};
}

}  // namespace

SoftmaxFns<float> softmax_fns_float() {
  return fns<float>();
}
SoftmaxFns<double> softmax_fns_double() {
  return fns<double>();
}

}  // namespace flambeau::kernels::FB_ISA
