// What the plain routines are made of: products by our own kernels, matrices by columns,
// Householder reflectors one by one and in blocks, and rotations put off until there are many.
// Private to lapack_builtin_*.cpp. Sources: Golub and Van Loan, Matrix Computations (4th ed.), 5.1
// and 5.2.
#pragma once

#include <limits>

#include "kernels/providers/blas.h"
#include "kernels/providers/lapack_blocks.h"
#include "kernels/providers/lapack_builtin.h"
#include "kernels/providers/lapack_loops.h"

namespace flambeau::kernels::lapack::builtin {

// c = alpha op(a) op(b) + beta c; op is N, T or C.
template <class T>
void product(char ta, char tb, int m, int n, int k, double alpha, const T* a, int lda, const T* b,
             int ldb, double beta, T* c, int ldc) {
  std::vector<T> plain[2];
  const auto operand = [&](char op, int rows, int columns, const T* x, int ld, std::vector<T>& to) {
    if (op == 'N') return MatrixRef{x, 1, ld};
    if (!cplx<T> || op == 'T') return MatrixRef{x, ld, 1};
    to.resize(static_cast<size_t>(rows) * columns);  // x is columns x rows; conjugated here
    for (int j = 0; j < rows; ++j)
      for (int i = 0; i < columns; ++i)
        to[static_cast<size_t>(j) * columns + i] = conjugate(column(x, ld, j)[i]);
    return MatrixRef{to.data(), std::max(1, columns), 1};
  };
  gemm({dtype_of<T>, m, n, k, operand(ta, m, k, a, lda, plain[0]),
        operand(tb, k, n, b, ldb, plain[1]), c, 1, ldc, alpha, beta});
}

// What lapack_blocks.h needs of a maker.
struct Plain {
  template <class T>
  static void subtract(char ta, char tb, int m, int n, int k, const T* a, int lda, const T* b,
                       int ldb, T* c, int ldc) {
    product(ta, tb, m, n, k, -1, a, lda, b, ldb, 1, c, ldc);
  }
  template <class T>
  static void swap_rows(int n, T* a, int lda, int from, int to, const int* pivots, bool back) {
    for (int j = 0; j < n; ++j) {
      T* x = column(a, lda, j);
      for (int s = from; s < to; ++s) {
        const int i = back ? to - 1 - (s - from) : s;
        std::swap(x[i], x[pivots[i] - 1]);
      }
    }
  }
};

// y += alpha A x, or alpha A^H x (adjoint), in the calling thread.
template <class T>
void matvec(bool adjoint, int m, int n, double alpha, const T* a, int lda, const T* x, T* y) {
  if (m <= 0 || n <= 0) return;
  FB_ISA_DISPATCH(plain_matvec)({dtype_of<T>, adjoint, m, n, a, lda, x, y, alpha});
}

// A matrix by columns, zero at first.
template <class T>
struct Matrix {
  int m, n;
  std::vector<T> a;
  Matrix(int m, int n) : m(m), n(n), a(static_cast<size_t>(m) * n) {}
  T* column(int j) { return a.data() + static_cast<size_t>(j) * m; }
  const T* column(int j) const { return a.data() + static_cast<size_t>(j) * m; }
  T& operator()(int i, int j) { return column(j)[i]; }
  const T& operator()(int i, int j) const { return column(j)[i]; }
  T* at(int i, int j) { return column(j) + i; }
  const T* at(int i, int j) const { return column(j) + i; }
  int ld() const { return std::max(1, m); }
};

template <class T>
Matrix<T> adjoint(int m, int n, const T* a, int lda) {
  Matrix<T> out(n, m);
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) out(j, i) = conjugate(column(a, lda, j)[i]);
  return out;
}

template <class T>
Real<T> size1(T x) {
  if constexpr (cplx<T>)
    return std::fabs(x.real()) + std::fabs(x.imag());
  else
    return std::fabs(x);
}

// The power of two by which the largest entry is divided to lie in [1, 2): no sum of squares then
// overflows, and what underflows is too small to matter.
template <class T>
int exponent_of(const T* x, int64_t n) {
  Real<T> most = 0;
  for (int64_t i = 0; i < n; ++i) most = std::max(most, size1(x[i]));
  return most > 0 && std::isfinite(most) ? std::ilogb(most) : 0;
}
template <class T>
void scale_by_power(T* x, int64_t n, int exponent) {
  if (exponent == 0) return;
  for (int64_t i = 0; i < n; ++i)
    if constexpr (cplx<T>)
      x[i] = {std::ldexp(x[i].real(), exponent), std::ldexp(x[i].imag(), exponent)};
    else
      x[i] = std::ldexp(x[i], exponent);
}

template <class T>
Real<T> norm2(const T* x, int n) {
  using R = Real<T>;
  R scale = 0, sum = 0;
  for (int i = 0; i < n; ++i) scale = std::max(scale, size1(x[i]));
  if (scale == 0 || !std::isfinite(scale)) return scale;
  for (int i = 0; i < n; ++i) sum += std::norm(x[i] / scale);
  return scale * std::sqrt(sum);
}

