// Scans along a dim: running sums, products, extremes, log-sum-exp, and the linear recurrence that
// derivatives of products are. A tensor is seen as outer x n x inner; results are dense.
#include "kernels/scan.h"

#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "gen/kernels.h"
#include "kernels/copy.h"

namespace flambeau::kernels {
namespace {

// A dense tensor around the dim that is scanned.
struct Plan {
  int64_t outer = 1, n = 1, inner = 1;
  Plan(const Tensor& x, int64_t dim) {
    if (x.dim() == 0) return;
    int64_t d = wrap_dim(dim, x.dim());
    for (int64_t i = 0; i < d; ++i) outer *= x.sizes()[i];
    n = x.sizes()[d];
    for (int64_t i = d + 1; i < x.dim(); ++i) inner *= x.sizes()[i];
  }
  int64_t lines() const { return outer * inner; }
  // Where line i starts; its entries are `inner` apart.
  int64_t start(int64_t i) const { return inner == 1 ? i * n : i / inner * n * inner + i % inner; }
  int64_t grain(int64_t work = kGrain) const {
    return std::max<int64_t>(1, work / std::max<int64_t>(n, 1));
  }
};

// Calls f(out) with a dense tensor that stands for `out`, which gets what was written.
template <class F>
void with_dense(const Tensor& out, const F& f) {
  if (out.is_contiguous()) return f(out);
  Tensor dense = empty(out.sizes(), out.dtype());
  f(dense);
  copy(out, dense);
}

bool bypasses_caches(const Tensor& x) {
  return x.numel() * x.itemsize() > streaming_threshold();
}

double sum_line(const float* x, int64_t n) {
  return FB_ISA_DISPATCH(sum_floats)(x, n);
}
double sum_line(const double* x, int64_t n) {
  return FB_ISA_DISPATCH(sum_doubles)(x, n);
}

// One long line of floats is cut into pieces that start from the sums of the pieces before them.
template <class T>
void sum_long_line(const ScanLoops& loops, const T* x, T* out, int64_t n, bool stream) {
  int64_t threads = num_threads(), pieces = threads * kScanLanes;
  int64_t size = n / pieces;  // the rest of the line goes with the last piece, in a second call
  std::vector<double> starts(pieces + 1, 0.0);
  parallel_for(0, pieces, 1, [&](int64_t a, int64_t b) {
    for (int64_t i = a; i < b; ++i) starts[i + 1] = sum_line(x + i * size, size);
  });
  for (int64_t i = 0; i < pieces; ++i) starts[i + 1] += starts[i];
  parallel_for(0, threads, 1, [&](int64_t a, int64_t b) {
    for (int64_t t = a; t < b; ++t) {
      int64_t first = t * kScanLanes;
      loops.lines(x + first * size, out + first * size, kScanLanes, size, size, &starts[first],
                  stream);
    }
  });
  int64_t done = pieces * size;
  if (done < n) loops.lines(x + done, out + done, 1, 0, n - done, &starts[pieces], false);
}

void run(Scan op, const Tensor& out, const Tensor& input, int64_t dim, const char* name) {
  if (out.numel() == 0) return;
  ScanLoops loops;
  bool known = FB_ISA_DISPATCH(scan_loops)(op, static_cast<int>(out.dtype()), loops);
  FB_CHECK_IMPL(known, '"', name, "_out_cpu\" not implemented for '", scalar_type_name(out.dtype()),
                "'");
  Tensor x = contiguous(to_dtype(input, out.dtype()));
  Plan p(x, dim);
  with_dense(out, [&](const Tensor& y) {
    bool stream = bypasses_caches(y);
    int64_t item = y.itemsize();
    auto* from = static_cast<const char*>(x.data_ptr());
    auto* to = static_cast<char*>(y.data_ptr());
    bool one_long = p.inner == 1 && p.outer == 1 && p.n >= 2 * kGrain;
    if (one_long && op == Scan::Sum &&
        (y.dtype() == DType::Float32 || y.dtype() == DType::Float64)) {
      if (y.dtype() == DType::Float32)
        sum_long_line(loops, x.data<float>(), y.data<float>(), p.n, stream);
      else
        sum_long_line(loops, x.data<double>(), y.data<double>(), p.n, stream);
      return;
    }
    if (p.inner == 1) {
      int64_t groups = (p.outer + kScanLanes - 1) / kScanLanes;
      parallel_for(0, groups, std::max<int64_t>(1, p.grain() / kScanLanes),
                   [&](int64_t a, int64_t b) {
                     for (int64_t g = a; g < b; ++g) {
                       int64_t line = g * kScanLanes, at = line * p.n * item;
                       loops.lines(from + at, to + at, std::min(kScanLanes, p.outer - line), p.n,
                                   p.n, nullptr, stream);
                     }
                   });
      return;
    }
    // Column blocks: as many as keep the threads busy, of whole cache lines.
    int64_t width = std::min(kScanColumns, p.inner);
    if (p.outer == 1)
      width = std::min(width, std::max<int64_t>(64, (p.inner / num_threads() + 63) / 64 * 64));
    int64_t blocks = (p.inner + width - 1) / width;
    int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, p.n * width));
    parallel_for(0, p.outer * blocks, grain, [&](int64_t a, int64_t b) {
      for (int64_t i = a; i < b; ++i) {
        int64_t column = i % blocks * width, at = (i / blocks * p.n * p.inner + column) * item;
        loops.columns(from + at, to + at, std::min(width, p.inner - column), p.inner, p.n, stream);
      }
    });
  });
}

// Extremes
// ----------------------------------------------------------------------------------------------------------

