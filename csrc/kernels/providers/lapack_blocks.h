// Triangles solved by blocks, for LAPACK out of OpenBLAS and for the plain routines alike: most of
// the work is products, which the maker `P` does: P::subtract(ta, tb, m, n, k, a, lda, b, ldb, c,
// ldc) is c -= op(a) op(b), P::swap_rows exchanges rows as pivots say. Matrices lie by columns.
#pragma once

#include <algorithm>

#include "core/parallel.h"
#include "kernels/providers/lapack.h"

namespace flambeau::kernels::lapack {

template <class T>
inline constexpr bool cplx = !std::is_floating_point_v<T>;

template <class T>
T conjugate(T x) {
  if constexpr (cplx<T>)
    return std::conj(x);
  else
    return x;
}

// Column j of a matrix of m rows.
template <class T>
T* column(T* a, int64_t m, int64_t j) {
  return a + m * j;
}

inline constexpr int kBlock = 64;         // columns that one thread factors
inline constexpr int kManyColumns = 256;  // from here on blocks are worth it
inline constexpr int kTriangle = 16;      // rows of a triangle that is solved by itself

inline bool in_blocks(int n) {
  return n >= kManyColumns && num_threads() > 1 && !in_parallel();
}

// f(from, to) on shares of [0, n), each of which costs `work` multiplications or more per element.
template <class F>
void shared_out(int n, double work, const F& f) {
  constexpr double kShare = 1 << 20;
  const int grain = std::max(8, static_cast<int>(std::min<double>(n, kShare / work)));
  parallel_for(0, n, grain,
               [&](int64_t from, int64_t to) { f(static_cast<int>(from), static_cast<int>(to)); });
}

// b = op(a)^-1 b for a small triangle, some columns at a time. (OpenBLAS does this part of trsm
// number by number: it took half the time of an inverse.)
template <class T>
void solve_small(char uplo, char trans, char diag, int m, int n, const T* a, int lda, T* b,
                 int ldb) {
  constexpr int kColumns = 16;
  T t[kTriangle][kTriangle], x[kTriangle][kColumns] = {};
  for (int i = 0; i < m; ++i)
    for (int k = 0; k < m; ++k) {
      t[i][k] = trans == 'N' ? column(a, lda, k)[i] : column(a, lda, i)[k];
      if (trans == 'C') t[i][k] = conjugate(t[i][k]);
    }
  const bool down = (uplo == 'L') == (trans == 'N');
  for (int j = 0; j < n; j += kColumns) {
    const int width = std::min(kColumns, n - j);
    for (int c = 0; c < width; ++c)
      for (int i = 0; i < m; ++i) x[i][c] = column(b, ldb, j + c)[i];
    for (int step = 0; step < m; ++step) {
      const int k = down ? step : m - 1 - step;
      T solved[kColumns];  // apart from x, so that the loops below are seen not to overlap
      for (int c = 0; c < kColumns; ++c) solved[c] = diag == 'N' ? x[k][c] / t[k][k] : x[k][c];
      for (int c = 0; c < kColumns; ++c) x[k][c] = solved[c];
      for (int i = down ? k + 1 : 0; i < (down ? m : k); ++i)
        for (int c = 0; c < kColumns; ++c) x[i][c] -= t[i][k] * solved[c];
    }
    for (int c = 0; c < width; ++c)
      for (int i = 0; i < m; ++i) column(b, ldb, j + c)[i] = x[i][c];
  }
}

// b = op(a)^-1 b by halves: most of the work is a product.
template <class P, class T>
void solve_by_halves(char uplo, char trans, char diag, int m, int n, const T* a, int lda, T* b,
                     int ldb) {
  if (m <= kTriangle) return solve_small<T>(uplo, trans, diag, m, n, a, lda, b, ldb);
  const int first = (m / 2 + kTriangle - 1) / kTriangle * kTriangle, second = m - first;
  const T* corner = column(a, lda, first) + first;
  const T* beside = uplo == 'L' ? a + first : column(a, lda, first);
  if ((uplo == 'L') == (trans == 'N')) {
    solve_by_halves<P, T>(uplo, trans, diag, first, n, a, lda, b, ldb);
    P::subtract(trans, 'N', second, n, first, beside, lda, b, ldb, b + first, ldb);
    solve_by_halves<P, T>(uplo, trans, diag, second, n, corner, lda, b + first, ldb);
  } else {
    solve_by_halves<P, T>(uplo, trans, diag, second, n, corner, lda, b + first, ldb);
    P::subtract(trans, 'N', first, n, second, beside, lda, b + first, ldb, b, ldb);
    solve_by_halves<P, T>(uplo, trans, diag, first, n, a, lda, b, ldb);
  }
}

// b = op(a)^-1 b for a triangle of n rows, shared out by columns of b.
template <class P, class T>
void solve_columns(char uplo, char trans, char diag, int n, int rhs, const T* a, T* b) {
  const int ld = std::max(1, n);
  shared_out(rhs, static_cast<double>(n) * n / 2, [&](int from, int to) {
    solve_by_halves<P, T>(uplo, trans, diag, n, to - from, a, ld, column(b, ld, from), ld);
  });
}

// b = op(L U)^-1 b for the factors that getrf leaves.
template <class P, class T>
void solve_factored(char trans, int n, int rhs, const T* lu, const int* pivots, T* b) {
  const int ld = std::max(1, n);
  shared_out(rhs, static_cast<double>(n) * n, [&](int from, int to) {
    const int columns = to - from;
    T* part = column(b, ld, from);
    const auto solve = [&](char uplo, char diag) {
      solve_by_halves<P, T>(uplo, trans, diag, n, columns, lu, ld, part, ld);
    };
    if (trans == 'N') {
      P::swap_rows(columns, part, ld, 0, n, pivots, false);
      solve('L', 'U'), solve('U', 'N');
    } else {
      solve('U', 'N'), solve('L', 'U');
      P::swap_rows(columns, part, ld, 0, n, pivots, true);
    }
  });
}

// x = (L U)^-1
template <class P, class T>
void invert_factored(int n, const T* lu, const int* pivots, T* x) {
  std::fill_n(x, static_cast<int64_t>(n) * n, T(0));
  for (int j = 0; j < n; ++j) column(x, n, j)[j] = T(1);
  // The inverse of L has zeros above its diagonal: rows before a column's own take no part.
  const auto solve = [&](int from, int to) {
    for (int j = from; j < to; j += kBlock)
      solve_by_halves<P, T>('L', 'N', 'U', n - j, std::min(kBlock, to - j), column(lu, n, j) + j, n,
                            column(x, n, j) + j, n);
    solve_by_halves<P, T>('U', 'N', 'N', n, to - from, lu, n, column(x, n, from), n);
  };
  // Early columns take longest, so a thread has as many of them as of the late ones.
  const int64_t threads = in_blocks(n) ? num_threads() : 1, slices = 2 * threads;
  parallel_for(0, threads, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      for (const int64_t slice : {i, slices - 1 - i})
        solve(static_cast<int>(n * slice / slices), static_cast<int>(n * (slice + 1) / slices));
  });
  for (int j = n - 1; j >= 0; --j)
    if (const int k = pivots[j] - 1; k != j)
      std::swap_ranges(column(x, n, j), column(x, n, j + 1), column(x, n, k));
}

}  // namespace flambeau::kernels::lapack
