#include "kernels/providers/lapack_builtin.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace flambeau::kernels::lapack::builtin {
namespace {

using Z = std::complex<double>;
constexpr double kEps = std::numeric_limits<double>::epsilon();

// A matrix by columns.
struct Matrix {
  int m, n;
  std::vector<Z> a;
  Matrix(int m, int n) : m(m), n(n), a(static_cast<size_t>(m) * n) {}
  Z& operator()(int i, int j) { return a[static_cast<size_t>(j) * m + i]; }
  const Z& operator()(int i, int j) const { return a[static_cast<size_t>(j) * m + i]; }
  Z* column(int j) { return a.data() + static_cast<size_t>(j) * m; }
  static Matrix identity(int m, int n) {
    Matrix out(m, n);
    for (int i = 0; i < std::min(m, n); ++i) out(i, i) = 1;
    return out;
  }
};

template <class T>
Matrix load(const T* a, int m, int n, int ld) {
  Matrix out(m, n);
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) out(i, j) = Z(a[static_cast<size_t>(j) * ld + i]);
  return out;
}
template <class T>
T narrow(Z z) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(z.real());
  else
    return T(z);
}
template <class T>
void store(const Matrix& x, T* a, int ld) {
  for (int j = 0; j < x.n; ++j)
    for (int i = 0; i < x.m; ++i) a[static_cast<size_t>(j) * ld + i] = narrow<T>(x(i, j));
}
Matrix adjoint(const Matrix& x) {
  Matrix out(x.n, x.m);
  for (int j = 0; j < x.n; ++j)
    for (int i = 0; i < x.m; ++i) out(j, i) = std::conj(x(i, j));
  return out;
}
double size1(Z z) {
  return std::fabs(z.real()) + std::fabs(z.imag());
}
double norm2(const Z* x, int n) {
  double scale = 0, sum = 0;
  for (int i = 0; i < n; ++i) scale = std::max(scale, size1(x[i]));
  if (scale == 0 || !std::isfinite(scale)) return scale;
  for (int i = 0; i < n; ++i) sum += std::norm(x[i] / scale);
  return scale * std::sqrt(sum);
}
Z inner(const Z* x, const Z* y, int n) {
  Z sum = 0;
  for (int i = 0; i < n; ++i) sum += std::conj(x[i]) * y[i];
  return sum;
}

// x = op(A)^-1 x for the triangle of A, one right-hand side.
void solve_triangle(const Matrix& a, bool upper, char trans, bool unit, Z* x) {
  const int n = a.n;
  auto at = [&](int i, int j) {
    return trans == 'N' ? a(i, j) : trans == 'T' ? a(j, i) : std::conj(a(j, i));
  };
  const bool from_top = upper == (trans != 'N');
  for (int k = 0; k < n; ++k) {
    const int i = from_top ? k : n - 1 - k;
    Z sum = x[i];
    for (int j = from_top ? 0 : i + 1; j < (from_top ? i : n); ++j) sum -= at(i, j) * x[j];
    x[i] = unit ? sum : sum / at(i, i);
  }
}

// H = I - tau v v^H that maps x to (beta, 0...); v overwrites x behind its first entry, beta the
// first.
Z reflector(Z* x, int n) {
  const double rest = norm2(x + 1, n - 1);
  const Z alpha = x[0];
  if (rest == 0 && alpha.imag() == 0) return 0;
  const double beta = -std::copysign(std::hypot(std::abs(alpha), rest), alpha.real());
  const Z tau((beta - alpha.real()) / beta, -alpha.imag() / beta);
  for (int i = 1; i < n; ++i) x[i] /= alpha - beta;
  x[0] = beta;
  return tau;
}
// y = (I - tau v v^H) y, v[0] taken as 1.
void reflect(const Z* v, Z tau, Z* y, int n) {
  Z sum = y[0];
  for (int i = 1; i < n; ++i) sum += std::conj(v[i]) * y[i];
  sum *= tau;
  y[0] -= sum;
  for (int i = 1; i < n; ++i) y[i] -= sum * v[i];
}
// c = op(Q) c for the k reflectors in the columns of `a`.
void apply_q(Matrix& a, const std::vector<Z>& tau, bool adjoint_q, Matrix& c) {
  const int k = static_cast<int>(tau.size());
  for (int s = 0; s < k; ++s) {
    const int i = adjoint_q ? s : k - 1 - s;
    const Z t = adjoint_q ? std::conj(tau[i]) : tau[i];
    for (int j = 0; j < c.n; ++j) reflect(a.column(i) + i, t, c.column(j) + i, a.m - i);
  }
}
std::vector<Z> householder(Matrix& a) {
  std::vector<Z> tau(std::min(a.m, a.n));
  for (int i = 0; i < static_cast<int>(tau.size()); ++i) {
    tau[i] = reflector(a.column(i) + i, a.m - i);
    for (int j = i + 1; j < a.n; ++j)
      reflect(a.column(i) + i, std::conj(tau[i]), a.column(j) + i, a.m - i);
  }
  return tau;
}

