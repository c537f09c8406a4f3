#include "kernels/providers/blas.h"
#include "kernels/providers/onednn.h"

#include <cstring>

#include "core/allocator.h"
#include "core/parallel.h"
#include "kernels/providers/gemm.h"

namespace flambeau::kernels {
namespace {

// Work that is worth waking a thread for, in multiplications.
constexpr double kThreadWork = 1 << 19;

const void* advance(const void* p, int64_t elements, DType d) {
  return static_cast<const char*>(p) + elements * itemsize(d);
}

struct Scratch {
  explicit Scratch(int64_t bytes)
      : bytes(static_cast<size_t>(bytes)), data(allocate(this->bytes)) {}
  ~Scratch() { deallocate(data, bytes); }
  Scratch(const Scratch&) = delete;
  size_t bytes;
  void* data;
};

int threads_for(const Gemm& g, bool allowed) {
  if (!allowed || in_parallel()) return 1;
  const double work =
      static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  if (work < kThreadWork) return 1;
  return static_cast<int>(std::min<double>(num_threads(), work / (kThreadWork / 2)));
}

// c = beta * c + biases: what remains of a product over an empty dimension.
template <class T>
void without_product(const Gemm& g) {
  T* c = static_cast<T*>(g.c);
  const T* bias = static_cast<const T*>(g.bias);
  const T* row_bias = static_cast<const T*>(g.row_bias);
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; ++j) {
      T& x = c[i * g.c_rs + j * g.c_cs];
      T v = g.beta == 0 ? T(0) : g.beta == 1 ? x : static_cast<T>(static_cast<T>(g.beta) * x);
      if (bias) v = v + bias[j];
      if (row_bias) v = v + row_bias[i];
      x = v;
    }
}

GemmCall call_of(const Gemm& g, int threads) {
  return {g.dtype, g.m, g.n,    g.k,     g.a.data, g.a.rs, g.a.cs,     g.b.data, g.b.rs,
          g.b.cs,  g.c, g.c_rs, g.alpha, g.beta,   g.bias, g.row_bias, threads};
}

// n = 1, of float or double. False when A has no dense direction.
bool try_gemv(const Gemm& g, bool allowed) {
  if (g.n != 1 || (g.dtype != DType::Float32 && g.dtype != DType::Float64)) return false;
  if (g.bias && g.row_bias) return false;
  MatrixRef a = g.a;
  if (g.k == 1) a.cs = 1;
  if (g.m == 1 && a.cs != 1) return false;
  if (a.cs != 1 && a.rs != 1) return false;
  const int64_t size = itemsize(g.dtype);
  GemvCall v{g.dtype,           g.m, g.k,    a.data,  a.rs,   a.cs,
             g.b.data,          g.c, g.c_rs, g.alpha, g.beta, g.bias ? g.bias : g.row_bias,
             g.row_bias ? 1 : 0};
  auto run = [&] {
    const int64_t grain = std::max<int64_t>(64, 65536 / g.k);
    if (allowed && !in_parallel()) {
      auto f = FB_ISA_DISPATCH(gemv_rows);
      parallel_for(0, g.m, grain, [&](int64_t from, int64_t to) { f(v, from, to); });
    } else {
      FB_ISA_DISPATCH(gemv_rows)(v, 0, g.m);
    }
  };
  if (g.b.rs == 1 || g.k == 1) return run(), true;
  Scratch x(g.k * size);
  for (int64_t p = 0; p < g.k; ++p)
    std::memcpy(static_cast<char*>(x.data) + p * size, advance(g.b.data, p * g.b.rs, g.dtype),
                size);
  v.x = x.data;
  return run(), true;
}

// A few rows times a matrix of dense columns, as a layer sees a small batch: dot products along k,
// each stretch of columns used for all rows while it is in cache.
bool try_thin(const Gemm& g, bool allowed) {
  constexpr int64_t kStretch = 32;
  if (g.m > 6 || g.b.rs != 1 || g.a.cs != 1 || g.k < 64 || g.n < 64 || g.row_bias) return false;
  if (g.dtype != DType::Float32 && g.dtype != DType::Float64) return false;
  const auto f = FB_ISA_DISPATCH(gemv_rows);
  auto run = [&](int64_t from, int64_t to) {
    for (int64_t j = from; j < to; j += kStretch)
      for (int64_t i = 0; i < g.m; ++i)
        f({g.dtype, g.n, g.k, g.b.data, g.b.cs, 1, advance(g.a.data, i * g.a.rs, g.dtype),
           const_cast<void*>(advance(g.c, i * g.c_rs, g.dtype)), 1, g.alpha, g.beta, g.bias, 1},
          j, std::min(to, j + kStretch));
  };
  if (allowed && !in_parallel())
    parallel_for(0, g.n, std::max<int64_t>(kStretch, 65536 / g.k), run);
  else
    run(0, g.n);
  return true;
}

// Dense rows times a few columns, as the gradient of a layer with few inputs is: dot products, each
// stretch of rows used for all columns while it is in cache. A sum over the lanes of a vector takes
// as long as 20 of its products; a tile would have few lanes in use.
bool try_few_columns(const Gemm& g, bool allowed) {
  constexpr int64_t kStretch = 32;
  if (g.n > 6 || g.a.cs != 1 || g.m < 64 || g.n * (g.k + 320) >= 16 * g.k) return false;
  if (g.dtype != DType::Float32 || (g.bias && g.row_bias)) return false;
  const int64_t size = itemsize(g.dtype);
  Scratch columns(g.n * g.k * size);
  const auto column = [&](int64_t j) { return static_cast<char*>(columns.data) + j * g.k * size; };
  for (int64_t j = 0; j < g.n; ++j)
    for (int64_t p = 0; p < g.k; ++p)
      std::memcpy(column(j) + p * size, advance(g.b.data, p * g.b.rs + j * g.b.cs, g.dtype), size);
  const auto f = FB_ISA_DISPATCH(gemv_rows);
  auto run = [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i += kStretch)
      for (int64_t j = 0; j < g.n; ++j)
        f({g.dtype, g.m, g.k, g.a.data, g.a.rs, 1, column(j),
           const_cast<void*>(advance(g.c, j, g.dtype)), g.c_rs, g.alpha, g.beta,
           g.bias ? advance(g.bias, j, g.dtype) : g.row_bias, g.row_bias ? 1 : 0},
          i, std::min(to, i + kStretch));
  };
  if (allowed && !in_parallel())
    parallel_for(0, g.m, std::max<int64_t>(kStretch, 65536 / g.k), run);
  else
    run(0, g.m);
  return true;
}

