// Plain dense factorisations for machines without OpenBLAS, and to test against: the routines of
// lapack.h by products of our own, in the element type. One file per family: lapack_builtin_*.cpp.
#pragma once

#include "kernels/providers/lapack.h"

namespace flambeau::kernels::lapack::builtin {

template <class T>
int potrf(bool upper, int n, T* a);
template <class T>
int getrf(int m, int n, T* a, int* pivots);
template <class T>
int getrs(char trans, int n, int rhs, const T* lu, const int* pivots, T* b);
template <class T>
void inverse(int n, const T* lu, const int* pivots, T* x);
template <class T>
int trtrs(bool upper, char trans, bool unit, int n, int rhs, const T* a, T* b);
template <class T>
int geqrf(int m, int n, T* a, T* tau);
template <class T>
int orgqr(int m, int n, int k, T* a, const T* tau);
template <class T>
int ormqr(bool left, char trans, int m, int n, int k, const T* a, int lda, const T* tau, T* c);
template <class T>
int heevd(bool vectors, bool upper, int n, T* a, Real<T>* w);
template <class T>
int gesdd(char job, int m, int n, T* a, Real<T>* s, T* u, int ldu, T* vt, int ldvt);
template <class T>
int geev(bool vectors, int n, T* a, std::complex<Real<T>>* w, std::complex<Real<T>>* v);
template <class T>
int gels(int driver, int m, int n, int rhs, T* a, T* b, Real<T> rcond, int* rank, Real<T>* s);

}  // namespace flambeau::kernels::lapack::builtin