// Columns p and q of x times the rotation that takes out the phase of `pq` and turns by (c, s).
void rotate(Matrix& x, int p, int q, double c, double s, Z phase) {
  Z *a = x.column(p), *b = x.column(q);
  for (int i = 0; i < x.m; ++i) {
    const Z u = a[i], v = b[i] * std::conj(phase);
    a[i] = c * u - s * v;
    b[i] = s * u + c * v;
  }
}
// The rotation that diagonalises the Hermitian [[pp, pq], [pq^*, qq]].
void jacobi(double pp, double qq, Z pq, double& c, double& s, Z& phase) {
  const double size = std::abs(pq), theta = (qq - pp) / (2 * size);
  phase = pq / size;
  const double t = std::copysign(1.0, theta) / (std::fabs(theta) + std::hypot(theta, 1.0));
  c = 1 / std::hypot(t, 1.0);
  s = t * c;
}

// Columns from `from` on become an orthonormal complement of those before them.
void complete(Matrix& q, int from) {
  int next = 0;
  for (int j = from; j < q.n; ++j) {
    for (;; ++next) {  // some unit vector is at least 1/sqrt(m) away from what is spanned
      Z* x = q.column(j);
      std::fill_n(x, q.m, Z(0));
      x[next % q.m] = 1;
      for (int pass = 0; pass < 2; ++pass)
        for (int k = 0; k < j; ++k) {
          const Z along = inner(q.column(k), x, q.m);
          for (int i = 0; i < q.m; ++i) x[i] -= along * q(i, k);
        }
      const double size = norm2(x, q.m);
      if (size < 0.5 / std::sqrt(q.m) && next < 4 * q.m) continue;
      for (int i = 0; i < q.m; ++i) x[i] /= size;
      ++next;
      break;
    }
  }
}

struct Svd {
  Matrix u, v;  // A = u diag(s) v^H
  std::vector<double> s;
};

// One-sided Jacobi of a matrix with at least as many rows as columns: columns of w are turned until
// orthogonal.
Svd tall_svd(Matrix w, int columns) {
  const int m = w.m, n = w.n;
  Matrix v = Matrix::identity(n, n);
  for (int sweep = 0; sweep < 60; ++sweep) {
    bool turned = false;
    for (int p = 0; p < n; ++p)
      for (int q = p + 1; q < n; ++q) {
        const Z pq = inner(w.column(p), w.column(q), m);
        const double np = norm2(w.column(p), m), nq = norm2(w.column(q), m);
        if (!(std::abs(pq) > kEps * np * nq) || std::abs(pq) < std::numeric_limits<double>::min())
          continue;
        double c, s;
        Z phase;
        jacobi(np * np, nq * nq, pq, c, s, phase);
        rotate(w, p, q, c, s, phase), rotate(v, p, q, c, s, phase);
        turned = true;
      }
    if (!turned) break;
  }
  std::vector<double> size(n);
  for (int j = 0; j < n; ++j) size[j] = norm2(w.column(j), m);
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int i, int j) { return size[i] > size[j]; });
  Svd out{Matrix(m, columns), Matrix(n, n), std::vector<double>(n)};
  int rank = 0;
  for (int j = 0; j < n; ++j) {
    const int k = order[j];
    out.s[j] = size[k];
    std::copy_n(v.column(k), n, out.v.column(j));
    if (j >= columns || size[k] <= size[order[0]] * kEps * kEps || size[k] == 0) continue;
    for (int i = 0; i < m; ++i) out.u(i, j) = w(i, k) / size[k];
    rank = j + 1;
  }
  complete(out.u, std::min(rank, columns));
  return out;
}