template <class T>
bool is_nan(T x) {
  if constexpr (is_whole<T>)
    return false;
  else
    return float(x) != float(x);
}

template <bool greatest>
void extremes(Tensor& values, Tensor& indices, const Tensor& input, int64_t dim, const char* name) {
  if (values.numel() == 0) return;
  Tensor x = contiguous(input);
  Plan p(x, dim);
  with_dense(values, [&](const Tensor& v) {
    with_dense(indices, [&](const Tensor& places) {
      visit(x.dtype(), [&]<class T>() {
        if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
          fail(ErrorKind::NotImplemented, '"', name, "_cpu\" not implemented for '",
               scalar_type_name(x.dtype()), "'");
        } else {
          parallel_for(0, p.lines(), p.grain(), [&](int64_t a, int64_t b) {
            for (int64_t i = a; i < b; ++i) {
              int64_t at = p.start(i), place = 0;
              const T* in = x.data<T>() + at;
              T best = in[0];
              for (int64_t j = 0; j < p.n; ++j) {
                T item = in[j * p.inner];
                bool wins = greatest ? item >= best : item <= best;  // the last of equal ones
                if (wins || is_nan(item)) best = item, place = j;
                v.data<T>()[at + j * p.inner] = best;
                places.data<int64_t>()[at + j * p.inner] = place;
              }
            }
          });
        }
      });
    });
  });
}

// log(exp(a) + exp(b)) without overflow.
template <class T>
T log_add_exp(T a, T b) {
  if (a != a || b != b) return a + b;
  T high = std::max(a, b), low = std::min(a, b);
  if (low == high && std::isinf(high)) return high;
  return high + std::log1p(std::exp(low - high));
}
template <class T>
std::complex<T> log_add_exp(std::complex<T> a, std::complex<T> b) {
  if (std::isnan(a.real()) || std::isnan(b.real()) || std::isnan(a.imag()) || std::isnan(b.imag()))
    return {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::quiet_NaN()};
  if (a.real() < b.real()) std::swap(a, b);
  if (std::isinf(a.real()) &&
      a.real() == b.real())  // of nothing the angle is that of the sum so far
    return a.real() < 0 ? a : std::log(std::exp(a) + std::exp(b));
  if (std::isinf(b.real()) && b.real() < 0) return a;
  // log(1 + z), |z| <= 1: its real part is log1p(2 re z + |z|^2) / 2.
  std::complex<T> z = std::exp(b - a);
  T real = std::log1p(2 * z.real() + std::norm(z)) / 2;
  return a + std::complex<T>(real, std::atan2(z.imag(), 1 + z.real()));
}

// Calls f.operator()<T, A>() for inexact types; A is what T computes in.
template <class F>
void visit_inexact(DType d, const char* name, const F& f) {
  visit(d, [&]<class T>() {
    if constexpr (is_whole<T>)
      fail(ErrorKind::NotImplemented, '"', name, "_out_cpu\" not implemented for '",
           scalar_type_name(d), "'");
    else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      f.template operator()<T, float>();
    else
      f.template operator()<T, T>();
  });
}

}  // namespace

void cumsum(Tensor& out, const Tensor& input, int64_t dim, std::optional<DType>) {
  run(Scan::Sum, out, input, dim, "cumsum");
}
void cumprod(Tensor& out, const Tensor& input, int64_t dim, std::optional<DType>) {
  run(Scan::Prod, out, input, dim, "cumprod");
}

void cummax(Tensor& values, Tensor& indices, const Tensor& input, int64_t dim) {
  extremes<true>(values, indices, input, dim, "cummax");
}
void cummin(Tensor& values, Tensor& indices, const Tensor& input, int64_t dim) {
  extremes<false>(values, indices, input, dim, "cummin");
}

void logcumsumexp(Tensor& out, const Tensor& input, int64_t dim) {
  if (out.numel() == 0) return;
  Tensor x = contiguous(input);
  Plan p(x, dim);
  with_dense(out, [&](const Tensor& y) {
    visit_inexact(x.dtype(), "logcumsumexp", [&]<class T, class A>() {
      parallel_for(0, p.lines(), p.grain(kGrain / 16), [&](int64_t a, int64_t b) {
        for (int64_t i = a; i < b; ++i) {
          int64_t at = p.start(i);
          const T* in = x.data<T>() + at;
          T* to = y.data<T>() + at;
          A running = A(-std::numeric_limits<double>::infinity());
          for (int64_t j = 0; j < p.n; ++j) {
            running = log_add_exp(running, A(in[j * p.inner]));
            to[j * p.inner] = T(running);
          }
        }
      });
    });
  });
}

void linear_recurrence(Tensor& out, const Tensor& factor, const Tensor& input, int64_t dim,
                       bool backwards) {
  if (out.numel() == 0) return;
  Tensor c = contiguous(factor), x = contiguous(input);
  Plan p(x, dim);
  with_dense(out, [&](const Tensor& y) {
    visit_inexact(x.dtype(), "linear_recurrence", [&]<class T, class A>() {
      parallel_for(0, p.lines(), p.grain(), [&](int64_t a, int64_t b) {
        for (int64_t i = a; i < b; ++i) {
          int64_t at = p.start(i) + (backwards ? (p.n - 1) * p.inner : 0),
                  step = backwards ? -p.inner : p.inner;
          A running = A(0);
          for (int64_t j = 0; j < p.n; ++j, at += step) {
            A before = j ? A(c.data<T>()[at]) * running : A(0);
            running = A(x.data<T>()[at]) + before;
            y.data<T>()[at] = T(running);
          }
        }
      });
    });
  });
}

}  // namespace flambeau::kernels
