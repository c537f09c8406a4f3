// Eigenvalues and eigenvectors of Hermitian matrices without LAPACK: to tridiagonal form by blocks
// of reflectors, implicit QL or QR steps there, and the eigenvectors back. Sources: Golub and Van
// Loan, Matrix Computations (4th ed.), 8.3; Dongarra, Hammarling and Sorensen 1989, "Block
// reduction of matrices to condensed forms".
#include "kernels/providers/lapack_builtin_tools.h"

namespace flambeau::kernels::lapack::builtin {
namespace {

// a = Q T Q^H: the diagonal and the off-diagonal of the real T, and Q's reflectors, the column j of
// which begins in row j + 1. Both triangles of a are read; a is lost.
//
// Before a step, what is left of the matrix is A - V W^H - W V^H. A reflector v makes of it, with
// p = tau A v and w = p - conj(tau) (v^H p) / 2 v, the same less v w^H + w v^H.
template <class T>
void tridiagonalise(Matrix<T>& a, Real<T>* d, Real<T>* e, Matrix<T>& v, std::vector<T>& tau) {
  const int n = a.n, ld = a.ld();
  Matrix<T> w(n, kReflectors), both(n, 2 * kReflectors), turned(n, 2 * kReflectors);
  std::vector<T> row(kReflectors), along(kReflectors);
  for (int from = 0; from < n; from += kReflectors) {
    const int to = std::min(n, from + kReflectors);
    for (int j = from; j < to; ++j) {
      const int known = j - from, rest = n - j - 1;
      T* x = a.at(j, j);  // the column, brought up to date by what earlier columns left to do
      for (int k = 0; k < known; ++k) row[k] = conjugate(w(j, k));
      matvec(false, n - j, known, -1, v.at(j, from), ld, row.data(), x);
      for (int k = 0; k < known; ++k) row[k] = conjugate(v(j, from + k));
      matvec(false, n - j, known, -1, w.at(j, 0), ld, row.data(), x);
      d[j] = std::real(*x);
      if (rest == 0) break;
      tau[j] = reflector(x + 1, rest);
      e[j] = std::real(x[1]);
      T* u = v.at(j + 1, j);
      std::copy_n(x + 1, rest, u);
      u[0] = T(1);
      T* p = w.at(j + 1, known);
      std::fill_n(w.column(known), n, T(0));
      matvec(false, rest, rest, 1, a.at(j + 1, j + 1), ld, u, p);
      std::fill(along.begin(), along.end(), T(0));
      matvec(true, rest, known, 1, w.at(j + 1, 0), ld, u, along.data());
      matvec(false, rest, known, -1, v.at(j + 1, from), ld, along.data(), p);
      std::fill(along.begin(), along.end(), T(0));
      matvec(true, rest, known, 1, v.at(j + 1, from), ld, u, along.data());
      matvec(false, rest, known, -1, w.at(j + 1, 0), ld, along.data(), p);
      for (int i = 0; i < rest; ++i) p[i] *= tau[j];
      T inner(0);
      matvec(true, rest, 1, 1, u, ld, p, &inner);
      const T half = -conjugate(tau[j]) * inner / Real<T>(2);
      matvec(false, rest, 1, 1, u, ld, &half, p);
    }
    const int rest = n - to, width = to - from;
    if (rest == 0) break;
    for (int k = 0; k < width; ++k) {  // one product: [V W] [W V]^H
      std::copy_n(v.at(to, from + k), rest, both.column(k));
      std::copy_n(w.at(to, k), rest, both.column(width + k));
      std::copy_n(w.at(to, k), rest, turned.column(k));
      std::copy_n(v.at(to, from + k), rest, turned.column(width + k));
    }
    product('N', 'C', rest, rest, 2 * width, -1, both.a.data(), ld, turned.a.data(), ld, 1,
            a.at(to, to), ld);
  }
}

// Eigenvalues of a tridiagonal matrix into d, the eigenvectors into z (which is multiplied by them)
// unless that is null. Every unreduced block is worked from its smaller end, which graded matrices
// need. Positive when it does not converge: how many numbers of e are left.
template <class R>
int diagonalise(int n, R* d, R* e, Matrix<R>* z) {
  constexpr R eps = std::numeric_limits<R>::epsilon() / 2, tiny = std::numeric_limits<R>::min();
  Rotations<R> rotations(z);
  int64_t steps = int64_t{30} * n;
  const auto negligible = [&](int i) {
    return std::fabs(e[i]) <= eps * (std::sqrt(std::fabs(d[i])) * std::sqrt(std::fabs(d[i + 1]))) ||
           std::fabs(e[i]) <= tiny;
  };
  for (int hi = n - 1; hi > 0;) {
    if (negligible(hi - 1)) {
      e[--hi] = 0;
      continue;
    }
    int lo = hi - 1;
    while (lo > 0 && !negligible(lo - 1)) --lo;
    if (lo > 0) e[lo - 1] = 0;
    if (steps-- == 0)
      return static_cast<int>(std::count_if(e, e + n - 1, [](R x) { return x != 0; }));
    // QL steps bring eigenvalues out at lo, QR steps, which are QL steps of the matrix turned
    // round, at hi: where the diagonal is smaller.
    const bool turned = std::fabs(d[hi]) < std::fabs(d[lo]);
    const auto D = [&](int i) -> R& { return d[turned ? hi - i : lo + i]; };
    const auto E = [&](int i) -> R& { return e[turned ? hi - 1 - i : lo + i]; };
    const int m = hi - lo;
    R g = (D(1) - D(0)) / (2 * E(0));
    g = D(m) - D(0) + E(0) / (g + std::copysign(std::hypot(g, R(1)), g));
    R s = 1, c = 1, p = 0;
    rotations.begin(turned ? lo : hi - 1, turned);
    for (int i = m - 1; i >= 0; --i) {
      const R f = s * E(i), b = c * E(i);
      const Rotation<R> turn(g, f);
      c = turn.c, s = turn.s;
      if (i != m - 1) E(i + 1) = turn.r;
      g = D(i + 1) - p;
      const R r = (D(i) - g) * s + 2 * c * b;
      p = s * r;
      D(i + 1) = g + p;
      g = c * r - b;
      rotations.add(c, turned ? s : -s);
    }
    D(0) -= p;
    E(0) = g;
  }
  return 0;
}

}  // namespace

template <class T>
int heevd(bool vectors, bool upper, int n, T* a, Real<T>* w) {
  using R = Real<T>;
  Matrix<T> x(n, n), v(n, n);
  for (int j = 0; j < n; ++j)
    for (int i = 0; i <= j; ++i) {
      const T value = upper ? column(a, n, j)[i] : conjugate(column(a, n, i)[j]);
      x(i, j) = i == j ? T(std::real(value)) : value;
      x(j, i) = conjugate(x(i, j));
    }
  if (!all_finite(x.a.data(), static_cast<int64_t>(x.a.size()))) return std::max(1, n - 1);
  const int exponent = exponent_of(x.a.data(), static_cast<int64_t>(x.a.size()));
  scale_by_power(x.a.data(), static_cast<int64_t>(x.a.size()), -exponent);
  std::vector<R> off(n + 1);
  std::vector<T> tau(n);
  tridiagonalise(x, w, off.data(), v, tau);
  Matrix<R> z(vectors ? n : 0, vectors ? n : 0);
  for (int j = 0; j < z.n; ++j) z(j, j) = 1;
  if (const int failed = diagonalise(n, w, off.data(), vectors ? &z : nullptr)) return failed;
  std::vector<int> order(n);
  for (int j = 0; j < n; ++j) order[j] = j;
  std::stable_sort(order.begin(), order.end(), [&](int i, int j) { return w[i] < w[j]; });
  std::vector<R> values(n);
  for (int j = 0; j < n; ++j) values[j] = w[order[j]];
  scale_by_power(values.data(), n, exponent);
  std::copy(values.begin(), values.end(), w);
  if (!vectors) return 0;
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < n; ++i) column(a, n, j)[i] = T(z(i, order[j]));
  apply_reflectors(n, n, n - 1, v.a.data(), v.ld(), tau.data(), 1, false, a, n);
  return 0;
}

#define FB_INSTANTIATE(T) template int heevd<T>(bool, bool, int, T*, Real<T>*);
FB_INSTANTIATE(float)
FB_INSTANTIATE(double)
FB_INSTANTIATE(complex64)
FB_INSTANTIATE(complex128)

}  // namespace flambeau::kernels::lapack::builtin
