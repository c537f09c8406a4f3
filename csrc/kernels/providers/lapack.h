// Dense factorisations of column-major matrices in float, double and their complex types. Two
// makers: LAPACK out of OpenBLAS, found and opened on first use (so importing starts none of its
// threads), and plain implementations (lapack_builtin.h) for machines without it. `info` is
// LAPACK's: 0 is success, positive names where it failed.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/dtype.h"

namespace flambeau::kernels::lapack {

template <class T>
struct RealOf {
  using type = T;
};
template <class R>
struct RealOf<std::complex<R>> {
  using type = R;
};
template <class T>
using Real = typename RealOf<T>::type;

template <class T>
int potrf(bool upper, int n, T* a);  // Cholesky; the other triangle is lost
template <class T>
int getrf(int m, int n, T* a, int* pivots);  // LU; pivots count from 1
template <class T>
int getrs(char trans, int n, int rhs, const T* lu, const int* pivots, T* b);
template <class T>
void inverse(int n, const T* lu, const int* pivots, T* x);  // of what getrf factored
template <class T>
int trtrs(bool upper, char trans, bool unit, int n, int rhs, const T* a, T* b);
template <class T>
int geqrf(int m, int n, T* a, T* tau);  // Householder QR
template <class T>
int orgqr(int m, int n, int k, T* a, const T* tau);  // Q from reflectors
template <class T>
int ormqr(bool left, char trans, int m, int n, int k, const T* a, int lda, const T* tau, T* c);
template <class T>
int heevd(bool vectors, bool upper, int n, T* a, Real<T>* w);  // Hermitian eigenproblem
// Singular values of what is not finite: LAPACK might look for them for ever, so it is not asked.
inline constexpr int kNotFinite = -4;
template <class T>
bool all_finite(const T* x, int64_t n) {
  return std::all_of(x, x + n, [](T v) {
    if constexpr (std::is_floating_point_v<T>)
      return std::isfinite(v);
    else
      return std::isfinite(v.real()) && std::isfinite(v.imag());
  });
}
// Raises where one matrix of a batch was such.
void check_finite(const std::vector<int>& infos, const char* op, bool is_matrix);
template <class T>
int gesdd(char job, int m, int n, T* a, Real<T>* s, T* u, int ldu, T* vt, int ldvt);  // job A, S, N
// General eigenproblem; w and vectors are complex for real input too.
template <class T>
int geev(bool vectors, int n, T* a, std::complex<Real<T>>* w, std::complex<Real<T>>* v);
// Minimum-norm least squares by column-pivoted QR (gelsy), SVD (gelsd, gelss) or full-rank QR
// (gels).
template <class T>
int gels(int driver, int m, int n, int rhs, T* a, T* b, Real<T> rcond, int* rank, Real<T>* s);

bool available();           // OpenBLAS could be opened, and the plain routines are not asked for
bool use_builtin(bool on);  // for tests; the setting before

}  // namespace flambeau::kernels::lapack
