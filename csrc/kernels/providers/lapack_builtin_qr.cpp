// Householder QR without LAPACK, by blocks of columns, and least squares from it or from singular
// values. Source: Golub and Van Loan, Matrix Computations (4th ed.), 5.2 and 5.3.
#include "kernels/providers/lapack_builtin_tools.h"

namespace flambeau::kernels::lapack::builtin {
namespace {

// The reflectors that geqrf leaves below a diagonal, with ones and zeros written out; m x k.
template <class T>
Matrix<T> reflectors_of(int m, int k, const T* a, int lda) {
  Matrix<T> v(m, k);
  for (int j = 0; j < k; ++j) {
    if (j < m) v(j, j) = T(1);
    for (int i = j + 1; i < m; ++i) v(i, j) = column(a, lda, j)[i];
  }
  return v;
}

template <class T>
void factor_panel(int m, int n, T* a, int lda, T* tau) {
  std::vector<T> along(n);
  for (int j = 0; j < std::min(m, n); ++j) {
    T* x = column(a, lda, j) + j;
    tau[j] = reflector(x, m - j);
    if (j + 1 == n || tau[j] == T(0)) continue;
    const T beta = x[0];  // its place holds v[0] while v is used
    x[0] = T(1);
    std::fill(along.begin(), along.end(), T(0));
    T* rest = column(a, lda, j + 1) + j;
    matvec(true, m - j, n - j - 1, 1, rest, lda, x, along.data());
    for (int c = 0; c < n - j - 1; ++c) {  // rest -= conj(tau) v (rest^H v)^H
      const T factor = conjugate(tau[j]) * conjugate(along[c]);
      matvec(false, m - j, 1, -1, x, lda, &factor, column(rest, lda, c));
    }
    x[0] = beta;
  }
}

}  // namespace

template <class T>
int geqrf(int m, int n, T* a, T* tau) {
  const int k = std::min(m, n), lda = std::max(1, m);
  for (int j = 0; j < k; j += kReflectors) {
    const int width = std::min(kReflectors, k - j), rest = n - j - width;
    T* panel = column(a, lda, j) + j;
    factor_panel(m - j, width, panel, lda, tau + j);
    if (rest == 0) continue;
    const Matrix<T> v = reflectors_of(m - j, width, panel, lda);
    const Matrix<T> t = block_triangle(v.m, width, v.a.data(), v.ld(), tau + j);
    apply_block(v.m, rest, width, v.a.data(), v.ld(), t, true, column(panel, lda, width), lda);
  }
  return 0;
}

template <class T>
int orgqr(int m, int n, int k, T* a, const T* tau) {
  const Matrix<T> v = reflectors_of(m, k, a, std::max(1, m));
  std::fill_n(a, static_cast<int64_t>(m) * n, T(0));
  for (int j = 0; j < std::min(m, n); ++j) column(a, m, j)[j] = T(1);
  apply_reflectors(m, n, k, v.a.data(), v.ld(), tau, 0, false, a, std::max(1, m));
  return 0;
}

template <class T>
int ormqr(bool left, char trans, int m, int n, int k, const T* a, int lda, const T* tau, T* c) {
  const int ldc = std::max(1, m);
  const Matrix<T> v = reflectors_of(left ? m : n, k, a, lda);
  if (left) {
    apply_reflectors(m, n, k, v.a.data(), v.ld(), tau, 0, trans != 'N', c, ldc);
    return 0;
  }
  Matrix<T> turned = adjoint(m, n, c, ldc);  // C Q = (Q^H C^H)^H
  apply_reflectors(n, m, k, v.a.data(), v.ld(), tau, 0, trans == 'N', turned.a.data(), turned.ld());
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) column(c, ldc, j)[i] = conjugate(turned(j, i));
  return 0;
}

namespace {

// Least squares of full rank, or the shortest solution when there are fewer rows than columns.
template <class T>
int full_rank(int m, int n, int rhs, T* a, T* b, int ldb) {
  const bool tall = m >= n;
  const int rows = std::max(m, n), k = std::min(m, n);
  Matrix<T> f = adjoint(m, n, a, std::max(1, m));
  if (tall) {
    f.m = m, f.n = n;
    std::copy_n(a, f.a.size(), f.a.data());
  }
  std::vector<T> tau(k);
  geqrf(rows, k, f.a.data(), tau.data());
  Matrix<T> r(k, k), x(k, rhs), whole(rows, rhs);
  for (int j = 0; j < k; ++j)
    for (int i = 0; i <= j; ++i) r(i, j) = f(i, j);
  for (int j = 0; j < k; ++j)
    if (r(j, j) == T(0)) return j + 1;
  for (int j = 0; j < rhs; ++j) std::copy_n(column(b, ldb, j), tall ? rows : k, whole.column(j));
  const auto turn = [&](char trans) {
    ormqr(true, trans, rows, rhs, k, f.a.data(), f.ld(), tau.data(), whole.a.data());
  };
  if (tall) turn('C');
  for (int j = 0; j < rhs; ++j) std::copy_n(whole.column(j), k, x.column(j));
  trtrs(true, tall ? 'N' : 'C', false, k, rhs, r.a.data(), x.a.data());
  for (int j = 0; j < rhs; ++j) std::copy_n(x.column(j), k, whole.column(j));
  if (!tall) turn('N');
  for (int j = 0; j < rhs; ++j) std::copy_n(whole.column(j), rows, column(b, ldb, j));
  return 0;
}

}  // namespace

template <class T>
int gels(int driver, int m, int n, int rhs, T* a, T* b, Real<T> rcond, int* rank, Real<T>* s) {
  using R = Real<T>;
  const int ldb = std::max({1, m, n}), k = std::min(m, n);
  *rank = k;
  if (driver == 0) return full_rank(m, n, rhs, a, b, ldb);
  std::vector<R> sizes(k);
  Matrix<T> u(m, k), vt(k, n);
  if (const int failed =
          gesdd('S', m, n, a, sizes.data(), u.a.data(), u.ld(), vt.a.data(), vt.ld()))
    return failed;
  const R cut = (rcond < 0 ? std::numeric_limits<R>::epsilon() : rcond) * sizes[0];
  *rank = static_cast<int>(
      std::count_if(sizes.begin(), sizes.end(), [&](R size) { return size > cut; }));
  if (driver >= 2) std::copy(sizes.begin(), sizes.end(), s);
  Matrix<T> along(*rank, rhs);
  product('C', 'N', *rank, rhs, m, 1, u.a.data(), u.ld(), b, ldb, 0, along.a.data(), along.ld());
  for (int j = 0; j < rhs; ++j)
    for (int i = 0; i < *rank; ++i) along(i, j) /= sizes[i];
  for (int j = 0; j < rhs; ++j) std::fill_n(column(b, ldb, j), ldb, T(0));
  if (*rank)
    product('C', 'N', n, rhs, *rank, 1, vt.a.data(), vt.ld(), along.a.data(), along.ld(), 0, b,
            ldb);
  return 0;
}

#define FB_INSTANTIATE(T)                                                        \
  template int geqrf<T>(int, int, T*, T*);                                       \
  template int orgqr<T>(int, int, int, T*, const T*);                            \
  template int ormqr<T>(bool, char, int, int, int, const T*, int, const T*, T*); \
  template int gels<T>(int, int, int, int, T*, T*, Real<T>, int*, Real<T>*);
FB_INSTANTIATE(float)
FB_INSTANTIATE(double)
FB_INSTANTIATE(complex64)
FB_INSTANTIATE(complex128)

}  // namespace flambeau::kernels::lapack::builtin