// Large products of float through oneDNN where it is. It has no biases: rows of them are put into c
// first and added to.
bool by_provider(const GemmCall& g) {
  constexpr double kLarge = 1 << 29;  // below, our packed products are as fast or faster
  const double work =
      static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  if (g.dtype != DType::Float32 || work < kLarge || g.row_bias || (g.bias && g.beta != 0))
    return false;
  auto leading = [](int64_t rs, int64_t cs, int64_t rows, int64_t columns) -> int64_t {
    if (cs == 1 && rs >= columns) return rs;
    return rs == 1 && cs >= rows ? -cs : 0;  // negative: stored transposed
  };
  const int64_t a = leading(g.a_rs, g.a_cs, g.m, g.k), b = leading(g.b_rs, g.b_cs, g.k, g.n);
  if (a == 0 || b == 0 || g.ldc < g.n || !onednn().sgemm) return false;
  float* c = static_cast<float*>(g.c);
  if (g.bias)
    parallel_for(0, g.m, std::max<int64_t>(1, kGrain / g.n), [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i)
        std::memcpy(c + i * g.ldc, g.bias, static_cast<size_t>(g.n) * sizeof(float));
    });
  return onednn().sgemm(a < 0 ? 'T' : 'N', b < 0 ? 'T' : 'N', g.m, g.n, g.k,
                        static_cast<float>(g.alpha), static_cast<const float*>(g.a), std::abs(a),
                        static_cast<const float*>(g.b), std::abs(b),
                        g.bias ? 1.0f : static_cast<float>(g.beta), c, g.ldc);
}

// A product of fewer rows or columns leaves most of a tile empty.
bool fills_tiles(const Gemm& g) {
  return std::min({g.m, g.n, g.k}) >= kTileLanes;
}

