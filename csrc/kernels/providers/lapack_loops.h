// What the plain routines of LAPACK spend their time in beside products of matrices: a matrix times
// a vector, and plane rotations of columns. Built per instruction set in lapack_loops.isa.cpp.
// Knows memory by columns, no algorithm.
#pragma once

#include "core/dtype.h"
#include "kernels/isa.h"

namespace flambeau::kernels {

// y += alpha * A x, or y += alpha * A^H x; A is m x n, x and y are dense.
struct PlainMatvec {
  DType dtype;  // float, double or a complex type of them
  bool adjoint;
  int64_t m, n;
  const void* a;
  int64_t lda;
  const void* x;
  void* y;
  double alpha;
};

// Rotations of neighbouring columns (j, j + 1), one after another: those of columns first, first +
// 1, ... or of first, first - 1, ...; `at` is where their cosines and sines begin. One rotation
// makes (c x_j + s x_{j+1}, c x_{j+1} - s x_j).
struct RotationSweep {
  int64_t first, count, at;
  bool ascending;
};
struct PlainRotations {
  bool wide;  // double, else float
  const RotationSweep* sweeps;
  int64_t count;
  const void *c, *s;
  void* z;
  int64_t ld;
};

FB_ISA_DECLARE(void plain_matvec(const PlainMatvec& call);)
FB_ISA_DECLARE(void plain_rotations(const PlainRotations& call, int64_t from, int64_t to);)  // rows

}  // namespace flambeau::kernels
