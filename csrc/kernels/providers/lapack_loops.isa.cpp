// Matrix times vector and rotations of columns, in vectors of the instruction set. Complex numbers
// are pairs of lanes: their products are sums of a vector and of the one with its pairs exchanged.
#include "kernels/providers/lapack_loops.h"
#include "kernels/providers/simd.h"

namespace flambeau::kernels::FB_ISA {
using namespace tiles;
namespace {

template <class R, int... I>
FB_INLINE Vec<R> exchanged(Vec<R> v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (I ^ 1)...);
}
template <class R>
FB_INLINE Vec<R> exchanged(Vec<R> v) {  // the two parts of each complex number
  return exchanged<R>(v, std::make_integer_sequence<int, kLanes<R>>{});
}

template <class R>
FB_INLINE Vec<R> alternating(R x) {  // -x, x, -x, ...
  Vec<R> v;
  for (int i = 0; i < kLanes<R>; ++i) v[i] = i % 2 ? x : -x;
  return v;
}

constexpr int kColumns = 4;  // that are taken at once: y is read and written once for all

// y += A x over C columns. `len` counts numbers of type R: two for each complex element.
template <class R, bool Complex, int C>
void add_columns(int64_t len, const R* a, int64_t lda, const R* x, R* y, R alpha) {
  constexpr int W = kLanes<R>, P = Complex ? 2 : 1;
  Vec<R> re[C], im[C];
  for (int j = 0; j < C; ++j) {
    re[j] = splat<R>(alpha * x[j * P]);
    im[j] = Complex ? alternating<R>(alpha * x[j * P + P - 1]) : re[j];
  }
  int64_t i = 0;
  for (; i + W <= len; i += W) {
    Vec<R> sum = load<R>(y + i);
    for (int j = 0; j < C; ++j) {
      const Vec<R> v = load<R>(a + j * lda + i);
      sum += v * re[j];
      if constexpr (Complex) sum += exchanged<R>(v) * im[j];
    }
    store<R>(y + i, sum);
  }
  for (; i < len; i += P)
    for (int j = 0; j < C; ++j) {
      const R* v = a + j * lda + i;
      const R xr = alpha * x[j * P];
      if constexpr (Complex) {
        const R xi = alpha * x[j * P + 1];
        y[i] += v[0] * xr - v[1] * xi;
        y[i + 1] += v[0] * xi + v[1] * xr;
      } else {
        y[i] += v[0] * xr;
      }
    }
}

// y += A^H x over C columns.
template <class R, bool Complex, int C>
void dot_columns(int64_t len, const R* a, int64_t lda, const R* x, R* y, R alpha) {
  constexpr int W = kLanes<R>, P = Complex ? 2 : 1;
  Vec<R> same[C] = {}, crossed[C] = {};
  int64_t i = 0;
  for (; i + W <= len; i += W) {
    const Vec<R> v = load<R>(x + i), w = Complex ? exchanged<R>(v) : v;
    for (int j = 0; j < C; ++j) {
      const Vec<R> u = load<R>(a + j * lda + i);
      same[j] += u * v;
      if constexpr (Complex) crossed[j] += u * w;
    }
  }
  for (int j = 0; j < C; ++j) {
    const R* u = a + j * lda;
    R re = tiles::lane_sum<R>(same[j]), im = 0;
    if constexpr (Complex)
      for (int k = 0; k < W; ++k) im += k % 2 ? -crossed[j][k] : crossed[j][k];
    for (int64_t k = i; k < len; k += P) {
      if constexpr (Complex) {
        re += u[k] * x[k] + u[k + 1] * x[k + 1];
        im += u[k] * x[k + 1] - u[k + 1] * x[k];
      } else {
        re += u[k] * x[k];
      }
    }
    y[j * P] += alpha * re;
    if constexpr (Complex) y[j * P + 1] += alpha * im;
  }
}

template <class R, bool Complex>
void matvec(const PlainMatvec& g) {
  constexpr int P = Complex ? 2 : 1;
  const R *a = static_cast<const R*>(g.a), *x = static_cast<const R*>(g.x);
  R* y = static_cast<R*>(g.y);
  const R alpha = static_cast<R>(g.alpha);
  const int64_t len = g.m * P, lda = g.lda * P;
  int64_t j = 0;
  if (g.adjoint) {
    for (; j + kColumns <= g.n; j += kColumns)
      dot_columns<R, Complex, kColumns>(len, a + j * lda, lda, x, y + j * P, alpha);
    for (; j < g.n; ++j) dot_columns<R, Complex, 1>(len, a + j * lda, lda, x, y + j * P, alpha);
  } else {
    for (; j + kColumns <= g.n; j += kColumns)
      add_columns<R, Complex, kColumns>(len, a + j * lda, lda, x + j * P, y, alpha);
    for (; j < g.n; ++j) add_columns<R, Complex, 1>(len, a + j * lda, lda, x + j * P, y, alpha);
  }
}

// One sweep over some rows: the column that two rotations share stays in registers.
template <class R, bool Ascending>
void sweep_rows(const RotationSweep& sweep, const R* c, const R* s, R* z, int64_t ld) {
  constexpr int W = kLanes<R>, kVectors = 4;
  R* x = z + sweep.first * ld;
  if (!Ascending) x += ld;
  Vec<R> kept[kVectors];
  for (int k = 0; k < kVectors; ++k) kept[k] = load<R>(x + k * W);
  for (int64_t i = 0; i < sweep.count; ++i) {
    const Vec<R> cosine = splat<R>(c[i]), sine = splat<R>(s[i]);
    R* next = Ascending ? x + ld : x - ld;
    for (int k = 0; k < kVectors; ++k) {
      const Vec<R> other = load<R>(next + k * W);
      if (Ascending) {
        store<R>(x + k * W, cosine * kept[k] + sine * other);
        kept[k] = cosine * other - sine * kept[k];
      } else {
        store<R>(x + k * W, cosine * kept[k] - sine * other);
        kept[k] = cosine * other + sine * kept[k];
      }
    }
    x = next;
  }
  for (int k = 0; k < kVectors; ++k) store<R>(x + k * W, kept[k]);
}

template <class R>
void rotations(const PlainRotations& g, int64_t from, int64_t to) {
  constexpr int64_t kRows = 4 * kLanes<R>;
  const R *c = static_cast<const R*>(g.c), *s = static_cast<const R*>(g.s);
  R* z = static_cast<R*>(g.z);
  for (; from + kRows <= to; from += kRows)
    for (int64_t k = 0; k < g.count; ++k) {
      const RotationSweep& sweep = g.sweeps[k];
      if (sweep.ascending)
        sweep_rows<R, true>(sweep, c + sweep.at, s + sweep.at, z + from, g.ld);
      else
        sweep_rows<R, false>(sweep, c + sweep.at, s + sweep.at, z + from, g.ld);
    }
  if (from == to) return;
  for (int64_t k = 0; k < g.count; ++k) {
    const RotationSweep& sweep = g.sweeps[k];
    for (int64_t i = 0; i < sweep.count; ++i) {
      const R cosine = c[sweep.at + i], sine = s[sweep.at + i];
      R* x = z + (sweep.ascending ? sweep.first + i : sweep.first - i) * g.ld;
      R* y = x + g.ld;
      for (int64_t row = from; row < to; ++row) {
        const R u = x[row], v = y[row];
        x[row] = cosine * u + sine * v;
        y[row] = cosine * v - sine * u;
      }
    }
  }
}

}  // namespace

void plain_matvec(const PlainMatvec& call) {
  switch (call.dtype) {
    case DType::Float32:
      return matvec<float, false>(call);
    case DType::Float64:
      return matvec<double, false>(call);
    case DType::Complex64:
      return matvec<float, true>(call);
    default:
      return matvec<double, true>(call);
  }
}

void plain_rotations(const PlainRotations& call, int64_t from, int64_t to) {
  if (call.wide)
    rotations<double>(call, from, to);
  else
    rotations<float>(call, from, to);
}

}  // namespace flambeau::kernels::FB_ISA