void real_product(const Gemm& g, bool allowed) {
  if (try_gemv(g, allowed) || try_thin(g, allowed) || try_few_columns(g, allowed)) return;
  const GemmCall call = call_of(g, threads_for(g, allowed));
  if (allowed && by_provider(call)) return;
  if (!is_floating_point(g.dtype)) return FB_ISA_DISPATCH(gemm_integer)(call);
  if (g.dtype == DType::BFloat16 && has_amx() && fills_tiles(g)) return gemm_amx(call);
  if (g.dtype == DType::BFloat16 && has_bf16_dot()) return gemm_bf16_dot(call);
  FB_ISA_DISPATCH(gemm_real)(call);
}

// Complex products as four real ones over the planes of the operands.
template <class R>
void complex_product(const Gemm& g, bool allowed) {
  using C = std::complex<R>;
  Scratch planes(2 * g.m * g.n * static_cast<int64_t>(sizeof(R)));
  R* re = static_cast<R*>(planes.data);
  R* im = re + g.m * g.n;
  auto plane = [](const MatrixRef& x, int part) {
    return MatrixRef{static_cast<const R*>(x.data) + part, 2 * x.rs, 2 * x.cs};
  };
  auto part = [&](int i, int j, R* to, double alpha, double beta) {
    real_product(
        {dtype_of<R>, g.m, g.n, g.k, plane(g.a, i), plane(g.b, j), to, g.n, 1, alpha, beta},
        allowed);
  };
  part(0, 0, re, 1, 0);
  part(1, 1, re, -1, 1);
  part(0, 1, im, 1, 0);
  part(1, 0, im, 1, 1);
  const C* bias = static_cast<const C*>(g.bias);
  const C* row_bias = static_cast<const C*>(g.row_bias);
  for (int64_t i = 0; i < g.m; ++i) {
    C* c = static_cast<C*>(g.c) + i * g.c_rs;
    for (int64_t j = 0; j < g.n; ++j) {
      C v = C(re[i * g.n + j], im[i * g.n + j]) * static_cast<R>(g.alpha);
      if (bias) v += bias[j];
      if (row_bias) v += row_bias[i];
      if (g.beta != 0) v += c[j] * static_cast<R>(g.beta);
      c[j] = v;
    }
  }
}

void product(Gemm g, bool allowed) {
  if (g.m == 0 || g.n == 0) return;
  if (g.k == 0) {
    visit(g.dtype, [&]<class T>() { without_product<T>(g); });
    return;
  }
  // Rows of c are dense below; a matrix with one row is taken as its transpose, a matrix times a
  // vector.
  if ((g.c_cs != 1 && g.n != 1) || (g.m == 1 && g.n != 1)) {
    std::swap(g.m, g.n);
    std::swap(g.a, g.b);
    std::swap(g.a.rs, g.a.cs);
    std::swap(g.b.rs, g.b.cs);
    std::swap(g.c_rs, g.c_cs);
    std::swap(g.bias, g.row_bias);
  }
  if (g.dtype == DType::Complex64) return complex_product<float>(g, allowed);
  if (g.dtype == DType::Complex128) return complex_product<double>(g, allowed);
  real_product(g, allowed);
}

}  // namespace

void gemm(const Gemm& g) {
  product(g, true);
}
void gemm_single(const Gemm& g) {
  product(g, false);
}

void gemm_batch(const Gemm& first, int64_t batch, int64_t a_stride, int64_t b_stride,
                int64_t c_stride) {
  const double one =
      static_cast<double>(first.m) * static_cast<double>(first.n) * static_cast<double>(first.k);
  auto run = [&](int64_t i, bool allowed) {
    Gemm g = first;
    g.a.data = advance(first.a.data, i * a_stride, first.dtype);
    g.b.data = advance(first.b.data, i * b_stride, first.dtype);
    g.c = const_cast<void*>(advance(first.c, i * c_stride, first.dtype));
    product(g, allowed);
  };
  // Whole products per thread; a few big ones are shared out inside.
  const int threads = num_threads();
  if (batch < threads || (batch < 4 * threads && batch % threads && one >= 16 * kThreadWork)) {
    for (int64_t i = 0; i < batch; ++i) run(i, true);
    return;
  }
  const int64_t grain =
      std::max<int64_t>(1, static_cast<int64_t>(kThreadWork / 2 / std::max(1.0, one)));
  parallel_for(0, batch, grain, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) run(i, false);
  });
}

}  // namespace flambeau::kernels
