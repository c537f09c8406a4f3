// Cholesky and LU without LAPACK, by halves: the work is products. The recursion keeps every panel
// in cache (Toledo 1997, "Locality of reference in LU decomposition with partial pivoting").
#include "kernels/providers/lapack_builtin_tools.h"

namespace flambeau::kernels::lapack::builtin {
namespace {

constexpr int kSmall = 8;  // columns, from which a panel is not halved

// a = u^H u in its upper triangle; what lies below is not read, and is lost.
template <class T>
int cholesky(int n, T* a, int lda) {
  if (n <= 2 * kSmall) {
    for (int j = 0; j < n; ++j) {
      T* c = column(a, lda, j);
      Real<T> rest = std::real(c[j]);
      for (int i = 0; i < j; ++i) {
        const T* u = column(a, lda, i);
        T sum = c[i];
        for (int k = 0; k < i; ++k) sum -= conjugate(u[k]) * c[k];
        c[i] = sum / std::real(u[i]);
        rest -= std::norm(c[i]);
      }
      if (!(rest > 0)) return j + 1;
      c[j] = T(std::sqrt(rest));
    }
    return 0;
  }
  const int first = n / 2, second = n - first;
  T *beside = column(a, lda, first), *corner = beside + first;
  if (const int failed = cholesky(first, a, lda)) return failed;
  solve_by_halves<Plain, T>('U', 'C', 'N', first, second, a, lda, beside, lda);
  // Of the last block, the triangle alone is wanted: by strips of columns.
  for (int j = 0; j < second; j += kBlock) {
    const int width = std::min(kBlock, second - j);
    Plain::subtract('C', 'N', j + width, width, first, beside, lda, column(beside, lda, j), lda,
                    column(corner, lda, j), lda);
  }
  const int failed = cholesky(second, corner, lda);
  return failed ? first + failed : 0;
}

// LU of m x n; pivots count from 1, in this panel.
template <class T>
int lu(int m, int n, T* a, int lda, int* pivots) {
  const int steps = std::min(m, n);
  int info = 0;
  if (n <= kSmall || m <= kSmall) {
    for (int k = 0; k < steps; ++k) {
      T* c = column(a, lda, k);
      int best = k;
      for (int i = k + 1; i < m; ++i)
        if (size1(c[i]) > size1(c[best])) best = i;
      pivots[k] = best + 1;
      if (c[best] == T(0)) {
        if (!info) info = k + 1;
        continue;
      }
      if (best != k)
        for (int j = 0; j < n; ++j) std::swap(column(a, lda, j)[k], column(a, lda, j)[best]);
      const T pivot = c[k];
      for (int i = k + 1; i < m; ++i) c[i] /= pivot;
      for (int j = k + 1; j < n; ++j) {
        T* to = column(a, lda, j);
        const T factor = to[k];
        for (int i = k + 1; i < m; ++i) to[i] -= c[i] * factor;
      }
    }
    return info;
  }
  const int first = steps / 2, second = n - first;
  T* right = column(a, lda, first);
  info = lu(m, first, a, lda, pivots);
  Plain::swap_rows(second, right, lda, 0, first, pivots, false);
  solve_by_halves<Plain, T>('L', 'N', 'U', first, second, a, lda, right, lda);
  Plain::subtract('N', 'N', m - first, second, first, a + first, lda, right, lda, right + first,
                  lda);
  const int failed = lu(m - first, second, right + first, lda, pivots + first);
  if (failed && !info) info = first + failed;
  for (int i = first; i < steps; ++i) pivots[i] += first;
  Plain::swap_rows(first, a, lda, first, steps, pivots, false);
  return info;
}

}  // namespace

template <class T>
int potrf(bool upper, int n, T* a) {
  if (upper) return cholesky(n, a, std::max(1, n));
  Matrix<T> turned = adjoint(n, n, a, std::max(1, n));
  const int info = cholesky(n, turned.a.data(), turned.ld());
  for (int j = 0; j < n; ++j)
    for (int i = j; i < n; ++i) column(a, n, j)[i] = conjugate(turned(j, i));
  return info;
}

template <class T>
int getrf(int m, int n, T* a, int* pivots) {
  return lu(m, n, a, std::max(1, m), pivots);
}

template <class T>
int getrs(char trans, int n, int rhs, const T* lu, const int* pivots, T* b) {
  return solve_factored<Plain>(trans, n, rhs, lu, pivots, b), 0;
}

template <class T>
void inverse(int n, const T* lu, const int* pivots, T* x) {
  invert_factored<Plain>(n, lu, pivots, x);
}

template <class T>
int trtrs(bool upper, char trans, bool unit, int n, int rhs, const T* a, T* b) {
  return solve_columns<Plain>(upper ? 'U' : 'L', trans, unit ? 'U' : 'N', n, rhs, a, b), 0;
}

#define FB_INSTANTIATE(T)                                          \
  template int potrf<T>(bool, int, T*);                            \
  template int getrf<T>(int, int, T*, int*);                       \
  template int getrs<T>(char, int, int, const T*, const int*, T*); \
  template void inverse<T>(int, const T*, const int*, T*);         \
  template int trtrs<T>(bool, char, bool, int, int, const T*, T*);
FB_INSTANTIATE(float)
FB_INSTANTIATE(double)
FB_INSTANTIATE(complex64)
FB_INSTANTIATE(complex128)

}  // namespace flambeau::kernels::lapack::builtin
