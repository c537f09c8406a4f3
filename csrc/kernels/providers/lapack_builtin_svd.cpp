// Singular values and vectors without LAPACK: QR first when the matrix is tall, to bidiagonal form
// by blocks of reflectors, implicit QR steps there, and the vectors back. Sources: Golub and Van
// Loan, Matrix Computations (4th ed.), 5.4 and 8.6; Demmel and Kahan 1990, "Accurate singular
// values of bidiagonal matrices", for the step without shift, the choice of direction and when to
// stop.
#include "kernels/providers/lapack_builtin_tools.h"

namespace flambeau::kernels::lapack::builtin {
namespace {

template <class T>
struct Bidiagonal {
  std::vector<Real<T>> d, e;
  Matrix<T> left, right;  // reflectors: those of column j begin in row j, and in row j + 1
  std::vector<T> left_tau, right_tau;
  Bidiagonal(int m, int n) : d(n), e(n + 1), left(m, n), right(n, n), left_tau(n), right_tau(n) {}
};

// a = Q B P^H with a real upper bidiagonal B, for m >= n; a is lost.
//
// Before a step, what is left of the matrix is A - V Y^H - X U^H. The reflector v of a column takes
// v y^H from it with y = tau A^H v; the reflector u of the row, x u^H with x = tau A u.
template <class T>
Bidiagonal<T> bidiagonalise(Matrix<T>& a) {
  const int m = a.m, n = a.n;
  Bidiagonal<T> out(m, n);
  Matrix<T>&v = out.left, &u = out.right;
  Matrix<T> x(m, kReflectors), y(n, kReflectors);
  std::vector<T> row(kReflectors), along(kReflectors), across(n);
  const auto inner = [&](int rows, int count, const T* block, int ld, const T* z) {
    std::fill(along.begin(), along.end(), T(0));
    matvec(true, rows, count, 1, block, ld, z, along.data());
  };
  for (int from = 0; from < n; from += kReflectors) {
    const int to = std::min(n, from + kReflectors);
    for (int j = from; j < to; ++j) {
      const int known = j - from, rows = m - j, rest = n - j - 1;
      T* c = a.at(j, j);  // the column, up to date
      for (int k = 0; k < known; ++k) row[k] = conjugate(y(j, k));
      matvec(false, rows, known, -1, v.at(j, from), m, row.data(), c);
      for (int k = 0; k < known; ++k) row[k] = conjugate(u(j, from + k));
      matvec(false, rows, known, -1, x.at(j, 0), m, row.data(), c);
      T tau = reflector(c, rows);
      out.left_tau[j] = tau, out.d[j] = std::real(*c);
      T* p = v.at(j, j);
      std::copy_n(c, rows, p);
      *p = T(1);
      if (rest == 0) break;
      T* q = y.at(j + 1, known);
      std::fill_n(y.column(known), n, T(0));
      matvec(true, rows, rest, 1, a.at(j, j + 1), m, p, q);
      inner(rows, known, v.at(j, from), m, p);
      matvec(false, rest, known, -1, y.at(j + 1, 0), n, along.data(), q);
      inner(rows, known, x.at(j, 0), m, p);
      matvec(false, rest, known, -1, u.at(j + 1, from), n, along.data(), q);
      for (int i = 0; i < rest; ++i) q[i] *= tau;
      // The row as a column: conjugated, up to date with the reflector just found.
      for (int i = 0; i < rest; ++i) across[i] = conjugate(a(j, j + 1 + i));
      for (int k = 0; k <= known; ++k) row[k] = conjugate(v(j, from + k));
      matvec(false, rest, known + 1, -1, y.at(j + 1, 0), n, row.data(), across.data());
      for (int k = 0; k < known; ++k) row[k] = conjugate(x(j, k));
      matvec(false, rest, known, -1, u.at(j + 1, from), n, row.data(), across.data());
      tau = reflector(across.data(), rest);
      out.right_tau[j] = tau, out.e[j] = std::real(across[0]);
      T* w = u.at(j + 1, j);
      std::copy_n(across.data(), rest, w);
      *w = T(1);
      T* z = x.at(j + 1, known);
      std::fill_n(x.column(known), m, T(0));
      matvec(false, rows - 1, rest, 1, a.at(j + 1, j + 1), m, w, z);
      inner(rest, known + 1, y.at(j + 1, 0), n, w);
      matvec(false, rows - 1, known + 1, -1, v.at(j + 1, from), m, along.data(), z);
      inner(rest, known, u.at(j + 1, from), n, w);
      matvec(false, rows - 1, known, -1, x.at(j + 1, 0), m, along.data(), z);
      for (int i = 0; i < rows - 1; ++i) z[i] *= tau;
    }
    const int rest = n - to, rows = m - to, width = to - from;
    if (rest == 0) break;
    product('N', 'C', rows, rest, width, -1, v.at(to, from), m, y.at(to, 0), n, 1, a.at(to, to), m);
    product('N', 'C', rows, rest, width, -1, x.at(to, 0), m, u.at(to, from), n, 1, a.at(to, to), m);
  }
  return out;
}

// The smaller singular value of [[f, g], [0, h]].
template <class R>
R smaller_of(R f, R g, R h) {
  f = std::fabs(f), g = std::fabs(g), h = std::fabs(h);
  const R low = std::min(f, h), high = std::max(f, h);
  if (low == 0) return 0;
  const R ratio = low / high + 1, gap = (high - low) / high;
  if (g < high) {
    const R t = (g / high) * (g / high);
    return low * (2 / (std::sqrt(ratio * ratio + t) + std::sqrt(gap * gap + t)));
  }
  const R t = high / g;
  if (t == 0) return low * high / g;
  const R p = ratio * t, q = gap * t;
  return 2 * (low * (1 / (std::sqrt(1 + p * p) + std::sqrt(1 + q * q)))) * t;
}

// Singular values of the bidiagonal (d, e) into d, of any sign and order; u and v are multiplied by
// the vectors, unless null. Positive when it does not converge.
template <class R>
int diagonalise(int n, R* d, R* e, Matrix<R>* u, Matrix<R>* v) {
  constexpr R eps = std::numeric_limits<R>::epsilon() / 2, tiny = std::numeric_limits<R>::min();
  const R tolerance = std::max(R(10), std::min(R(100), std::pow(eps, R(-0.125)))) * eps;
  R least = std::fabs(d[0]), mu = least;  // a lower bound of the smallest singular value
  for (int i = 1; i < n && least != 0; ++i) {
    mu = std::fabs(d[i]) * (mu / (mu + std::fabs(e[i - 1])));
    least = std::min(least, mu);
  }
  int64_t steps = int64_t{6} * n * n + 60;
  const R threshold =
      std::max(tolerance * (least / std::sqrt(R(n))), static_cast<R>(n) * n * 6 * tiny);
  Rotations<R> lefts(u), rights(v);
  for (int hi = n - 1; hi > 0;) {
    if (std::fabs(e[hi - 1]) <= threshold) {
      e[--hi] = 0;
      continue;
    }
    int lo = hi - 1;
    while (lo > 0 && std::fabs(e[lo - 1]) > threshold) --lo;
    if (lo > 0) e[lo - 1] = 0;
    if (steps-- == 0)
      return static_cast<int>(std::count_if(e, e + n - 1, [](R x) { return x != 0; }));
    // From the larger end to the smaller one. Going up is going down in the matrix turned round,
    // whose left and right vectors change places.
    const bool up = std::fabs(d[lo]) < std::fabs(d[hi]);
    const auto D = [&](int i) -> R& { return d[up ? hi - i : lo + i]; };
    const auto E = [&](int i) -> R& { return e[up ? hi - 1 - i : lo + i]; };
    const int m = hi - lo;
    if (std::fabs(E(m - 1)) <= tolerance * std::fabs(D(m))) {
      E(m - 1) = 0;
      continue;
    }
    R bound = std::fabs(D(0)), low = bound, high = bound;
    bool split = false;
    for (int i = 0; i < m && !split; ++i) {
      if (std::fabs(E(i)) <= tolerance * bound) {
        E(i) = 0;
        split = true;
      }
      bound = std::fabs(D(i + 1)) * (bound / (bound + std::fabs(E(i))));
      low = std::min(low, bound);
      high = std::max({high, std::fabs(D(i + 1)), std::fabs(E(i))});
    }
    if (split) continue;
    R shift = 0;
    if (n * tolerance * (low / high) > std::max(eps, R(0.01) * tolerance)) {
      shift = smaller_of(D(m - 1), E(m - 1), D(m));
      const R first = std::fabs(D(0));
      if (first > 0 && (shift / first) * (shift / first) < eps) shift = 0;
    }
    Rotations<R>&outer = up ? lefts : rights, &inner = up ? rights : lefts;
    const R sign = up ? -1 : 1;
    outer.begin(up ? hi - 1 : lo, !up), inner.begin(up ? hi - 1 : lo, !up);
    if (shift == 0) {  // keeps small singular values to full relative accuracy
      R c = 1, old_c = 1, old_s = 0;
      for (int i = 0; i < m; ++i) {
        const Rotation<R> right(D(i) * c, E(i));
        c = right.c;
        if (i > 0) E(i - 1) = old_s * right.r;
        const Rotation<R> left(old_c * right.r, D(i + 1) * right.s);
        old_c = left.c, old_s = left.s;
        D(i) = left.r;
        outer.add(right.c, sign * right.s), inner.add(left.c, sign * left.s);
      }
      const R h = D(m) * c;
      D(m) = h * old_c;
      E(m - 1) = h * old_s;
      continue;
    }
    R f = (std::fabs(D(0)) - shift) * (std::copysign(R(1), D(0)) + shift / D(0)), g = E(0);
    for (int i = 0; i < m; ++i) {
      const Rotation<R> right(f, g);
      if (i > 0) E(i - 1) = right.r;
      f = right.c * D(i) + right.s * E(i);
      E(i) = right.c * E(i) - right.s * D(i);
      g = right.s * D(i + 1);
      D(i + 1) = right.c * D(i + 1);
      const Rotation<R> left(f, g);
      D(i) = left.r;
      f = left.c * E(i) + left.s * D(i + 1);
      D(i + 1) = left.c * D(i + 1) - left.s * E(i);
      if (i + 1 < m) {
        g = left.s * E(i + 1);
        E(i + 1) = left.c * E(i + 1);
      }
      outer.add(right.c, sign * right.s), inner.add(left.c, sign * left.s);
    }
    E(m - 1) = f;
  }
  return 0;
}

// One call's results: u has `columns` columns, v is n x n, a = u diag(s) v^H.
template <class T>
struct Svd {
  Matrix<T> u, v;
  std::vector<Real<T>> s;
  int info;
};

template <class T>
Svd<T> tall_svd(Matrix<T> a, bool vectors, int columns) {
  using R = Real<T>;
  const int m = a.m, n = a.n;
  Svd<T> out{Matrix<T>(vectors ? m : 0, vectors ? columns : 0), Matrix<T>(0, 0), {}, 0};
  const int exponent = exponent_of(a.a.data(), static_cast<int64_t>(a.a.size()));
  scale_by_power(a.a.data(), static_cast<int64_t>(a.a.size()), -exponent);
  const bool by_qr = m > n + n / 4 + 1;  // fewer rows for the costly part
  Matrix<T> factor(0, 0);
  std::vector<T> tau(n);
  if (by_qr) {
    geqrf(m, n, a.a.data(), tau.data());
    factor = std::move(a);
    a = Matrix<T>(n, n);
    for (int j = 0; j < n; ++j) std::copy_n(factor.column(j), j + 1, a.column(j));
  }
  Bidiagonal<T> b = bidiagonalise(a);
  Matrix<R> p(vectors ? n : 0, vectors ? n : 0);
  for (int j = 0; j < p.n; ++j) p(j, j) = 1;
  Matrix<R> q = p;
  out.info = diagonalise(n, b.d.data(), b.e.data(), vectors ? &p : nullptr, vectors ? &q : nullptr);
  if (out.info) return out;
  std::vector<int> order(n);
  for (int j = 0; j < n; ++j) order[j] = j;
  std::stable_sort(order.begin(), order.end(),
                   [&](int i, int j) { return std::fabs(b.d[i]) > std::fabs(b.d[j]); });
  for (int j = 0; j < n; ++j) out.s.push_back(std::fabs(b.d[order[j]]));
  scale_by_power(out.s.data(), n, exponent);
  if (!vectors) return out;
  out.v = Matrix<T>(n, n);
  for (int j = 0; j < n; ++j) {
    const R sign = std::signbit(b.d[order[j]]) ? -1 : 1;
    for (int i = 0; i < n; ++i) {
      out.u(i, j) = T(p(i, order[j]));
      out.v(i, j) = T(sign * q(i, order[j]));
    }
  }
  for (int j = n; j < columns; ++j) out.u(j, j) = T(1);
  // Columns behind the n-th are unit vectors that reflectors of n rows leave alone.
  apply_reflectors(b.left.m, by_qr ? n : columns, n, b.left.a.data(), b.left.ld(),
                   b.left_tau.data(), 0, false, out.u.a.data(), out.u.ld());
  apply_reflectors(n, n, n - 1, b.right.a.data(), b.right.ld(), b.right_tau.data(), 1, false,
                   out.v.a.data(), out.v.ld());
  if (by_qr)
    ormqr(true, 'N', m, columns, n, factor.a.data(), factor.ld(), tau.data(), out.u.a.data());
  return out;
}

template <class T>
void store(const Matrix<T>& x, T* to, int ld) {
  for (int j = 0; j < x.n; ++j) std::copy_n(x.column(j), x.m, column(to, ld, j));
}
template <class T>
void store_adjoint(const Matrix<T>& x, T* to, int ld) {
  for (int i = 0; i < x.m; ++i)
    for (int j = 0; j < x.n; ++j) column(to, ld, i)[j] = conjugate(x(i, j));
}

}  // namespace

template <class T>
int gesdd(char job, int m, int n, T* a, Real<T>* s, T* u, int ldu, T* vt, int ldvt) {
  const bool tall = m >= n, vectors = job != 'N';
  const int k = std::min(m, n), columns = job == 'A' ? std::max(m, n) : k;
  if (k == 0) return 0;
  Matrix<T> x = adjoint(m, n, a, std::max(1, m));
  if (tall) {
    x.m = m, x.n = n;
    std::copy_n(a, x.a.size(), x.a.data());
  }
  const Svd<T> d = tall_svd(std::move(x), vectors, columns);
  if (d.info) return d.info;
  std::copy(d.s.begin(), d.s.end(), s);
  if (!vectors) return 0;
  store(tall ? d.u : d.v, u, ldu);
  store_adjoint(tall ? d.v : d.u, vt, ldvt);
  return 0;
}

#define FB_INSTANTIATE(T) template int gesdd<T>(char, int, int, T*, Real<T>*, T*, int, T*, int);
FB_INSTANTIATE(float)
FB_INSTANTIATE(double)
FB_INSTANTIATE(complex64)
FB_INSTANTIATE(complex128)

}  // namespace flambeau::kernels::lapack::builtin