// u has `full` ? m : min(m, n) columns, and v likewise.
Svd svd(const Matrix& a, bool full) {
  if (a.m >= a.n) return tall_svd(a, full ? a.m : a.n);
  Svd t = tall_svd(adjoint(a), full ? a.n : a.m);
  return {std::move(t.v), std::move(t.u), std::move(t.s)};
}

// A = q h q^H with h upper Hessenberg.
void hessenberg(Matrix& h, Matrix& q) {
  const int n = h.n;
  for (int k = 0; k + 2 < n; ++k) {
    std::vector<Z> v(h.column(k) + k + 1, h.column(k) + n);
    const Z tau = reflector(v.data(), n - k - 1);
    const Z beta = v[0];
    v[0] = 1;
    for (int j = k + 1; j < n; ++j)
      reflect(v.data(), std::conj(tau), h.column(j) + k + 1, n - k - 1);
    auto right = [&](Matrix& x) {  // x (I - tau v v^H)
      for (int i = 0; i < n; ++i) {
        Z sum = 0;
        for (int j = k + 1; j < n; ++j) sum += x(i, j) * v[j - k - 1];
        sum *= tau;
        for (int j = k + 1; j < n; ++j) x(i, j) -= sum * std::conj(v[j - k - 1]);
      }
    };
    right(h), right(q);
    h(k + 1, k) = beta;
    for (int i = k + 2; i < n; ++i) h(i, k) = 0;
  }
}

Z wilkinson(const Matrix& h, int hi) {
  const Z a = h(hi - 1, hi - 1), b = h(hi - 1, hi), c = h(hi, hi - 1), d = h(hi, hi);
  const Z half = (a - d) * 0.5, root = std::sqrt(half * half + b * c);
  const Z below = std::abs(half + root) > std::abs(half - root) ? half + root : half - root;
  return below == Z(0) ? d : d - b * c / below;
}

// One QR step on rows and columns [lo, hi] of the Hessenberg h, carried over the whole Schur form
// and into q.
void qr_step(Matrix& h, Matrix& q, int lo, int hi, Z shift) {
  const int n = h.n;
  std::vector<double> cs(hi - lo);
  std::vector<Z> sn(hi - lo);
  for (int i = lo; i <= hi; ++i) h(i, i) -= shift;
  for (int k = lo; k < hi; ++k) {
    const Z f = h(k, k), g = h(k + 1, k);
    const double r = std::hypot(std::abs(f), std::abs(g)), size = std::abs(f);
    const Z unit = size == 0 ? Z(1) : f / size;
    const double c = r == 0 ? 1 : size / r;
    const Z s = r == 0 ? Z(0) : unit * std::conj(g) / r;
    cs[k - lo] = c, sn[k - lo] = s;
    for (int j = k; j < n; ++j) {
      const Z x = h(k, j), y = h(k + 1, j);
      h(k, j) = c * x + s * y;
      h(k + 1, j) = c * y - std::conj(s) * x;
    }
  }
  for (int k = lo; k < hi; ++k) {
    const double c = cs[k - lo];
    const Z s = sn[k - lo];
    auto right = [&](Matrix& x, int rows) {
      for (int i = 0; i < rows; ++i) {
        const Z a = x(i, k), b = x(i, k + 1);
        x(i, k) = c * a + std::conj(s) * b;
        x(i, k + 1) = c * b - s * a;
      }
    };
    right(h, std::min(k + 2, hi + 1)), right(q, n);
  }
  for (int i = lo; i <= hi; ++i) h(i, i) += shift;
}