// H = I - tau v v^H whose adjoint maps x to (beta, 0 ...), beta real; v overwrites x behind its
// first entry (v[0] is 1), beta the first.
template <class T>
T reflector(T* x, int n) {
  using R = Real<T>;
  if (n <= 0) return T(0);
  const R rest = norm2(x + 1, n - 1);
  const T alpha = x[0];
  if (rest == 0 && std::imag(alpha) == 0) return T(0);
  const R beta = -std::copysign(std::hypot(std::abs(alpha), rest), std::real(alpha));
  T tau;
  if constexpr (cplx<T>)
    tau = T((beta - alpha.real()) / beta, -alpha.imag() / beta);
  else
    tau = (beta - alpha) / beta;
  // 1 / (alpha - beta) may overflow where the quotients do not
  for (int i = 1; i < n; ++i) x[i] /= alpha - beta;
  x[0] = T(beta);
  return tau;
}

// The triangle t of a block of reflectors, H_0 H_1 ... = I - V t V^H (Golub and Van Loan, 5.1.6);
// V is m x k with its ones and zeros written out.
template <class T>
Matrix<T> block_triangle(int m, int k, const T* v, int ldv, const T* tau) {
  Matrix<T> gram(k, k), t(k, k);
  product('C', 'N', k, k, m, 1, v, ldv, v, ldv, 0, gram.a.data(), gram.ld());
  for (int j = 0; j < k; ++j) {
    t(j, j) = tau[j];
    for (int i = 0; i < j; ++i) {
      T sum(0);
      for (int l = i; l < j; ++l) sum += t(i, l) * gram(l, j);
      t(i, j) = -tau[j] * sum;
    }
  }
  return t;
}

// c = (I - V t V^H) c, or with t^H in the place of t; c is m x n.
template <class T>
void apply_block(int m, int n, int k, const T* v, int ldv, const Matrix<T>& t, bool adjoint, T* c,
                 int ldc) {
  if (m == 0 || n == 0 || k == 0) return;
  Matrix<T> w(k, n), tw(k, n);
  product('C', 'N', k, n, m, 1, v, ldv, c, ldc, 0, w.a.data(), w.ld());
  product(adjoint ? 'C' : 'N', 'N', k, n, k, 1, t.a.data(), t.ld(), w.a.data(), w.ld(), 0,
          tw.a.data(), tw.ld());
  product('N', 'N', m, n, k, -1, v, ldv, tw.a.data(), tw.ld(), 1, c, ldc);
}

inline constexpr int kReflectors = 32;  // of a block

// c = H_0 H_1 ... c, or its adjoint, for all reflectors in the columns of v (m x k, ones and zeros
// written out; above row j + `below` of column j there are zeros).
template <class T>
void apply_reflectors(int m, int n, int k, const T* v, int ldv, const T* tau, int below,
                      bool adjoint, T* c, int ldc) {
  const int blocks = (k + kReflectors - 1) / kReflectors;
  for (int s = 0; s < blocks; ++s) {
    const int j = (adjoint ? s : blocks - 1 - s) * kReflectors,
              width = std::min(kReflectors, k - j), top = j + below;
    if (top >= m) continue;
    const T* block = column(v, ldv, j) + top;
    const Matrix<T> t = block_triangle(m - top, width, block, ldv, tau + j);
    apply_block(m - top, n, width, block, ldv, t, adjoint, c + top, ldc);
  }
}

// Rotations of neighbouring columns of an n-column matrix z of real numbers, kept until there are
// enough of them to be worth a pass over the rows (see RotationSweep for what one is).
template <class R>
class Rotations {
 public:
  Rotations(Matrix<R>* z) : z_(z) {}
  ~Rotations() { apply(); }
  void begin(int first, bool ascending) {
    if (!z_) return;
    if (c_.size() >= kMany) apply();
    sweeps_.push_back({first, 0, static_cast<int64_t>(c_.size()), ascending});
  }
  void add(R c, R s) {
    if (!z_) return;
    c_.push_back(c), s_.push_back(s);
    ++sweeps_.back().count;
  }
  void apply() {
    if (!z_ || c_.empty()) return;
    std::erase_if(sweeps_, [](const RotationSweep& s) { return s.count == 0; });
    const PlainRotations call{std::is_same_v<R, double>,
                              sweeps_.data(),
                              static_cast<int64_t>(sweeps_.size()),
                              c_.data(),
                              s_.data(),
                              z_->a.data(),
                              z_->ld()};
    const auto rotate = FB_ISA_DISPATCH(plain_rotations);
    const int64_t grain = std::max<int64_t>(1, kWorthAThread / static_cast<int64_t>(c_.size()));
    parallel_for(0, (z_->m + 63) / 64, grain, [&](int64_t from, int64_t to) {
      rotate(call, from * 64, std::min<int64_t>(z_->m, to * 64));
    });
    sweeps_.clear(), c_.clear(), s_.clear();
  }

 private:
  static constexpr size_t kMany = 1 << 14;
  static constexpr int64_t kWorthAThread = 1 << 12;  // rotations of 64 rows
  Matrix<R>* z_;
  std::vector<RotationSweep> sweeps_;
  std::vector<R> c_, s_;
};

// c, s and r with (c f + s g, c g - s f) = (r, 0).
template <class R>
struct Rotation {
  R c, s, r;
  Rotation(R f, R g) {
    if (g == 0) {
      c = 1, s = 0, r = f;
    } else if (f == 0) {
      c = 0, s = 1, r = g;
    } else {
      r = std::copysign(std::hypot(f, g), f);
      c = f / r, s = g / r;
    }
  }
};

}  // namespace flambeau::kernels::lapack::builtin