// h becomes upper triangular; 0, or the position that did not converge.
int schur(Matrix& h, Matrix& q) {
  int hi = h.n - 1, tries = 0;
  while (hi > 0) {
    int lo = hi;
    for (; lo > 0; --lo)
      if (size1(h(lo, lo - 1)) <= kEps * (size1(h(lo, lo)) + size1(h(lo - 1, lo - 1)))) {
        h(lo, lo - 1) = 0;
        break;
      }
    if (lo == hi) {
      --hi, tries = 0;
      continue;
    }
    if (++tries > 60) return hi + 1;
    Z shift = wilkinson(h, hi);
    if (tries % 10 == 0) shift = size1(h(hi, hi - 1)) + (hi > 1 ? size1(h(hi - 1, hi - 2)) : 0);
    qr_step(h, q, lo, hi, shift);
  }
  return 0;
}

// Eigenvector k of the triangular h, taken back by q; of length 1, its largest entry real.
void eigenvector(const Matrix& h, const Matrix& q, int k, double norm, Z* out) {
  const int n = h.n;
  std::vector<Z> x(k + 1);
  x[k] = 1;
  for (int i = k - 1; i >= 0; --i) {
    Z sum = 0;
    for (int j = i + 1; j <= k; ++j) sum += h(i, j) * x[j];
    Z gap = h(i, i) - h(k, k);
    if (size1(gap) < kEps * norm) gap = std::max(kEps * norm, std::numeric_limits<double>::min());
    x[i] = -sum / gap;
    if (double big = size1(x[i]); big > 1e100)
      for (Z& z : x) z /= big;
  }
  for (int i = 0; i < n; ++i) {
    out[i] = 0;
    for (int j = 0; j <= k; ++j) out[i] += q(i, j) * x[j];
  }
  const double length = norm2(out, n);
  const Z big = *std::max_element(out, out + n, [](Z a, Z b) { return std::abs(a) < std::abs(b); });
  const Z turn = std::conj(big) / std::abs(big) / length;
  for (int i = 0; i < n; ++i) out[i] *= turn;
}

}  // namespace

template <class T>
int potrf(bool upper, int n, T* a) {
  auto at = [&](int i, int j) -> T& {
    return upper ? a[static_cast<size_t>(i) * n + j] : a[static_cast<size_t>(j) * n + i];
  };
  Matrix l(n, n);
  int info = 0;
  for (int j = 0; j < n && !info; ++j) {
    for (int i = j; i < n; ++i) {
      Z sum = upper ? std::conj(Z(at(i, j))) : Z(at(i, j));
      for (int k = 0; k < j; ++k) sum -= l(i, k) * std::conj(l(j, k));
      if (i == j) {
        if (!(sum.real() > 0)) info = j + 1;
        l(j, j) = std::sqrt(sum.real());
      } else {
        l(i, j) = sum / l(j, j).real();
      }
      if (info) break;
    }
  }
  for (int j = 0; j < n; ++j)
    for (int i = j; i < n; ++i) at(i, j) = narrow<T>(upper ? std::conj(l(i, j)) : l(i, j));
  return info;
}

template <class T>
int getrf(int m, int n, T* a, int* pivots) {
  Matrix x = load(a, m, n, std::max(1, m));
  int info = 0;
  for (int k = 0; k < std::min(m, n); ++k) {
    int best = k;
    for (int i = k + 1; i < m; ++i)
      if (size1(x(i, k)) > size1(x(best, k))) best = i;
    pivots[k] = best + 1;
    if (x(best, k) == Z(0)) {
      if (!info) info = k + 1;
      continue;
    }
    if (best != k)
      for (int j = 0; j < n; ++j) std::swap(x(k, j), x(best, j));
    for (int i = k + 1; i < m; ++i) x(i, k) /= x(k, k);
    for (int j = k + 1; j < n; ++j)
      for (int i = k + 1; i < m; ++i) x(i, j) -= x(i, k) * x(k, j);
  }
  store(x, a, std::max(1, m));
  return info;
}

template <class T>
int getrs(char trans, int n, int rhs, const T* lu, const int* pivots, T* b) {
  const Matrix f = load(lu, n, n, std::max(1, n));
  Matrix x = load(b, n, rhs, std::max(1, n));
  for (int j = 0; j < rhs; ++j) {
    Z* c = x.column(j);
    if (trans == 'N') {
      for (int i = 0; i < n; ++i) std::swap(c[i], c[pivots[i] - 1]);
      solve_triangle(f, false, 'N', true, c), solve_triangle(f, true, 'N', false, c);
    } else {
      solve_triangle(f, true, trans, false, c), solve_triangle(f, false, trans, true, c);
      for (int i = n - 1; i >= 0; --i) std::swap(c[i], c[pivots[i] - 1]);
    }
  }
  store(x, b, std::max(1, n));
  return 0;
}

template <class T>
int trtrs(bool upper, char trans, bool unit, int n, int rhs, const T* a, T* b) {
  const Matrix f = load(a, n, n, std::max(1, n));
  Matrix x = load(b, n, rhs, std::max(1, n));
  for (int j = 0; j < rhs; ++j) solve_triangle(f, upper, trans, unit, x.column(j));
  store(x, b, std::max(1, n));
  return 0;
}

template <class T>
int geqrf(int m, int n, T* a, T* tau) {
  Matrix x = load(a, m, n, std::max(1, m));
  const std::vector<Z> t = householder(x);
  store(x, a, std::max(1, m));
  std::transform(t.begin(), t.end(), tau, narrow<T>);
  return 0;
}

template <class T>
int orgqr(int m, int n, int k, T* a, const T* tau) {
  Matrix x = load(a, m, k, std::max(1, m)), q = Matrix::identity(m, n);
  apply_q(x, std::vector<Z>(tau, tau + k), false, q);
  store(q, a, std::max(1, m));
  return 0;
}

template <class T>
int ormqr(bool left, char trans, int m, int n, int k, const T* a, int lda, const T* tau, T* c) {
  Matrix x = load(a, left ? m : n, k, lda), y = load(c, m, n, std::max(1, m));
  if (!left) y = adjoint(y);  // C Q = (Q^H C^H)^H
  apply_q(x, std::vector<Z>(tau, tau + k), (trans != 'N') == left, y);
  store(left ? y : adjoint(y), c, std::max(1, m));
  return 0;
}

template <class T>
int heevd(bool vectors, bool upper, int n, T* a, Real<T>* w) {
  Matrix x = load(a, n, n, std::max(1, n)), v = Matrix::identity(n, n);
  for (int j = 0; j < n; ++j) {
    x(j, j) = x(j, j).real();
    for (int i = j + 1; i < n; ++i)
      (upper ? x(i, j) : x(j, i)) = std::conj(upper ? x(j, i) : x(i, j));
  }
  const double total = norm2(x.a.data(), n * n);
  for (int sweep = 0; sweep < 60; ++sweep) {
    bool turned = false;
    for (int p = 0; p < n; ++p)
      for (int q = p + 1; q < n; ++q) {
        const Z pq = x(p, q);
        if (!(std::abs(pq) > 0.25 * kEps * total / std::max(1, n))) continue;
        double c, s;
        Z phase;
        jacobi(x(p, p).real(), x(q, q).real(), pq, c, s, phase);
        rotate(x, p, q, c, s, phase), rotate(v, p, q, c, s, phase);
        for (int j = 0; j < n; ++j) {  // the rows, by the adjoint
          const Z f = x(p, j), g = x(q, j) * phase;
          x(p, j) = c * f - s * g;
          x(q, j) = s * f + c * g;
        }
        turned = true;
      }
    if (!turned) break;
  }
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int i, int j) { return x(i, i).real() < x(j, j).real(); });
  for (int j = 0; j < n; ++j) {
    w[j] = static_cast<Real<T>>(x(order[j], order[j]).real());
    for (int i = 0; vectors && i < n; ++i)
      a[static_cast<size_t>(j) * n + i] = narrow<T>(v(i, order[j]));
  }
  return 0;
}

template <class T>
int gesdd(char job, int m, int n, T* a, Real<T>* s, T* u, int ldu, T* vt, int ldvt) {
  const Matrix x = load(a, m, n, std::max(1, m));
  const Svd d = svd(x, job == 'A');
  for (int i = 0; i < std::min(m, n); ++i) s[i] = static_cast<Real<T>>(d.s[i]);
  if (job == 'N') return 0;
  store(d.u, u, ldu), store(adjoint(d.v), vt, ldvt);
  return 0;
}

template <class T>
int geev(bool vectors, int n, T* a, std::complex<Real<T>>* w, std::complex<Real<T>>* v) {
  using C = std::complex<Real<T>>;
  Matrix h = load(a, n, n, std::max(1, n)), q = Matrix::identity(n, n);
  const double norm = norm2(h.a.data(), n * n);
  hessenberg(h, q);
  if (const int failed = schur(h, q)) return failed;
  std::vector<Z> values(n), x(n);
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  for (int i = 0; i < n; ++i) values[i] = h(i, i);
  if constexpr (std::is_floating_point_v<T>) {  // pairs side by side, the one above the real axis
                                                // first
    for (Z& z : values)
      if (std::fabs(z.imag()) <= 8 * kEps * norm) z = z.real();
    for (int i = 0; i + 1 < n; ++i) {
      const Z z = values[order[i]];
      if (z.imag() == 0) continue;
      auto mate = std::min_element(order.begin() + i + 1, order.end(), [&](int p, int r) {
        return std::abs(values[p] - std::conj(z)) < std::abs(values[r] - std::conj(z));
      });
      values[*mate] = std::conj(z);
      std::rotate(order.begin() + i + 1, mate, mate + 1);
      if (z.imag() < 0) std::swap(order[i], order[i + 1]);
      ++i;
    }
  }
  for (int j = 0; j < n; ++j) {
    w[j] = C(values[order[j]]);
    if (!vectors) continue;
    eigenvector(h, q, order[j], norm, x.data());
    for (int i = 0; i < n; ++i) v[static_cast<size_t>(j) * n + i] = C(x[i]);
    if (std::is_floating_point_v<T> && values[order[j]].imag() < 0 &&
        j > 0)  // exactly the mate's conjugate
      for (int i = 0; i < n; ++i)
        v[static_cast<size_t>(j) * n + i] = std::conj(v[static_cast<size_t>(j - 1) * n + i]);
  }
  return 0;
}

template <class T>
int gels(int driver, int m, int n, int rhs, T* a, T* b, Real<T> rcond, int* rank, Real<T>* s) {
  const int ldb = std::max({1, m, n}), k = std::min(m, n);
  const Svd d = svd(load(a, m, n, std::max(1, m)), false);
  const double cut = driver == 0 ? 0
                     : rcond < 0 ? std::numeric_limits<Real<T>>::epsilon()
                                 : static_cast<double>(rcond);
  *rank = 0;
  for (int i = 0; i < k; ++i) {
    if (driver >= 2) s[i] = static_cast<Real<T>>(d.s[i]);
    *rank += d.s[i] > cut * d.s[0];
  }
  const Matrix y = load(b, m, rhs, ldb);
  Matrix x(n, rhs);
  for (int j = 0; j < rhs; ++j)
    for (int r = 0; r < *rank; ++r) {
      Z along = 0;
      for (int i = 0; i < m; ++i) along += std::conj(d.u(i, r)) * y(i, j);
      along /= d.s[r];
      for (int i = 0; i < n; ++i) x(i, j) += along * d.v(i, r);
    }
  store(x, b, ldb);
  return driver == 0 && *rank < k ? *rank + 1 : 0;
}

#define FB_INSTANTIATE(T)                                                              \
  template int potrf<T>(bool, int, T*);                                                \
  template int getrf<T>(int, int, T*, int*);                                           \
  template int getrs<T>(char, int, int, const T*, const int*, T*);                     \
  template int trtrs<T>(bool, char, bool, int, int, const T*, T*);                     \
  template int geqrf<T>(int, int, T*, T*);                                             \
  template int orgqr<T>(int, int, int, T*, const T*);                                  \
  template int ormqr<T>(bool, char, int, int, int, const T*, int, const T*, T*);       \
  template int heevd<T>(bool, bool, int, T*, Real<T>*);                                \
  template int gesdd<T>(char, int, int, T*, Real<T>*, T*, int, T*, int);               \
  template int geev<T>(bool, int, T*, std::complex<Real<T>>*, std::complex<Real<T>>*); \
  template int gels<T>(int, int, int, int, T*, T*, Real<T>, int*, Real<T>*);
FB_INSTANTIATE(float)
FB_INSTANTIATE(double)
FB_INSTANTIATE(complex64)
FB_INSTANTIATE(complex128)

}  // namespace flambeau::kernels::lapack::builtin
